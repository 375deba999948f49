//! Edits that the developer does not make: a formatter's, an import that another tool puts in, a
//! second cursor's. Each of them is undone before the hunk is saved, so that the file is the real
//! one.

use super::open_file::{OpenFile, indentation};
use super::{Typist, TypistError};
use crate::developer::disturbance::{Disturbed, Format, Import};
use crate::developer::pairs::{Key, key};
use std::ops::Range;

/// What a second cursor types.
const FAR_TEXT: &str = "x";
const BLANKS: &str = "  ";

/// An edit in byte offsets of the document.
type ToolEdit = (Range<usize>, String);

impl Typist<'_> {
    /// Returns what happens while the developer looks at the offer. Returns whether the offer is
    /// still on the screen.
    pub(super) fn disturb(&mut self, drawn: &Disturbed) -> Result<bool, TypistError> {
        let tools = self.open.as_mut().map(|open| &mut open.tools);
        if tools.is_some_and(|tools| std::mem::take(&mut tools.import_is_due)) {
            self.put_import_in()?;
        }
        let stays = drawn.format.map_or(Ok(true), |format| self.format(format))?;
        if let Some(share) = drawn.second_cursor {
            self.type_far_away(share)?;
        }
        Ok(stays)
    }

    /// What happens after the developer has responded to the offer.
    pub(super) fn settle(&mut self, drawn: &Disturbed, accepted: bool) -> Result<(), TypistError> {
        if self.ledger.is_live() {
            self.type_with_both_cursors()?;
        }
        self.undo_far_text()?;
        self.undo_format()?;
        if let Some(open) = self.open.as_mut() {
            open.tools.leaves_blanks = drawn.format.is_some_and(|format| format.leaves_blanks);
            open.tools.import_is_due |= accepted && drawn.import == Some(Import::Late);
        }
        if accepted && drawn.import == Some(Import::AtOnce) {
            self.put_import_in()?;
        }
        if drawn.typo { self.type_and_take_back('(') } else { Ok(()) }
    }

    /// The file is about to be saved: the tools leave it as the developer wrote it.
    pub(super) fn tidy_up(&mut self) -> Result<(), TypistError> {
        let Some(open) = self.open.as_mut() else { return Ok(()) };
        open.tools.import_is_due = false;
        let trailing = open.tools.trailing.take();
        if let Some(blanks) = trailing.and_then(|line| blanks_at_end(open, line)) {
            self.edit(blanks.start, blanks.end, "")?;
        }
        let Some(open) = self.open.as_mut() else { return Ok(()) };
        let imports = std::mem::take(&mut open.tools.imports);
        if imports == 0 {
            return Ok(());
        }
        let end = open.document.line_start(imports);
        open.line -= imports;
        self.edit(0, end, "")
    }

    /// The developer leaves blanks at the end of a line that is done.
    pub(super) fn leave_blanks(&mut self) -> Result<(), TypistError> {
        let is_live = self.ledger.is_live();
        let Some(open) = self.open.as_mut() else { return Ok(()) };
        let is_free = open.closers.is_empty() && open.tools.trailing.is_none() && !is_live;
        if !std::mem::take(&mut open.tools.leaves_blanks) || !is_free || open.truth.is_empty() {
            return Ok(());
        }
        open.tools.trailing = Some(open.line);
        let at = open.cursor();
        self.edit(at, at, BLANKS)
    }

    fn put_import_in(&mut self) -> Result<(), TypistError> {
        let Some(open) = self.open.as_mut().filter(|open| open.line > open.tools.imports) else {
            return Ok(());
        };
        let import = match open.language.as_str() {
            "python" => "import added_by_a_tool\n",
            "rust" => "use added::by_a_tool;\n",
            _ => "import added_by_a_tool;\n",
        };
        open.tools.imports += 1;
        open.line += 1;
        let lines = [&mut open.tools.trailing, &mut open.tools.far];
        lines.into_iter().flatten().for_each(|line| *line += 1);
        self.edit(0, 0, import)
    }

    /// Returns whether the offer is still on the screen.
    fn format(&mut self, format: Format) -> Result<bool, TypistError> {
        let Some(open) = self.open.as_mut() else { return Ok(true) };
        let (mut edits, own_line) = format_edits(open, format);
        // From the end of the file on, so that no edit moves another one.
        edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
        if own_line {
            // The editor takes the offer off the screen without a word.
            self.ledger.left();
        }
        if format.whole_file {
            self.replace_file(edits)?
        } else {
            self.edit_at_once(edits)?
        }
        Ok(!own_line)
    }

    fn undo_format(&mut self) -> Result<(), TypistError> {
        let Some(open) = self.open.as_mut() else { return Ok(()) };
        let indented = std::mem::take(&mut open.tools.indented);
        let final_newline = std::mem::take(&mut open.tools.final_newline);
        if final_newline {
            let end = open.document.text().len();
            self.edit(end - 1, end, "")?;
        }
        for (line, old) in indented {
            let Some(open) = self.open.as_ref() else { return Ok(()) };
            let start = open.document.line_start(line);
            let end = start + indentation(open.document.line(line)).len();
            self.edit(start, end, &old)?;
        }
        Ok(())
    }

    /// A second cursor types at the end of another line.
    fn type_far_away(&mut self, share: f64) -> Result<(), TypistError> {
        let Some(open) = self.open.as_mut() else { return Ok(()) };
        let lines = open.document.text().lines().count();
        let line = (share * lines as f64) as usize;
        if line == open.line || Some(line) == open.tools.trailing || line >= lines {
            return Ok(());
        }
        open.tools.far = Some(line);
        let at = open.line_end(line).0;
        self.edit(at, at, FAR_TEXT)
    }

    /// The next key types at both cursors, in one change of the document.
    fn type_with_both_cursors(&mut self) -> Result<(), TypistError> {
        let Some(open) = self.open.as_mut() else { return Ok(()) };
        let next = open.truth[open.typed..].chars().next().filter(|next| next.is_alphanumeric());
        let (Some(far), Some(next)) = (open.tools.far, next) else { return Ok(()) };
        let (near_at, far_at) = (open.cursor(), open.line_end(far).0);
        let mut edits = vec![(near_at..near_at, next.to_string()), (far_at..far_at, next.into())];
        edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
        open.typed += next.len_utf8();
        self.ledger.typed(&next.to_string());
        self.edit_at_once(edits)?;
        let Some(open) = self.open.as_mut() else { return Ok(()) };
        let far_end = open.line_end(far).0;
        self.edit(far_end - next.len_utf8(), far_end, "")
    }

    fn undo_far_text(&mut self) -> Result<(), TypistError> {
        let Some(open) = self.open.as_mut() else { return Ok(()) };
        let Some(line) = open.tools.far.take() else { return Ok(()) };
        let end = open.line_end(line).0;
        self.edit(end - FAR_TEXT.len(), end, "")
    }

    /// The developer types a bracket by mistake, and takes it back with one press of Backspace,
    /// which also removes the closing one if the editor has put it in.
    fn type_and_take_back(&mut self, bracket: char) -> Result<(), TypistError> {
        let Some(open) = self.open.as_mut() else { return Ok(()) };
        let at = open.cursor();
        let typed = bracket.to_string();
        let before = &open.truth[..open.typed];
        let text = match key(bracket, before, &open.closers, &open.language) {
            Key::Pair(close) if self.closes_pairs() => format!("{typed}{close}"),
            _ => typed.clone(),
        };
        self.ledger.typed(&typed);
        self.edit(at, at, &text)?;
        self.ledger.took_back(&typed);
        self.edit(at, at + text.len(), "")
    }

    /// Makes several edits in one change of the document. Each counts positions after the one
    /// before.
    fn edit_at_once(&mut self, edits: Vec<ToolEdit>) -> Result<(), TypistError> {
        let Some(open) = self.open.as_mut().filter(|_| !edits.is_empty()) else { return Ok(()) };
        let change =
            |(range, text): ToolEdit| (open.document.replace(range.start, range.end, &text), text);
        let changes: Vec<_> = edits.into_iter().map(change).collect();
        Ok(self.client.change_all(&open.uri, &changes)?)
    }

    /// Makes several edits by sending the whole file.
    fn replace_file(&mut self, edits: Vec<ToolEdit>) -> Result<(), TypistError> {
        let Some(open) = self.open.as_mut().filter(|_| !edits.is_empty()) else { return Ok(()) };
        for (range, text) in edits {
            open.document.replace(range.start, range.end, &text);
        }
        Ok(self.client.change(&open.uri, None, open.document.text())?)
    }
}

/// Returns what a formatter changes, and whether it changes the line of the cursor. What is undone
/// later is noted.
fn format_edits(open: &mut OpenFile, format: Format) -> (Vec<ToolEdit>, bool) {
    let mut edits = Vec::new();
    let mut indent = |open: &mut OpenFile, line: usize, other: String| {
        let start = open.document.line_start(line);
        let old = indentation(open.document.line(line)).to_owned();
        edits.push((start..start + old.len(), other));
        open.tools.indented.push((line, old));
    };
    // A blank line of which only the indentation is there.
    let own_indent = indentation(&open.truth).len();
    let is_blank = open.typed == own_indent && own_indent > 1 && open.closers.is_empty();
    let own_line = format.own_line && is_blank;
    let line = open.line;
    if own_line {
        indent(open, line, String::new());
    }
    let above = line.checked_sub(1).filter(|above| *above >= open.tools.imports);
    if let Some(above) = above {
        let old = indentation(open.document.line(above));
        let other = old.replace('\t', "    ");
        let other = if other == old { format!("{old}  ") } else { other };
        let is_code = !open.document.line(above).trim().is_empty();
        if is_code && !old.is_empty() {
            indent(open, above, other);
        }
    }
    let blanks = open.tools.trailing.take().and_then(|line| blanks_at_end(open, line));
    edits.extend(blanks.map(|blanks| (blanks, String::new())));
    // At the end of the file it would be the same edit as Enter.
    let end = open.document.text().len();
    if !open.document.text().ends_with('\n') && open.cursor() < end {
        open.tools.final_newline = true;
        edits.push((end..end, "\n".to_owned()));
    }
    (edits, own_line)
}

/// The blanks that a line ends with.
fn blanks_at_end(open: &OpenFile, line: usize) -> Option<Range<usize>> {
    let end = open.line_end(line).0;
    let text = open.document.line(line);
    let length = text.len() - text.trim_end_matches([' ', '\t']).len();
    (length > 0).then(|| end - length..end)
}
