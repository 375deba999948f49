//! What happens where other programs hold the GPU's memory: the daemon has to say where it
//! computes, and to complete.

use crate::Bench;
use crate::card::used_mib;
use crate::served::{Served, lines, typed};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

/// What is left of the GPU's memory, in MiB: room for some layers, for none, and for nothing at
/// all.
const LEFT_MIB: [u64; 3] = [1300, 600, 50];

/// A program that holds the rest of the GPU's memory until it is dropped.
struct Filler(Child);

impl Filler {
    fn start(bench: &Bench, left_mib: u64) -> Result<Filler> {
        let mut program = bench.program("learner_gpu");
        program.args(["fill", "--leave-mib", &left_mib.to_string()]);
        let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().context("no stdout")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        if !line.starts_with("full") {
            let _ = child.wait();
            bail!("the GPU's memory could not be filled");
        }
        Ok(Filler(child))
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        if let Some(mut stdin) = self.0.stdin.take() {
            let _ = stdin.write_all(b"end\n");
        }
        let _ = self.0.wait();
    }
}

pub fn measure(bench: &Bench, shape: &str) -> Result<Value> {
    let mut report = json!({});
    for left_mib in LEFT_MIB {
        let filler = Filler::start(bench, left_mib)?;
        let used = used_mib();
        report[left_mib.to_string()] = match serve(bench, shape) {
            Ok(value) => value,
            Err(error) => json!({"failed": format!("{error:#}")}),
        };
        report[left_mib.to_string()]["used_before_mib"] = json!(used);
        drop(filler);
    }
    Ok(report)
}

fn serve(bench: &Bench, shape: &str) -> Result<Value> {
    let served = Served::start(bench, &bench.model(shape), "learning.enabled = false\n", &[])?;
    let backend = served.backend()?;
    served.client.open("file:///full.rs", "rust", "")?;
    let (ms, item) = served.ask("file:///full.rs", &typed(&lines(), 0, 60)?)?;
    Ok(json!({
        "backend": backend,
        "ready_s": served.ready_s,
        "completion_ms": ms,
        "completed": item.is_some(),
    }))
}
