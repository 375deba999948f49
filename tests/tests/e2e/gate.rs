//! The gate in the running daemon. It holds back what the user keeps rejecting, never holds back
//! an invoked completion, and has the same state after a restart.

use tests::buffer::{Buffer, WEEK};
use tests::{Home, Model, PATIENT};

/// This many rejections of one offer make the gate hold it back.
const REJECTS: usize = 25;

#[test]
fn an_offer_that_is_always_rejected_is_held_back_unless_it_is_invoked() {
    let settings = format!("{PATIENT}gate.enabled = true\nlearning.enabled = false\n");
    let home = Home::with(Model::Smol, &settings);
    let editor = home.editor();
    let mut shown_at_last = 0;
    for i in 0..REJECTS {
        let week = Buffer::open(&editor, &format!("week{i}.rs"), WEEK);
        if let Some(item) = week.complete() {
            editor.did_show(&item).unwrap();
            editor.did_reject(&item.id, "esc").unwrap();
            shown_at_last += usize::from(i >= REJECTS - 5);
        }
    }
    assert!(shown_at_last < 5, "it still shows what the user rejects");
    let held_back = |home: &Home| {
        let completions = home.completions().into_iter();
        let gates = completions.filter_map(|completion| completion.decision.gate);
        gates.filter(|gate| gate.held_back.is_some()).count()
    };
    assert!(held_back(&home) > 0);
    let propensities: Vec<f32> = home
        .completions()
        .into_iter()
        .filter_map(|completion| completion.decision.gate.map(|gate| gate.propensity))
        .collect();
    assert!(propensities.first() > propensities.last(), "{propensities:?}");

    let invoked = Buffer::open(&editor, "again.rs", WEEK).ask();
    assert!(!invoked.is_empty(), "an invoked completion is answered");

    let gate = |home: &Home| home.status()["evidence"]["gate"].clone();
    let before = gate(&home);
    assert!(before["labels"].as_u64() >= Some(2), "{before}");
    drop(editor);
    home.output(&["stop"]);
    assert_eq!(gate(&home), before, "the gate is folded from the log alone");
    assert!(home.output(&["gate"]).contains("labels learned"));

    // Another home may start from that state, as after a rehearsal.
    let other = Home::with(Model::Smol, &format!("{PATIENT}learning.enabled = false\n"));
    let shipped = gate(&other);
    let nothing = other.error(&["gate", "--adopt", other.path().join("no").to_str().unwrap()]);
    assert!(nothing.contains("no home of Hone"), "{nothing}");
    assert_eq!(gate(&other), shipped);
    let told = other.output(&["gate", "--adopt", home.path().to_str().unwrap()]);
    assert!(told.contains(&format!("starts from {} verdicts", before["labels"])), "{told}");
    assert_ne!(gate(&other)["weights"], shipped["weights"]);
    other.output(&["forget", "--all", "--yes"]);
    assert_eq!(gate(&other)["weights"], shipped["weights"], "the adopted state is forgotten too");
}
