//! What the user thinks of the edits that were offered.

use crate::places::NextEdit;
use crate::rules::RuleId;
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

/// A rule ends when so many of its edits in a row were rejected.
pub const MISSES_MAX: usize = 2;

/// What was rejected is offered again after the user has made such an edit so many more times by
/// hand.
pub const EXAMPLES_TO_BEGIN_ANEW: usize = 2;

/// The places that are remembered as rejected. The oldest are forgotten first.
const PLACES_MAX: usize = 256;

/// The rules whose misses are remembered.
const RULES_MAX: usize = 256;

/// Misses of a rule in a row.
#[derive(Debug, Default)]
struct Misses {
    count: usize,
    /// The support that the rule had at the last one.
    support: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Feedback {
    misses: FxHashMap<RuleId, Misses>,
    /// The rules in the order in which they first missed.
    order: VecDeque<RuleId>,
    /// The places that were rejected, with the support that their rules had then.
    rejected: FxHashMap<u64, usize>,
    places: VecDeque<u64>,
}

impl Feedback {
    pub fn taken(&mut self, edit: &NextEdit) {
        if let Some(misses) = self.misses.get_mut(&edit.rule) {
            misses.count = 0;
        }
    }

    pub fn rejected(&mut self, edit: &NextEdit) {
        if !self.misses.contains_key(&edit.rule) {
            if self.order.len() == RULES_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.misses.remove(&oldest);
            }
            self.order.push_back(edit.rule);
        }
        let misses = self.misses.entry(edit.rule).or_default();
        misses.count += 1;
        misses.support = edit.support;
        let place = place(edit);
        if self.rejected.insert(place, edit.support).is_none() {
            self.places.push_back(place);
        }
        if self.places.len() > PLACES_MAX
            && let Some(oldest) = self.places.pop_front()
        {
            self.rejected.remove(&oldest);
        }
    }

    pub fn has_ended(&self, rule: RuleId, support: usize) -> bool {
        self.misses.get(&rule).is_some_and(|misses| {
            misses.count >= MISSES_MAX && !begins_anew(support, misses.support)
        })
    }

    pub fn is_rejected(&self, edit: &NextEdit) -> bool {
        let then = self.rejected.get(&place(edit));
        then.is_some_and(|then| !begins_anew(edit.support, *then))
    }
}

/// Returns true if the user typed what they had rejected.
fn begins_anew(support: usize, then: usize) -> bool {
    support >= then + EXAMPLES_TO_BEGIN_ANEW
}

/// A place by its rule, its file and its line's text, which stay when lines above it change.
fn place(edit: &NextEdit) -> u64 {
    let mut hasher = FxHasher::default();
    (edit.rule, &edit.file, &edit.at).hash(&mut hasher);
    hasher.finish()
}
