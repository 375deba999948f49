//! A trial of a new adapter: both arms answer, with recorded probabilities, and the trial continues
//! after a restart.

use feedback::event::EventKind;
use serde_json::Value;
use std::collections::BTreeSet;
use tests::buffer::{Buffer, WEEK};
use tests::{Home, Model, NOISE, QUICK, eventually, learn};

#[test]
fn an_update_answers_a_part_of_the_requests_until_it_has_proved_itself() {
    let home = Home::with(Model::Smol, &format!("{QUICK}lab.trial = true\n"));
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    week.accept(&item);
    learn(&editor);
    let status = home.status();
    assert_eq!(status["adapter"]["active"], 0, "the base stays active during the trial");
    let trial = &status["evidence"]["trial"];
    assert_eq!((&trial["arms"]["candidate"], &trial["arms"]["incumbent"]), (&1.into(), &0.into()));
    assert_eq!(home.registry()["trial"]["candidate"], 1);

    let mut versions = BTreeSet::new();
    for i in 0..24 {
        let text = format!("// number {i}\n{WEEK}");
        let mut week = Buffer::open(&editor, &format!("week{i}.rs"), &text);
        let item = week.offer();
        week.accept(&item);
        editor.advance_clock(1_000).unwrap();
    }
    for completion in home.completions().iter().skip(1) {
        let arm = completion.decision.arm.expect("an arm drawn for the trial");
        // The candidate answers most requests, so that the user has what it has learned at once.
        let share = if completion.adapter == 1 { 0.8 } else { 0.2 };
        assert!((arm.propensity - share).abs() < 1e-6, "{arm:?}");
        versions.insert(completion.adapter);
    }
    assert_eq!(versions, BTreeSet::from([0, 1]), "both arms answered");
    eventually("both arms have scored what the user wrote", || {
        home.status()["evidence"]["trial"]["references"].as_u64() >= Some(5)
    });

    scores_are_what_decoding_recorded(&home);

    let trial = |home: &Home| home.status()["evidence"]["trial"].clone();
    let before = trial(&home);
    let screen = home.output(&["status"]);
    assert!(screen.contains("v1 is being tried against the model alone: 2"), "{screen}");
    for shown in [&["adapter", "show"][..], &["adapter", "show", "1"]] {
        let shown = home.output(shown);
        assert!(shown.contains("v1 is being tried against the model alone: 2"), "{shown}");
    }
    let shown: Value = serde_json::from_str(&home.output(&["adapter", "show", "--json"])).unwrap();
    assert_eq!((&shown["version"], &shown["trial"]["arms"]["candidate"]), (&0.into(), &1.into()));
    drop(editor);
    home.output(&["stop"]);
    let _editor = home.editor();
    let after = trial(&home);
    assert_eq!(after["candidate"], before["candidate"], "the trial is folded from the log alone");
    home.output(&["adapter", "use", "1"]);
    assert!(trial(&home).is_null(), "the user's choice ends the trial");
    assert_eq!(home.status()["adapter"]["active"], 1);
}

/// The adapter that generated a text gives it the same log-probability afterwards.
fn scores_are_what_decoding_recorded(home: &Home) {
    let completions = home.completions();
    let mut checked = 0;
    for event in home.events() {
        let EventKind::Compared { id, tokens, logprobs, greedy: says } = event.kind else {
            continue;
        };
        let made = completions.iter().find(|made| made.id == id).expect("a recorded completion");
        let said: f32 = made.tokens[..tokens as usize].iter().map(|token| token.logprob).sum();
        let scored = logprobs.iter().find(|(version, _)| *version == made.adapter);
        let (_, scored) = scored.expect("the adapter that answered is one of the two");
        // The score also counts the other tokens that may end the line.
        let (noise, end) = (NOISE * tokens as f32, made.tokens[tokens as usize - 1].logprob);
        let range = said - noise..=said - end + noise;
        assert!(range.contains(scored), "{said} {scored}, {tokens} tokens");
        assert!(says.contains(&made.adapter), "the answer was greedy");
        checked += 1;
    }
    assert!(checked >= 5);
}
