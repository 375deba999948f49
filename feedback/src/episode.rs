//! Events folded into episodes: one completion and what became of it.

use crate::bounded_map::BoundedMap;
use crate::event::{
    AdapterVersion, ArmRecord, Broken, Completion, Event, EventKind, Evidence, GateRecord, OfferId,
    Outcome,
};
use crate::reward::{Fate, RewardVersion, reward};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

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

/// Most offers kept in memory that are not labelled (yet): a client has a
/// handful open at a time, the rest is slack for late evidence.
pub const UNLABELLED_LIMIT: usize = 256;

/// Most labelled episodes that wait for an update; the oldest give way.
pub const WAITING_LIMIT: usize = 4096;

/// Episodes kept after an update has learned from them, to be learned from again.
pub const REPLAY_LIMIT: usize = 256;

/// Offers whose fate is remembered so that stronger evidence can still change it.
pub const FATE_LIMIT: usize = 4096;

const _: () = assert!(UNLABELLED_LIMIT <= FATE_LIMIT);

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
            unlabelled: BoundedMap::new(UNLABELLED_LIMIT),
            fates: BoundedMap::new(FATE_LIMIT),
            silences: BoundedMap::new(UNLABELLED_LIMIT),
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
    /// The last [`REPLAY_LIMIT`] of those an update has learned from.
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
            if self.waiting.len() > WAITING_LIMIT
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
        while self.learned.len() > REPLAY_LIMIT
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Decision, KeptCheck, Sampling, StopReason, Timing};

    /// Offers `a`, `b`, … with a text of ten characters.
    fn completion(id: &str, shown: &str) -> EventKind {
        EventKind::Completion(Box::new(Completion {
            id: id.into(),
            path: "src/lib.rs".into(),
            context: vec![],
            language: "rust".into(),
            model_sha256: "base".into(),
            adapter: 0,
            sampling: Sampling::GREEDY,
            prompt: vec![1, 2, 3],
            adapter_from: 2,
            healing: String::new(),
            tokens: vec![],
            stop: StopReason::Newline,
            shown: shown.into(),
            shown_from: 0,
            timing: Timing::default(),
            decision: Decision::default(),
        }))
    }

    fn outcome(id: &str, outcome: Outcome, evidence: Evidence) -> EventKind {
        EventKind::Outcome { id: id.into(), outcome, evidence }
    }

    fn fold(learned_through: Option<u64>, kinds: Vec<EventKind>) -> Fold {
        let mut fold = Fold::new(RewardVersion::V1, "base", learned_through);
        for (seq, kind) in kinds.into_iter().enumerate() {
            fold.apply(&Event { seq: seq as u64, at_ms: 0, kind });
        }
        fold
    }

    #[test]
    fn an_offer_counts_once_and_silence_is_no_offer() {
        let fold = fold(
            None,
            vec![
                completion("a", "0123456789"),
                completion("s", ""),
                outcome("a", Outcome::Accepted, Evidence::Command),
            ],
        );
        assert_eq!(fold.counts(), Counts { total: 1, accepted: 1, silent: 1, ..Counts::default() });
        assert_eq!(fold.waiting(), 1);
    }

    #[test]
    fn stronger_evidence_moves_the_label_and_weaker_does_not() {
        let fold = fold(
            None,
            vec![
                completion("a", "0123456789"),
                outcome("a", Outcome::RejectedEdit, Evidence::Document),
                outcome("a", Outcome::Accepted, Evidence::Command),
                outcome("a", Outcome::RejectedTimeout, Evidence::Clock),
            ],
        );
        assert_eq!(fold.counts(), Counts { total: 1, accepted: 1, ..Counts::default() });
        assert_eq!(fold.waiting(), 1);
    }

    #[test]
    fn late_acceptance_rescues_an_offer_that_looked_unseen() {
        let mut fold = fold(
            None,
            vec![
                completion("a", "0123456789"),
                outcome("a", Outcome::Unseen, Evidence::Document),
                outcome("a", Outcome::Accepted, Evidence::Command),
            ],
        );
        let batch = fold.take_batch(16).unwrap();
        assert_eq!(batch.episodes[0].reward(RewardVersion::V1), Some(1.0));
    }

    #[test]
    fn a_failed_update_gives_its_batch_back_in_order() {
        let mut fold = fold(
            None,
            vec![
                completion("a", "0123456789"),
                completion("b", "0123456789"),
                outcome("b", Outcome::RejectedEsc, Evidence::ClientNotice),
                outcome("a", Outcome::Accepted, Evidence::Command),
            ],
        );
        let batch = fold.take_batch(1).unwrap();
        assert_eq!((batch.episodes[0].completion.id.as_str(), batch.span()), ("b", (2, 2)));
        fold.return_batch(batch);
        let both = fold.take_batch(16).unwrap();
        let ids: Vec<_> = both.episodes.iter().map(|e| e.completion.id.as_str()).collect();
        assert_eq!((ids, both.span()), (vec!["b", "a"], (2, 3)));
        assert!(fold.take_batch(16).is_none());
    }

    #[test]
    fn a_batch_taken_before_something_was_forgotten_is_void() {
        let events = || {
            let accepted = |id| outcome(id, Outcome::Accepted, Evidence::Command);
            vec![
                completion("a", "0123456789"),
                completion("b", "0123456789"),
                accepted("a"),
                accepted("b"),
            ]
        };
        let mut fold = fold(None, events());
        let batch = fold.take_batch(16).unwrap();
        let kept = events().into_iter().filter(|kind| kind.offer_id() != "a").collect();
        fold.replace(self::fold(None, kept));
        assert!(!fold.is_current(&batch));
        fold.return_batch(batch);
        let batch = fold.take_batch(16).unwrap();
        assert_eq!((batch.offers(), fold.is_current(&batch)), (vec!["b".to_owned()], true));
    }

    #[test]
    fn what_happens_after_the_verdict_reaches_the_episode_that_waits() {
        let kept = |share| EventKind::Kept { id: "a".into(), check: KeptCheck::HalfMinute, share };
        let typed = EventKind::TypedInstead { id: "b".into(), tokens: vec![7, 8] };
        let mut fold = fold(
            None,
            vec![
                completion("a", "0123456789"),
                completion("b", "0123456789"),
                outcome("a", Outcome::Accepted, Evidence::Command),
                outcome("b", Outcome::RejectedEdit, Evidence::Document),
                kept(1.0),
                typed,
                kept(0.5),
            ],
        );
        let batch = fold.take_batch(2).unwrap();
        assert_eq!(batch.episodes[0].reward(RewardVersion::V1), Some(0.5));
        assert_eq!(batch.episodes[1].instead, Some(vec![7, 8]));
    }

    #[test]
    fn what_was_typed_where_nothing_was_offered_waits_and_is_no_verdict() {
        let typed = |id: &str| EventKind::TypedInstead { id: id.into(), tokens: vec![7] };
        let events = vec![completion("s", ""), completion("t", ""), typed("s"), typed("unknown")];
        let mut all = fold(None, events.clone());
        assert_eq!((all.waiting(), all.waiting_silences()), (0, 1));
        let batch = all.take_batch(9).unwrap();
        assert_eq!((batch.offers(), batch.span()), (vec!["s".to_owned()], (2, 2)));
        assert_eq!(batch.episodes[0].instead, Some(vec![7]));
        assert_eq!(batch.episodes[0].reward(RewardVersion::V1), None);
        let after = fold(Some(2), events);
        assert_eq!((after.waiting_silences(), after.replay(9).len()), (0, 1), "learned from");
    }

    #[test]
    fn a_broken_text_that_was_never_shown_is_learned_from_and_starts_no_update() {
        let EventKind::Completion(mut broken) = completion("s", "") else { unreachable!() };
        broken.decision.broken = Some(Broken::WhitespaceOnly);
        let events = vec![EventKind::Completion(broken), completion("t", "")];
        let mut fold = fold(None, events);
        assert_eq!((fold.waiting(), fold.counts().silent), (0, 2));
        assert_eq!(fold.take_batch(9).unwrap().offers(), ["s"]);
    }

    #[test]
    fn a_verdict_is_told_once_and_again_only_when_it_changes() {
        let mut fold = Fold::new(RewardVersion::V1, "base", None);
        let mut seq = 0;
        let mut apply = |kind| {
            seq += 1;
            fold.apply(&Event { seq, at_ms: 7, kind }).map(|told| (told.reward, told.before))
        };
        apply(completion("a", "0123456789"));
        let unseen = outcome("a", Outcome::Unseen, Evidence::Document);
        assert_eq!(apply(unseen), None, "no verdict");
        let typed = outcome("a", Outcome::TypedThrough { utf16: 5 }, Evidence::ClientNotice);
        assert_eq!(apply(typed.clone()), Some((0.5, None)));
        assert_eq!(apply(typed), None);
        let accepted = outcome("a", Outcome::Accepted, Evidence::Command);
        assert_eq!(apply(accepted), Some((1.0, Some(0.5))));
    }

    #[test]
    fn after_a_restart_only_labels_younger_than_the_last_update_wait() {
        let events = vec![
            completion("a", "0123456789"),
            completion("b", "0123456789"),
            outcome("a", Outcome::Accepted, Evidence::Command),
            outcome("b", Outcome::RejectedEdit, Evidence::Document),
        ];
        assert_eq!(fold(Some(2), events).waiting(), 1);
    }

    #[test]
    fn what_was_learned_from_is_replayed_freshest_first() {
        let kinds = (0..REPLAY_LIMIT + 3).flat_map(|i| {
            let id = format!("o{i}");
            [completion(&id, "x"), outcome(&id, Outcome::Accepted, Evidence::Command)]
        });
        let kinds: Vec<EventKind> = kinds.collect();
        let ids = |episodes: Vec<Episode>| -> Vec<String> {
            episodes.into_iter().map(|episode| episode.completion.id).collect()
        };
        let mut live = fold(None, kinds.clone());
        assert!(live.replay(2).is_empty(), "they wait for their first update");
        let batch = live.take_batch(usize::MAX).unwrap();
        live.learned(batch);
        let newest = [format!("o{}", REPLAY_LIMIT + 2), format!("o{}", REPLAY_LIMIT + 1)];
        assert_eq!(ids(live.replay(2)), newest);
        assert_eq!(live.replay(usize::MAX).len(), REPLAY_LIMIT);
        // Read again from the log by the next daemon.
        assert_eq!(ids(fold(Some(u64::MAX), kinds).replay(2)), newest);
    }

    #[test]
    fn what_another_base_model_served_is_counted_and_not_learned_from() {
        let EventKind::Completion(mut other) = completion("a", "0123456789") else {
            unreachable!()
        };
        other.model_sha256 = "another".into();
        let accepted = outcome("a", Outcome::Accepted, Evidence::Command);
        let fold = fold(None, vec![EventKind::Completion(other), accepted]);
        assert_eq!((fold.counts().accepted, fold.waiting()), (1, 0));
    }

    #[test]
    fn memory_is_bounded_however_many_offers_are_never_labelled() {
        let mut fold = Fold::new(RewardVersion::V1, "base", None);
        for seq in 0..(3 * FATE_LIMIT as u64) {
            let kind = completion(&format!("c{seq}"), "0123456789");
            fold.apply(&Event { seq, at_ms: 0, kind });
        }
        assert_eq!(fold.counts().total, 3 * FATE_LIMIT as u64);
        assert!(fold.unlabelled.len() <= UNLABELLED_LIMIT);
        assert!(fold.fates.len() <= FATE_LIMIT);
    }
}
