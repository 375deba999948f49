//! The text around a cursor that an offer is compared with.

use crate::foreign_marks::MarksNearby;
use ropey::Rope;

/// The most characters of a line that are read, since a minified file is one line.
pub(super) const LINE_CHARS: usize = 4096;

/// Lines below the cursor that are searched for the next line that is not blank.
const LINES_BELOW: usize = 4;

/// Lines on each side of the cursor whose indentations are compared with its own.
const INDENTED_LINES: usize = 30;

/// The text around the cursor.
#[derive(Debug, Default)]
pub struct NearbyText {
    /// The cursor's line up to the cursor.
    pub line_before: String,
    pub rest_of_line: String,
    /// The line above. It is empty if there is none, or if the line is very long.
    pub above: String,
    /// The next line that is not blank. It is empty if there is none close by.
    pub below: String,
    /// True if an offer must leave the marks behind the cursor in place. Otherwise it may replace
    /// them, if it brings them itself.
    pub keeps_marks: bool,
    /// True if the lines around the cursor end with `\r\n`.
    pub has_crlf: bool,
    /// True if a line close by is indented by one blank more than the cursor's line, in which
    /// nothing but blanks stands before the cursor.
    pub is_indented_by_one_more: bool,
    pub marks: MarksNearby,
}

/// Returns true if a line close to this one begins with `indentation`, one blank, and then text.
fn has_line_indented_by_one_more(text: &Rope, number: usize, indentation: &str) -> bool {
    let near = number.saturating_sub(INDENTED_LINES)..=number + INDENTED_LINES;
    near.filter(|line| *line != number).filter_map(|line| text.get_line(line)).any(|line| {
        let mut chars = line.chars();
        indentation.chars().chain([' ']).all(|expected| chars.next() == Some(expected))
            && chars.next().is_some_and(|c| !c.is_whitespace())
    })
}

fn ends_with_crlf(text: &Rope, line: usize) -> bool {
    let end = text.line_to_char(line + 1);
    end >= 2 && text.char(end - 1) == '\n' && text.char(end - 2) == '\r'
}

impl NearbyText {
    /// Reads the text around `cursor`, which is in characters and must not lie past the end.
    pub fn of(text: &Rope, cursor: usize) -> NearbyText {
        let number = text.char_to_line(cursor);
        let whole = |number: usize| {
            let line = text.get_line(number).filter(|line| line.len_chars() <= LINE_CHARS);
            let line = line.map_or_else(String::new, |line| line.to_string());
            line.trim_end_matches(['\n', '\r']).to_owned()
        };
        let start = text.line_to_char(number).max(cursor.saturating_sub(LINE_CHARS));
        let end = text.line_to_char(number + 1).min(cursor + LINE_CHARS);
        let rest = text.slice(cursor..end).to_string();
        let mut below = (number + 1..=number + LINES_BELOW).map(whole);
        let line_before = text.slice(start..cursor).to_string();
        let is_indentation = line_before.chars().all(char::is_whitespace);
        NearbyText {
            is_indented_by_one_more: is_indentation
                && has_line_indented_by_one_more(text, number, &line_before),
            line_before,
            rest_of_line: rest.trim_end_matches(['\n', '\r']).to_owned(),
            above: number.checked_sub(1).map_or_else(String::new, whole),
            below: below.find(|line| !line.trim().is_empty()).unwrap_or_default(),
            keeps_marks: false,
            marks: MarksNearby::of(text, number),
            has_crlf: ends_with_crlf(text, number)
                || number.checked_sub(1).is_some_and(|above| ends_with_crlf(text, above)),
        }
    }
}
