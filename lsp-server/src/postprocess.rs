//! Generated text → what may be shown: one line, no repetition of what already
//! stands after the cursor, never blank.

/// The shown part is `text[healing..healing + result]`.
///
/// * `text`: concatenated pieces of the generated tokens.
/// * `healing`: bytes at its start that reproduce what the user has typed.
/// * `rest_of_line`: what stands between the cursor and the end of its line.
pub fn shown_bytes(text: &[u8], healing: usize, rest_of_line: &str) -> usize {
    let Some(completion) = text.get(healing..) else { return 0 };
    let valid = match std::str::from_utf8(completion) {
        Ok(all) => all,
        // A budget or token limit can end inside a character.
        Err(error) => std::str::from_utf8(&completion[..error.valid_up_to()]).unwrap_or_default(),
    };
    let line = valid.split(['\n', '\r']).next().unwrap_or_default();
    let shown = without_overlap(line.trim_end(), rest_of_line.trim_end());
    if shown.trim().is_empty() || repeats_closing(shown, rest_of_line) { 0 } else { shown.len() }
}

/// True if the text would close a bracket that is closed right behind the
/// cursor already (by the editor, when the user typed the opening one).
pub fn repeats_closing(shown: &str, rest_of_line: &str) -> bool {
    let first = shown.trim_start().chars().next();
    matches!(first, Some(')' | ']' | '}')) && first == rest_of_line.trim_start().chars().next()
}

/// Cuts the longest end of `shown` that `rest` begins with: accepting `a)`
/// before `)` must not leave `a))`. An end that `shown` itself opened stays:
/// `foo()` inside `bar(|)` is whole.
fn without_overlap<'a>(shown: &'a str, rest: &str) -> &'a str {
    let cut = shown
        .char_indices()
        .map(|(at, _)| at)
        .find(|&at| rest.starts_with(&shown[at..]) && !closes_its_own(shown, &shown[at..]))
        .unwrap_or(shown.len());
    shown[..cut].trim_end()
}

/// True if `end` is one closing mark and `shown` holds the mark it closes.
fn closes_its_own(shown: &str, end: &str) -> bool {
    let count = |mark: char| shown.matches(mark).count();
    match end {
        ")" => count('(') >= count(')'),
        "]" => count('[') >= count(']'),
        "}" => count('{') >= count('}'),
        "\"" => count('"') % 2 == 0,
        "'" => count('\'') % 2 == 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown<'a>(text: &'a str, healing: &str, rest: &str) -> &'a str {
        let healing = healing.len();
        &text[healing..healing + shown_bytes(text.as_bytes(), healing, rest)]
    }

    #[test]
    fn ends_at_the_newline_and_without_trailing_blanks() {
        assert_eq!(shown("foo();  \n}", "", ""), "foo();");
        assert_eq!(shown("foo();\r\nbar", "", ""), "foo();");
    }

    #[test]
    fn healed_text_is_not_shown_again() {
        assert_eq!(shown(" format(x)\n", " fo", ""), "rmat(x)");
    }

    #[test]
    fn what_stands_after_the_cursor_is_not_repeated() {
        assert_eq!(shown("a, b)", "", ")"), "a, b");
        assert_eq!(shown("a, b);", "", ");"), "a, b");
        assert_eq!(shown("a, b)", "", ");"), "a, b");
        assert_eq!(shown("x", "", "y"), "x");
        assert_eq!(shown("hello\"", "", "\""), "hello");
    }

    #[test]
    fn a_bracket_the_completion_opened_is_kept() {
        assert_eq!(shown("foo()", "", ")"), "foo()");
        assert_eq!(shown("foo(a[0])", "", ")"), "foo(a[0])");
        assert_eq!(shown("\"a\"", "", "\""), "\"a\"");
    }

    /// `pop(` typed where the editor adds `)`: the rest of `pop();` must not
    /// become `pop();)`.
    #[test]
    fn a_bracket_that_is_closed_already_is_not_closed_again() {
        assert_eq!(shown(");", "", ")"), "");
        assert_eq!(shown("});", "", "})"), "");
        assert_eq!(shown(");", "", "}"), ");");
    }

    #[test]
    fn blank_or_wholly_repeated_is_nothing() {
        assert_eq!(shown("   \n", "", ""), "");
        assert_eq!(shown(")", "", ")"), "");
        assert_eq!(shown("", "", ""), "");
    }

    #[test]
    fn a_character_cut_in_two_is_left_out() {
        let text = "né".as_bytes();
        assert_eq!(shown_bytes(&text[..2], 0, ""), 1);
        assert_eq!(shown_bytes(text, 9, ""), 0);
    }
}
