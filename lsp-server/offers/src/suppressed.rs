//! The last answer that was not shown, because it was too unlikely or the gate held it back.
//!
//! While the user types exactly this text, the model continues with the same text. Whether the rest
//! is worth showing is then known without the engine. If it may be worth it, the engine is asked,
//! and says how likely the rest is exactly.

use completion::document::Edit;
use completion::stop_rule::valid_utf8_prefix;
use feedback::event::{AdapterVersion, StopReason};

#[derive(Debug, Clone, PartialEq)]
pub struct Suppressed {
    pub adapter: AdapterVersion,
    pub stop: StopReason,
    uri: String,
    /// The cursor it was for, in characters.
    start: usize,
    /// What it is about, up to the end of its line.
    text: String,
    /// Where in `text` each token ends, in bytes, and how likely it was, in nats.
    tokens: Vec<(usize, f32)>,
    /// How much of `text` the user has typed since, in bytes.
    typed: usize,
}

/// The part of it that is not typed yet.
#[derive(Debug, PartialEq)]
pub struct Remainder<'a> {
    pub text: &'a str,
    /// Of the tokens that are still to come. One that is typed in part counts as
    /// certain, so that the rest never looks less likely than it is.
    pub logprobs: Vec<f32>,
}

/// An answer that is not shown.
#[derive(Debug, Clone, Copy)]
pub struct HeldBackAnswer<'a> {
    pub text: &'a [u8],
    /// The index in `text` at which each token ends.
    pub ends: &'a [usize],
    /// ln π of each token as the user sees it.
    pub logprobs: &'a [f32],
    /// The number of tokens that only reproduce what is typed, and the bytes of `text` that do.
    pub healed: usize,
    pub healing: usize,
    pub stop: StopReason,
}

impl Suppressed {
    /// Keeps the first line of an answer of this adapter to a request at `start`.
    pub fn of(
        answer: HeldBackAnswer,
        adapter: AdapterVersion,
        uri: &str,
        start: usize,
    ) -> Suppressed {
        let HeldBackAnswer { text, ends, logprobs, healed, healing, stop } = answer;
        let said = text.get(healing..).unwrap_or_default();
        let line = valid_utf8_prefix(said).split(['\n', '\r']).next().unwrap_or_default();
        let ends = ends.iter().map(|end| end.saturating_sub(healing));
        let tokens = ends.zip(logprobs.iter().copied());
        Suppressed {
            adapter,
            stop,
            uri: uri.to_owned(),
            start,
            text: line.to_owned(),
            tokens: tokens.skip(healed).collect(),
            typed: 0,
        }
    }

    pub fn is_in(&self, uri: &str) -> bool {
        self.uri == uri
    }

    /// Whether it still continues what is typed after this edit.
    pub fn survives(&mut self, uri: &str, edit: &Edit) -> bool {
        let elsewhere = uri != self.uri || (edit.removed == 0 && edit.inserted.is_empty());
        let at_cursor = edit.start == self.cursor() && edit.removed == 0;
        if !elsewhere && at_cursor && self.text[self.typed..].starts_with(&edit.inserted) {
            self.typed += edit.inserted.len();
            return true;
        }
        elsewhere
    }

    /// What remains at this cursor; `None` if nothing of it is known there.
    pub fn rest(&self, uri: &str, cursor: usize) -> Option<Remainder<'_>> {
        let text = &self.text[self.typed..];
        if uri != self.uri || cursor != self.cursor() || text.is_empty() {
            return None;
        }
        let mut start = 0;
        let logprobs = self.tokens.iter().filter_map(|&(end, logprob)| {
            let from = std::mem::replace(&mut start, end);
            let begun = from < self.typed;
            (end > self.typed || from == end).then_some(if begun { 0.0 } else { logprob })
        });
        Some(Remainder { text, logprobs: logprobs.collect() })
    }

    fn cursor(&self) -> usize {
        self.start + self.text[..self.typed].chars().count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `pieces`, each as likely as not, asked for at character 10.
    fn suppressed(pieces: &[&str], healing: usize, healed: usize) -> Suppressed {
        let mut text = vec![];
        let mut ends = vec![];
        for piece in pieces {
            text.extend_from_slice(piece.as_bytes());
            ends.push(text.len());
        }
        let logprobs = vec![0.5f32.ln(); pieces.len()];
        let stop = StopReason::Newline;
        let (text, ends, logprobs) = (&text[..], &ends[..], &logprobs[..]);
        let answer = HeldBackAnswer { text, ends, logprobs, healed, healing, stop };
        Suppressed::of(answer, 0, "a", 10)
    }

    /// No less than the rest is likely, as a whole.
    fn probability(rest: &Remainder) -> f32 {
        rest.logprobs.iter().sum::<f32>().exp()
    }

    fn typed(start: usize, inserted: &str) -> Edit {
        Edit { start, removed: 0, inserted: inserted.into() }
    }

    #[test]
    fn what_is_typed_along_makes_the_rest_likelier() {
        let mut suppressed = suppressed(&["  ", "größe", " =", " 1;\n"], 2, 1);
        let rest = suppressed.rest("a", 10).unwrap();
        assert_eq!((rest.text, probability(&rest)), ("größe = 1;", 0.125));
        assert!(suppressed.survives("a", &typed(10, "grö")));
        let rest = suppressed.rest("a", 13).unwrap();
        assert_eq!((rest.text, probability(&rest)), ("ße = 1;", 0.25), "the first is certain");
        assert!(suppressed.survives("a", &typed(13, "ße")));
        assert_eq!(probability(&suppressed.rest("a", 15).unwrap()), 0.25);
        assert!(suppressed.survives("a", &typed(15, " =")));
        assert_eq!(probability(&suppressed.rest("a", 17).unwrap()), 0.5);
        assert!(suppressed.survives("a", &typed(17, " 1;")));
        assert_eq!(suppressed.rest("a", 20), None, "nothing is left of the line");
    }

    #[test]
    fn anything_else_is_another_text() {
        let new = || suppressed(&["call", "(x);"], 0, 0);
        assert!(!new().survives("a", &typed(10, "b")));
        assert!(!new().survives("a", &typed(3, "c")), "before the cursor");
        assert!(!new().survives("a", &Edit { start: 9, removed: 1, inserted: String::new() }));
        assert!(!new().survives("a", &typed(10, "call(x);\n")));
        assert!(new().survives("b", &typed(10, "x")), "another document");
        assert_eq!(new().rest("b", 10), None);
        assert_eq!(new().rest("a", 11), None, "the cursor has gone elsewhere");
    }
}
