//! Events folded into episodes: one completion and what became of it.

use crate::event::{Completion, Event, EventKind, Evidence, OfferId, Outcome};
use crate::reward::{RewardVersion, reward};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, VecDeque};

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
}

impl Episode {
    pub fn reward(&self, version: RewardVersion) -> Option<f32> {
        let (outcome, _) = self.outcome?;
        let offer_utf16 = self.completion.shown.encode_utf16().count() as u32;
        reward(version, outcome, offer_utf16)
    }

    pub fn is_silence(&self) -> bool {
        self.completion.shown.is_empty()
    }
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
#[derive(Debug)]
pub struct Fold {
    reward: RewardVersion,
    /// Only what this base model served can teach its adapters.
    model_sha256: String,
    /// Labels at or before this log position have been learned from.
    learned_through: Option<u64>,
    counts: Counts,
    unlabelled: BoundedMap<Episode>,
    fates: BoundedMap<Fate>,
    /// Labelled episodes by the log position of their label.
    waiting: BTreeMap<u64, Episode>,
    /// Those an update has learned from, oldest label first.
    learned: VecDeque<Episode>,
    /// Which reading of the log this is, told by [`Fold::replace`].
    reading: u64,
}

#[derive(Debug)]
struct Fate {
    outcome: Option<(Outcome, Evidence)>,
    /// Key in `waiting`, while the episode waits there.
    waiting_at: Option<u64>,
}

impl Fold {
    /// `learned_through`: log position of the last label the newest adapter
    /// learned from, `None` before the first update.
    pub fn new(reward: RewardVersion, model_sha256: &str, learned_through: Option<u64>) -> Self {
        Fold {
            reward,
            model_sha256: model_sha256.to_owned(),
            learned_through,
            counts: Counts::default(),
            unlabelled: BoundedMap::new(UNLABELLED_LIMIT),
            fates: BoundedMap::new(FATE_LIMIT),
            waiting: BTreeMap::new(),
            learned: VecDeque::new(),
            reading: 0,
        }
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

    /// Labelled episodes that wait for an update.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub fn apply(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Completion(completion) => self.open(event.seq, completion),
            EventKind::Shown { id } => {
                if let Some(episode) = self.episode_mut(id) {
                    episode.shown = true;
                }
            }
            EventKind::PartlyAccepted { .. } => {}
            EventKind::Outcome { id, outcome, evidence } => {
                self.label(event.seq, id, *outcome, *evidence);
            }
        }
    }

    fn open(&mut self, seq: u64, completion: &Completion) {
        let episode = Episode {
            seq,
            completion: completion.clone(),
            shown: false,
            outcome: None,
            instead: None,
        };
        if episode.is_silence() {
            self.counts.silent += 1;
            return;
        }
        self.counts.total += 1;
        self.counts.unlabelled += 1;
        let id = completion.id.clone();
        self.fates.insert(id.clone(), Fate { outcome: None, waiting_at: None });
        self.unlabelled.insert(id, episode);
    }

    fn label(&mut self, seq: u64, id: &OfferId, outcome: Outcome, evidence: Evidence) {
        let Some(fate) = self.fates.get_mut(id) else { return };
        if fate.outcome.is_some_and(|(_, known_by)| known_by >= evidence) {
            return;
        }
        *self.counts.slot(fate.outcome.map(|(before, _)| before)) -= 1;
        *self.counts.slot(Some(outcome)) += 1;
        fate.outcome = Some((outcome, evidence));

        let episode = match fate.waiting_at.take() {
            Some(key) => self.waiting.remove(&key),
            None => self.unlabelled.remove(id),
        };
        // Gone: an update has learned from it, or it fell out of a bounded map.
        let Some(mut episode) = episode else { return };
        episode.outcome = Some((outcome, evidence));
        if episode.completion.model_sha256 != self.model_sha256 {
            return;
        }
        if episode.reward(self.reward).is_none() {
            self.unlabelled.insert(id.clone(), episode);
        } else if self.learned_through.is_none_or(|through| seq > through) {
            fate.waiting_at = Some(seq);
            self.waiting.insert(seq, episode);
            if self.waiting.len() > WAITING_LIMIT {
                self.waiting.pop_first();
            }
        } else {
            self.remember(episode);
        }
    }

    fn episode_mut(&mut self, id: &OfferId) -> Option<&mut Episode> {
        match self.fates.get_mut(id).and_then(|fate| fate.waiting_at) {
            Some(key) => self.waiting.get_mut(&key),
            None => self.unlabelled.get_mut(id),
        }
    }

    /// Takes up to `limit` waiting episodes, oldest label first.
    pub fn take_batch(&mut self, limit: usize) -> Option<Batch> {
        let mut batch = Batch { labels: Vec::new(), episodes: Vec::new(), reading: self.reading };
        while batch.episodes.len() < limit
            && let Some((seq, episode)) = self.waiting.pop_first()
        {
            if let Some(fate) = self.fates.get_mut(&episode.completion.id) {
                fate.waiting_at = None;
            }
            batch.labels.push(seq);
            batch.episodes.push(episode);
        }
        (!batch.episodes.is_empty()).then_some(batch)
    }

    /// An update has learned from the batch.
    pub fn learned(&mut self, batch: Batch) {
        if self.is_current(&batch) {
            batch.episodes.into_iter().for_each(|episode| self.remember(episode));
        }
    }

    fn remember(&mut self, episode: Episode) {
        if self.learned.len() == REPLAY_LIMIT {
            self.learned.pop_front();
        }
        self.learned.push_back(episode);
    }

    /// Episodes to learn from again, the freshest first.
    pub fn replay(&self, limit: usize) -> Vec<Episode> {
        self.learned.iter().rev().take(limit).cloned().collect()
    }

    /// Puts a batch back whose update failed: feedback outlives a learner.
    pub fn return_batch(&mut self, batch: Batch) {
        if !self.is_current(&batch) {
            return;
        }
        for (seq, episode) in batch.labels.into_iter().zip(batch.episodes) {
            if let Some(fate) = self.fates.get_mut(&episode.completion.id) {
                fate.waiting_at = Some(seq);
            }
            self.waiting.insert(seq, episode);
        }
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

/// A map that forgets its oldest keys.
#[derive(Debug)]
struct BoundedMap<V> {
    limit: usize,
    order: VecDeque<OfferId>,
    values: HashMap<OfferId, V>,
}

impl<V> BoundedMap<V> {
    fn new(limit: usize) -> Self {
        BoundedMap { limit, order: VecDeque::new(), values: HashMap::new() }
    }

    fn insert(&mut self, id: OfferId, value: V) {
        if self.values.insert(id.clone(), value).is_none() {
            self.order.push_back(id);
        }
        while self.order.len() > self.limit
            && let Some(oldest) = self.order.pop_front()
        {
            self.values.remove(&oldest);
        }
    }

    fn get_mut(&mut self, id: &OfferId) -> Option<&mut V> {
        self.values.get_mut(id)
    }

    fn remove(&mut self, id: &OfferId) -> Option<V> {
        let value = self.values.remove(id)?;
        self.order.retain(|key| key != id);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Sampling, StopReason, Timing};

    /// Offers `a`, `b`, … with a text of ten characters.
    fn completion(id: &str, shown: &str) -> EventKind {
        EventKind::Completion(Box::new(Completion {
            id: id.into(),
            path: "src/lib.rs".into(),
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
        assert!(fold.unlabelled.values.len() <= UNLABELLED_LIMIT);
        assert!(fold.fates.values.len() <= FATE_LIMIT);
    }
}
