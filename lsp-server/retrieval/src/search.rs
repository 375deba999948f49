//! Ranks the chunks of an [`Index`] by BM25, and chooses the best that are no copies.

use crate::index::{File, FileChunk, Index, Posting, term_hash};
use crate::shingles::Shingles;
use crate::terms::each_term;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::Arc;

/// BM25's parameters with their usual values: how soon repetitions of a term stop to count, and how
/// much the length of a chunk counts.
pub const K1: f32 = 1.2;
pub const B: f32 = 0.75;

/// The terms of a query that are looked at. Later ones are left out.
const QUERY_TERMS_MAX: usize = 256;

/// The terms that chunks are scored by: the rarest of the query.
pub const SCORED_TERMS_MAX: usize = 32;

/// The postings that one search reads. Once so many are read, the terms that are left, which are
/// the most common ones, do not count.
pub const POSTINGS_READ_MAX: usize = 100_000;

/// The best chunks that are compared with each other, for each one that is wanted.
const CANDIDATES_EACH: usize = 8;

/// What is searched for, and what is not wanted.
#[derive(Clone, Copy)]
pub struct Query<'a> {
    /// The text whose names are searched for: what stands around the cursor.
    pub text: &'a str,
    /// The text that the prompt shows anyway. A chunk that stands in it is not found.
    pub window: &'a str,
    /// The file that is being edited, and the lines of it that the prompt shows anyway.
    pub shown: Option<(&'a str, &'a Range<usize>)>,
    /// The number of chunks that are wanted.
    pub count: usize,
    /// The most chunks of one file.
    pub a_file: usize,
    /// Whether a file may be quoted, by its name. Only the files of the best chunks are asked for.
    pub may_quote: &'a dyn Fn(&str) -> bool,
}

impl Default for Query<'_> {
    fn default() -> Self {
        Query {
            text: "",
            window: "",
            shown: None,
            count: 1,
            a_file: usize::MAX,
            may_quote: &|_| true,
        }
    }
}

/// A chunk that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// BM25's score. It grows with the number of the query's terms, so it can be compared only
    /// within one search.
    pub score: f32,
    /// The score as a share of what a chunk with all scored terms has about, which can be compared
    /// between searches.
    pub share: f32,
    /// The scored terms that the chunk has.
    pub terms: usize,
    pub file: Arc<str>,
    pub lines: Range<usize>,
    pub text: String,
}

#[derive(Default)]
struct Score {
    score: f32,
    terms: usize,
}

/// A term of the query, and what it is worth.
struct ScoredTerm {
    hash: u32,
    idf: f32,
}

impl Index {
    /// The best chunks, the best first.
    pub fn search(&self, query: &Query) -> Vec<Hit> {
        if query.count == 0 || self.chunks == 0 {
            return vec![];
        }
        let terms = self.rarest_terms(query.text);
        let best_possible: f32 = terms.iter().map(|term| term.idf * (K1 + 1.0)).sum();
        let scores = self.scores(&terms);
        let mut ranked: Vec<((u32, u32), Score)> = scores.into_iter().collect();
        // The place decides between equal scores, so that a search always answers the same.
        let order = |a: &((u32, u32), Score), b: &((u32, u32), Score)| {
            b.1.score.total_cmp(&a.1.score).then(a.0.cmp(&b.0))
        };
        let candidates = query.count.saturating_mul(CANDIDATES_EACH);
        if ranked.len() > candidates {
            ranked.select_nth_unstable_by(candidates, order);
            ranked.truncate(candidates);
        }
        ranked.sort_unstable_by(order);
        let ranked = ranked.into_iter().filter_map(|((slot, chunk), score)| {
            let file = self.files.get(slot)?;
            Some((file, file.chunks.get(chunk as usize)?, score))
        });
        choose(query, ranked)
            .into_iter()
            .map(|(file, chunk, score)| Hit {
                score: score.score,
                share: score.score / best_possible.max(f32::MIN_POSITIVE),
                terms: score.terms,
                file: file.name.clone(),
                lines: chunk.lines.start as usize..chunk.lines.end as usize,
                text: file.text_of(chunk).to_owned(),
            })
            .collect()
    }

    /// The rarest terms of a text that are in the index, the rarest first.
    fn rarest_terms(&self, text: &str) -> Vec<ScoredTerm> {
        let mut seen = FxHashSet::default();
        each_term(text, |term| {
            if seen.len() < QUERY_TERMS_MAX {
                seen.insert(term_hash(term));
            }
        });
        let count = |hash: u32| (self.files.runs().count(Posting::range(hash)), hash);
        let mut counted: Vec<(usize, u32)> = seen.into_iter().map(count).collect();
        counted.retain(|(count, _)| *count > 0);
        counted.sort_unstable();
        let mut left = POSTINGS_READ_MAX;
        let mut terms = vec![];
        for (count, hash) in counted {
            if terms.len() == SCORED_TERMS_MAX || count > left {
                break;
            }
            left -= count;
            let chunks_with_it = self.live(hash).count();
            if chunks_with_it > 0 {
                terms.push(ScoredTerm { hash, idf: idf(self.chunks, chunks_with_it) });
            }
        }
        terms
    }

    /// The postings of a term in files that are still there.
    fn live(&self, term: u32) -> impl Iterator<Item = (Posting, &File)> {
        self.files.runs().slices(Posting::range(term)).flatten().filter_map(|bits| {
            let posting = Posting::of(*bits);
            Some((posting, self.files.get(posting.slot)?))
        })
    }

    fn scores(&self, terms: &[ScoredTerm]) -> FxHashMap<(u32, u32), Score> {
        let mean_terms = self.terms as f32 / self.chunks.max(1) as f32;
        let mut scores: FxHashMap<(u32, u32), Score> = FxHashMap::default();
        for term in terms {
            for (posting, file) in self.live(term.hash) {
                let length = file.chunks[posting.chunk as usize].terms;
                let score = scores.entry((posting.slot, posting.chunk)).or_default();
                score.score += term.idf * weight(posting.times, length, mean_terms);
                score.terms += 1;
            }
        }
        scores
    }
}

/// How rare a term is (Robertson and Spärck Jones, with one added so that it is never negative).
pub(crate) fn idf(chunks: usize, with_it: usize) -> f32 {
    let (chunks, with_it) = (chunks as f32, with_it as f32);
    (1.0 + (chunks - with_it + 0.5) / (with_it + 0.5)).ln()
}

/// What a term that a chunk has `times` times is worth, before its rarity.
pub(crate) fn weight(times: u32, length: u32, mean_length: f32) -> f32 {
    let times = times as f32;
    let norm = 1.0 - B + B * length as f32 / mean_length.max(f32::MIN_POSITIVE);
    times * (K1 + 1.0) / (times + K1 * norm)
}

type Candidate<'a> = (&'a File, &'a FileChunk, Score);

/// Takes the best chunks that may be quoted, that the prompt does not show anyway, and that are no
/// near copies of the window or of each other.
fn choose<'a>(query: &Query, ranked: impl Iterator<Item = Candidate<'a>>) -> Vec<Candidate<'a>> {
    let window = Shingles::of(query.window);
    let mut quotable: FxHashMap<&str, bool> = FxHashMap::default();
    let mut chosen: Vec<Candidate> = vec![];
    let mut kept: Vec<Shingles> = vec![];
    for candidate in ranked {
        if chosen.len() == query.count {
            break;
        }
        let (file, chunk, _) = &candidate;
        let is_shown = query.shown.is_some_and(|(name, lines)| {
            *file.name == *name
                && (chunk.lines.start as usize) < lines.end
                && lines.start < chunk.lines.end as usize
        });
        let of_this_file = chosen.iter().filter(|(other, ..)| other.name == file.name).count();
        if is_shown || of_this_file >= query.a_file {
            continue;
        }
        let shingles = Shingles::of(file.text_of(chunk));
        if shingles.is_within(&window) || kept.iter().any(|other| shingles.is_near_copy(other)) {
            continue;
        }
        if *quotable.entry(&file.name).or_insert_with(|| (query.may_quote)(&file.name)) {
            kept.push(shingles);
            chosen.push(candidate);
        }
    }
    chosen
}
