//! How the next edits fared: those that a rule found, and those that a model wrote.

use feedback::bounded_map::BoundedMap;
use feedback::event::{Event, EventKind, NextEditKind, OfferId};
use feedback::limits::KNOWN_OFFERS_MAX;
use serde::Serialize;

/// What became of all next edits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct NextEdits {
    pub all: Fared,
    pub rules: Fared,
    pub model: Fared,
}

/// What became of a set of next edits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Fared {
    /// Edits that an editor was sent.
    pub shown: u64,
    /// Edits of which it is known whether the user wanted them.
    pub judged: u64,
    /// Edits that the user had made, or made by hand, and did not take back.
    pub taken: u64,
}

impl NextEdits {
    /// Returns what became of them in a person's words.
    pub fn sentence(&self) -> String {
        let Fared { shown, judged, taken } = self.all;
        if judged == 0 {
            return format!("next edits: {shown} shown, and none judged yet");
        }
        let sources = [("rules", self.rules), ("the model", self.model)].into_iter();
        let sources = sources.filter(|(_, fared)| fared.judged > 0);
        let sources: Vec<_> = sources
            .map(|(name, fared)| format!("{name} {} of {}", fared.taken, fared.judged))
            .collect();
        let sources = sources.join(", ");
        format!("next edits: {shown} shown; {taken} of {judged} judged were taken ({sources})")
    }
}

/// Folds the events of next edits. Its memory does not grow with the log.
pub struct NextEditsBuilder {
    rules: Fared,
    model: Fared,
    /// Edits whose outcome may still come, or change.
    open: BoundedMap<OfferId, Open>,
}

struct Open {
    is_by_model: bool,
    was_right: Option<bool>,
}

impl Default for NextEditsBuilder {
    fn default() -> NextEditsBuilder {
        let (rules, model) = (Fared::default(), Fared::default());
        NextEditsBuilder { rules, model, open: BoundedMap::new(KNOWN_OFFERS_MAX) }
    }
}

impl NextEditsBuilder {
    pub fn apply(&mut self, event: &Event) {
        match &event.kind {
            EventKind::NextEdit(edit) => {
                let is_by_model = edit.kind == NextEditKind::Model;
                self.of(is_by_model).shown += 1;
                self.open.insert(edit.id.clone(), Open { is_by_model, was_right: None });
            }
            EventKind::NextEditOutcome { id, outcome, .. } => {
                if let Some(is_right) = outcome.is_right() {
                    self.judge(id, is_right);
                }
            }
            _ => {}
        }
    }

    /// Returns what became of them, if there were any.
    pub fn next_edits(&self) -> Option<NextEdits> {
        let NextEditsBuilder { rules, model, .. } = *self;
        let all = Fared {
            shown: rules.shown + model.shown,
            judged: rules.judged + model.judged,
            taken: rules.taken + model.taken,
        };
        (all.shown > 0).then_some(NextEdits { all, rules, model })
    }

    /// Notes whether the user wanted an edit. The last that is known of it counts.
    fn judge(&mut self, id: &OfferId, is_right: bool) {
        let Some(open) = self.open.get_mut(id) else { return };
        let (is_by_model, before) = (open.is_by_model, open.was_right.replace(is_right));
        let fared = self.of(is_by_model);
        fared.judged += u64::from(before.is_none());
        fared.taken += u64::from(is_right);
        fared.taken -= u64::from(before == Some(true));
    }

    fn of(&mut self, is_by_model: bool) -> &mut Fared {
        if is_by_model { &mut self.model } else { &mut self.rules }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use feedback::event::{Evidence, NextEdit, NextEditOutcome};
    use feedback::testing::numbered;

    /// The events of a next edit and of what became of it.
    pub fn edit(id: &str, kind: NextEditKind, outcomes: &[NextEditOutcome]) -> Vec<EventKind> {
        let edit = NextEdit {
            id: id.into(),
            path: "/secret/path.rs".into(),
            real_name: None,
            language: "rust".into(),
            line: 1,
            rule: 7,
            kind,
            support: 2,
            invoked: false,
            gate: None,
        };
        let outcome = |outcome: &NextEditOutcome| {
            let (outcome, evidence) = (*outcome, Evidence::Document);
            EventKind::NextEditOutcome { id: id.into(), outcome, evidence }
        };
        let made = EventKind::NextEdit(Box::new(edit));
        std::iter::once(made).chain(outcomes.iter().map(outcome)).collect()
    }

    pub fn fold(edits: Vec<Vec<EventKind>>) -> Option<NextEdits> {
        let mut builder = NextEditsBuilder::default();
        numbered(edits.concat()).for_each(|event| builder.apply(&event));
        builder.next_edits()
    }

    #[test]
    fn an_edit_counts_by_the_last_that_is_known_of_it() {
        use NextEditKind::{Model, Rename, Rewrite};
        use NextEditOutcome::{
            Accepted, MadeByHand, PassedBy, Rejected, Superseded, Undone, Unseen,
        };
        let edits = fold(vec![
            edit("a", Rewrite, &[Accepted]),
            edit("b", Rename, &[PassedBy, MadeByHand]),
            edit("c", Rewrite, &[Accepted, Superseded]),
            edit("d", Model, &[Accepted, Undone]),
            edit("e", Model, &[Accepted, Accepted]),
            edit("f", Model, &[Rejected]),
            edit("g", Rewrite, &[Unseen]),
            edit("h", Model, &[]),
        ]);
        let edits = edits.unwrap();
        assert_eq!(edits.all, Fared { shown: 8, judged: 6, taken: 4 });
        assert_eq!(edits.rules, Fared { shown: 4, judged: 3, taken: 3 });
        assert_eq!(
            edits.sentence(),
            "next edits: 8 shown; 4 of 6 judged were taken (rules 3 of 3, the model 1 of 3)"
        );
    }

    #[test]
    fn where_there_were_none_or_no_verdicts_no_rate_is_told() {
        assert_eq!(fold(vec![]), None);
        let unjudged = fold(vec![edit("a", NextEditKind::Rewrite, &[])]).unwrap();
        assert_eq!(unjudged.sentence(), "next edits: 1 shown, and none judged yet");
    }
}
