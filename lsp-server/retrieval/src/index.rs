//! The inverted index: which terms are in which chunk of which file, and how often.
//!
//! A posting has 64 bits: the hash of the term, the slot of the file, the number of the chunk in
//! the file, and how often the chunk has the term. A file that changes gets a new slot. The
//! postings of the old slot are skipped from then on, and removed once they are many.

use crate::chunks::cut;
use crate::terms::each_term;
use postings::Slots;
use rustc_hash::FxHashMap;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// The bits of a posting, from the lowest.
const TIMES_BITS: u32 = 5;
const CHUNK_BITS: u32 = 10;
const SLOT_BITS: u32 = 17;
const TERM_BITS: u32 = 32;
const _: () = assert!(TIMES_BITS + CHUNK_BITS + SLOT_BITS + TERM_BITS == u64::BITS);

/// How often a term counts in a chunk at most. BM25 gives nearly nothing for more.
pub(crate) const TIMES_MAX: u32 = (1 << TIMES_BITS) - 1;

/// The chunks of a file that are in the index. A file with more was written by a machine.
pub const CHUNKS_A_FILE_MAX: usize = 1 << CHUNK_BITS;

const SLOTS_MAX: usize = 1 << SLOT_BITS;

/// The memory of a file's entries in the tables, and of its counters, in bytes: an estimate.
const ENTRY_BYTES: usize = 64;

/// How much an index holds at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub files: usize,
    /// The bytes of all texts together.
    pub text_bytes: usize,
    /// The longest text, in bytes.
    pub file_bytes: usize,
    pub postings: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { files: 20_000, text_bytes: 48 << 20, file_bytes: 1 << 20, postings: 12 << 20 }
    }
}

/// Why a file is not in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotIndexed {
    /// The file is longer than [`Limits::file_bytes`].
    TooLong,
    /// The index holds as much as it may.
    Full,
}

/// What an index holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    pub files: usize,
    pub chunks: usize,
    pub text_bytes: usize,
    /// The memory of everything but the texts.
    pub index_bytes: usize,
}

#[derive(Debug)]
pub(crate) struct File {
    pub(crate) name: Arc<str>,
    pub(crate) text: Arc<str>,
    pub(crate) chunks: Box<[FileChunk]>,
}

#[derive(Debug)]
pub(crate) struct FileChunk {
    pub(crate) lines: Range<u32>,
    pub(crate) bytes: Range<u32>,
    /// The number of terms, with repetitions.
    pub(crate) terms: u32,
}

impl File {
    pub(crate) fn text_of(&self, chunk: &FileChunk) -> &str {
        &self.text[chunk.bytes.start as usize..chunk.bytes.end as usize]
    }
}

/// The chunks of many files, searchable by their terms.
#[derive(Debug, Clone)]
pub struct Index {
    limits: Limits,
    pub(crate) files: Slots<File>,
    slots: FxHashMap<Arc<str>, u32>,
    text_bytes: usize,
    pub(crate) chunks: usize,
    /// The terms of all chunks, with repetitions.
    pub(crate) terms: u64,
}

impl Default for Index {
    fn default() -> Index {
        Index::new(Limits::default())
    }
}

impl Index {
    pub fn new(limits: Limits) -> Index {
        Index {
            limits,
            files: Slots::new(SLOTS_MAX, |posting| Posting::of(posting).slot),
            slots: FxHashMap::default(),
            text_bytes: 0,
            chunks: 0,
            terms: 0,
        }
    }

    /// Adds a file, or replaces what was known of it. A file that is not taken is removed if it was
    /// there.
    ///
    /// # Errors
    /// The file is too long, or the index is full.
    pub fn put(&mut self, name: &str, text: Arc<str>) -> Result<(), NotIndexed> {
        self.remove(name);
        if text.len() > self.limits.file_bytes.min(u32::MAX as usize) {
            return Err(NotIndexed::TooLong);
        }
        if self.is_full(text.len()) {
            // The room may be taken by what was removed.
            self.purge();
        }
        if self.is_full(text.len()) {
            return Err(NotIndexed::Full);
        }
        let (bytes, name): (usize, Arc<str>) = (text.len(), name.into());
        let (mut chunks, mut terms) = (0, 0);
        let slot = self.files.insert(|slot| {
            let (cut, postings) = chunks_of(&text, slot);
            (chunks, terms) = (cut.len(), terms_of(&cut));
            (File { name: name.clone(), text, chunks: cut }, postings)
        });
        let slot = slot.ok_or(NotIndexed::Full)?;
        self.text_bytes += bytes;
        self.chunks += chunks;
        self.terms += terms;
        self.slots.insert(name, slot);
        Ok(())
    }

    fn is_full(&self, more_bytes: usize) -> bool {
        self.slots.len() >= self.limits.files
            || self.text_bytes + more_bytes > self.limits.text_bytes
            || self.files.runs().len() >= self.limits.postings
    }

    /// Removes a file; answers whether it was there. None of its text is found from now on.
    pub fn remove(&mut self, name: &str) -> bool {
        let Some(slot) = self.slots.remove(name) else { return false };
        let Index { files, text_bytes, chunks, terms, .. } = self;
        files.remove(slot, |file| {
            *text_bytes -= file.text.len();
            *chunks -= file.chunks.len();
            *terms -= terms_of(&file.chunks);
        });
        true
    }

    /// Clears away the postings of removed files. They are hashes without a text, and no search
    /// looks at them. This happens by itself once they are many.
    pub fn purge(&mut self) {
        self.files.purge();
    }

    pub fn contains(&self, name: &str) -> bool {
        self.slots.contains_key(name)
    }

    /// The text of a file as the index has it.
    pub fn text(&self, name: &str) -> Option<Arc<str>> {
        let slot = *self.slots.get(name)?;
        self.files.get(slot).map(|file| file.text.clone())
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.slots.keys().map(AsRef::as_ref)
    }

    pub fn stats(&self) -> Stats {
        let name = |name: &Arc<str>| name.len() + size_of::<File>() + ENTRY_BYTES;
        let names: usize = self.slots.keys().map(name).sum();
        Stats {
            files: self.slots.len(),
            chunks: self.chunks,
            text_bytes: self.text_bytes,
            index_bytes: self.files.runs().bytes() + self.chunks * size_of::<FileChunk>() + names,
        }
    }
}

fn terms_of(chunks: &[FileChunk]) -> u64 {
    chunks.iter().map(|chunk| u64::from(chunk.terms)).sum()
}

/// Cuts a text into chunks, and makes a posting for each term of each chunk.
fn chunks_of(text: &str, slot: u32) -> (Box<[FileChunk]>, Vec<u64>) {
    let mut postings = vec![];
    let mut times: FxHashMap<u32, u32> = FxHashMap::default();
    let mut chunks = vec![];
    for (number, chunk) in cut(text).into_iter().take(CHUNKS_A_FILE_MAX).enumerate() {
        let mut terms = 0;
        each_term(&text[chunk.bytes.clone()], |term| {
            terms += 1;
            *times.entry(term_hash(term)).or_default() += 1;
        });
        for (term, times) in times.drain() {
            let times = times.min(TIMES_MAX);
            postings.push(Posting { term, slot, chunk: number as u32, times }.bits());
        }
        chunks.push(FileChunk {
            lines: chunk.lines.start as u32..chunk.lines.end as u32,
            bytes: chunk.bytes.start as u32..chunk.bytes.end as u32,
            terms,
        });
    }
    (chunks.into(), postings)
}

pub(crate) fn term_hash(term: &[u8]) -> u32 {
    (postings::hash(term) >> (u64::BITS - TERM_BITS)) as u32
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Posting {
    term: u32,
    pub(crate) slot: u32,
    pub(crate) chunk: u32,
    pub(crate) times: u32,
}

impl Posting {
    pub(crate) fn of(bits: u64) -> Posting {
        let field = |from: u32, bits_wide: u32| (bits >> from & ((1 << bits_wide) - 1)) as u32;
        Posting {
            times: field(0, TIMES_BITS),
            chunk: field(TIMES_BITS, CHUNK_BITS),
            slot: field(TIMES_BITS + CHUNK_BITS, SLOT_BITS),
            term: field(TIMES_BITS + CHUNK_BITS + SLOT_BITS, TERM_BITS),
        }
    }

    fn bits(self) -> u64 {
        let upper = u64::from(self.term) << SLOT_BITS | u64::from(self.slot);
        (upper << CHUNK_BITS | u64::from(self.chunk)) << TIMES_BITS | u64::from(self.times)
    }

    /// The postings of a term.
    pub(crate) fn range(term: u32) -> RangeInclusive<u64> {
        let first = u64::from(term) << (u64::BITS - TERM_BITS);
        first..=first | (u64::MAX >> TERM_BITS)
    }
}
