//! The adapters: which exist, which one serves, and whether a trial runs. Requests read this
//! without a lock and without the disk. Every change goes through an [`AdapterChange`], and only
//! one exists at a time.

use crate::recorder::Recorder;
use adapters::registry::{AdapterCandidate, Registry};
use anyhow::{Context, Result};
use arc_swap::ArcSwap;
use engine::worker::EngineHandle;
use feedback::event::{AdapterVersion, ArmRecord};
use models::fim::FimTemplate;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, OwnedMutexGuard, watch};

/// The model that is served. Its hash has been checked.
#[derive(Debug, Clone)]
pub struct ServedModel {
    pub name: String,
    pub architecture: String,
    pub path: PathBuf,
    pub sha256: String,
    /// The size of its file.
    pub bytes: u64,
    pub template: &'static FimTemplate,
}

pub struct AdapterService {
    model: ServedModel,
    engine: EngineHandle,
    recorder: Arc<Recorder>,
    /// The lock is held for one change of adapters or of the log. No request takes it.
    registry: Arc<Mutex<Registry>>,
    /// The registry after the last change.
    serving: ArcSwap<Registry>,
    changed: watch::Sender<()>,
    swaps: watch::Sender<Swaps>,
}

/// The number of adapters that were loaded to serve since this daemon started.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Swaps {
    pub count: u64,
    /// The time for which the last swap stopped the engine.
    pub last_ms: Option<f64>,
}

impl AdapterService {
    pub fn new(
        model: ServedModel,
        engine: EngineHandle,
        recorder: Arc<Recorder>,
        registry: Registry,
    ) -> AdapterService {
        AdapterService {
            model,
            engine,
            recorder,
            serving: ArcSwap::from_pointee(registry.clone()),
            registry: Arc::new(Mutex::new(registry)),
            changed: watch::Sender::new(()),
            swaps: watch::Sender::default(),
        }
    }

    pub fn model(&self) -> &ServedModel {
        &self.model
    }

    /// The current registry.
    pub fn serving(&self) -> Arc<Registry> {
        self.serving.load_full()
    }

    /// Returns why nothing can be learned, in a sentence for the user.
    pub fn learning_refusal(&self) -> Option<String> {
        let of_model = models::architecture::learning_refusal(&self.model.architecture);
        of_model.or_else(|| self.serving.load().learning_refusal())
    }

    pub fn swaps(&self) -> Swaps {
        *self.swaps.borrow()
    }

    /// A receiver that is notified of every change of the registry.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Chooses the adapter that answers a request. If a trial runs, the adapter is drawn, and the
    /// draw is recorded. `trials` is the setting `lab.trial`.
    pub fn draw_arm(&self, draw: f64, trials: bool) -> (AdapterVersion, Option<ArmRecord>) {
        let serving = self.serving.load();
        match serving.trial().filter(|_| trials) {
            Some(arms) => {
                let (version, record) = arms.draw(draw);
                (version, Some(record))
            }
            None => (serving.active(), None),
        }
    }

    /// Waits until no other change is under way, and begins a change of adapters or of the log.
    pub async fn change(self: &Arc<Self>) -> AdapterChange {
        let registry = self.registry.clone().lock_owned().await;
        AdapterChange { service: self.clone(), registry }
    }

    /// Begins a change, or returns `None` while another change is under way.
    pub fn try_change(self: &Arc<Self>) -> Option<AdapterChange> {
        let registry = self.registry.clone().try_lock_owned().ok()?;
        Some(AdapterChange { service: self.clone(), registry })
    }

    /// Makes another registered adapter serve from the next completion on; 0 is the base.
    pub async fn use_adapter(self: &Arc<Self>, version: AdapterVersion) -> Result<()> {
        let change = self.change().await;
        let base = self.model.sha256.clone();
        // The check reads the whole file, so it must not block the async runtime.
        let (change, checked) =
            change.blocking(move |registry| registry.check(version, &base)).await?;
        checked?;
        let file = change.registry().adapter_file(version);
        change.swap(version, file, move |registry| registry.activate(version)).await?;
        tracing::info!("adapter v{version} serves, as asked");
        Ok(())
    }
}

/// One change of adapters. While it exists, no other change is made and nothing is forgotten.
pub struct AdapterChange {
    service: Arc<AdapterService>,
    registry: OwnedMutexGuard<Registry>,
}

impl AdapterChange {
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Runs `act`, which reads or writes files, on a thread that may wait for the disk.
    pub async fn blocking<T: Send + 'static>(
        mut self,
        act: impl FnOnce(&mut Registry) -> T + Send + 'static,
    ) -> Result<(AdapterChange, T)> {
        let acted = host::tasks::blocking(move || {
            let done = act(&mut self.registry);
            (self, done)
        });
        acted.await.context("a change of adapters broke off")
    }

    /// Loads an adapter from this file. The adapters that serve, and the one that learning starts
    /// from, stay loaded. A completion that is under way finishes on the adapter it began with.
    /// Returns how long the engine was stopped.
    pub async fn load(&self, version: AdapterVersion, file: PathBuf) -> Result<Duration> {
        if version == 0 {
            return Ok(Duration::ZERO);
        }
        let kept = vec![self.registry.active(), self.registry.head()];
        Ok(self.service.engine.load_adapter(version, file, kept).await?)
    }

    /// Loads an adapter from this file, and then calls `register`, which makes the registry name it
    /// as the one that serves.
    pub async fn swap(
        self,
        version: AdapterVersion,
        file: PathBuf,
        register: impl FnOnce(&mut Registry) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let held = self.load(version, file).await?;
        let service = self.service.clone();
        self.commit(register).await?;
        service.swaps.send_modify(|swaps| {
            swaps.count += 1;
            swaps.last_ms = Some(held.as_secs_f64() * 1000.0);
        });
        Ok(())
    }

    /// Changes the registry on disk first, and then the copy that requests read. They follow the
    /// registry even if `change` fails, because it may fail after it has changed something.
    pub async fn commit<T: Send + 'static>(
        self,
        change: impl FnOnce(&mut Registry) -> Result<T> + Send + 'static,
    ) -> Result<(AdapterChange, T)> {
        let (change, done) = self.blocking(change).await?;
        change.service.recorder.follow_trial(change.registry.trial());
        change.publish();
        Ok((change, done?))
    }

    /// Registers a loaded candidate, which joins the running trial or a new one that begins with
    /// the next event. The live trial begins first. So a replay of the log begins the trial with
    /// the same event, and no request is drawn for a trial that is not on disk.
    pub async fn start_trial(self, candidate: AdapterCandidate) -> Result<()> {
        let before = self.registry.trial();
        let recorder = self.service.recorder.clone();
        let arms = recorder.announce_trial(candidate.entry.version, self.registry.active());
        let (change, started) =
            self.blocking(move |registry| registry.start_trial(&candidate, arms.since)).await?;
        match started {
            Ok(_) => change.publish(),
            Err(error) => {
                recorder.follow_trial(before);
                return Err(error);
            }
        }
        Ok(())
    }

    fn publish(&self) {
        self.service.serving.store(Arc::new(self.registry.clone()));
        self.service.changed.send_replace(());
    }
}
