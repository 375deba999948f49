//! Types the lines of a commit, and stops at the places where the developer of a rehearsal would
//! ask.
//!
//! The editor closes brackets and quotes within a line, as VS Code does. Those of earlier lines are
//! gone, other than in a rehearsal.

use super::desk::Desk;
use anyhow::Result;
use rehearsal::developer::Editor;
use rehearsal::developer::history::{FileChange, lines};
use rehearsal::developer::pairs::{Key, key};
use rehearsal::developer::plan;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    LineStart,
    MidLine,
    BehindDot,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::LineStart, Kind::MidLine, Kind::BehindDot];

    pub fn name(self) -> &'static str {
        match self {
            Kind::LineStart => "line start",
            Kind::MidLine => "within line",
            Kind::BehindDot => "behind dot",
        }
    }

    fn of(typed: &str) -> Kind {
        if typed.trim().is_empty() {
            Kind::LineStart
        } else if [".", "::", "->"].iter().any(|sign| typed.ends_with(sign)) {
            Kind::BehindDot
        } else {
            Kind::MidLine
        }
    }
}

/// A place where the developer asks.
pub struct Place<'t> {
    pub path: &'t str,
    /// Counted from 0.
    pub line: usize,
    /// Bytes of the line that are typed.
    pub at: usize,
    pub kind: Kind,
    /// Where the cursor is, in characters of the document.
    pub cursor: usize,
    /// What is left of the line.
    pub rest: &'t str,
    /// The marks behind the cursor that the editor has closed.
    pub closers: &'t str,
}

/// Types a commit's files into the desk and calls `ask` at each place, at most at `most` of them.
pub fn type_commit(
    desk: &mut Desk,
    changes: &[FileChange],
    (seed, most): (u64, usize),
    ask: &mut dyn FnMut(&mut Desk, &Place) -> Result<()>,
) -> Result<()> {
    let mut typist = Typist { desk, left: most, lines: 0, seed, ask };
    for change in changes {
        if typist.left == 0 {
            break;
        }
        typist.type_file(change)?;
    }
    Ok(())
}

struct Typist<'d, 'a, 'f> {
    desk: &'d mut Desk<'a>,
    /// Places that are left.
    left: usize,
    lines: u64,
    seed: u64,
    ask: &'f mut dyn FnMut(&mut Desk, &Place) -> Result<()>,
}

impl Typist<'_, '_, '_> {
    fn type_file(&mut self, change: &FileChange) -> Result<()> {
        self.desk.open(change);
        let after = lines(&change.after);
        for hunk in &change.hunks {
            let start = self.desk.line_start(hunk.added.start);
            let end = self.desk.line_start(hunk.added.start + hunk.removed.len());
            self.desk.edit(start, end - start, "")?;
            for line in hunk.added.clone() {
                if self.left == 0 {
                    return Ok(());
                }
                self.type_line(change, line, after[line])?;
            }
        }
        Ok(())
    }

    fn type_line(&mut self, change: &FileChange, line: usize, full: &str) -> Result<()> {
        let text = full.strip_suffix('\n').unwrap_or(full);
        let text = text.strip_suffix('\r').unwrap_or(text);
        let plan = plan::of_line(text, Editor::Vscode, &mut plan::draws(self.seed, self.lines));
        self.lines += 1;
        let start = self.desk.line_start(line);
        let indent = &text[..plan.indent];
        self.desk.edit(start, 0, &format!("{indent}{}", &full[text.len()..]))?;
        let (mut done, mut closers) = (plan.indent, String::new());
        for (at, _) in plan.places {
            if self.left == 0 {
                break;
            }
            self.advance((start, text), (done, at), &mut closers, change.language)?;
            done = at;
            let place = Place {
                path: &change.path,
                line,
                at,
                kind: Kind::of(&text[..at]),
                cursor: start + text[..at].chars().count(),
                rest: &text[at..],
                closers: &closers,
            };
            (self.ask)(self.desk, &place)?;
            self.left -= 1;
        }
        // The rest of the line takes the place of the marks.
        let at = start + text[..done].chars().count();
        self.desk.edit(at, closers.chars().count(), &text[done..])?;
        Ok(())
    }

    /// Types the bytes from `from` to `to` of a line, with the marks that the editor closes.
    fn advance(
        &mut self,
        (start, text): (usize, &str),
        (from, to): (usize, usize),
        closers: &mut String,
        language: &str,
    ) -> Result<()> {
        let marks = closers.chars().count();
        for (at, c) in text[from..to].char_indices() {
            match key(c, &text[..from + at], closers, language) {
                Key::Plain => {}
                Key::Pair(close) => closers.insert(0, close),
                Key::Over => drop(closers.remove(0)),
            }
        }
        let at = start + text[..from].chars().count();
        self.desk.edit(at, marks, &format!("{}{closers}", &text[from..to]))
    }
}
