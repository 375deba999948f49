use super::surroundings::ByModel;
use super::*;
use feedback::event::{Evidence, NextEdit};

fn near(rule: u64) -> Surroundings {
    Surroundings {
        rule,
        kind: NextEditKind::Rewrite,
        support: 2,
        lines_away: Some(10),
        is_in_same_block: false,
        by_model: None,
    }
}

/// What a model wrote at the cursor, with this mean and least log-prob.
fn written(mean: f32, least: f32) -> Surroundings {
    let by_model = ByModel {
        logprobs: Some((mean, least)),
        lines: 2,
        known_words: Some(0.5),
        is_at_cursor: true,
    };
    let (kind, lines_away) = (NextEditKind::Model, Some(3));
    Surroundings { kind, lines_away, by_model: Some(by_model), ..near(9) }
}

fn sure() -> Surroundings {
    written(-0.1, -0.6)
}

fn unsure() -> Surroundings {
    written(-1.0, -3.5)
}

/// The gate is asked about a place and told what became of it.
fn one(gate: &mut EditGate, number: u64, seen: &Surroundings, outcome: NextEditOutcome) {
    let id = format!("e-{number}");
    let edit = NextEdit {
        id: id.clone(),
        path: "/a.rs".into(),
        real_name: None,
        language: "rust".into(),
        line: 1,
        rule: seen.rule,
        kind: seen.kind,
        support: seen.support,
        invoked: false,
        gate: Some(gate.judge(seen, 0.5)),
    };
    tell(gate, EventKind::NextEdit(Box::new(edit)));
    tell(gate, EventKind::NextEditOutcome { id, outcome, evidence: Evidence::Document });
}

fn tell(gate: &mut EditGate, kind: EventKind) {
    assert!(gate.apply(&Event { seq: 0, at_ms: 0, kind }));
}

#[test]
fn the_first_edits_of_a_rule_are_shown() {
    let gate = EditGate::default();
    let record = gate.judge(&near(1), 0.5);
    assert!(record.propensity > 0.9, "{record:?}");
    assert!((0.55..0.9).contains(&record.probability), "{record:?}");
}

#[test]
fn a_rule_that_is_rejected_again_and_again_is_held_back() {
    let mut gate = EditGate::default();
    for number in 0..4 {
        one(&mut gate, number, &near(1), NextEditOutcome::Rejected);
    }
    let (same, other) = (gate.judge(&near(1), 0.5), gate.judge(&near(2), 0.5));
    assert!(same.propensity < 0.2, "{same:?}");
    assert!(other.probability > same.probability, "it is about the rule too");
}

#[test]
fn a_rule_that_is_taken_again_and_again_stays() {
    let mut gate = EditGate::default();
    let before = gate.judge(&near(1), 0.5).probability;
    for number in 0..4 {
        one(&mut gate, number, &near(1), NextEditOutcome::Accepted);
    }
    assert!(gate.judge(&near(1), 0.5).probability > before);
    assert_eq!(gate.labels(), 4);
}

#[test]
fn an_edit_that_is_undone_was_wrong_and_counts_once() {
    let mut gate = EditGate::default();
    one(&mut gate, 1, &near(1), NextEditOutcome::Accepted);
    let outcome = NextEditOutcome::Undone;
    let undone =
        EventKind::NextEditOutcome { id: "e-1".into(), outcome, evidence: Evidence::Document };
    tell(&mut gate, undone.clone());
    tell(&mut gate, undone);
    assert_eq!(gate.rules.get(&1), Some(&Fared { right: 0, wrong: 1 }));
}

#[test]
fn an_edit_that_nobody_saw_says_nothing() {
    let mut gate = EditGate::default();
    one(&mut gate, 1, &near(1), NextEditOutcome::Unseen);
    one(&mut gate, 2, &near(1), NextEditOutcome::Superseded);
    assert_eq!((gate.labels(), gate.rules.get(&1)), (0, None));
}

#[test]
fn a_hundred_thousand_labels_keep_the_gate_finite() {
    let mut gate = EditGate::default();
    for number in 0..100_000 {
        let outcome =
            if number % 3 == 0 { NextEditOutcome::Rejected } else { NextEditOutcome::Accepted };
        one(&mut gate, number, &near(number % 300), outcome);
    }
    let record = gate.judge(&near(7), 0.5);
    assert!(record.probability.is_finite() && record.propensity.is_finite());
    assert!(gate.rules.len() <= RULES_MAX && gate.open.len() <= OPEN_MAX);
}

#[test]
fn the_first_edits_of_a_model_are_shown_unless_it_is_unsure() {
    let gate = EditGate::default();
    let record = gate.judge(&written(-0.2, -1.5), 0.5);
    assert!(record.propensity > 0.99, "{record:?}");
    assert!((0.55..0.65).contains(&record.probability), "{record:?}");
    let record = gate.judge(&unsure(), 0.5);
    assert!(record.propensity < 0.2, "{record:?}");
    let against = gate.weighed_against(NextEditKind::Model, &record);
    assert_eq!(against[0], "mean log-prob of the changed tokens");
}

#[test]
fn one_wrong_edit_of_a_model_is_not_the_end_of_it_and_six_are() {
    let mut gate = EditGate::default();
    one(&mut gate, 0, &sure(), NextEditOutcome::Rejected);
    let next = gate.judge(&sure(), 0.5);
    assert!(next.propensity > 0.5, "{next:?}");
    (1..6).for_each(|number| one(&mut gate, number, &sure(), NextEditOutcome::PassedBy));
    let next = gate.judge(&sure(), 0.5);
    assert!(next.propensity < 0.3, "{next:?}");
    assert_eq!(gate.labels(), 6);
}

#[test]
fn what_a_model_is_sure_of_outlives_what_it_was_unsure_of() {
    let mut gate = EditGate::default();
    (0..6).for_each(|number| one(&mut gate, number, &unsure(), NextEditOutcome::Rejected));
    let (sure, unsure) = (gate.judge(&sure(), 0.5), gate.judge(&unsure(), 0.5));
    assert!(sure.propensity > 0.5 && unsure.propensity < 0.1, "{sure:?} {unsure:?}");
}

#[test]
fn the_edits_of_a_model_and_those_of_rules_do_not_spoil_each_other() {
    let (fresh, mut gate) = (EditGate::default(), EditGate::default());
    (0..6).for_each(|number| one(&mut gate, number, &sure(), NextEditOutcome::Rejected));
    assert_eq!(gate.judge(&near(1), 0.5), fresh.judge(&near(1), 0.5));
    assert_eq!(gate.judge(&near(9), 0.5), fresh.judge(&near(9), 0.5), "it has the same number");
    let mut gate = EditGate::default();
    (0..6).for_each(|number| one(&mut gate, number, &near(9), NextEditOutcome::Rejected));
    assert_eq!(gate.judge(&sure(), 0.5), fresh.judge(&sure(), 0.5));
}

#[test]
fn edits_of_a_model_that_were_judged_as_those_of_rules_are_ignored() {
    let mut gate = EditGate::default();
    let old = Surroundings { kind: NextEditKind::Model, ..near(1) };
    one(&mut gate, 0, &old, NextEditOutcome::Rejected);
    assert_eq!(gate, EditGate::default());
}
