//! An answer that ran out of tokens or of time ends anywhere, even within a number or a name. The
//! part of it that is whole can still be offered.

use super::closing::Quotes;

/// Beginnings of lines that are comments in most languages.
const COMMENTS: &[&str] = &["//", "#", "/*", "*", "--", "\"\"\"", "<!--"];

/// The part of an unfinished answer that is whole: its finished lines, or, of a single line, what
/// ends with an item of a list, a bracket or a string. In prose it ends with a word.
pub(super) fn whole_part<'a>(text: &'a str, line_before: &str) -> &'a str {
    let (finished, last) = match text.rfind('\n') {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => ("", text),
    };
    if !finished.trim().is_empty() {
        return finished;
    }
    let before = if finished.len() < text.len() - last.len() { "" } else { line_before };
    &text[..text.len() - last.len() + whole_items(last, before)]
}

/// The number of bytes of an unfinished line up to the end of its last whole item.
fn whole_items(line: &str, line_before: &str) -> usize {
    let mut quotes = Quotes::open_at_end_of(line_before);
    let first = format!("{line_before}{line}");
    let is_comment = COMMENTS.iter().any(|mark| first.trim_start().starts_with(mark));
    let is_prose = is_comment || quotes.current().is_some();
    let (mut item, mut word, mut word_in_code) = (0, 0, 0);
    let mut previous = line_before.chars().next_back();
    for (at, c) in line.char_indices() {
        let was_open = quotes.current().is_some();
        quotes.read(previous.replace(c), c);
        let is_open = quotes.current().is_some();
        if c.is_whitespace() {
            word = at;
            word_in_code = if is_open { word_in_code } else { at };
        }
        let closes_string = was_open && !is_open;
        if closes_string || (!is_open && matches!(c, ',' | ';' | ')' | ']' | '}')) {
            item = at + c.len_utf8();
        }
    }
    if is_prose {
        item.max(if quotes.current().is_some() || is_comment { word } else { word_in_code })
    } else if item > 0 && !is_words(&line[item..word_in_code.max(item)]) {
        item
    } else {
        word_in_code
    }
}

/// Returns whether a text consists of words, as a sentence does, and not of code.
fn is_words(text: &str) -> bool {
    text.contains(char::is_alphabetic)
        && text.chars().all(|c| c.is_alphabetic() || c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_line_ends_with_its_last_whole_item() {
        let whole = |line| whole_part(line, "x = ");
        assert_eq!(whole(" 32, 64, 128, 20"), " 32, 64, 128,");
        assert_eq!(whole("f(a, b) + c"), "f(a, b)");
        assert_eq!(whole("sorted([3, 1]) == [1], \"Test case"), "sorted([3, 1]) == [1],");
        assert_eq!(whole("\"a, b\" + c"), "\"a, b\"");
        assert_eq!(whole("first_name + last_na"), "first_name +");
        assert_eq!(whole("unfinished"), "");
    }

    #[test]
    fn prose_ends_with_a_word() {
        assert_eq!(whole_part(" Returns the sum, or ze", "//"), " Returns the sum, or");
        assert_eq!(whole_part("- The \"A\" is a sin", ""), "- The \"A\" is a");
        assert_eq!(whole_part("# The list of peop", "  "), "# The list of");
        assert_eq!(whole_part("is not a fi", "raise Error(\"it "), "is not a");
        assert_eq!(whole_part("end\", na", "f(\"the "), "end\",");
    }

    #[test]
    fn of_several_lines_the_finished_ones_are_whole() {
        assert_eq!(whole_part("a();\n    b();\n    c(", "  "), "a();\n    b();");
        assert_eq!(whole_part("\n    call(a, b", "if x {"), "\n    call(a,");
    }
}
