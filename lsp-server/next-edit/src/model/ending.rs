//! Finds the end of an answer before the model comes to it: behind a change the rest of the window
//! is only copied, and an answer that grows too long is not shown.

use super::form::{CURSOR, Window};

/// Lines that an answer may have more than the window.
const MORE_LINES_MAX: usize = 20;

/// Behind a change, so many lines in a row that are the window's mean that the rest is too, if some
/// of them have content. These are the numbers of Copilot's next edits, which show the first hunk
/// of a streamed answer by them (microsoft/vscode-copilot-chat, `src/extension/xtab`).
const SAME_LINES: usize = 3;
const SAME_FULL_LINES: usize = 2;

/// Returns true if an answer that begins so has too many lines to be shown.
pub fn is_too_long(text: &str, window: &Window, written: &str) -> bool {
    let more = window.prefill(text).matches('\n').count() + written.matches('\n').count();
    more >= window.text(text).split('\n').count() + MORE_LINES_MAX
}

/// Returns the whole of an answer that begins so, if the change is written that would be offered
/// first, and the lines behind it are the window's again.
pub(super) fn settled(text: &str, window: &Window, written: &str) -> Option<String> {
    let lines = &written[..written.rfind('\n')?];
    let (now, so_far) = (window.text(text), format!("{}{lines}", window.prefill(text)));
    let so_far = so_far.replace(CURSOR, "");
    let [old, new] = [&now, &so_far].map(|text| text.split('\n').collect::<Vec<&str>>());
    let last = &new[new.len().checked_sub(SAME_LINES)?..];
    let unchanged = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let full = last.iter().filter(|line| !line.trim().is_empty()).count();
    if full < SAME_FULL_LINES || new.len() - SAME_LINES < unchanged {
        return None;
    }
    let stand = old.windows(SAME_LINES).enumerate().skip(unchanged);
    let mut places = stand.filter(|(_, lines)| *lines == last).map(|(at, _)| at + SAME_LINES);
    // Lines that stand there twice do not tell which of them these are.
    let (end, None) = (places.next()?, places.next()) else { return None };
    let pairs = old[..end].iter().rev().zip(new.iter().rev());
    let same = pairs.take_while(|(old, new)| old == new).count();
    let (change_end, written) = (end - same, new.len() - same - unchanged);
    // A change above the cursor is offered after those that may still come. Lines that seem to be
    // gone below it may be moved, or lie behind others that begin as they do.
    let behind_cursor = window.cursor_line(text) + 1;
    let is_certain =
        change_end == behind_cursor || change_end > behind_cursor && change_end == unchanged;
    if !is_certain || written == 0 {
        return None;
    }
    let rest = old[end..].iter().map(|line| format!("\n{line}"));
    Some(format!("{lines}{}", rest.collect::<String>()))
}
