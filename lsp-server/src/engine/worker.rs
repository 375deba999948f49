//! One thread owns the engine. Everybody else holds a [`EngineHandle`], a
//! bounded queue of requests whose abort flags are looked at before any work.

use super::{Engine, EngineError, EngineInfo, Generated, Request, Tokenizer};
use crate::leash::Leash;
use feedback::event::AdapterVersion;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Requests that may wait: more than editors have sessions, each of which
/// supersedes its own older request.
const QUEUE: usize = 128;

enum Job {
    Generate {
        request: Box<Request>,
        abort: Arc<AtomicBool>,
        reply: oneshot::Sender<Result<Generated, EngineError>>,
    },
    LoadAdapter {
        version: AdapterVersion,
        path: PathBuf,
        keep: AdapterVersion,
        reply: oneshot::Sender<Result<Duration, EngineError>>,
    },
}

#[derive(Clone)]
pub struct EngineHandle {
    jobs: SyncSender<Job>,
    info: EngineInfo,
    tokenizer: Tokenizer,
    leash: Arc<Leash>,
}

/// Sets the flag when dropped: a request whose future is dropped (`$/cancelRequest`)
/// stops its decode.
pub struct AbortOnDrop(pub Arc<AtomicBool>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl EngineHandle {
    /// Builds the engine on its own thread and waits until it is ready.
    pub fn start<E: Engine>(
        build: impl FnOnce() -> Result<E, EngineError> + Send + 'static,
    ) -> Result<EngineHandle, EngineError> {
        let (jobs, queue) = sync_channel(QUEUE);
        let (ready, started) = sync_channel(1);
        let leash = Arc::new(Leash::default());
        let holds = leash.clone();
        std::thread::Builder::new()
            .name("hone-engine".into())
            .spawn(move || match build() {
                Ok(engine) => {
                    let _ = ready.send(Ok((engine.info(), engine.tokenizer())));
                    drop(ready);
                    serve(engine, &queue, &holds);
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                }
            })
            .map_err(|error| EngineError::Failed(format!("cannot start a thread: {error}")))?;
        let (info, tokenizer) = started.recv().map_err(|_| EngineError::Gone)??;
        Ok(EngineHandle { jobs, info, tokenizer, leash })
    }

    pub fn info(&self) -> &EngineInfo {
        &self.info
    }

    pub fn tokenize(&self, text: &str) -> Vec<u32> {
        (self.tokenizer)(text)
    }

    /// What holds the learner still while this engine computes.
    pub fn leash(&self) -> &Arc<Leash> {
        &self.leash
    }

    pub async fn generate(
        &self,
        request: Request,
        abort: Arc<AtomicBool>,
    ) -> Result<Generated, EngineError> {
        let _guard = AbortOnDrop(abort.clone());
        let (reply, answer) = oneshot::channel();
        self.send(Job::Generate { request: Box::new(request), abort, reply })?;
        answer.await.map_err(|_| EngineError::Gone)?
    }

    /// Loads an adapter between two requests; answers how long the engine was held.
    pub async fn load_adapter(
        &self,
        version: AdapterVersion,
        path: PathBuf,
        keep: AdapterVersion,
    ) -> Result<Duration, EngineError> {
        let (reply, answer) = oneshot::channel();
        self.send(Job::LoadAdapter { version, path, keep, reply })?;
        answer.await.map_err(|_| EngineError::Gone)?
    }

    fn send(&self, job: Job) -> Result<(), EngineError> {
        self.jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => EngineError::Busy,
            TrySendError::Disconnected(_) => EngineError::Gone,
        })
    }
}

fn serve(mut engine: impl Engine, queue: &Receiver<Job>, leash: &Leash) {
    loop {
        let job = match queue.try_recv() {
            Ok(job) => job,
            // Only when nothing waits: between two requests of a burst the
            // learner would not get far.
            Err(_) => {
                leash.computing(false);
                match queue.recv() {
                    Ok(job) => job,
                    Err(_) => return,
                }
            }
        };
        leash.computing(true);
        match job {
            Job::Generate { request, abort, reply } => {
                let answer = if abort.load(Ordering::Relaxed) {
                    Err(EngineError::Aborted)
                } else {
                    engine.generate(&request, &abort)
                };
                let _ = reply.send(answer);
            }
            Job::LoadAdapter { version, path, keep, reply } => {
                let started = Instant::now();
                let loaded = engine.load_adapter(version, &path, keep);
                let _ = reply.send(loaded.map(|()| started.elapsed()));
            }
        }
    }
}
