//! Edits at the place of an offer that may mean more than one thing. Those that formatters and
//! editors make by themselves say nothing about the offer, though the user may have made them.

use completion::document::Edit;
use ropey::Rope;
use std::ops::Range;

/// Returns whether a tool may have made this edit of the text `was`. `place` is where the live
/// offer begins, and where its next character would go.
pub fn may_be(was: &Rope, edit: &Edit, place: &Range<usize>) -> bool {
    respaces(was, edit, place) || puts_lines_above(was, edit, place)
}

/// Returns whether this edit of the text `was` may put in the final newline, as editors do on save.
pub fn is_final_newline(was: &Rope, edit: &Edit) -> bool {
    edit.start == was.len_chars() && is_one_break(&edit.inserted)
}

/// A removal, expressed as one of what was typed of an offer last, if that has the same effect on
/// the text `was`. An editor that compares two texts reports it at another of several equal marks.
pub fn taken_back(was: &Rope, edit: Edit, place: &Range<usize>) -> Edit {
    let length = edit.removed;
    let is_removal = length > 0 && edit.inserted.is_empty();
    if !is_removal || length > place.len() || place.end > was.len_chars() {
        return edit;
    }
    let start = place.end - length;
    let (from, to) = (start.min(edit.start), start.max(edit.start));
    let is_same = was.slice(from..to) == was.slice(from + length..to + length);
    if is_same { Edit { start, ..edit } } else { edit }
}

/// Returns whether this edit of the text `was` is an entry of the editor's suggestion list that the
/// user chose: it completes the word before the place. `told_from` is where the change begins that
/// the editor told. With an entry, editors write the beginning of the word again, which they do not
/// with an offer, because that begins at the cursor. Clients of Copilot's agent write the whole
/// line.
pub fn completes_word(was: &Rope, told_from: usize, edit: &Edit, place: &Range<usize>) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let is_behind = edit.removed == 0 && edit.start == place.end && told_from < edit.start;
    if !is_behind || edit.start > was.len_chars() {
        return false;
    }
    let again = was.slice(told_from..edit.start);
    // Some languages put the dot before a name into the entry.
    let name = if again.char(0) == '.' { again.slice(1..) } else { again };
    let is_whole_word = told_from == 0 || again.char(0) == '.' || !is_name(was.char(told_from - 1));
    is_whole_word && name.chars().all(is_name) && edit.inserted.chars().all(is_name)
}

/// Blanks or line breaks before or behind the place are replaced by others, or removed: trailing
/// blanks are trimmed, and lines are indented anew.
fn respaces(was: &Rope, edit: &Edit, place: &Range<usize>) -> bool {
    let end = edit.start + edit.removed;
    let is_next_to_it = edit.start < place.start || end > place.end;
    edit.removed > 0
        && is_next_to_it
        && was.slice(edit.start..end).chars().all(char::is_whitespace)
        && edit.inserted.chars().all(char::is_whitespace)
}

/// Whole lines are inserted above the line at whose start the place is, as an automatic import is.
fn puts_lines_above(was: &Rope, edit: &Edit, place: &Range<usize>) -> bool {
    let is_at_line_start = was.line_to_char(was.char_to_line(edit.start)) == edit.start;
    edit.removed == 0
        && edit.start == place.start
        && is_at_line_start
        && edit.inserted.ends_with(is_line_break)
        && !edit.inserted.chars().all(char::is_whitespace)
}

fn is_one_break(text: &str) -> bool {
    matches!(text, "\n" | "\r\n" | "\r")
}

pub fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether a tool may have turned the first text into the second, where `|` is the
    /// place.
    fn is_tools(before: &str, removed: &str, inserted: &str) -> bool {
        let place = before.chars().position(|c| c == '|').unwrap();
        let edit_at = before.chars().position(|c| c == '^').unwrap();
        let text = before.replace(['|', '^'], "");
        let (place, start) = match place < edit_at {
            true => (place, edit_at - 1),
            false => (place - 1, edit_at),
        };
        let edit = Edit { start, removed: removed.chars().count(), inserted: inserted.into() };
        let was = Rope::from_str(&text);
        may_be(&was, &edit, &(place..place)) || is_final_newline(&was, &edit)
    }

    #[test]
    fn blanks_around_the_place_may_be_changed_by_a_formatter() {
        assert!(is_tools("^    |\n", "    ", ""), "trimmed");
        assert!(is_tools("^    |\n", "    ", "\t"), "indented by tabs");
        assert!(is_tools("x =^ |\n", " ", ""), "a single blank");
        assert!(is_tools("f(|^  \n", "  ", ""), "trailing blanks");
        assert!(is_tools("f(|^\n\n\n", "\n\n", ""), "empty lines");
        assert!(!is_tools("f^x|\n", "x", ""), "the Backspace key");
        assert!(!is_tools("x =|^\n", "", " "), "the space bar");
    }

    /// Neovim reports the second `}` of `}}}` as removed where the third one was.
    #[test]
    fn a_removal_is_one_of_what_was_typed_where_that_is_the_same() {
        let removal = |start, removed| Edit { start, removed, inserted: String::new() };
        let seen = |edit, place| taken_back(&Rope::from_str("a}}}b"), edit, &place);
        assert_eq!(seen(removal(3, 1), 1..2), removal(1, 1));
        assert_eq!(seen(removal(2, 2), 1..3), removal(1, 2));
        assert_eq!(seen(removal(3, 1), 1..1), removal(3, 1), "nothing was typed");
        assert_eq!(seen(removal(4, 1), 1..2), removal(4, 1), "another mark");
    }

    /// Returns whether the editor's change, which puts `text` in from `^` to `|`, is an entry of
    /// its list.
    fn is_entry(before: &str, text: &str) -> bool {
        let told_from = before.chars().position(|c| c == '^').unwrap();
        let cursor = before.chars().position(|c| c == '|').unwrap() - 1;
        let was = Rope::from_str(&before.replace(['|', '^'], ""));
        let inserted = text.chars().skip(cursor - told_from).collect();
        let edit = Edit { start: cursor, removed: 0, inserted };
        completes_word(&was, told_from, &edit, &(cursor..cursor))
    }

    #[test]
    fn an_entry_of_the_list_writes_the_word_again() {
        assert!(is_entry("x = ^fi|\n", "findIndex"));
        assert!(is_entry("ref^.fil|;\n", ".fileName"));
        assert!(is_entry("ref^.|\n", ".fileName"));
        assert!(is_entry("^co|\n", "const"));
        assert!(!is_entry("x = ^|\n", "findIndex"), "an offer begins at the cursor");
        assert!(!is_entry("x = f^i|\n", "index"), "in the middle of a word");
        assert!(!is_entry("^x = fi|\n", "x = findIndex"), "the whole line");
        assert!(!is_entry("^    fi|\n", "    findIndex"), "with its indentation");
        assert!(!is_entry("x = ^fi|\n", "find the index"), "more than a name");
        assert!(!is_entry("x = ^fi|\n", "findIndex(x)"), "more than a name");
    }

    #[test]
    fn a_final_newline_may_be_put_in_on_save() {
        assert!(is_tools("fn a() {|^", "", "\n"));
        assert!(!is_tools("fn a() {|^", "", "\n    "), "the Enter key indents");
        assert!(!is_tools("fn a() {|^\n", "", "\n"), "there is one already");
    }

    #[test]
    fn lines_may_be_put_in_above() {
        assert!(is_tools("|^fn a() {}\n", "", "use b;\n"));
        assert!(!is_tools("|^fn a() {}\n", "", "\n"), "the Enter key");
        assert!(!is_tools("x |^\n", "", "= 1;\n"), "within a line");
    }
}
