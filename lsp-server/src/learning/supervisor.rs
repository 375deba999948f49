//! Runs the learner: freezes batches, watches the child, checks what it
//! proposes, swaps it in. The learner may crash, hang or lie; it costs one
//! update and never a completion.

use crate::adapters::registry::{Entry, Registry};
use crate::app::Daemon;
use crate::learning::preemption::Leash;
use crate::learning::resources::Machine;
use crate::report::status::{LearnerState, StatusLine};
use anyhow::{Context, Result, bail, ensure};
use completion::limits::TOKENS_MAX;
use feedback::episode::Batch;
use feedback::job::{Base, Cancel, JOB_FORMAT, Job, LearnerLine, Phase, Report};
use feedback::reward;
use models::adapter::Adapter;
use models::file::sha256;
use models::gguf::Gguf;
use serde::Serialize;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep_until, timeout};

/// Labelled episodes one job may hold: what waited while the last one ran.
const MAX_JOB_EPISODES: usize = 64;

/// A learner that says nothing for this long has hung. Its slowest silent step
/// is one episode of a 7B model.
const SILENCE_LIMIT: Duration = Duration::from_secs(300);

/// Time a learner that closed its output gets to say how it ended.
const EXIT_LIMIT: Duration = Duration::from_secs(5);

/// An idle learner keeps the base in memory this long for the next job.
const WARM: Duration = Duration::from_secs(60);

/// A failed update is tried again after this, doubled at every further failure.
const FIRST_BACKOFF: Duration = Duration::from_secs(5);
const MAX_BACKOFF: Duration = Duration::from_secs(300);

/// While the machine cannot spare what an update needs, it is asked this often.
const HELD_BACK: Duration = Duration::from_secs(10);

/// Whether a running update is still wanted is looked at this often.
const LOOK: Duration = Duration::from_millis(500);

/// The same batch is tried this often; then it is set aside (its events stay).
const ATTEMPTS: u32 = 3;

/// Longest line the learner may write, in bytes.
const LINE_LIMIT: usize = 4 * 1024 * 1024;

const _: () = assert!(TOKENS_MAX * 1024 < LINE_LIMIT);

/// How a learner is started.
pub struct Program {
    pub path: PathBuf,
    /// Where it shares prompts with others (rehearsal).
    pub prompt_shelf: Option<PathBuf>,
}

pub struct Supervisor {
    daemon: Arc<Daemon>,
    program: Program,
    leash: Arc<Leash>,
    child: Option<Learner>,
    failures: u32,
    next_job: u64,
    /// Learning was not paused when the running update began: a user may ask for
    /// one update of a learner that is.
    was_learning: bool,
}

/// Asks for an update with whatever labels wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// Enough labels wait.
    Batch,
    /// The user asked: no minimum, no backoff.
    Now,
}

struct Learner {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    /// What was read of the line that is next.
    line: Vec<u8>,
    leash: Arc<Leash>,
}

/// An update that was given up though nothing failed.
#[derive(Debug, thiserror::Error)]
#[error("the update was given up: {0}")]
struct GivenUp(String);

impl Supervisor {
    pub fn new(daemon: Arc<Daemon>, program: Program, leash: Arc<Leash>) -> Supervisor {
        Supervisor {
            daemon,
            program,
            leash,
            child: None,
            failures: 0,
            next_job: 1,
            was_learning: false,
        }
    }

    pub async fn run(mut self, mut now: tokio::sync::mpsc::Receiver<()>) {
        let mut not_before = Instant::now();
        loop {
            let trigger = tokio::select! {
                asked = now.recv() => match asked {
                    Some(()) => Trigger::Now,
                    None => return,
                },
                () = ready(&self.daemon, not_before) => Trigger::Batch,
                () = tokio::time::sleep(WARM), if self.child.is_some() => {
                    self.child = None;
                    continue;
                }
            };
            if trigger == Trigger::Batch && !self.daemon.update_is_due() {
                continue;
            }
            if trigger == Trigger::Batch
                && let Some(reason) = self.forbidden().await
            {
                self.daemon.learner.lock().held_back = Some(reason);
                not_before = Instant::now() + HELD_BACK;
                continue;
            }
            self.daemon.learner.lock().held_back = None;
            let most = MAX_JOB_EPISODES.max(self.daemon.config().learning.batch_episodes);
            // First, so that nobody sees neither the labels waiting nor the update.
            self.daemon.learner.lock().state = LearnerState::Training;
            let Some(batch) = self.daemon.take_batch(most) else {
                self.rest(LearnerState::Idle);
                continue;
            };
            match self.update(&batch, trigger).await {
                Ok(()) => {
                    self.failures = 0;
                    self.daemon.learned(batch);
                }
                Err(error) if error.is::<GivenUp>() => {
                    tracing::info!("{error}");
                    self.daemon.return_batch(batch);
                    self.rest(LearnerState::Idle);
                    self.daemon.show_ready();
                }
                Err(error) => {
                    let wait = self.failed(batch, &error);
                    not_before = Instant::now() + wait;
                }
            }
        }
    }

    /// Notes a failure and answers how long to wait before the next attempt.
    fn failed(&mut self, batch: Batch, error: &anyhow::Error) -> Duration {
        self.child = None;
        self.failures += 1;
        let mut reason = format!("{error:#}");
        if self.failures.is_multiple_of(ATTEMPTS) {
            let count = batch.episodes.len();
            reason = format!(
                "{reason}; {count} label(s) set aside after {ATTEMPTS} attempts, until the \
                 daemon starts again"
            );
        } else {
            self.daemon.return_batch(batch);
        }
        tracing::warn!("update failed: {reason}");
        let line = StatusLine::warning(format!("learning failed: {reason}"));
        self.daemon.status_line.send_replace(line);
        self.daemon.learner.lock().last_error = Some(reason);
        self.rest(LearnerState::Backoff);
        let doublings = (self.failures - 1).min(16);
        FIRST_BACKOFF.saturating_mul(1 << doublings).min(MAX_BACKOFF)
    }

    fn rest(&self, state: LearnerState) {
        let state = if self.daemon.is_learning() { state } else { LearnerState::Off };
        let mut learner = self.daemon.learner.lock();
        learner.state = state;
        learner.progress = None;
    }

    /// Why no update may start by itself now.
    async fn forbidden(&self) -> Option<String> {
        let machine = machine().await?;
        let bytes = std::fs::metadata(&self.daemon.model.path).map_or(0, |model| model.len());
        // A warm learner has most of it already.
        let bytes = if self.child.is_some() { 0 } else { bytes };
        machine.forbids(&self.daemon.config().learning, bytes)
    }

    /// Why the running update is not wanted any more.
    async fn unwanted(&self, job: &Job, batch: &Batch, trigger: Trigger) -> Option<String> {
        let daemon = &self.daemon;
        let parent = job.parent.as_ref().map_or(0, |parent| parent.version);
        if !daemon.is_current(batch) {
            return Some("a file was forgotten".into());
        }
        let head = daemon.registry.lock().head();
        if head != parent {
            return Some(format!("learning goes on from v{head}, no longer from v{parent}"));
        }
        if self.was_learning && !daemon.is_learning() {
            return Some("learning was paused".into());
        }
        if trigger == Trigger::Now {
            return None;
        }
        machine().await?.ends(&daemon.config().learning)
    }

    /// One update, from frozen batch to served adapter.
    async fn update(&mut self, batch: &Batch, trigger: Trigger) -> Result<()> {
        self.was_learning = self.daemon.is_learning();
        self.daemon.status_line.send_replace(StatusLine::learning());
        let limit_mb = machine()
            .await
            .map_or(0, |machine| machine.learner_limit_mb(&self.daemon.config().learning));
        let job = self.job(batch, limit_mb);
        let report = self.train(&job, batch, trigger).await?;
        self.install(&job, batch, report).await?;
        self.daemon.learner.lock().last_error = None;
        self.rest(LearnerState::Idle);
        self.daemon.show_ready();
        Ok(())
    }

    fn job(&mut self, batch: &Batch, memory_limit_mb: u64) -> Job {
        let registry = self.daemon.registry.lock();
        let candidate = registry.next_version();
        let id = format!("v{candidate}-{}", self.next_job);
        self.next_job += 1;
        Job {
            format: JOB_FORMAT,
            id,
            base: Base {
                path: self.daemon.model.path.clone(),
                sha256: self.daemon.model.sha256.clone(),
            },
            parent: registry.parent(),
            candidate,
            adapter_out: registry.adapter_file(candidate),
            optimizer_out: registry.optimizer_file(candidate),
            seed: u64::from(candidate),
            reward: reward::CURRENT,
            hyper: self.daemon.config().learning.ppo.clone(),
            episodes: self.daemon.to_learn(batch.episodes.clone()),
            replay: self.daemon.to_learn(self.daemon.replay()),
            memory_limit_mb,
        }
    }

    /// Sends the job and reads lines until it is done, or until it is not wanted
    /// any more and the learner has said that it stopped.
    async fn train(&mut self, job: &Job, batch: &Batch, trigger: Trigger) -> Result<Report> {
        let mut learner = match self.child.take() {
            Some(learner) => learner,
            None => Learner::start(&self.program, self.leash.clone())?,
        };
        let named = || self.program.path.display().to_string();
        learner.send(job).await.with_context(named)?;
        let mut given_up = None;
        let report = loop {
            let line = tokio::select! {
                line = learner.next_line() => line.with_context(named)?,
                reason = self.until_unwanted(job, batch, trigger), if given_up.is_none() => {
                    given_up = Some(reason);
                    learner.cancel(job).await.with_context(named)?;
                    continue;
                }
            };
            match line {
                LearnerLine::Ready { format, version } => ensure!(
                    format == JOB_FORMAT,
                    "{}: version {version} speaks job format {format}, this daemon {JOB_FORMAT}; \
                     install both from one release",
                    self.program.path.display()
                ),
                LearnerLine::Progress(progress) => {
                    let phase = match progress.phase {
                        Phase::Load => "reading the base model",
                        Phase::Prompt => "computing prompts",
                        Phase::Train => "training",
                        Phase::Evaluate => "evaluating",
                    };
                    let text = format!("{phase} {}/{}", progress.done, progress.total);
                    self.daemon.learner.lock().progress = Some(text);
                }
                LearnerLine::Done(report) if report.job == job.id => break *report,
                LearnerLine::Failed { job: id, error } if id == job.id || id.is_empty() => {
                    bail!("the learner gave up: {error}")
                }
                LearnerLine::Cancelled { job: id } if id == job.id => {
                    learner.leash.let_go();
                    self.child = Some(learner);
                    return Err(GivenUp(given_up.unwrap_or_default()).into());
                }
                // The end of a job this daemon has already given up on.
                LearnerLine::Done(_)
                | LearnerLine::Failed { .. }
                | LearnerLine::Cancelled { .. } => {}
            }
        };
        learner.leash.let_go();
        self.child = Some(learner);
        Ok(report)
    }

    async fn until_unwanted(&self, job: &Job, batch: &Batch, trigger: Trigger) -> String {
        loop {
            tokio::time::sleep(LOOK).await;
            if let Some(reason) = self.unwanted(job, batch, trigger).await {
                return reason;
            }
        }
    }

    /// The learner proposes, the daemon disposes: nothing in the report is
    /// believed that the file itself can answer.
    async fn install(&self, job: &Job, batch: &Batch, report: Report) -> Result<()> {
        let installed = self.check_and_promote(job, batch, report).await;
        if installed.is_err() {
            // It may have learned from what was forgotten meanwhile, and the next
            // candidate has its number.
            let _ = std::fs::remove_file(&job.adapter_out);
            let _ = std::fs::remove_file(&job.optimizer_out);
        }
        installed
    }

    async fn check_and_promote(&self, job: &Job, batch: &Batch, report: Report) -> Result<()> {
        let daemon = &self.daemon;
        let path = job.adapter_out.clone();
        let (model, expected) = (daemon.model.clone(), report.adapter_sha256.clone());
        let checked = path.clone();
        let found = tokio::task::spawn_blocking(move || -> Result<String> {
            let found = sha256(&checked)
                .with_context(|| format!("{}: no candidate there", checked.display()))?;
            ensure!(found == expected, "{}: not what the learner said it wrote", checked.display());
            let adapter = Adapter::read(&checked)?;
            adapter.check_base(&Gguf::open(&model.path)?, &model.sha256)?;
            Ok(found)
        })
        .await??;

        let parent = job.parent.as_ref().map_or(0, |parent| parent.version);
        let mut offers = batch.offers();
        offers.extend(job.replay.iter().map(|episode| episode.completion.id.clone()));
        let entry = Entry {
            version: job.candidate,
            parent,
            sha256: found,
            base_sha256: daemon.model.sha256.clone(),
            created_at_ms: daemon.clock.unix_ms(),
            labels: batch.span(),
            offers: Some(offers),
            forgotten: false,
            verdict: None,
            report,
        };
        self.promote(entry, batch).await
    }

    async fn promote(&self, entry: Entry, batch: &Batch) -> Result<()> {
        let (version, parent, took_ms) = (entry.version, entry.parent, entry.report.total_ms);
        let daemon = self.daemon.clone();
        let still_wanted = move |registry: &Registry| {
            ensure!(
                daemon.is_current(batch),
                "a file was forgotten while the update learned; what is left is learned from again"
            );
            // A user who rolled back while it learned does not want its child.
            ensure!(
                registry.head() == parent,
                "learning goes on from v{}, while the update learned from v{parent}",
                registry.head()
            );
            Ok(())
        };
        let mut fate = "serves";
        if self.daemon.config().learning.trial {
            fate = match self.daemon.try_out(entry, still_wanted).await? {
                None => "is on trial",
                Some(reason) => {
                    tracing::warn!("adapter v{version} is not tried: {reason}");
                    "is given up"
                }
            };
        } else {
            let swapped = self.daemon.swap(version, move |registry| {
                still_wanted(registry)?;
                registry.promote(entry)
            });
            swapped.await?;
        }
        let mut learner = self.daemon.learner.lock();
        learner.updates += 1;
        learner.last_update_ms = Some(took_ms);
        tracing::info!("adapter v{version} {fate}; update took {took_ms} ms");
        Ok(())
    }
}

/// What the machine can spare; `None` where that cannot be asked.
async fn machine() -> Option<Machine> {
    tokio::task::spawn_blocking(Machine::now).await.ok()
}

/// Resolves when an automatic update may start.
async fn ready(daemon: &Daemon, not_before: Instant) {
    loop {
        let rung = daemon.learn.notified();
        if daemon.update_is_due() {
            sleep_until(not_before).await;
            return;
        }
        rung.await;
    }
}

impl Learner {
    fn start(program: &Program, leash: Arc<Leash>) -> Result<Learner> {
        let mut command = Command::new(&program.path);
        if let Some(folder) = &program.prompt_shelf {
            command.arg("--prompt-shelf").arg(folder);
        }
        // The leash tells why.
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{}: cannot be started", program.path.display()))?;
        let stdin = child.stdin.take().context("the learner has no stdin")?;
        let stdout = child.stdout.take().context("the learner has no stdout")?;
        Ok(Learner { child, stdin, stdout: BufReader::new(stdout), line: vec![], leash })
    }

    async fn send(&mut self, job: &Job) -> Result<()> {
        if let Some(process) = self.child.id() {
            self.leash.take(process);
        }
        self.send_line(job).await
    }

    async fn cancel(&mut self, job: &Job) -> Result<()> {
        self.send_line(&Cancel { cancel: job.id.clone() }).await
    }

    async fn send_line(&mut self, line: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_vec(line)?;
        line.push(b'\n');
        // A learner that does not read blocks us once the pipe is full.
        let sending = async {
            self.stdin.write_all(&line).await?;
            self.stdin.flush().await
        };
        let sent = timeout(SILENCE_LIMIT, sending).await;
        sent.map_err(|_| silent())?.context("the learner takes no job")
    }

    /// The next line. May be given up between two polls without losing a byte.
    async fn next_line(&mut self) -> Result<LearnerLine> {
        loop {
            let stopped = self.leash.stopped();
            match timeout(SILENCE_LIMIT, self.read_line()).await {
                Ok(read) => {
                    read?;
                    break;
                }
                // Time it was stopped is no silence of its own.
                Err(_) if self.leash.stopped() > stopped => {}
                Err(_) => return Err(silent()),
            }
        }
        let line = std::mem::take(&mut self.line);
        ensure!(line.len() <= LINE_LIMIT, "the learner wrote a line over {LINE_LIMIT} bytes");
        if !line.ends_with(b"\n") {
            self.leash.let_go();
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
    /// The child is killed next, and its number is then anybody's.
    fn drop(&mut self) {
        self.leash.let_go();
    }
}

fn silent() -> anyhow::Error {
    anyhow::anyhow!("the learner was silent for {SILENCE_LIMIT:?}")
}
