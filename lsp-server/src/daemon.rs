//! What all sessions share: the engine, the event log, the adapters, the clock.
//! One of these lives in a process, behind a socket (`hone serve`) or behind
//! stdio (`hone lsp --in-process`).

use crate::adapters::{Candidate, Registry};
use crate::config::{Config, ModelConfig};
use crate::engine::worker::EngineHandle;
use crate::engine::{EngineError, ScorePrompt, ScoreRequest};
use crate::forget::{Forgotten, Found, Scope};
use crate::gate::Gate;
use crate::home::Home;
use crate::ignored::Patterns;
use crate::incoming::Incoming;
use crate::knowledge::Knowledge;
use crate::privacy::{self, Privacy};
use crate::reading::{Reading, Terms};
use crate::reopening::{self, Outage};
use crate::retention::{self, Retention};
use crate::session::Session;
use crate::snapshot::{self, Snapshots};
use crate::status::{Evidence, LearnerState, LearnerStatus, StatusLine};
use crate::texts::Text;
use crate::trial::Verdict;
use crate::tryout;
use anyhow::{Result, bail, ensure};
use feedback::clock::Clock;
use feedback::derived::Derived;
use feedback::episode::{Batch, Episode, Fold};
use feedback::event::{self, AdapterVersion, ArmRecord, EventKind, Outcome};
use feedback::log::EventLog;
use feedback::reward::RewardVersion;
use models::adapter::Adapter;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};

/// How often open offers are looked at for their ten seconds.
const TICK: Duration = Duration::from_millis(250);

/// Texts that may wait to be compared; one more is not.
const COMPARE_QUEUE: usize = 64;

/// A trial without news is looked at this often.
const TRIAL_LOOK: Duration = Duration::from_secs(1);

pub const REWARD: RewardVersion = RewardVersion::V1;

/// The model that is served, with its hash checked.
#[derive(Debug, Clone)]
pub struct ServedModel {
    pub name: String,
    pub architecture: String,
    pub path: PathBuf,
    pub sha256: String,
}

pub struct Daemon {
    pub home: Home,
    /// Replaced whole by [`Daemon::configure`].
    config: Mutex<Arc<Config>>,
    /// What was loaded at the start, and stays so until the next.
    loaded: ModelConfig,
    pub model: ServedModel,
    pub engine: EngineHandle,
    pub clock: Arc<dyn Clock>,
    pub started: Instant,
    log: Arc<dyn EventLog>,
    fold: Mutex<Fold>,
    /// Changed with the fold held.
    knowledge: Mutex<Knowledge>,
    /// Texts the arms of a trial are to be asked about; bounded.
    to_compare: Mutex<VecDeque<Text>>,
    /// Rung when a trial may have something to decide or to compare.
    trial_news: Notify,
    pub registry: Mutex<Registry>,
    pub learner: Mutex<LearnerStatus>,
    /// Rung when the supervisor should look at the waiting episodes.
    pub learn: Notify,
    /// While it lasts nobody is told that their event is on disk.
    pub outage: Outage,
    sessions: Mutex<Vec<Weak<Session>>>,
    /// What may be stored at all.
    pub privacy: Privacy,
    /// `completion.ignore`.
    unwanted: Patterns,
    pub retention: Retention,
    pub snapshots: Snapshots,
    /// What editors show; changes are pushed to every connection.
    pub status_line: watch::Sender<StatusLine>,
    /// Adapters are exchanged one at a time.
    pub swapping: tokio::sync::Mutex<()>,
    next_offer: AtomicU64,
    /// Makes offer ids differ between two lives of the daemon, on any clock.
    life: u32,
}

/// A poisoned lock means a panic elsewhere, on a thread that is gone; what it
/// guards is replaced whole or appended to, and completions must go on.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Daemon {
    pub async fn start(
        home: &Home,
        config: Config,
        model: ServedModel,
        engine: EngineHandle,
        clock: Arc<dyn Clock>,
        log: Arc<dyn EventLog>,
    ) -> Result<Arc<Daemon>> {
        let (mut registry, mut trouble) = Registry::open(&home.adapters(), &model.sha256);
        registry.remove_leftovers();
        while registry.active() > 0 {
            let active = registry.active();
            let path = registry.adapter_file(active);
            match engine.load_adapter(active, path.clone(), vec![]).await {
                Ok(_) => break,
                Err(error) => {
                    trouble = Some(format!("{}: cannot be served: {error}", path.display()));
                    registry.fall_back();
                }
            }
        }
        if let Some(arms) = registry.trial() {
            let path = registry.adapter_file(arms.candidate);
            let kept = vec![registry.active()];
            if let Err(error) = engine.load_adapter(arms.candidate, path.clone(), kept).await {
                trouble = Some(format!("{}: cannot be tried: {error}", path.display()));
                registry.fall_back_from_trial();
            }
        }
        let writing = log.writing();
        let reading = Reading::of(&*log, &Terms::of(&registry, &model.sha256))?;
        let to_keep = to_keep(&reading, writing)?;
        let next_seq = reading.knowledge.next_seq();
        let trouble = trouble.or(log.damage());
        if let Some(trouble) = &trouble {
            tracing::warn!("{trouble}");
        }
        let mut learner =
            LearnerStatus::new(config.learning.enabled && registry.sealed().is_none());
        learner.held_back = registry.learning_refusal();
        learner.last_error = trouble;
        learner.updates = registry.entries().len() as u64;
        learner.last_update_ms = registry.entries().last().map(|entry| entry.report.total_ms);
        let ready = StatusLine::ready(&model.name, registry.active(), &config);
        let status_line = watch::Sender::new(ready);
        let daemon = Arc::new(Daemon {
            home: home.clone(),
            loaded: config.model.clone(),
            config: Mutex::new(Arc::new(config)),
            model,
            engine,
            clock,
            started: Instant::now(),
            log,
            fold: Mutex::new(reading.fold),
            knowledge: Mutex::new(reading.knowledge),
            to_compare: Mutex::new(VecDeque::new()),
            trial_news: Notify::new(),
            registry: Mutex::new(registry),
            learner: Mutex::new(learner),
            learn: Notify::new(),
            outage: Outage::default(),
            sessions: Mutex::new(vec![]),
            privacy: Privacy::default(),
            unwanted: Patterns::default(),
            retention: Retention::default(),
            snapshots: Snapshots::default(),
            status_line,
            swapping: tokio::sync::Mutex::new(()),
            next_offer: AtomicU64::new(1),
            life: rand::random(),
        });
        match to_keep {
            Some(derived) => snapshot::keep(&daemon, derived),
            None => daemon.snapshots.after(next_seq),
        }
        tokio::spawn(tick(Arc::downgrade(&daemon)));
        tokio::spawn(watch_trial(Arc::downgrade(&daemon)));
        Ok(daemon)
    }

    pub fn session(self: &Arc<Daemon>) -> Arc<Session> {
        let session = Arc::new(Session::new(self.clone()));
        let mut sessions = lock(&self.sessions);
        sessions.retain(|session| session.strong_count() > 0);
        sessions.push(Arc::downgrade(&session));
        session
    }

    /// Connections that are open.
    pub fn open_sessions(&self) -> usize {
        lock(&self.sessions).iter().filter(|session| session.strong_count() > 0).count()
    }

    pub fn next_offer_id(&self) -> String {
        format!("{:08x}-{:x}", self.life, self.next_offer.fetch_add(1, Ordering::Relaxed))
    }

    /// Records that an offer was taken which a daemon before this one had made and
    /// no session knows: it died while the offer was on screen.
    ///
    /// # Errors
    /// It died before the offer itself was on disk.
    pub fn accepted_later(&self, id: &str) -> Result<()> {
        let (outcome, evidence) = (Outcome::Accepted, event::Evidence::Command);
        let id = id.to_owned();
        let is_ours = id.starts_with(&format!("{:08x}-", self.life));
        if is_ours || privacy::is_unstored(&id) {
            return Ok(());
        }
        let awaited = lock(&self.fold).awaits(&id, evidence);
        match awaited {
            Some(true) => self.record(vec![EventKind::Outcome { id, outcome, evidence }]),
            Some(false) => {}
            None => bail!("the daemon that offered it ended before the offer was on disk"),
        }
        Ok(())
    }

    pub fn active_adapter(&self) -> AdapterVersion {
        lock(&self.registry).active()
    }

    /// The adapter that answers a request, and how it was drawn if a trial runs.
    pub fn draw_arm(&self, draw: f64) -> (AdapterVersion, Option<ArmRecord>) {
        let wanted = self.config().learning.trial;
        let registry = lock(&self.registry);
        match registry.trial().filter(|_| wanted) {
            Some(arms) => {
                let (version, record) = arms.draw(draw);
                (version, Some(record))
            }
            None => (registry.active(), None),
        }
    }

    /// Appends events and folds them in. A log that cannot be written costs the
    /// feedback, said once in the status, and never a completion.
    pub fn record(&self, events: Vec<EventKind>) {
        let events = self.privacy.storable(events);
        if events.is_empty() {
            return;
        }
        let at_ms = self.clock.now_ms();
        let mut fold = lock(&self.fold);
        for kind in events {
            match self.log.append(at_ms, kind) {
                Ok(event) => {
                    let judged = fold.apply(&event);
                    let mut knowledge = lock(&self.knowledge);
                    let text = knowledge.apply(&event, judged.as_ref());
                    let running = knowledge.trial.is_some();
                    drop(knowledge);
                    if let Some(text) = text {
                        let mut waiting = lock(&self.to_compare);
                        if waiting.len() < COMPARE_QUEUE {
                            waiting.push_back(text);
                        }
                    }
                    if running {
                        self.trial_news.notify_one();
                    }
                }
                Err(error) => self.could_not_record(error.to_string()),
            }
        }
        if self.waiting_in(&fold) >= self.config().learning.batch_episodes {
            self.learn.notify_one();
        }
    }

    /// Returns once every recorded event is on disk, or why one may not be.
    pub async fn flush(&self) -> Result<()> {
        let log = self.log.clone();
        let flushed = tokio::task::spawn_blocking(move || log.flush()).await;
        let flushed = flushed.map_err(anyhow::Error::from).and_then(|flushed| Ok(flushed?));
        if let Err(error) = flushed {
            self.could_not_record(format!("{error:#}"));
        }
        // What could not be appended was never there to be flushed.
        match self.outage.reason() {
            Some(reason) => bail!("{reason}"),
            None => Ok(()),
        }
    }

    /// Has something recorded, and returns once it is on disk; so is all that was
    /// recorded before, even where this cannot be.
    pub async fn recorded(&self, record: impl FnOnce() -> Result<()>) -> Result<()> {
        let turns = self.outage.turns();
        let recorded = record();
        self.flush().await?;
        recorded?;
        ensure!(self.outage.turns() == turns, "the event log could not be written meanwhile");
        Ok(())
    }

    fn could_not_record(&self, reason: String) {
        lock(&self.learner).last_error = Some(reason.clone());
        // Said once: the next thousand keys have the same to tell.
        if self.outage.begin(reason.clone()) {
            tracing::error!("{reason}");
        }
    }

    pub fn event_log(&self) -> Arc<dyn EventLog> {
        self.log.clone()
    }

    /// Whether enough labels wait for an update that may be registered.
    pub fn update_is_due(&self) -> bool {
        self.is_learning() && self.waiting_episodes() >= self.config().learning.batch_episodes
    }

    /// Why no update can be registered, in a sentence for the user.
    pub fn learning_refusal(&self) -> Option<String> {
        lock(&self.registry).learning_refusal()
    }

    pub fn config(&self) -> Arc<Config> {
        lock(&self.config).clone()
    }

    /// Whether a document is completed as the user types.
    pub fn completes(&self, path: &str, language: &str) -> bool {
        let config = self.config();
        config.completion.is_on(language) && !self.unwanted.matches(path, &config.completion.ignore)
    }

    /// Whether labels may start updates: a user can pause it, and what an update learned
    /// could not be registered where the registry is read-only.
    pub fn is_learning(&self) -> bool {
        self.config().learning.enabled && lock(&self.registry).sealed().is_none()
    }

    /// Takes changed settings from the next message on; those of the model wait
    /// for the next start. An update under way is given up where learning was
    /// switched off; its labels wait.
    pub fn configure(&self, config: Config) {
        *lock(&self.config) = Arc::new(config);
        let (enabled, refusal) = (self.is_learning(), self.learning_refusal());
        let mut learner = lock(&self.learner);
        learner.state = match (enabled, learner.state) {
            (true, LearnerState::Off) => LearnerState::Idle,
            (false, LearnerState::Idle | LearnerState::Backoff) => LearnerState::Off,
            (_, state) => state,
        };
        if !enabled {
            learner.held_back = refusal;
        }
        let training = learner.state == LearnerState::Training;
        drop(learner);
        if !training {
            self.show_ready();
        }
        self.learn.notify_one();
    }

    /// Whether a setting was changed that only the next start takes.
    pub fn needs_restart(&self) -> bool {
        self.config().model != self.loaded
    }

    /// What editors show while nothing happens.
    pub fn show_ready(&self) {
        let line = StatusLine::ready(&self.model.name, self.active_adapter(), &self.config());
        self.status_line.send_replace(line);
    }

    /// Loads an adapter from this file and has the registry name it as the one that
    /// serves.
    pub async fn swap(
        &self,
        version: AdapterVersion,
        file: PathBuf,
        register: impl FnOnce(&mut Registry) -> Result<()>,
    ) -> Result<()> {
        let _one_at_a_time = self.swapping.lock().await;
        let mut held = Duration::ZERO;
        if version > 0 {
            let active = self.active_adapter();
            // Completions in flight finish on the adapter they began with.
            held = self.engine.load_adapter(version, file, vec![active]).await?;
        }
        {
            let mut registry = lock(&self.registry);
            register(&mut registry)?;
            lock(&self.knowledge).follow(registry.trial());
        }
        let mut learner = lock(&self.learner);
        learner.swaps += 1;
        learner.last_swap_ms = Some(held.as_secs_f64() * 1000.0);
        Ok(())
    }

    /// Serves another registered adapter from the next completion on; 0 is the base.
    pub async fn use_adapter(&self, version: AdapterVersion) -> Result<()> {
        let file = {
            let registry = lock(&self.registry);
            registry.check(version, &self.model.sha256)?;
            registry.adapter_file(version)
        };
        self.swap(version, file, |registry| registry.activate(version)).await?;
        tracing::info!("adapter v{version} serves, as asked");
        self.show_ready();
        Ok(())
    }

    /// Forgets what was offered within a scope and what was learned from it.
    pub async fn forget(self: &Arc<Self>, scope: Scope) -> Result<Forgotten> {
        let _no_update_is_promoted = self.swapping.lock().await;
        if scope.is_asked_for() {
            // First, or it would be quoted by a prompt that is recorded after the search.
            self.sessions().iter().for_each(|session| session.forget());
            lock(&self.to_compare).clear();
        }
        let log = self.log.clone();
        let found = tokio::task::spawn_blocking(move || Found::search(&*log, scope)).await??;
        let plan = found.plan(&lock(&self.registry), &self.model.sha256);
        if found.changes_nothing(&plan) {
            return Ok(plan);
        }
        // Before they are erased: what is told of them until then goes with them.
        self.sessions().iter().for_each(|session| session.forget_offers(found.offers()));
        if plan.serves != self.active_adapter() && plan.serves > 0 {
            let (path, active) = {
                let registry = lock(&self.registry);
                (registry.adapter_file(plan.serves), registry.active())
            };
            self.engine.load_adapter(plan.serves, path, vec![active]).await?;
        }
        found.withdraw(&mut lock(&self.registry), &plan)?;
        let daemon = self.clone();
        let reading = move || {
            found.erase(&*daemon.log)?;
            daemon.read_again()
        };
        tokio::task::spawn_blocking(reading).await??;
        self.show_ready();
        self.learn.notify_one();
        tracing::info!("forgot {} offer(s) and {} adapter(s)", plan.offers, plan.adapters.len());
        Ok(plan)
    }

    /// When the first event that is left was recorded.
    pub async fn oldest_event(&self) -> Option<u64> {
        let log = self.log.clone();
        let first = tokio::task::spawn_blocking(move || {
            let mut first = None;
            let read = log.scan(0, &mut |event| {
                first = Some(event.at_ms);
                ControlFlow::Break(())
            });
            read.ok().and(first)
        });
        first.await.ok().flatten()
    }

    /// What [`Daemon::forget`] would do.
    pub async fn plan_to_forget(&self, scope: Scope) -> Result<Forgotten> {
        let log = self.log.clone();
        let found = tokio::task::spawn_blocking(move || Found::search(&*log, scope)).await??;
        Ok(found.plan(&lock(&self.registry), &self.model.sha256))
    }

    /// Makes everything anew that is made of the log: it is not what it was.
    pub fn read_again(self: &Arc<Self>) -> Result<()> {
        let writing = self.log.writing();
        let terms = Terms::of(&lock(&self.registry), &self.model.sha256);
        let mut reading = Reading::of(&*self.log, &terms)?;
        if let Some(derived) = to_keep(&reading, writing)? {
            snapshot::keep(self, derived);
        }
        // Nothing is appended while the fold is held.
        let mut fold = lock(&self.fold);
        reading.go_on(&*self.log)?;
        fold.replace(reading.fold);
        *lock(&self.knowledge) = reading.knowledge;
        Ok(())
    }

    /// Log position of the next event.
    pub fn next_seq(&self) -> u64 {
        lock(&self.knowledge).next_seq()
    }

    /// Registers an adapter that was trained elsewhere, and answers its version.
    /// It serves when it is asked for.
    pub fn import_adapter(&self, adapter: &Adapter) -> Result<AdapterVersion> {
        lock(&self.registry).check_writable()?;
        // A completion asks the registry: it must not wait for tens of megabytes.
        let file = Incoming::write(&self.home.adapters(), adapter)?;
        let mut registry = lock(&self.registry);
        ensure!(
            lock(&self.learner).state != LearnerState::Training,
            "an update is under way, whose adapter takes the next number; try again after it"
        );
        file.import(&mut registry, &self.model.sha256, self.clock.now_ms())
    }

    /// Asks the gate.
    pub fn ask_gate<T>(&self, ask: impl FnOnce(&Gate) -> T) -> T {
        ask(&lock(&self.knowledge).gate)
    }

    /// What was made of the verdicts so far.
    pub fn evidence(&self) -> Evidence {
        let registry = lock(&self.registry);
        Evidence::of(&lock(&self.knowledge), &registry, self.config().gate.enabled)
    }

    /// Has a candidate take part in a trial, unless the holdout check refuses it; then
    /// the reason is registered with it and answered.
    pub async fn start_trial(
        &self,
        mut candidate: Candidate,
        still_wanted: impl FnOnce(&Registry) -> Result<()>,
    ) -> Result<Option<String>> {
        let _one_at_a_time = self.swapping.lock().await;
        let (active, head) = {
            let registry = lock(&self.registry);
            (registry.active(), registry.head())
        };
        let (version, kl) = (candidate.entry.version, candidate.entry.report.kl_base);
        self.engine.load_adapter(version, candidate.adapter.clone(), vec![active, head]).await?;
        let own = lock(&self.knowledge).texts.held_out();
        let refusal = tryout::refusal(&self.engine, version, head, kl, own).await?;
        let mut registry = lock(&self.registry);
        still_wanted(&registry)?;
        match &refusal {
            Some(reason) => {
                let end = crate::trial::End::Dropped;
                candidate.entry.verdict = Some(Verdict { end, reason: reason.clone(), offers: 0 });
                registry.refuse(&candidate)?;
            }
            None => {
                // The live trial begins before the registry is written, because events go on
                // meanwhile: a trial that is read from the log begins with the same event.
                let incumbent = registry.active();
                let arms = lock(&self.knowledge).announce(version, incumbent);
                let registered = registry.try_out(&candidate, arms.since);
                lock(&self.knowledge).follow(registry.trial());
                registered?;
            }
        }
        Ok(refusal)
    }

    /// Ends the trial if its evidence is in.
    async fn decide_trial(&self) {
        let decided = || lock(&self.knowledge).trial.as_ref().and_then(|trial| trial.verdict());
        if decided().is_none() {
            return;
        }
        let _one_at_a_time = self.swapping.lock().await;
        // Asked again: while this waited the user may have chosen, or forgotten.
        let Some(verdict) = decided() else { return };
        let concluded = {
            let mut registry = lock(&self.registry);
            let concluded = registry.conclude(verdict.clone());
            lock(&self.knowledge).follow(registry.trial());
            concluded
        };
        match concluded {
            Ok(()) => tracing::info!("the trial ended, {:?}: {}", verdict.end, verdict.reason),
            Err(error) => {
                let reason = format!("{error:#}");
                let known = lock(&self.learner).last_error.replace(reason.clone());
                // It is tried again every second.
                if known.as_ref() != Some(&reason) {
                    tracing::error!("{reason}");
                }
            }
        }
        self.show_ready();
    }

    /// Asks both arms about the next text, if one waits and a trial runs.
    async fn compare_one(&self) -> bool {
        let Some(text) = lock(&self.to_compare).pop_front() else { return false };
        let arms = lock(&self.knowledge).trial.as_ref().map(|trial| trial.arms);
        let Some(arms) = arms.filter(|arms| Some(arms.since) == text.trial) else { return true };
        let adapters = vec![arms.candidate, arms.incumbent];
        let request = ScoreRequest {
            prompt: ScorePrompt::Tokens {
                prompt: text.place.prompt.clone(),
                adapter_from: text.place.adapter_from,
            },
            healing: text.place.healing.clone(),
            tokens: text.tokens,
            adapters: adapters.clone(),
        };
        let tokens = request.tokens.len() as u32;
        match self.engine.score(request).await {
            Ok(scores) => {
                let scores: Vec<_> = adapters.into_iter().zip(scores).collect();
                let logprobs = scores.iter().map(|(version, score)| (*version, score.logprob));
                let says = scores.iter().filter(|(_, score)| score.says);
                self.record(vec![EventKind::Compared {
                    id: text.id,
                    tokens,
                    logprobs: logprobs.collect(),
                    says: says.map(|(version, _)| *version).collect(),
                }]);
            }
            // A candidate that was succeeded meanwhile, a text that is too long.
            Err(EngineError::Failed(reason)) => tracing::debug!("not compared: {reason}"),
            Err(error) => tracing::debug!("not compared: {error}"),
        }
        true
    }

    #[cfg(test)]
    pub fn log(&self) -> &dyn EventLog {
        &*self.log
    }

    pub fn counts(&self) -> feedback::episode::Counts {
        lock(&self.fold).counts()
    }

    /// What waits to be learned from: verdicts, and texts to imitate.
    pub fn waiting_episodes(&self) -> usize {
        self.waiting_in(&lock(&self.fold))
    }

    fn waiting_in(&self, fold: &Fold) -> usize {
        let imitates = self.config().learning.ppo.demonstration_coefficient > 0.0;
        fold.waiting() + if imitates { fold.waiting_silences() } else { 0 }
    }

    pub fn take_batch(&self, limit: usize) -> Option<Batch> {
        lock(&self.fold).take_batch(limit)
    }

    /// False once something was forgotten since this batch was taken.
    pub fn is_current(&self, batch: &Batch) -> bool {
        lock(&self.fold).is_current(batch)
    }

    /// Episodes of earlier updates to learn from again.
    pub fn replay(&self) -> Vec<Episode> {
        lock(&self.fold).replay(self.config().learning.replay_episodes)
    }

    /// These episodes without the texts that updates are held against.
    pub fn to_learn(&self, mut episodes: Vec<Episode>) -> Vec<Episode> {
        let knowledge = lock(&self.knowledge);
        for episode in &mut episodes {
            if knowledge.texts.is_held_out(&episode.completion.id) {
                episode.instead = None;
            }
        }
        episodes
    }

    pub fn learned(&self, batch: Batch) {
        lock(&self.fold).learned(batch);
    }

    pub fn return_batch(&self, batch: Batch) {
        lock(&self.fold).return_batch(batch);
    }

    /// Lets open offers of every session run into their timeout.
    pub fn tick(&self) {
        self.sessions().iter().for_each(|session| session.tick());
    }

    fn sessions(&self) -> Vec<Arc<Session>> {
        lock(&self.sessions).iter().filter_map(Weak::upgrade).collect()
    }
}

/// What is worth writing down of what was read.
fn to_keep(reading: &Reading, writing: u64) -> Result<Option<Derived>> {
    let worth = reading.young >= snapshot::EVERY_EVENTS;
    Ok(worth.then(|| reading.derived(writing)).transpose()?)
}

/// Decides trials, and compares texts while the engine has nothing else to do.
async fn watch_trial(daemon: Weak<Daemon>) {
    loop {
        let Some(running) = daemon.upgrade() else { return };
        running.decide_trial().await;
        if running.compare_one().await {
            continue;
        }
        // Looked at again now and then, so that a daemon that ended is let go.
        let _ = tokio::time::timeout(TRIAL_LOOK, running.trial_news.notified()).await;
    }
}

async fn tick(daemon: Weak<Daemon>) {
    let mut interval = tokio::time::interval(TICK);
    loop {
        interval.tick().await;
        match daemon.upgrade() {
            Some(daemon) => {
                daemon.tick();
                retention::tick(&daemon);
                snapshot::tick(&daemon);
                reopening::tick(&daemon);
            }
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::tests::completion;
    use crate::rig::{daemon_in, try_first_adapter};

    /// Forgetting withdrew adapters first, which a registry that cannot be read refuses. So
    /// nothing could be forgotten until the user had moved the folder away by hand.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn events_are_forgotten_though_the_registry_cannot_be_read() {
        for scope in [Scope::File { names: vec!["/secret.rs".into()] }, Scope::All] {
            let folder = tempfile::tempdir().unwrap();
            let home = Home::at(folder.path().into());
            home.create().unwrap();
            let (registry, adapter) =
                (home.adapters().join("registry.json"), home.adapters().join("v0001.gguf"));
            std::fs::write(&registry, "{\"format\": 99}").unwrap();
            std::fs::write(&adapter, "the first adapter").unwrap();
            let daemon = daemon_in(&home).await;
            daemon.record(vec![completion("o", "/secret.rs")]);
            let plan = daemon.plan_to_forget(scope.clone()).await.unwrap();
            let done = daemon.forget(scope).await.unwrap();
            assert_eq!((done.events, done.offers, &done), (1, 1, &plan));
            let note = done.adapters_left.unwrap();
            assert!(note.contains(&home.adapters().display().to_string()), "{note}");
            assert!(note.contains("update Hone") && note.contains("may have learned"), "{note}");
            assert_eq!((daemon.counts().total, daemon.oldest_event().await), (0, None));
            assert_eq!(std::fs::read_to_string(&registry).unwrap(), "{\"format\": 99}");
            assert_eq!(std::fs::read(&adapter).unwrap(), b"the first adapter");
        }
    }

    /// A trial's first log position was read before the registry was written, and the trial
    /// began after that. A verdict in between belonged to what is known of the incumbent
    /// while the daemon ran, and to the trial when the log was read at the next start.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_trial_is_the_same_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().into());
        let daemon = daemon_in(&home).await;
        let verdict = |id: &str| {
            let (outcome, evidence) = (Outcome::Accepted, event::Evidence::Command);
            daemon.record(vec![completion(id, "/a.rs")]);
            daemon.record(vec![EventKind::Outcome { id: id.into(), outcome, evidence }]);
        };
        verdict("before");
        let between = |_: &Registry| {
            verdict("between");
            Ok(())
        };
        assert_eq!(try_first_adapter(&daemon, between).await.unwrap(), None);
        verdict("after");
        let terms = Terms::of(&lock(&daemon.registry), "base");
        let read = Reading::of(&*daemon.log, &terms).unwrap();
        assert!(read.knowledge.trial.is_some());
        assert_eq!(lock(&daemon.knowledge).trial, read.knowledge.trial);
    }
}
