//! The offer that the editor shows while a recording is played, and what becomes of it there.

use super::Replacement;
use crate::limits::FLICKER_MS;
use std::ops::Range;

/// An offer on the screen.
#[derive(Debug)]
struct Live {
    id: String,
    document: usize,
    /// The byte at which its next character would go.
    at: usize,
    rest: String,
    shown_ms: u64,
}

/// An offer that is gone from the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub id: String,
    /// How long it stood there.
    pub ms: u64,
    /// Another one took its place too soon.
    pub flickered: bool,
}

#[derive(Debug, Default)]
pub struct Screen {
    live: Option<Live>,
}

impl Screen {
    /// The server sends an offer at a byte. It may be the one that is there already.
    pub fn show(
        &mut self,
        id: &str,
        (document, at): (usize, usize),
        rest: &str,
        now_ms: u64,
    ) -> Option<Ended> {
        let stays = self.live.as_ref().is_some_and(|live| live.id == id);
        let flickers = self.live.as_ref().is_some_and(|live| live.rest != rest);
        let shown_ms = self.live.as_ref().filter(|_| stays).map_or(now_ms, |live| live.shown_ms);
        let mut ended = if stays { None } else { self.end(now_ms) };
        if let Some(ended) = &mut ended {
            ended.flickered = flickers && ended.ms < FLICKER_MS;
        }
        let (id, rest) = (id.to_owned(), rest.to_owned());
        self.live = Some(Live { id, document, at, rest, shown_ms });
        ended
    }

    /// Nothing is shown any more.
    pub fn end(&mut self, now_ms: u64) -> Option<Ended> {
        let live = self.live.take()?;
        let ms = now_ms.saturating_sub(live.shown_ms);
        Some(Ended { id: live.id, ms, flickered: false })
    }

    /// A document was changed. What is typed along stays.
    pub fn changed(
        &mut self,
        document: usize,
        replacements: &[Replacement],
        now_ms: u64,
    ) -> Option<Ended> {
        let live = self.live.as_mut().filter(|live| live.document == document)?;
        let stays = replacements.iter().all(|replacement| {
            let (range, inserted) = replacement.minimal();
            live.follow(range, inserted)
        });
        if stays && !live.rest.is_empty() { None } else { self.end(now_ms) }
    }

    /// A document is closed, or has another text.
    pub fn closed(&mut self, document: usize, now_ms: u64) -> Option<Ended> {
        self.live.as_ref().filter(|live| live.document == document)?;
        self.end(now_ms)
    }

    /// The caret of a document is here now, if there is one and nothing is selected. Returns the
    /// offer that it has left.
    pub fn moved(&mut self, document: usize, caret: Option<usize>, now_ms: u64) -> Option<Ended> {
        let live = self.live.as_ref()?;
        let is_there = live.document == document && caret == Some(live.at);
        if is_there { None } else { self.end(now_ms) }
    }
}

impl Live {
    /// Follows a change. Returns false if the offer does not fit any more.
    fn follow(&mut self, range: Range<usize>, inserted: &str) -> bool {
        if range.is_empty() && inserted.is_empty() {
            return true;
        }
        if range == (self.at..self.at) {
            // Of a bracket that the editor closes, the first half is typed.
            let is_pair = matches!(inserted, "()" | "[]" | "{}" | "\"\"" | "''" | "``");
            let typed = [inserted, if is_pair { &inserted[..1] } else { inserted }];
            let Some(typed) = typed.into_iter().find(|typed| self.rest.starts_with(typed)) else {
                return false;
            };
            self.at += typed.len();
            self.rest.drain(..typed.len());
            return true;
        }
        if range.end < self.at {
            self.at = self.at - range.len() + inserted.len();
            return true;
        }
        range.start > self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(range: Range<usize>, text: &str) -> Vec<Replacement> {
        vec![Replacement { range, text: text.into(), same: (0, 0) }]
    }

    /// A screen with the offer `push(item)` at byte 10 of document 0 since 100 ms.
    fn shown() -> Screen {
        let mut screen = Screen::default();
        assert_eq!(screen.show("a", (0, 10), "push(item)", 100), None);
        screen
    }

    fn ended(id: &str, ms: u64, flickered: bool) -> Option<Ended> {
        Some(Ended { id: id.into(), ms, flickered })
    }

    #[test]
    fn an_offer_stays_while_it_is_typed_and_goes_with_another_key() {
        let mut screen = shown();
        assert_eq!(screen.changed(0, &replaced(10..10, "pu"), 150), None);
        assert_eq!(screen.changed(1, &replaced(12..12, "x"), 160), None, "another document");
        assert_eq!(screen.changed(0, &replaced(0..0, "use a;\n"), 170), None, "above");
        assert_eq!(screen.moved(0, Some(19), 180), None);
        assert_eq!(screen.changed(0, &replaced(19..19, "x"), 600), ended("a", 500, false));
        assert_eq!(screen.changed(0, &replaced(20..20, "x"), 700), None, "it is gone");
    }

    #[test]
    fn a_bracket_that_the_editor_closes_is_typed_along() {
        let mut screen = shown();
        assert_eq!(screen.changed(0, &replaced(10..10, "push"), 110), None);
        assert_eq!(screen.changed(0, &replaced(14..14, "()"), 120), None);
        assert_eq!(screen.moved(0, Some(15), 130), None);
    }

    #[test]
    fn an_offer_that_is_taken_whole_is_gone() {
        assert_eq!(
            shown().changed(0, &replaced(10..10, "push(item)"), 400),
            ended("a", 300, false)
        );
    }

    #[test]
    fn it_goes_when_the_caret_leaves_it_or_its_document_closes() {
        assert_eq!(shown().closed(1, 400), None);
        assert_eq!(shown().closed(0, 400), ended("a", 300, false));
        assert_eq!(shown().moved(0, Some(3), 400), ended("a", 300, false));
        assert_eq!(shown().moved(0, None, 400), ended("a", 300, false), "a selection");
        assert_eq!(shown().moved(1, Some(10), 400), ended("a", 300, false));
    }

    #[test]
    fn another_offer_soon_after_flickers_and_the_same_one_does_not() {
        let flickers = |at_ms, rest: &str| shown().show("b", (0, 10), rest, at_ms);
        assert_eq!(flickers(100 + FLICKER_MS - 1, "pop()"), ended("a", FLICKER_MS - 1, true));
        assert_eq!(flickers(100 + FLICKER_MS, "pop()"), ended("a", FLICKER_MS, false));
        assert_eq!(flickers(101, "push(item)"), ended("a", 1, false), "it looks the same");
        assert_eq!(shown().show("a", (0, 10), "push(item)", 101), None);
    }
}
