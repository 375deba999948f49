//! What happens when keys are pressed: characters, Enter, and the marks that the editor closes.

use super::open_file::indentation;
use super::{Typist, TypistError};
use crate::developer::Editor;
use crate::developer::pairs::{Key, key};

impl Typist<'_> {
    /// Returns true if the editor closes brackets and quotes.
    pub(super) fn closes_pairs(&self) -> bool {
        self.editor == Editor::Vscode
    }

    /// Deletes whole lines, as one change.
    pub fn delete_lines(&mut self, first: usize, count: usize) -> Result<(), TypistError> {
        let Some(open) = &self.open else { return Ok(()) };
        if count == 0 {
            return Ok(());
        }
        let start = open.document.line_start(first);
        let end = open.document.line_start(first + count);
        self.leave_offer()?;
        self.edit(start, end, "")
    }

    /// Presses Enter, which opens a line with its indentation. `ending` is what the real line ends
    /// with: "\n", "\r\n", or nothing at the end of a file.
    pub fn begin_line(
        &mut self,
        line: usize,
        truth: &str,
        indent: usize,
        ending: &str,
    ) -> Result<(), TypistError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let line = line + open.tools.imports;
        open.ending = ending.to_owned();
        let is_next = line == open.line + 1 && open.typed == open.truth.len();
        let is_closed_in = is_next && !open.closers.is_empty();
        if is_next && !is_closed_in && self.step_down(truth, indent)? {
            return Ok(());
        }
        if is_closed_in && self.break_line(truth, indent, ending)? {
            return Ok(());
        }
        self.drop_closers()?;
        let Some(open) = &mut self.open else { return Ok(()) };
        open.line = line;
        open.truth = truth.to_owned();
        open.typed = indent;
        let (start, indent) = (open.document.line_start(line), &truth[..indent]);
        if is_next && self.ledger.is_live() && ending == "\n" {
            // The cursor is at the end of the line above, where Enter rejects the offer.
            let text = format!("\n{indent}");
            self.ledger.typed(&text);
            return self.edit(start - 1, start - 1, &text);
        }
        let ending = if ending.is_empty() && !open.below.is_empty() { "\n" } else { ending };
        self.leave_offer()?;
        self.edit(start, start, &format!("{indent}{ending}"))
    }

    /// Presses Enter before the marks that the editor has closed. Between a bracket and its closing
    /// one, the closing one gets a line of its own; otherwise it comes along with the cursor.
    /// `false`: the line has no ending, so there is none for the marks either.
    fn break_line(
        &mut self,
        truth: &str,
        indent: usize,
        ending: &str,
    ) -> Result<bool, TypistError> {
        let Some(open) = &mut self.open else { return Ok(false) };
        let own_ending = open.ending_of(open.line).to_owned();
        if own_ending.is_empty() {
            return Ok(false);
        }
        let at = open.cursor();
        let mut text = format!("{own_ending}{}", &truth[..indent]);
        self.ledger.typed(&text);
        let closes_next = truth[indent..].starts_with(open.closers.as_str());
        if open.is_in_empty_pair() && !closes_next && !ending.is_empty() {
            let base = indentation(&open.truth);
            text.push_str(&format!("{ending}{base}"));
            open.below.push(std::mem::take(&mut open.closers));
        }
        open.line += 1;
        open.truth = truth.to_owned();
        open.typed = indent;
        self.edit(at, at, &text)?;
        self.end_line()?;
        Ok(true)
    }

    /// Goes down to the marks below, if the line begins with them. `false` if it does not. The
    /// developer deletes marks that they do not want.
    fn step_down(&mut self, truth: &str, indent: usize) -> Result<bool, TypistError> {
        let Some(open) = &mut self.open else { return Ok(false) };
        let Some(closers) = open.below.last() else { return Ok(false) };
        let rest = &truth[indent..];
        let below = open.line + 1;
        if !rest.starts_with(closers.as_str()) {
            if rest.starts_with([')', ']', '}']) {
                self.delete_below()?;
            }
            return Ok(false);
        }
        let typed = indent + closers.len();
        open.below.pop();
        let start = open.document.line_start(below);
        let end = start + indentation(open.document.line(below)).len();
        (open.line, open.typed, open.truth) = (below, typed, truth.to_owned());
        let is_indented = open.document.text()[start..end] == truth[..indent];
        self.leave_offer()?;
        if !is_indented {
            self.edit(start, end, &truth[..indent])?;
        }
        self.end_line()?;
        Ok(true)
    }

    /// Makes the current line end as the real one does, unless lines below are in the way.
    fn end_line(&mut self) -> Result<(), TypistError> {
        let Some(open) = &self.open else { return Ok(()) };
        let is_right = open.ending_of(open.line) == open.ending;
        if is_right || (open.ending.is_empty() && !open.below.is_empty()) {
            return Ok(());
        }
        let (end, with_ending) = open.line_end(open.line);
        let ending = open.ending.clone();
        self.edit(end, with_ending, &ending)
    }

    /// Types on up to byte `target` of the line, or nothing if the cursor is there already.
    pub fn type_to(&mut self, target: usize) -> Result<(), TypistError> {
        while let Some(open) = &self.open
            && open.typed < target
        {
            let rest = &open.truth[open.typed..target];
            // While an offer is shown, the text is typed character by character. Otherwise a chunk
            // that happens to agree with the offer would look like an acceptance.
            let length = if self.ledger.is_live() { first_char_len(rest) } else { chunk_len(rest) };
            let chunk = rest[..length].to_owned();
            self.type_chunk(&chunk)?;
        }
        Ok(())
    }

    fn type_chunk(&mut self, chunk: &str) -> Result<(), TypistError> {
        let closes = self.closes_pairs();
        let Some(open) = &mut self.open else { return Ok(()) };
        let at = open.cursor();
        let mut chars = chunk.chars();
        let key = match (chars.next(), chars.next()) {
            (Some(typed), None) if closes => {
                key(typed, &open.truth[..open.typed], &open.closers, &open.language)
            }
            _ => Key::Plain,
        };
        open.typed += chunk.len();
        self.ledger.typed(chunk);
        match key {
            Key::Plain => self.edit(at, at, chunk),
            Key::Pair(close) => {
                open.closers.insert(0, close);
                self.edit(at, at, &format!("{chunk}{close}"))
            }
            Key::Over => {
                open.closers.remove(0);
                // VS Code replaces the mark by itself.
                self.edit(at, at + chunk.len(), chunk)
            }
        }
    }

    /// Types what is left of the line and checks it.
    pub fn finish_line(&mut self) -> Result<(), TypistError> {
        let Some(length) = self.open.as_ref().map(|open| open.truth.len()) else { return Ok(()) };
        self.type_to(length)?;
        let Some(open) = &self.open else { return Ok(()) };
        if open.document.line(open.line) != format!("{}{}", open.truth, open.closers) {
            return Err(TypistError::Diverged { path: open.path.clone(), line: open.line + 1 });
        }
        // Brackets and backticks may be closed on a later line, other quotes may not.
        if open.closers.contains(['"', '\'']) {
            self.drop_closers()?;
        }
        self.leave_blanks()
    }

    /// The developer is done with a hunk, and deletes the marks that the editor closed too many.
    pub fn finish_hunk(&mut self) -> Result<(), TypistError> {
        self.drop_closers()?;
        if self.open.as_ref().is_some_and(|open| !open.below.is_empty()) {
            while self.delete_below()? {}
            self.end_line()?;
        }
        self.tidy_up()
    }

    /// Deletes the marks behind the cursor that the editor closed.
    fn drop_closers(&mut self) -> Result<(), TypistError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let length = std::mem::take(&mut open.closers).len();
        if length == 0 {
            return Ok(());
        }
        let at = open.cursor();
        self.leave_offer()?;
        self.edit(at, at + length, "")
    }

    /// Deletes the line below, on which marks stand that the editor closed. `false`: there is none.
    fn delete_below(&mut self) -> Result<bool, TypistError> {
        let Some(open) = &mut self.open else { return Ok(false) };
        if open.below.pop().is_none() {
            return Ok(false);
        }
        let below = open.line + 1;
        let (start, (_, end)) = (open.document.line_start(below), open.line_end(below));
        self.leave_offer()?;
        self.edit(start, end, "")?;
        Ok(true)
    }
}

fn first_char_len(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

/// Bytes of the next word with the blanks before it, or of one character that is no word.
fn chunk_len(text: &str) -> usize {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let blanks = text.len() - text.trim_start_matches(' ').len();
    let word = text[blanks..].find(|c| !is_word(c)).unwrap_or(text.len() - blanks);
    if word > 0 { blanks + word } else { blanks.max(first_char_len(text)) }
}
