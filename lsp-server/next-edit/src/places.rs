//! Finds where rules come next, in the order in which a person would go: below the cursor, then
//! from the file's start, then in the next file.

mod edit;

use crate::language::Language;
use crate::model::{Hunk, Place};
use crate::pattern::{Lexed, Part, Pattern};
use crate::rules::{Rule, RuleId, RuleKind, id};
use aho_corasick::{AhoCorasick, MatchKind};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// The largest file that is searched, in bytes.
pub const FILE_BYTES_MAX: usize = 1024 * 1024;

/// How often one search looks at a word that a rule has.
pub const HITS_MAX: usize = 8_192;

/// The files that one search cuts into tokens, to know where their comments are.
pub const LEXED_FILES_MAX: usize = 6;

/// The longest line that is looked at, in bytes. Longer lines are not written by people.
pub const LINE_BYTES_MAX: usize = 1024;

/// The places of one rule in one file that are looked at.
const PLACES_MAX: usize = 512;

/// The same in a file in which no rule has an example.
const PLACES_ELSEWHERE: usize = 8;

/// How many lines from the latest example in its file a place may be, for each example.
pub const LINES_AWAY_MAX: usize = 80;

/// A file as it is now.
#[derive(Debug, Clone, Copy)]
pub struct File<'a> {
    pub name: &'a str,
    pub text: &'a str,
    pub language: &'static Language,
}

#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// The file with the cursor first, then the others in the order in which a person would go.
    pub files: &'a [File<'a>],
    /// The byte of the first file at which the cursor is.
    pub cursor: usize,
    /// The most edits that are wanted.
    pub count: usize,
}

/// An edit that would continue what the user does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextEdit {
    pub file: Arc<str>,
    /// The bytes that are replaced, and the line of the first one.
    pub range: Range<usize>,
    pub line: usize,
    /// What stands there now.
    pub old: String,
    pub new: String,
    pub rule: RuleId,
    pub kind: RuleKind,
    /// The number of times that the user has made such an edit.
    pub support: usize,
    /// The whole line at which it begins, by which a place is known again.
    pub(crate) at: String,
    /// The whole lines that an edit of a model replaces, and those that it writes.
    pub(crate) whole: Option<[String; 2]>,
}

impl NextEdit {
    /// The edit that writes `new` over these bytes of a file, which begin in this line.
    pub(crate) fn of(
        file: &File,
        (range, line): (Range<usize>, usize),
        new: String,
        (rule, kind, support): (RuleId, RuleKind, usize),
    ) -> NextEdit {
        NextEdit {
            file: file.name.into(),
            line,
            old: file.text[range.clone()].to_owned(),
            new,
            rule,
            kind,
            support,
            at: line_around(file.text, range.start).to_owned(),
            whole: None,
            range,
        }
    }

    /// The edit that a model makes of a hunk of its answer, and at which place it was asked.
    pub fn by_model(file: &File, hunk: &Hunk, place: Place) -> NextEdit {
        let rule = (id((RuleKind::Model, place)), RuleKind::Model, 1);
        let place = (hunk.range.clone(), hunk.lines.start);
        let edit = NextEdit::of(file, place, hunk.new.clone(), rule);
        NextEdit { whole: Some(hunk.whole(file.text)), ..edit }
    }

    /// Returns true if what is to be replaced still stands there. Ask before you apply it: the file
    /// may have changed since.
    pub fn fits(&self, text: &str) -> bool {
        text.get(self.range.clone()) == Some(self.old.as_str())
            && line_around(text, self.range.start) == self.at
    }
}

/// The place where a rule's pattern fits.
struct Found {
    rule: usize,
    pattern: usize,
    edit: NextEdit,
}

/// Searches for the words of some rules at once.
struct Search<'a> {
    rules: &'a [Rule],
    words: AhoCorasick,
    /// For each word the rules and patterns that it belongs to, and its part there.
    owners: Vec<Vec<(usize, usize, usize)>>,
    hits_left: usize,
    lexed_files_left: usize,
}

/// The edits that continue the rules, in the order in which a person would go, and in one file
/// those of the likelier rule first.
pub(crate) fn next_edits(
    rules: &[Rule],
    query: &Query,
    is_wanted: impl Fn(&NextEdit) -> bool,
) -> Vec<NextEdit> {
    let Some(mut search) = Search::of(rules) else { return vec![] };
    let mut known: FxHashMap<usize, Vec<Found>> = FxHashMap::default();
    for (number, file) in query.files.iter().enumerate() {
        if number == 0 || rules.iter().any(|rule| rule.has_example_in(file.name)) {
            known.insert(number, search.places(file, PLACES_MAX));
        }
    }
    let patterns: Vec<Option<usize>> =
        (0..rules.len()).map(|rule| pattern(rule, &rules[rule], query, &known)).collect();
    if patterns.iter().all(Option::is_none) {
        return vec![];
    }
    let mut edits: Vec<NextEdit> = vec![];
    for (number, file) in query.files.iter().enumerate() {
        if edits.len() >= query.count {
            break;
        }
        let mut places =
            known.remove(&number).unwrap_or_else(|| search.places(file, PLACES_ELSEWHERE));
        let cursors: Vec<usize> = match number {
            0 => rules.iter().map(|rule| cursor(rule, query)).collect(),
            _ => vec![0; rules.len()],
        };
        places.sort_by_key(|place| {
            let start = place.edit.range.start;
            (place.rule, start < cursors[place.rule], start)
        });
        for Found { rule, pattern, edit } in places {
            let is_chosen = patterns[rule] == Some(pattern) && is_near(&rules[rule], &edit);
            let reaches = rules[rule].is_firm || rules[rule].has_example_in(&edit.file);
            let is_elsewhere = |other: &NextEdit| {
                other.file != edit.file
                    || other.range.end < edit.range.start
                    || edit.range.end < other.range.start
            };
            let has_room = edits.len() < query.count && edits.iter().all(is_elsewhere);
            if is_chosen && reaches && has_room && is_wanted(&edit) {
                edits.push(edit);
            }
        }
    }
    edits
}

/// From where on in the first file a place of the rule counts as below the cursor: from the start
/// of its line, if the user has only come there. In the line of an example, what stands before the
/// cursor was passed by.
fn cursor(rule: &Rule, query: &Query) -> usize {
    let Some(file) = query.files.first() else { return query.cursor };
    let start = line_range(file.text, query.cursor).start;
    let line = file.text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count();
    if rule.example_lines(file.name).contains(&line) { query.cursor } else { start }
}

/// Returns true if a place is not far from the latest example in its file. What is far away is
/// mostly something else with the same name.
fn is_near(rule: &Rule, edit: &NextEdit) -> bool {
    let lines = rule.example_lines(&edit.file);
    let away = lines.last().map_or(0, |line| line.abs_diff(edit.line));
    away <= LINES_AWAY_MAX * rule.support
}

/// The first pattern of a rule that fits no place that the user passed by. None if all do.
fn pattern(
    number: usize,
    rule: &Rule,
    query: &Query,
    known: &FxHashMap<usize, Vec<Found>>,
) -> Option<usize> {
    (0..rule.patterns.len()).find(|pattern| {
        known.iter().all(|(file, places)| {
            let examples = rule.example_lines(query.files[*file].name);
            let places = places.iter().filter(|p| p.rule == number && p.pattern == *pattern);
            !places.into_iter().any(|place| is_passed_by(place.edit.line, &examples))
        })
    })
}

/// Returns true if the user passed by this line without the edit, on the way from one example to
/// another. Who goes down through a file has passed by all that is above.
fn is_passed_by(line: usize, examples: &[usize]) -> bool {
    let (Some(first), Some(last)) = (examples.iter().min(), examples.iter().max()) else {
        return false;
    };
    let goes_down = examples.is_sorted();
    line < *last && (goes_down || line > *first) && !examples.contains(&line)
}

impl<'a> Search<'a> {
    fn of(rules: &'a [Rule]) -> Option<Search<'a>> {
        let mut words: Vec<&str> = vec![];
        let mut owners: Vec<Vec<(usize, usize, usize)>> = vec![];
        for (number, rule) in rules.iter().enumerate() {
            for (pattern, (anchor, word)) in
                rule.patterns.iter().filter_map(Pattern::needle).enumerate()
            {
                let known = words.iter().position(|known| *known == word);
                let at = known.unwrap_or_else(|| {
                    words.push(word);
                    owners.push(vec![]);
                    words.len() - 1
                });
                owners[at].push((number, pattern, anchor));
            }
        }
        let mut builder = AhoCorasick::builder();
        let words = builder.match_kind(MatchKind::LeftmostLongest).build(words).ok()?;
        let (hits_left, lexed_files_left) = (HITS_MAX, LEXED_FILES_MAX);
        let search = Search { rules, words, owners, hits_left, lexed_files_left };
        (!search.owners.is_empty()).then_some(search)
    }

    /// The places of a file, from its start: for each rule at most this many.
    fn places(&mut self, file: &File, most: usize) -> Vec<Found> {
        let mut places: Vec<Found> = vec![];
        if file.text.len() > FILE_BYTES_MAX {
            return places;
        }
        let mut counts = vec![0; self.rules.len()];
        // The file is cut into tokens only if one of its lines would do, and only as far as that.
        let mut lexed: Option<Lexed> = None;
        for hit in self.words.find_iter(file.text) {
            if !is_whole_word(file.text, hit.range()) {
                continue;
            }
            if self.hits_left == 0 || counts.iter().all(|count| *count >= most) {
                break;
            }
            self.hits_left -= 1;
            for (rule, number, anchor) in &self.owners[hit.pattern()] {
                let pattern = &self.rules[*rule].patterns[*number];
                if counts[*rule] >= most
                    || !has_neighbours(file.text, hit.range(), pattern, *anchor)
                {
                    continue;
                }
                if lexed.is_none() && !fits_line(file, hit.start(), pattern, *anchor) {
                    continue;
                }
                if lexed.is_none() && self.lexed_files_left == 0 {
                    return places;
                }
                let lexed = lexed.get_or_insert_with(|| {
                    self.lexed_files_left -= 1;
                    Lexed::begun(file.text, file.language)
                });
                lexed.reach(hit.start());
                let Some((range, new)) =
                    self.written(*rule, pattern, lexed, hit.start(), *anchor, file)
                else {
                    continue;
                };
                counts[*rule] += 1;
                let line = lexed.line(range.start);
                let edit = self.edit(*rule, file, (range, line), new);
                add(&mut places, Found { rule: *rule, pattern: *number, edit }, file);
            }
        }
        places
    }

    /// Returns what the rule does where its pattern's word stands at this byte.
    fn written(
        &self,
        rule: usize,
        pattern: &Pattern,
        lexed: &Lexed,
        at: usize,
        anchor: usize,
        file: &File,
    ) -> Option<(Range<usize>, String)> {
        if line_range(file.text, at).len() > LINE_BYTES_MAX {
            return None;
        }
        let spans = pattern.at(lexed, anchor, lexed.token_at(at)?)?;
        edit::written(&self.rules[rule], pattern, lexed, &spans, file.language)
    }

    fn edit(
        &self,
        rule: usize,
        file: &File,
        (range, line): (Range<usize>, usize),
        new: String,
    ) -> NextEdit {
        let rule = &self.rules[rule];
        NextEdit::of(file, (range, line), new, (rule.id, rule.kind, rule.support))
    }
}

/// Adds a place. Several places of a rule in one line become one edit.
fn add(places: &mut Vec<Found>, place: Found, file: &File) {
    let same_line = places.iter_mut().rev().take_while(|other| other.edit.line == place.edit.line);
    let same = same_line.into_iter().find(|other| {
        let is_alike = other.rule == place.rule && other.pattern == place.pattern;
        is_alike && !other.edit.old.contains('\n')
    });
    let Some(other) = same else { return places.push(place) };
    let (first, second) = (&other.edit.range, &place.edit.range);
    if first.end > second.start || place.edit.old.contains('\n') {
        return;
    }
    let between = &file.text[first.end..second.start];
    other.edit.new = format!("{}{between}{}", other.edit.new, place.edit.new);
    other.edit.range = first.start..second.end;
    other.edit.old = file.text[other.edit.range.clone()].to_owned();
}

/// Returns true if a pattern fits the line, if one does not look at what is above it.
fn fits_line(file: &File, at: usize, pattern: &Pattern, anchor: usize) -> bool {
    let line = line_range(file.text, at);
    if line.len() > LINE_BYTES_MAX {
        return false;
    }
    let alone = Lexed::of_line(&file.text[line.clone()], file.language);
    let token = alone.token_at(at - line.start);
    token.is_some_and(|token| pattern.at(&alone, anchor, token).is_some())
}

/// Returns true if the words next to this one may be those of the pattern: a quick look before all
/// else.
fn has_neighbours(text: &str, word: Range<usize>, pattern: &Pattern, anchor: usize) -> bool {
    let blank = [' ', '\t'];
    let before = anchor.checked_sub(1).and_then(|at| pattern.parts.get(at));
    let fits_before = match before {
        Some(Part::Word(word_before, _)) => {
            text[..word.start].trim_end_matches(blank).ends_with(&**word_before)
        }
        _ => true,
    };
    let fits_behind = match pattern.parts.get(anchor + 1) {
        Some(Part::Word(word_behind, _)) => {
            text[word.end..].trim_start_matches(blank).starts_with(&**word_behind)
        }
        _ => true,
    };
    fits_before && fits_behind
}

/// Returns true if a word is not just a part of a longer one.
fn is_whole_word(text: &str, range: Range<usize>) -> bool {
    let is_word = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'$')
    };
    let bytes = text.as_bytes();
    let before = range.start.checked_sub(1).and_then(|at| bytes.get(at));
    !(is_word(bytes.get(range.start)) && is_word(before)
        || is_word(bytes.get(range.end - 1)) && is_word(bytes.get(range.end)))
}

/// The line with this byte, without its line break.
fn line_range(text: &str, at: usize) -> Range<usize> {
    let start = text[..at].rfind('\n').map_or(0, |found| found + 1);
    let end = text[at..].find('\n').map_or(text.len(), |found| at + found);
    start..end
}

fn line_around(text: &str, at: usize) -> &str {
    &text[line_range(text, at)]
}
