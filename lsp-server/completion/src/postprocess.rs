//! Post-processing: turns generated text into text that may be shown. That is one line, or as many
//! as the stop rule allows. It is never blank and does not repeat the text around the cursor.

mod closing;
mod cut_off;
mod nearby_text;
mod rest_of_line;

use crate::stop_rule::{StopRule, valid_utf8_prefix};
use closing::{brings, closing, repeats_closing, without_overlap};
use cut_off::whole_part;
use feedback::event::StopReason;
pub use nearby_text::NearbyText;
use rest_of_line::{before_rest, runs_into_a_name, with_blank_before_name};

/// The number of bytes that are shown: the shown part is `text[healing..healing + result]`. It may
/// continue behind marks that the editor closed; [`replaced_suffix`] says which marks it replaces.
///
/// * `text`: the concatenated pieces of the generated tokens.
/// * `healing`: the number of bytes at its start that reproduce what the user has typed.
pub fn shown_bytes(text: &[u8], healing: usize, nearby: &NearbyText) -> usize {
    let Some(completion) = text.get(healing..) else { return 0 };
    let line = valid_utf8_prefix(completion).split(['\n', '\r']).next().unwrap_or_default();
    let rest = nearby.rest_of_line.trim_end();
    let line = line.trim_end();
    let (shown, replaced) = match closing(line, &nearby.line_before, rest) {
        Some(at) if !nearby.keeps_marks && line[at..] != *rest && brings(&line[at..], rest) => {
            (line, true)
        }
        Some(at) => (without_overlap(&line[..at], rest), false),
        None => (without_overlap(line, rest), false),
    };
    let shown = if replaced { shown } else { before_rest(shown, &nearby.line_before, rest) };
    let shown = with_blank_before_name(shown, completion, rest);
    let doubled = !replaced && repeats_closing(shown, rest);
    let runs_on = runs_into_a_name(shown, &nearby.line_before, rest);
    let repeats = repeats_a_line(without_extra_blank(shown, nearby), nearby);
    let nothing = shown.trim().is_empty() || doubled || runs_on || repeats;
    if nothing { 0 } else { shown.len() }
}

/// Returns whether the line would be the same as the line above or the next line below. Lines
/// without letters may repeat the line above.
fn repeats_a_line(shown: &str, nearby: &NearbyText) -> bool {
    if !nearby.rest_of_line.trim().is_empty() {
        return false;
    }
    let line = format!("{}{shown}", nearby.line_before);
    let repeats_above = line == nearby.above.trim_end() && line.contains(char::is_alphabetic);
    repeats_above || line == nearby.below.trim_end()
}

/// The marks right behind the cursor, up to the end of its line, that this text replaces because it
/// brings them itself. In `foo(|)`, where an editor closed the bracket, `a, b);` must become
/// `foo(a, b);`. Each mark is one character in any encoding.
pub fn replaced_suffix<'a>(text: &str, nearby: &'a NearbyText) -> &'a str {
    let rest = nearby.rest_of_line.trim_end();
    let at = closing(text, &nearby.line_before, rest);
    let is_allowed = !nearby.keeps_marks && !text.contains('\n');
    if is_allowed && at.is_some_and(|at| brings(&text[at..], rest)) { rest } else { "" }
}

/// Returns whether a text would close again what is closed behind the cursor by now, such as a
/// bracket that the editor has closed since the text was generated.
pub fn closes_again(text: &str, nearby: &NearbyText) -> bool {
    let rest = nearby.rest_of_line.trim_end();
    let closes = repeats_closing(text, rest) || closing(text, &nearby.line_before, rest).is_some();
    closes && replaced_suffix(text, nearby).is_empty()
}

/// Like [`shown_bytes`], for as many lines as the stop rule allows. Of an answer that `stop` ended
/// in the middle, only what is whole is shown.
pub fn shown_lines(
    text: &[u8],
    healing: usize,
    stop: StopReason,
    stop_rule: &StopRule,
    nearby: &NearbyText,
) -> usize {
    let text = if is_cut_off(stop) { whole_text(text, healing, nearby) } else { text };
    let Some((line_before, below)) = stop_rule.lines_around() else {
        return shown_bytes(text, healing, nearby);
    };
    let answer = stop_rule.within(text.get(healing..).unwrap_or_default());
    let shown = without_lines_below(valid_utf8_prefix(answer).trim_end(), line_before, below);
    if shown.contains('\n') {
        shown.len()
    } else {
        shown_bytes(&text[..text.len().min(healing + shown.len())], healing, nearby)
    }
}

/// The text without the one blank by which it would indent its line too far. Models put a blank
/// before the first word of a line that is indented already. The blank stays where a line close by
/// has this indentation, and before a `*`, with which the lines of a comment begin.
pub fn without_extra_blank<'a>(shown: &'a str, nearby: &NearbyText) -> &'a str {
    let is_line = !shown.contains('\n');
    let is_at_start = nearby.line_before.chars().all(char::is_whitespace);
    let word = shown.strip_prefix(' ').filter(|text| !text.starts_with([' ', '\t', '*']));
    match word {
        Some(word) if is_line && is_at_start && !nearby.is_indented_by_one_more => word,
        _ => shown,
    }
}

/// Returns whether an answer ends where it ran out of tokens or of time.
fn is_cut_off(stop: StopReason) -> bool {
    matches!(stop, StopReason::MaxTokens | StopReason::Budget)
}

/// Returns whether an answer was cut off before any part of it was whole.
pub fn is_unfinished(text: &[u8], healing: usize, stop: StopReason, nearby: &NearbyText) -> bool {
    is_cut_off(stop)
        && whole_text(text, healing, nearby)
            .get(healing..)
            .is_none_or(|part| part.trim_ascii().is_empty())
}

fn whole_text<'a>(text: &'a [u8], healing: usize, nearby: &NearbyText) -> &'a [u8] {
    let answer = valid_utf8_prefix(text.get(healing..).unwrap_or_default());
    &text[..text.len().min(healing + whole_part(answer, &nearby.line_before).len())]
}

/// Cuts the longest run of lines at the end of `shown` with which the text below begins. Blank
/// lines are ignored.
fn without_lines_below<'a>(shown: &'a str, line_before: &str, below: &[String]) -> &'a str {
    let own = shown.split('\n').next().unwrap_or_default();
    let first = format!("{line_before}{own}");
    // The cursor's own line belongs to the completion only if something was added to it.
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

/// Returns whether a text of several lines would break the line before text that stands behind the
/// cursor by now, such as a bracket that the editor has closed.
pub fn breaks_line(shown: &str, rest_of_line: &str) -> bool {
    let ends_on_own_line = shown.rsplit('\n').next().is_some_and(|last| last.trim().is_empty());
    shown.contains('\n') && !rest_of_line.trim().is_empty() && !ends_on_own_line
}

#[cfg(test)]
mod tests {
    use super::nearby_text::LINE_CHARS;
    use super::*;
    use crate::auto_closed::MARKS_LIMIT;
    use crate::stop_rule::Multiline;
    use crate::stop_rule::MultilineSetting;
    use ropey::Rope;

    fn shown<'a>(text: &'a str, healing: &str, rest: &str) -> &'a str {
        let nearby = NearbyText { rest_of_line: rest.into(), ..NearbyText::default() };
        let healing = healing.len();
        &text[healing..healing + shown_bytes(text.as_bytes(), healing, &nearby)]
    }

    /// The part of `text` that is shown at the cursor, which `|` marks.
    fn shown_at<'a>(text: &'a str, document: &str) -> &'a str {
        let cursor = document.chars().position(|c| c == '|').unwrap();
        let rope = Rope::from_str(&document.replacen('|', "", 1));
        &text[..shown_bytes(text.as_bytes(), 0, &NearbyText::of(&rope, cursor))]
    }

    #[test]
    fn only_a_part_of_a_minified_line_is_copied() {
        let text = Rope::from_str(&"a();".repeat(100_000));
        let nearby = NearbyText::of(&text, 200_000);
        assert_eq!(nearby.line_before.len(), LINE_CHARS);
        assert_eq!(nearby.rest_of_line.len(), LINE_CHARS);
        assert_eq!(NearbyText::of(&Rope::from_str("a\r\nb|c\r\n"), 4).rest_of_line, "|c");
    }

    /// The apostrophe was no quote, because it may be a lifetime. So an editor's closing marks were
    /// doubled in the first line of every JavaScript file: `require('fs');')`.
    #[test]
    fn what_the_editor_closed_in_single_quotes_is_not_closed_again() {
        let taken = |text, document| replaced_at(text, document);
        let whole = |text: &str, marks: &str| (text.to_owned(), marks.to_owned());
        assert_eq!(taken("fs');", "const fs = require('|')"), whole("fs');", "')"));
        assert_eq!(taken("react';", "import { useState } from '|'"), whole("react';", "'"));
        assert_eq!(taken("x', 'r') as f:", "    with open('|')"), whole("x', 'r') as f:", "')"));
        assert_eq!(taken("{x}')", "print(f'|')"), whole("{x}", ""));
        assert_eq!(taken("a'];", "$row['|']"), whole("a'];", "']"));
        assert_eq!(shown_at("id = 1';", "db.query('select |') + x"), "id = 1");
    }

    #[test]
    fn a_lifetime_is_no_string() {
        assert_eq!(shown_at("a: &'a str)", "fn f<'a>(|)"), "a: &'a str");
    }

    #[test]
    fn a_bracket_that_the_editor_closed_is_not_closed_again() {
        assert_eq!(shown_at("x > 0) {", "if (|) y"), "x > 0");
        assert_eq!(shown_at("a, b);", "foo(|))"), "a, b");
        assert_eq!(shown_at("a[0], \"])\"]);", "foo(|) + 1"), "a[0], \"])\"]");
        assert_eq!(shown_at("bc\", x);", "foo(\"a|\"))"), "bc");
        assert_eq!(shown_at("b\\\"c\", x);", "foo(\"a|\"))"), "b\\\"c");
        assert_eq!(shown_at("a, b)", "foo(|)"), "a, b", "there is nothing behind it");
        assert_eq!(shown_at("f(x)?;", "let y = {|}"), "f(x)?;");
        assert_eq!(shown_at("x]; y)", "foo(a[|)"), "x]; y", "the bracket that is not closed yet");
    }

    /// The part of `text` that is shown at the cursor, and the part of the document that it
    /// replaces.
    fn replaced_at(text: &str, document: &str) -> (String, String) {
        let cursor = document.chars().position(|c| c == '|').unwrap();
        let rope = Rope::from_str(&document.replacen('|', "", 1));
        let nearby = NearbyText::of(&rope, cursor);
        let shown = &text[..shown_bytes(text.as_bytes(), 0, &nearby)];
        (shown.into(), replaced_suffix(shown, &nearby).into())
    }

    #[test]
    fn marks_of_the_editor_are_replaced_where_the_line_continues_behind_them() {
        let whole = |text: &str, marks: &str| (text.to_owned(), marks.to_owned());
        assert_eq!(replaced_at("x > 0) {", "if (|)"), whole("x > 0) {", ")"));
        assert_eq!(replaced_at("a, b);", "foo(|)  \n}"), whole("a, b);", ")"));
        assert_eq!(replaced_at("a[0], \"])\"]);", "foo(|)"), whole("a[0], \"])\"]);", ")"));
        assert_eq!(replaced_at("bc\", x);", "foo(\"a|\")"), whole("bc\", x);", "\")"));
        assert_eq!(replaced_at("b\\\"c\", x);", "foo(\"a|\")"), whole("b\\\"c\", x);", "\")"));
        assert_eq!(replaced_at("bc\");", "foo(\"a|)"), whole("bc\");", ")"), "its own quote");
        assert_eq!(replaced_at(");", "foo(|)"), whole(");", ")"), "only what is missing is new");
        assert_eq!(replaced_at("foo()", "bar(|)"), whole("foo()", ""), "closes its own");
        assert_eq!(replaced_at("a, b)", "foo(|)"), whole("a, b", ""), "nothing continues");
        assert_eq!(replaced_at("a);", "foo(|) + b"), whole("a", ""), "more than marks");
        assert_eq!(replaced_at("a", "foo(|)"), whole("a", ""), "does not bring it");
        let long = ")".repeat(MARKS_LIMIT + 1);
        let text = format!("a{long};");
        assert_eq!(replaced_at(&text, &format!("foo(|{long}")), whole("a", ""));
    }

    #[test]
    fn a_line_equal_to_the_one_above_or_below_is_not_offered() {
        assert_eq!(shown_at("foo();", "    foo();\n    |\n}"), "");
        assert_eq!(shown_at("foo();", "    bar();\n    |\n\n    foo();\n"), "");
        assert_eq!(shown_at(" = 1;", "let x|\nlet x = 1;\r\n"), "");
        assert_eq!(shown_at("}", "    |\n}"), "}", "another depth");
        assert_eq!(shown_at("}", "|\n}"), "");
        assert_eq!(shown_at("0, 0,", "0, 0,\n|\n"), "0, 0,", "a table");
        assert_eq!(shown_at("foo", "foo()\n|()\n"), "foo", "not the whole line");
    }

    #[test]
    fn a_line_is_not_indented_by_one_blank_too_many() {
        let at = |text, document: &str| {
            let cursor = document.chars().position(|c| c == '|').unwrap();
            let rope = Rope::from_str(&document.replacen('|', "", 1));
            without_extra_blank(text, &NearbyText::of(&rope, cursor)).to_owned()
        };
        assert_eq!(at(" return x;", "f() {\n    |\n}\n"), "return x;");
        assert_eq!(at(" return x;", "f() {\n\t|\n}\n"), "return x;");
        assert_eq!(at(" return x;", "a\n|"), "return x;");
        assert_eq!(at("  return x;", "f() {\n  |\n}\n"), "  return x;", "a level deeper");
        assert_eq!(at(" x;", "f() {\n |\n  y;\n}\n"), " x;", "a line below has it");
        assert_eq!(at(" - b", "a:\n  |\n   - a\n"), " - b", "a line has this indentation");
        assert_eq!(at(" * It is.", "/**\n|\n"), " * It is.", "a comment");
        assert_eq!(at(" = 1;", "    let x|\n"), " = 1;", "text stands before it");
        assert_eq!(at(" a\n b", "x\n|\n"), " a\n b", "several lines move together");
        assert_eq!(
            shown_at(" foo();", "    foo();\n    |\n}"),
            "",
            "it would repeat the line above"
        );
    }

    #[test]
    fn the_shown_text_ends_at_the_newline_without_trailing_blanks() {
        assert_eq!(shown("foo();  \n}", "", ""), "foo();");
        assert_eq!(shown("foo();\r\nbar", "", ""), "foo();");
    }

    #[test]
    fn healed_text_is_not_shown_again() {
        assert_eq!(shown(" format(x)\n", " fo", ""), "rmat(x)");
    }

    #[test]
    fn text_behind_the_cursor_is_not_repeated() {
        assert_eq!(shown("a, b)", "", ")"), "a, b");
        assert_eq!(shown("a, b);", "", ");"), "a, b");
        assert_eq!(shown("a, b)", "", ");"), "a, b");
        assert_eq!(shown("x", "", " y"), "x");
        assert_eq!(shown("x", "", "y"), "", "they would be one word");
        assert_eq!(shown("hello\"", "", "\""), "hello");
    }

    #[test]
    fn a_bracket_the_completion_opened_is_kept() {
        assert_eq!(shown("foo()", "", ")"), "foo()");
        assert_eq!(shown("foo(a[0])", "", ")"), "foo(a[0])");
        assert_eq!(shown("\"a\"", "", "\""), "\"a\"");
    }

    /// If the user typed `pop(` and the editor added `)`, the rest of `pop();` must not make
    /// `pop();)`.
    #[test]
    fn a_bracket_that_is_closed_already_is_not_closed_again() {
        assert_eq!(shown(");", "", ") x"), "");
        assert_eq!(shown("});", "", "}) x"), "");
        assert_eq!(shown(");", "", "}"), ");");
    }

    /// The part of an invoked completion of several lines that is shown; `|` marks the cursor.
    fn lines<'a>(marked: &str, text: &'a str) -> &'a str {
        let cursor = marked.chars().position(|c| c == '|').unwrap();
        let file = Rope::from_str(&marked.replacen('|', "", 1));
        let setting = MultilineSetting { multiline: Multiline::Invoked, max_lines: 8 };
        let stop_rule = StopRule::at(&file, cursor, "text", true, setting);
        const STOP: StopReason = StopReason::BlockEnd;
        &text[..shown_lines(text.as_bytes(), 0, STOP, &stop_rule, &NearbyText::of(&file, cursor))]
    }

    #[test]
    fn several_lines_end_without_blank_lines() {
        assert_eq!(lines("  |\n", "a\n\n  b  \n\n"), "a\n\n  b");
        assert_eq!(lines("a:|\n", "\n  b\n\n"), "\n  b");
        assert_eq!(lines("a:|\n", "\n  \n\n"), "");
    }

    #[test]
    fn lines_below_the_cursor_are_not_repeated() {
        assert_eq!(lines("  |\n  c\n", "a\n  b\n  c"), "a\n  b");
        assert_eq!(lines("  |\n\n  b\n  c\n", "a\n  b\n\n  c"), "a");
        assert_eq!(lines("  |\n  a\n  b\n", "a\n  b"), "", "the cursor's own line too");
        assert_eq!(lines("a:|\n  b\n", "\n  b"), "");
        assert_eq!(lines("  |\n  b\n", "b\n  c"), "b\n  c", "something comes between");
        assert_eq!(lines("  |\nb\n", "a\n  b"), "a\n  b", "another depth");
    }

    #[test]
    fn a_single_line_is_the_same_with_either_function() {
        for text in ["foo();  \n}", "foo();\r\nbar", "   \n", "", "a, b);"] {
            for rest in ["", ")", "y"] {
                let nearby = NearbyText { rest_of_line: rest.into(), ..NearbyText::default() };
                let (text_bytes, stop) = (text.as_bytes(), StopReason::Newline);
                let length = shown_lines(text_bytes, 0, stop, &StopRule::LINE, &nearby);
                assert_eq!(length, shown_bytes(text.as_bytes(), 0, &nearby), "{text}");
            }
        }
    }

    #[test]
    fn blank_or_wholly_repeated_text_is_not_shown() {
        assert_eq!(shown("   \n", "", ""), "");
        assert_eq!(shown(")", "", ")"), "");
        assert_eq!(shown("", "", ""), "");
    }

    #[test]
    fn an_incomplete_character_is_left_out() {
        let text = "né".as_bytes();
        assert_eq!(shown_bytes(&text[..2], 0, &NearbyText::default()), 1);
        assert_eq!(shown_bytes(text, 9, &NearbyText::default()), 0);
    }
}
