//! What happens to documents without the user's hand: formatters, automatic imports, other programs
//! that write files, and clients that send positions that are not there.

use super::buffer::{FORMS, Form};
use super::lsp_text::{self, Change};
use super::steps::Step;
use super::story::{Found, Story};
use completion::document::Position;

/// A document does not grow beyond this, in bytes.
const TEXT_LIMIT: usize = 1_500;

const TEXTS: &[&str] = &[
    "import os\n",
    "x",
    " ",
    "\n",
    "a\r\nb\r\n",
    "😀",
    "größe(1);\n",
    "\t",
    "\r",
    "// it's\n",
    ")",
];

/// Numbers of lines and columns at the edge of what is there.
const NUMBERS: &[u32] = &[0, 1, 2, 3, 5, 8, 13, 21, 99, 4_000_000_000, u32::MAX];

impl Story {
    pub fn format(&mut self, step: Step) -> Found {
        let (active, text) = (self.active, self.buffer().text.clone());
        let line_break = self.buffer().line_break;
        if step.a.is_multiple_of(2) {
            let lines = lsp_text::lines(&text);
            let lines: Vec<String> =
                lines.into_iter().map(|line| formatted(&text[line], step.b)).collect();
            let change = Change { start: 0, end: text.len(), text: lines.join(line_break) };
            let form = *Step::pick(step.c, &[Form::Whole, Form::NoRange, Form::Difference]);
            let reports = self.tool_change(active, change, form);
            return self.send(active, reports);
        }
        // From the last line to the first, so that the places of the others stay.
        let mut reports = vec![];
        for line in lsp_text::lines(&text).into_iter().rev() {
            let new = formatted(&text[line.clone()], step.b);
            let within = Change::between(&text[line.clone()], &new);
            let change =
                Change { start: line.start + within.start, end: line.start + within.end, ..within };
            if !change.is_nothing() {
                reports.extend(self.tool_change(active, change, Form::Exact));
            }
        }
        self.send(active, reports)
    }

    pub fn insert_elsewhere(&mut self, step: Step) -> Found {
        let number = self.some_open(step.c);
        let buffer = &self.buffers[number];
        if buffer.text.len() > TEXT_LIMIT {
            return self.remove_elsewhere(Step { b: usize::MAX, ..step });
        }
        let text = *Step::pick(step.a, TEXTS);
        // An import is put in at the top.
        let at = if step.a.is_multiple_of(TEXTS.len()) { 0 } else { self.place(number, step.b) };
        let form = *Step::pick(step.c / 7, &FORMS);
        let reports = self.tool_change(number, Change::insertion(at, text), form);
        self.send(number, reports)
    }

    pub fn remove_elsewhere(&mut self, step: Step) -> Found {
        let number = self.some_open(step.c);
        let start = self.place(number, step.a);
        let length = if step.b == usize::MAX { TEXT_LIMIT / 2 } else { step.b % 12 };
        let end = self.place(number, (start + length).min(self.buffers[number].text.len()));
        if end <= start {
            return Ok(());
        }
        let form = *Step::pick(step.c / 7, &FORMS);
        let reports = self.tool_change(number, Change { start, end, text: String::new() }, form);
        self.send(number, reports)
    }

    /// A change from and to positions that may not be there: behind the end of a line or of the
    /// text, within a character, or the wrong way round.
    pub fn change_at_wild_positions(&mut self, step: Step) -> Found {
        let (active, encoding) = (self.active, self.habits.encoding);
        // A change that begins further below is none of this text.
        let last = lsp_text::lines(&self.buffers[active].text).len() as u32;
        let line = (*Step::pick(step.a, NUMBERS)).min(last);
        let from = Position { line, column: *Step::pick(step.b, NUMBERS) };
        let to = Position {
            line: *Step::pick(step.c, NUMBERS),
            column: *Step::pick(step.a / 11, NUMBERS),
        };
        let text = &self.buffers[active].text;
        let at = |position| lsp_text::offset(text, position, encoding).unwrap_or(text.len());
        let (start, end) = (at(from), at(to).max(at(from)));
        let inserted = Step::pick(step.b / 11, TEXTS).to_string();
        let change = Change { start, end, text: inserted.clone() };
        if self.tool_change(active, change, Form::Exact).is_empty() {
            return Ok(());
        }
        self.send(active, vec![(Some((from, to)), inserted)])
    }

    /// Trailing blanks are trimmed and a final newline is put in, as editors do.
    pub fn save(&mut self, step: Step) -> Found {
        let active = self.active;
        let mut reports = vec![];
        let text = self.buffer().text.clone();
        for line in lsp_text::lines(&text).into_iter().rev() {
            let blanks = text[line.clone()].len() - text[line.clone()].trim_end().len();
            if blanks > 0 && step.a.is_multiple_of(2) {
                let change = Change { start: line.end - blanks, end: line.end, text: "".into() };
                reports.extend(self.tool_change(active, change, Form::Exact));
            }
        }
        let buffer = self.buffer();
        if !buffer.text.ends_with(['\n', '\r']) && step.b.is_multiple_of(2) {
            let change = Change::insertion(buffer.text.len(), buffer.line_break);
            reports.extend(self.tool_change(active, change, Form::Exact));
        }
        self.send(active, reports)?;
        let buffer = &mut self.buffers[active];
        buffer.disk = buffer.text.clone();
        self.caret_moved();
        Ok(())
    }

    /// The text of the disk takes the place of the editor's: the document is opened again, closed
    /// and opened, or changed as a whole.
    pub fn reload(&mut self, step: Step) -> Found {
        let active = self.active;
        let buffer = &mut self.buffers[active];
        let disk = buffer.disk.clone();
        match step.a % 3 {
            2 => {
                let change = Change { start: 0, end: buffer.text.len(), text: disk };
                let reports = self.tool_change(active, change, Form::NoRange);
                return self.send(active, reports);
            }
            closes => {
                buffer.text = disk;
                buffer.undo.clear();
                let caret = buffer.caret;
                buffer.put_caret(caret);
                if closes == 1 {
                    self.close(active);
                }
                self.open(active);
            }
        }
        Ok(())
    }

    pub fn open_or_close(&mut self, step: Step) {
        let number = step.a % self.buffers.len();
        if !self.buffers[number].is_open {
            self.open(number);
        } else if number != self.active {
            self.close(number);
        }
    }

    pub fn switch(&mut self, step: Step) {
        self.active = self.some_open(step.a);
        self.caret_moved();
    }

    fn some_open(&self, draw: usize) -> usize {
        let open = (0..self.buffers.len()).filter(|number| self.buffers[*number].is_open);
        *Step::pick(draw, &open.collect::<Vec<_>>())
    }

    /// A place in a document that has a position.
    fn place(&self, number: usize, draw: usize) -> usize {
        let buffer = &self.buffers[number];
        let most = draw % (buffer.text.len() + 1);
        let at = (0..=most).rev().find(|at| buffer.text.is_char_boundary(*at)).unwrap_or(0);
        let position = lsp_text::position(&buffer.text, at, self.habits.encoding);
        lsp_text::offset(&buffer.text, position, self.habits.encoding).unwrap_or(0)
    }
}

/// A line as one of several formatters writes it.
fn formatted(line: &str, which: usize) -> String {
    let code = line.trim_start_matches([' ', '\t']);
    let indentation = &line[..line.len() - code.len()];
    match which % 5 {
        0 => format!("{}{code}", indentation.replace("    ", "\t")),
        1 => format!("{}{code}", indentation.replace('\t', "    ")),
        2 => line.trim_end().to_owned(),
        3 => line.replace("  ", " "),
        _ => line.replace(" = ", "=").replace(",", ", ").replace(",  ", ", "),
    }
}
