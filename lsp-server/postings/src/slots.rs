//! The entries that postings name by number, and the runs of their postings. An entry that goes
//! leaves its postings behind; they are skipped from then on, and cleared away once they are many.

use crate::Runs;
use std::sync::Arc;

/// The share of postings of removed entries at which they are cleared away: one in this many.
const DEAD_SHARE: usize = 4;

/// Entries of a kind `T`, each in a slot. A clone shares the entries and the runs.
#[derive(Debug)]
pub struct Slots<T> {
    entries: Vec<Option<Arc<Entry<T>>>>,
    /// The most slots, which is what a posting can name.
    most: usize,
    /// Slots that no posting names.
    free: Vec<u32>,
    /// Slots that postings of removed entries still name.
    dead: Vec<u32>,
    dead_postings: usize,
    /// The slot that a posting names.
    slot_of: fn(u64) -> u32,
    runs: Runs,
}

#[derive(Debug)]
struct Entry<T> {
    value: T,
    postings: usize,
}

impl<T> Clone for Slots<T> {
    fn clone(&self) -> Slots<T> {
        Slots {
            entries: self.entries.clone(),
            free: self.free.clone(),
            dead: self.dead.clone(),
            runs: self.runs.clone(),
            ..*self
        }
    }
}

impl<T> Slots<T> {
    pub fn new(most: usize, slot_of: fn(u64) -> u32) -> Slots<T> {
        Slots {
            entries: vec![],
            most,
            free: vec![],
            dead: vec![],
            dead_postings: 0,
            slot_of,
            runs: Runs::default(),
        }
    }

    pub fn runs(&self) -> &Runs {
        &self.runs
    }

    pub fn get(&self, slot: u32) -> Option<&T> {
        self.entries.get(slot as usize)?.as_ref().map(|entry| &entry.value)
    }

    /// Adds what `make` makes for a slot, with its postings. `None` if all slots are taken.
    pub fn insert(&mut self, make: impl FnOnce(u32) -> (T, Vec<u64>)) -> Option<u32> {
        let slot = self.free_slot()?;
        let (value, postings) = make(slot);
        self.entries[slot as usize] = Some(Arc::new(Entry { value, postings: postings.len() }));
        self.runs.add(postings);
        Some(slot)
    }

    /// Removes an entry, and lets `look` see it. No search finds it from now on.
    pub fn remove(&mut self, slot: u32, look: impl FnOnce(&T)) {
        let Some(entry) = self.entries.get_mut(slot as usize).and_then(Option::take) else {
            return;
        };
        look(&entry.value);
        self.dead.push(slot);
        self.dead_postings += entry.postings;
        if self.dead_postings * DEAD_SHARE > self.runs.len() {
            self.purge();
        }
    }

    /// Clears away the postings of removed entries. They are hashes without a text, and no search
    /// looks at them. This happens by itself once they are many.
    pub fn purge(&mut self) {
        if self.dead.is_empty() {
            return;
        }
        let (entries, slot_of) = (&self.entries, self.slot_of);
        self.runs.retain(|posting| entries[slot_of(posting) as usize].is_some());
        self.free.append(&mut self.dead);
        self.dead_postings = 0;
    }

    fn free_slot(&mut self) -> Option<u32> {
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        if self.entries.len() >= self.most {
            self.purge();
            return self.free.pop();
        }
        self.entries.push(None);
        Some(self.entries.len() as u32 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots of texts whose only posting names the slot in its lowest bits.
    fn slots(most: usize) -> Slots<&'static str> {
        Slots::new(most, |posting| posting as u32)
    }

    fn add(slots: &mut Slots<&'static str>, text: &'static str) -> Option<u32> {
        slots.insert(|slot| (text, vec![u64::from(slot)]))
    }

    #[test]
    fn a_slot_is_used_again_once_no_posting_names_it() {
        let mut slots = slots(2);
        assert_eq!((add(&mut slots, "a"), add(&mut slots, "b")), (Some(0), Some(1)));
        assert_eq!(add(&mut slots, "c"), None, "all slots are taken");
        slots.remove(0, |text| assert_eq!(*text, "a"));
        assert_eq!((slots.get(0), slots.get(1)), (None, Some(&"b")));
        assert_eq!(add(&mut slots, "c"), Some(0));
        assert_eq!(slots.runs().len(), 2);
    }

    #[test]
    fn a_clone_keeps_what_is_removed_later() {
        let mut slots = slots(2);
        add(&mut slots, "a");
        let before = slots.clone();
        slots.remove(0, |_| ());
        assert_eq!((before.get(0), slots.get(0)), (Some(&"a"), None));
    }
}
