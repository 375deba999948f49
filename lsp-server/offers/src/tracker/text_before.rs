//! The text that an offer continues.

use ropey::Rope;

/// The most characters of a line that are kept. A minified file is one line.
const LINE_CHARS: usize = 4096;

/// The most lines above an empty line among which one with text is looked for.
const LINES_ABOVE: usize = 8;

/// The text right before an offer: its line up to its start and, if nothing but blanks stands
/// there, the next line above that has text. An offer is for this text alone, so it ends when an
/// edit changes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextBefore {
    above: String,
    line: String,
}

impl TextBefore {
    /// Reads the text before a place, which is in characters.
    pub fn of(text: &Rope, place: usize) -> TextBefore {
        let place = place.min(text.len_chars());
        let number = text.char_to_line(place);
        let start = text.line_to_char(number).max(place.saturating_sub(LINE_CHARS));
        let line = text.slice(start..place).to_string();
        let above = if line.trim().is_empty() { text_above(text, number) } else { String::new() };
        TextBefore { above, line }
    }

    /// Returns true if this text stands before a place.
    pub fn is_before(&self, text: &Rope, place: usize) -> bool {
        *self == TextBefore::of(text, place)
    }
}

/// Returns the next line with text above a line, without the blanks at its end, which formatters
/// remove. It is empty if there is none close by.
fn text_above(text: &Rope, number: usize) -> String {
    let above = (number.saturating_sub(LINES_ABOVE)..number).rev().map(|line| text.line(line));
    let lines = above.map(|line| {
        let from = line.len_chars().saturating_sub(LINE_CHARS);
        line.slice(from..).to_string().trim_end().to_owned()
    });
    lines.into_iter().find(|line| !line.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn before(marked: &str) -> TextBefore {
        let place = marked.chars().position(|c| c == '|').unwrap();
        TextBefore::of(&Rope::from_str(&marked.replacen('|', "", 1)), place)
    }

    #[test]
    fn an_offer_is_for_its_line_up_to_its_start() {
        let asked = before("a\n  return math.|\nb\n");
        assert_eq!(asked, before("a\n  return math.|pi\nc\n"), "what is behind it");
        assert_eq!(asked, before("x = 1\n\n  return math.|\n"), "lines above it");
        assert_ne!(asked, before("a\n  return shutil.|\n"));
        assert_ne!(asked, before("a\nreturn math.|\n"));
        let long = "x".repeat(LINE_CHARS);
        assert_eq!(before(&format!("y{long}|")), before(&format!("z{long}|")), "too far away");
    }

    #[test]
    fn at_the_beginning_of_a_line_it_is_for_the_next_text_above_too() {
        let asked = before("if a:\n    |\n");
        assert_eq!(asked, before("if a:  \r\n\r\n    |"), "blanks that a formatter changes");
        assert_ne!(asked, before("if b:\n    |\n"));
        assert_ne!(asked, before("if a:\n  |\n"));
        assert_eq!(before("|a"), before("\n\n|"));
    }
}
