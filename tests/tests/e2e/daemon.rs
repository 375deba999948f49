//! One daemon serves all of a user's editors. Editors find it, start it and replace it without
//! the user noticing, and no other user can reach it.

use feedback::event::{Evidence, Outcome};
use rehearsal::client::{Client, TriggerKind, items};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tests::buffer::{Buffer, WEEK};
use tests::processes::{is_alive, signal};
use tests::{Home, Model, PATIENCE, QUICK, eventually};

fn home() -> Home {
    Home::with(Model::Smol, QUICK)
}

fn kill(how: &str, pid: u64) {
    assert!(signal(how, pid));
}

/// Sends the first line of a Hone of another version. Returns the daemon's line.
fn hello(home: &Home, protocol: u32) -> Value {
    let mut stream = UnixStream::connect(home.path().join("run/hone.sock")).unwrap();
    let hello = json!({"protocol": protocol, "version": "0.0.7", "purpose": "lsp"});
    writeln!(stream, "{hello}").unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

/// A chosen model served only after `hone stop` and with a new editor.
#[test]
fn a_chosen_model_serves_at_once_in_the_open_editor() {
    let home = home();
    home.add(Model::Qwen);
    let editor = home.editor();
    let week = Buffer::open(&editor, "week.rs", WEEK);
    week.offer();
    let serves = |name: &str, before: Option<u64>| {
        let status = home.status();
        let pid = status["daemon"]["pid"].as_u64();
        status["model"]["name"] == name && pid.is_some() && pid != before
    };
    let first = home.daemon_pid();
    let said = home.output(&["model", "use", Model::Qwen.name()]);
    assert_eq!(said, "qwen2.5-coder-0.5b serves from now on\n");
    eventually("the other model serves", || serves(Model::Qwen.name(), first));
    week.offer();
    assert_eq!(home.completions().len(), 2);

    let second = home.daemon_pid();
    assert_eq!(home.output(&["model", "use", Model::Qwen.name()]), "qwen2.5-coder-0.5b serves\n");
    assert_eq!(home.daemon_pid(), second, "nothing is to be done");
    let said = home.output(&["restart"]);
    assert!(said.starts_with("the daemon has ended; the open editors"), "{said}");
    eventually("another daemon serves", || serves(Model::Qwen.name(), second));
    week.offer();
    drop(editor);
    eventually("no editor is connected", || home.status()["daemon"]["sessions"] == 0);
    let said = home.output(&["restart"]);
    assert_eq!(said, "the daemon has ended; the next editor starts it again\n");
    assert_eq!(home.output(&["restart"]), "no daemon was running\n");
}

/// The option was dropped without a word, also where there is no such file.
#[test]
fn an_editor_that_asks_for_another_model_than_the_daemons_is_told() {
    let home = home();
    let _editor = home.editor();
    let asked = Model::Qwen.file().display().to_string();
    let other = home.editor_with(&["lsp", "--model", &asked]);
    let shown = other.wait_notification("window/showMessage", PATIENCE).expect("a message");
    assert_eq!(shown.params["type"], 2);
    let message = shown.params["message"].as_str().expect("a text");
    assert!(message.starts_with(&asked) && message.contains(Model::Smol.name()), "{message}");
    assert!(message.contains("`hone restart`"), "{message}");

    let served = Model::Smol.file().display().to_string();
    let same = home.editor_with(&["lsp", "--model", &served]);
    same.status().unwrap();
    let notifications = same.take_notifications();
    assert!(!notifications.iter().any(|told| told.method == "window/showMessage"));
    let error = home.error(&["lsp", "--model", "/nope.gguf"]);
    assert!(error.starts_with("/nope.gguf: "), "{error}");
}

#[test]
fn two_editors_share_one_daemon_and_one_log() {
    let home = home();
    let (one, two) = (home.editor(), home.editor());
    let (a, b) = (one.status().unwrap(), two.status().unwrap());
    assert_eq!(a["daemon"]["pid"], b["daemon"]["pid"]);
    assert_eq!(b["daemon"]["sessions"], 2);
    let mine = Buffer::open(&one, "a.rs", WEEK).offer();
    let theirs = Buffer::open(&two, "b.rs", WEEK).offer();
    let logged: Vec<_> = home.completions().into_iter().map(|c| c.id).collect();
    assert_eq!(logged, [mine.id, theirs.id.clone()]);
    assert_eq!(home.outcomes(&theirs.id), []);
    one.shutdown().unwrap();
    eventually("one session is left", || two.status().unwrap()["daemon"]["sessions"] == 1);
    assert_eq!(home.outcomes(&theirs.id), [], "another editor's end is no outcome here");
}

#[test]
fn a_daemon_that_is_stopped_ends_the_offers_of_its_editors() {
    let home = home();
    let editor = home.editor();
    let offer = Buffer::open(&editor, "a.rs", WEEK).offer();
    home.output(&["stop"]);
    let outcomes = home.outcomes(&offer.id);
    assert_eq!(outcomes, [(Outcome::Superseded, Evidence::Document)]);
    drop(editor);
    assert_eq!(home.outcomes(&offer.id), outcomes, "the editor's own end changes nothing");
}

/// All forwarders find no daemon, and each starts one. One daemon is elected.
#[test]
fn two_editors_at_once_start_one_daemon() {
    let home = home();
    let pids: HashSet<_> = std::thread::scope(|scope| {
        let start = || home.editor().status().unwrap()["daemon"]["pid"].as_u64();
        let both = [scope.spawn(start), scope.spawn(start), scope.spawn(start)];
        both.map(|editor| editor.join().unwrap()).into()
    });
    assert_eq!(pids.len(), 1, "{pids:?}");
}

#[test]
fn a_second_daemon_says_that_there_is_one() {
    let home = home();
    let editor = home.editor();
    let error = home.error(&["serve"]);
    let lock = home.path().join("run/daemon.lock").display().to_string();
    assert!(error.starts_with(&lock), "{error}");
    assert!(error.contains("already running") && error.contains("`hone stop`"), "{error}");
    assert!(Buffer::open(&editor, "week.rs", WEEK).complete().is_some());
}

#[test]
fn serving_in_process_next_to_a_daemon_is_refused_in_one_line() {
    let home = home();
    let _editor = home.editor();
    let error = home.error(&["lsp", "--in-process"]);
    let log = home.path().join("data/events.sled").display().to_string();
    assert!(error.starts_with(&log) && error.contains("`hone stop`"), "{error}");
}

#[test]
fn in_process_serves_without_a_daemon() {
    let home = home();
    let editor = home.editor_with(&["lsp", "--in-process", "--manual-clock"]);
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    week.accept(&item);
    assert!(!home.path().join("run/hone.sock").exists());
    editor.shutdown().unwrap();
    assert_eq!(home.outcomes(&item.id).len(), 1);
}

#[test]
fn the_files_of_a_dead_daemon_are_no_obstacle() {
    let home = home();
    let run = home.path().join("run");
    std::fs::create_dir_all(&run).unwrap();
    drop(UnixListener::bind(run.join("hone.sock")).unwrap());
    std::fs::write(run.join("daemon.lock"), "4194304\n").unwrap();
    assert_eq!(home.status()["daemon"], Value::Null);
    let editor = home.editor();
    assert!(Buffer::open(&editor, "week.rs", WEEK).complete().is_some());
}

/// An answer to `hone.accept` means that the acceptance is on disk.
#[test]
fn acknowledged_feedback_survives_kill_9() {
    let home = home();
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let first = week.offer();
    week.accept(&first);
    let pid = home.daemon_pid().unwrap();
    kill("-9", pid);
    eventually("the daemon is dead", || !is_alive(pid));

    let outcomes = home.outcomes(&first.id);
    assert_eq!(outcomes[0].0, Outcome::Accepted);
    let second = Buffer::open(&editor, "other.rs", WEEK).offer();
    assert_ne!(first.id, second.id, "an id is never used twice");
    let episodes = &home.status()["episodes"];
    assert_eq!([&episodes["total"], &episodes["accepted"]], [2, 1]);
}

/// The editor keeps its connection, its documents and its offers, and gets no message about it.
#[test]
fn an_editor_does_not_notice_that_the_daemon_died() {
    let home = home();
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", "// 🙂\n// Monday, Tuesday, |\n");
    week.type_text("Wednesday, ");
    let on_screen = week.offer();
    // The answer shows that everything before it is on disk, although it is an error.
    editor.accept("another").unwrap_err();
    let pid = home.daemon_pid().unwrap();
    kill("-9", pid);
    eventually("the daemon is dead", || !is_alive(pid));
    // The new daemon knows the offer from the log alone.
    week.accept(&on_screen);
    assert_eq!(home.outcomes(&on_screen.id), [(Outcome::Accepted, Evidence::Command)]);
    assert_ne!(home.daemon_pid().expect("another daemon"), pid);
    // If the new daemon had an older text, this would be past its end.
    week.insert("\n// one, two, three, ");
    let next = week.offer();
    let asked = home.completions().into_iter().find(|c| c.id == next.id).unwrap();
    assert_eq!(asked.path, "/project/week.rs");
    assert_eq!(editor.status().unwrap()["daemon"]["sessions"], 1);
    editor.shutdown().unwrap();
}

/// A package manager puts the new program over the running one. The forwarder then looked for
/// a program named `hone (deleted)`, and a daemon that died was followed by none.
#[cfg(target_os = "linux")]
#[test]
fn a_forwarder_whose_program_was_replaced_starts_the_new_one() {
    let mut home = home();
    home.set_env("HONE_LEARNER", tests::learner());
    let folder = tempfile::tempdir().unwrap();
    let (program, newer) = (folder.path().join("hone"), folder.path().join("newer"));
    std::fs::copy(tests::hone(), &program).unwrap();
    std::fs::copy(tests::hone(), &newer).unwrap();
    let client = Client::spawn(home.hone_at(&program).args(["lsp", "--manual-clock"])).unwrap();
    client.initialize(&[]).unwrap();
    let week = Buffer::open(&client, "week.rs", WEEK);
    let first = week.offer();
    std::fs::rename(&newer, &program).unwrap();
    let pid = home.daemon_pid().unwrap();
    kill("-9", pid);
    eventually("the daemon is dead", || !is_alive(pid));
    assert_ne!(week.offer().id, first.id);
    let now = home.daemon_pid().expect("another daemon");
    assert_eq!(std::fs::read_link(format!("/proc/{now}/exe")).unwrap(), program);

    std::fs::remove_file(&program).unwrap();
    kill("-9", now);
    eventually("the daemon is dead", || !is_alive(now));
    assert!(week.complete().is_some(), "the removed program serves on");
}

/// A request that the dead daemon had not answered is answered by the next one.
#[test]
fn a_request_under_way_survives_kill_9() {
    let home = home();
    let editor = home.editor();
    let week = Buffer::open(&editor, "week.rs", WEEK);
    week.complete().expect("an offer");
    let pid = home.daemon_pid().unwrap();
    // A stopped daemon cannot answer.
    kill("-STOP", pid);
    let at = week.position();
    let under_way = editor.inline_completion_async(week.uri(), at, TriggerKind::Automatic).unwrap();
    let accept = json!({"command": "hone.accept", "arguments": ["none"]});
    let other = editor.request_async("workspace/executeCommand", accept).unwrap();
    kill("-9", pid);
    assert_eq!(items(editor.wait(under_way).unwrap()).unwrap().len(), 1);
    let error = editor.wait(other).unwrap_err().to_string();
    assert!(error.contains("ended before the offer was on disk"), "{error}");
}

/// A daemon that ends at every start is not started for ever.
#[test]
fn a_daemon_that_dies_at_every_start_is_given_up_with_a_reason() {
    let home = home();
    let editor = home.editor();
    let pid = home.daemon_pid().unwrap();
    home.configure("model.name = \"no-such-model\"\n");
    kill("-9", pid);
    eventually("the editor is told", || editor.status().is_err());
    let line = home.daemon_log().lines().last().unwrap_or_default().to_owned();
    assert!(line.contains("no-such-model"), "{line}");
}

/// Only daemons that were given up were told to the editor. Any other end was a line on stderr,
/// which editors hide, or an exit as if the user had wanted it.
#[test]
fn an_editor_is_told_why_hone_ends() {
    let told = |what: &str, ends: &dyn Fn(&Home, u64)| {
        let home = home();
        let editor = home.editor();
        // It is answered once the model is loaded.
        ends(&home, home.daemon_pid().expect("a daemon"));
        let shown = editor.wait_notification("window/showMessage", PATIENCE);
        let shown = shown.unwrap_or_else(|| panic!("{what}: the editor is not told"));
        shown.params["message"].as_str().expect("a message").to_owned()
    };
    let settings = told("settings", &|home, pid| {
        home.configure("completion.enabled = 7\n");
        kill("-9", pid);
    });
    assert!(settings.contains("config.toml") && settings.contains("enabled"), "{settings}");
    let model = told("a model that is cut off", &|home, pid| {
        let name = Model::Smol.file().file_name().unwrap().to_owned();
        let (path, cut) = (home.path().join("models").join(name), home.path().join("cut"));
        std::fs::write(&cut, "GGUF").unwrap();
        std::fs::rename(&cut, &path).unwrap();
        kill("-9", pid);
    });
    assert!(model.contains(".gguf") && model.contains("`hone model pull"), "{model}");
    let gone = told("a home that is removed", &|home, pid| {
        let aside = home.path().with_extension("aside");
        std::fs::rename(home.path(), &aside).unwrap();
        kill("-9", pid);
        eventually("the daemon is dead", || !is_alive(pid));
        // Nothing of it is left behind.
        std::fs::remove_dir_all(&aside).unwrap();
    });
    assert!(gone.contains("moved or removed") && gone.contains("restart the editor"), "{gone}");
}

/// LSP asks for an error where an editor leaves without `shutdown`.
#[test]
fn the_exit_code_says_whether_the_editor_left_in_order() {
    let home = home();
    for mode in [&["lsp", "--manual-clock"][..], &["lsp", "--in-process", "--manual-clock"]] {
        for shuts_down in [true, false] {
            let mut hone = home.hone();
            let mut child =
                hone.args(mode).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let editor = Client::over(child.stdout.take().unwrap(), child.stdin.take().unwrap());
            editor.initialize(&[]).unwrap();
            if shuts_down {
                editor.request("shutdown", Value::Null).unwrap();
            }
            editor.notify("exit", Value::Null).unwrap();
            let code = child.wait().unwrap().code();
            assert_eq!(code, Some(i32::from(!shuts_down)), "{mode:?}");
        }
        home.output(&["stop"]);
    }
}

#[test]
fn sigterm_ends_the_daemon_cleanly() {
    let home = home();
    let editor = home.editor();
    let item = Buffer::open(&editor, "week.rs", WEEK).offer();
    let pid = home.daemon_pid().unwrap();
    kill("-TERM", pid);
    eventually("the daemon ends", || !is_alive(pid));
    assert!(!home.path().join("run/hone.sock").exists());
    assert_eq!(home.completions()[0].id, item.id);
}

#[test]
fn an_older_forwarder_gets_one_clear_line() {
    let home = home();
    let editor = home.editor();
    let answer = hello(&home, 0);
    assert_eq!(answer["ok"], false);
    let error = answer["error"].as_str().unwrap();
    assert!(error.contains("`hone 0.0.7` is older"), "{error}");
    assert!(error.contains("restart the editor") && error.contains("`hone stop`"), "{error}");
    assert!(editor.status().is_ok(), "the daemon stays for the others");
}

#[test]
fn a_newer_forwarder_makes_the_daemon_give_way() {
    let home = home();
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    week.accept(&item);
    let pid = home.daemon_pid().unwrap();
    let known = hello(&home, 0)["protocol"].as_u64().unwrap();
    let answer = hello(&home, known as u32 + 1);
    assert_eq!((&answer["ok"], &answer["protocol"]), (&json!(false), &json!(known)));
    eventually("the older daemon ends", || !is_alive(pid));
    assert_eq!(home.outcomes(&item.id).len(), 1);
    // Nobody newer has started a daemon, so the older editor is served again.
    assert!(editor.status().is_ok());
}

#[test]
fn noise_on_the_socket_disturbs_nobody() {
    let home = home();
    let editor = home.editor();
    for noise in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 20_000], b"\n"] {
        let mut stream = UnixStream::connect(home.path().join("run/hone.sock")).unwrap();
        // The daemon may close the connection in the middle.
        let _ = stream.write_all(noise);
    }
    assert!(Buffer::open(&editor, "week.rs", WEEK).complete().is_some());
}

#[test]
fn stop_frees_the_log() {
    let home = home();
    let editor = home.editor();
    let item = Buffer::open(&editor, "week.rs", WEEK).offer();
    let pid = home.daemon_pid().unwrap();
    let stopped = home.run(&["stop"]);
    assert_eq!(String::from_utf8_lossy(&stopped.stdout), "stopped\n");
    let told = String::from_utf8_lossy(&stopped.stderr);
    assert!(told.contains("an open editor starts it again"), "{told}");
    // The log is free now; the process may still be about to end.
    eventually("the daemon's process ends", || !is_alive(pid));
    assert_eq!(home.completions()[0].id, item.id, "the log is read without a daemon");
    let next = home.editor_with(&["lsp", "--in-process", "--manual-clock"]);
    assert!(Buffer::open(&next, "week.rs", WEEK).complete().is_some());
    drop(next);
    assert_eq!(home.output(&["stop"]), "no daemon was running\n");
}

#[test]
fn the_daemon_ends_after_a_while_without_an_editor() {
    let home = Home::with(Model::Smol, &format!("{QUICK}lab.idle_exit_s = 1\n"));
    let editor = home.editor();
    let pid = home.daemon_pid().unwrap();
    editor.shutdown().unwrap();
    eventually("the idle daemon ends", || !is_alive(pid));
    assert!(!home.path().join("run/hone.sock").exists());
}

/// The user's code passes through the daemon, so other users and the network cannot reach it.
#[test]
fn nobody_else_can_reach_it() {
    let home = home();
    let _editor = home.editor();
    let mode = |path: &str| {
        let metadata = std::fs::metadata(home.path().join(path)).unwrap();
        metadata.permissions().mode() & 0o777
    };
    assert_eq!(mode("run/hone.sock"), 0o600);
    // The folder of models is the harness's own.
    for folder in ["run", "data", "logs", "adapters", ""] {
        assert_eq!(mode(folder), 0o700, "{folder}");
    }
    assert_eq!(mode("logs/daemon.log"), 0o600);

    let pid = home.daemon_pid().unwrap();
    let open: HashSet<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|file| std::fs::read_link(file.ok()?.path()).ok())
        .map(|target| target.display().to_string())
        .collect();
    assert!(open.iter().any(|target| target.starts_with("socket:")), "{open:?}");
    for table in ["tcp", "tcp6", "udp", "udp6"] {
        let Ok(table) = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")) else {
            continue;
        };
        for line in table.lines().skip(1) {
            let inode = line.split_whitespace().nth(9).unwrap_or_default();
            assert!(!open.contains(&format!("socket:[{inode}]")), "{line}");
        }
    }
}

#[test]
fn status_and_events_are_the_same_with_and_without_a_daemon() {
    let home = home();
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    week.accept(&item);
    let (running, events) = (home.status(), home.events());
    assert!(home.output(&["status"]).contains("1 of 1 judged were accepted"));
    home.output(&["stop"]);
    let stopped = home.status();
    assert_eq!(stopped["daemon"], Value::Null);
    for part in ["version", "adapter", "episodes"] {
        assert_eq!(running[part], stopped[part], "{part}");
    }
    for part in ["name", "arch", "path", "sha256"] {
        assert_eq!(running["model"][part], stopped["model"][part], "{part}");
    }
    assert_eq!(stopped["learner"]["waiting"], 1);
    assert_eq!(running["learner"]["waiting"], 1);
    assert_eq!(events, home.events());
}

#[test]
fn a_home_that_was_never_used_has_a_status_and_no_events() {
    let home = home();
    assert_eq!(home.status()["episodes"]["total"], 0);
    assert_eq!(home.output(&["events", "--json"]), "");
    let error = home.error(&["learn"]);
    assert!(error.contains("no daemon is running") && error.contains("`hone serve`"), "{error}");
}

#[test]
fn a_home_too_deep_for_a_socket_is_named_with_the_fix() {
    let mut home = home();
    let deep = home.path().join("deep".repeat(20));
    std::fs::create_dir(&deep).unwrap();
    home.set_env("HONE_HOME", &deep);
    for command in [&["lsp"][..], &["serve"], &["status"], &["stop"]] {
        let error = home.error(command);
        assert!(error.starts_with(&deep.display().to_string()), "{error}");
        assert!(error.contains("set HONE_HOME to a shorter path"), "{error}");
    }
}

/// Every file below `folder`. `data` and `models` are left out.
fn files_outside_data(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries
        .filter(|path| !path.ends_with("data") && !path.ends_with("models"))
        .partition(|path| path.is_dir());
    folders.iter().flat_map(|path| files_outside_data(path)).chain(files).collect()
}

/// Users attach logs to bug reports, so no code may be in them.
#[test]
fn no_code_reaches_a_log() {
    let mut home = home();
    home.set_env("HONE_LOG", "trace");
    let editor = home.editor();
    let text = "// Canary7391, Canary7391, Canary7391, |\n";
    let mut buffer = Buffer::open(&editor, "canary.rs", text);
    let item = buffer.offer();
    assert!(item.insert_text.contains("Canary"), "{item:?}");
    buffer.accept(&item);
    buffer.type_text(" Canary7391");
    editor.change("file:///project/ghost.rs", None, "Canary7391").unwrap();
    let broken = json!({"textDocument": "Canary7391"});
    editor.request("textDocument/inlineCompletion", broken).unwrap_err();
    editor.notify("textDocument/didOpen", json!({"Canary7391": 1})).unwrap();
    editor.status().unwrap();
    let quiet = home.output(&["events", "--json"]);
    assert!(!quiet.contains("Canary") && !quiet.contains("\"tokens\""), "{quiet}");
    assert!(home.output(&["events", "--json", "--with-code"]).contains("Canary7391"));
    editor.shutdown().unwrap();
    home.output(&["stop"]);

    let files = files_outside_data(home.path());
    let log = home.path().join("logs/daemon.log");
    assert!(files.contains(&log) && !home.daemon_log().is_empty());
    for file in files {
        let bytes = std::fs::read(&file).unwrap_or_default();
        let found = bytes.windows(6).position(|window| window == b"Canary");
        let around = found.map(|at| String::from_utf8_lossy(&bytes[at.saturating_sub(200)..at]));
        assert_eq!(found, None, "{}: after {around:?}", file.display());
    }
}
