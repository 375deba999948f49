//! Events folded into episodes: one completion and what became of it.

use crate::bounded_map::BoundedMap;
use crate::event::{
    AdapterVersion, ArmRecord, Broken, Completion, Event, EventKind, Evidence, GateRecord, OfferId,
    Outcome,
};
use crate::limits::{
    KNOWN_OFFERS_MAX, REPLAY_EPISODES_MAX, UNLABELLED_OFFERS_MAX, WAITING_EPISODES_MAX,
};
use crate::reward::{Fate, RewardVersion, reward};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

#[cfg(test)]
mod tests;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Episode {
    /// Log position of the completion.
    pub seq: u64,
    pub completion: Completion,
    /// The client confirmed that it was shown.
    pub shown: bool,
    /// `None` while the offer is still open.
    pub outcome: Option<(Outcome, Evidence)>,
    /// What the user typed instead of it, where that is known: the tokens of the
    /// healed text and of what was typed.
    #[serde(default)]
    pub instead: Option<Vec<u32>>,
    /// Share of what was taken that stood at the last look.
    #[serde(default)]
    pub kept: Option<f32>,
}

impl Episode {
    fn of(seq: u64, completion: &Completion) -> Episode {
        Episode {
            seq,
            completion: completion.clone(),
            shown: false,
            outcome: None,
            instead: None,
            kept: None,
        }
    }

    pub fn reward(&self, version: RewardVersion) -> Option<f32> {
        reward(version, self.fate(self.completion.shown.encode_utf16().count() as u32))
    }

    fn fate(&self, offer_utf16: u32) -> Fate {
        Fate {
            outcome: self.outcome.map(|(outcome, _)| outcome),
            offer_utf16,
            kept: self.kept,
            broken: self.completion.decision.broken,
        }
    }

    /// What the user typed where nothing was offered.
    fn is_demonstration(&self) -> bool {
        self.is_silence() && self.instead.is_some()
    }

    /// Whether there is a reward, whatever it is.
    fn is_labelled(&self) -> bool {
        reward(RewardVersion::V1, self.fate(1)).is_some()
    }

    pub fn is_silence(&self) -> bool {
        self.completion.shown.is_empty()
    }
}

/// A verdict on an offer: what the gate and a trial learn from.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    pub at_ms: u64,
    pub adapter: AdapterVersion,
    pub by_hand: bool,
    pub gate: Option<GateRecord>,
    pub arm: Option<ArmRecord>,
    /// Taken whole and at once.
    pub accepted: bool,
    pub reward: f32,
    /// What was thought before, where stronger evidence changed it.
    pub before: Option<f32>,
    pub offer_utf16: u32,
}

/// How many offers met which fate. `total` counts offers; completions with
/// nothing to show are `silent` and in no other count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub total: u64,
    pub accepted: u64,
    pub partly_accepted: u64,
    pub typed_through: u64,
    pub rejected_esc: u64,
    pub rejected_timeout: u64,
    pub rejected_edit: u64,
    pub superseded: u64,
    pub unseen: u64,
    pub unlabelled: u64,
    pub silent: u64,
}

impl Counts {
    fn slot(&mut self, outcome: Option<Outcome>) -> &mut u64 {
        match outcome {
            None => &mut self.unlabelled,
            Some(Outcome::Accepted) => &mut self.accepted,
            Some(Outcome::PartlyAccepted { .. }) => &mut self.partly_accepted,
            Some(Outcome::TypedThrough { .. }) => &mut self.typed_through,
            Some(Outcome::RejectedEsc) => &mut self.rejected_esc,
            Some(Outcome::RejectedTimeout) => &mut self.rejected_timeout,
            Some(Outcome::RejectedEdit) => &mut self.rejected_edit,
            Some(Outcome::Superseded) => &mut self.superseded,
            Some(Outcome::Unseen) => &mut self.unseen,
        }
    }
}

/// The fold itself, fed one event at a time in log order: counts for the
/// status, and the labelled episodes that no update has learned from yet.
///
/// What it answers and holds depends on the events alone, and on how far updates
/// have learned only in this: up to there the labelled ones are `learned`, behind
/// it they are `waiting`. So one that was written down can be gone on with, though
/// there were updates since ([`Fold::learned_through`]).
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Fold {
    reward: RewardVersion,
    /// Only what this base model served can teach its adapters.
    model_sha256: String,
    counts: Counts,
    unlabelled: BoundedMap<OfferId, Episode>,
    fates: BoundedMap<OfferId, Known>,
    /// Where nothing was offered, until it is known what the user typed there.
    silences: BoundedMap<OfferId, Episode>,
    labelled: Labelled,
    /// Which reading of the log this is, told by [`Fold::replace`].
    #[serde(skip)]
    reading: u64,
}

/// What is known of an offer, wherever its episode is by now.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Known {
    outcome: Option<(Outcome, Evidence)>,
    label: Option<Label>,
}

/// What a verdict on an offer is made of, should there be another.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Label {
    /// Log position of the first label: where the episode stands for good.
    at: u64,
    adapter: AdapterVersion,
    by_hand: bool,
    gate: Option<GateRecord>,
    arm: Option<ArmRecord>,
    broken: Option<Broken>,
    offer_utf16: u32,
    kept: Option<f32>,
}

impl Label {
    fn of(at: u64, episode: &Episode) -> Label {
        let completion = &episode.completion;
        Label {
            at,
            adapter: completion.adapter,
            by_hand: completion.decision.by_hand,
            gate: completion.decision.gate.clone(),
            arm: completion.decision.arm,
            broken: completion.decision.broken,
            offer_utf16: completion.shown.encode_utf16().count() as u32,
            kept: episode.kept,
        }
    }

    fn reward(&self, version: RewardVersion, outcome: Outcome) -> Option<f32> {
        let (offer_utf16, kept, broken) = (self.offer_utf16, self.kept, self.broken);
        reward(version, Fate { outcome: Some(outcome), offer_utf16, kept, broken })
    }
}

impl Fold {
    /// `learned_through`: log position of the last label the newest adapter
    /// learned from, `None` before the first update.
    pub fn new(reward: RewardVersion, model_sha256: &str, learned_through: Option<u64>) -> Self {
        Fold {
            reward,
            model_sha256: model_sha256.to_owned(),
            counts: Counts::default(),
            unlabelled: BoundedMap::new(UNLABELLED_OFFERS_MAX),
            fates: BoundedMap::new(KNOWN_OFFERS_MAX),
            silences: BoundedMap::new(UNLABELLED_OFFERS_MAX),
            labelled: Labelled { through: learned_through, ..Labelled::default() },
            reading: 0,
        }
    }

    /// Whether it is a fold of this kind.
    pub fn is_of(&self, reward: RewardVersion, model_sha256: &str) -> bool {
        self.reward == reward && self.model_sha256 == model_sha256
    }

    /// Updates have learned this far since. `false` if it was farther already: then
    /// some of what waits again is not here any more.
    pub fn learned_through(&mut self, through: Option<u64>) -> bool {
        let forward = through >= self.labelled.through;
        if forward {
            self.labelled.advance(through);
        }
        forward
    }

    /// Starts over from another reading of the log, in which what was forgotten
    /// is missing. What waits now includes what a batch under way had taken.
    pub fn replace(&mut self, fresh: Fold) {
        *self = Fold { reading: self.reading + 1, ..fresh };
    }

    /// False for a batch that was taken before the log was read anew.
    pub fn is_current(&self, batch: &Batch) -> bool {
        batch.reading == self.reading
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether nothing of such weight was said yet of this offer; `None` if it is
    /// not known.
    pub fn awaits(&self, id: &OfferId, evidence: Evidence) -> Option<bool> {
        let fate = self.fates.get(id)?;
        Some(fate.outcome.is_none_or(|(_, by)| by < evidence))
    }

    /// What it holds of the offers it was told of, labelled ones first.
    pub fn into_episodes(self) -> impl Iterator<Item = Episode> {
        self.labelled.waiting.into_values().chain(self.unlabelled.into_values())
    }

    /// Episodes that wait for an update with a user's verdict on them; those of
    /// broken texts that nobody saw go along.
    pub fn waiting(&self) -> usize {
        self.labelled.waiting().filter(|(_, episode)| episode.outcome.is_some()).count()
    }

    /// Episodes that wait with nothing but what the user typed where nothing
    /// was offered: an update that imitates learns from them.
    pub fn waiting_silences(&self) -> usize {
        self.labelled.waiting().filter(|(_, episode)| episode.is_demonstration()).count()
    }

    /// Answers the verdict that an outcome brought, if it did.
    pub fn apply(&mut self, event: &Event) -> Option<Judged> {
        match &event.kind {
            EventKind::Completion(completion) => self.open(event.seq, completion),
            EventKind::Shown { id } => {
                if let Some(episode) = self.episode_mut(id) {
                    episode.shown = true;
                }
            }
            EventKind::Outcome { id, outcome, evidence } => {
                let mut judged = self.label(event.seq, id, *outcome, *evidence)?;
                judged.at_ms = event.at_ms;
                return Some(judged);
            }
            // An update that has learned from it already learns better by replay alone.
            EventKind::Kept { id, share, .. } => {
                if let Some(label) = self.fates.get_mut(id).and_then(|fate| fate.label.as_mut()) {
                    label.kept = Some(*share);
                }
                if let Some(episode) = self.episode_mut(id) {
                    episode.kept = Some(*share);
                }
            }
            EventKind::TypedInstead { id, tokens } => {
                self.typed_instead(event.seq, id, tokens);
            }
            EventKind::PartlyAccepted { .. } | EventKind::Compared { .. } => {}
        }
        None
    }

    fn open(&mut self, seq: u64, completion: &Completion) {
        let episode = Episode::of(seq, completion);
        if episode.is_silence() {
            self.counts.silent += 1;
            // It was cut because it was broken, and that is a label.
            if completion.model_sha256 == self.model_sha256 {
                match episode.is_labelled() {
                    true => self.labelled.insert(seq, episode),
                    false => self.silences.insert(completion.id.clone(), episode),
                }
            }
            return;
        }
        self.counts.total += 1;
        self.counts.unlabelled += 1;
        let id = completion.id.clone();
        self.fates.insert(id.clone(), Known { outcome: None, label: None });
        self.unlabelled.insert(id, episode);
    }

    fn label(
        &mut self,
        seq: u64,
        id: &OfferId,
        outcome: Outcome,
        evidence: Evidence,
    ) -> Option<Judged> {
        let fate = self.fates.get_mut(id)?;
        if fate.outcome.is_some_and(|(_, known_by)| known_by >= evidence) {
            return None;
        }
        let earlier = fate.outcome.map(|(earlier, _)| earlier);
        *self.counts.slot(earlier) -= 1;
        *self.counts.slot(Some(outcome)) += 1;
        fate.outcome = Some((outcome, evidence));

        let label = match &fate.label {
            Some(label) => {
                if let Some(episode) = self.labelled.get_mut(label.at) {
                    episode.outcome = fate.outcome;
                }
                label
            }
            None => {
                // Gone: it fell out of a bounded map.
                let mut episode = self.unlabelled.remove(id)?;
                if episode.completion.model_sha256 != self.model_sha256 {
                    return None;
                }
                episode.outcome = fate.outcome;
                if !episode.is_labelled() {
                    self.unlabelled.insert(id.clone(), episode);
                    return None;
                }
                let label = fate.label.insert(Label::of(seq, &episode));
                self.labelled.insert(seq, episode);
                label
            }
        };
        let is_first = label.at == seq;
        let before = earlier.filter(|_| !is_first);
        Some(Judged {
            at_ms: 0,
            adapter: label.adapter,
            by_hand: label.by_hand,
            gate: label.gate.clone(),
            arm: label.arm,
            accepted: outcome == Outcome::Accepted,
            reward: label.reward(self.reward, outcome)?,
            before: before.and_then(|before| label.reward(self.reward, before)),
            offer_utf16: label.offer_utf16,
        })
    }

    fn typed_instead(&mut self, seq: u64, id: &OfferId, tokens: &[u32]) {
        if let Some(episode) = self.episode_mut(id) {
            episode.instead = Some(tokens.to_vec());
        } else if let Some(mut silence) = self.silences.remove(id) {
            silence.instead = Some(tokens.to_vec());
            self.labelled.insert(seq, silence);
        }
    }

    fn episode_mut(&mut self, id: &OfferId) -> Option<&mut Episode> {
        match self.fates.get(id).and_then(|fate| fate.label.as_ref()) {
            Some(label) => self.labelled.get_mut(label.at),
            None => self.unlabelled.get_mut(id),
        }
    }

    /// Takes up to `limit` waiting episodes, oldest label first.
    pub fn take_batch(&mut self, limit: usize) -> Option<Batch> {
        let taken = self.labelled.waiting().take(limit);
        let (labels, episodes): (Vec<u64>, Vec<Episode>) =
            taken.map(|(at, episode)| (at, episode.clone())).unzip();
        self.labelled.taken.extend(&labels);
        (!labels.is_empty()).then_some(Batch { labels, episodes, reading: self.reading })
    }

    /// An update has learned from the batch.
    pub fn learned(&mut self, batch: Batch) {
        if self.is_current(&batch) {
            self.labelled.give_back(&batch.labels);
            let through = batch.labels.last().copied().max(self.labelled.through);
            self.labelled.advance(through);
        }
    }

    /// Episodes to learn from again, the freshest first.
    pub fn replay(&self, limit: usize) -> Vec<Episode> {
        self.labelled.learned().rev().take(limit).map(|(_, episode)| episode.clone()).collect()
    }

    /// Puts a batch back whose update failed: feedback outlives a learner.
    pub fn return_batch(&mut self, batch: Batch) {
        if self.is_current(&batch) {
            self.labelled.give_back(&batch.labels);
        }
    }
}

/// Episodes to learn from, by the log position of what made them so: the first
/// verdict on an offer, or what was typed where nothing was offered. What becomes
/// known of one later reaches it on either side.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Labelled {
    /// Labels at or before this log position have been learned from.
    through: Option<u64>,
    waiting: BTreeMap<u64, Episode>,
    /// The last [`REPLAY_EPISODES_MAX`] of those an update has learned from.
    learned: BTreeMap<u64, Episode>,
    /// What a batch has taken: the update goes on, or gave it up.
    #[serde(skip)]
    taken: BTreeSet<u64>,
}

impl Labelled {
    fn insert(&mut self, at: u64, episode: Episode) {
        if self.through.is_some_and(|through| at <= through) {
            self.learned.insert(at, episode);
            self.trim_learned();
        } else {
            self.waiting.insert(at, episode);
            if self.waiting.len() > WAITING_EPISODES_MAX
                && let Some((at, _)) = self.waiting.pop_first()
            {
                self.taken.remove(&at);
            }
        }
    }

    fn get_mut(&mut self, at: u64) -> Option<&mut Episode> {
        self.waiting.get_mut(&at).or_else(|| self.learned.get_mut(&at))
    }

    fn advance(&mut self, through: Option<u64>) {
        self.through = through;
        let Some(through) = through else { return };
        let behind = self.waiting.split_off(&through.saturating_add(1));
        self.learned.extend(std::mem::replace(&mut self.waiting, behind));
        self.trim_learned();
    }

    fn trim_learned(&mut self) {
        while self.learned.len() > REPLAY_EPISODES_MAX
            && let Some((at, _)) = self.learned.pop_first()
        {
            self.taken.remove(&at);
        }
    }

    fn give_back(&mut self, labels: &[u64]) {
        labels.iter().for_each(|at| {
            self.taken.remove(at);
        });
    }

    fn waiting(&self) -> impl Iterator<Item = (u64, &Episode)> {
        self.there(&self.waiting)
    }

    fn learned(&self) -> impl DoubleEndedIterator<Item = (u64, &Episode)> {
        self.there(&self.learned)
    }

    /// Those to learn from: stronger evidence may have taken a label away again.
    fn there<'a>(
        &'a self,
        episodes: &'a BTreeMap<u64, Episode>,
    ) -> impl DoubleEndedIterator<Item = (u64, &'a Episode)> {
        let there = episodes.iter().map(|(at, episode)| (*at, episode));
        there.filter(|(at, episode)| {
            let teaches = episode.is_labelled() || episode.is_demonstration();
            teaches && !self.taken.contains(at)
        })
    }
}

/// Labelled episodes taken from the fold for one update.
#[derive(Debug, Clone)]
pub struct Batch {
    labels: Vec<u64>,
    pub episodes: Vec<Episode>,
    reading: u64,
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
