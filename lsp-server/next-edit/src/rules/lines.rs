//! Whole lines that were deleted, or inserted next to lines that are alike.

use super::context::{WORTH_OF_LINES_MIN, parts, worth_of};
use super::{
    Action, Example, Indent, InsertedLine, Rule, RuleKind, Rules, add_pair, id, places, support,
};
use crate::change::{Change, Line};
use crate::pattern::{Part, Pattern};
use crate::template::{Holes, Piece, Tokens};
use rustc_hash::FxHashMap;

/// The most lines that a rule inserts or deletes.
const LINES_MAX: usize = 8;

/// Blocks of the same lines that were deleted.
pub(super) fn add(examples: &[Example], latest: &[Example], rules: &mut Rules) {
    let mut groups: FxHashMap<Vec<Vec<&str>>, Vec<Example>> = FxHashMap::default();
    for example in latest {
        if let Change::Deleted(lines) = example.change {
            groups.entry(words(lines)).or_default();
        }
    }
    for example in examples {
        if let Change::Deleted(lines) = example.change
            && let Some(group) = groups.get_mut(&words(lines))
        {
            group.push(*example);
        }
    }
    for (key, group) in groups {
        let (Some(last), support) = (group.last(), support(&group)) else { continue };
        let Change::Deleted(lines) = last.change else { continue };
        let mut patterns: Vec<Pattern> = full(lines).map(whole_line).collect();
        let worth: f32 = patterns.iter().map(|pattern| worth_of(&pattern.parts)).sum();
        if support < 2 || worth < WORTH_OF_LINES_MIN || patterns.len() > LINES_MAX {
            continue;
        }
        let below = patterns.split_off(1);
        let rule = Rule {
            id: id((RuleKind::DeletedLines, &key)),
            kind: RuleKind::DeletedLines,
            support,
            is_firm: true,
            latest: last.number,
            patterns,
            action: Action::DeleteLines { below },
            examples: places(&group),
        };
        rules.insert(rule.id, rule);
    }
}

/// Lines that were inserted next to lines that are alike.
pub(super) fn add_with_holes(earlier: &Example, example: &Example, rules: &mut Rules) {
    let (
        Change::Inserted { lines: first, above: first_above, below: first_below },
        Change::Inserted { lines: second, above, below },
    ) = (earlier.change, example.change)
    else {
        return;
    };
    if first.len() != second.len() || first.len() > LINES_MAX {
        return;
    }
    let sides = [(first_above, above, true), (first_below, below, false)];
    for (first_anchor, anchor, is_below) in sides {
        let (Some(first_anchor), Some(anchor)) = (first_anchor, anchor) else { continue };
        if let Some(rule) = inserted([first, second], [first_anchor, anchor], is_below) {
            return add_pair(rules, rule, earlier, example);
        }
    }
}

fn inserted(lines: [&[Line]; 2], anchors: [&Line; 2], is_below: bool) -> Option<Rule> {
    let mut holes = Holes::default();
    let common = holes.of(&Tokens::all(anchors[0]), &Tokens::all(anchors[1]))?;
    let mut parts = parts(&common, anchors);
    parts.insert(0, Part::Start);
    parts.push(Part::End);
    if worth_of(&parts) < WORTH_OF_LINES_MIN {
        return None;
    }
    let written = lines[0].iter().zip(lines[1]).map(|(first, second)| {
        let pieces: Vec<Piece> = holes.fill(&Tokens::all(first), &Tokens::all(second))?;
        Some(InsertedLine { indent: indent(anchors[1], second), pieces })
    });
    let written: Vec<InsertedLine> = written.collect::<Option<_>>()?;
    let pattern = Pattern { replaced: 0..parts.len(), parts };
    pattern.needle()?;
    Some(Rule {
        id: id((RuleKind::InsertedLines, &pattern, &written)),
        kind: RuleKind::InsertedLines,
        support: 2,
        is_firm: true,
        latest: 0,
        patterns: vec![pattern],
        action: Action::InsertLines { is_below, lines: written },
        examples: vec![],
    })
}

fn indent(anchor: &Line, inserted: &Line) -> Indent {
    match inserted.indent().strip_prefix(anchor.indent()) {
        Some(deeper) => Indent::Deeper(deeper.to_owned()),
        None => Indent::Exactly(inserted.indent().to_owned()),
    }
}

fn full(lines: &[Line]) -> impl Iterator<Item = &Line> {
    lines.iter().filter(|line| !line.tokens.is_empty())
}

fn words(lines: &[Line]) -> Vec<Vec<&str>> {
    full(lines).map(|line| line.words().collect()).collect()
}

fn whole_line(line: &Line) -> Pattern {
    let mut parts = vec![Part::Start];
    parts.extend((0..line.tokens.len()).map(|at| Part::of(line, at)));
    parts.push(Part::End);
    Pattern { replaced: 0..parts.len(), parts }
}
