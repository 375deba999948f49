//! The text that a model is asked to continue. Its blocks stand in the order in which they change
//! more and more often, so that what was computed of the first ones stays.

use super::changes::{Changed, with_lf};
use std::ops::Range;

/// Lines of the window above the cursor's, and below it.
pub(super) const LINES_ABOVE: usize = 2;
pub(super) const LINES_BELOW: usize = 5;

/// The longest window, in bytes. A longer one ends at an earlier line.
const WINDOW_BYTES_MAX: usize = 1792;

/// The most changes that are shown.
const CHANGES_MAX: usize = 6;

/// The most lines of a file that is shown whole. Of a longer one, a piece is shown.
const FILE_LINES_MAX: usize = 800;
const PIECE_LINES: usize = 300;

/// Pieces begin at every so many lines, so that a cursor that moves a little sees the same one.
const STRIDE_LINES: usize = 150;

/// The most bytes of a file that are shown. The client that the models were made for shows more;
/// this is what a processor computes in a few seconds.
pub const FILE_BYTES_MAX: usize = 6 * 1024;

/// The most bytes of the changes that are shown. The oldest are left out first.
const CHANGES_BYTES_MAX: usize = 3 * 1024;

/// Lines of another file that are shown: its first ones.
const OTHER_LINES_MAX: usize = 30;
const OTHER_BYTES_MAX: usize = 1024;

/// Stands at the cursor. It is plain text to the model.
pub(super) const CURSOR: &str = "<|cursor|>";

/// Lines around a place that the model writes anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Its bytes in the text, whole lines.
    pub range: Range<usize>,
    /// The number of its first line in the text.
    pub line: usize,
    /// The byte of the text around which it lies.
    pub cursor: usize,
}

/// What the model sees besides the window.
#[derive(Debug, Clone, Copy)]
pub struct Form<'a> {
    /// The path of the file, as the model reads it.
    pub path: &'a str,
    /// The file when it was opened, and now.
    pub opened: &'a str,
    pub text: &'a str,
    /// The latest changes in all files, the oldest first.
    pub changes: &'a [Changed],
    /// The path and the text of another file.
    pub other: Option<(&'a str, &'a str)>,
}

impl Window {
    /// The window around a byte of the text. None where nothing is written.
    pub fn around(text: &str, cursor: usize) -> Option<Window> {
        let starts: Vec<usize> =
            [0].into_iter().chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let line_at = |line: usize| {
            let end = starts.get(line + 1).copied().unwrap_or(text.len());
            &text[starts[line]..end]
        };
        let at = starts.partition_point(|start| *start <= cursor).checked_sub(1)?;
        let (mut first, mut end) =
            (at.saturating_sub(LINES_ABOVE), (at + LINES_BELOW + 1).min(starts.len()));
        while first < at && line_at(first).trim().is_empty() {
            first += 1;
            end = (end + 1).min(starts.len());
        }
        while end > at + 1 && line_at(end - 1).trim().is_empty() {
            end -= 1;
        }
        let byte = |line: usize| starts.get(line).copied().unwrap_or(text.len());
        while end > at + 1 && byte(end) - starts[first] > WINDOW_BYTES_MAX {
            end -= 1;
        }
        let range = starts[first]..byte(end);
        let is_fit = range.len() <= WINDOW_BYTES_MAX && !text[range.clone()].trim().is_empty();
        is_fit.then_some(Window { range, line: first, cursor })
    }

    /// The window's text as the model reads it: with `\n` alone, and without the last one.
    pub fn text(&self, text: &str) -> String {
        let own = with_lf(&text[self.range.clone()]);
        own.strip_suffix('\n').unwrap_or(&own).to_owned()
    }

    /// The bytes of that text before the cursor.
    pub(super) fn cursor_in(&self, text: &str) -> usize {
        let before =
            with_lf(&text[self.range.start..self.cursor.clamp(self.range.start, self.range.end)]);
        before.len().min(self.text(text).len())
    }

    /// The line of the cursor, counted from the window's first.
    pub(super) fn cursor_line(&self, text: &str) -> usize {
        self.text(text)[..self.cursor_in(text)].matches('\n').count()
    }

    /// Returns what the answer begins with: the window's first line, so that what stands above the
    /// cursor stays.
    pub fn prefill(&self, text: &str) -> String {
        let own = self.text(text);
        let before = &own[..self.cursor_in(text)];
        let Some(end) = before.find('\n') else { return before.to_owned() };
        let blank = before[end..].len() - before[end..].trim_start_matches('\n').len();
        before[..end + blank].to_owned()
    }
}

impl Form<'_> {
    /// The blocks that the model continues. Each stands behind the model's mark of a file, and the
    /// last one ends with the window's [`Window::prefill`].
    pub fn blocks(&self, window: &Window) -> Vec<String> {
        let Form { path, text, .. } = *self;
        let mut blocks = vec![];
        if let Some((path, text)) = self.other {
            let first: Vec<&str> = text.lines().take(OTHER_LINES_MAX).collect();
            let first = within(&first, 0, OTHER_BYTES_MAX);
            blocks.push(format!("{path}\n{}\n", first.join("\n")));
        }
        // An empty line follows the file.
        let file = format!("{path}\n{}\n", self.piece(window));
        let mut room = CHANGES_BYTES_MAX;
        let latest = self.changes.iter().rev().filter(|change| !change.is_blank());
        let mut shown: Vec<String> = latest
            .take(CHANGES_MAX)
            .map(|change| format!("{}\n", change.shown()))
            .take_while(|shown| {
                let fits = shown.len() <= room;
                room = room.saturating_sub(shown.len());
                fits
            })
            .collect();
        shown.reverse();
        blocks.push(if shown.is_empty() { format!("{file}\n") } else { file });
        blocks.append(&mut shown);
        let now = window.text(text);
        let cursor = window.cursor_in(text);
        // The numbers count within the window, as the client of these models counts them.
        let first = window.cursor_line(text) + 1;
        let name = format!("{path}:{first}:{}", first + now.lines().count());
        let was = self.earlier(window).last().cloned().unwrap_or_else(|| now.clone());
        blocks.push(format!("original/{name}\n{was}\n"));
        blocks.push(format!("current/{name}\n{}{CURSOR}{}\n", &now[..cursor], &now[cursor..]));
        blocks.push(format!("updated/{name}\n{}", window.prefill(text)));
        blocks
    }

    /// The window as it was before the latest change in it, before the one before, and so on. Ends
    /// with the first change that is not found in it.
    pub(super) fn earlier(&self, window: &Window) -> Vec<String> {
        let mut text = window.text(self.text);
        let mut earlier = vec![];
        for change in self.changes.iter().rev().filter(|change| !change.is_blank()) {
            let Some(before) = change.taken_back(&text) else { break };
            earlier.push(before.clone());
            text = before;
        }
        earlier
    }

    /// The file as it was opened, or the piece of it that is nearest to the window.
    fn piece(&self, window: &Window) -> String {
        let opened = with_lf(self.opened);
        let lines: Vec<&str> = opened.split('\n').collect();
        if lines.len() <= FILE_LINES_MAX && opened.len() <= FILE_BYTES_MAX {
            return opened;
        }
        let cursor = window.line + window.cursor_line(self.text);
        let middle = (cursor + STRIDE_LINES / 2).saturating_sub(PIECE_LINES / 2);
        let first = (middle / STRIDE_LINES * STRIDE_LINES).min(lines.len().saturating_sub(1));
        let piece = &lines[first..(first + PIECE_LINES).min(lines.len())];
        let near = cursor.saturating_sub(first).min(piece.len() - 1);
        within(piece, near, FILE_BYTES_MAX).join("\n")
    }
}

/// The lines around one of them that have no more bytes than this.
fn within<'a>(lines: &'a [&'a str], near: usize, bytes: usize) -> &'a [&'a str] {
    let (mut first, mut end) = (0, lines.len());
    let mut sum: usize = lines.iter().map(|line| line.len() + 1).sum();
    while sum > bytes && end - first > 1 {
        // What is farther from it goes.
        if near - first >= end - 1 - near {
            sum -= lines[first].len() + 1;
            first += 1;
        } else {
            end -= 1;
            sum -= lines[end].len() + 1;
        }
    }
    &lines[first..end]
}
