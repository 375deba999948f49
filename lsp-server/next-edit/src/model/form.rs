//! The text that a model is asked to continue. Its blocks stand in the order in which they change
//! more and more often, so that what was computed of the first ones stays.

use super::changes::{Changed, Shown, latest, with_lf};
use std::ops::Range;

/// Lines of the window above the cursor's, and below it.
pub(super) const LINES_ABOVE: usize = 2;
pub(super) const LINES_BELOW: usize = 5;

/// The longest prompt that the engine takes, with the answer, and the longest answer. Both are in
/// tokens.
pub const PROMPT_TOKENS_MAX: usize = 4096;
pub const ANSWER_TOKENS_MAX: usize = 512;

/// The bytes of a token of code, rather too few than too many.
const TOKEN_BYTES: usize = 3;

/// The longest prompt without the answer, in bytes. Changes that do not fit are left out.
pub(super) const PROMPT_BYTES_MAX: usize = (PROMPT_TOKENS_MAX - ANSWER_TOKENS_MAX) * TOKEN_BYTES;

/// The longest window, in bytes. A longer one ends at an earlier line.
const WINDOW_BYTES_MAX: usize = 1024;

/// The most bytes of a file that are shown. The client that the models were made for shows more;
/// this is what a processor computes in a few seconds.
pub const FILE_BYTES_MAX: usize = 6 * 1024;

/// A longer file is cut into blocks of whole lines, of which two neighbours are shown. So a cursor
/// that moves a little sees the same ones, and what was computed of them stays.
const BLOCK_BYTES_MAX: usize = FILE_BYTES_MAX / 2;

/// The most bytes of the changes that are shown. The oldest are left out first.
const CHANGES_BYTES_MAX: usize = 3 * 1024;

/// Lines of another file that are shown: its first ones.
const OTHER_LINES_MAX: usize = 30;
const OTHER_BYTES_MAX: usize = 1024;

/// The bytes that the paths above the blocks may have together.
const PATHS_BYTES: usize = 512;

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
    pub shown: Shown,
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
        let byte = |line: usize| starts.get(line).copied().unwrap_or(text.len());
        let at = starts.partition_point(|start| *start <= cursor).checked_sub(1)?;
        let (mut first, mut end) =
            (at.saturating_sub(LINES_ABOVE), (at + LINES_BELOW + 1).min(starts.len()));
        let is_too_long = |first: usize| byte(at + 1) - starts[first] > WINDOW_BYTES_MAX;
        while first < at && (line_at(first).trim().is_empty() || is_too_long(first)) {
            first += 1;
            end = (end + 1).min(starts.len());
        }
        while end > at + 1 && line_at(end - 1).trim().is_empty() {
            end -= 1;
        }
        while end > at + 1 && byte(end) - starts[first] > WINDOW_BYTES_MAX {
            end -= 1;
        }
        let range = starts[first]..byte(end);
        let is_fit = range.len() <= WINDOW_BYTES_MAX && !text[range.clone()].trim().is_empty();
        is_fit.then_some(Window { range, line: first, cursor })
    }

    /// The window's text as the model reads it: with `\n` alone, and without the last one, unless
    /// the cursor stands behind it, on the empty line at the end of the file.
    pub fn text(&self, text: &str) -> String {
        let own = with_lf(&text[self.range.clone()]);
        let last = own.strip_suffix('\n').filter(|_| self.cursor < self.range.end);
        last.unwrap_or(&own).to_owned()
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
        let now = window.text(text);
        let cursor = window.cursor_in(text);
        // The numbers count within the window, as the client of these models counts them.
        let first = window.cursor_line(text) + 1;
        let name = format!("{path}:{first}:{}", first + now.lines().count());
        // A window from which much was deleted would not fit as it was.
        let was = self.earlier(window).into_iter().rfind(|was| was.len() <= WINDOW_BYTES_MAX);
        let was = was.unwrap_or_else(|| now.clone());
        let windows = [
            format!("original/{name}\n{was}\n"),
            format!("current/{name}\n{}{CURSOR}{}\n", &now[..cursor], &now[cursor..]),
            format!("updated/{name}\n{}", window.prefill(text)),
        ];
        // An empty line follows the file.
        let (other, mut file) = (self.other_block(), format!("{path}\n{}\n", self.piece(window)));
        let others = other.iter().chain([&file]).chain(&windows);
        let room = others.fold(PROMPT_BYTES_MAX, |room, block| without(room, block));
        let changes = self.changes_within(room.min(CHANGES_BYTES_MAX));
        if changes.is_empty() {
            file.push('\n');
        }
        other.into_iter().chain([file]).chain(changes).chain(windows).collect()
    }

    /// The first lines of the other file.
    fn other_block(&self) -> Option<String> {
        let (path, text) = self.other?;
        let mut room = OTHER_BYTES_MAX;
        let fits = |line: &&str| {
            let fits = line.len() < room;
            room = room.saturating_sub(line.len() + 1);
            fits
        };
        let first: Vec<&str> = text.lines().take(OTHER_LINES_MAX).take_while(fits).collect();
        Some(format!("{path}\n{}\n", first.join("\n")))
    }

    /// The latest changes that have no more bytes than this, the oldest first.
    fn changes_within(&self, mut room: usize) -> Vec<String> {
        let mut shown: Vec<String> = self
            .shown
            .of(self.changes)
            .take(Shown::MAX)
            .map(|change| format!("{}\n", change.shown()))
            .take_while(|shown| {
                let fits = shown.len() + TOKEN_BYTES <= room;
                room = without(room, shown);
                fits
            })
            .collect();
        shown.reverse();
        shown
    }

    /// The window as it was before the latest change in it, before the one before, and so on. Ends
    /// with the first change that is not found in it, as the models were trained.
    fn earlier(&self, window: &Window) -> Vec<String> {
        let mut text = window.text(self.text);
        let mut earlier = vec![];
        for change in latest(self.changes) {
            let Some(before) = change.taken_back(&text) else { break };
            earlier.push(before.clone());
            text = before;
        }
        earlier
    }

    /// The window as it was before the latest change of its own lines, before the one before, and
    /// so on. Changes that are not found in it are skipped.
    pub(super) fn left(&self, window: &Window) -> Vec<String> {
        let mut text = window.text(self.text);
        let lines = window.line..window.line + text.split('\n').count();
        let is_here = |change: &&Changed| {
            let place = change.place();
            change.path == self.path && place.start <= lines.end && lines.start <= place.end
        };
        let mut left = vec![];
        for change in latest(self.changes).filter(is_here) {
            if let Some(before) = change.taken_back(&text) {
                left.push(before.clone());
                text = before;
            }
        }
        left
    }

    /// The file as it was opened, or the two blocks of it that are nearest to the window.
    fn piece(&self, window: &Window) -> String {
        let opened = with_lf(self.opened);
        if opened.len() <= FILE_BYTES_MAX {
            return opened;
        }
        // A line that is longer than a block is shown as an empty one.
        let is_short = |line: &str| line.len() < BLOCK_BYTES_MAX;
        let shown = opened.split('\n').map(|line| if is_short(line) { line } else { "" });
        let lines: Vec<&str> = shown.collect();
        let (mut starts, mut bytes) = (vec![0], 0);
        for (at, line) in lines.iter().enumerate() {
            if bytes + line.len() + 1 > BLOCK_BYTES_MAX {
                starts.push(at);
                bytes = 0;
            }
            bytes += line.len() + 1;
        }
        let start = |block: usize| starts.get(block).copied().unwrap_or(lines.len());
        let cursor = (window.line + window.cursor_line(self.text)).min(lines.len() - 1);
        let own = starts.partition_point(|first| *first <= cursor) - 1;
        let is_upper_half = cursor < (start(own) + start(own + 1)) / 2;
        let first = own.saturating_sub(usize::from(is_upper_half));
        let first = first.min(starts.len().saturating_sub(2));
        lines[start(first)..start(first + 2)].join("\n")
    }
}

/// The bytes that are left behind a block and its mark.
fn without(room: usize, block: &str) -> usize {
    room.saturating_sub(block.len() + TOKEN_BYTES)
}

// The longest window fits the answer, with half as much that is new. Where all is as long as it may
// be, only the changes are left out.
const _: () = assert!(ANSWER_TOKENS_MAX * TOKEN_BYTES >= WINDOW_BYTES_MAX * 3 / 2);
const _: () = assert!(
    FILE_BYTES_MAX + OTHER_BYTES_MAX + 3 * WINDOW_BYTES_MAX + PATHS_BYTES <= PROMPT_BYTES_MAX
);
