//! The learner's process. It is started on demand, gets and sends lines of JSON, and is stopped
//! with its parent.
#![allow(clippy::disallowed_types, reason = "it starts hone-learner, from its own folder")]

use crate::preemption::LearnerPreemption;
use anyhow::{Context, Result, anyhow, bail, ensure};
use completion::limits::TOKENS_MAX;
use feedback::job::{Cancel, JOB_FORMAT, Job, JobProgress, LearnerLine, UpdateReport};
use host::platform::process::{EndWithParent, prepare_worker};
use serde::Serialize;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep_until, timeout};

/// A learner whose job does not advance for this long hangs. The slowest step without a line is one
/// episode of a 7B model.
const HANG_LIMIT: Duration = Duration::from_secs(300);

/// The time in which a learner must end a job that was cancelled. It asks between two episodes.
const CANCEL_LIMIT: Duration = Duration::from_secs(60);

const _: () = assert!(CANCEL_LIMIT.as_secs() < HANG_LIMIT.as_secs());

/// The time in which a learner that has closed its output must end.
const EXIT_LIMIT: Duration = Duration::from_secs(5);

/// The longest line that the learner may write, in bytes.
const LINE_LIMIT: usize = 4 * 1024 * 1024;

const _: () = assert!(TOKENS_MAX * 1024 < LINE_LIMIT);

/// The learner's program and options.
pub struct LearnerProgram {
    pub path: PathBuf,
    /// The folder in which rehearsals share prompts.
    pub prompt_cache: Option<PathBuf>,
}

/// The end of a job.
pub enum Ended<R> {
    Done(Box<UpdateReport>),
    /// The reason, unless the learner has cancelled it by itself.
    Cancelled(Option<R>),
}

pub struct Learner {
    /// The program, as messages name it.
    name: String,
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    /// The part of the next line that has been read.
    line: Vec<u8>,
    preemption: Arc<LearnerPreemption>,
    /// [`HANG_LIMIT`] and [`CANCEL_LIMIT`], which tests shorten.
    limits: (Duration, Duration),
    _end_with_parent: EndWithParent,
}

impl Learner {
    /// `handed_prompts` is the folder of what the engine has computed of prompts.
    pub fn start(
        program: &LearnerProgram,
        handed_prompts: Option<&Path>,
        preemption: Arc<LearnerPreemption>,
    ) -> Result<Learner> {
        let mut command = Command::new(&program.path);
        if let Some(folder) = &program.prompt_cache {
            command.arg("--prompt-cache").arg(folder);
        }
        if let Some(folder) = handed_prompts {
            command.arg("--handed-prompts").arg(folder);
        }
        prepare_worker(command.as_std_mut());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{}: cannot be started", program.path.display()))?;
        let end =
            EndWithParent::of(&child).context("the learner cannot be tied to this process")?;
        let stdin = child.stdin.take().context("the learner has no stdin")?;
        let stdout = child.stdout.take().context("the learner has no stdout")?;
        let stdout = BufReader::new(stdout);
        let name = program.path.display().to_string();
        Ok(Learner {
            name,
            child,
            stdin,
            stdout,
            line: vec![],
            preemption,
            limits: (HANG_LIMIT, CANCEL_LIMIT),
            _end_with_parent: end,
        })
    }

    /// Runs a job to its end. `progress` gets what the learner reports meanwhile. Once `unwanted`
    /// resolves, the job is cancelled.
    ///
    /// # Errors
    /// The job failed, or the learner died, hangs or is of another version. It can run no other job
    /// then.
    pub async fn run<R>(
        &mut self,
        job: &Job,
        mut progress: impl FnMut(&JobProgress),
        unwanted: impl Future<Output = R>,
    ) -> Result<Ended<R>> {
        let name = self.name.clone();
        let named = || name.clone();
        let stopped_before = self.preemption.stopped();
        self.send(job).await.with_context(named)?;
        let mut unwanted = pin!(unwanted);
        let mut reason = None;
        let (hang_limit, cancel_limit) = self.limits;
        let mut patience = Patience::new(self.preemption.clone(), hang_limit);
        let mut advance = None;
        let ended = loop {
            let line = tokio::select! {
                line = self.next_line() => line.with_context(named)?,
                why = &mut unwanted, if reason.is_none() => {
                    reason = Some(why);
                    self.cancel(job).await.with_context(named)?;
                    patience = Patience::new(self.preemption.clone(), cancel_limit);
                    continue;
                }
                () = patience.end() => {
                    let error = match reason.is_some() {
                        true => anyhow!("the learner did not stop {CANCEL_LIMIT:?} after it was \
                            told to"),
                        false => hangs(),
                    };
                    return Err(error).with_context(named);
                }
            };
            match line {
                LearnerLine::Ready { format, version } => ensure!(
                    format == JOB_FORMAT,
                    "{name}: version {version} speaks job format {format}, this daemon \
                     {JOB_FORMAT}; install both from one release"
                ),
                LearnerLine::Progress(at) => {
                    let now = Some((at.phase, at.done));
                    if std::mem::replace(&mut advance, now) != now && reason.is_none() {
                        patience = Patience::new(self.preemption.clone(), hang_limit);
                    }
                    progress(&at);
                }
                LearnerLine::Done(mut report) if report.job == job.id => {
                    let stopped = self.preemption.stopped().saturating_sub(stopped_before);
                    report.phases.stopped = stopped.as_millis() as u64;
                    break Ended::Done(report);
                }
                LearnerLine::Failed { job: id, error } if id == job.id || id.is_empty() => {
                    bail!("the learner gave up: {error}")
                }
                LearnerLine::Cancelled { job: id } if id == job.id => {
                    break Ended::Cancelled(reason);
                }
                // It is about an earlier job, which was given up already.
                LearnerLine::Done(_)
                | LearnerLine::Failed { .. }
                | LearnerLine::Cancelled { .. } => {}
            }
        };
        self.rest();
        Ok(ended)
    }

    async fn send(&mut self, job: &Job) -> Result<()> {
        if let Some(process) = self.child.id() {
            self.preemption.attach(process);
        }
        self.send_line(job).await
    }

    async fn cancel(&mut self, job: &Job) -> Result<()> {
        self.send_line(&Cancel { cancel: job.id.clone() }).await
    }

    /// Notes that the job is over, so the learner may run while the engine computes.
    fn rest(&self) {
        self.preemption.detach();
    }

    async fn send_line(&mut self, line: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_vec(line)?;
        line.push(b'\n');
        // A learner that does not read blocks the daemon once the pipe is full.
        let sending = async {
            self.stdin.write_all(&line).await?;
            self.stdin.flush().await
        };
        let sent = timeout(HANG_LIMIT, sending).await;
        sent.map_err(|_| hangs())?.context("the learner takes no job")
    }

    /// Reads the next line. The future can be dropped at any await without losing a byte.
    async fn next_line(&mut self) -> Result<LearnerLine> {
        self.read_line().await?;
        let line = std::mem::take(&mut self.line);
        ensure!(line.len() <= LINE_LIMIT, "the learner wrote a line over {LINE_LIMIT} bytes");
        if !line.ends_with(b"\n") {
            self.preemption.detach();
            let how = match timeout(EXIT_LIMIT, self.child.wait()).await {
                Ok(Ok(status)) => status.to_string(),
                _ => "it closed its output".into(),
            };
            bail!("the learner ended before its job was done ({how})");
        }
        serde_json::from_slice(&line).context("the learner wrote something that is no report")
    }

    async fn read_line(&mut self) -> Result<()> {
        let room = (LINE_LIMIT + 1).saturating_sub(self.line.len()) as u64;
        let mut bounded = (&mut self.stdout).take(room);
        bounded
            .read_until(b'\n', &mut self.line)
            .await
            .map(|_| ())
            .context("the learner's output cannot be read")
    }
}

/// The time that a learner is given. That for which it was stopped does not count.
struct Patience {
    preemption: Arc<LearnerPreemption>,
    until: Instant,
    stopped: Duration,
}

impl Patience {
    fn new(preemption: Arc<LearnerPreemption>, limit: Duration) -> Patience {
        let stopped = preemption.stopped();
        Patience { preemption, until: Instant::now() + limit, stopped }
    }

    /// Resolves once the time is over. The future can be dropped at any await.
    async fn end(&mut self) {
        loop {
            sleep_until(self.until).await;
            let stopped = self.preemption.stopped();
            if stopped <= self.stopped {
                return;
            }
            self.until += stopped - self.stopped;
            self.stopped = stopped;
        }
    }
}

impl Drop for Learner {
    /// The child is killed next, and then another process may get its id.
    fn drop(&mut self) {
        self.preemption.detach();
    }
}

fn hangs() -> anyhow::Error {
    anyhow!("the job of the learner has not advanced for {HANG_LIMIT:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedback::job::{Base, Hyper, Train};
    use std::future::{pending, ready};
    use std::os::unix::fs::PermissionsExt;

    /// A learner that writes for ever that it has come as far as before.
    fn chatty(limits: (Duration, Duration)) -> (tempfile::TempDir, Learner) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("learner.sh");
        let line = r#"{"line":"progress","job":"j","phase":"train","done":1,"total":2}"#;
        let script = format!("#!/bin/sh\nread -r job\nwhile echo '{line}'; do :; done\n");
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
        let program = LearnerProgram { path, prompt_cache: None };
        let mut learner = Learner::start(&program, None, Arc::default()).unwrap();
        learner.limits = limits;
        (folder, learner)
    }

    fn job() -> Job {
        Job {
            format: JOB_FORMAT,
            id: "j".into(),
            base: Base { path: "m.gguf".into(), sha256: String::new() },
            parent: None,
            train: Train::Private,
            candidate: 1,
            adapter_out: "a".into(),
            optimizer_out: "o".into(),
            seed: 0,
            hyper: Hyper::default(),
            episodes: vec![],
            memory_limit_mb: 0,
        }
    }

    /// Every line counted as a sign of life, so neither a cancel nor a hang ended such a learner.
    #[tokio::test]
    async fn a_learner_that_only_says_that_it_lives_is_given_up() {
        let (_folder, mut learner) = chatty((HANG_LIMIT, Duration::ZERO));
        let cancelled = learner.run(&job(), |_| (), ready(())).await.err().unwrap();
        assert!(format!("{cancelled:#}").contains("did not stop"), "{cancelled:#}");

        let (_folder, mut learner) = chatty((Duration::ZERO, CANCEL_LIMIT));
        let hanging = learner.run(&job(), |_| (), pending::<()>()).await.err().unwrap();
        assert!(format!("{hanging:#}").contains("has not advanced"), "{hanging:#}");
    }
}
