//! Whether a next edit that is offered is what the author does in this commit, and what is left to
//! do when it is taken.

use super::plan::{Fate, FilePlan, Slot, goes, lines};
use super::words::{Rewrite, common_ends, rewrite, words};
use crate::document::{Document, Encoding, Range};

/// What a right edit did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Done {
    /// Lines that are now as the author leaves them, of those that were changed or deleted.
    pub lines: usize,
    /// Lines of which it did a part.
    pub partly: usize,
    /// Lines that it wrote.
    pub written: usize,
    /// The first line that differs.
    pub line: usize,
    pub typed_chars: usize,
    pub deleted_chars: usize,
    pub deleted_lines: usize,
    /// What was changed within lines that are done.
    pub rewrites: Vec<Rewrite>,
}

/// The file's slots after the edit, and what it did. `None`: the author does something else there.
pub fn right(
    plan: &FilePlan,
    range: Range,
    new: &str,
    encoding: Encoding,
) -> Option<(Vec<Slot>, Done)> {
    let text = plan.text();
    let mut document = Document::new(text.clone(), encoding);
    let (start, end) = (document.offset(range.start), document.offset(range.end));
    document.replace(start, end.max(start), new);
    let (was, is) = (lines(&text), lines(document.text()));
    let same = |(a, b): &(&&str, &&str)| a == b;
    let first = was.iter().zip(&is).take_while(same).count();
    let most = was.len().min(is.len()) - first;
    let last = was.iter().rev().zip(is.iter().rev()).take(most).take_while(same).count();
    let slots: Vec<usize> = plan.visible().map(|(slot, _)| slot).collect();
    let differ = &slots[first..was.len() - last];
    let is = &is[first..is.len() - last];
    let done = Done { line: first, ..Done::default() };
    match (differ, is) {
        ([], []) => None,
        ([], new) => written(plan, &slots, first, new, done),
        (old, []) => deleted(plan, old, done),
        (old, new) if old.len() == new.len() => changed(plan, old, new, done),
        _ => None,
    }
}

/// Lines that are put in between two lines that stay there.
fn written(
    plan: &FilePlan,
    slots: &[usize],
    at: usize,
    new: &[&str],
    mut done: Done,
) -> Option<(Vec<Slot>, Done)> {
    let from = at.checked_sub(1).map_or(0, |above| slots[above] + 1);
    let to = slots.get(at).copied().unwrap_or(plan.slots.len());
    let is_it = |window: &[Slot]| {
        window.iter().zip(new).all(|(slot, new)| matches!(slot, Slot::Coming(text) if text == new))
    };
    let offset = plan.slots[from..to].windows(new.len()).position(is_it)?;
    let mut after = plan.slots.clone();
    for (slot, text) in after[from + offset..].iter_mut().zip(new) {
        *slot = Slot::stays(text);
        done.typed_chars += text.trim_start().chars().count();
    }
    done.written = new.len();
    Some((after, done))
}

fn deleted(plan: &FilePlan, old: &[usize], mut done: Done) -> Option<(Vec<Slot>, Done)> {
    if !old.iter().all(|slot| goes(&plan.slots[*slot])) {
        return None;
    }
    let mut after = plan.slots.clone();
    old.iter().rev().for_each(|slot| drop(after.remove(*slot)));
    (done.lines, done.deleted_lines) = (old.len(), old.len());
    Some((after, done))
}

fn changed(
    plan: &FilePlan,
    old: &[usize],
    new: &[&str],
    mut done: Done,
) -> Option<(Vec<Slot>, Done)> {
    let mut after = plan.slots.clone();
    for (slot, new) in old.iter().zip(new) {
        let Slot::Line { text, fate } = &plan.slots[*slot] else { return None };
        if text == new {
            continue;
        }
        let Fate::Becomes(end) = fate else { return None };
        let is_whole = end == new;
        if !is_whole && !is_on_the_way(text, new, end) {
            return None;
        }
        let (head, tail) = common_ends(text, new);
        done.typed_chars += new[head..new.len() - tail].chars().count();
        done.deleted_chars += text[head..text.len() - tail].chars().count();
        done.lines += usize::from(is_whole);
        done.partly += usize::from(!is_whole);
        if is_whole {
            done.rewrites.push(rewrite(text, end));
        }
        let fate = if is_whole { Fate::Stays } else { fate.clone() };
        after[*slot] = Slot::Line { text: (*new).to_owned(), fate };
    }
    Some((after, done))
}

/// Returns true if one of the shortest ways from `text` to `end`, counted in words, leads over
/// `new`.
fn is_on_the_way(text: &str, new: &str, end: &str) -> bool {
    let [text, new, end] = [text, new, end].map(words);
    // The types are named for macOS. A library there has a container of which a reference can be
    // iterated if one of its content can, and the compiler would try containers of containers.
    let far = |a: &Vec<&str>, b: &Vec<&str>| -> usize {
        strsim::generic_levenshtein::<Vec<&str>, Vec<&str>, &&str, &&str>(a, b)
    };
    far(&text, &new) > 0 && far(&text, &new) + far(&new, &end) == far(&text, &end)
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::change;
    use super::*;
    use crate::developer::history::Hunk;
    use crate::document::Position;

    /// `load` becomes `fetch` in three lines, of which one changes elsewhere too; two lines go, and
    /// one comes.
    fn plan() -> FilePlan {
        let before = "load(1);\nload(2);\nload(3);\nold();\nolder();\nend\n";
        let after = "fetch(1);\nfetch(2);\nfetch(33);\nend\nnew();\n";
        let hunks = vec![Hunk { removed: 0..5, added: 0..3 }, Hunk { removed: 6..6, added: 4..5 }];
        FilePlan::of(&change(before, after, hunks))
    }

    /// An edit from one line and column to another.
    type Edit = (Range, &'static str);

    fn edit(lines: (u32, u32), columns: (u32, u32), text: &'static str) -> Edit {
        let at = |line, character| Position { line, character };
        (Range { start: at(lines.0, columns.0), end: at(lines.1, columns.1) }, text)
    }

    fn take((range, text): Edit) -> Option<(Vec<Slot>, Done)> {
        right(&plan(), range, text, Encoding::Utf16)
    }

    fn done(edit: Edit) -> Option<Done> {
        take(edit).map(|(_, done)| done)
    }

    #[test]
    fn an_edit_that_the_author_makes_is_right_whole_or_in_part() {
        let whole = done(edit((1, 1), (0, 4), "fetch")).unwrap();
        let expected = Done {
            lines: 1,
            line: 1,
            typed_chars: 5,
            deleted_chars: 4,
            rewrites: vec![("load".into(), "fetch".into())],
            ..Done::default()
        };
        assert_eq!(whole, expected);
        let (slots, part) = take(edit((2, 2), (0, 4), "fetch")).unwrap();
        assert_eq!((part.lines, part.partly), (0, 1));
        let left =
            Slot::Line { text: "fetch(3);".into(), fate: Fate::Becomes("fetch(33);".into()) };
        assert_eq!(slots[2], left);
    }

    #[test]
    fn another_edit_is_wrong() {
        for wrong in [
            edit((1, 1), (0, 4), "find"),
            edit((5, 5), (0, 3), "stop"),
            edit((3, 3), (0, 3), "new"),
            edit((5, 6), (0, 0), ""),
            edit((0, 0), (0, 0), "new();\n"),
            edit((0, 0), (0, 4), "load"),
        ] {
            assert_eq!(done(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn lines_that_go_and_lines_that_come_are_right_where_they_are() {
        let gone = done(edit((3, 5), (0, 0), "")).unwrap();
        assert_eq!((gone.lines, gone.deleted_lines, gone.line), (2, 2, 3));
        let (slots, come) = take(edit((6, 6), (0, 0), "new();\n")).unwrap();
        assert_eq!((come.lines, come.written, come.typed_chars), (0, 1, 6));
        assert!(slots.contains(&Slot::stays("new();")));
    }
}
