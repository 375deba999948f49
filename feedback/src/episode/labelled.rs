//! Labelled episodes: those that wait for an update, and those to be replayed.

use super::Episode;
use crate::limits::{REPLAY_EPISODES_MAX, WAITING_EPISODES_MAX};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Episodes to learn from. Each has the log position of the event that made it so: the
/// first verdict on the offer, or what was typed where nothing was offered. Events that
/// follow reach an episode whether it waits or was learned from.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Labelled {
    /// Labels at or before this log position have been learned from.
    through: Option<u64>,
    waiting: BTreeMap<u64, Episode>,
    /// The last episodes that an update has learned from.
    learned: BTreeMap<u64, Episode>,
    /// Episodes in a batch whose update has not ended yet.
    #[serde(skip)]
    taken: BTreeSet<u64>,
}

impl Labelled {
    pub fn new(through: Option<u64>) -> Labelled {
        Labelled { through, ..Labelled::default() }
    }

    pub fn insert(&mut self, at: u64, episode: Episode) {
        if self.through.is_some_and(|through| at <= through) {
            self.learned.insert(at, episode);
            self.trim_learned();
            return;
        }
        self.waiting.insert(at, episode);
        if self.waiting.len() > WAITING_EPISODES_MAX
            && let Some((at, _)) = self.waiting.pop_first()
        {
            self.taken.remove(&at);
        }
    }

    pub fn get_mut(&mut self, at: u64) -> Option<&mut Episode> {
        self.waiting.get_mut(&at).or_else(|| self.learned.get_mut(&at))
    }

    /// Updates have learned up to this label. `false`, and nothing changes, if they had
    /// learned farther already.
    pub fn advance_to(&mut self, through: Option<u64>) -> bool {
        if through < self.through {
            return false;
        }
        self.through = through;
        if let Some(through) = through {
            let behind = self.waiting.split_off(&through.saturating_add(1));
            self.learned.extend(std::mem::replace(&mut self.waiting, behind));
            self.trim_learned();
        }
        true
    }

    fn trim_learned(&mut self) {
        while self.learned.len() > REPLAY_EPISODES_MAX
            && let Some((at, _)) = self.learned.pop_first()
        {
            self.taken.remove(&at);
        }
    }

    /// Takes up to `limit` waiting episodes for a batch, with their labels' positions.
    pub fn take(&mut self, limit: usize) -> (Vec<u64>, Vec<Episode>) {
        let taken = self.waiting().take(limit).map(|(at, episode)| (at, episode.clone()));
        let (labels, episodes): (Vec<u64>, Vec<Episode>) = taken.unzip();
        self.taken.extend(&labels);
        (labels, episodes)
    }

    /// The update that took these has ended.
    pub fn give_back(&mut self, labels: &[u64]) {
        labels.iter().for_each(|at| {
            self.taken.remove(at);
        });
    }

    pub fn waiting(&self) -> impl Iterator<Item = (u64, &Episode)> {
        self.to_learn_from(&self.waiting)
    }

    pub fn learned(&self) -> impl DoubleEndedIterator<Item = (u64, &Episode)> {
        self.to_learn_from(&self.learned)
    }

    pub fn into_waiting(self) -> impl Iterator<Item = Episode> {
        self.waiting.into_values()
    }

    /// Leaves out episodes in a batch, and those that stronger evidence has taken the
    /// label from.
    fn to_learn_from<'a>(
        &'a self,
        episodes: &'a BTreeMap<u64, Episode>,
    ) -> impl DoubleEndedIterator<Item = (u64, &'a Episode)> {
        let numbered = episodes.iter().map(|(at, episode)| (*at, episode));
        numbered.filter(|(at, episode)| {
            let teaches = episode.is_labelled() || episode.is_demonstration();
            teaches && !self.taken.contains(at)
        })
    }
}
