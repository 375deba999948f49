//! Labelled episodes: those that wait for an update, and the last that updates have learned from.

use super::Episode;
use crate::event::OfferId;
use crate::limits::{LEARNED_EPISODES_MAX, WAITING_EPISODES_MAX};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Episodes to learn from. Each has the log position of the event that made it so: the
/// first verdict on the offer, or what was typed where nothing was offered. Events that
/// follow reach an episode whether it waits or was learned from.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Labelled {
    /// Labels at or before this log position have been learned from, but for those of `left_out`.
    through: Option<u64>,
    /// Offers that updates have left out. A checkpoint need not hold them, because the registry of
    /// adapters has them.
    #[serde(skip)]
    left_out: HashSet<OfferId>,
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
        let is_through = self.through.is_some_and(|through| at <= through);
        if is_through && !self.left_out.contains(&episode.completion.id) {
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

    /// Updates have learned up to this label, but for the offers that they have left out. `false`,
    /// and nothing changes, if they had learned farther already.
    pub fn advance_to(&mut self, through: Option<u64>, left_out: HashSet<OfferId>) -> bool {
        if through < self.through {
            return false;
        }
        (self.through, self.left_out) = (through, left_out);
        let learned = std::mem::take(&mut self.learned);
        let waiting = std::mem::take(&mut self.waiting);
        for (at, episode) in learned.into_iter().chain(waiting) {
            self.insert(at, episode);
        }
        true
    }

    /// Notes that an update has learned from these offers and, up to this label, from all others
    /// but those that it has left out, which wait.
    pub fn learn(&mut self, through: Option<u64>, offers: &[OfferId], left_out: &[OfferId]) {
        let mut all = std::mem::take(&mut self.left_out);
        all.retain(|offer| !offers.contains(offer));
        // Those of the batch, and those of a batch that is set aside. Both wait here meanwhile.
        let known = self.waiting.values().map(|episode| &episode.completion.id);
        all.extend(known.filter(|offer| left_out.contains(offer)).cloned());
        self.advance_to(through.max(self.through), all);
    }

    fn trim_learned(&mut self) {
        while self.learned.len() > LEARNED_EPISODES_MAX
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

    pub fn learned(&self) -> impl Iterator<Item = (u64, &Episode)> {
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
    ) -> impl Iterator<Item = (u64, &'a Episode)> {
        let numbered = episodes.iter().map(|(at, episode)| (*at, episode));
        numbered.filter(|(at, episode)| {
            let teaches = episode.is_labelled() || episode.is_demonstration();
            teaches && !self.taken.contains(at)
        })
    }
}
