//! Text that a terminal may get. A folder that a stranger made names files and holds code, and some
//! characters in these move the cursor, change what was printed before, or run what a terminal can.

use std::borrow::Cow;
use std::fmt::{Display, Write};

/// Characters that change the order in which others are shown, or break a line.
const REORDERING: &[char] = &[
    '\u{61c}', '\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}', '\u{202a}', '\u{202b}', '\u{202c}',
    '\u{202d}', '\u{202e}', '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
];

/// The styles that commands write: bold, red, green, yellow, and the end of each.
const STYLES: [&str; 5] = ["\u{1b}[1m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m", "\u{1b}[0m"];

/// Returns a text of any number of lines without characters that a terminal obeys. Each is written
/// by its number, in the form that it may have in JSON.
pub fn text(text: &str) -> Cow<'_, str> {
    escaped(text, is_layout, &[])
}

/// Returns the same of a text that may have our own styles.
pub fn styled(text: &str) -> Cow<'_, str> {
    escaped(text, is_layout, &STYLES)
}

/// Returns a name, which is a part of one line.
pub fn name(name: &str) -> Cow<'_, str> {
    escaped(name, |_| false, &[])
}

/// Returns a number and what is counted, as in "1 label" and "2 labels".
pub fn count<N: Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let ending = if number == N::from(1) { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

fn is_layout(character: char) -> bool {
    matches!(character, '\n' | '\t')
}

fn escaped<'a>(text: &'a str, stays: impl Fn(char) -> bool, styles: &[&str]) -> Cow<'a, str> {
    let is_printed = |character: char| {
        stays(character) || !character.is_control() && !REORDERING.contains(&character)
    };
    if text.chars().all(is_printed) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let style = styles.iter().find(|style| rest.starts_with(**style));
        let length = style.map_or(character.len_utf8(), |style| style.len());
        if style.is_some() || is_printed(character) {
            escaped.push_str(&rest[..length]);
        } else {
            // A String takes all that is written.
            let _ = write!(escaped, "\\u{:04x}", u32::from(character));
        }
        rest = &rest[length..];
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_written_by_its_number() {
        for (given, expected) in [
            ("größe, 😀\n\tx", "größe, 😀\n\tx"),
            ("\u{1b}]0;title\u{7}", r"\u001b]0;title\u0007"),
            ("\u{1b}[2J\r", r"\u001b[2J\u000d"),
            ("\u{7f}\u{9b}2J", r"\u007f\u009b2J"),
            ("a\u{202e}sr.exe", r"a\u202esr.exe"),
            ("\u{2066}\u{2069}\u{200f}\u{2028}", r"\u2066\u2069\u200f\u2028"),
            ("\0", r"\u0000"),
        ] {
            assert_eq!(text(given), expected, "{given:?}");
        }
        let bold_red = "\u{1b}[31m\u{1b}[1m✗\u{1b}[0m";
        assert_eq!(styled(bold_red), bold_red);
        assert_eq!(styled("\u{1b}[8m"), r"\u001b[8m", "hidden text is no style of ours");
        assert_eq!(text("\u{1b}[1m"), r"\u001b[1m");
        assert_eq!(name("\u{1b}[1m"), r"\u001b[1m");
        assert_eq!(name("a\nb\t.py"), r"a\u000ab\u0009.py");
        assert!(matches!(text("plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn one_is_singular_and_every_other_number_plural() {
        let counted = [count(0u64, "label"), count(1u32, "label"), count(2usize, "label")];
        assert_eq!(counted, ["0 labels", "1 label", "2 labels"]);
    }

    /// Commands print JSON by the same way.
    #[test]
    fn json_stays_json() {
        let value = serde_json::json!({"path": "/p/\u{202e}\u{9b}\u{7f}\u{1b}.py"});
        let printed = value.to_string();
        let read: serde_json::Value = serde_json::from_str(&text(&printed)).unwrap();
        assert_eq!(read, value);
    }
}
