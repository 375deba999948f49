//! Cuts an answer into hunks: the places at which it differs from the window.

use super::changes::with_lf;
use super::form::{CURSOR, Window};
use crate::diff::{affixes, stretches};
use std::ops::Range;

/// Hunks above the cursor with so few lines between them are one.
const FUSED_LINES: usize = 2;

/// Sometimes follows an answer's last line, from the diffs that the models were trained on.
const NO_NEWLINE: &str = " No newline at end of file";

/// Ends a block of code in Markdown.
const FENCE: &str = "```";

/// Lines of the window that become others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The lines that are replaced, counted in the text.
    pub lines: Range<usize>,
    /// The bytes of the text that are replaced, and their new text.
    pub range: Range<usize>,
    pub new: String,
    /// The same as whole lines.
    pub(super) old_lines: Vec<String>,
    pub(super) new_lines: Vec<String>,
    /// The bytes of the answer that write what differs. There are none where something only goes.
    pub(super) in_answer: Range<usize>,
}

impl Hunk {
    /// Returns true if it lies above this line.
    pub(super) fn is_above(&self, line: usize) -> bool {
        self.lines.end <= line
    }

    /// The whole lines that are replaced, and those that are written. An insertion replaces none,
    /// so the line below it goes along.
    pub(crate) fn whole(&self, text: &str) -> [String; 2] {
        let below = text.lines().nth(self.lines.end).filter(|_| self.old_lines.is_empty());
        [&self.old_lines, &self.new_lines].map(|lines| {
            let lines: Vec<&str> = lines.iter().map(String::as_str).chain(below).collect();
            lines.join("\n")
        })
    }
}

/// The window as the model leaves it, in lines. `answer` stands behind the prefill.
pub(super) fn updated(text: &str, window: &Window, answer: &str) -> Vec<String> {
    let whole = format!("{}{answer}", window.prefill(text)).replace(CURSOR, "");
    let now = window.text(text);
    let whole = whole.trim_end_matches('\n');
    let whole = whole.strip_suffix(NO_NEWLINE).unwrap_or(whole).trim_end_matches('\n');
    // Models that also chat close a block of code that they never opened.
    let unfenced = whole
        .strip_suffix(FENCE)
        .filter(|rest| rest.ends_with('\n'))
        .filter(|_| !now.contains(FENCE));
    let whole = unfenced.unwrap_or(whole).trim_end_matches('\n');
    let mut lines: Vec<String> = whole.split('\n').map(str::to_owned).collect();
    let starts_blank = now.starts_with('\n');
    while !starts_blank && lines.len() > 1 && lines[0].trim().is_empty() {
        lines.remove(0);
    }
    // The cursor may stand on empty lines at the window's end. They stay, unless the answer has
    // written them.
    let full = now.trim_end_matches('\n');
    let is_same_end = lines.last().map(String::as_str) == full.split('\n').next_back();
    if is_same_end || lines.len() <= full.split('\n').count() {
        lines.extend(vec![String::new(); now.len() - full.len()]);
    }
    lines
}

/// The hunks of an answer in the order in which they are offered: those at the cursor's line or
/// below it, then those above it, the nearest first.
pub fn hunks(text: &str, window: &Window, answer: &str) -> Vec<Hunk> {
    let (now, updated) = (window.text(text), updated(text, window, answer));
    let old: Vec<&str> = now.split('\n').collect();
    let new: Vec<&str> = updated.iter().map(String::as_str).collect();
    let cursor = window.cursor_line(text);
    let mut pairs: Vec<(Range<usize>, Range<usize>)> = vec![];
    for stretch in stretches(&old, &new).into_iter().filter(|stretch| !stretch.is_same) {
        match pairs.last_mut() {
            Some((a, b)) if stretch.a.end <= cursor && stretch.a.start - a.end <= FUSED_LINES => {
                (a.end, b.end) = (stretch.a.end, stretch.b.end);
            }
            _ => pairs.push((stretch.a, stretch.b)),
        }
    }
    let prefill = window.prefill(text);
    let mut hunks: Vec<Hunk> = pairs
        .into_iter()
        .map(|(a, b)| {
            let in_answer = in_answer(&prefill, answer, &old[a.clone()], &new, b.clone());
            hunk(text, window, &old, a, &new[b], in_answer)
        })
        .collect();
    let cursor = window.line + cursor;
    hunks.sort_by_key(|hunk| (hunk.is_above(cursor), hunk.lines.start.abs_diff(cursor)));
    hunks
}

fn hunk(
    text: &str,
    window: &Window,
    window_lines: &[&str],
    old: Range<usize>,
    new: &[&str],
    in_answer: Range<usize>,
) -> Hunk {
    let own = &text[window.range.clone()];
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let starts: Vec<usize> =
        [0].into_iter().chain(own.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let byte = |line: usize| starts.get(line).copied().unwrap_or(own.len());
    let range = byte(old.start)..byte(old.end);
    // The last line may have no line break: that of the cursor at the end of the file, too.
    let is_open = window_lines.len() > starts.len() - 1;
    let is_cut = is_open && old.end == window_lines.len();
    let mut written = new.iter().map(|line| format!("{line}{end}")).collect::<String>();
    if is_cut && !new.is_empty() {
        written.truncate(written.len() - end.len());
        if old.is_empty() {
            written.insert_str(0, end);
        }
    }
    let (range, written) = narrowed(own, range, written);
    Hunk {
        lines: window.line + old.start..window.line + old.end,
        range: window.range.start + range.start..window.range.start + range.end,
        new: written,
        old_lines: window_lines[old].iter().map(|line| (*line).to_owned()).collect(),
        new_lines: new.iter().map(|line| (*line).to_owned()).collect(),
        in_answer,
    }
}

/// The bytes of an answer that write some of the updated lines, without what these begin and end
/// with as the lines that they replace do.
fn in_answer(
    prefill: &str,
    answer: &str,
    old: &[&str],
    updated: &[&str],
    lines: Range<usize>,
) -> Range<usize> {
    // Empty lines at the start were left out.
    let first = format!("{prefill}{answer}").find(updated[0]).unwrap_or(0);
    let above: usize = updated[..lines.start].iter().map(|line| line.len() + 1).sum();
    let new = updated[lines].join("\n");
    let (head, tail) = affixes(&old.join("\n"), &new);
    let behind_prefill = |at: usize| (first + above + at).saturating_sub(prefill.len());
    let [start, end] = [head, new.len() - tail].map(|at| behind_prefill(at).min(answer.len()));
    start..end
}

/// The same edit without what both texts begin and end with. Whole lines that come or go stay
/// whole.
fn narrowed(text: &str, range: Range<usize>, new: String) -> (Range<usize>, String) {
    let old = &text[range.clone()];
    if old.is_empty() || new.is_empty() {
        return (range, new);
    }
    let (head, tail) = affixes(old, &new);
    let kept = new[head..new.len() - tail].to_owned();
    // A carriage return and its line feed stay together.
    if kept.ends_with('\r') || old[head..old.len() - tail].ends_with('\r') {
        return (range, new);
    }
    (range.start + head..range.end - tail, kept)
}

/// Returns true if the answer leaves the window as it is, apart from empty lines around it.
pub(super) fn is_unchanged(text: &str, window: &Window, answer: &str) -> bool {
    let updated = updated(text, window, answer).join("\n");
    updated.trim_matches('\n') == with_lf(&window.text(text)).trim_matches('\n')
}
