//! What the user thinks of the edits that were offered.

use crate::places::NextEdit;
use crate::rules::RuleId;
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

/// A rule ends when so many of its edits in a row were turned down.
pub const MISSES_MAX: usize = 2;

/// The places that are remembered as turned down. The oldest are forgotten first.
const PLACES_MAX: usize = 256;

/// The rules whose misses are remembered.
const RULES_MAX: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Feedback {
    misses: FxHashMap<RuleId, usize>,
    /// The rules in the order in which they first missed.
    order: VecDeque<RuleId>,
    turned_down: FxHashSet<u64>,
    places: VecDeque<u64>,
}

impl Feedback {
    pub fn taken(&mut self, edit: &NextEdit) {
        if let Some(misses) = self.misses.get_mut(&edit.rule) {
            *misses = 0;
        }
    }

    pub fn turned_down(&mut self, edit: &NextEdit) {
        if !self.misses.contains_key(&edit.rule) {
            if self.order.len() == RULES_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.misses.remove(&oldest);
            }
            self.order.push_back(edit.rule);
        }
        *self.misses.entry(edit.rule).or_default() += 1;
        let place = place(edit);
        if self.turned_down.insert(place) {
            self.places.push_back(place);
        }
        if self.places.len() > PLACES_MAX
            && let Some(oldest) = self.places.pop_front()
        {
            self.turned_down.remove(&oldest);
        }
    }

    pub fn has_ended(&self, rule: RuleId) -> bool {
        self.misses.get(&rule).is_some_and(|misses| *misses >= MISSES_MAX)
    }

    pub fn is_turned_down(&self, edit: &NextEdit) -> bool {
        self.turned_down.contains(&place(edit))
    }
}

/// A place by its rule, its file and its line's text, which stay when lines above it change.
fn place(edit: &NextEdit) -> u64 {
    let mut hasher = FxHasher::default();
    (edit.rule, &edit.file, &edit.at).hash(&mut hasher);
    hasher.finish()
}
