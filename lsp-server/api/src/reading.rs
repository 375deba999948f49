//! What became of an offer, read from the text of the client's next request. Clients of HTTP do not
//! report it.
//!
//! | the next text has, where the offer was made | reading |
//! |---|---|
//! | the whole offer, or the offer and more | accepted |
//! | a beginning of the offer, with the cursor behind it | typed along |
//! | something else | left; most of it may have been typed before |
//! | nothing new | the same place, or another one: unknown |
//!
//! Some clients ask, as soon as they show an offer, what would follow if it was accepted. Such a
//! request is no verdict, and only a text that goes beyond it is.

use crate::Around;

/// The time in ms in which no user reads an offer and takes it.
pub const UNREAD_MS: u64 = 250;

/// The most characters that a key puts in.
pub const KEY_CHARS: usize = 3;

/// The shortest time in ms between keys in a burst, which is at most so many keys long.
const BURST_KEY_MS: u64 = 50;
const BURST_KEYS: u64 = 8;

/// The shortest mean time in ms between keys that nobody beats for longer than a burst.
const KEY_MS: u64 = 80;

/// The time in ms after which a client that waits for an answer looks whether it can ask again.
const RETRY_MS: u64 = 100;

/// The length of the text before an offer by which its place is found again when the client's
/// window has moved, in bytes.
const ANCHOR_BYTES: usize = 200;

/// What a client asks about, which says what its user can have typed without a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// The text as it is.
    Plainly,
    /// As soon as it shows an offer, also what would follow if that was accepted. It asks at each
    /// key, but not while it waits for an answer, as for that one. llama.vim does so.
    AheadAtEachKey,
    /// The same, but nothing at a key that continues an offer that it has. llama.vscode does so.
    AheadAtNewText,
}

/// An offer as the client was given it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    pub around: Around,
    /// It is not empty.
    pub text: String,
    /// When the client asked for it, and when it got it.
    pub asked_ms: u64,
    pub at_ms: u64,
}

/// What the next request of a client says of an offer. Lengths are in bytes of its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// The client asks what would follow if so much of it was taken.
    AsIf { taken: usize },
    /// All of it is in the text.
    Accepted,
    /// So much of it is in the text, with the cursor behind it.
    Along { typed: usize },
    /// Something else stands in its place, behind so much of it if that is most of it.
    Left { after: usize },
    /// The text is the same, and so is the cursor.
    Same,
    /// The cursor is elsewhere and nothing was written at the offer's place, or it is not found.
    Unknown,
}

impl Asks {
    pub fn is_ahead(self) -> bool {
        self != Asks::Plainly
    }
}

/// When a client asked before its newest request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Before {
    pub asked_ms: u64,
    /// How long it waited for the answer.
    pub waited_ms: u64,
}

impl Offered {
    /// Returns true if the user can have typed so many bytes of the offer, which came whole in a
    /// request.
    pub fn may_be_typed(&self, bytes: usize, asks: Asks, before: Before, now_ms: u64) -> bool {
        let keys_ms = typing_ms(&self.text[..bytes]);
        match asks {
            Asks::Plainly => false,
            // Who takes an offer has read it, and has pressed no key meanwhile.
            Asks::AheadAtEachKey => {
                now_ms.saturating_sub(before.asked_ms) < UNREAD_MS
                    || keys_ms <= before.waited_ms + RETRY_MS
            }
            Asks::AheadAtNewText => keys_ms <= now_ms.saturating_sub(self.asked_ms),
        }
    }
}

/// Returns the shortest time in ms in which a user types a text, whose indentation the editor puts
/// in.
fn typing_ms(text: &str) -> u64 {
    let line_keys = |line: &str| 1 + line.trim_start().chars().count() as u64;
    let keys = text.split('\n').map(line_keys).sum::<u64>() - 1;
    keys.min(BURST_KEYS) * BURST_KEY_MS + keys.saturating_sub(BURST_KEYS) * KEY_MS
}

/// Reads what became of an offer.
pub fn read(offered: &Offered, next: &Around, now_ms: u64, asks: Asks) -> Reading {
    let asks_ahead = asks.is_ahead();
    let is_unread = now_ms.saturating_sub(offered.at_ms) < UNREAD_MS;
    let (was, text) = (&offered.around, offered.text.as_str());
    let Some(written) = behind_anchor(&was.before, &next.before) else {
        return away(offered, next);
    };
    if written.is_empty() {
        if continues(&was.after, &next.after) {
            return Reading::Same;
        }
        let behind = next.after.strip_prefix(text);
        let is_there = behind.is_some_and(|behind| continues(&was.after, behind));
        return if is_there { Reading::Accepted } else { Reading::Unknown };
    }
    if moved_over(&was.after, written, &next.after) {
        return Reading::Unknown;
    }
    if asks_ahead && asks_with_rest_of_line(was, text, written) {
        return Reading::AsIf { taken: text.len() };
    }
    let shared = shared_bytes(text, written);
    if shared == text.len() && written.len() > shared {
        return Reading::Accepted;
    }
    if shared < written.len() {
        // An indentation that agrees says nothing.
        let indentation = text.len() - text.trim_start().len();
        let is_most = 2 * shared.saturating_sub(indentation) >= text.len() - indentation;
        return Reading::Left { after: if is_most { shared } else { 0 } };
    }
    let is_whole = shared == text.len();
    let is_more_than_a_key = written.chars().count() > KEY_CHARS;
    if (is_whole && asks_ahead) || (is_unread && (is_whole || is_more_than_a_key)) {
        return Reading::AsIf { taken: shared };
    }
    if is_whole { Reading::Accepted } else { Reading::Along { typed: shared } }
}

/// Within a line, llama.vim asks with the rest of the line before and behind the offer.
fn asks_with_rest_of_line(was: &Around, text: &str, written: &str) -> bool {
    let rest = was.after.split('\n').next().unwrap_or_default();
    let between = written.strip_prefix(rest).and_then(|written| written.strip_prefix(text));
    !rest.is_empty() && between == Some(rest)
}

/// Reads a text whose cursor is not behind the offer's place.
fn away(offered: &Offered, next: &Around) -> Reading {
    let (was, text) = (&offered.around, offered.text.as_str());
    let all = [next.before.as_str(), next.after.as_str()].concat();
    if let Some(written) = behind_anchor(&was.before, &all) {
        let is_there = written.starts_with(text) && !was.after.starts_with(text);
        return if is_there { Reading::Accepted } else { Reading::Unknown };
    }
    // What stood before the offer was taken away.
    let taken_back = was.before.strip_prefix(next.before.as_str());
    let is_taken_back = taken_back.is_some_and(|taken| taken.chars().count() <= KEY_CHARS);
    if is_taken_back && continues(&was.after, &next.after) {
        return Reading::Left { after: 0 };
    }
    Reading::Unknown
}

/// Returns what stands in a text behind the place that ends with `before`.
fn behind_anchor<'t>(before: &str, text: &'t str) -> Option<&'t str> {
    if let Some(behind) = text.strip_prefix(before) {
        return Some(behind);
    }
    if before.len() <= ANCHOR_BYTES {
        return None;
    }
    let anchor = &before[boundary(before, before.len() - ANCHOR_BYTES)..];
    // One that stands there again may be about another place.
    let at = text.find(anchor).filter(|at| text.rfind(anchor) == Some(*at))?;
    Some(&text[at + anchor.len()..])
}

/// Returns true if the cursor moved over `between`, which stood behind it, and nothing was written.
fn moved_over(after: &str, between: &str, next_after: &str) -> bool {
    after.strip_prefix(between).is_some_and(|rest| continues(rest, next_after))
}

/// Returns true if two texts are the same, or if one is a beginning of the other because a window
/// ends earlier.
fn continues(one: &str, other: &str) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Returns the last place up to this one that is within no character.
pub(crate) fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// The bytes that two texts have in common at their beginning.
pub fn shared_bytes(one: &str, other: &str) -> usize {
    let same = one.chars().zip(other.chars()).take_while(|(a, b)| a == b);
    same.map(|(c, _)| c.len_utf8()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Reading::{Accepted, Along, AsIf, Left, Same, Unknown};

    /// The text around a `|`.
    fn at(marked: &str) -> Around {
        let (before, after) = marked.split_once('|').expect("a cursor");
        Around { before: before.into(), after: after.into() }
    }

    fn reading(was: &str, text: &str, next: &str, after_ms: u64, asks_ahead: bool) -> Reading {
        let offered = offered(was, text);
        let asks = if asks_ahead { Asks::AheadAtEachKey } else { Asks::Plainly };
        read(&offered, &at(next), offered.at_ms + after_ms, asks)
    }

    /// An offer that came after 200 ms.
    fn offered(was: &str, text: &str) -> Offered {
        Offered { around: at(was), text: text.into(), asked_ms: 800, at_ms: 1_000 }
    }

    const SLOW: u64 = 2_000;

    #[test]
    fn the_next_text_tells_what_became_of_an_offer() {
        for (next, expected) in [
            ("f(x) + y|\nend", Accepted),
            ("f(x) + y;|\nend", Accepted),
            ("f(x) + y\n|\nend", Accepted),
            ("f(x)| + y\nend", Accepted),
            ("f(x) |\nend", Along { typed: 1 }),
            ("f(x) + |\nend", Along { typed: 3 }),
            ("f(x);|\nend", Left { after: 0 }),
            ("f(x) - |\nend", Left { after: 0 }),
            ("f(x) + z|\nend", Left { after: 3 }),
            ("f(x)\n|\nend", Left { after: 0 }),
            ("f(x|\nend", Left { after: 0 }),
            ("f(x)|\nend", Same),
            ("f(x)\n|end", Unknown),
            ("f(x)\nen|d", Unknown),
            ("f|(x)\nend", Unknown),
            ("f(x)|\nfinish", Unknown),
            ("other|", Unknown),
            ("|", Unknown),
        ] {
            assert_eq!(reading("f(x)|\nend", " + y", next, SLOW, false), expected, "{next}");
        }
    }

    /// llama.vim and llama.vscode ask for the text behind an offer when they show it, and at an
    /// accept they take that answer without asking again.
    #[test]
    fn a_request_as_if_accepted_is_no_verdict() {
        let ask = |next, after_ms, asks_ahead| reading("a|\n", "bcdef", next, after_ms, asks_ahead);
        assert_eq!(ask("abcdef|\n", 20, false), AsIf { taken: 5 });
        assert_eq!(ask("abcdef|\n", SLOW, true), AsIf { taken: 5 });
        assert_eq!(ask("abcdef|\n", SLOW, false), Accepted);
        assert_eq!(ask("abcdefg|\n", 20, true), Accepted, "nobody asks ahead of that");
        assert_eq!(ask("abcde|\n", 20, true), AsIf { taken: 4 }, "its first line, for instance");
        assert_eq!(ask("ab|\n", 20, true), Along { typed: 1 }, "a key");
        assert_eq!(ask("abcde|\n", SLOW, true), Along { typed: 4 });
        assert_eq!(reading("f(|)\n", "x", "f()x)|\n", 20, true), AsIf { taken: 1 });
    }

    #[test]
    fn what_comes_whole_was_typed_if_there_was_time_without_a_request() {
        const LINE: &str = "return self.price * self.amount";
        let of = |text: &str, asks, before, after_ms| {
            let offered = offered("|", text);
            offered.may_be_typed(text.len(), asks, before, offered.at_ms + after_ms)
        };
        let at_keys = |text, waited_ms, since_ms| {
            let before = Before { asked_ms: 1_000 + SLOW - since_ms, waited_ms };
            of(text, Asks::AheadAtEachKey, before, SLOW)
        };
        assert!(!at_keys("call(x);", 150, 900), "an answer of the usual time");
        assert!(at_keys("call(x);", 400, 900), "the client waited, and the user continued");
        assert!(at_keys(")", 0, 900), "a key");
        assert!(!at_keys(LINE, 1_000, 1_100));
        assert!(at_keys("call(x);", 2, 249), "a key was pressed since the offer was shown");
        assert!(!at_keys("call(x);", 2, 250), "it was read, and taken");

        // It has been silent since it asked for the offer, 200 ms before it got it.
        for (text, after_ms, expected) in [
            ("call(x);", 199, false),
            ("call(x);", 200, true),
            ("call(x, y);", 439, false),
            ("call(x, y);", 440, true),
            (LINE, 2_039, false),
            (LINE, 2_040, true),
            ("a\n        b", 0, true),
            ("a\n        bc", 0, true),
            ("a\n        bcd", 0, false),
        ] {
            let told = of(text, Asks::AheadAtNewText, Before::default(), after_ms);
            assert_eq!(told, expected, "{text} after {after_ms} ms");
        }
        assert!(
            !of("a", Asks::Plainly, Before::default(), SLOW),
            "it asks when something was typed"
        );
    }

    /// An offer that a client has shown in a real editor, the requests that followed, and what was
    /// pressed. The texts are cut to what is close to the cursor.
    #[derive(serde::Deserialize)]
    struct Played {
        pressed: String,
        before: String,
        after: String,
        text: String,
        /// How long the client waited for it.
        #[serde(default)]
        waited_ms: u64,
        next: Vec<Next>,
    }

    #[derive(serde::Deserialize)]
    struct Next {
        before: String,
        after: String,
        ms: u64,
        waited_ms: u64,
    }

    fn label(played: &Played, asks: Asks) -> &'static str {
        let Played { before, after, text, waited_ms, next, .. } = played;
        let around = Around { before: before.clone(), after: after.clone() };
        let at_ms = 100_000;
        let offered = Offered { around, text: text.clone(), asked_ms: at_ms - waited_ms, at_ms };
        let mut asked_ms = offered.asked_ms;
        for Next { before, after, ms, waited_ms } in next {
            let around = Around { before: before.clone(), after: after.clone() };
            let (now_ms, waited_ms) = (at_ms + ms, *waited_ms);
            let last = Before { asked_ms, waited_ms };
            match read(&offered, &around, now_ms, asks) {
                Accepted if offered.may_be_typed(text.len(), asks, last, now_ms) => {
                    return "typed";
                }
                Accepted => return "accepted",
                Left { .. } => return "left",
                Along { .. } | AsIf { .. } | Same | Unknown => asked_ms = now_ms,
            }
        }
        "unknown"
    }

    /// Checks that at least 95 % of the offers are labelled as what was pressed, and that none is
    /// accepted of which nothing was taken. One that was taken may count as typed, which is worth
    /// the same, of a client that does not tell the two apart.
    fn is_read(recording: &str, asks: Asks) {
        let lines = recording.lines();
        let played: Vec<Played> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
        let is_right = |played: &&Played| match (played.pressed.as_str(), label(played, asks)) {
            ("tab" | "line", "typed") => asks == Asks::AheadAtNewText,
            ("tab" | "line", label) => label == "accepted",
            ("hand", label) => label == "typed",
            ("other", label) => label == "left",
            // Escape, a key at once, and Backspace: nothing was taken.
            (_, label) => matches!(label, "left" | "unknown"),
        };
        let wrong: Vec<_> = played.iter().filter(|played| !is_right(played)).collect();
        let told = |one: &&Played| (one.pressed.clone(), one.text.clone(), label(one, asks));
        let told: Vec<_> = wrong.iter().map(told).collect();
        assert!(played.len() >= 20 && wrong.len() * 20 <= played.len(), "{told:?}");
        let is_worst = |(pressed, _, label): &&(String, String, &str)| {
            !["tab", "line"].contains(&pressed.as_str()) && *label == "accepted"
        };
        assert!(!told.iter().any(|one| is_worst(&one)), "{told:?}");
    }

    #[test]
    fn what_was_pressed_in_a_real_editor_is_read() {
        is_read(include_str!("../recordings/llama.vim.jsonl"), Asks::AheadAtEachKey);
        is_read(include_str!("../recordings/llama.vscode.jsonl"), Asks::AheadAtNewText);
    }

    #[test]
    fn a_repetition_of_the_text_below_is_not_taken_for_accepted() {
        let was = "a\n|b();\nc();\n";
        assert_eq!(reading(was, "b();\n", "a\nb();\n|c();\n", SLOW, false), Unknown);
        assert_eq!(reading(was, "b();\n", "a\nb();\n|b();\nc();\n", SLOW, false), Accepted);
    }

    #[test]
    fn the_place_is_found_again_when_the_window_has_moved() {
        let lines: String = (0..80).map(|line| format!("line {line};\n")).collect();
        let was = format!("{lines}let x|\nend");
        let moved = &lines["line 0;\nline 1;\n".len()..];
        let next = |text: &str| reading(&was, " = 1;", &format!("{moved}{text}"), SLOW, true);
        assert_eq!(next("let x = 1;\nlet y|\nend\nmore"), Accepted);
        assert_eq!(next("let x = |\nend\nmore"), Along { typed: 3 });
        assert_eq!(next("let x: |\nend\nmore"), Left { after: 0 });
        assert_eq!(next("let x\nen|d\nmore"), Unknown);
    }

    #[test]
    fn a_place_that_stands_twice_is_not_found_again() {
        let lines: String = (0..20).map(|line| format!("line {line};\n")).collect();
        let moved = &lines["line 0;\n".len()..];
        let next = format!("{moved}x\n{lines} = 1;\n|end");
        assert_eq!(reading(&format!("{lines}|\nend"), " = 1;", &next, SLOW, true), Unknown);
    }

    #[test]
    fn an_offer_in_an_empty_document_is_followed() {
        assert_eq!(reading("|", "import os", "import os\n|", SLOW, true), Accepted);
        assert_eq!(reading("|", "import os", "# |", SLOW, true), Left { after: 0 });
        assert_eq!(reading("|", "é", "|", SLOW, true), Same);
    }
}
