//! What a rehearsal of next edits counts, and how it is printed.

use super::offer::Done;
use super::words::Rewrite;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

/// Keys of a move to another line: one a line, up to this many.
const MOVE_KEYS_MAX: usize = 6;
/// Keys of a move to another file, in addition to those of the line.
const FILE_KEYS: usize = 4;
/// Keys that delete something within a line: one a character, up to this many.
const DELETE_KEYS_MAX: usize = 4;
/// Keys that delete a whole line.
const DELETE_LINE_KEYS: usize = 2;
/// Keys that take an offer: one goes there, and one makes the edit.
const TAKE_KEYS: usize = 2;
/// The key that rejects an offer.
const ESCAPE_KEYS: usize = 1;

/// How often a change has been made before it can be known.
const EXAMPLES: usize = 2;

/// Offers at the beginning of a stream, of which the share of right ones is told apart.
const FIRST: usize = 100;

/// From where to where the developer would have gone.
#[derive(Debug, Clone, Copy)]
pub struct Move {
    pub lines: usize,
    pub is_other_file: bool,
}

/// The figures of one author.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct EditFigures {
    pub repo: String,
    pub author: Option<String>,
    pub arm: String,
    /// The daemon's home, if it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home: Option<PathBuf>,
    pub commits: usize,
    /// Places that were edited, by hand or by a next edit: a line that was changed in place, or a
    /// run of lines that was deleted.
    pub places: usize,
    /// Those of them that right next edits did.
    pub done: usize,
    /// The same in lines.
    pub lines: usize,
    pub lines_done: usize,
    /// Lines whose change had been made twice before in the commit: what can be known from it.
    pub repeated: usize,
    /// The changes of this commit, and how often each was made.
    #[serde(skip)]
    rewrites: HashMap<Rewrite, usize>,
    /// Lines of which a next edit did a part, and the developer the rest.
    pub partly: usize,
    /// Lines that next edits wrote. They are not among the others.
    pub written: usize,
    /// True if each offer was right, in order.
    #[serde(skip)]
    pub offers: Vec<bool>,
    pub shown: usize,
    pub right: usize,
    pub keys_saved: i64,
    /// The requests for a next edit, and how long the answers took.
    pub requests: usize,
    /// The reason why the requests ended as they did. The name is empty if the server gave no
    /// reason.
    pub reasons: BTreeMap<String, u64>,
    #[serde(skip)]
    pub latencies_ms: Vec<f64>,
    pub p95_ms: Option<f64>,
}

impl EditFigures {
    pub fn begin_commit(&mut self) {
        self.rewrites.clear();
    }

    /// A line was changed in this way.
    pub fn note_rewrite(&mut self, rewrite: Rewrite) {
        let times = self.rewrites.entry(rewrite).or_default();
        self.repeated += usize::from(*times >= EXAMPLES);
        *times += 1;
    }

    /// The developer edited a place by hand, of this many lines. It is none where lines are only
    /// written.
    pub fn by_hand(&mut self, lines: usize) {
        self.places += usize::from(lines > 0);
        self.lines += lines;
    }

    /// A right edit was taken, for which the developer would have gone this far.
    pub fn taken(&mut self, done: &Done, moved: Move) {
        self.offers.push(true);
        done.rewrites.iter().for_each(|rewrite| self.note_rewrite(rewrite.clone()));
        let places = done.lines - done.deleted_lines + usize::from(done.deleted_lines > 0);
        self.places += places;
        self.done += places;
        self.lines += done.lines;
        self.lines_done += done.lines;
        self.partly += done.partly;
        self.written += done.written;
        let deleting = done.deleted_chars.min(DELETE_KEYS_MAX * (done.lines + done.partly).max(1))
            + DELETE_LINE_KEYS * done.deleted_lines;
        let moving =
            moved.lines.min(MOVE_KEYS_MAX) + if moved.is_other_file { FILE_KEYS } else { 0 };
        let by_hand = done.typed_chars + done.written + deleting + moving;
        self.keys_saved += by_hand as i64 - TAKE_KEYS as i64;
    }

    pub fn rejected(&mut self) {
        self.offers.push(false);
        self.keys_saved -= ESCAPE_KEYS as i64;
    }

    /// The figures with their sums.
    pub fn finished(mut self) -> EditFigures {
        self.shown = self.offers.len();
        self.right = self.offers.iter().filter(|right| **right).count();
        self.requests = self.latencies_ms.len();
        self.latencies_ms.sort_by(f64::total_cmp);
        let rank = (0.95 * self.latencies_ms.len() as f64).ceil() as usize;
        self.p95_ms = self.latencies_ms.get(rank.saturating_sub(1)).copied();
        self
    }

    fn done_share(&self) -> Option<f64> {
        share(self.done, self.places)
    }

    fn repeated_share(&self) -> Option<f64> {
        share(self.repeated, self.places)
    }

    fn right_share(&self) -> Option<f64> {
        share(self.right, self.shown)
    }

    fn right_share_first(&self) -> Option<f64> {
        let first = &self.offers[..self.offers.len().min(FIRST)];
        share(first.iter().filter(|right| **right).count(), first.len())
    }
}

fn share(part: usize, of: usize) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

/// A table for each arm, under its name if there are several.
pub fn tables(arms: &[Vec<EditFigures>]) -> String {
    let name = |all: &[EditFigures]| match (arms.len(), all.first()) {
        (2.., Some(first)) => format!("{}:\n", first.arm),
        _ => String::new(),
    };
    arms.iter().map(|all| name(all) + &table(all)).collect::<Vec<_>>().join("\n")
}

/// The figures of all authors as a table, with the means over the authors.
fn table(all: &[EditFigures]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED);
    table.set_header([
        "",
        "places",
        "repeated",
        "done by next edits",
        "shown",
        "right",
        "right, first 100",
        "keys saved",
    ]);
    for one in all {
        table.add_row([
            one.author.clone().unwrap_or_else(|| one.repo.clone()),
            one.places.to_string(),
            percent(one.repeated_share()),
            percent(one.done_share()),
            one.shown.to_string(),
            percent(one.right_share()),
            percent(one.right_share_first()),
            one.keys_saved.to_string(),
        ]);
    }
    if all.len() > 1 {
        let mean = |of: fn(&EditFigures) -> Option<f64>| {
            let values: Vec<f64> = all.iter().filter_map(of).collect();
            percent((!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64))
        };
        let sum = |of: fn(&EditFigures) -> usize| all.iter().map(of).sum::<usize>().to_string();
        table.add_row([
            "mean over the authors".into(),
            sum(|one| one.places),
            mean(EditFigures::repeated_share),
            mean(EditFigures::done_share),
            sum(|one| one.shown),
            mean(EditFigures::right_share),
            mean(EditFigures::right_share_first),
            all.iter().map(|one| one.keys_saved).sum::<i64>().to_string(),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!(
        "{table}\nplaces: lines changed in place, and runs of deleted lines. repeated: changed as \
         two others before\nin the commit. keys saved: letters, deletions and moves that right \
         edits spared, less {TAKE_KEYS} for\neach that was taken and {ESCAPE_KEYS} for each that \
         was rejected.\n"
    )
}

fn percent(share: Option<f64>) -> String {
    share.map_or("–".into(), |share| format!("{:.1} %", 100.0 * share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_counted_by_the_named_rule() {
        let mut figures = EditFigures::default();
        let renamed = Done { lines: 1, typed_chars: 5, deleted_chars: 9, ..Done::default() };
        // 5 letters, 4 keys that delete, 6 to go there, less the 2 that take it.
        figures.taken(&renamed, Move { lines: 40, is_other_file: false });
        assert_eq!(figures.keys_saved, 13);
        let deleted = Done { lines: 2, deleted_lines: 2, ..Done::default() };
        // 4 keys that delete two lines, 1 and 4 to go to another file, less 2.
        figures.taken(&deleted, Move { lines: 1, is_other_file: true });
        assert_eq!(figures.keys_saved, 20);
        figures.rejected();
        figures.by_hand(3);
        let figures = figures.finished();
        assert_eq!((figures.keys_saved, figures.lines, figures.lines_done), (19, 6, 3));
        assert_eq!((figures.places, figures.done), (3, 2));
        assert_eq!((figures.shown, figures.right), (3, 2));
        assert_eq!(figures.done_share(), Some(2.0 / 3.0));
    }

    #[test]
    fn the_table_has_a_line_an_author_and_their_mean() {
        let one = |author: &str, done| EditFigures {
            author: Some(author.into()),
            places: 10,
            done,
            ..EditFigures::default()
        };
        let text = table(&[one("Ada", 2), one("Grace", 4)]);
        assert!(text.contains("Ada") && text.contains("20.0 %"), "{text}");
        let mean = text.lines().find(|line| line.contains("mean over the authors")).unwrap();
        assert!(mean.contains("30.0 %") && mean.contains(" 20 "), "{mean}");
    }
}
