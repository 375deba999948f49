//! Some tokens of a line that became the same others in several places.

use super::context::{Replaced, WORTH_MIN, WORTH_OF_INSERTION_MIN, patterns, worth_of_support};
use super::{Action, Example, Rule, RuleKind, Rules, id, places, support};
use crate::change::{Change, Rewrite, common_class};
use crate::pattern::Part;
use crate::template::{Piece, Tokens};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Tokens of a line that became others.
struct Span<'a> {
    example: Example<'a>,
    rewrite: &'a Rewrite,
    old: Range<usize>,
    new: Range<usize>,
}

type Key<'a> = (Vec<&'a str>, Vec<&'a str>);

impl<'a> Span<'a> {
    fn key(&self) -> Key<'a> {
        let old = Tokens { line: &self.rewrite.old, range: self.old.clone() };
        let new = Tokens { line: &self.rewrite.new, range: self.new.clone() };
        (old.words(), new.words())
    }
}

/// All that differs in the line.
fn span<'a>(example: &Example<'a>) -> Option<Span<'a>> {
    let Change::Rewritten(rewrite) = example.change else { return None };
    let (old, new) = rewrite.spans();
    Some(Span { example: *example, rewrite, old, new })
}

pub(super) fn add(examples: &[Example], latest: &[Example], rules: &mut Rules) {
    let mut groups: FxHashMap<Key, Vec<Span>> = FxHashMap::default();
    for span in latest.iter().filter_map(span) {
        groups.entry(span.key()).or_default();
    }
    for span in examples.iter().filter_map(span) {
        if let Some(group) = groups.get_mut(&span.key()) {
            group.push(span);
        }
    }
    for (key, group) in groups {
        if let Some(rule) = rule(key, &group) {
            rules.insert(rule.id, rule);
        }
    }
}

fn rule(key: Key, group: &[Span]) -> Option<Rule> {
    let examples: Vec<Example> = group.iter().map(|span| span.example).collect();
    let support = support(&examples);
    let last = group.last()?;
    if support < 2 {
        return None;
    }
    let (kind, worth_min) = match (last.old.is_empty(), last.new.is_empty()) {
        (true, _) => (RuleKind::Insertion, WORTH_OF_INSERTION_MIN),
        (_, true) => (RuleKind::InlineDeletion, WORTH_OF_INSERTION_MIN),
        _ => (RuleKind::Rewrite, WORTH_MIN),
    };
    let middle = (0..last.old.len()).map(|at| {
        let classes = group.iter().map(|span| span.rewrite.old.tokens[span.old.start + at].class);
        let class = classes.reduce(common_class)?;
        Some(Part::Word(key.0[at].into(), class))
    });
    let middle: Vec<Part> = middle.collect::<Option<_>>()?;
    let replaced: Vec<Replaced> = group
        .iter()
        .map(|span| Replaced { line: &span.rewrite.old, range: span.old.clone() })
        .collect();
    let all = patterns(middle.clone(), &replaced, worth_min);
    let is_firm = !all.is_empty();
    let patterns = match is_firm {
        true => all,
        false => {
            // All examples may have nothing around them in common, and the latest ones more.
            let worth_min = worth_of_support(worth_min, support);
            let latest = [replaced.len(), 3, 2].into_iter();
            let mut patterns_of = latest
                .filter_map(|count| replaced.len().checked_sub(count))
                .map(|from| patterns(middle.clone(), &replaced[from..], worth_min));
            patterns_of.find(|patterns| !patterns.is_empty())?
        }
    };
    let new = Tokens { line: &last.rewrite.new, range: last.new.clone() };
    Some(Rule {
        id: id((kind, &key)),
        kind,
        support,
        is_firm,
        latest: last.example.number,
        patterns,
        action: Action::Replace {
            pieces: vec![Piece::Text(new.text().to_owned())],
            gaps: last.rewrite.gaps(&last.old, &last.new),
        },
        examples: places(&examples),
    })
}
