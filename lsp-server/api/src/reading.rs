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

/// The shortest mean time in ms between the keys of a user who types a text.
const KEY_MS: u64 = 50;

/// The time in ms after which a client that waits for an answer looks whether it can ask again.
const RETRY_MS: u64 = 100;

/// The length of the text before an offer by which its place is found again when the client's
/// window has moved, in bytes.
const ANCHOR_BYTES: usize = 200;

/// An offer as the client was given it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    pub around: Around,
    /// It is not empty.
    pub text: String,
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

/// Reads what became of an offer. `asks_ahead` if the client is one that asks as if an offer was
/// accepted.
pub fn read(offered: &Offered, next: &Around, now_ms: u64, asks_ahead: bool) -> Reading {
    let is_unread = now_ms.saturating_sub(offered.at_ms) < UNREAD_MS;
    let (was, text) = (&offered.around, offered.text.as_str());
    let Some(written) = behind_anchor(&was.before, &next.before) else {
        return away(offered, next);
    };
    if written.is_empty() {
        if goes_on(&was.after, &next.after) {
            return Reading::Same;
        }
        let behind = next.after.strip_prefix(text);
        let is_there = behind.is_some_and(|behind| goes_on(&was.after, behind));
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

/// Returns true if so many characters of an offer can have been typed without a request in between.
/// A client that asks at each key does not while it waits for an answer, as for that to its request
/// as if the offer was accepted. `waited_ms` is how long it waited for the last one.
pub fn may_be_typed(chars: usize, waited_ms: u64) -> bool {
    chars as u64 * KEY_MS <= waited_ms + RETRY_MS
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
    if is_taken_back && goes_on(&was.after, &next.after) {
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
    text.rfind(anchor).map(|at| &text[at + anchor.len()..])
}

/// Returns true if the cursor moved over `between`, which stood behind it, and nothing was written.
fn moved_over(after: &str, between: &str, next_after: &str) -> bool {
    after.strip_prefix(between).is_some_and(|rest| goes_on(rest, next_after))
}

/// Returns true if two texts are the same, or if one is a beginning of the other because a window
/// ends earlier.
fn goes_on(one: &str, other: &str) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Returns the last place up to this one that is within no character.
pub(crate) fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// The bytes that two texts have in common at their beginning.
pub(crate) fn shared_bytes(one: &str, other: &str) -> usize {
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
        let offered = Offered { around: at(was), text: text.into(), at_ms: 1_000 };
        read(&offered, &at(next), 1_000 + after_ms, asks_ahead)
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
    fn what_comes_whole_from_a_client_that_could_have_asked_was_not_typed() {
        assert!(!may_be_typed(8, 150), "an answer of the usual time");
        assert!(may_be_typed(8, 400), "the client waited, and the user went on");
        assert!(may_be_typed(1, 0), "a key");
        assert!(!may_be_typed(40, 1_000));
    }

    /// An offer that llama.vim has shown in Neovim, the requests that followed, and what was
    /// pressed. The texts are cut to what is close to the cursor.
    #[derive(serde::Deserialize)]
    struct Played {
        pressed: String,
        before: String,
        after: String,
        text: String,
        next: Vec<Next>,
    }

    #[derive(serde::Deserialize)]
    struct Next {
        before: String,
        after: String,
        ms: u64,
        waited_ms: u64,
    }

    fn label(played: &Played) -> &'static str {
        let Played { before, after, text, next, .. } = played;
        let around = Around { before: before.clone(), after: after.clone() };
        let offered = Offered { around, text: text.clone(), at_ms: 1_000 };
        for Next { before, after, ms, waited_ms } in next {
            let around = Around { before: before.clone(), after: after.clone() };
            match read(&offered, &around, 1_000 + ms, true) {
                Accepted if may_be_typed(text.chars().count(), *waited_ms) => return "typed",
                Accepted => return "accepted",
                Left { .. } => return "left",
                Along { .. } | AsIf { .. } | Same | Unknown => {}
            }
        }
        "unknown"
    }

    #[test]
    fn what_was_pressed_in_a_real_editor_is_read() {
        let lines = include_str!("../recordings/llama.vim.jsonl").lines();
        let played: Vec<Played> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
        let is_right = |played: &&Played| match (played.pressed.as_str(), label(played)) {
            ("tab" | "line", label) => label == "accepted",
            ("other", label) => label == "left",
            // Escape, a key at once, and Backspace: nothing was taken.
            (_, label) => matches!(label, "left" | "unknown"),
        };
        let wrong: Vec<_> = played.iter().filter(|played| !is_right(played)).collect();
        let told: Vec<_> = wrong.iter().map(|one| (&one.pressed, &one.text, label(one))).collect();
        assert!(played.len() > 20 && wrong.len() * 20 <= played.len(), "{told:?}");
        let is_worst = |one: &&&Played| !["tab", "line"].contains(&&*one.pressed);
        assert!(!wrong.iter().filter(is_worst).any(|one| label(one) == "accepted"), "{told:?}");
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
    fn an_offer_in_an_empty_document_is_followed() {
        assert_eq!(reading("|", "import os", "import os\n|", SLOW, true), Accepted);
        assert_eq!(reading("|", "import os", "# |", SLOW, true), Left { after: 0 });
        assert_eq!(reading("|", "é", "|", SLOW, true), Same);
    }
}
