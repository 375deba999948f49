//! Two lines that were rewritten in one way, but for parts that differ and are carried over:
//! `foo(a, b)` became `a.foo(b)`, and `foo(c, d)` became `c.foo(d)`.

use super::context::{Replaced, WORTH_WITH_HOLES_MIN, parts, patterns, worth_of};
use super::{Action, Example, Rule, RuleKind, Rules, add_pair, id};
use crate::change::Change;
use crate::template::{Holes, Tokens};

pub(super) fn add(earlier: &Example, example: &Example, rules: &mut Rules) {
    let (Change::Rewritten(first), Change::Rewritten(second)) = (earlier.change, example.change)
    else {
        return;
    };
    let ((old_first, new_first), (old_second, new_second)) = (first.spans(), second.spans());
    let old = [
        Tokens { line: &first.old, range: old_first },
        Tokens { line: &second.old, range: old_second },
    ];
    let new = [
        Tokens { line: &first.new, range: new_first },
        Tokens { line: &second.new, range: new_second.clone() },
    ];
    let mut holes = Holes::default();
    let Some(common) = holes.of(&old[0], &old[1]) else { return };
    if holes.len() == 0 {
        return;
    }
    let Some(pieces) = holes.fill(&new[0], &new[1]) else { return };
    let middle = parts(&common, [&first.old, &second.old]);
    let replaced = [&old[0], &old[1]]
        .map(|tokens| Replaced { line: tokens.line, range: tokens.range.clone() });
    let patterns = patterns(middle.clone(), &replaced, WORTH_WITH_HOLES_MIN);
    if patterns.is_empty() || worth_of(&patterns[0].parts) < WORTH_WITH_HOLES_MIN {
        return;
    }
    let rule = Rule {
        id: id((RuleKind::RewriteWithHoles, &middle, &pieces)),
        kind: RuleKind::RewriteWithHoles,
        support: 2,
        is_firm: true,
        latest: example.number,
        patterns,
        action: Action::Replace { pieces, gaps: second.gaps(&old[1].range, &new_second) },
        examples: vec![],
    };
    add_pair(rules, rule, earlier, example);
}
