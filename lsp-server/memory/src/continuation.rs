//! How a text goes on at the place of a match, beside what stands behind the cursor.

/// The longest line of a continuation, in bytes. A longer one is cut.
const LINE_BYTES_MAX: usize = 400;

/// The lines behind the cursor in which the next one that is not blank is looked for.
const LINES_LOOKED_AT: usize = 16;

/// What stands behind the cursor.
pub struct Behind<'a> {
    /// The rest of the cursor's line, without blanks at its ends.
    rest: &'a str,
    next_line: Option<&'a str>,
}

/// How a text goes on.
pub struct Continuation {
    pub text: String,
    pub rest_agrees: bool,
    pub next_line_agrees: bool,
}

impl<'a> Behind<'a> {
    pub fn of(after: &'a str) -> Behind<'a> {
        let (rest, below) = after.split_once('\n').unwrap_or((after, ""));
        Behind { rest: rest.trim(), next_line: first_line(below) }
    }

    /// How `text` goes on, up to `lines` lines. What stands behind the cursor already is left out.
    /// `None` if nothing is left.
    pub fn continuation(&self, text: &str, lines: usize) -> Option<Continuation> {
        let (first, below) = text.split_once('\n').unwrap_or((text, ""));
        let first = first.trim_end();
        let without_rest = first.strip_suffix(self.rest);
        let mut all = cut(without_rest.unwrap_or(first)).to_owned();
        // Between a line's rest and its end nothing more can be inserted.
        if self.rest.is_empty() && first.len() <= LINE_BYTES_MAX {
            for line in below.lines().take(lines.saturating_sub(1)) {
                all.push('\n');
                all.push_str(cut(line));
            }
        }
        all.truncate(all.trim_end().len());
        (!all.is_empty()).then(|| Continuation {
            text: all,
            rest_agrees: without_rest.is_some(),
            next_line_agrees: self.next_line.is_some() && first_line(below) == self.next_line,
        })
    }
}

fn first_line(text: &str) -> Option<&str> {
    text.lines().take(LINES_LOOKED_AT).map(str::trim).find(|line| !line.is_empty())
}

fn cut(line: &str) -> &str {
    let mut end = line.len().min(LINE_BYTES_MAX);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    &line[..end]
}
