//! The learner stands still while a completion is computed, and ends with its daemon all the same.
//! Linux tells the state of a process in a file.
#![cfg(target_os = "linux")]

use rehearsal::client::{Client, TriggerKind};
use rehearsal::document::Position;
use std::path::PathBuf;
use std::process::Command;
use tests::buffer::WEEK;
use tests::scripts::install;
use tests::{Home, Model, PATIENCE, QUICK, eventually};

/// A home whose learner takes a job and continues until its input ends. It writes its process
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

/// Starts an update. Returns the learner's process number.
fn update_under_way(home: &Home, editor: &Client, number: &PathBuf) -> String {
    tests::buffer::accept_one(editor, "week.rs", WEEK);
    assert!(editor.learn().expect("an answer").started);
    eventually("the learner has its job", || number.exists());
    assert_eq!(home.status()["learner"]["state"], "training");
    std::fs::read_to_string(number).expect("a number").trim().to_owned()
}

/// Asks for completions until `seen` is true. Returns false if that never comes.
fn complete_until(editor: &Client, mut seen: impl FnMut() -> bool + Send) -> bool {
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let limit = std::time::Instant::now() + PATIENCE;
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

#[test]
fn the_learner_stands_still_while_a_completion_is_computed() {
    let (home, number) = with_endless_learner();
    let editor = home.editor();
    let learner = update_under_way(&home, &editor, &number);
    assert!(complete_until(&editor, || state(&learner) == Some('T')), "it was never stopped");
    eventually("it continues afterwards", || state(&learner) != Some('T'));
    assert_eq!(home.status()["learner"]["state"], "training");
}

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
