//! The holdout check: a new adapter must still complete the regression suite before it may
//! serve.

use policy::regression_suite::SUITE;
use tests::buffer::{Buffer, WEEK};
use tests::scripts::{Quick, install};
use tests::{Home, Model, PATIENT, QUICK, eventually};

/// A home that has learned an adapter of random numbers of this size.
fn learned(noise: f32) -> Home {
    let mut home = Home::with(Model::Smol, &format!("{QUICK}lab.trial = true\n"));
    let script = home.path().join("learner.sh");
    install(&script, &Quick::noisy(&home, noise).learner());
    home.set_env("HONE_LEARNER", &script);
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    week.accept(&item);
    assert!(editor.learn().unwrap().started);
    eventually("an update", || home.status()["learner"]["updates"] == 1);
    home
}

#[test]
fn an_adapter_that_fails_the_regression_suite_is_dropped() {
    let home = learned(1000.0);
    let registry = home.registry();
    assert!(registry["trial"].is_null(), "{registry}");
    let verdict = &registry["adapters"][0]["verdict"];
    assert_eq!(verdict["end"], "dropped");
    let reason = verdict["reason"].as_str().expect("a reason");
    assert!(
        reason.contains("of the regression suite's lines that the base model completes, it misses"),
        "{reason}"
    );
    assert!(home.daemon_log().contains(reason));
    let screen = home.output(&["status"]);
    assert!(screen.contains(&format!("v1 was given up: {reason}")), "{screen}");
}

#[test]
fn an_adapter_that_passes_it_starts_a_trial() {
    let home = learned(1.0);
    assert_eq!(home.registry()["trial"]["candidate"], 1);
}

/// If the base did not complete the regression suite, the check would fail every adapter.
#[test]
fn the_base_completes_the_regression_suite() {
    let home = Home::with(Model::Qwen, PATIENT);
    let editor = home.editor();
    for (index, [above, line, rest, below]) in SUITE.iter().enumerate() {
        let text = format!("{above}{line}|{below}");
        let offer = Buffer::open(&editor, &format!("case{index}"), &text).complete();
        let offer = offer.unwrap_or_else(|| panic!("nothing is offered behind {line:?}"));
        assert_eq!(offer.insert_text, *rest, "behind {line:?}");
    }
}
