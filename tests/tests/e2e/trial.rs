//! An update on trial: both arms answer, with recorded probabilities, and it is
//! remembered over a restart.

use feedback::event::EventKind;
use std::collections::BTreeSet;
use tests::buffer::Buffer;
use tests::{Home, Model, NOISE, QUICK, eventually, learn};

const WEEK: &str = "// Monday, Tuesday, Wednesday, |\n";

#[test]
fn an_update_answers_a_part_of_the_requests_until_it_has_proved_itself() {
    let home = Home::with(Model::Smol, &format!("{QUICK}learning.trial = true\n"));
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    week.accept(&item);
    learn(&editor);
    let status = home.status();
    assert_eq!(status["adapter"]["active"], 0, "the base serves until then");
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
        let arm = completion.decision.arm.expect("drawn for the trial");
        // It answers most of them: what was learned is the user's at once.
        let share = if completion.adapter == 1 { 0.8 } else { 0.2 };
        assert!((arm.propensity - share).abs() < 1e-6, "{arm:?}");
        versions.insert(completion.adapter);
    }
    assert_eq!(versions, BTreeSet::from([0, 1]), "both arms answered");
    eventually("both arms are asked about what was written", || {
        home.status()["evidence"]["trial"]["texts"].as_u64() >= Some(5)
    });

    scores_are_what_decoding_recorded(&home);

    let trial = |home: &Home| home.status()["evidence"]["trial"].clone();
    let before = trial(&home);
    let screen = home.output(&["status"]);
    assert!(screen.contains("v1 against the base: taken 100 %"), "{screen}");
    drop(editor);
    home.output(&["stop"]);
    let _editor = home.editor();
    let after = trial(&home);
    assert_eq!(after["candidate"], before["candidate"], "from the log alone");
    home.output(&["adapter", "use", "1"]);
    assert!(trial(&home).is_null(), "the user has chosen");
    assert_eq!(home.status()["adapter"]["active"], 1);
}

/// Who said a text sees it afterwards as it did then.
fn scores_are_what_decoding_recorded(home: &Home) {
    let completions = home.completions();
    let mut checked = 0;
    for event in home.events() {
        let EventKind::Compared { id, tokens, logprobs, greedy: says } = event.kind else {
            continue;
        };
        let made = completions.iter().find(|made| made.id == id).expect("it was made");
        let said: f32 = made.tokens[..tokens as usize].iter().map(|token| token.logprob).sum();
        let scored = logprobs.iter().find(|(version, _)| *version == made.adapter);
        let (_, scored) = scored.expect("who answered is one of the two");
        // Whatever else ends the line as it did is counted with it.
        let (noise, end) = (NOISE * tokens as f32, made.tokens[tokens as usize - 1].logprob);
        let range = said - noise..=said - end + noise;
        assert!(range.contains(scored), "{said} {scored}, {tokens} tokens");
        assert!(says.contains(&made.adapter), "it was greedy");
        checked += 1;
    }
    assert!(checked >= 5);
}
