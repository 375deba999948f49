//! The gate in the running daemon: it holds back what is rejected again and
//! again, answers whoever asks by hand, and knows the same after a restart.

use tests::buffer::Buffer;
use tests::{Home, Model};

const WEEK: &str = "// Monday, Tuesday, Wednesday, |\n";

/// Rejects of the same offer before it is held back for good.
const REJECTS: usize = 25;

#[test]
fn what_is_rejected_again_and_again_is_held_back_but_not_from_who_asks() {
    let home = Home::with(Model::Smol, "gate.enabled = true\nlearning.enabled = false\n");
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
    assert!(shown_at_last < 5, "it still shows what nobody wants");
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

    let by_hand = Buffer::open(&editor, "again.rs", WEEK).ask();
    assert!(!by_hand.is_empty(), "who asks is answered");

    let gate = |home: &Home| home.status()["evidence"]["gate"].clone();
    let before = gate(&home);
    assert!(before["labels"].as_u64() >= Some(2), "{before}");
    drop(editor);
    home.output(&["stop"]);
    assert_eq!(gate(&home), before, "from the log alone");
    assert!(home.output(&["gate"]).contains("labels learned"));

    // Another home may start from that: `hone rehearse --keep` has it do so.
    let other = Home::with(Model::Smol, "learning.enabled = false\n");
    let shipped = gate(&other);
    let nothing = other.error(&["gate", "--adopt", other.path().join("no").to_str().unwrap()]);
    assert!(nothing.contains("no home of Hone"), "{nothing}");
    assert_eq!(gate(&other), shipped);
    let told = other.output(&["gate", "--adopt", home.path().to_str().unwrap()]);
    assert!(told.contains(&format!("starts from {} verdicts", before["labels"])), "{told}");
    assert_ne!(gate(&other)["weights"], shipped["weights"]);
    other.output(&["forget", "--all", "--yes"]);
    assert_eq!(gate(&other)["weights"], shipped["weights"], "it goes with all else");
}
