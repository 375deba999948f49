//! Document and cursor → the four texts of a FIM prompt.
//!
//! The layout is "PSM with the current line behind the middle token"
//! (`<prefix>{prefix}<suffix>{suffix}<middle>{line}`): while the user types on
//! one line, everything up to the middle token stays byte for byte the same, so
//! its KV is kept, and the text the adapter acts on starts at the line.

use ropey::Rope;

/// The window's first line moves in steps of this many lines, so that typing a
/// newline does not shift the whole prefix and throw its KV away.
const ANCHOR_LINES: usize = 16;

/// The same for a file of very long lines, in characters.
const ANCHOR_CHARS: usize = 256;

/// Most characters of the current line before the cursor: a minified file is one line.
pub const LINE_CHARS: usize = 512;

/// Longest text, leading blanks aside, that a completion is made to reproduce
/// before it says anything new.
const HEALING_BYTES: usize = 40;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FimPrompt {
    /// Whole lines above the cursor's.
    pub prefix: String,
    /// The cursor's line up to a token-safe boundary.
    pub line: String,
    /// What lies between that boundary and the cursor; the completion must
    /// start by reproducing it.
    pub healing: String,
    /// Everything after the cursor, up to the window's end.
    pub suffix: String,
}

#[derive(Debug, Clone, Copy)]
pub struct Window {
    pub prefix_chars: usize,
    pub suffix_chars: usize,
}

/// `cursor` in characters; must not lie past the end.
pub fn build(text: &Rope, cursor: usize, window: Window) -> FimPrompt {
    let line_start = text.line_to_char(text.char_to_line(cursor));
    let start = prefix_start(text, line_start, window.prefix_chars);
    let line_from = line_start.max(cursor.saturating_sub(LINE_CHARS));
    let line = text.slice(line_from..cursor).to_string();
    let boundary = healing_boundary(&line);
    FimPrompt {
        prefix: text.slice(start..line_start).to_string(),
        healing: line[boundary..].to_owned(),
        line: line[..boundary].to_owned(),
        suffix: text.slice(cursor..suffix_end(text, cursor, window.suffix_chars)).to_string(),
    }
}

fn prefix_start(text: &Rope, line_start: usize, budget: usize) -> usize {
    let cursor_line = text.char_to_line(line_start);
    let anchors = (0..=cursor_line).step_by(ANCHOR_LINES).map(|line| text.line_to_char(line));
    let mut within = anchors.skip_while(|anchor| line_start - anchor > budget);
    within.next().unwrap_or_else(|| {
        let earliest = line_start - budget.min(line_start);
        earliest.next_multiple_of(ANCHOR_CHARS).min(line_start)
    })
}

/// Ends at a line's end where the window holds one.
fn suffix_end(text: &Rope, cursor: usize, budget: usize) -> usize {
    let limit = cursor + budget;
    if limit >= text.len_chars() {
        return text.len_chars();
    }
    let whole_lines = text.line_to_char(text.char_to_line(limit));
    if whole_lines > cursor { whole_lines } else { limit }
}

/// Byte index in `line` at which the prompt may end without cutting through a
/// token the model would have made. Byte-level BPE never merges across the
/// pieces its pre-tokenizer cuts, so the prompt ends where the last piece
/// starts: a word with the one mark or the blanks before it, a run of marks with
/// the blank before it, or trailing blanks. (Qwen2's pattern; those of GPT-2's
/// family cut at these places too.)
fn healing_boundary(line: &str) -> usize {
    let start = last_piece(line);
    // Beyond that the text itself is the better guide than a long constraint.
    let piece = line[start..].trim_start_matches(is_blank);
    if piece.len() > HEALING_BYTES { line.len() } else { start }
}

fn last_piece(line: &str) -> usize {
    let without_word = line.trim_end_matches(char::is_alphanumeric);
    let has_word = without_word.len() < line.len();
    let without_blanks = without_word.trim_end_matches(is_blank);
    if without_blanks.len() < without_word.len() {
        return without_blanks.len();
    }
    let without_marks = without_word.trim_end_matches(is_mark);
    let marks = without_word[without_marks.len()..].chars().count();
    let joins_a_blank = without_marks.ends_with(is_blank);
    match (has_word, marks) {
        (true, 1) if !joins_a_blank => without_marks.len(),
        (true, _) => without_word.len(),
        (false, _) if joins_a_blank => without_marks.len() - 1,
        (false, _) => without_marks.len(),
    }
}

fn is_blank(c: char) -> bool {
    c == ' ' || c == '\t'
}

/// What pre-tokenizers keep together: neither letter nor number nor space.
fn is_mark(c: char) -> bool {
    !c.is_alphanumeric() && !c.is_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window { prefix_chars: 1500, suffix_chars: 40 };

    /// `|` marks the cursor.
    fn at(marked: &str) -> FimPrompt {
        let cursor = marked.chars().position(|c| c == '|').unwrap();
        build(&Rope::from_str(&marked.replacen('|', "", 1)), cursor, WINDOW)
    }

    fn healed(line: &str) -> (String, String) {
        let prompt = at(line);
        (prompt.line, prompt.healing)
    }

    #[test]
    fn the_prompt_ends_before_what_a_token_may_span() {
        let case = |line: &str, kept: &str, healing: &str| {
            assert_eq!(healed(line), (kept.to_owned(), healing.to_owned()), "{line}");
        };
        case("let fo|", "let", " fo");
        case("    |", "", "    ");
        case("\t\tret|", "", "\t\tret");
        case("x = |", "x =", " ");
        case("self.na|", "self", ".na");
        case("foo(|", "foo", "(");
        case("use std::|", "use std", "::");
        case("use std::ti|", "use std::", "ti");
        case("let x = &|", "let x =", " &");
        case("let x = &se|", "let x = &", "se");
        case("fn f() -|", "fn f()", " -");
        case("foo_ba|", "foo", "_ba");
        case("__in|", "__", "in");
        case("|", "", "");
        case("größe|", "", "größe");
    }

    #[test]
    fn what_is_too_long_to_heal_stays_in_the_prompt() {
        let ruler = format!("//{}", "-".repeat(HEALING_BYTES));
        assert_eq!(healed(&format!("{ruler}|")), (ruler, String::new()));
    }

    #[test]
    fn the_parts_join_to_the_text_around_the_cursor() {
        let prompt = at("fn a() {}\nfn main() {\n    let x = fo|;\n}\n");
        assert_eq!(prompt.prefix, "fn a() {}\nfn main() {\n");
        assert_eq!(format!("{}{}", prompt.line, prompt.healing), "    let x = fo");
        assert_eq!(prompt.suffix, ";\n}\n");
    }

    #[test]
    fn typing_on_a_line_leaves_prefix_and_suffix_alone() {
        let (before, after) = (at("a\nb\nlet x|\nc\n"), at("a\nb\nlet xyz = 1|\nc\n"));
        assert_eq!((before.prefix, before.suffix), (after.prefix, after.suffix));
    }

    #[test]
    fn new_lines_extend_the_prefix_without_moving_its_start() {
        let numbered = |lines: usize| -> Rope {
            (0..lines).map(|i| format!("line number {i:04} of it\n")).collect::<String>().into()
        };
        let prefix = |lines: usize| {
            let text = numbered(lines);
            build(&text, text.len_chars(), WINDOW).prefix
        };
        let mut moved = 0;
        for lines in 200..232 {
            let (before, after) = (prefix(lines), prefix(lines + 1));
            assert!(after.chars().count() <= WINDOW.prefix_chars);
            moved += usize::from(!after.starts_with(&before));
        }
        assert_eq!(moved, 32 / ANCHOR_LINES);
    }

    #[test]
    fn a_minified_file_is_cut_and_not_copied_whole() {
        let text = Rope::from_str(&"x=1;".repeat(500_000));
        let prompt = build(&text, 1_000_000, WINDOW);
        assert!(prompt.line.chars().count() <= LINE_CHARS);
        assert_eq!(prompt.prefix, "");
        assert_eq!(prompt.suffix.chars().count(), WINDOW.suffix_chars);
    }
}
