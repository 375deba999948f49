//! A llama-server as the other side.

use crate::Answer;
use crate::trace::Trace;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The context that both sides see. These are Hone's defaults.
const PREFIX_CHARS: usize = 1500;
const SUFFIX_CHARS: usize = 500;

/// Tokens that both sides may generate. This is Hone's default.
const MAX_TOKENS: usize = 32;

/// Longest wait until it has loaded its model, and for each of its answers.
const WAIT_LIMIT: Duration = Duration::from_secs(120);

pub struct LlamaServer {
    child: Child,
    agent: ureq::Agent,
    url: String,
    /// Start of the context. It stays the same for a trace, as in a good client.
    from: usize,
    pub prompt_ms: Vec<f64>,
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
        let agent = ureq::Agent::config_builder().timeout_global(Some(WAIT_LIMIT)).build().into();
        let url = format!("http://127.0.0.1:{port}");
        let mut peer = LlamaServer { child, agent, url, from: 0, prompt_ms: vec![] };
        let deadline = Instant::now() + WAIT_LIMIT;
        while peer.agent.get(format!("{}/health", peer.url)).call().is_err() {
            if let Some(status) = peer.child.try_wait()? {
                bail!("{}: ended while it loaded the model ({status})", program.display());
            }
            ensure!(Instant::now() < deadline, "{}: does not get ready", program.display());
            sleep(Duration::from_millis(200));
        }
        Ok(peer)
    }

    pub fn open(&mut self, trace: &Trace) {
        let before = trace.before(0);
        let chars = before.chars().count().saturating_sub(PREFIX_CHARS);
        let at = before.char_indices().nth(chars).map_or(0, |(at, _)| at);
        self.from =
            if chars == 0 { 0 } else { before[at..].find('\n').map_or(at, |line| at + line + 1) };
    }

    /// Asks as llama.vim and llama.vscode do, with the current line behind the middle token.
    pub fn key(&mut self, trace: &Trace, key: usize) -> Result<Answer> {
        let before = &trace.before(key)[self.from..];
        let line = before.rfind('\n').map_or(0, |at| at + 1);
        let body = json!({
            "input_prefix": &before[..line],
            "prompt": &before[line..],
            "input_suffix": trace.after().chars().take(SUFFIX_CHARS).collect::<String>(),
            "n_predict": MAX_TOKENS,
            "temperature": 0,
            "top_k": 1,
            "samplers": ["top_k"],
            "stop": ["\n"],
            "cache_prompt": true,
        });
        let body = serde_json::to_vec(&body)?;
        let started = Instant::now();
        let mut response = self
            .agent
            .post(format!("{}/infill", self.url))
            .content_type("application/json")
            .send(&body[..])?;
        let answer = response.body_mut().read_to_string()?;
        let ms = started.elapsed().as_secs_f64() * 1000.0;
        let answer: Value = serde_json::from_str(&answer)?;
        let text = answer["content"].as_str().context("the peer answered no content")?.to_owned();
        if key > 0 {
            self.prompt_ms.extend(answer["timings"]["prompt_ms"].as_f64());
        }
        Ok(Answer { ms, text })
    }
}

impl Drop for LlamaServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
