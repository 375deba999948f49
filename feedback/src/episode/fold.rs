//! The fold: events in, counts and labelled episodes out.

use super::labelled::Labelled;
use super::{Counts, Episode, Label};
use crate::bounded_map::BoundedMap;
use crate::event::{
    AdapterVersion, ArmRecord, Completion, Defect, Event, EventKind, Evidence, GateRecord, OfferId,
    Outcome,
};
use crate::limits::{KNOWN_OFFERS_MAX, UNLABELLED_OFFERS_MAX};
use crate::reward::{HURRIED_WEIGHT, RewardInputs, is_hurried, reward};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Folds the log, one event at a time and in log order, into counts for the status and
/// into the labelled episodes that no update has learned from yet.
///
/// Its state depends on the events alone, apart from one thing: what updates have learned
/// from. Labels up to a log position are `learned`, but for those of the offers that updates
/// have left out, which are `waiting` like those behind it. A fold that was saved can
/// therefore be continued even if there were updates since ([`Fold::learned_through`]).
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Fold {
    /// An adapter can only learn from what its own base model served.
    model_sha256: String,
    counts: Counts,
    pub(super) unlabelled: BoundedMap<OfferId, Episode>,
    /// Offers whose outcome can still change.
    pub(super) known: BoundedMap<OfferId, KnownOffer>,
    /// Completions that offered nothing, until it is known what the user typed there.
    not_offered: BoundedMap<OfferId, Episode>,
    labelled: Labelled,
    /// The number of times that [`Fold::replace`] was called.
    #[serde(skip)]
    replacements: u64,
}

/// The memory of an offer, wherever its episode is by now.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct KnownOffer {
    /// When it was made, in milliseconds since the Unix epoch.
    at_ms: u64,
    outcome: Option<(Outcome, Evidence)>,
    /// The outcome came so soon that it says little.
    hurried: bool,
    label: Option<LabelInputs>,
}

/// The parts of the next label of an offer, should there be one.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct LabelInputs {
    /// Log position of the first label. The episode keeps this position for good.
    at: u64,
    adapter: AdapterVersion,
    invoked: bool,
    gate: Option<GateRecord>,
    arm: Option<ArmRecord>,
    defect: Option<Defect>,
    offer_utf16: u32,
    kept: Option<f32>,
}

impl LabelInputs {
    fn of(at: u64, episode: &Episode) -> LabelInputs {
        let completion = &episode.completion;
        LabelInputs {
            at,
            adapter: completion.adapter,
            invoked: completion.decision.invoked,
            gate: completion.decision.gate.clone(),
            arm: completion.decision.arm,
            defect: completion.decision.defect,
            offer_utf16: completion.shown.encode_utf16().count() as u32,
            kept: episode.kept,
        }
    }

    fn reward(&self, (outcome, hurried): (Outcome, bool)) -> Option<f32> {
        let (offer_utf16, kept, defect) = (self.offer_utf16, self.kept, self.defect);
        reward(RewardInputs { outcome: Some(outcome), offer_utf16, kept, defect, hurried })
    }

    /// The label of an outcome that was hurried or not. `before`: that of the label that this one
    /// replaces.
    fn label(
        &self,
        at_ms: u64,
        outcome: (Outcome, bool),
        before: Option<(Outcome, bool)>,
    ) -> Option<Label> {
        Some(Label {
            at_ms,
            adapter: self.adapter,
            invoked: self.invoked,
            gate: self.gate.clone(),
            arm: self.arm,
            accepted: outcome.0 == Outcome::Accepted,
            reward: self.reward(outcome)?,
            weight: if outcome.1 { HURRIED_WEIGHT } else { 1.0 },
            before: before.and_then(|before| self.reward(before)),
            offer_utf16: self.offer_utf16,
        })
    }
}

impl Fold {
    /// `learned_through`: log position of the last label that the newest adapter learned
    /// from, `None` before the first update.
    pub fn new(model_sha256: &str, learned_through: Option<u64>) -> Self {
        Fold {
            model_sha256: model_sha256.to_owned(),
            counts: Counts::default(),
            unlabelled: BoundedMap::new(UNLABELLED_OFFERS_MAX),
            known: BoundedMap::new(KNOWN_OFFERS_MAX),
            not_offered: BoundedMap::new(UNLABELLED_OFFERS_MAX),
            labelled: Labelled::new(learned_through),
            replacements: 0,
        }
    }

    /// Returns true if this fold was made for this model.
    pub fn is_of(&self, model_sha256: &str) -> bool {
        self.model_sha256 == model_sha256
    }

    /// Notes how far updates have learned since the fold was saved, and the offers that they have
    /// left out. `false` if the fold was farther already: some episodes that wait again now are
    /// missing in it, so it must be folded anew.
    pub fn learned_through(&mut self, through: Option<u64>, left_out: HashSet<OfferId>) -> bool {
        self.labelled.advance_to(through, left_out)
    }

    /// Takes the state of another fold, made after something was forgotten. Episodes that
    /// a batch under way has taken wait again.
    pub fn replace(&mut self, fresh: Fold) {
        *self = Fold { replacements: self.replacements + 1, ..fresh };
    }

    /// False for a batch that was taken before [`Fold::replace`].
    pub fn is_current(&self, batch: &Batch) -> bool {
        batch.replacements == self.replacements
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the outcome of an offer by the events so far, and its evidence, if it has one.
    /// `None` if the offer is not known.
    pub fn outcome(&self, id: &OfferId) -> Option<Option<(Outcome, Evidence)>> {
        Some(self.known.get(id)?.outcome)
    }

    /// Returns true if the client has reported an offer without a label as shown.
    pub fn is_shown(&self, id: &OfferId) -> bool {
        self.unlabelled.get(id).is_some_and(|episode| episode.shown)
    }

    /// The episodes of offers that are in memory, labelled ones first.
    pub fn into_episodes(self) -> impl Iterator<Item = Episode> {
        self.labelled.into_waiting().chain(self.unlabelled.into_values())
    }

    /// Episodes that wait for an update with a user's verdict on them. Texts with a
    /// defect that nobody saw wait too, but do not count here.
    pub fn waiting(&self) -> usize {
        self.labelled.waiting().filter(|(_, episode)| episode.outcome.is_some()).count()
    }

    /// Episodes that wait with nothing but what the user typed where nothing was offered.
    /// An update learns from them if its demonstration loss has a weight.
    pub fn waiting_demonstrations(&self) -> usize {
        self.labelled.waiting().filter(|(_, episode)| episode.is_demonstration()).count()
    }

    /// Folds one event in. Returns the label, if the event brought one.
    pub fn apply(&mut self, event: &Event) -> Option<Label> {
        match &event.kind {
            EventKind::Completion(completion) => self.open(event, completion),
            EventKind::Shown { id } => {
                if let Some(episode) = self.episode_mut(id) {
                    episode.shown = true;
                }
            }
            EventKind::Outcome { id, outcome, evidence } => {
                return self.label(event, id, *outcome, *evidence);
            }
            EventKind::Kept { id, share, .. } => self.keep(id, *share),
            EventKind::Replacement { id, tokens } => self.replaced(event.seq, id, tokens),
            EventKind::PartlyAccepted { .. }
            | EventKind::Compared { .. }
            | EventKind::NextEdit(_)
            | EventKind::NextEditOutcome { .. } => {}
        }
        None
    }

    fn open(&mut self, event: &Event, completion: &Completion) {
        let id = completion.id.clone();
        let episode = Episode::of(event.seq, completion);
        if !episode.is_no_offer() {
            self.counts.total += 1;
            self.counts.unlabelled += 1;
            let at_ms = event.at_ms;
            let known = KnownOffer { at_ms, outcome: None, hurried: false, label: None };
            self.known.insert(id.clone(), known);
            self.unlabelled.insert(id, episode);
            return;
        }
        self.counts.no_offer += 1;
        if completion.model_sha256 != self.model_sha256 {
            return;
        }
        if episode.is_labelled() {
            // The text was not shown because it has a defect, and that is a label.
            self.labelled.insert(event.seq, episode);
        } else {
            self.not_offered.insert(id, episode);
        }
    }

    fn label(
        &mut self,
        event: &Event,
        id: &OfferId,
        outcome: Outcome,
        evidence: Evidence,
    ) -> Option<Label> {
        let known = self.known.get_mut(id)?;
        if !outcome.outweighs(evidence, known.outcome) {
            return None;
        }
        let earlier = known.outcome.map(|(earlier, _)| (earlier, known.hurried));
        *self.counts.of_outcome(earlier.map(|(earlier, _)| earlier)) -= 1;
        *self.counts.of_outcome(Some(outcome)) += 1;
        known.outcome = Some((outcome, evidence));
        known.hurried = is_hurried(outcome, event.at_ms.saturating_sub(known.at_ms));
        let verdict = (outcome, known.hurried);

        if let Some(inputs) = &known.label {
            if let Some(episode) = self.labelled.get_mut(inputs.at) {
                (episode.outcome, episode.hurried) = (known.outcome, known.hurried);
            }
            return inputs.label(event.at_ms, verdict, earlier);
        }
        // Nothing is labelled if the episode fell out of its bounded map.
        let mut episode = self.unlabelled.remove(id)?;
        if episode.completion.model_sha256 != self.model_sha256 {
            return None;
        }
        (episode.outcome, episode.hurried) = (known.outcome, known.hurried);
        if !episode.is_labelled() {
            self.unlabelled.insert(id.clone(), episode);
            return None;
        }
        let inputs = known.label.insert(LabelInputs::of(event.seq, &episode));
        self.labelled.insert(event.seq, episode);
        inputs.label(event.at_ms, verdict, None)
    }

    /// Notes the share of an accepted text that still stands. An episode that an update has
    /// learned from notes it too, because a team may still learn from it.
    fn keep(&mut self, id: &OfferId, share: f32) {
        if let Some(inputs) = self.known.get_mut(id).and_then(|known| known.label.as_mut()) {
            inputs.kept = Some(share);
        }
        if let Some(episode) = self.episode_mut(id) {
            episode.kept = Some(share);
        }
    }

    fn replaced(&mut self, seq: u64, id: &OfferId, tokens: &[u32]) {
        if let Some(episode) = self.episode_mut(id) {
            episode.replacement = Some(tokens.to_vec());
        } else if let Some(mut episode) = self.not_offered.remove(id) {
            episode.replacement = Some(tokens.to_vec());
            self.labelled.insert(seq, episode);
        }
    }

    fn episode_mut(&mut self, id: &OfferId) -> Option<&mut Episode> {
        match self.known.get(id).and_then(|known| known.label.as_ref()) {
            Some(label) => self.labelled.get_mut(label.at),
            None => self.unlabelled.get_mut(id),
        }
    }

    /// Takes up to `limit` waiting episodes, oldest label first.
    pub fn take_batch(&mut self, limit: usize) -> Option<Batch> {
        let (labels, episodes) = self.labelled.take(limit);
        let replacements = self.replacements;
        (!labels.is_empty()).then_some(Batch { labels, episodes, replacements })
    }

    /// Notes that an update has learned from the batch, but for the offers that it has left out.
    /// They wait for the next one. An offer of another batch is left out if it is named.
    pub fn learned(&mut self, batch: Batch, left_out: &[OfferId]) {
        if self.is_current(&batch) {
            self.labelled.give_back(&batch.labels);
            self.labelled.learn(batch.labels.last().copied(), &batch.offers(), left_out);
        }
    }

    /// Puts a batch back whose update failed: feedback outlives a learner.
    pub fn return_batch(&mut self, batch: Batch) {
        if self.is_current(&batch) {
            self.labelled.give_back(&batch.labels);
        }
    }

    /// The freshest labelled episodes without those of some offers, whether an update has learned
    /// from them or not. They are not taken: an update may learn from them all the same.
    pub fn recent(&self, limit: usize, without: &HashSet<OfferId>) -> Batch {
        let all = self.labelled.learned().chain(self.labelled.waiting());
        let wanted = all.filter(|(_, episode)| !without.contains(&episode.completion.id));
        let mut episodes: Vec<Episode> = wanted.map(|(_, episode)| episode.clone()).collect();
        episodes.drain(..episodes.len().saturating_sub(limit));
        Batch { labels: vec![], episodes, replacements: self.replacements }
    }
}

/// Labelled episodes taken from the fold for one update.
#[derive(Debug, Clone)]
pub struct Batch {
    labels: Vec<u64>,
    pub episodes: Vec<Episode>,
    /// [`Fold::replacements`] when it was taken.
    replacements: u64,
}

impl Batch {
    /// Log positions of the first and the last label in it.
    pub fn span(&self) -> (u64, u64) {
        let first = self.labels.first().copied().unwrap_or(0);
        (first, self.labels.last().copied().unwrap_or(first))
    }

    pub fn offers(&self) -> Vec<OfferId> {
        self.episodes.iter().map(|episode| episode.completion.id.clone()).collect()
    }
}
