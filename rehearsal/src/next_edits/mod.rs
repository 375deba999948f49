//! A rehearsal of next edits. The developer makes each commit as edits: a line that changes is
//! changed in place, lines that go are deleted, and new ones are written, file by file and from top
//! to bottom. After each of these steps the server is asked for the next edit. One that the author
//! made in this commit is taken, and the server is asked again from there; any other one is
//! rejected by Escape.
//!
//! All files that the commit changes are open. Nothing asks for completions. Each arm makes all of
//! the steps by itself, because what is offered changes what is left to do.

pub mod figures;
mod hands;
mod offer;
mod plan;
mod words;

use crate::client::{Client, OfferedNextEdit, RequestError};
use crate::developer::history::{FileChange, History};
use crate::document::Position;
use crate::limits;
use crate::run::arm::{self, Arm, ArmKind, ArmSpec};
use crate::run::interrupt;
use crate::run::tree::WorkingTree;
use crate::run::{RunEvent, RunSettings};
use anyhow::{Context, Result};
use figures::{EditFigures, Move};
use hands::Cursor;
use plan::FilePlan;
use std::time::Instant;
use url::Url;

/// A file of the commit that is open in the editor.
struct OpenFile {
    path: String,
    uri: String,
    plan: FilePlan,
}

/// Makes the commits of the history as edits until `settings.limit` steps are done.
pub fn rehearse(
    history: &History,
    spec: &ArmSpec,
    settings: &RunSettings,
    mut observe: impl FnMut(RunEvent),
) -> Result<EditFigures> {
    let mut tree = WorkingTree::new(history)?;
    let home = arm::temporary_home()?;
    let mut arm = Arm::start(&as_you_edit(spec), settings, home, Some(tree.root()))?;
    let client = arm.client();
    let developer = Developer { client, figures: EditFigures::default(), steps: 0 };
    match developer.make_all(history, settings, &mut tree, &mut observe) {
        Ok(figures) => {
            let mut figures = figures.finished();
            figures.arm.clone_from(&spec.name);
            figures.home = if settings.keep_homes { arm.keep_home() } else { None };
            Ok(figures)
        }
        Err(error) => Err(arm.with_log(error)),
    }
}

/// The arm whose gate decides what is shown, as installed. Nothing else learns.
pub fn default_arm() -> ArmSpec {
    ArmSpec::of(ArmKind::Gate)
}

/// The arm with next edits that come as the developer edits, unless it is set otherwise.
fn as_you_edit(spec: &ArmSpec) -> ArmSpec {
    let mut spec = spec.clone();
    spec.set.insert(0, ("completion.next_edit".to_owned(), "on".into()));
    spec
}

struct Developer<'c> {
    client: &'c Client,
    figures: EditFigures,
    /// Steps done by hand.
    steps: usize,
}

impl Developer<'_> {
    fn make_all(
        mut self,
        history: &History,
        settings: &RunSettings,
        tree: &mut WorkingTree,
        observe: &mut impl FnMut(RunEvent),
    ) -> Result<EditFigures> {
        for changes in history.commits() {
            let changes = changes?;
            let Some(first) = changes.first() else { continue };
            if self.steps >= settings.limit {
                break;
            }
            tree.move_before(history, &first.commit)?;
            self.make_commit(&changes, settings, tree, observe)?;
            self.figures.commits += 1;
        }
        Ok(self.figures)
    }

    fn make_commit(
        &mut self,
        changes: &[FileChange],
        settings: &RunSettings,
        tree: &mut WorkingTree,
        observe: &mut impl FnMut(RunEvent),
    ) -> Result<()> {
        self.figures.begin_commit();
        let mut files = Vec::new();
        for change in changes {
            tree.begin_file(change)?;
            let path = tree.root().join(&change.path);
            let uri = Url::from_file_path(&path).ok().context("the working tree has no address")?;
            let uri = String::from(uri);
            self.client.open(&uri, change.language, &change.before)?;
            files.push(OpenFile { path: change.path.clone(), uri, plan: FilePlan::of(change) });
        }
        let first = self.steps;
        'commit: for at in 0..files.len() {
            observe(RunEvent::File { commit: &changes[at].commit, path: &changes[at].path });
            while let Some(step) = files[at].plan.next_step() {
                interrupt::check()?;
                let is_full = settings.per_commit.is_some_and(|most| self.steps - first >= most);
                if self.steps >= settings.limit || is_full {
                    break 'commit;
                }
                let OpenFile { uri, plan, .. } = &mut files[at];
                let before = plan.open_lines();
                if let Some(rewrite) = plan.rewrite_of(&step) {
                    self.figures.note_rewrite(rewrite);
                }
                let cursor = hands::make(self.client, uri, plan, &step)?;
                self.figures.by_hand(before - plan.open_lines());
                self.steps += 1;
                self.walk(&mut files, at, cursor)?;
                observe(RunEvent::PlaceDone { places: self.steps });
            }
            tree.save(&files[at].path, &files[at].plan.text())?;
            self.client.save(&files[at].uri)?;
        }
        files.iter().try_for_each(|file| self.client.close(&file.uri))?;
        Ok(())
    }

    /// Goes from one right next edit to the next, until there is none or one is rejected.
    fn walk(&mut self, files: &mut [OpenFile], at: usize, cursor: Cursor) -> Result<()> {
        let (mut at, mut cursor) = (at, cursor);
        while let Some(offered) = self.ask(&files[at].uri, cursor)? {
            self.client.did_show_next_edit(&offered)?;
            self.client.advance_clock(limits::LOOK_MS)?;
            let OfferedNextEdit { uri, range, text, .. } = &offered;
            let file = files.iter().position(|file| file.uri == *uri);
            let encoding = self.client.encoding();
            let right = file.and_then(|file| {
                let right = offer::right(&files[file].plan, *range, text, encoding)?;
                Some((file, right))
            });
            let Some((file, (slots, done))) = right else {
                self.client.did_reject(&offered.id, "esc")?;
                self.figures.rejected();
                break;
            };
            self.client.change(uri, Some(*range), text)?;
            self.client.accept_next_edit(&offered)?;
            files[file].plan.slots = slots;
            let is_other_file = file != at;
            let lines = if is_other_file { done.line } else { done.line.abs_diff(cursor.line) };
            self.figures.taken(&done, Move { lines, is_other_file });
            at = file;
            cursor = Cursor { line: done.line, character: 0 };
        }
        Ok(())
    }

    fn ask(&mut self, uri: &str, at: Cursor) -> Result<Option<OfferedNextEdit>, RequestError> {
        let position = Position { line: at.line as u32, character: at.character as u32 };
        let asked = Instant::now();
        let (offered, reason) = self.client.next_edit(uri, position)?;
        self.figures.latencies_ms.push(asked.elapsed().as_secs_f64() * 1e3);
        *self.figures.reasons.entry(reason.unwrap_or_default()).or_default() += 1;
        Ok(offered)
    }
}
