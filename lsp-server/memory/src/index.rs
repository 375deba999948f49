//! The texts that are remembered, and the index of their grams.
//!
//! A posting has 64 bits: the hash of the gram, the slot of the text, and the byte at which the
//! gram begins. A text that changes gets a new slot. The postings of the old slot are skipped from
//! then on, and removed once they are many.

use crate::grams::{HASH_BITS, minimizers};
use crate::tokens::tokens;
use postings::Slots;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;

const POSITION_BITS: u32 = 20;
const SLOT_BITS: u32 = 20;
const _: () = assert!(POSITION_BITS + SLOT_BITS + HASH_BITS == u64::BITS);

/// The longest text, in bytes: a posting counts no further.
pub const TEXT_BYTES_MAX: usize = 1 << POSITION_BITS;

const SLOTS_MAX: usize = 1 << SLOT_BITS;

/// How often the same gram of a text is indexed. A text that repeats one line a thousand times says
/// nothing new after some of them.
const SAME_GRAM_MAX: usize = 16;

/// The pieces that the user typed lately, and the longest of them in bytes. Of a longer one, the
/// end is kept.
pub const TYPED_MAX: usize = 256;
pub const TYPED_BYTES_MAX: usize = 4096;

/// The memory of a file's entries in the tables, and of its counters, in bytes: an estimate.
const ENTRY_BYTES: usize = 64;

/// How much a memory holds at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub files: usize,
    /// The bytes of all texts together.
    pub text_bytes: usize,
    pub postings: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { files: 20_000, text_bytes: 48 << 20, postings: 7 << 20 }
    }
}

/// Why a file is not remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotIndexed {
    /// The file is longer than [`TEXT_BYTES_MAX`].
    TooLong,
    /// The memory holds as much as it may.
    Full,
}

/// What a memory holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    pub files: usize,
    /// The pieces that were typed lately.
    pub typed: usize,
    pub text_bytes: usize,
    /// The memory of everything but the texts.
    pub index_bytes: usize,
}

#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) name: Arc<str>,
    pub(crate) text: Arc<str>,
    /// When the user typed it; `None` for a whole file.
    pub(crate) typed_ms: Option<u64>,
}

/// The texts of a workspace, searchable by what stands before a cursor.
#[derive(Debug, Clone)]
pub struct Memory {
    limits: Limits,
    pub(crate) texts: Slots<Text>,
    files: FxHashMap<Arc<str>, u32>,
    /// The pieces that were typed, the oldest first.
    typed: VecDeque<u32>,
    text_bytes: usize,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::new(Limits::default())
    }
}

impl Memory {
    pub fn new(limits: Limits) -> Memory {
        Memory {
            limits,
            texts: Slots::new(SLOTS_MAX, |posting| Posting::of(posting).slot),
            files: FxHashMap::default(),
            typed: VecDeque::new(),
            text_bytes: 0,
        }
    }

    /// Adds a file, or replaces what was known of it. A file that is not taken is removed if it was
    /// there. What was typed in the file stays.
    ///
    /// # Errors
    /// The file is too long, or the memory is full.
    pub fn put(&mut self, name: &str, text: Arc<str>) -> Result<(), NotIndexed> {
        if let Some(slot) = self.files.remove(name) {
            self.release(slot);
        }
        if text.len() > TEXT_BYTES_MAX {
            return Err(NotIndexed::TooLong);
        }
        if self.is_full(text.len()) {
            // The room may be taken by what was removed.
            self.purge();
        }
        if self.is_full(text.len()) {
            return Err(NotIndexed::Full);
        }
        let name: Arc<str> = name.into();
        let slot = self.insert(name.clone(), text, None).ok_or(NotIndexed::Full)?;
        self.files.insert(name, slot);
        Ok(())
    }

    /// Adds a piece that the user has typed in a file. The oldest pieces are dropped once there are
    /// [`TYPED_MAX`].
    pub fn put_typed(&mut self, name: &str, text: &str, at_ms: u64) {
        while self.typed.len() >= TYPED_MAX {
            if let Some(oldest) = self.typed.pop_front() {
                self.release(oldest);
            }
        }
        let mut from = text.len().saturating_sub(TYPED_BYTES_MAX);
        while !text.is_char_boundary(from) {
            from += 1;
        }
        if let Some(slot) = self.insert(name.into(), text[from..].into(), Some(at_ms)) {
            self.typed.push_back(slot);
        }
    }

    /// Removes a file, and what was typed in it; answers whether there was anything. None of its
    /// text is found from now on.
    pub fn remove(&mut self, name: &str) -> bool {
        let file = self.files.remove(name);
        if let Some(slot) = file {
            self.release(slot);
        }
        self.remove_typed(|text| &*text.name == name) || file.is_some()
    }

    /// Removes what was typed at this time or later.
    pub fn remove_typed_since(&mut self, at_ms: u64) -> bool {
        self.remove_typed(|text| text.typed_ms.is_some_and(|typed| typed >= at_ms))
    }

    fn remove_typed(&mut self, is_unwanted: impl Fn(&Text) -> bool) -> bool {
        let texts = &self.texts;
        let is_unwanted = |slot: &u32| texts.get(*slot).is_some_and(&is_unwanted);
        let (removed, kept): (Vec<u32>, Vec<u32>) = self.typed.iter().partition(|s| is_unwanted(s));
        self.typed = kept.into();
        removed.iter().for_each(|slot| self.release(*slot));
        !removed.is_empty()
    }

    /// Clears away the postings of removed texts. They are hashes without a text, and no search
    /// looks at them. This happens by itself once they are many.
    pub fn purge(&mut self) {
        self.texts.purge();
    }

    fn is_full(&self, more_bytes: usize) -> bool {
        self.files.len() >= self.limits.files
            || self.text_bytes + more_bytes > self.limits.text_bytes
            || self.texts.runs().len() >= self.limits.postings
    }

    fn insert(&mut self, name: Arc<str>, text: Arc<str>, typed_ms: Option<u64>) -> Option<u32> {
        let bytes = text.len();
        let slot = self.texts.insert(|slot| {
            let postings = postings_of(text.as_bytes(), slot);
            (Text { name, text, typed_ms }, postings)
        })?;
        self.text_bytes += bytes;
        Some(slot)
    }

    /// Removes the text of a slot.
    fn release(&mut self, slot: u32) {
        let text_bytes = &mut self.text_bytes;
        self.texts.remove(slot, |text| *text_bytes -= text.text.len());
    }

    pub fn contains(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    pub fn stats(&self) -> Stats {
        let name = |name: &Arc<str>| name.len() + size_of::<Text>() + ENTRY_BYTES;
        let names: usize = self.files.keys().map(name).sum();
        Stats {
            files: self.files.len(),
            typed: self.typed.len(),
            text_bytes: self.text_bytes,
            index_bytes: self.texts.runs().bytes() + names,
        }
    }
}

fn postings_of(text: &[u8], slot: u32) -> Vec<u64> {
    let tokens = tokens(text);
    let mut postings: Vec<u64> = minimizers(&tokens)
        .into_iter()
        .map(|(first, hash)| Posting { hash, slot, position: tokens[first].start }.bits())
        .collect();
    postings.sort_unstable();
    let grams = postings.chunk_by(|a, b| Posting::of(*a).hash == Posting::of(*b).hash);
    grams.flat_map(|same| same.iter().take(SAME_GRAM_MAX)).copied().collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Posting {
    hash: u32,
    pub(crate) slot: u32,
    pub(crate) position: u32,
}

impl Posting {
    pub(crate) fn of(bits: u64) -> Posting {
        let field = |from: u32, wide: u32| ((bits >> from) & ((1 << wide) - 1)) as u32;
        Posting {
            position: field(0, POSITION_BITS),
            slot: field(POSITION_BITS, SLOT_BITS),
            hash: field(POSITION_BITS + SLOT_BITS, HASH_BITS),
        }
    }

    fn bits(self) -> u64 {
        let upper = u64::from(self.hash) << SLOT_BITS | u64::from(self.slot);
        upper << POSITION_BITS | u64::from(self.position)
    }

    /// The postings of a gram.
    pub(crate) fn range(hash: u32) -> RangeInclusive<u64> {
        let first = u64::from(hash) << (u64::BITS - HASH_BITS);
        first..=first | (u64::MAX >> HASH_BITS)
    }
}
