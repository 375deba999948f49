//! A file as it is while a commit is made in it: its lines, and what becomes of each.

use super::words::{Rewrite, rewrite};
use crate::developer::history::FileChange;
use strsim::normalized_levenshtein;

/// From this similarity on, a line that takes the place of another one is that line, changed.
const SIMILAR: f64 = 0.4;

/// A hunk with more pairs of old and new lines than this is deleted and written anew.
const PAIRS_MAX: usize = 10_000;

/// What the author makes of a line that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    Stays,
    Becomes(String),
    Goes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Slot {
    Line {
        text: String,
        fate: Fate,
    },
    /// A line that the author has yet to write here.
    Coming(String),
}

impl Slot {
    fn line(text: &str, fate: Fate) -> Slot {
        Slot::Line { text: text.to_owned(), fate }
    }

    pub fn stays(text: &str) -> Slot {
        Slot::line(text, Fate::Stays)
    }
}

/// One thing that the author does by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The line in this slot is changed in place.
    Change { slot: usize },
    /// The lines in this many slots from here on are deleted.
    Delete { slot: usize, count: usize },
    /// The lines in this many slots from here on are written.
    Write { slot: usize, count: usize },
    /// The lines in this many slots from here on get other blanks, as by indenting a selection.
    Indent { slot: usize, count: usize },
}

#[derive(Debug, Clone)]
pub struct FilePlan {
    pub slots: Vec<Slot>,
}

/// Lines without their line feeds. A text that ends in a line feed has an empty last line.
pub fn lines(text: &str) -> Vec<&str> {
    text.split('\n').collect()
}

impl FilePlan {
    pub fn of(change: &FileChange) -> FilePlan {
        let (old, new) = (lines(&change.before), lines(&change.after));
        let (mut slots, mut old_at, mut new_at) = (Vec::new(), 0, 0);
        for hunk in &change.hunks {
            let (removed, added) = (hunk.removed.clone(), hunk.added.clone());
            let same = removed.start.saturating_sub(old_at);
            slots.extend(old[old_at..old_at + same].iter().map(|line| Slot::stays(line)));
            align(&old[removed.clone()], &new[added.clone()], &mut slots);
            (old_at, new_at) = (removed.end, added.end);
        }
        // They differ where one text ends in a line feed and the other does not.
        align(&old[old_at..], &new[new_at..], &mut slots);
        FilePlan { slots }
    }

    /// The text of the file now.
    pub fn text(&self) -> String {
        self.visible().map(|(_, text)| text).collect::<Vec<_>>().join("\n")
    }

    /// The lines that are there, each with its slot.
    pub fn visible(&self) -> impl Iterator<Item = (usize, &str)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| match slot {
            Slot::Line { text, .. } => Some((index, text.as_str())),
            Slot::Coming(_) => None,
        })
    }

    /// The number of the line that a slot is, or that comes behind it.
    pub fn line_of(&self, slot: usize) -> usize {
        self.slots[..slot].iter().filter(|slot| matches!(slot, Slot::Line { .. })).count()
    }

    /// Returns what the author does next in this file, from top to bottom.
    pub fn next_step(&self) -> Option<Step> {
        let is_open = |slot: &Slot| !matches!(slot, Slot::Line { fate: Fate::Stays, .. });
        let slot = self.slots.iter().position(is_open)?;
        let run = |is_it: fn(&Slot) -> bool| {
            self.slots[slot..].iter().take_while(|slot| is_it(slot)).count()
        };
        Some(match &self.slots[slot] {
            Slot::Line { fate: Fate::Goes, .. } => Step::Delete { slot, count: run(goes) },
            line if is_indented(line) => Step::Indent { slot, count: run(is_indented) },
            Slot::Line { .. } => Step::Change { slot },
            Slot::Coming(_) => Step::Write { slot, count: run(is_coming) },
        })
    }

    /// Returns what a step changes within a line.
    pub fn rewrite_of(&self, step: &Step) -> Option<Rewrite> {
        let Step::Change { slot } = step else { return None };
        match &self.slots[*slot] {
            Slot::Line { text, fate: Fate::Becomes(end) } => Some(rewrite(text, end)),
            _ => None,
        }
    }

    /// The lines that are yet to be changed in place or deleted. Those that get other blanks are
    /// not among them, because nobody types that line by line.
    pub fn open_lines(&self) -> usize {
        let is_open = |slot: &&Slot| {
            let is_typed = matches!(slot, Slot::Line { fate: Fate::Goes | Fate::Becomes(_), .. });
            is_typed && !is_indented(slot)
        };
        self.slots.iter().filter(is_open).count()
    }
}

pub fn goes(slot: &Slot) -> bool {
    matches!(slot, Slot::Line { fate: Fate::Goes, .. })
}

fn is_indented(slot: &Slot) -> bool {
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    matches!(slot, Slot::Line { text, fate: Fate::Becomes(end) } if bare(text) == bare(end))
}

fn is_coming(slot: &Slot) -> bool {
    matches!(slot, Slot::Coming(_))
}

/// Pairs old lines with the new ones that they become, so that the similarities of all pairs add up
/// to as much as they can. The others are deleted and written.
fn align(old: &[&str], new: &[&str], slots: &mut Vec<Slot>) {
    let same = |(old, new): &(&&str, &&str)| old == new;
    let head = old.iter().zip(new).take_while(same).count();
    let most = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(most).take_while(same).count();
    let (above, below) = (&old[..head], &old[old.len() - tail..]);
    slots.extend(above.iter().map(|line| Slot::stays(line)));
    align_rest(&old[head..old.len() - tail], &new[head..new.len() - tail], slots);
    slots.extend(below.iter().map(|line| Slot::stays(line)));
}

/// The same for lines that differ at both ends.
fn align_rest(old: &[&str], new: &[&str], slots: &mut Vec<Slot>) {
    if old.len() * new.len() > PAIRS_MAX {
        slots.extend(old.iter().map(|line| Slot::line(line, Fate::Goes)));
        slots.extend(new.iter().map(|line| Slot::Coming((*line).to_owned())));
        return;
    }
    let likeness = |i: usize, j: usize| match normalized_levenshtein(old[i].trim(), new[j].trim()) {
        alike if alike >= SIMILAR => alike,
        _ => 0.0,
    };
    let mut best = vec![vec![0.0_f64; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            let paired = match likeness(i, j) {
                0.0 => 0.0,
                alike => alike + best[i + 1][j + 1],
            };
            best[i][j] = paired.max(best[i + 1][j]).max(best[i][j + 1]);
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        let is_pair = i < old.len() && j < new.len() && {
            let alike = likeness(i, j);
            alike > 0.0 && best[i][j] <= alike + best[i + 1][j + 1]
        };
        if is_pair {
            let is_same = old[i] == new[j];
            let fate = if is_same { Fate::Stays } else { Fate::Becomes(new[j].to_owned()) };
            slots.push(Slot::line(old[i], fate));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && best[i + 1][j] >= best[i][j + 1]) {
            slots.push(Slot::line(old[i], Fate::Goes));
            i += 1;
        } else {
            slots.push(Slot::Coming(new[j].to_owned()));
            j += 1;
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::developer::history::Hunk;

    pub fn change(before: &str, after: &str, hunks: Vec<Hunk>) -> FileChange {
        FileChange {
            commit: "c".into(),
            path: "a.rs".into(),
            renamed_from: None,
            language: "rust",
            before: before.into(),
            after: after.into(),
            hunks,
        }
    }

    /// The text that all fates lead to.
    fn end(plan: &FilePlan) -> String {
        let line = |slot: &Slot| match slot {
            Slot::Line { text, fate: Fate::Stays } => Some(text.clone()),
            Slot::Line { fate: Fate::Becomes(text), .. } | Slot::Coming(text) => Some(text.clone()),
            Slot::Line { fate: Fate::Goes, .. } => None,
        };
        plan.slots.iter().filter_map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_changed_line_is_changed_in_place_and_a_new_one_is_written() {
        let (before, after) = ("a();\nload(1);\nend\n", "a();\nfetch(1);\nand_more();\nend\n");
        let plan = FilePlan::of(&change(before, after, vec![Hunk { removed: 1..2, added: 1..3 }]));
        let expected = [
            Slot::stays("a();"),
            Slot::line("load(1);", Fate::Becomes("fetch(1);".into())),
            Slot::Coming("and_more();".into()),
            Slot::stays("end"),
            Slot::stays(""),
        ];
        assert_eq!(plan.slots, expected);
        assert_eq!((plan.text(), end(&plan)), (before.to_owned(), after.to_owned()));
        assert_eq!(plan.next_step(), Some(Step::Change { slot: 1 }));
        assert_eq!((plan.open_lines(), plan.line_of(3)), (1, 2));
    }

    #[test]
    fn what_is_alike_to_nothing_is_deleted_as_one_step() {
        let hunk = Hunk { removed: 0..2, added: 0..0 };
        let plan = FilePlan::of(&change("x\ny\nz\n", "z\n", vec![hunk]));
        assert_eq!(plan.next_step(), Some(Step::Delete { slot: 0, count: 2 }));
        assert_eq!(end(&plan), "z\n");
    }

    #[test]
    fn what_stands_below_the_last_hunk_stays() {
        let below: String = (0..500).map(|i| format!("line({i});\n")).collect();
        let hunk = Hunk { removed: 0..1, added: 0..1 };
        let texts = ["load();\n", "fetch();\n"].map(|first| format!("{first}{below}"));
        let plan = FilePlan::of(&change(&texts[0], &texts[1], vec![hunk]));
        assert_eq!(plan.open_lines(), 1);
        assert_eq!((plan.text(), end(&plan)), (texts[0].clone(), texts[1].clone()));
    }

    #[test]
    fn lines_that_get_other_blanks_are_one_step_and_no_place() {
        let hunk = Hunk { removed: 0..3, added: 0..3 };
        let plan = FilePlan::of(&change("a()\nb()\nc()\n", "  a()\n  b()\nd()\n", vec![hunk]));
        assert_eq!(plan.next_step(), Some(Step::Indent { slot: 0, count: 2 }));
        assert_eq!(plan.open_lines(), 1);
    }

    #[test]
    fn texts_with_and_without_a_last_line_feed_are_led_to_each_other() {
        for (before, after, hunk) in [
            ("", "one\ntwo\n", Hunk { removed: 0..0, added: 0..2 }),
            ("one", "one\n", Hunk { removed: 0..1, added: 0..1 }),
            ("one\n", "one", Hunk { removed: 0..1, added: 0..1 }),
            ("a\nb", "a\nb\nc", Hunk { removed: 1..2, added: 1..3 }),
        ] {
            let plan = FilePlan::of(&change(before, after, vec![hunk]));
            assert_eq!((plan.text().as_str(), end(&plan).as_str()), (before, after));
        }
    }
}
