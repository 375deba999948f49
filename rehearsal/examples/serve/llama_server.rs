//! A llama-server as the other side.

use crate::infill::{Infill, WAIT_LIMIT};
use anyhow::{Context, Result, bail, ensure};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub struct LlamaServer {
    child: Child,
    pub infill: Infill,
}

impl LlamaServer {
    pub fn start(program: &Path, gguf: &Path, threads: usize) -> Result<LlamaServer> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = Command::new(program)
            .arg("--model")
            .arg(gguf)
            .args(["--port", &port.to_string(), "--ctx-size", "4096", "--parallel", "1"])
            .args(["--threads", &threads.to_string(), "--threads-batch", &threads.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("{}: cannot start it", program.display()))?;
        let infill = Infill::new(format!("http://127.0.0.1:{port}"));
        let mut peer = LlamaServer { child, infill };
        let health = format!("{}/health", peer.infill.url);
        let deadline = Instant::now() + WAIT_LIMIT;
        while peer.infill.agent.get(&health).call().is_err() {
            if let Some(status) = peer.child.try_wait()? {
                bail!("{}: ended while it loaded the model ({status})", program.display());
            }
            ensure!(Instant::now() < deadline, "{}: does not get ready", program.display());
            sleep(Duration::from_millis(200));
        }
        Ok(peer)
    }
}

impl Drop for LlamaServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
