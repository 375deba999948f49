//! The thread that owns the engine. Everybody else holds an [`EngineHandle`], which puts requests
//! into a bounded queue. Their abort flags are checked before any work.

mod job_queue;

use super::unloading::{Residence, Resident};
use super::{Engine, EngineError, EngineInfo, Generated, Request, ScoreRequest, Scored, Tokenizer};
use crate::continuation::{Continuation, Continued};
use completion::prompt::FimPrompt;
use feedback::event::AdapterVersion;
use job_queue::{JobQueue, Next};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel,
};
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};

/// Requests that may wait. Each request supersedes the older one of its session, which stays in the
/// queue until the engine reaches it. A held key brings hundreds while one micro-batch is computed,
/// and the last one must still fit.
const QUEUE_JOBS: usize = 1024;

/// The time between two looks at a GPU's free memory while nothing is computed.
const MEMORY_CHECK: Duration = Duration::from_secs(10);

enum Job {
    Generate {
        request: Box<Request>,
        abort: Arc<AtomicBool>,
        reply: oneshot::Sender<Result<Generated, EngineError>>,
    },
    Continue {
        request: Box<Continuation>,
        abort: Arc<AtomicBool>,
        reply: oneshot::Sender<Result<Continued, EngineError>>,
    },
    LoadAdapter {
        version: AdapterVersion,
        path: PathBuf,
        keep: Vec<AdapterVersion>,
        reply: oneshot::Sender<Result<Duration, EngineError>>,
    },
    Score(ScoreJob),
    PromptKv(KvJob),
    Warm(Box<FimPrompt>),
    Ahead(Vec<Request>),
    Unload,
}

impl Job {
    /// Returns true if it comes of what the user does in an editor.
    fn is_key(&self) -> bool {
        matches!(self, Job::Generate { .. } | Job::Warm(_) | Job::Ahead(_))
    }

    fn work(&self) -> Work {
        match self {
            Job::Generate { .. } | Job::Continue { .. } => Work::Answering,
            Job::Warm(_) | Job::PromptKv(_) => Work::ReadingPrompt,
            Job::Ahead(_) => Work::AnsweringAhead,
            Job::Score(_) => Work::Scoring,
            Job::LoadAdapter { .. } => Work::LoadingAdapter,
            Job::Unload => Work::Nothing,
        }
    }
}

type KvJob = (Vec<u32>, oneshot::Sender<Option<Vec<u8>>>);

struct ScoreJob {
    request: Box<ScoreRequest>,
    reply: oneshot::Sender<Result<Scored, EngineError>>,
    /// The time for which it was computed so far.
    took: Duration,
}

/// The work of the engine's thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    #[default]
    Nothing,
    Answering,
    /// A prompt is computed in advance.
    ReadingPrompt,
    /// Answers are computed before anybody asks for them.
    AnsweringAhead,
    /// Adapters are compared.
    Scoring,
    LoadingAdapter,
}

/// The flags that interrupt the engine's work. Each is set behind what it stands for, a job in the
/// queue or the time of a key, so that whoever resets it earlier finds that.
#[derive(Debug, Default)]
struct Interrupts {
    /// A request came, which interrupts all work that can wait.
    request: AtomicBool,
    /// The user typed, which interrupts a score.
    key: AtomicBool,
    last_key: Mutex<Option<Instant>>,
}

impl Interrupts {
    fn reset(&self) {
        self.request.store(false, Ordering::Release);
        self.key.store(false, Ordering::Release);
    }

    fn key(&self) {
        *self.last_key.lock() = Some(Instant::now());
        self.key.store(true, Ordering::Release);
    }

    fn last_key(&self) -> Option<Instant> {
        *self.last_key.lock()
    }
}

#[derive(Clone)]
pub struct EngineHandle {
    jobs: SyncSender<Job>,
    info: EngineInfo,
    tokenizer: Tokenizer,
    interrupts: Arc<Interrupts>,
    work: Arc<Mutex<Work>>,
    residence: Residence,
    panicked: watch::Receiver<bool>,
}

/// Notes that the thread has panicked when it is dropped by that.
struct PanicWatch(watch::Sender<bool>);

impl Drop for PanicWatch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.send_replace(true);
        }
    }
}

/// The rules for what the engine does while nobody types.
#[derive(Debug, Clone, Default)]
pub struct IdleRule {
    /// The pause in typing after which texts are scored.
    pub score_after: Duration,
    /// The time without a job after which the model is unloaded. `None` keeps it for good.
    pub unload_after: Option<Duration>,
    /// Says whether the model is in memory. The engine that is built sets it.
    pub residence: Residence,
}

/// Sets the flag when dropped without an answer: a request whose future is dropped
/// (`$/cancelRequest`) stops its decode. An answer takes the flag out, which may then serve for
/// another attempt.
struct AbortOnDrop(Option<Arc<AtomicBool>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        if let Some(abort) = &self.0 {
            abort.store(true, Ordering::Relaxed);
        }
    }
}

impl EngineHandle {
    /// Builds the engine on its own thread and waits until it is ready. `on_busy` is called on that
    /// thread when the engine begins to compute, and when it has nothing left to compute.
    pub fn start<E: Engine>(
        build: impl FnOnce() -> Result<E, EngineError> + Send + 'static,
        on_busy: impl Fn(bool) + Send + 'static,
        idle: IdleRule,
    ) -> Result<EngineHandle, EngineError> {
        let residence = idle.residence.clone();
        let (jobs, queue) = sync_channel(QUEUE_JOBS);
        let (ready, started) = sync_channel(1);
        let (interrupts, work) = (Arc::<Interrupts>::default(), Arc::<Mutex<Work>>::default());
        let (interrupted_by, tells) = (interrupts.clone(), work.clone());
        let (panics, panicked) = watch::channel(false);
        std::thread::Builder::new()
            .name("hone-engine".into())
            .spawn(move || {
                let _watch = PanicWatch(panics);
                match build() {
                    Ok(engine) => {
                        let _ = ready.send(Ok((engine.info(), engine.tokenizer())));
                        drop(ready);
                        let on_work = |now: Work| {
                            let before = std::mem::replace(&mut *tells.lock(), now);
                            let is_busy = now != Work::Nothing;
                            if is_busy != (before != Work::Nothing) {
                                on_busy(is_busy);
                            }
                        };
                        serve(engine, &queue, &on_work, &interrupted_by, &idle);
                    }
                    Err(error) => {
                        let _ = ready.send(Err(error));
                    }
                }
            })
            .map_err(|error| EngineError::Failed(format!("cannot start a thread: {error}")))?;
        let (info, tokenizer) = started.recv().map_err(|_| EngineError::Gone)??;
        Ok(EngineHandle { jobs, info, tokenizer, interrupts, work, residence, panicked })
    }

    pub fn info(&self) -> &EngineInfo {
        &self.info
    }

    /// Resolves to true once the engine's thread has panicked, and to false once it has ended by
    /// itself. The future keeps no engine alive.
    pub fn panicked(&self) -> impl Future<Output = bool> + Send + use<> {
        let mut panicked = self.panicked.clone();
        async move { panicked.wait_for(|panicked| *panicked).await.is_ok() }
    }

    /// Returns whether the model is in memory.
    pub fn resident(&self) -> Resident {
        self.residence.get()
    }

    /// Returns what the engine does at the moment.
    pub fn work(&self) -> Work {
        *self.work.lock()
    }

    pub fn tokenize(&self, text: &str) -> Vec<u32> {
        (self.tokenizer)(text)
    }

    pub async fn generate(
        &self,
        request: Request,
        abort: Arc<AtomicBool>,
    ) -> Result<Generated, EngineError> {
        let mut guard = AbortOnDrop(Some(abort.clone()));
        let (reply, answer) = oneshot::channel();
        self.send(Job::Generate { request: Box::new(request), abort, reply })?;
        let answered = answer.await;
        guard.0 = None;
        answered.map_err(|_| EngineError::Gone)?
    }

    /// Continues files. A request whose `abort` is set ends with [`EngineError::Aborted`].
    pub async fn continued(
        &self,
        request: Continuation,
        abort: Arc<AtomicBool>,
    ) -> Result<Continued, EngineError> {
        let mut guard = AbortOnDrop(Some(abort.clone()));
        let (reply, answer) = oneshot::channel();
        self.send(Job::Continue { request: Box::new(request), abort, reply })?;
        let answered = answer.await;
        guard.0 = None;
        answered.map_err(|_| EngineError::Gone)?
    }

    /// Loads an adapter between two requests. Returns how long the engine was held.
    pub async fn load_adapter(
        &self,
        version: AdapterVersion,
        path: PathBuf,
        keep: Vec<AdapterVersion>,
    ) -> Result<Duration, EngineError> {
        let (reply, answer) = oneshot::channel();
        self.send(Job::LoadAdapter { version, path, keep, reply })?;
        answer.await.map_err(|_| EngineError::Gone)?
    }

    /// Scores a text under several adapters, once nobody has typed for a while.
    pub async fn score(&self, request: ScoreRequest) -> Result<Scored, EngineError> {
        let (reply, answer) = oneshot::channel();
        let job = ScoreJob { request: Box::new(request), reply, took: Duration::ZERO };
        self.enqueue(Job::Score(job))?;
        answer.await.map_err(|_| EngineError::Gone)?
    }

    /// Notes that the user has typed something, whether or not a request follows. Scores wait for a
    /// pause.
    pub fn key(&self) {
        self.interrupts.key();
    }

    /// The keys and values of a prompt under the base, copied once no request waits. The receiver
    /// gets `None`, or an error, if the engine does not hold the prompt any more by then.
    pub fn prompt_kv(&self, prompt: Vec<u32>) -> oneshot::Receiver<Option<Vec<u8>>> {
        let (reply, answer) = oneshot::channel();
        // If the queue is full, requests wait, and they change what the engine holds.
        let _ = self.enqueue(Job::PromptKv((prompt, reply)));
        answer
    }

    /// Computes a prompt in advance while no request waits.
    pub fn warm(&self, prompt: FimPrompt) {
        // If the queue is full, a request waits already, and computing in advance has no use.
        let _ = self.send(Job::Warm(Box::new(prompt)));
    }

    /// Computes the answers to requests that are likely to come, in their order, while no request
    /// waits. The engine remembers the answers. A prompt that is computed in advance waits
    /// meanwhile, because it may take seconds.
    pub fn ahead(&self, requests: Vec<Request>) {
        // If the queue is full, requests wait already.
        let _ = self.send(Job::Ahead(requests));
    }

    /// Gives the model's memory back, and with it all that is held of prompts and answers. The next
    /// request loads the model again.
    pub fn unload(&self) -> Result<(), EngineError> {
        self.enqueue(Job::Unload)
    }

    fn send(&self, job: Job) -> Result<(), EngineError> {
        let is_key = job.is_key();
        let sent = self.enqueue(job);
        self.interrupts.request.store(true, Ordering::Release);
        if is_key {
            self.interrupts.key();
        } else {
            self.interrupts.key.store(true, Ordering::Release);
        }
        sent
    }

    fn enqueue(&self, job: Job) -> Result<(), EngineError> {
        self.jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => EngineError::Busy,
            TrySendError::Disconnected(_) => EngineError::Gone,
        })
    }
}

fn serve(
    mut engine: impl Engine,
    queue: &Receiver<Job>,
    on_work: &impl Fn(Work),
    interrupts: &Interrupts,
    idle: &IdleRule,
) {
    let mut jobs = JobQueue::new(idle.score_after);
    while let Some(job) = next(queue, &mut jobs, &mut engine, on_work, interrupts, idle) {
        on_work(job.work());
        match job {
            Job::Generate { request, abort, reply } => {
                let answer = if abort.load(Ordering::Relaxed) {
                    Err(EngineError::Aborted)
                } else {
                    engine.generate(&request, &abort)
                };
                let is_left_out = |generated: &Generated| {
                    generated.without_context || generated.answers.is_empty()
                };
                if answer.as_ref().is_ok_and(is_left_out) {
                    jobs.warm_later(Box::new(request.prompt));
                }
                let _ = reply.send(answer);
            }
            Job::Continue { request, abort, reply } => {
                let continued = match abort.load(Ordering::Relaxed) {
                    true => Err(EngineError::Aborted),
                    false => engine.continued(&request, &abort),
                };
                let _ = reply.send(continued);
            }
            Job::LoadAdapter { version, path, keep, reply } => {
                let started = Instant::now();
                let loaded = engine.load_adapter(version, &path, &keep);
                let _ = reply.send(loaded.map(|()| started.elapsed()));
            }
            Job::Score(job) if job.reply.is_closed() => {}
            Job::Score(mut job) => {
                let started = Instant::now();
                let scores = engine.score(&job.request, &interrupts.key);
                job.took += started.elapsed();
                match scores {
                    Err(EngineError::Aborted) => jobs.continue_later(job),
                    scores => {
                        let took = job.took;
                        let _ = job.reply.send(scores.map(|scores| Scored { scores, took }));
                    }
                }
            }
            Job::PromptKv((prompt, reply)) => {
                if !reply.is_closed() {
                    let _ = reply.send(engine.prompt_kv(&prompt));
                }
            }
            Job::Warm(prompt) => {
                if let Err(EngineError::Aborted) = engine.warm(&prompt, &interrupts.request) {
                    // It continues behind what is computed ahead, and gives way to anything else.
                    jobs.warm_later(prompt);
                }
            }
            // A request that interrupts this computes its own prompt.
            Job::Ahead(requests) => {
                let compute = |request| engine.generate(request, &interrupts.request).is_ok();
                let _ = requests.iter().all(compute);
            }
            Job::Unload => engine.unload(),
        }
    }
}

/// Waits for a job, and unloads the model if none comes for a while. `None` once nobody can send a
/// request any more.
fn wait(
    queue: &Receiver<Job>,
    engine: &mut impl Engine,
    unload_after: Option<Duration>,
) -> Option<Job> {
    let Some(unload_after) = unload_after else { return queue.recv().ok() };
    let since = Instant::now();
    loop {
        let left = unload_after.saturating_sub(since.elapsed());
        match queue.recv_timeout(left.min(MEMORY_CHECK)) {
            Ok(job) => return Some(job),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if since.elapsed() >= unload_after || engine.is_in_the_way() {
            engine.unload();
            return queue.recv().ok();
        }
    }
}

/// The next job that is to be done, for which it waits. `None` once nobody can send a request any
/// more.
fn next(
    queue: &Receiver<Job>,
    jobs: &mut JobQueue,
    engine: &mut impl Engine,
    on_work: &impl Fn(Work),
    interrupts: &Interrupts,
    idle: &IdleRule,
) -> Option<Job> {
    loop {
        // The flags are reset before the last look at the queue, so that a later request sets them
        // again.
        interrupts.reset();
        let job = match queue.try_recv() {
            Ok(job) => job,
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => {
                let now = Instant::now();
                let until = match jobs.next(now, interrupts.last_key()) {
                    Next::Do(job) => return Some(job),
                    Next::Wait(until) => Some(until),
                    Next::Rest => None,
                };
                // The learner may run only when nothing waits, because it would not get far between
                // two requests of a burst.
                on_work(Work::Nothing);
                match until.map(|until| queue.recv_timeout(until.saturating_duration_since(now))) {
                    None => wait(queue, engine, idle.unload_after)?,
                    Some(Ok(job)) => job,
                    Some(Err(RecvTimeoutError::Timeout)) => continue,
                    Some(Err(RecvTimeoutError::Disconnected)) => return None,
                }
            }
        };
        if let Some(job) = jobs.take(job) {
            return Some(job);
        }
    }
}

#[cfg(test)]
mod tests;
