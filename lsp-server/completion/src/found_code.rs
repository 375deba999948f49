//! Lays out the code of the workspace that was found for a place: few pieces, the best of them next
//! to the document.

use crate::document::Document;
use crate::prompt::{Excerpt, PromptContext};
use ropey::Rope;
use std::ops::Range;
use std::sync::Arc;

/// The pieces that a prompt shows at most. More of them help a small model less than they cost.
pub const PIECES: usize = 4;

/// The pieces that are looked for. A context whose pieces are all among these is still good.
pub const PIECES_FOUND: usize = 2 * PIECES;

/// The characters before the cursor, and behind it, whose names are looked for.
const BEFORE_CHARS: usize = 1_000;
const AFTER_CHARS: usize = 300;

/// A place for whose prompt other code is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    pub path: String,
    /// The text around the cursor, whose names are looked for.
    pub text: String,
    /// The text that the prompt shows anyway, and its lines in the document.
    pub window: String,
    pub lines: Range<usize>,
}

impl Search {
    /// `window` is what the prompt shows anyway, in characters.
    pub fn of(document: &Document, cursor: usize, window: Range<usize>) -> Search {
        let text = &document.text;
        let near = cursor.saturating_sub(BEFORE_CHARS)..(cursor + AFTER_CHARS);
        Search {
            path: document.path.clone(),
            text: text.slice(near.start..near.end.min(text.len_chars())).to_string(),
            window: text.slice(window.clone()).to_string(),
            lines: lines_of(text, &window),
        }
    }
}

/// The lines that a range of characters touches.
pub(crate) fn lines_of(text: &Rope, window: &Range<usize>) -> Range<usize> {
    let line = |at: usize| text.char_to_line(at.min(text.len_chars()));
    line(window.start)..line(window.end.saturating_sub(1)) + 1
}

/// What was found for a place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundCode {
    /// The name of the folder that was searched.
    pub repository: String,
    /// The path of the document at the place, below that folder.
    pub path: String,
    /// The pieces, the best first.
    pub pieces: Vec<Excerpt>,
}

impl FoundCode {
    /// The context with the best pieces, at most `budget` characters of them. A context that was
    /// shown before stays as long as all of its pieces are found again, because another one means
    /// to compute the whole prompt again.
    pub fn context(
        &self,
        budget: usize,
        before: Option<&Arc<PromptContext>>,
    ) -> Option<Arc<PromptContext>> {
        let is_found = |shown: &Excerpt| self.pieces.contains(shown);
        let is_still_good = |before: &&Arc<PromptContext>| {
            !before.excerpts.is_empty() && before.excerpts.iter().all(is_found)
        };
        if let Some(before) = before.filter(is_still_good) {
            return Some(before.clone());
        }
        let mut room = budget;
        let mut excerpts: Vec<Excerpt> = vec![];
        for piece in &self.pieces {
            let Some(left) = room.checked_sub(piece.text.chars().count()) else { continue };
            if excerpts.len() == PIECES {
                break;
            }
            room = left;
            excerpts.push(piece.clone());
        }
        excerpts.reverse();
        (!excerpts.is_empty()).then(|| {
            Arc::new(PromptContext {
                repository: self.repository.clone(),
                excerpts,
                changes: vec![],
                path: self.path.clone(),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: &[&str]) -> FoundCode {
        let piece = |text: &&str| Excerpt {
            source: format!("/p/{text}.rs"),
            path: format!("{text}.rs"),
            text: (*text).to_owned(),
        };
        FoundCode {
            repository: "p".into(),
            path: "a.rs".into(),
            pieces: texts.iter().map(piece).collect(),
        }
    }

    fn texts(context: &PromptContext) -> Vec<&str> {
        context.excerpts.iter().map(|excerpt| excerpt.text.as_str()).collect()
    }

    #[test]
    fn the_best_pieces_that_fit_are_shown_and_the_best_of_them_last() {
        let chosen = |pieces: &[&str], budget| {
            let context = found(pieces).context(budget, None);
            context.map(|context| texts(&context).join(" "))
        };
        assert_eq!(chosen(&["aaa", "bb", "c"], 100).as_deref(), Some("c bb aaa"));
        assert_eq!(chosen(&["aaa", "bb", "c"], 4).as_deref(), Some("c aaa"), "no room for bb");
        assert_eq!(chosen(&["a", "b", "c", "d", "e"], 100).as_deref(), Some("d c b a"));
        assert_eq!(chosen(&["aaa"], 2), None);
        assert_eq!(chosen(&[], 100), None);
    }

    #[test]
    fn a_context_stays_while_all_of_its_pieces_are_found_again() {
        let before = found(&["a", "b"]).context(100, None).unwrap();
        let again = found(&["x", "b", "y", "a"]).context(100, Some(&before)).unwrap();
        assert!(Arc::ptr_eq(&again, &before));
        let other = found(&["x", "b"]).context(100, Some(&before)).unwrap();
        assert_eq!(texts(&other), ["b", "x"]);
        let empty = Arc::new(PromptContext::default());
        assert!(
            found(&["a"]).context(100, Some(&empty)).is_some_and(|new| !texts(&new).is_empty())
        );
    }

    #[test]
    fn a_search_looks_for_what_stands_near_the_cursor() {
        let text = "fn a() {\n    first();\n}\nfn b() {\n    second();\n}\n";
        let document = Document {
            path: "/p/a.rs".into(),
            language: "rust".into(),
            version: 1,
            text: text.into(),
        };
        let cursor = text.find("second").unwrap();
        let search = Search::of(&document, cursor, text.find("fn b").unwrap()..text.len());
        assert_eq!(search.text, text, "a short document is near as a whole");
        assert_eq!(search.window, "fn b() {\n    second();\n}\n");
        assert_eq!(search.lines, 3..6);
    }
}
