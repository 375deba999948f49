//! A program that does one unit of work for each line that it gets. It answers with a line of
//! JSON that holds the time.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub struct Peer {
    name: String,
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Peer {
    pub fn start(name: &str, command: &mut Command) -> Result<Peer> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{name}: cannot start {:?}", command.get_program()))?;
        let stdin = child.stdin.take().with_context(|| format!("{name} has no stdin"))?;
        let stdout = child.stdout.take().with_context(|| format!("{name} has no stdout"))?;
        Ok(Peer { name: name.to_owned(), child, stdin, stdout: BufReader::new(stdout) })
    }

    pub fn ask(&mut self, line: &str) -> Result<Value> {
        writeln!(self.stdin, "{line}").with_context(|| format!("cannot write to {}", self.name))?;
        let mut answer = String::new();
        self.stdout
            .read_line(&mut answer)
            .with_context(|| format!("cannot read from {}", self.name))?;
        if answer.is_empty() {
            bail!("{} ended at {line:?}; see its messages above", self.name);
        }
        serde_json::from_str(&answer)
            .with_context(|| format!("{} has not answered with JSON", self.name))
    }

    /// A number of the answer to a line.
    pub fn number(&mut self, line: &str, key: &str) -> Result<f64> {
        let answer = self.ask(line)?;
        answer[key].as_f64().with_context(|| format!("the answer of {} has no {key}", self.name))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
