//! The machine runs out of something: the editor continues, the status gives the reason, and what
//! was acknowledged is there afterwards.

use feedback::event::Outcome;
use rehearsal::client::Client;
use serde_json::Value;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use tests::buffer::{Buffer, WEEK};
use tests::processes::{STRANGER, succeeds};
use tests::skip::{Missing, skipped};
use tests::{Home, Model, QUICK, eventually};

/// A mounted file system. Dropping it unmounts it.
struct Mounted(String);

impl Mounted {
    /// None if mounting is not permitted.
    fn new(place: &Path, what: &[&str]) -> Option<Mounted> {
        let place = place.display().to_string();
        let mounted = succeeds("mount", &[what, &[&place]].concat());
        mounted.then_some(Mounted(place))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        succeeds("umount", &["--lazy", &self.0]);
    }
}

fn home() -> Home {
    Home::with(Model::Smol, QUICK)
}

/// An editor whose forwarder and daemon run under limits set by a shell.
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

/// Accepts offers until one is not acknowledged. Returns those that were, and the error.
fn accept_until_refused(editor: &Client) -> (Vec<String>, String) {
    let mut acknowledged = vec![];
    for number in 0..2_000 {
        let mut buffer = Buffer::open(editor, &format!("{}.rs", number % 10), WEEK);
        let item = buffer.complete().expect("completions continue");
        buffer.insert(&item.insert_text);
        match editor.accept(&item.id) {
            Ok(()) => acknowledged.push(item.id),
            Err(error) => return (acknowledged, error.to_string()),
        }
    }
    panic!("every acceptance was acknowledged");
}

/// Without the trouble, a new daemon has every acknowledged acceptance and records new ones.
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

/// For a database, a file that may not grow is the same as a full disk.
#[test]
fn a_full_disk_stops_learning_with_a_reason_and_nothing_else() {
    let home = home();
    // The limit counts blocks of 512 bytes. The trap keeps the signal from ending the process.
    let editor = limited(&home, "trap '' XFSZ; ulimit -f 1024");
    let (acknowledged, error) = accept_until_refused(&editor);
    assert!(error.contains("not recorded"), "{error}");
    let reason = trouble(&editor);
    assert!(reason.contains("cannot write the event log") && reason.contains("free disk space"));
    for number in 0..5 {
        let buffer = Buffer::open(&editor, &format!("later-{number}.rs"), WEEK);
        assert!(buffer.complete().is_some(), "completions continue");
    }
    assert!(home.output(&["status"]).contains("cannot write the event log"));
    all_there(&home, &acknowledged);
}

/// With more connections than file descriptors, connected editors are served, and the others
/// are accepted when there is room.
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
        assert!(buffer.complete().is_some(), "completions continue");
    }
    drop(crowd);
    eventually("a newcomer is served", || {
        home.run(&["status", "--json"]).status.success()
            && home.status()["daemon"]["pid"].is_number()
    });
    drop(editor);
    all_there(&home, &[item.id]);
}

/// The same on a file system that is really full, until there is room again.
#[test]
fn a_file_system_without_room_stops_learning_until_there_is_some() {
    let home = home();
    let data = home.path().join("data");
    std::fs::create_dir_all(&data).unwrap();
    let Some(mounted) = Mounted::new(&data, &["-t", "tmpfs", "-o", "size=64m", "none"]) else {
        return skipped("a full file system", Missing::Mount);
    };
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    week.accept(&item);
    let place = data.display();
    let filled = Command::new("dd")
        .args(["if=/dev/zero", "bs=1M", &format!("of={place}/filler")])
        .output()
        .unwrap();
    assert!(!filled.status.success(), "the file system must be full");
    let (mut acknowledged, error) = accept_until_refused(&editor);
    acknowledged.push(item.id);
    assert!(error.contains("not recorded"), "{error}");
    assert!(trouble(&editor).contains("cannot write the event log"), "{}", trouble(&editor));
    assert!(Buffer::open(&editor, "later.rs", WEEK).complete().is_some());
    std::fs::remove_file(data.join("filler")).unwrap();
    acknowledged.push(accepted_again(&editor));
    all_there(&home, &acknowledged);
    home.output(&["stop"]);
    drop(mounted);
}

/// What failed at the start is done again after a while, whatever the clock shows. Here it stands
/// still.
#[test]
fn a_file_that_cannot_be_written_at_the_start_is_written_later() {
    let home = home();
    let in_its_place = home.path().join("data/clock.json");
    std::fs::create_dir_all(&in_its_place).unwrap();
    let editor = home.editor();
    let says = || trouble(&editor).contains("clock.json");
    eventually("the status names the file", says);
    std::fs::remove_dir(&in_its_place).unwrap();
    eventually("the file is written", || in_its_place.is_file() && trouble(&editor).is_empty());
}

/// Waits until an acceptance is acknowledged. The status soon shows no trouble.
fn accepted_again(editor: &Client) -> String {
    let mut acknowledged = None;
    eventually("acceptances are recorded again", || {
        let mut buffer = Buffer::open(editor, "again.rs", WEEK);
        let item = buffer.complete().expect("completions continue");
        buffer.insert(&item.insert_text);
        acknowledged = editor.accept(&item.id).ok().map(|()| item.id);
        acknowledged.is_some()
    });
    let mut last = String::new();
    eventually("what else could not be written is tried again", || {
        let now = trouble(editor);
        if now != last {
            println!("the status says: {now:?}");
            last.clone_from(&now);
        }
        now.is_empty()
    });
    acknowledged.expect("the last one was")
}

/// A kernel makes a file system read-only when its disk returns errors.
#[test]
fn a_file_system_that_turns_read_only_stops_learning_and_nothing_else() {
    let home = home();
    let image = home.path().join("disk");
    let data = home.path().join("data");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let (disk, place) = (image.display().to_string(), data.display().to_string());
    if !succeeds("mkfs.ext4", &["-q", &disk]) {
        return skipped("a disk that turns read-only", Missing::Program("mkfs.ext4"));
    }
    let Some(mounted) = Mounted::new(&data, &["-o", "loop", &disk]) else {
        return skipped("a disk that turns read-only", Missing::LoopDevice);
    };
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    week.accept(&item);
    if !succeeds("mount", &["-o", "remount,abort", &place]) {
        return skipped("a disk that turns read-only", Missing::RemountAbort);
    }
    let (_, error) = accept_until_refused(&editor);
    assert!(error.contains("not recorded"), "{error}");
    assert!(trouble(&editor).contains("cannot write the event log"), "{}", trouble(&editor));
    for number in 0..5 {
        let buffer = Buffer::open(&editor, &format!("later-{number}.rs"), WEEK);
        assert!(buffer.complete().is_some(), "completions continue");
    }
    drop(editor);
    home.output(&["stop"]);
    eventually("nobody uses the file system", || succeeds("umount", &[&place]));
    drop(mounted);
    // The disk is mounted again, as after a restart of the machine.
    let mounted =
        Mounted::new(&data, &["-o", "loop", &disk]).expect("the file is mounted a second time");
    all_there(&home, &[item.id]);
    home.output(&["stop"]);
    drop(mounted);
}

/// The machine can start no further process or thread.
#[test]
fn a_machine_that_starts_no_process_costs_one_update_and_no_completion() {
    let home = home();
    let path = home.path().display().to_string();
    if !succeeds("chown", &["-R", STRANGER, &path]) {
        return skipped("a machine without processes", Missing::Root);
    }
    // The limit does not bind root. The other user may read these programs and the model.
    let mut command = Command::new("setpriv");
    command.args(["--reuid", STRANGER, "--regid", STRANGER, "--clear-groups"]);
    command.args(["--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"]);
    command.arg(tests::hone()).args(["lsp", "--manual-clock"]).env("HONE_HOME", home.path());
    let editor = match Client::spawn(&mut command) {
        Ok(editor) if editor.initialize(&[]).is_ok() => editor,
        _ => return skipped("a machine without processes", Missing::Root),
    };
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    week.accept(&item);
    let pid = editor.status().unwrap()["daemon"]["pid"].to_string();
    let limit = |most: &str| {
        // Every user may limit the processes of their own.
        let own = ["--reuid", STRANGER, "--regid", STRANGER, "--clear-groups", "prlimit"];
        succeeds("setpriv", &[&own[..], &["--pid", &pid, &format!("--nproc={most}")]].concat())
    };
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let processes = limits.lines().find_map(|line| line.strip_prefix("Max processes"));
    let most = processes.and_then(|line| line.split_whitespace().nth(1)).expect("a hard limit");
    if !limit("1:") {
        succeeds("kill", &[&pid]);
        return skipped("a machine without processes", Missing::Program("prlimit"));
    }
    assert!(editor.learn().unwrap().started);
    let state = |editor: &Client| editor.status().unwrap()["learner"]["state"].clone();
    eventually("the update fails", || state(&editor) == "backoff");
    assert!(trouble(&editor).contains("hone-learner"), "{}", trouble(&editor));
    for number in 0..5 {
        let buffer = Buffer::open(&editor, &format!("later-{number}.rs"), WEEK);
        assert!(buffer.complete().is_some(), "completions continue");
    }
    assert!(limit(&format!("{most}:")));
    let again = accepted_after(&editor);
    drop(editor);
    assert!(succeeds("kill", &[&pid]));
    eventually("their daemon ends", || !Path::new("/proc").join(&pid).exists());
    assert!(succeeds("chown", &["-R", "0", &path]));
    all_there(&home, &[item.id, again]);
}

fn accepted_after(editor: &Client) -> String {
    let mut buffer = Buffer::open(editor, "after.rs", WEEK);
    let item = buffer.offer();
    buffer.accept(&item);
    item.id
}

/// A start on a home that cannot be written ends with one line that says so.
#[test]
fn a_home_that_cannot_be_written_is_named() {
    let mut home = home();
    // Not even root can make a file there.
    home.set_env("HONE_HOME", "/proc/hone");
    let error = home.error(&["lsp"]);
    assert!(error.starts_with("/proc/hone"), "{error}");
    assert!(error.contains("cannot make this folder"), "{error}");
}

/// A user's name need not be one word of ASCII. It is in the path of every file that Hone has, and
/// an editor percent-encodes it in the address of every document.
#[test]
fn a_user_whose_name_has_blanks_and_umlauts_is_served_learned_from_and_forgotten() {
    let user = tempfile::Builder::new().prefix("Jörg Müller ").tempdir().unwrap();
    let home = Home::with_below(user.path(), Model::Smol, QUICK);
    let editor = home.editor();
    tests::buffer::accept_one(&editor, "J%C3%B6rg%20M%C3%BCller/week.rs", WEEK);
    tests::learn(&editor);
    assert_eq!(home.status()["adapter"]["active"], 1);
    let file = "/project/Jörg Müller/week.rs";
    let answer = home.output(&["forget", "--file", file, "--yes", "--json"]);
    let forgotten: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(forgotten["offers"], 1, "{forgotten}");
    assert_eq!(home.status()["adapter"]["active"], 0, "it learned from that file");
}

/// A learner that gets no memory costs one update.
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
