//! Marks behind a cursor that an editor has closed by itself.

/// The most marks that an editor has closed behind a cursor. A longer rest was written by the user.
pub const MARKS_LIMIT: usize = 8;

/// Whether a cursor stands between an opening brace and the closing one that an editor has put
/// right behind it. What is filled in there stands on lines of its own.
pub fn is_between_braces(line_before: &str, rest_of_line: &str) -> bool {
    let rest = rest_of_line.trim();
    line_before.trim_end().ends_with('{')
        && rest.starts_with('}')
        && rest.len() <= MARKS_LIMIT
        && rest.bytes().all(|b| b.is_ascii_punctuation())
}
