//! The learner takes second place. It is stopped while a completion is computed, ends with its
//! daemon, can be paused, and keeps its memory limit.

use rehearsal::client::{Client, TriggerKind};
use rehearsal::document::Position;
use std::path::PathBuf;
use std::process::Command;
use tests::buffer::WEEK;
use tests::scripts::install;
use tests::{Home, Model, QUICK, eventually};

/// Makes one label, which waits.
fn accept_one(editor: &Client, name: &str) {
    tests::buffer::accept_one(editor, name, WEEK);
}

/// A home whose learner takes a job and goes on until its input ends. It writes its process
/// number to the file whose path is answered.
fn with_endless_learner() -> (Home, PathBuf) {
    let mut home = Home::with(Model::Smol, QUICK);
    let (script, number) = (home.path().join("learner.sh"), home.path().join("learner.pid"));
    let number_file = number.display();
    let write = format!("echo $$ > {number_file}.part\nmv {number_file}.part {number_file}\n");
    install(&script, &format!("read -r job\n{write}while read -r line; do :; done\n"));
    home.set_env("HONE_LEARNER", &script);
    (home, number)
}

/// The state letter of a process (T is stopped); none if there is no such process.
fn state(process: &str) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

/// Starts an update; answers the learner's process number.
fn update_under_way(home: &Home, editor: &Client, number: &PathBuf) -> String {
    accept_one(editor, "week.rs");
    assert!(editor.learn().expect("an answer").started);
    eventually("the learner has its job", || number.exists());
    assert_eq!(home.status()["learner"]["state"], "training");
    std::fs::read_to_string(number).expect("a number").trim().to_owned()
}

/// Asks for completions until `seen` is true, for ten seconds at most.
fn complete_until(editor: &Client, mut seen: impl FnMut() -> bool + Send) -> bool {
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let limit = std::time::Instant::now() + std::time::Duration::from_secs(10);
            let mut found = false;
            while !found && std::time::Instant::now() < limit {
                found = seen();
            }
            over.store(true, std::sync::atomic::Ordering::Relaxed);
            found
        });
        for turn in 0.. {
            if over.load(std::sync::atomic::Ordering::Relaxed) {
                break;
            }
            let (uri, text) =
                (format!("file:///project/turn{turn}.rs"), format!("// {turn}: one, two, "));
            let end = Position { line: 0, character: text.len() as u32 };
            // `seen` may have killed the daemon.
            let asked = editor
                .open(&uri, "rust", &text)
                .and_then(|()| editor.inline_completion(&uri, end, TriggerKind::Automatic));
            if asked.is_err() {
                break;
            }
        }
        watcher.join().expect("the watcher")
    })
}

#[cfg(target_os = "linux")]
#[test]
fn the_learner_stands_still_while_a_completion_is_computed() {
    let (home, number) = with_endless_learner();
    let editor = home.editor();
    let learner = update_under_way(&home, &editor, &number);
    assert!(complete_until(&editor, || state(&learner) == Some('T')), "it was never stopped");
    eventually("it goes on afterwards", || state(&learner) != Some('T'));
    assert_eq!(home.status()["learner"]["state"], "training");
}

#[cfg(target_os = "linux")]
#[test]
fn a_learner_that_stands_still_does_not_outlive_its_daemon() {
    let (home, number) = with_endless_learner();
    let editor = home.editor();
    let learner = update_under_way(&home, &editor, &number);
    let daemon = home.daemon_pid().expect("a daemon").to_string();
    let killed = complete_until(&editor, || {
        state(&learner) == Some('T')
            && Command::new("kill").args(["-9", &daemon]).status().is_ok_and(|kill| kill.success())
    });
    assert!(killed, "it was never stopped");
    eventually("the learner is gone", || state(&learner).is_none_or(|state| state == 'Z'));
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
    // The model has room, and the update beside it has not.
    let config = format!("{QUICK}learning.memory_limit_mb = 110\n");
    let home = Home::with(Model::Smol, &config);
    let editor = home.editor();
    accept_one(&editor, "week.rs");
    assert!(editor.learn().expect("an answer").started);
    eventually("the update fails", || home.status()["learner"]["state"] == "backoff");
    let status = home.status();
    let error = status["learner"]["last_error"].as_str().unwrap_or_default();
    assert!(error.contains("its limit is 110 MiB; raise learning.memory_limit_mb"), "{error}");
    assert_eq!(status["learner"]["waiting"], 1);
}

/// The second of two updates learns from the episode of the first again.
#[test]
fn earlier_episodes_are_replayed_also_after_a_restart() {
    let home = Home::with(Model::Smol, &format!("{QUICK}learning.replay_episodes = 5\n"));
    let editor = home.editor();
    accept_one(&editor, "a.rs");
    tests::learn(&editor);
    drop(editor);
    home.output(&["stop"]);
    let editor = home.editor();
    accept_one(&editor, "b.rs");
    tests::learn(&editor);
    let registry = home.registry();
    let counts = |index: usize| {
        let report = &registry["adapters"][index]["report"];
        (report["episodes_used"].as_u64(), report["episodes_replayed"].as_u64())
    };
    assert_eq!(counts(0), (Some(1), Some(0)));
    assert_eq!(counts(1), (Some(2), Some(1)), "{registry}");
}
