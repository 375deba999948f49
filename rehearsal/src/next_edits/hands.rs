//! What the developer does by hand: a line is changed where it differs, lines are deleted, lines
//! are written. The server sees it key by key.

use super::plan::{Fate, FilePlan, Slot, Step};
use super::words::common_ends;
use crate::client::{Client, RequestError};
use crate::document::{Position, Range};
use crate::limits;

/// The place where the developer is, in lines and units of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    pub line: usize,
    pub character: usize,
}

impl Cursor {
    fn position(self) -> Position {
        Position { line: self.line as u32, character: self.character as u32 }
    }
}

/// A document in the editor.
struct Keys<'a> {
    client: &'a Client,
    uri: &'a str,
}

impl Keys<'_> {
    fn units(&self, text: &str) -> usize {
        self.client.encoding().units(text)
    }

    fn replace(&self, start: Cursor, end: Cursor, text: &str) -> Result<(), RequestError> {
        let range = Range { start: start.position(), end: end.position() };
        self.client.change(self.uri, Some(range), text)
    }

    /// Types a text without line feeds, and returns where the cursor is then.
    fn type_text(&self, mut at: Cursor, text: &str) -> Result<Cursor, RequestError> {
        for letter in text.chars() {
            let letter = letter.to_string();
            self.replace(at, at, &letter)?;
            at.character += self.units(&letter);
        }
        Ok(at)
    }
}

/// Makes a step, and returns where the cursor is then.
pub fn make(
    client: &Client,
    uri: &str,
    plan: &mut FilePlan,
    step: &Step,
) -> Result<Cursor, RequestError> {
    let keys = Keys { client, uri };
    let cursor = match step {
        Step::Change { slot } => change(&keys, plan, *slot)?,
        Step::Delete { slot, count } => delete(&keys, plan, *slot, *count)?,
        Step::Write { slot, count } => write(&keys, plan, *slot, *count)?,
        Step::Indent { slot, count } => indent(&keys, plan, *slot, *count)?,
    };
    client.advance_clock(limits::LOOK_MS)?;
    Ok(cursor)
}

/// Deletes what differs, and types what comes in its place.
fn change(keys: &Keys, plan: &mut FilePlan, slot: usize) -> Result<Cursor, RequestError> {
    let line = plan.line_of(slot);
    let Slot::Line { text, fate } = &mut plan.slots[slot] else {
        return Ok(Cursor { line, character: 0 });
    };
    let Fate::Becomes(end) = std::mem::replace(fate, Fate::Stays) else {
        return Ok(Cursor { line, character: 0 });
    };
    let (head, tail) = common_ends(text, &end);
    let at = Cursor { line, character: keys.units(&text[..head]) };
    let gone = keys.units(&text[head..text.len() - tail]);
    if gone > 0 {
        keys.replace(at, Cursor { character: at.character + gone, ..at }, "")?;
    }
    let at = keys.type_text(at, &end[head..end.len() - tail])?;
    *text = end;
    Ok(at)
}

/// Changes the blanks of some lines as one change, as an editor does for a selection.
fn indent(
    keys: &Keys,
    plan: &mut FilePlan,
    slot: usize,
    count: usize,
) -> Result<Cursor, RequestError> {
    let line = plan.line_of(slot);
    let mut texts = Vec::new();
    let mut last = 0;
    for slot in &mut plan.slots[slot..slot + count] {
        let Slot::Line { text, fate: Fate::Becomes(end) } = slot else { continue };
        last = keys.units(text);
        texts.push(std::mem::take(end));
    }
    let end = Cursor { line: line + count - 1, character: last };
    keys.replace(Cursor { line, character: 0 }, end, &texts.join("\n"))?;
    let at = Cursor { line: end.line, character: texts.last().map_or(0, |text| keys.units(text)) };
    for (slot, text) in plan.slots[slot..slot + count].iter_mut().zip(&texts) {
        *slot = Slot::stays(text);
    }
    Ok(at)
}

fn delete(
    keys: &Keys,
    plan: &mut FilePlan,
    slot: usize,
    count: usize,
) -> Result<Cursor, RequestError> {
    let line = plan.line_of(slot);
    let texts: Vec<String> = plan.visible().map(|(_, text)| text.to_owned()).collect();
    let after = line + count;
    let cursor = match (after < texts.len(), line.checked_sub(1)) {
        (true, _) => {
            let start = Cursor { line, character: 0 };
            keys.replace(start, Cursor { line: after, character: 0 }, "")?;
            start
        }
        // These are the last lines, so the line feed before them goes along.
        (false, above) => {
            let above_units = above.map_or(0, |above| keys.units(&texts[above]));
            let start = Cursor { line: above.unwrap_or(0), character: above_units };
            let last = texts.last().map_or(0, |text| keys.units(text));
            keys.replace(start, Cursor { line: after - 1, character: last }, "")?;
            start
        }
    };
    plan.slots.drain(slot..slot + count);
    Ok(cursor)
}

/// Presses Enter at the end of the line above, and types, line by line.
fn write(
    keys: &Keys,
    plan: &mut FilePlan,
    slot: usize,
    count: usize,
) -> Result<Cursor, RequestError> {
    let mut cursor = Cursor { line: 0, character: 0 };
    for slot in slot..slot + count {
        let Slot::Coming(text) = plan.slots[slot].clone() else { continue };
        let line = plan.line_of(slot);
        let above = match line.checked_sub(1) {
            Some(above) => plan.visible().nth(above).map_or(0, |(_, text)| keys.units(text)),
            None => 0,
        };
        let indent = text.len() - text.trim_start().len();
        let (indent, rest) = text.split_at(indent);
        match line.checked_sub(1) {
            Some(above_line) => {
                let end = Cursor { line: above_line, character: above };
                keys.replace(end, end, &format!("\n{indent}"))?;
            }
            None => {
                let start = Cursor { line: 0, character: 0 };
                keys.replace(start, start, &format!("{indent}\n"))?;
            }
        }
        cursor = keys.type_text(Cursor { line, character: keys.units(indent) }, rest)?;
        plan.slots[slot] = Slot::stays(&text);
    }
    Ok(cursor)
}
