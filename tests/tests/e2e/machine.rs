//! What a machine can run out of: the editor goes on, the reason is told, and what
//! was acknowledged is there afterwards.

use feedback::event::Outcome;
use rehearsal::client::Client;
use serde_json::Value;
use std::os::unix::net::UnixStream;
use std::process::Command;
use tests::buffer::Buffer;
use tests::{Home, Model, QUICK, eventually};

const WEEK: &str = "// Monday, Tuesday, Wednesday, |\n";

fn home() -> Home {
    Home::with(Model::Smol, QUICK)
}

/// An editor whose server runs under a shell's limits, and the daemon with it.
fn limited(home: &Home, limits: &str) -> Client {
    let mut command = Command::new("sh");
    let start = format!("{limits}; exec {} lsp --manual-clock", tests::hone().display());
    command.args(["-c", &start]).env("HONE_HOME", home.path());
    let editor = Client::spawn(&mut command).expect("sh runs");
    editor.initialize(&[]).expect("the server answers");
    editor
}

fn trouble(editor: &Client) -> String {
    let status = editor.status().expect("a status");
    status["learner"]["last_error"].as_str().unwrap_or_default().to_owned()
}

/// Accepts offers until one is not acknowledged; answers those that were.
fn accept_until_refused(editor: &Client) -> (Vec<String>, String) {
    let mut acknowledged = vec![];
    for number in 0..2_000 {
        let mut buffer = Buffer::open(editor, &format!("{}.rs", number % 10), WEEK);
        let item = buffer.complete().expect("completions go on");
        buffer.insert(&item.insert_text);
        match editor.accept(&item.id) {
            Ok(()) => acknowledged.push(item.id),
            Err(error) => return (acknowledged, error.to_string()),
        }
    }
    panic!("nothing ran out");
}

/// What was acknowledged is there after a restart without the trouble, and goes on.
fn all_there(home: &Home, acknowledged: &[String]) {
    home.output(&["stop"]);
    let editor = home.editor();
    assert!(!acknowledged.is_empty());
    for id in acknowledged {
        let outcomes = home.outcomes(id);
        assert!(outcomes.iter().any(|(outcome, _)| *outcome == Outcome::Accepted), "{id}");
    }
    let mut buffer = Buffer::open(&editor, "after.rs", WEEK);
    let item = buffer.offer();
    buffer.accept(&item);
    assert_eq!(trouble(&editor), "");
}

/// A file that may not grow is what a full disk looks like to a database.
#[test]
fn a_full_disk_stops_learning_with_a_reason_and_nothing_else() {
    let home = home();
    // In blocks of 512 bytes; without the signal that would end the process.
    let editor = limited(&home, "trap '' XFSZ; ulimit -f 1024");
    let (acknowledged, error) = accept_until_refused(&editor);
    assert!(error.contains("not recorded"), "{error}");
    let reason = trouble(&editor);
    assert!(reason.contains("cannot write the event log") && reason.contains("free disk space"));
    for number in 0..5 {
        let buffer = Buffer::open(&editor, &format!("later-{number}.rs"), WEEK);
        assert!(buffer.complete().is_some(), "completions go on");
    }
    assert!(home.output(&["status"]).contains("cannot write the event log"));
    all_there(&home, &acknowledged);
}

/// More connections than file descriptors: those who are in are served, and those
/// who wait are taken when there is room.
#[test]
fn out_of_file_descriptors_costs_the_newcomers_only() {
    let home = home();
    let editor = limited(&home, "ulimit -n 48");
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    week.accept(&item);
    let socket = home.path().join("run/hone.sock");
    let crowd: Vec<_> = (0..80).filter_map(|_| UnixStream::connect(&socket).ok()).collect();
    assert!(crowd.len() > 48);
    for number in 0..5 {
        let buffer = Buffer::open(&editor, &format!("{number}.rs"), WEEK);
        assert!(buffer.complete().is_some(), "completions go on");
    }
    drop(crowd);
    eventually("a newcomer is served", || {
        home.run(&["status", "--json"]).status.success()
            && home.status()["daemon"]["pid"].is_number()
    });
    drop(editor);
    all_there(&home, &[item.id]);
}

/// The same on a file system that is really full.
#[test]
fn a_file_system_without_room_stops_learning_with_a_reason() {
    let home = home();
    let data = home.path().join("data");
    std::fs::create_dir_all(&data).unwrap();
    let mount = |args: &[&str]| Command::new("mount").args(args).output().unwrap().status.success();
    let place = data.display().to_string();
    if !mount(&["-t", "tmpfs", "-o", "size=64m", "none", &place]) {
        let because = "mounting is not permitted";
        let _ = std::io::Write::write_fmt(
            &mut std::io::stderr(),
            format_args!("SKIPPED a full file system: because {because}\n"),
        );
        return;
    }
    struct Mounted(String);
    impl Drop for Mounted {
        fn drop(&mut self) {
            let _ = Command::new("umount").args(["--lazy", &self.0]).status();
        }
    }
    let mounted = Mounted(place.clone());
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    week.accept(&item);
    let filled = Command::new("dd")
        .args(["if=/dev/zero", "bs=1M", &format!("of={place}/filler")])
        .output()
        .unwrap();
    assert!(!filled.status.success(), "it is full");
    let (mut acknowledged, error) = accept_until_refused(&editor);
    acknowledged.push(item.id);
    assert!(error.contains("not recorded"), "{error}");
    assert!(trouble(&editor).contains("cannot write the event log"), "{}", trouble(&editor));
    assert!(Buffer::open(&editor, "later.rs", WEEK).complete().is_some());
    std::fs::remove_file(data.join("filler")).unwrap();
    all_there(&home, &acknowledged);
    home.output(&["stop"]);
    drop(mounted);
}

/// Starting on a home that cannot be written says so in one line.
#[test]
fn a_home_that_cannot_be_written_is_named() {
    let mut home = home();
    // Nothing can be made there, whoever asks.
    home.set_env("HONE_HOME", "/proc/hone");
    let error = home.error(&["lsp"]);
    assert!(error.starts_with("/proc/hone"), "{error}");
    assert!(error.contains("cannot make this folder"), "{error}");
}

/// No second process can be started: that is one failed update.
#[test]
fn a_learner_that_cannot_be_started_for_want_of_memory_costs_one_update() {
    let mut home = home();
    let script = home.path().join("learner.sh");
    tests::scripts::install(&script, "ulimit -v 8192; exec /bin/cat /dev/zero\n");
    home.set_env("HONE_LEARNER", &script);
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    week.accept(&item);
    assert!(editor.learn().unwrap().started);
    let state = |editor: &Client| editor.status().unwrap()["learner"]["state"].clone();
    eventually("the update fails", || state(&editor) == "backoff");
    assert_ne!(trouble(&editor), "");
    assert_eq!(editor.status().unwrap()["learner"]["waiting"], 1);
    assert!(week.complete().is_some() || Buffer::open(&editor, "b.rs", WEEK).complete().is_some());
    assert_ne!(state(&editor), Value::Null);
}
