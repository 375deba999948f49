//! The learner takes second place. It can be paused, and keeps its memory limit.

use rehearsal::client::Client;
use tests::buffer::WEEK;
use tests::{Home, Model, QUICK, eventually};

/// Makes one label, which waits.
fn accept_one(editor: &Client, name: &str) {
    tests::buffer::accept_one(editor, name, WEEK);
}

#[test]
fn pausing_gives_an_update_up_and_its_labels_wait() {
    let mut home = Home::with(Model::Smol, QUICK);
    let hold = home.hold_learner();
    std::fs::write(&hold, "").expect("a hold");
    let editor = home.editor();
    accept_one(&editor, "week.rs");
    assert!(editor.learn().expect("an answer").started);
    eventually("the update starts", || home.status()["learner"]["state"] == "training");
    home.output(&["pause"]);
    // The daemon looks at the setting more often than this.
    std::thread::sleep(std::time::Duration::from_secs(2));
    std::fs::remove_file(&hold).expect("the hold ends");
    eventually("the update is given up", || home.status()["learner"]["state"] == "off");
    let status = home.status();
    assert_eq!(
        (&status["learner"]["waiting"], &status["adapter"]["active"]),
        (&1.into(), &0.into())
    );
    assert!(status["learner"]["last_error"].is_null(), "nothing failed");
    assert!(home.daemon_log().contains("given up: learning was paused"));

    home.output(&["resume"]);
    assert!(editor.learn().expect("an answer").started);
    eventually("the same learner learns", || home.status()["adapter"]["active"] == 1);
    assert_eq!(home.status()["learner"]["waiting"], 0);
}

#[test]
fn an_update_past_its_memory_says_so_and_costs_no_label() {
    // The model, whose file has 94 MiB, is not too large, and adapter, gradient and optimizer are.
    let config = format!("{QUICK}learning.memory_limit_mb = 95\n");
    let home = Home::with(Model::Smol, &config);
    let editor = home.editor();
    accept_one(&editor, "week.rs");
    assert!(editor.learn().expect("an answer").started);
    eventually("the update fails", || home.status()["learner"]["state"] == "backoff");
    let status = home.status();
    let error = status["learner"]["last_error"].as_str().unwrap_or_default();
    assert!(error.contains("its limit is 95 MiB; raise learning.memory_limit_mb"), "{error}");
    assert_eq!(status["learner"]["waiting"], 1);
}
