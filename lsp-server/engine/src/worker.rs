//! The thread that owns the engine. Everybody else holds an [`EngineHandle`], which puts requests
//! into a bounded queue. Their abort flags are checked before any work.

use super::unloading::{Residence, Resident};
use super::{Engine, EngineError, EngineInfo, Generated, Request, Score, ScoreRequest, Tokenizer};
use completion::prompt::FimPrompt;
use feedback::event::AdapterVersion;
use std::collections::VecDeque;
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
    LoadAdapter {
        version: AdapterVersion,
        path: PathBuf,
        keep: Vec<AdapterVersion>,
        reply: oneshot::Sender<Result<Duration, EngineError>>,
    },
    Score {
        request: Box<ScoreRequest>,
        reply: oneshot::Sender<Result<Vec<Score>, EngineError>>,
    },
    PromptKv(KvJob),
    Warm(Box<FimPrompt>),
    Ahead(Vec<Request>),
    Unload,
}

#[derive(Clone)]
pub struct EngineHandle {
    jobs: SyncSender<Job>,
    info: EngineInfo,
    tokenizer: Tokenizer,
    /// Every request sets this flag, and the engine then interrupts work that can wait.
    preempted: Arc<AtomicBool>,
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

/// The rules by which the engine lets go of the model's memory.
#[derive(Debug, Clone, Default)]
pub struct UnloadRule {
    /// The time without a job after which the model is unloaded. `None` keeps it for good.
    pub after: Option<Duration>,
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
        unload: UnloadRule,
    ) -> Result<EngineHandle, EngineError> {
        let residence = unload.residence.clone();
        let (jobs, queue) = sync_channel(QUEUE_JOBS);
        let (ready, started) = sync_channel(1);
        let preempted = Arc::new(AtomicBool::new(false));
        let preempted_by = preempted.clone();
        let (panics, panicked) = watch::channel(false);
        std::thread::Builder::new()
            .name("hone-engine".into())
            .spawn(move || {
                let _watch = PanicWatch(panics);
                match build() {
                    Ok(engine) => {
                        let _ = ready.send(Ok((engine.info(), engine.tokenizer())));
                        drop(ready);
                        serve(engine, &queue, &on_busy, &preempted_by, unload.after);
                    }
                    Err(error) => {
                        let _ = ready.send(Err(error));
                    }
                }
            })
            .map_err(|error| EngineError::Failed(format!("cannot start a thread: {error}")))?;
        let (info, tokenizer) = started.recv().map_err(|_| EngineError::Gone)??;
        Ok(EngineHandle { jobs, info, tokenizer, preempted, residence, panicked })
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

    /// Scores a text under several adapters, once no request waits.
    pub async fn score(&self, request: ScoreRequest) -> Result<Vec<Score>, EngineError> {
        let (reply, answer) = oneshot::channel();
        self.enqueue(Job::Score { request: Box::new(request), reply })?;
        answer.await.map_err(|_| EngineError::Gone)?
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
        let sent = self.enqueue(job);
        // The flag is set after the job is in the queue, so that whoever resets it earlier finds
        // the job.
        self.preempted.store(true, Ordering::Release);
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
    on_busy: &impl Fn(bool),
    preempted: &AtomicBool,
    unload_after: Option<Duration>,
) {
    let mut idle = IdleJobs::default();
    loop {
        let rest = || wait(queue, &mut engine, unload_after);
        let Some(job) = next(queue, &mut idle, on_busy, preempted, rest) else { return };
        on_busy(true);
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
                    idle.warm = Some(Box::new(request.prompt));
                }
                let _ = reply.send(answer);
            }
            Job::LoadAdapter { version, path, keep, reply } => {
                let started = Instant::now();
                let loaded = engine.load_adapter(version, &path, &keep);
                let _ = reply.send(loaded.map(|()| started.elapsed()));
            }
            Job::Score { reply, .. } if reply.is_closed() => {}
            Job::Score { request, reply } => match engine.score(&request, preempted) {
                Err(EngineError::Aborted) => idle.scores.push_front((request, reply)),
                answer => drop(reply.send(answer)),
            },
            Job::PromptKv((prompt, reply)) => {
                if !reply.is_closed() {
                    let _ = reply.send(engine.prompt_kv(&prompt));
                }
            }
            Job::Warm(prompt) => {
                if let Err(EngineError::Aborted) = engine.warm(&prompt, preempted) {
                    // It continues behind what is computed ahead, and gives way to anything else.
                    idle.warm = Some(prompt);
                }
            }
            // A request that interrupts this computes its own prompt.
            Job::Ahead(requests) => {
                let compute = |request| engine.generate(request, preempted).is_ok();
                let _ = requests.iter().all(compute);
            }
            Job::Unload => engine.unload(),
        }
    }
}

/// The jobs that are done once no request waits.
#[derive(Default)]
struct IdleJobs {
    /// The prompt of the newest answer. It comes first, because the others change what the engine
    /// holds.
    kv: Option<KvJob>,
    /// Only the newest prompt counts, because the user has left the place of an older one.
    warm: Option<Box<FimPrompt>>,
    /// Requests that are likely to come, for the same reason the newest ones only.
    ahead: Vec<Request>,
    scores: VecDeque<ScoreJob>,
}

type KvJob = (Vec<u32>, oneshot::Sender<Option<Vec<u8>>>);

type ScoreJob = (Box<ScoreRequest>, oneshot::Sender<Result<Vec<Score>, EngineError>>);

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

/// The next job: requests in their order, then the idle jobs, then what `rest` waits for. `None`
/// once nobody can send a request any more.
fn next(
    queue: &Receiver<Job>,
    idle: &mut IdleJobs,
    on_busy: &impl Fn(bool),
    preempted: &AtomicBool,
    mut rest: impl FnMut() -> Option<Job>,
) -> Option<Job> {
    loop {
        // The flag is reset before the last look at the queue, so that a later request sets it
        // again.
        preempted.store(false, Ordering::Release);
        let job = match queue.try_recv() {
            Ok(job) => job,
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => {
                if let Some(job) = idle.kv.take() {
                    return Some(Job::PromptKv(job));
                }
                if !idle.ahead.is_empty() {
                    return Some(Job::Ahead(std::mem::take(&mut idle.ahead)));
                }
                if let Some(prompt) = idle.warm.take() {
                    return Some(Job::Warm(prompt));
                }
                if let Some((request, reply)) = idle.scores.pop_front() {
                    return Some(Job::Score { request, reply });
                }
                // The learner may run only when nothing waits, because it would not get far between
                // two requests of a burst.
                on_busy(false);
                rest()?
            }
        };
        match job {
            Job::Score { request, reply } if idle.scores.len() < QUEUE_JOBS => {
                idle.scores.push_back((request, reply));
            }
            Job::Score { reply, .. } => drop(reply.send(Err(EngineError::Busy))),
            Job::Warm(prompt) => {
                idle.warm = Some(prompt);
                // The user is elsewhere by now.
                idle.ahead.clear();
            }
            Job::Ahead(requests) => idle.ahead = requests,
            Job::PromptKv(job) => idle.kv = Some(job),
            job => {
                idle.kv = None;
                idle.warm = None;
                idle.ahead.clear();
                return Some(job);
            }
        }
    }
}

#[cfg(test)]
mod tests;
