//! Chooses the other code that a prompt shows: pieces of the documents the user works in, including
//! this one, that share names with the text around the cursor.
//!
//! A piece is worth more, the more names it shares with that text and the rarer these names are
//! among all pieces (inverse document frequency). Its worth is compared with the room that it
//! takes. A choice stays until another one is much better: it stands at the beginning of the
//! prompt, so exchanging it means to compute the whole prompt again.

mod pieces;

use crate::document::{Document, Source};
use crate::prompt::{Excerpt, PromptContext};
use pieces::{Piece, names, names_near, pieces};
use ropey::Rope;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Documents whose pieces are kept: those the user worked in last.
const DOCUMENTS: usize = 24;

/// The longest document that is cut into pieces, in characters. Longer ones are mostly written by
/// machines.
pub const DOCUMENT_CHARS: usize = 200_000;

/// Names that a piece must share to be shown.
const SHARED_MIN: usize = 2;

/// Factor on the worth of a piece for each document that the user worked in more recently.
const FADING: f32 = 0.95;

/// Factor by which another choice must be worth more to replace the one before.
const MUCH_BETTER: f32 = 1.5;

/// The pieces of the documents the user worked in.
#[derive(Default)]
pub struct RelatedCode {
    /// The documents by path, or by URI where there is no file.
    documents: HashMap<String, KnownDocument>,
    /// A counter that grows with each visit of a document.
    now: u64,
}

#[derive(Default)]
struct KnownDocument {
    /// The counter at the last visit. It is 0 if the user was never in the document.
    used_at: u64,
    language: String,
    /// True if a secret stood in the document. What was near one is quoted nowhere.
    held_secret: bool,
    /// The text that the pieces were cut from.
    cut_from: Option<Rope>,
    pieces: Vec<Piece>,
}

impl KnownDocument {
    fn source(&self, path: &str) -> Source {
        Source { path: path.to_owned(), language: self.language.clone() }
    }
}

/// A piece that a prompt may show.
struct Candidate<'a> {
    worth: f32,
    used_at: u64,
    path: &'a str,
    language: &'a str,
    piece: &'a Piece,
}

/// The cursor that a prompt is built for.
pub struct PromptLocation<'a> {
    pub document: &'a Document,
    pub cursor: usize,
    /// The characters of the document that the prompt shows anyway.
    pub window: Range<usize>,
}

impl RelatedCode {
    /// Notes that the user works in this document.
    pub fn visit(&mut self, source: &Source) {
        self.now += 1;
        let is_new = !self.documents.contains_key(&source.path);
        let known = self.documents.entry(source.path.clone()).or_default();
        known.used_at = self.now;
        known.language.clone_from(&source.language);
        if is_new {
            self.evict_oldest();
        }
    }

    /// The documents whose pieces are kept.
    pub fn sources(&self) -> impl Iterator<Item = Source> {
        let source = |(path, known): (&String, &KnownDocument)| known.source(path);
        self.documents.iter().map(source)
    }

    /// Notes that a secret stood in a document.
    pub fn held_secret(&mut self, path: &str) {
        if let Some(known) = self.documents.get_mut(path) {
            known.held_secret = true;
            known.pieces.clear();
        }
    }

    /// Returns true if a secret is known to have stood in a document.
    pub fn has_held_secret(&self, path: &str) -> bool {
        self.documents.get(path).is_some_and(|known| known.held_secret)
    }

    /// Adds a file that one of the documents imports, although the user was not in it. Returns
    /// whether it is a new one.
    pub fn add(&mut self, document: &Document, may_show: &dyn Fn(&str) -> bool) -> bool {
        let is_new = !self.documents.contains_key(&document.path);
        if is_new {
            self.documents.insert(document.path.clone(), KnownDocument::default());
            self.update(document, may_show);
            self.evict_oldest();
        }
        is_new
    }

    fn evict_oldest(&mut self) {
        while self.documents.len() > DOCUMENTS {
            let oldest = self.documents.iter().min_by_key(|(_, known)| known.used_at);
            let Some(oldest) = oldest.map(|(path, _)| path.clone()) else { return };
            self.documents.remove(&oldest);
        }
    }

    /// Cuts a document into pieces anew if it has changed. `may_show` returns false if a secret
    /// stands in a text.
    pub fn update(&mut self, document: &Document, may_show: &dyn Fn(&str) -> bool) {
        let Some(known) = self.documents.get_mut(&document.path) else { return };
        let text = &document.text;
        if known.cut_from.as_ref().is_some_and(|before| before.is_instance(text)) {
            return;
        }
        known.cut_from = Some(text.clone());
        known.language.clone_from(&document.language);
        let whole = (text.len_chars() <= DOCUMENT_CHARS).then(|| text.to_string());
        known.held_secret |= whole.as_ref().is_some_and(|whole| !may_show(whole));
        let whole = whole.filter(|_| !known.held_secret);
        known.pieces = whole.map_or_else(Vec::new, |whole| pieces(&whole));
    }

    /// Chooses the excerpts to show for a location, at most `budget` characters of them.
    /// `is_ignored` returns true if a document must not be quoted.
    pub fn choose(
        &self,
        location: &PromptLocation,
        budget: usize,
        is_ignored: &dyn Fn(&Source) -> bool,
        before: Option<&Arc<PromptContext>>,
    ) -> Option<Arc<PromptContext>> {
        let wanted = names_near(&location.document.text, location.cursor);
        let rarity = self.rarity(&wanted);
        let candidates = self.candidates(location, is_ignored, &wanted, &rarity);
        let chosen = fill_budget(candidates, budget);
        let total: f32 = chosen.iter().map(|candidate| candidate.worth).sum();
        let is_still_good = |before: &&Arc<PromptContext>| {
            let excerpts = before.excerpts.iter();
            let worths =
                excerpts.map(|excerpt| shared_worth(&names(&excerpt.text), &wanted, &rarity));
            worths.sum::<f32>() * MUCH_BETTER >= total
        };
        if let Some(before) = before.filter(is_still_good) {
            return Some(before.clone());
        }
        (!chosen.is_empty()).then(|| Arc::new(context(chosen, &location.document.path)))
    }

    /// All pieces that share enough names with the text around the cursor and that the
    /// prompt does not show anyway, the latest document first.
    fn candidates(
        &self,
        location: &PromptLocation,
        is_ignored: &dyn Fn(&Source) -> bool,
        wanted: &BTreeSet<String>,
        rarity: &HashMap<String, f32>,
    ) -> Vec<Candidate<'_>> {
        let may_quote =
            |(path, known): &(&String, &KnownDocument)| !is_ignored(&known.source(path));
        let mut order: Vec<_> = self.documents.iter().filter(may_quote).collect();
        order.sort_by_key(|(path, known)| (Reverse(known.used_at), *path));
        let shown_lines = lines_of(&location.document.text, &location.window);
        let mut candidates = vec![];
        for (age, (path, known)) in order.into_iter().enumerate() {
            let fading = FADING.powi(age as i32);
            for piece in &known.pieces {
                let is_shown = *path == location.document.path
                    && piece.lines.start < shown_lines.end
                    && shown_lines.start < piece.lines.end;
                let worth = fading * shared_worth(&piece.names, wanted, rarity);
                if worth > 0.0 && !is_shown {
                    let (used_at, language) = (known.used_at, &known.language);
                    candidates.push(Candidate { worth, used_at, path, language, piece });
                }
            }
        }
        candidates
    }

    /// The rarity of each of these names: ln(number of pieces / number of pieces that have it).
    fn rarity(&self, wanted: &BTreeSet<String>) -> HashMap<String, f32> {
        let mut having: HashMap<&str, u32> = HashMap::new();
        let mut all = 1;
        for piece in self.documents.values().flat_map(|known| &known.pieces) {
            all += 1;
            for name in piece.names.intersection(wanted) {
                *having.entry(name).or_default() += 1;
            }
        }
        let rarity = |count: u32| (all as f32 / count as f32).ln();
        having.into_iter().map(|(name, count)| (name.to_owned(), rarity(count))).collect()
    }
}

/// Takes the candidates that are worth most for their length until `budget` characters
/// are full.
fn fill_budget(mut candidates: Vec<Candidate>, budget: usize) -> Vec<Candidate> {
    let value =
        |candidate: &Candidate| candidate.worth / (candidate.piece.text.len() as f32).sqrt();
    candidates.sort_by(|a, b| value(b).total_cmp(&value(a)));
    let mut room = budget;
    candidates.retain(|candidate| {
        let left = room.checked_sub(candidate.piece.text.chars().count());
        room = left.unwrap_or(room);
        left.is_some()
    });
    candidates
}

/// Lays out the chosen pieces: the user's last document next to the cursor, the pieces of
/// one file in their order, and pieces that follow each other as one excerpt.
fn context(mut chosen: Vec<Candidate>, here: &str) -> PromptContext {
    chosen
        .sort_by_key(|candidate| (candidate.used_at, candidate.path, candidate.piece.lines.start));
    let folder = common_folder(chosen.iter().map(|candidate| candidate.path).chain([here]));
    let shown = |path: &str| {
        let below = Path::new(path).strip_prefix(&folder).unwrap_or(Path::new(path));
        below.to_string_lossy().into_owned()
    };
    let mut excerpts: Vec<Excerpt> = vec![];
    let mut last: Option<(&str, usize)> = None;
    for Candidate { path, language, piece, .. } in chosen {
        match excerpts.last_mut().filter(|_| last == Some((path, piece.lines.start))) {
            Some(excerpt) => excerpt.text.push_str(&piece.text),
            None => excerpts.push(Excerpt {
                source: Source { path: path.to_owned(), language: language.to_owned() },
                path: shown(path),
                text: piece.text.clone(),
            }),
        }
        last = Some((path, piece.lines.end));
    }
    let repository = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    PromptContext {
        repository: repository.unwrap_or_default(),
        excerpts,
        changes: vec![],
        path: shown(here),
    }
}

fn shared_worth(
    names: &BTreeSet<String>,
    wanted: &BTreeSet<String>,
    rarity: &HashMap<String, f32>,
) -> f32 {
    let shared: Vec<f32> =
        names.intersection(wanted).filter_map(|name| rarity.get(name)).copied().collect();
    if shared.len() < SHARED_MIN { 0.0 } else { shared.iter().sum() }
}

/// The deepest folder that holds all of these files.
fn common_folder<'a>(paths: impl Iterator<Item = &'a str>) -> PathBuf {
    let folders = paths.map(|path| Path::new(path).parent().unwrap_or(Path::new("")));
    let common = |a: PathBuf, b: &Path| -> PathBuf {
        a.components().zip(b.components()).take_while(|(a, b)| a == b).map(|(a, _)| a).collect()
    };
    let mut folders = folders;
    let first = folders.next().map_or_else(PathBuf::new, Path::to_path_buf);
    folders.fold(first, common)
}

/// Returns the lines that a range of characters touches.
fn lines_of(text: &Rope, window: &Range<usize>) -> Range<usize> {
    let line = |at: usize| text.char_to_line(at.min(text.len_chars()));
    line(window.start)..line(window.end.saturating_sub(1)) + 1
}

#[cfg(test)]
mod tests {
    use super::pieces::PIECE_MAX_LINES;
    use super::*;

    fn document(path: &str, text: &str) -> Document {
        Document { path: path.into(), language: "rust".into(), version: 1, text: text.into() }
    }

    fn source(path: &str) -> Source {
        document(path, "").source()
    }

    /// Documents in the order the user worked in them. The last one is the current one, and `|`
    /// marks its cursor.
    fn related(documents: &[(&str, &str)]) -> (RelatedCode, Document, usize) {
        let mut related = RelatedCode::default();
        let mut here = None;
        for (path, text) in documents {
            let cursor = text.chars().position(|c| c == '|');
            let document = document(path, &text.replacen('|', "", 1));
            related.visit(&source(path));
            related.update(&document, &|_| true);
            here = cursor.map(|cursor| (document, cursor)).or(here);
        }
        let (here, cursor) = here.unwrap();
        (related, here, cursor)
    }

    fn chosen(documents: &[(&str, &str)], budget: usize) -> Vec<(String, String)> {
        let (related, document, cursor) = related(documents);
        let line = document.text.line_to_char(document.text.char_to_line(cursor));
        let window = line..document.text.len_chars();
        let location = PromptLocation { document: &document, cursor, window };
        let context = related.choose(&location, budget, &|_| false, None);
        let excerpts = context.iter().flat_map(|context| &context.excerpts);
        excerpts.map(|excerpt| (excerpt.path.clone(), excerpt.text.clone())).collect()
    }

    const MODEL: &str = "pub struct Ledger { entries: Vec<Entry> }\n\
                         impl Ledger { pub fn post_entry(&mut self, entry: Entry) {} }\n";
    const OTHER: &str = "pub fn draw_circle(radius: f32) {}\npub fn draw_square(side: f32) {}\n";
    const HERE: &str = "fn close(ledger: &mut Ledger) {\n    ledger.post_entry(|)\n}\n";

    #[test]
    fn only_pieces_that_share_names_are_shown() {
        let documents = [("/p/src/model.rs", MODEL), ("/p/src/draw.rs", OTHER), ("/p/a.rs", HERE)];
        assert_eq!(chosen(&documents, 1_000), [("src/model.rs".into(), MODEL.into())]);
        assert!(chosen(&documents, MODEL.len() - 1).is_empty(), "no room");
        assert!(chosen(&documents[1..], 1_000).is_empty());
    }

    #[test]
    fn the_rest_of_the_own_file_is_shown_but_not_the_window() {
        let gap = "let unlike = 1;\n".repeat(3 * PIECE_MAX_LINES);
        let text = format!("{MODEL}{gap}{HERE}");
        let (related, document, cursor) = related(&[("/p/a.rs", &text)]);
        let near = document.text.len_chars() - HERE.len();
        let location = |from| PromptLocation {
            document: &document,
            cursor,
            window: from..document.text.len_chars(),
        };
        let context = related.choose(&location(near), 1_000, &|_| false, None).unwrap();
        assert!(context.excerpts[0].text.starts_with(MODEL), "{context:?}");
        assert_eq!((context.path.as_str(), context.repository.as_str()), ("a.rs", "p"));
        assert!(related.choose(&location(0), 1_000, &|_| false, None).is_none());
    }

    #[test]
    fn pieces_that_follow_each_other_are_one_excerpt() {
        let lines = |name: &str| format!("let ledger_{name} = Ledger::post_entry();\n").repeat(20);
        let model = format!("{}{}", lines("first"), lines("second"));
        assert!(pieces(&model).len() > 1);
        let excerpts = chosen(&[("/p/model.rs", &model), ("/p/a.rs", HERE)], 10_000);
        assert_eq!(excerpts, [("model.rs".into(), model)]);
    }

    #[test]
    fn a_choice_stays_until_another_is_much_better() {
        let better = format!("{MODEL}// close ledger mut post_entry Ledger: how to close\n");
        let documents = [("/p/model.rs", MODEL), ("/p/draw.rs", OTHER), ("/p/a.rs", HERE)];
        let (mut related, document, cursor) = related(&documents);
        let window = 0..document.text.len_chars();
        let location = PromptLocation { document: &document, cursor, window };
        let before = related.choose(&location, 1_000, &|_| false, None).unwrap();
        related.visit(&source("/p/model.rs"));
        related.update(&self::document("/p/model.rs", MODEL), &|_| true);
        assert!(Arc::ptr_eq(
            &related.choose(&location, 1_000, &|_| false, Some(&before)).unwrap(),
            &before
        ));
        related.update(&self::document("/p/model.rs", &better), &|_| true);
        let after = related.choose(&location, 1_000, &|_| false, Some(&before)).unwrap();
        assert_eq!(after.excerpts[0].text, better);
    }

    #[test]
    fn a_document_that_must_not_be_quoted_is_not_shown() {
        let (mut related, document, cursor) = related(&[("/p/model.rs", MODEL), ("/p/a.rs", HERE)]);
        related.update(&self::document("/p/model.rs", MODEL), &|text| text != MODEL);
        let window = 0..document.text.len_chars();
        let location = PromptLocation { document: &document, cursor, window };
        assert!(related.choose(&location, 1_000, &|_| false, None).is_none());
        related.update(&self::document("/p/model.rs", MODEL), &|_| true);
        let context = related.choose(&location, 1_000, &|_| false, None);
        assert!(context.is_none(), "a secret stood in it");

        let (related, ..) = self::related(&[("/p/model.rs", MODEL), ("/p/a.rs", HERE)]);
        let ignored = |Source { path, language }: &Source| {
            assert_eq!(language, "rust");
            path == "/p/model.rs"
        };
        assert!(related.choose(&location, 1_000, &|_| false, None).is_some());
        assert!(related.choose(&location, 1_000, &ignored, None).is_none());
    }

    #[test]
    fn a_file_that_nobody_opened_counts_least() {
        let (mut related, here, cursor) = related(&[("/p/other.rs", OTHER), ("/p/a.rs", HERE)]);
        related.add(&document("/p/model.rs", MODEL), &|_| true);
        related.add(&document("/p/model.rs", "known already\n"), &|_| true);
        let window = 0..here.text.len_chars();
        let context = related.choose(
            &PromptLocation { document: &here, cursor, window },
            1_000,
            &|_| false,
            None,
        );
        assert_eq!(context.unwrap().excerpts[0].text, MODEL);
        (0..DOCUMENTS - 2).for_each(|number| related.visit(&source(&number.to_string())));
        assert!(!related.documents.contains_key("/p/model.rs"), "and it is dropped first");
        assert!(related.documents.contains_key("/p/other.rs"));
    }

    #[test]
    fn the_documents_visited_longest_ago_are_dropped() {
        let mut related = RelatedCode::default();
        for number in 0..2 * DOCUMENTS {
            related.visit(&source(&number.to_string()));
        }
        assert_eq!(related.documents.len(), DOCUMENTS);
        assert!(related.documents.contains_key(&(2 * DOCUMENTS - 1).to_string()));
        assert!(!related.documents.contains_key("0"));
    }
}
