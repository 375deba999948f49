//! The learner's process. It is started on demand, gets and sends lines of JSON, and is stopped
//! with its parent.
#![allow(clippy::disallowed_types, reason = "it starts hone-learner, from its own folder")]

use crate::learning::preemption::LearnerPreemption;
use crate::platform::process::{EndWithParent, prepare_worker};
use anyhow::{Context, Result, bail, ensure};
use completion::limits::TOKENS_MAX;
use feedback::job::{Cancel, JOB_FORMAT, Job, JobProgress, LearnerLine, UpdateReport};
use serde::Serialize;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// A learner that writes nothing for this long hangs. The slowest step without a line is one
/// episode of a 7B model.
const HANG_LIMIT: Duration = Duration::from_secs(300);

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
        Ok(Learner { name, child, stdin, stdout, line: vec![], preemption, _end_with_parent: end })
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
        self.send(job).await.with_context(named)?;
        let mut unwanted = pin!(unwanted);
        let mut reason = None;
        let ended = loop {
            let line = tokio::select! {
                line = self.next_line() => line.with_context(named)?,
                why = &mut unwanted, if reason.is_none() => {
                    reason = Some(why);
                    self.cancel(job).await.with_context(named)?;
                    continue;
                }
            };
            match line {
                LearnerLine::Ready { format, version } => ensure!(
                    format == JOB_FORMAT,
                    "{name}: version {version} speaks job format {format}, this daemon \
                     {JOB_FORMAT}; install both from one release"
                ),
                LearnerLine::Progress(at) => progress(&at),
                LearnerLine::Done(report) if report.job == job.id => break Ended::Done(report),
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
        loop {
            let stopped = self.preemption.stopped();
            match timeout(HANG_LIMIT, self.read_line()).await {
                Ok(read) => {
                    read?;
                    break;
                }
                // The time for which it was stopped does not count.
                Err(_) if self.preemption.stopped() > stopped => {}
                Err(_) => return Err(hangs()),
            }
        }
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

impl Drop for Learner {
    /// The child is killed next, and then another process may get its id.
    fn drop(&mut self) {
        self.preemption.detach();
    }
}

fn hangs() -> anyhow::Error {
    anyhow::anyhow!("the learner wrote nothing for {HANG_LIMIT:?}")
}
