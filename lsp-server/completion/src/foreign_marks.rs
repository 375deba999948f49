//! Marks that are no part of a program, although models write them: those of a merge conflict,
//! and the fences that Markdown puts around code.

use ropey::Rope;

/// The lines on each side of the cursor that are searched for marks.
const LINES: usize = 200;

/// The number of equal characters that begin a line of a merge conflict.
const CONFLICT_CHARS: usize = 7;

/// The characters of which lines of a merge conflict begin: its sides, what separates them, and the
/// text that both come from.
const CONFLICT: &[char] = &['<', '=', '>', '|'];

const FENCE: &str = "```";

/// The marks that a text has around the cursor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MarksNearby {
    /// True if lines of a merge conflict stand there.
    pub conflict: bool,
    /// True if fences stand there, as in documentation.
    pub fence: bool,
}

impl MarksNearby {
    /// Reads the lines around this one.
    pub fn of(text: &Rope, line: usize) -> MarksNearby {
        let mut found = MarksNearby::default();
        for line in text.lines_at(line.saturating_sub(LINES)).take(2 * LINES) {
            let first = line.chars().next();
            if first.is_some_and(|first| matches!(first, '<' | '>')) {
                found.conflict |= conflict_chars(line.chars()) >= CONFLICT_CHARS;
            }
            let mut ticks = 0;
            found.fence |= line.chars().any(|c| {
                ticks = if c == '`' { ticks + 1 } else { 0 };
                ticks == FENCE.len()
            });
        }
        found
    }
}

/// Returns the number of equal characters of a conflict's mark at the start of a line.
fn conflict_chars(line: impl Iterator<Item = char>) -> usize {
    let mut line = line.peekable();
    let Some(first) = line.peek().copied().filter(|first| CONFLICT.contains(first)) else {
        return 0;
    };
    line.take_while(|c| *c == first).count()
}

/// Returns true if a line may be one of a merge conflict. Where there is none, a longer row of `=`
/// is the line under a heading.
fn is_conflict(line: &str, nearby: MarksNearby) -> bool {
    let count = conflict_chars(line.chars());
    let rest = line.chars().nth(CONFLICT_CHARS);
    count >= CONFLICT_CHARS && (nearby.conflict || rest.is_none_or(char::is_whitespace))
}

/// Returns the lines of `shown` above the first one that would be a mark of a merge conflict or,
/// unless `is_prose`, of a fence where the text around the cursor has none.
pub fn without_marks<'a>(
    shown: &'a str,
    line_before: &str,
    nearby: MarksNearby,
    is_prose: bool,
) -> &'a str {
    let mut start = 0;
    for own in shown.split_inclusive('\n') {
        let line = own.trim_end();
        let is_mark = match start {
            0 => is_conflict(&format!("{line_before}{line}"), nearby),
            _ => is_conflict(line, nearby),
        };
        let is_fence = !is_prose && !nearby.fence && line.contains(FENCE);
        if is_mark || is_fence {
            return shown[..start].trim_end();
        }
        start += own.len();
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is shown of a text where `|` stands in a document.
    fn at<'a>(marked: &str, shown: &'a str) -> &'a str {
        let cursor = marked.chars().position(|c| c == '|').unwrap();
        let text = Rope::from_str(&marked.replacen('|', "", 1));
        let line = text.char_to_line(cursor);
        let before = text.slice(text.line_to_char(line)..cursor).to_string();
        without_marks(shown, &before, MarksNearby::of(&text, line), false)
    }

    #[test]
    fn marks_of_a_merge_conflict_are_not_offered() {
        let conflict = "def f():\n<<<<<<< HEAD\n    return 1\n";
        assert_eq!(at(&format!("{conflict}|\n"), "======="), "");
        assert_eq!(
            at(&format!("{conflict}|\n"), "    x = 2\n>>>>>>> other\n    y = 3"),
            "    x = 2"
        );
        assert_eq!(at(&format!("{conflict}====|\n"), "==="), "");
        assert_eq!(at(&format!("{conflict}====|\n"), "====="), "");
        assert_eq!(at("x = 1\n<<<<<<< |\n", "HEAD"), "");
        assert_eq!(at("x = 1\n>>>>>>> |\n", "feature"), "");
        assert_eq!(at("|", "<<<<<<< HEAD\nx"), "");
        assert_eq!(at("|", "||||||| base\nx"), "");
    }

    #[test]
    fn lines_that_only_look_like_marks_are_offered() {
        for (document, shown) in [
            ("Heading\n|\n", "=========="),
            ("x |\n", "<<<<<<< y"),
            ("a\n|\n", "<<< EOF"),
            ("a\n|\n", "=== x"),
            ("    |\n", "======="),
        ] {
            assert_eq!(at(document, shown), shown, "{document}");
        }
    }

    #[test]
    fn a_fence_is_offered_only_where_there_are_fences() {
        assert_eq!(at("main()\n|", "```"), "");
        assert_eq!(at("// usage:\n|\n", "// ```js\n// f()"), "");
        assert_eq!(at("main()\n|", "x = 1\n```\nThis is it"), "x = 1");
        let documented = "/// ```\n/// f()\n|\n";
        assert_eq!(at(documented, "/// ```"), "/// ```");
        assert_eq!(without_marks("```", "", MarksNearby::default(), true), "```", "Markdown");
    }
}
