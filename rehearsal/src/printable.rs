//! Text of a history that a terminal may get. A stranger may have written it, and some characters
//! move the cursor, change what was printed before, or run what a terminal can.

use std::borrow::Cow;

/// Returns code without characters that a terminal obeys. Each is written by its number.
pub fn code(code: &str) -> Cow<'_, str> {
    escaped(code, |character| matches!(character, '\n' | '\t'))
}

/// Returns a name, which is a part of one line.
pub fn name(name: &str) -> Cow<'_, str> {
    escaped(name, |_| false)
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_printed = |character| stays(character) || !is_obeyed(character);
    if text.chars().all(is_printed) {
        return Cow::Borrowed(text);
    }
    let shown = |character: char| match is_printed(character) {
        true => character.to_string(),
        false => format!("\\u{:04x}", u32::from(character)),
    };
    Cow::Owned(text.chars().map(shown).collect())
}

/// Returns true for what moves the cursor, and for what changes the order of other characters.
fn is_obeyed(character: char) -> bool {
    let reorders = ['\u{61c}', '\u{200e}', '\u{200f}'].contains(&character)
        || ('\u{2028}'..='\u{202e}').contains(&character)
        || ('\u{2066}'..='\u{2069}').contains(&character);
    character.is_control() || reorders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_written_by_its_number() {
        for (given, expected) in [
            ("größe, 😀\n\tx", "größe, 😀\n\tx"),
            ("\u{1b}[2J\r", r"\u001b[2J\u000d"),
            ("\u{7f}\u{9b}2J", r"\u007f\u009b2J"),
            ("a\u{202e}sr.exe", r"a\u202esr.exe"),
        ] {
            assert_eq!(code(given), expected, "{given:?}");
        }
        assert_eq!(name("a\nb.py"), r"a\u000ab.py");
    }
}
