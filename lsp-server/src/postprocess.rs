//! Generated text → what may be shown: one line, or as many as were wanted, no
//! repetition of what already stands after the cursor, never blank.

use crate::extent::Extent;

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

/// As [`shown_bytes`], of as many lines as the extent holds.
pub fn shown_lines(text: &[u8], healing: usize, extent: &Extent, rest_of_line: &str) -> usize {
    let Some((line_before, below)) = extent.around() else {
        return shown_bytes(text, healing, rest_of_line);
    };
    let said = extent.within(text.get(healing..).unwrap_or_default());
    let valid = match std::str::from_utf8(said) {
        Ok(all) => all,
        Err(error) => std::str::from_utf8(&said[..error.valid_up_to()]).unwrap_or_default(),
    };
    let shown = without_lines_below(valid.trim_end(), line_before, below);
    match shown.contains('\n') {
        true => shown.len(),
        false => shown_bytes(&text[..text.len().min(healing + shown.len())], healing, rest_of_line),
    }
}

/// Cuts the longest run of lines at the end of `shown` with which the text below
/// begins. Blank lines count for nothing.
fn without_lines_below<'a>(shown: &'a str, line_before: &str, below: &[String]) -> &'a str {
    let own = shown.split('\n').next().unwrap_or_default();
    let first = format!("{line_before}{own}");
    // The cursor's own line is the completion's only if something was added to it.
    let mut lines = if own.trim().is_empty() { vec![] } else { vec![(0, first.trim_end())] };
    let breaks = shown.match_indices('\n').map(|(at, _)| at);
    lines.extend(breaks.map(|at| {
        let line = shown[at + 1..].split('\n').next().unwrap_or_default();
        (at, line.trim_end())
    }));
    lines.retain(|(_, line)| !line.is_empty());
    let most = lines.len().min(below.len());
    let repeats = |count: &usize| {
        let last = &lines[lines.len() - count..];
        last.iter().zip(below).all(|((_, line), known)| *line == known.trim_end())
    };
    let cut =
        (1..=most).rev().find(repeats).map_or(shown.len(), |count| lines[lines.len() - count].0);
    shown[..cut].trim_end()
}

/// True if a text of several lines would break the line before what stands
/// behind the cursor by now: the editor has closed a bracket there.
pub fn breaks_line(shown: &str, rest_of_line: &str) -> bool {
    shown.contains('\n') && !rest_of_line.trim().is_empty()
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
    use crate::config::Multiline;
    use crate::extent::Setting;

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

    /// What is shown of several lines asked for by hand; `|` marks the cursor.
    fn lines<'a>(marked: &str, text: &'a str) -> &'a str {
        let cursor = marked.chars().position(|c| c == '|').unwrap();
        let file = ropey::Rope::from_str(&marked.replacen('|', "", 1));
        let setting = Setting { multiline: Multiline::ByHand, max_lines: 8 };
        let extent = Extent::at(&file, cursor, "text", true, setting);
        &text[..shown_lines(text.as_bytes(), 0, &extent, "")]
    }

    #[test]
    fn several_lines_end_without_blank_lines() {
        assert_eq!(lines("  |\n", "a\n\n  b  \n\n"), "a\n\n  b");
        assert_eq!(lines("a:|\n", "\n  b\n\n"), "\n  b");
        assert_eq!(lines("a:|\n", "\n  \n\n"), "");
    }

    #[test]
    fn lines_that_stand_below_are_not_repeated() {
        assert_eq!(lines("  |\n  c\n", "a\n  b\n  c"), "a\n  b");
        assert_eq!(lines("  |\n\n  b\n  c\n", "a\n  b\n\n  c"), "a");
        assert_eq!(lines("  |\n  a\n  b\n", "a\n  b"), "", "the cursor's own line too");
        assert_eq!(lines("a:|\n  b\n", "\n  b"), "");
        assert_eq!(lines("  |\n  b\n", "b\n  c"), "b\n  c", "something comes between");
        assert_eq!(lines("  |\nb\n", "a\n  b"), "a\n  b", "another depth");
    }

    #[test]
    fn one_line_is_what_it_was() {
        for text in ["foo();  \n}", "foo();\r\nbar", "   \n", "", "a, b);"] {
            for rest in ["", ")", "y"] {
                let length = shown_lines(text.as_bytes(), 0, &Extent::LINE, rest);
                assert_eq!(length, shown_bytes(text.as_bytes(), 0, rest), "{text}");
            }
        }
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
