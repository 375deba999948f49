//! Searches a [`Memory`] for the text before a cursor.

use crate::compare::{exactly_same, follow, is_word_byte, same_before};
use crate::continuation::Behind;
use crate::grams::{GRAM_TOKENS, TOKENS_FOUND, WINDOW_GRAMS, chosen, gram, grams};
use crate::index::{Memory, Posting, Text};
use crate::tokens::{Token, tokens};
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::Path;
use std::sync::Arc;

/// The text before the cursor that is compared, in bytes. A match is not told to be longer.
pub const MATCH_BYTES_MAX: usize = 512;

/// The places of a gram that one search looks at. If a gram has more, an earlier one is tried,
/// which finds long matches only.
pub(crate) const PLACES_MAX: usize = 1024;

/// How many tokens before the cursor another gram is tried.
const TOKENS_BACK_MAX: usize = 32;

/// The text of the document itself that is searched, before and behind the cursor, in bytes.
const OWN_BYTES_MAX: usize = 64 * 1024;

/// The places of the document itself that are looked at, the nearest first.
pub(crate) const OWN_PLACES_MAX: usize = 256;

#[derive(Clone, Copy)]
pub struct Query<'a> {
    /// The name of the document. Its text is searched as it is given here, not as it was put.
    pub file: &'a str,
    /// The document before the cursor, from its beginning.
    pub before: &'a str,
    /// The document behind the cursor, to its end.
    pub after: &'a str,
    pub now_ms: u64,
    /// The most lines of a continuation.
    pub lines: usize,
    /// The most matches.
    pub count: usize,
    /// Whether a file may be quoted, by its name. Only the files of the best matches are asked for.
    pub may_quote: &'a dyn Fn(&str) -> bool,
}

impl Default for Query<'_> {
    fn default() -> Self {
        let may_quote = &|_: &str| true;
        Query { file: "", before: "", after: "", now_ms: 0, lines: 1, count: 32, may_quote }
    }
}

/// Where a match stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// In the document itself, so many lines away.
    OwnFile { lines: usize },
    /// In what the user typed, so long ago.
    Typed { age_ms: u64 },
    /// In another file. The folders that lie between the two files are counted: 0 in the same one.
    Repository { folders: usize },
}

/// A place where the text before the cursor stands as well.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    pub source: Source,
    pub file: Arc<str>,
    /// The byte of that text that corresponds to the cursor.
    pub offset: usize,
    /// How much is the same before it: bytes that are no blanks.
    pub matched: usize,
    /// How much is exactly the same, with blanks.
    pub exact: usize,
    /// How it goes on there, without what stands behind the cursor already. The first line can be
    /// empty: then it goes on in the next.
    pub text: String,
    /// The share of all places found whose line goes on in the same way, blanks aside.
    pub agreement: f32,
    /// The number of all places found.
    pub places: usize,
    /// The rest of the cursor's line stands at the end of the line there, too.
    pub rest_agrees: bool,
    /// The line below is the same there.
    pub next_line_agrees: bool,
}

impl Match {
    /// The continuation up to the end of its line.
    pub fn line(&self) -> &str {
        self.text.split('\n').next().unwrap_or_default()
    }
}

/// The end of the text before the cursor.
struct Tail<'a> {
    bytes: &'a [u8],
    /// The tokens that are whole. One that touches the cursor may go on.
    whole: Vec<Token>,
}

/// A place that fits, before it is looked at how it goes on.
struct Place<'a> {
    source: Source,
    name: Option<&'a Arc<str>>,
    text: &'a str,
    /// What is added to an offset in `text`.
    base: usize,
    end: usize,
    matched: usize,
}

impl<'a> Tail<'a> {
    fn of(before: &'a str) -> Tail<'a> {
        let from = before.len().saturating_sub(MATCH_BYTES_MAX);
        let bytes = &before.as_bytes()[from..];
        let mut whole = tokens(bytes);
        let touches = |token: &Token| {
            token.end as usize == bytes.len() && is_word_byte(bytes[token.start as usize])
        };
        if whole.last().is_some_and(touches) {
            whole.pop();
        }
        // The first token may have been cut.
        if from > 0 && !whole.is_empty() {
            whole.remove(0);
        }
        Tail { bytes, whole }
    }

    /// Where the cursor stands in `text`, and how much matches, if the token at `start` stands
    /// there at `position`.
    fn fit(&self, start: usize, text: &str, position: usize) -> Option<(usize, usize)> {
        let text = text.as_bytes();
        let end = follow(self.bytes, start, text, position)?;
        let before = same_before(self.bytes, start, text, position, MATCH_BYTES_MAX);
        Some((end, before + crate::compare::solid_bytes(&self.bytes[start..])))
    }
}

impl Memory {
    /// All places where the text before the cursor stands, the longest match first, and among equal
    /// ones the nearest.
    pub fn find(&self, query: &Query) -> Vec<Match> {
        let tail = Tail::of(query.before);
        let mut places = own_places(query, &tail);
        self.other_places(query, &tail, &mut places);
        places.sort_by(|a, b| {
            b.matched.cmp(&a.matched).then(a.source.cmp(&b.source)).then(a.end.cmp(&b.end))
        });
        let behind = Behind::of(query.after);
        let all: Vec<_> = places
            .into_iter()
            .filter_map(|place| {
                let continuation = behind.continuation(&place.text[place.end..], query.lines)?;
                Some((solid_line(&continuation.text), place, continuation))
            })
            .collect();
        let mut same: FxHashMap<&str, usize> = FxHashMap::default();
        all.iter().for_each(|(line, ..)| *same.entry(line).or_default() += 1);
        let own: Arc<str> = query.file.into();
        let mut quotable: FxHashMap<Arc<str>, bool> = FxHashMap::default();
        let mut may_quote = |name: &Arc<str>| {
            *quotable.entry(name.clone()).or_insert_with(|| (query.may_quote)(name))
        };
        let matches = all.iter().filter(|(_, place, _)| place.name.is_none_or(&mut may_quote));
        matches
            .take(query.count)
            .map(|(line, place, continuation)| Match {
                source: place.source,
                file: place.name.unwrap_or(&own).clone(),
                offset: place.base + place.end,
                matched: place.matched,
                exact: exactly_same(
                    tail.bytes,
                    &place.text.as_bytes()[..place.end],
                    MATCH_BYTES_MAX,
                ),
                text: continuation.text.clone(),
                agreement: same[line.as_str()] as f32 / all.len() as f32,
                places: all.len(),
                rest_agrees: continuation.rest_agrees,
                next_line_agrees: continuation.next_line_agrees,
            })
            .collect()
    }

    /// The places in other texts than the document itself.
    fn other_places<'a>(&'a self, query: &Query, tail: &Tail, places: &mut Vec<Place<'a>>) {
        let Some((hash, start)) = self.rare_gram(tail) else { return };
        let mut seen = FxHashSet::default();
        let postings = self.texts.runs().slices(Posting::range(hash)).flatten().take(PLACES_MAX);
        for posting in postings.map(|bits| Posting::of(*bits)) {
            let Some(text) = self.texts.get(posting.slot) else { continue };
            if text.typed_ms.is_none() && *text.name == *query.file {
                continue;
            }
            let Some((end, matched)) = tail.fit(start, &text.text, posting.position as usize)
            else {
                continue;
            };
            if seen.insert((posting.slot, end)) {
                let source = source(text, query);
                let (name, text) = (Some(&text.name), &*text.text);
                places.push(Place { source, name, text, base: 0, end, matched });
            }
        }
    }

    /// The chosen gram nearest to the cursor that is not everywhere, and where it begins in the
    /// tail.
    fn rare_gram(&self, tail: &Tail) -> Option<(u32, usize)> {
        let whole = &tail.whole;
        let grams = grams(whole);
        let mut rarest: Option<(usize, u32, usize)> = None;
        let last = grams.len().checked_sub(WINDOW_GRAMS)?;
        for first in (last.saturating_sub(TOKENS_BACK_MAX)..=last).rev() {
            let at = first + chosen(&grams[first..first + WINDOW_GRAMS]);
            let count = self.texts.runs().count(Posting::range(grams[at]));
            if rarest.is_none_or(|(least, ..)| count < least) {
                rarest = Some((count, grams[at], whole[at].start as usize));
            }
            // Every longer match has this gram, so without it there is none.
            if count <= PLACES_MAX {
                break;
            }
        }
        rarest.filter(|(count, ..)| *count > 0).map(|(_, hash, start)| (hash, start))
    }
}

/// The places in the document itself, with the last three whole tokens or more.
fn own_places<'a>(query: &Query<'a>, tail: &Tail) -> Vec<Place<'a>> {
    let Some(first) = tail.whole.len().checked_sub(GRAM_TOKENS) else { return vec![] };
    let wanted = gram(&tail.whole[first..]);
    let start = tail.whole[first].start as usize;
    let mut from = query.before.len().saturating_sub(OWN_BYTES_MAX);
    while !query.before.is_char_boundary(from) {
        from += 1;
    }
    let mut to = query.after.len().min(OWN_BYTES_MAX);
    while !query.after.is_char_boundary(to) {
        to -= 1;
    }
    let (before, after) = (&query.before[from..], &query.after[..to]);
    let mut places = vec![];
    let mut look = |text: &'a str, base: usize, positions: &mut dyn Iterator<Item = usize>| {
        for position in positions.take(OWN_PLACES_MAX) {
            let Some((end, matched)) = tail.fit(start, text, position) else { continue };
            // The cursor itself is no such place.
            if base + end != query.before.len() {
                places.push((text, base, end, matched));
            }
        }
    };
    let found = |text: &str| -> Vec<usize> {
        let tokens = tokens(text.as_bytes());
        let fits = |(at, hash): (usize, u32)| (hash == wanted).then(|| tokens[at].start as usize);
        grams(&tokens).into_iter().enumerate().filter_map(fits).collect()
    };
    look(before, from, &mut found(before).into_iter().rev());
    look(after, query.before.len(), &mut found(after).into_iter());
    let lines = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count();
    let away = |text: &str, base: usize, end: usize| {
        if base == query.before.len() { lines(&text[..end]) } else { lines(&text[end..]) }
    };
    places
        .into_iter()
        .map(|(text, base, end, matched)| Place {
            source: Source::OwnFile { lines: away(text, base, end) },
            name: None,
            text,
            base,
            end,
            matched,
        })
        .collect()
}

fn source(text: &Text, query: &Query) -> Source {
    match text.typed_ms {
        Some(at_ms) => Source::Typed { age_ms: query.now_ms.saturating_sub(at_ms) },
        None => Source::Repository { folders: folders_between(&text.name, query.file) },
    }
}

/// The number of folders that one goes up and down from one file to another.
fn folders_between(a: &str, b: &str) -> usize {
    let folders = |path| Path::new(path).parent().into_iter().flat_map(Path::components);
    let shared = folders(a).zip(folders(b)).take_while(|(a, b)| a == b).count();
    folders(a).count() + folders(b).count() - 2 * shared
}

/// The first line without its blanks, by which continuations are compared.
fn solid_line(text: &str) -> String {
    let line = text.split('\n').find(|line| !line.trim().is_empty()).unwrap_or_default();
    line.split_whitespace().collect()
}

const _: () = assert!(TOKENS_FOUND > GRAM_TOKENS);
