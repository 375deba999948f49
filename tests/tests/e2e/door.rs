//! What a candidate must not have forgotten before it may answer.

use policy::regression_suite::SUITE;
use tests::buffer::Buffer;
use tests::scripts::{Quick, install};
use tests::{Home, Model, PATIENT, QUICK, eventually};

/// A home that has had an update, whose adapter is noise of this size.
fn learned(noise: f32) -> Home {
    let mut home = Home::with(Model::Smol, &format!("{QUICK}learning.trial = true\n"));
    let script = home.path().join("learner.sh");
    install(&script, &Quick::noisy(&home, noise).learner());
    home.set_env("HONE_LEARNER", &script);
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", "// Monday, Tuesday, Wednesday, |\n");
    let item = week.offer();
    week.accept(&item);
    assert!(editor.learn().unwrap().started);
    eventually("an update", || home.status()["learner"]["updates"] == 1);
    home
}

#[test]
fn an_adapter_that_has_forgotten_how_code_goes_answers_nobody() {
    let home = learned(1000.0);
    let registry = home.registry();
    assert!(registry["trial"].is_null(), "{registry}");
    let verdict = &registry["adapters"][0]["verdict"];
    assert_eq!(verdict["end"], "dropped");
    let reason = verdict["reason"].as_str().expect("a reason");
    assert!(reason.contains("of ordinary lines that the model alone says, it misses"), "{reason}");
    assert!(home.daemon_log().contains(reason));
    let screen = home.output(&["status"]);
    assert!(screen.contains(&format!("v1 was given up: {reason}")), "{screen}");
}

#[test]
fn an_adapter_that_has_not_is_tried() {
    let home = learned(1.0);
    assert_eq!(home.registry()["trial"]["candidate"], 1);
}

/// Else the door would ask for what nobody says, and hold it against who learns.
#[test]
fn the_model_says_the_lines_that_an_adapter_must_not_forget() {
    let home = Home::with(Model::Qwen, PATIENT);
    let editor = home.editor();
    for (index, [above, line, rest, below]) in SUITE.iter().enumerate() {
        let text = format!("{above}{line}|{below}");
        let offer = Buffer::open(&editor, &format!("ordinary{index}"), &text).complete();
        let offer = offer.unwrap_or_else(|| panic!("nothing is offered behind {line:?}"));
        assert_eq!(offer.insert_text, *rest, "behind {line:?}");
    }
}
