//! The event log and everything that is folded from it: episodes, gate, references and the live
//! trial. One lock guards them together, so that the log has the order in which things happened.

mod late;

use crate::derived_state::{DerivedInputs, DerivedState, older};
use crate::health::{Health, TroubleSource};
use crate::settings::Settings;
use anyhow::{Result, bail, ensure};
use arc_swap::ArcSwap;
use feedback::checkpoint::Checkpoint;
use feedback::clock::Clock;
use feedback::episode::{Batch, Counts, Episode, Fold};
use feedback::event::{self, AdapterVersion, EventKind, OfferId};
use feedback::log::EventLog;
use parking_lot::Mutex;
use policy::gate::Gate;
use policy::learned_state::LearnedState;
use policy::next_edit::EditGate;
use policy::references::Reference;
use policy::trial::{Arms, Verdict};
use privacy::Privacy;
use std::collections::{HashSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{Notify, watch};

/// The number of references that may wait until a trial's arms score them. Further ones are left
/// out.
const COMPARISONS_MAX: usize = 64;

pub struct Recorder {
    log: Arc<dyn EventLog>,
    clock: Arc<dyn Clock>,
    privacy: Arc<Privacy>,
    settings: Arc<Settings>,
    health: Arc<Health>,
    state: Mutex<State>,
    /// The gate after the last verdict. It can be asked without a lock.
    gate: ArcSwap<Gate>,
    /// The gate for next edits, likewise.
    edit_gate: ArcSwap<EditGate>,
    /// The number of labels that wait to be learned from.
    labels: watch::Sender<usize>,
    /// Notified when the trial may have something to decide or to compare.
    trial_news: Arc<Notify>,
    /// The number of times that something was recorded by this daemon.
    recorded: watch::Sender<u64>,
    offers_made: AtomicU64,
    /// A random number that makes the ids of offers differ between two runs of the daemon, whatever
    /// their clocks show.
    run_id: u32,
}

struct State {
    fold: Fold,
    learned_state: LearnedState,
    oldest_ms: Option<u64>,
    to_compare: VecDeque<Reference>,
    outage: Outage,
    /// The generation of the log that all of this was derived from.
    generation: u64,
}

/// The time from an event that could not be recorded until the log is open again. During an outage,
/// no client gets the answer that its event is on disk.
#[derive(Default)]
struct Outage {
    reason: Option<String>,
    /// The number of outages that began plus the number that ended.
    turns: u64,
}

impl Recorder {
    pub fn new(
        log: Arc<dyn EventLog>,
        clock: Arc<dyn Clock>,
        privacy: Arc<Privacy>,
        settings: Arc<Settings>,
        health: Arc<Health>,
        derived: DerivedState,
    ) -> Recorder {
        let gate = ArcSwap::from_pointee(derived.learned_state.gate.clone());
        let edit_gate = ArcSwap::from_pointee(derived.learned_state.edit_gate.clone());
        let state = State {
            fold: derived.fold,
            learned_state: derived.learned_state,
            oldest_ms: derived.oldest_ms,
            to_compare: VecDeque::new(),
            outage: Outage::default(),
            generation: log.generation(),
        };
        let recorder = Recorder {
            log,
            clock,
            privacy,
            settings,
            health,
            state: Mutex::new(state),
            gate,
            edit_gate,
            labels: watch::Sender::new(0),
            trial_news: Arc::default(),
            recorded: watch::Sender::new(0),
            offers_made: AtomicU64::new(1),
            run_id: rand::random(),
        };
        recorder.publish_labels(&recorder.state.lock());
        recorder
    }

    pub fn next_offer_id(&self) -> OfferId {
        format!("{:08x}-{:x}", self.run_id, self.offers_made.fetch_add(1, Ordering::Relaxed))
    }

    pub fn log(&self) -> &Arc<dyn EventLog> {
        &self.log
    }

    /// Appends events to the log and folds them in. If the log cannot be written, the feedback is
    /// lost, the status gives the reason, and completions continue.
    pub fn record(&self, events: Vec<EventKind>) {
        self.record_if(events, || true);
    }

    /// Records what was derived from the log of this generation, unless something was forgotten
    /// since.
    pub fn record_derived(&self, event: EventKind, generation: u64) {
        self.record_if(vec![event], || self.log.generation() == generation);
    }

    fn record_if(&self, events: Vec<EventKind>, is_wanted: impl FnOnce() -> bool) {
        let events = self.privacy.storable(events);
        if events.is_empty() {
            return;
        }
        let at_ms = self.clock.unix_ms();
        let mut state = self.state.lock();
        if !is_wanted() {
            return;
        }
        for kind in events {
            match self.log.append(at_ms, kind) {
                Ok(event) => self.fold_in(&mut state, &event),
                Err(error) => self.could_not_record(&mut state, error.to_string()),
            }
        }
        self.publish_labels(&state);
        self.recorded.send_modify(|times| *times += 1);
    }

    /// A value that changes whenever something was recorded.
    pub fn recorded(&self) -> watch::Receiver<u64> {
        self.recorded.subscribe()
    }

    fn fold_in(&self, state: &mut State, event: &event::Event) {
        state.oldest_ms = Some(older(state.oldest_ms, event.at_ms));
        let label = state.fold.apply(event);
        let reference = state.learned_state.apply(event, label.as_ref());
        if label.is_some() {
            self.gate.store(Arc::new(state.learned_state.gate.clone()));
        }
        if matches!(event.kind, EventKind::NextEdit(_) | EventKind::NextEditOutcome { .. }) {
            self.edit_gate.store(Arc::new(state.learned_state.edit_gate.clone()));
        }
        if let Some(reference) = reference.filter(|_| state.to_compare.len() < COMPARISONS_MAX) {
            state.to_compare.push_back(reference);
        }
        if state.learned_state.trial.is_some() {
            self.trial_news.notify_one();
        }
    }

    fn publish_labels(&self, state: &State) {
        let waiting = self.waiting_in(state);
        self.labels.send_if_modified(|known| std::mem::replace(known, waiting) != waiting);
    }

    /// Waits until every recorded event is on disk. The error says why one may not be.
    pub async fn flush(&self) -> Result<()> {
        let log = self.log.clone();
        let flushed = host::tasks::blocking(move || log.flush()).await;
        let flushed = flushed.and_then(|flushed| Ok(flushed?));
        let mut state = self.state.lock();
        if let Err(error) = flushed {
            self.could_not_record(&mut state, format!("{error:#}"));
        }
        // An event that could not be appended is not part of the flush, so the outage is checked
        // too.
        match &state.outage.reason {
            Some(reason) => bail!("{reason}"),
            None => Ok(()),
        }
    }

    /// Calls `record`, which records something, and waits until that is on disk. Everything that
    /// was recorded before is on disk then too, even if `record` fails.
    pub async fn record_durably(&self, record: impl FnOnce() -> Result<()>) -> Result<()> {
        let turns = self.state.lock().outage.turns;
        let recorded = record();
        self.flush().await?;
        recorded?;
        let is_same = self.state.lock().outage.turns == turns;
        ensure!(is_same, "the event log could not be written in the meantime");
        Ok(())
    }

    fn could_not_record(&self, state: &mut State, reason: String) {
        self.health.report(TroubleSource::EventLog, reason.clone());
        let outage = &mut state.outage;
        // It is logged once, because the events of the next thousand keystrokes would fail in the
        // same way.
        if outage.reason.replace(reason.clone()).is_none() {
            outage.turns += 1;
            tracing::error!("{reason}");
        }
    }

    pub fn has_outage(&self) -> bool {
        self.state.lock().outage.reason.is_some()
    }

    /// Ends the outage, because the log can be written again.
    pub fn end_outage(&self) {
        let outage = &mut self.state.lock().outage;
        outage.turns += u64::from(outage.reason.take().is_some());
        self.health.clear(TroubleSource::EventLog);
    }

    /// Derives everything again from the log, because the log has changed. Returns a checkpoint, if
    /// one is worth writing. It reads the disk.
    pub fn read_again(&self, inputs: &DerivedInputs) -> Result<Option<Checkpoint>> {
        let generation = self.log.generation();
        let mut derived = DerivedState::of(&*self.log, inputs)?;
        let checkpoint = derived.checkpoint_if_worth(generation)?;
        // No event is appended while the state is locked.
        let mut state = self.state.lock();
        derived.catch_up(&*self.log)?;
        state.fold.replace(derived.fold);
        state.learned_state = derived.learned_state;
        state.oldest_ms = derived.oldest_ms;
        state.generation = generation;
        self.gate.store(Arc::new(state.learned_state.gate.clone()));
        self.edit_gate.store(Arc::new(state.learned_state.edit_gate.clone()));
        self.publish_labels(&state);
        Ok(checkpoint)
    }

    /// Returns true if everything was derived from the log as it is. It is not after the log was
    /// written anew and could not be read.
    pub fn is_current_log(&self) -> bool {
        self.state.lock().generation == self.log.generation()
    }

    /// The current gate.
    pub fn gate(&self) -> Arc<Gate> {
        self.gate.load_full()
    }

    /// The current gate for next edits.
    pub fn edit_gate(&self) -> Arc<EditGate> {
        self.edit_gate.load_full()
    }

    /// Calls `look` with the learned state of the events so far.
    pub fn learned_state<T>(&self, look: impl FnOnce(&LearnedState) -> T) -> T {
        look(&self.state.lock().learned_state)
    }

    /// The log position of the next event.
    pub fn next_seq(&self) -> u64 {
        self.state.lock().learned_state.next_seq()
    }

    /// Returns the log position of the first event, or of the next one if there is none. It reads
    /// the disk.
    pub fn first_seq(&self) -> Result<u64> {
        let mut first = None;
        self.log.scan(0, &mut |event| {
            first = Some(event.seq);
            ControlFlow::Break(())
        })?;
        Ok(first.unwrap_or_else(|| self.next_seq()))
    }

    /// Returns the oldest date of an event in the log, in milliseconds since the Unix epoch.
    pub fn oldest_event_ms(&self) -> Option<u64> {
        self.state.lock().oldest_ms
    }
}

/// The live trial. `AdapterService` decides whether one runs.
impl Recorder {
    /// Begins the live trial with the next event, as a replay of the log does. If a trial runs, the
    /// candidate joins it.
    pub fn announce_trial(&self, candidate: AdapterVersion, incumbent: AdapterVersion) -> Arms {
        self.state.lock().learned_state.announce(candidate, incumbent)
    }

    /// Makes the live trial the one that the registry names.
    pub fn follow_trial(&self, arms: Option<Arms>) {
        self.state.lock().learned_state.set_trial(arms);
    }

    /// The verdict of the trial, once there is enough evidence.
    pub fn trial_verdict(&self) -> Option<Verdict> {
        self.state.lock().learned_state.trial.as_ref().and_then(|trial| trial.verdict())
    }

    /// The next reference that the arms of the running trial should score, and the generation of
    /// the log that it is from. References of an earlier trial are dropped.
    pub fn next_comparison(&self) -> Option<(Reference, Arms, u64)> {
        let generation = self.log.generation();
        let mut state = self.state.lock();
        let arms = state.learned_state.trial.as_ref().map(|trial| trial.arms);
        while let Some(text) = state.to_compare.pop_front() {
            if let Some(arms) = arms.filter(|arms| Some(arms.since) == text.trial) {
                return Some((text, arms, generation));
            }
        }
        None
    }

    pub fn forget_comparisons(&self) {
        self.state.lock().to_compare.clear();
    }

    /// Is notified when the trial may have something to decide or to compare, and when the recorder
    /// is dropped.
    pub fn trial_news(&self) -> Arc<Notify> {
        self.trial_news.clone()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.trial_news.notify_one();
    }
}

/// Episodes on their way to an update.
impl Recorder {
    pub fn counts(&self) -> Counts {
        self.state.lock().fold.counts()
    }

    /// The number of labels that wait to be learned from: verdicts, and references for the
    /// demonstration loss.
    pub fn labels_waiting(&self) -> usize {
        self.waiting_in(&self.state.lock())
    }

    /// A receiver of every change of [`Recorder::labels_waiting`].
    pub fn label_changes(&self) -> watch::Receiver<usize> {
        self.labels.subscribe()
    }

    fn waiting_in(&self, state: &State) -> usize {
        let uses_demonstrations = self.settings.current().lab.ppo.demonstration_coefficient > 0.0;
        state.fold.waiting()
            + if uses_demonstrations { state.fold.waiting_demonstrations() } else { 0 }
    }

    pub fn take_batch(&self, limit: usize) -> Option<Batch> {
        let mut state = self.state.lock();
        let batch = state.fold.take_batch(limit);
        self.publish_labels(&state);
        batch
    }

    /// Returns whether nothing was forgotten since this batch was taken.
    pub fn is_current(&self, batch: &Batch) -> bool {
        self.state.lock().fold.is_current(batch)
    }

    /// The freshest labelled episodes without those of some offers, whether an update has learned
    /// from them or not. They wait for an update all the same.
    pub fn recent(&self, limit: usize, without: &HashSet<OfferId>) -> Batch {
        self.state.lock().fold.recent(limit, without)
    }

    /// These episodes without the held-out references, which the holdout check needs.
    pub fn to_learn(&self, mut episodes: Vec<Episode>) -> Vec<Episode> {
        let state = self.state.lock();
        for episode in &mut episodes {
            if state.learned_state.references.is_held_out(&episode.completion.id) {
                episode.replacement = None;
            }
        }
        episodes
    }

    /// An update has learned from the batch, but for the offers that it has left out.
    pub fn learned(&self, batch: Batch, left_out: &[OfferId]) {
        let mut state = self.state.lock();
        state.fold.learned(batch, left_out);
        self.publish_labels(&state);
    }

    pub fn return_batch(&self, batch: Batch) {
        let mut state = self.state.lock();
        state.fold.return_batch(batch);
        self.publish_labels(&state);
    }
}
