//! Rules from edits that are alike: two make a rule, and more make it firmer.

mod context;
mod holes;
mod lines;
mod literal;

use crate::change::Change;
use crate::history::Unit;
use crate::pattern::Pattern;
use crate::template::Piece;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The latest units that rules are made from.
pub const EVIDENCE_UNITS_MAX: usize = 64;

/// A rule is looked for only while one of its examples is among so many latest units. Later it is
/// not what the user is doing.
pub const RECENT_UNITS: usize = 2;

/// The most rules of one search.
pub const RULES_MAX: usize = 16;

/// Names a rule, also after it has got more examples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(pub u64);

/// What kind of edit a rule repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RuleKind {
    /// Some tokens become some others.
    Rewrite,
    /// Some tokens become some others, and parts that differ are carried over.
    RewriteWithHoles,
    /// Tokens are put between others, or taken out from between them.
    Insertion,
    InlineDeletion,
    /// Whole lines are put below or above a line.
    InsertedLines,
    DeletedLines,
    /// A use of a name that was changed where it is declared.
    Rename,
    /// Not by a rule, but by a model.
    Model,
}

/// An edit that was made at least twice.
#[derive(Debug, Clone)]
pub struct Rule {
    pub id: RuleId,
    pub kind: RuleKind,
    /// How many messages have an example of it.
    pub support: usize,
    /// True if its patterns have enough around them to be looked for in files without an example.
    pub(crate) is_firm: bool,
    /// The number of the unit with its latest example, which grows with time.
    pub(crate) latest: usize,
    /// What is looked for. A later pattern finds less than an earlier one: it has more of what
    /// stands around all examples.
    pub(crate) patterns: Vec<Pattern>,
    pub(crate) action: Action,
    pub(crate) examples: Vec<Place>,
}

impl Rule {
    /// Returns true if it may be looked for in files in which it has no example.
    pub fn is_firm(&self) -> bool {
        self.is_firm
    }

    /// Words of which a text has at least one, if the rule fits somewhere in it.
    pub fn needles(&self) -> impl Iterator<Item = &str> {
        self.patterns.iter().filter_map(Pattern::needle).map(|(_, word)| word)
    }

    pub(crate) fn has_example_in(&self, file: &str) -> bool {
        self.examples.iter().any(|place| *place.file == *file)
    }

    /// The lines of its examples in a file, in the order in which they were made.
    pub(crate) fn example_lines(&self, file: &str) -> Vec<usize> {
        let places = self.examples.iter().filter(|place| *place.file == *file);
        places.map(|place| place.line).collect()
    }
}

/// The place where an example of a rule stands now. The numbers grow with time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub number: usize,
    pub file: Arc<str>,
    pub line: usize,
}

#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// The replaced parts become this text. The gaps are the blanks between it and the tokens
    /// around, if the examples change them.
    Replace { pieces: Vec<Piece>, gaps: [Option<String>; 2] },
    /// The line is deleted, with the lines below it if they fit these patterns.
    DeleteLines { below: Vec<Pattern> },
    /// Lines are put below or above the line.
    InsertLines { is_below: bool, lines: Vec<InsertedLine> },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct InsertedLine {
    pub indent: Indent,
    pub pieces: Vec<Piece>,
}

/// The blanks at the beginning of an inserted line.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Indent {
    /// Those of the line next to it, and these.
    Deeper(String),
    /// Just these.
    Exactly(String),
}

/// A change with the unit it comes from.
#[derive(Clone, Copy)]
pub(crate) struct Example<'a> {
    pub unit: &'a Unit,
    pub number: usize,
    pub change: &'a Change,
}

/// The rules that the units give, the most likely first. The oldest unit comes first.
pub(crate) fn rules(units: &[Unit]) -> Vec<Rule> {
    let count = units.len();
    let examples: Vec<Example> = units
        .iter()
        .enumerate()
        .filter(|(_, unit)| !unit.is_undone)
        .flat_map(|(number, unit)| {
            unit.changes.iter().map(move |change| Example { unit, number, change })
        })
        .collect();
    let recent = count.saturating_sub(RECENT_UNITS);
    let (older, latest) = examples.split_at(examples.partition_point(|e| e.number < recent));
    let mut rules = FxHashMap::default();
    literal::add(&examples, latest, &mut rules);
    lines::add(&examples, latest, &mut rules);
    for (at, example) in latest.iter().enumerate() {
        for earlier in older.iter().chain(&latest[..at]) {
            if earlier.unit.message != example.unit.message {
                holes::add(earlier, example, &mut rules);
                lines::add_with_holes(earlier, example, &mut rules);
            }
        }
    }
    let mut rules: Vec<Rule> = rules.into_values().filter(|rule| rule.support >= 2).collect();
    rules.sort_by(|a, b| {
        let order = b.latest.cmp(&a.latest).then(a.kind.cmp(&b.kind));
        order.then(b.support.cmp(&a.support)).then(a.id.cmp(&b.id))
    });
    rules.truncate(RULES_MAX);
    rules
}

type Rules = FxHashMap<RuleId, Rule>;

/// Returns how many messages the examples come from.
fn support(examples: &[Example]) -> usize {
    let mut messages: Vec<u64> = examples.iter().map(|example| example.unit.message).collect();
    messages.sort_unstable();
    messages.dedup();
    messages.len()
}

pub(crate) fn id(of: impl Hash) -> RuleId {
    let mut hasher = FxHasher::default();
    of.hash(&mut hasher);
    RuleId(hasher.finish())
}

fn places(examples: &[Example]) -> Vec<Place> {
    let place = |example: &Example| Place {
        number: example.number,
        file: example.unit.file.clone(),
        line: example.unit.line_now,
    };
    examples.iter().map(place).collect()
}

/// Adds a rule that two examples give, or makes it firmer with the earlier one.
fn add_pair(rules: &mut Rules, mut rule: Rule, earlier: &Example, example: &Example) {
    rule.support = 2;
    rule.latest = example.number;
    rule.examples = places(&[*earlier, *example]);
    let Some(known) = rules.get_mut(&rule.id) else {
        rules.insert(rule.id, rule);
        return;
    };
    known.latest = known.latest.max(rule.latest);
    for place in rule.examples {
        // Each unit counts once, whatever the number of its lines.
        known.support +=
            usize::from(known.examples.iter().all(|other| other.number != place.number));
        if !known.examples.contains(&place) {
            known.examples.push(place);
        }
    }
    known.examples.sort_by_key(|place| place.number);
}
