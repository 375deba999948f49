//! Cuts a text into chunks: functions, types, and what belongs together otherwise.
//!
//! Indentation and blank lines tell the borders, which works in every language. A border lies where
//! a line at the outer depth begins something new: behind a blank line, or behind the line that
//! closes the block before. What is longer than a chunk may be is cut in the same way one depth
//! further in, so that a long `impl` falls into its methods. Neighbours of a few lines, such as
//! imports and constants, are put together.

use std::ops::Range;

/// The longest chunk, in lines and in bytes.
pub const CHUNK_LINES_MAX: usize = 60;
pub const CHUNK_BYTES_MAX: usize = 4096;

/// A chunk of at most this many lines is put together with its neighbour.
const SMALL_LINES: usize = 3;

/// The most lines that small neighbours have together.
const JOINED_LINES_MAX: usize = 12;

/// The longest line of a chunk, in bytes. A longer one was written by a machine, and is in no
/// chunk.
const LINE_BYTES_MAX: usize = 1000;

/// The depths of indentation at which a text is cut. Deeper down it is cut by its length.
const DEPTHS_MAX: usize = 4;

/// The columns of a tab.
const TAB_COLUMNS: usize = 4;

const _: () = assert!(LINE_BYTES_MAX <= CHUNK_BYTES_MAX && JOINED_LINES_MAX <= CHUNK_LINES_MAX);

/// Where a chunk lies in its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    pub lines: Range<usize>,
    pub bytes: Range<usize>,
}

struct Line {
    start: usize,
    end: usize,
    /// `None`: the line is blank.
    indent: Option<usize>,
    /// The line only closes what was opened above.
    closes: bool,
}

/// Cuts a text into chunks, in their order. Blank lines between chunks belong to none of them.
pub fn cut(text: &str) -> Vec<Chunk> {
    let mut start = 0;
    let lines: Vec<Line> = text
        .split_inclusive('\n')
        .map(|line| {
            let begins = start;
            start += line.len();
            Line::of(line, begins)
        })
        .collect();
    let cutter = Cutter { lines: &lines };
    let mut chunks = vec![];
    let mut from = 0;
    for at in 0..=lines.len() {
        if at == lines.len() || lines[at].end - lines[at].start > LINE_BYTES_MAX {
            cutter.cut(from..at, DEPTHS_MAX, &mut chunks);
            from = at + 1;
        }
    }
    let chunk = |range: Range<usize>| Chunk {
        bytes: lines[range.start].start..lines[range.end - 1].end,
        lines: range,
    };
    cutter.joined(chunks).into_iter().map(chunk).collect()
}

impl Line {
    fn of(line: &str, start: usize) -> Line {
        let code = line.trim();
        let columns = |blank: char| if blank == '\t' { TAB_COLUMNS } else { 1 };
        let blanks = line.chars().take_while(|c| *c == ' ' || *c == '\t');
        let closes = code.starts_with(['}', ')', ']'])
            || matches!(code, "end" | "end;" | "fi" | "done" | "esac");
        Line {
            start,
            end: start + line.len(),
            indent: (!code.is_empty()).then(|| blanks.map(columns).sum()),
            closes,
        }
    }
}

struct Cutter<'a> {
    lines: &'a [Line],
}

impl Cutter<'_> {
    /// Cuts some lines, at most `depths` depths of indentation further in.
    fn cut(&self, lines: Range<usize>, depths: usize, chunks: &mut Vec<Range<usize>>) {
        let lines = self.without_blank_ends(lines);
        let indents = || self.lines[lines.clone()].iter().filter_map(|line| line.indent);
        let Some(mut depth) = indents().min() else { return };
        for left in (0..depths).rev() {
            let groups = self.groups(lines.clone(), depth);
            if groups.len() > 1 {
                for group in groups {
                    if self.fits(&group) {
                        chunks.push(self.without_blank_ends(group));
                    } else {
                        self.cut(group, left, chunks);
                    }
                }
                return;
            }
            if self.fits(&lines) {
                chunks.push(lines);
                return;
            }
            let Some(deeper) = indents().filter(|indent| *indent > depth).min() else { break };
            depth = deeper;
        }
        self.cut_by_length(lines, chunks);
    }

    /// Splits some lines at the borders of this depth.
    fn groups(&self, lines: Range<usize>, depth: usize) -> Vec<Range<usize>> {
        let mut groups = vec![];
        let mut start = lines.start;
        for at in lines.start + 1..lines.end {
            if self.is_border(at, depth) {
                groups.push(start..at);
                start = at;
            }
        }
        groups.push(start..lines.end);
        groups
    }

    fn is_border(&self, at: usize, depth: usize) -> bool {
        let (line, before) = (&self.lines[at], &self.lines[at - 1]);
        let is_outer = |line: &Line| line.indent.is_some_and(|indent| indent <= depth);
        let ends_before = before.indent.is_none() || (before.closes && is_outer(before));
        is_outer(line) && !line.closes && ends_before
    }

    fn cut_by_length(&self, lines: Range<usize>, chunks: &mut Vec<Range<usize>>) {
        let mut start = lines.start;
        for end in lines.start + 1..=lines.end {
            if end == lines.end || !self.fits(&(start..end + 1)) {
                let chunk = self.without_blank_ends(start..end);
                if !chunk.is_empty() {
                    chunks.push(chunk);
                }
                start = end;
            }
        }
    }

    /// Puts small neighbours together.
    fn joined(&self, chunks: Vec<Range<usize>>) -> Vec<Range<usize>> {
        let mut joined: Vec<Range<usize>> = vec![];
        for chunk in chunks.into_iter().filter(|chunk| !chunk.is_empty()) {
            if let Some(last) = joined.last_mut() {
                let both = last.start..chunk.end;
                let is_small = last.len() <= SMALL_LINES || chunk.len() <= SMALL_LINES;
                let are_neighbours =
                    self.lines[last.end..chunk.start].iter().all(|line| line.indent.is_none());
                let fit = both.len() <= JOINED_LINES_MAX && self.fits(&both);
                if is_small && are_neighbours && fit {
                    *last = both;
                    continue;
                }
            }
            joined.push(chunk);
        }
        joined
    }

    fn fits(&self, lines: &Range<usize>) -> bool {
        let bytes = || self.lines[lines.end - 1].end - self.lines[lines.start].start;
        lines.len() <= CHUNK_LINES_MAX && (lines.is_empty() || bytes() <= CHUNK_BYTES_MAX)
    }

    fn without_blank_ends(&self, mut lines: Range<usize>) -> Range<usize> {
        while !lines.is_empty() && self.lines[lines.start].indent.is_none() {
            lines.start += 1;
        }
        while !lines.is_empty() && self.lines[lines.end - 1].indent.is_none() {
            lines.end -= 1;
        }
        lines
    }
}

#[cfg(test)]
mod tests;
