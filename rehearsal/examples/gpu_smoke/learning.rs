//! What an update costs: its time on the GPU and on the CPU of the same machine, the swap behind
//! it, and what completions lose while it runs.

use crate::card::used_mib;
use crate::served::{Served, WITHOUT_GPU, lines, typed};
use crate::{Bench, quantile};
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Labels of an update.
const LABELS: usize = 16;

/// The longest wait for an update.
const UPDATE_LIMIT: Duration = Duration::from_secs(120);

/// Lines that are above the first one that is asked in.
const LINES_ABOVE: usize = 80;

/// Requests of each kind, with an update running and without.
const REQUESTS: usize = 120;

/// The pause of a typist between two requests.
const PAUSE: Duration = Duration::from_millis(100);

/// Types half of the next line, asks, and accepts or rejects the offer in turn.
struct Typist<'a> {
    served: &'a Served,
    lines: Vec<String>,
    turns: usize,
}

impl Typist<'_> {
    fn turn(&mut self) -> Result<f64> {
        let typed_lines = self.lines.len() - LINES_ABOVE;
        let (document, line) = (self.turns / typed_lines, self.turns % typed_lines);
        let uri = format!("file:///typed{document}.rs");
        if line == 0 {
            self.served.client.open(&uri, "rust", "")?;
        }
        let text = typed(&self.lines, line, LINES_ABOVE + line)?;
        let (ms, item) = self.served.ask(&uri, &text)?;
        if let Some(item) = item {
            let client = &self.served.client;
            client.did_show(&item)?;
            if self.turns.is_multiple_of(2) {
                client.change(&uri, None, &format!("{text}{}", item.insert_text))?;
                client.accept(&item.id)?;
            } else {
                client.did_reject(&item.id, "esc")?;
            }
        }
        self.turns += 1;
        Ok(ms)
    }

    /// Types until `labels` wait for an update.
    fn label(&mut self, labels: usize) -> Result<()> {
        for _ in 0..10 * labels {
            self.turn()?;
            if self.served.status()?["learner"]["waiting"].as_u64() >= Some(labels as u64) {
                return Ok(());
            }
        }
        bail!("{} requests gave no {labels} labels", 10 * labels)
    }
}

/// A shell script in the place of the learner, which keeps what the daemon sends.
fn write_recorder(path: &Path, learner: &Path, jobs: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let script =
        format!("#!/bin/sh\ntee -a '{}' | '{}' \"$@\"\n", jobs.display(), learner.display());
    std::fs::write(path, script)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// One update by the daemon, and the same job again by the learner alone, on the GPU and on the
/// CPU.
pub fn measure(bench: &Bench, shape: &str) -> Result<Value> {
    let folder = tempfile::tempdir_in(&bench.work)?;
    let (recorder, jobs) = (folder.path().join("learner"), folder.path().join("jobs"));
    write_recorder(&recorder, &bench.bin.join("hone-learner"), &jobs)?;
    let environment = [("HONE_LEARNER", recorder.into())];
    let settings = format!("lab.batch_episodes = {}\n", 4 * LABELS);
    let served = Served::start(bench, &bench.lines_model(shape), &settings, &environment)?;
    let mut typist = Typist { served: &served, lines: lines(), turns: 0 };
    typist.label(LABELS)?;
    served.client.learn()?;
    let by_daemon = wait_for_update(&served)?;
    drop(served);
    let jobs = std::fs::read_to_string(&jobs).context("the daemon has sent no job")?;
    let job: Value = serde_json::from_str(jobs.lines().next().context("no job was sent")?)?;
    let episodes = job["episodes"].as_array().context("a job without episodes")?;
    let tokens = |key: &str| -> usize {
        episodes.iter().filter_map(|e| e["completion"][key].as_array()).map(Vec::len).sum()
    };
    Ok(json!({
        "labels": episodes.len(),
        "prompt_tokens": tokens("prompt"),
        "answer_tokens": tokens("tokens"),
        "by_daemon": by_daemon,
        "gpu": run_job(bench, folder.path(), &job, true, 2)?,
        "cpu": run_job(bench, folder.path(), &job, false, 1)?,
    }))
}

fn wait_for_update(served: &Served) -> Result<Value> {
    let started = Instant::now();
    loop {
        let status = served.status()?;
        let learner = &status["learner"];
        ensure!(learner["last_error"].is_null(), "the update failed: {}", learner["last_error"]);
        if learner["updates"].as_u64() > Some(0) && learner["state"] != "training" {
            return Ok(json!({
                "wall_s": started.elapsed().as_secs_f64(),
                "update_ms": learner["last_update_ms"],
                "adapter": status["adapter"]["active"],
                "swap_ms": status["adapter"]["last_swap_ms"],
            }));
        }
        ensure!(started.elapsed() < UPDATE_LIMIT, "no update within {UPDATE_LIMIT:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Gives the job to one learner `times` times. The last time has the model in memory, if it is not
/// the first.
fn run_job(bench: &Bench, folder: &Path, job: &Value, on_gpu: bool, times: usize) -> Result<Value> {
    let mut program = bench.program("hone-learner");
    if !on_gpu {
        program.env(WITHOUT_GPU.0, WITHOUT_GPU.1);
    }
    let before = used_mib();
    let mut learner = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut stdin = learner.stdin.take().context("no stdin")?;
    let mut answers = BufReader::new(learner.stdout.take().context("no stdout")?).lines();
    let mut runs = vec![];
    let mut vram = None;
    for run in 0..times {
        let mut job = job.clone();
        job["id"] = json!(format!("smoke-{run}"));
        job["adapter_out"] = json!(folder.join(format!("{on_gpu}-{run}.gguf")));
        job["optimizer_out"] = json!(folder.join(format!("{on_gpu}-{run}.opt")));
        let started = Instant::now();
        writeln!(stdin, "{job}")?;
        let report = loop {
            let line = answers.next().context("the learner has ended")??;
            let line: Value = serde_json::from_str(&line)?;
            match line["line"].as_str() {
                Some("done") => break line,
                Some("failed" | "cancelled") => bail!("the job failed: {}", line["error"]),
                _ => vram = vram.max(used_mib().zip(before).map(|(now, then)| now - then.min(now))),
            }
        };
        let mut kept = json!({"wall_s": started.elapsed().as_secs_f64()});
        for key in [
            "load_ms",
            "prompt_ms",
            "train_ms",
            "total_ms",
            "steps",
            "episodes_used",
            "episodes_dropped",
            "tokens_trained",
            "demonstrations",
            "mismatch",
            "peak_memory_mb",
        ] {
            kept[key] = report[key].clone();
        }
        runs.push(kept);
    }
    drop(stdin);
    learner.wait()?;
    Ok(json!({"runs": runs, "vram_mib": vram}))
}

/// Requests while updates run, next to requests while learning is paused.
pub fn during_updates(bench: &Bench, shape: &str) -> Result<Value> {
    let settings = format!("lab.batch_episodes = {LABELS}\n");
    let served = Served::start(bench, &bench.lines_model(shape), &settings, &[])?;
    served.hone(&["pause", "learning"])?;
    let mut typist = Typist { served: &served, lines: lines(), turns: 0 };
    let requests = bench.count(REQUESTS);
    let (mut alone, mut during) = (vec![], vec![]);
    for _ in 0..3 {
        typist.turn()?;
    }
    for _ in 0..requests {
        alone.push(typist.turn()?);
        std::thread::sleep(PAUSE);
    }
    served.hone(&["resume", "learning"])?;
    let since = Instant::now();
    while during.len() < requests && since.elapsed() < UPDATE_LIMIT / 2 {
        let trains = is_training(&served)?;
        let ms = typist.turn()?;
        if trains && is_training(&served)? {
            during.push(ms);
        }
        std::thread::sleep(PAUSE);
    }
    ensure!(during.len() > 10, "only {} requests ran during an update", during.len());
    let side = |ms: &[f64]| {
        json!({
            "requests": ms.len(),
            "p50_ms": quantile(ms, 0.5),
            "p95_ms": quantile(ms, 0.95),
        })
    };
    let added = |q| Some(quantile(&during, q)? / quantile(&alone, q)? - 1.0);
    Ok(json!({
        "alone": side(&alone),
        "beside": side(&during),
        "added_p50": added(0.5),
        "added_p95": added(0.95),
        "updates": served.status()?["learner"]["updates"],
    }))
}

fn is_training(served: &Served) -> Result<bool> {
    let status = served.status()?;
    let error = &status["learner"]["last_error"];
    ensure!(error.is_null(), "an update failed: {error}");
    Ok(status["learner"]["state"] == "training")
}
