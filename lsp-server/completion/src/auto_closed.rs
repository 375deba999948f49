//! Marks behind a cursor that an editor has closed by itself.

/// The most marks that an editor has closed behind a cursor. A longer rest was written by the user.
pub const MARKS_LIMIT: usize = 8;

/// Returns true if a text does nothing but close brackets.
pub fn only_closes(text: &str) -> bool {
    let closes = |c: char| matches!(c, ')' | ']' | '}');
    text.contains(closes)
        && text.chars().all(|c| closes(c) || c.is_whitespace() || matches!(c, ';' | ','))
}

/// Returns true if a cursor stands between an opening brace and the closing one that an editor has
/// put right behind it. What is filled in there stands on lines of its own.
pub fn is_between_braces(line_before: &str, rest_of_line: &str) -> bool {
    let rest = rest_of_line.trim();
    line_before.trim_end().ends_with('{')
        && rest.starts_with('}')
        && rest.len() <= MARKS_LIMIT
        && rest.bytes().all(|b| b.is_ascii_punctuation())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_only_closes_has_brackets_and_separators_alone() {
        for text in [")", "  });", "],\n}"] {
            assert!(only_closes(text), "{text}");
        }
        for text in ["", ";", "})?", "x)", "()"] {
            assert!(!only_closes(text), "{text}");
        }
    }
}
