//! The learner may crash, hang or lie: that costs one update, never a
//! completion and never a label.

use feedback::job::LearnerLine;
use models::file::sha256;
use rehearsal::client::Client;
use serde_json::Value;
use std::path::PathBuf;
use tests::adapters::{report, write_adapter};
use tests::buffer::Buffer;
use tests::processes::signal;
use tests::scripts::{Quick, READ_JOB, STAY, install};
use tests::soak::{Draws, rounds, seed};
use tests::{Home, Model, QUICK, eventually, learner};

const WEEK: &str = "// Monday, Tuesday, Wednesday, |\n";

/// A home whose learner is a shell script that can be replaced at any time.
struct Lab {
    home: Home,
    script: PathBuf,
}

impl Lab {
    fn new() -> Lab {
        let mut home = Home::with(Model::Smol, QUICK);
        let script = home.path().join("learner.sh");
        home.set_env("HONE_LEARNER", &script);
        Lab { home, script }
    }

    fn learner(&self, body: &str) {
        install(&self.script, body);
    }

    /// A script that reports success for a file with this checksum.
    fn claims_done(&self, prepare: &str, adapter_sha256: &str) {
        let line = LearnerLine::Done(Box::new(report("JOB", 1, adapter_sha256)));
        let path = self.home.path().join("report.json");
        std::fs::write(&path, format!("{}\n", serde_json::to_string(&line).unwrap())).unwrap();
        let answer = format!("sed \"s/JOB/$id/\" {}\n", path.display());
        self.learner(&[READ_JOB, prepare, &answer, STAY].concat());
    }

    /// An editor with one label that waits.
    fn editor_with_a_label(&self) -> Client {
        let editor = self.home.editor();
        let mut week = Buffer::open(&editor, "week.rs", WEEK);
        let item = week.offer();
        week.accept(&item);
        assert_eq!(learner_status(&editor)["waiting"], 1);
        editor
    }

    /// Asks for an update that fails, and checks what a failure may cost.
    fn fails(&self, editor: &Client) -> String {
        // The state may still be that of the failure before.
        let failures = || self.home.daemon_log().matches("update failed").count();
        let before = failures();
        assert!(editor.learn().unwrap().started);
        eventually("another update fails", || failures() > before);
        self.failed(editor)
    }

    fn failed(&self, editor: &Client) -> String {
        eventually("the update fails", || learner_status(editor)["state"] == "backoff");
        let learner = learner_status(editor);
        let error = learner["last_error"].as_str().expect("a reason").to_owned();
        assert!(!error.contains('\n'), "{error}");
        assert_eq!(learner["waiting"], 1, "the label waits again");
        assert_eq!(learner["updates"], 0);
        assert!(self.home.daemon_log().contains(&error), "{error}");
        let served = Buffer::open(editor, "next.rs", "// one, two, three, |\n").complete();
        assert!(served.is_some(), "completions go on");
        error
    }

    /// The true learner takes the script's place and learns from what waits.
    fn recovers(&self, editor: &Client) {
        self.learner(&format!("exec {}\n", learner().display()));
        assert!(editor.learn().unwrap().started);
        eventually("an update", || learner_status(editor)["updates"] == 1);
        let learner = learner_status(editor);
        assert_eq!((&learner["last_error"], &learner["waiting"]), (&Value::Null, &0.into()));
        let learned = &self.home.registry()["adapters"][0]["report"];
        assert_eq!(learned["episodes_used"], 1, "{learned}");
        let item = Buffer::open(editor, "after.rs", WEEK).complete().expect("an offer");
        let served = self.home.completions().into_iter().find(|c| c.id == item.id).unwrap();
        assert_eq!(served.adapter, 1);
    }
}

fn learner_status(editor: &Client) -> Value {
    editor.status().expect("a status")["learner"].clone()
}

#[test]
fn a_learner_that_writes_noise_or_ends_at_once_costs_no_label() {
    let lab = Lab::new();
    lab.learner(&format!("read -r job\necho 'which job?'\n{STAY}"));
    let editor = lab.editor_with_a_label();
    let error = lab.fails(&editor);
    assert!(error.contains("learner.sh") && error.contains("no report"), "{error}");
    lab.learner("read -r job\nexit 3\n");
    let error = lab.fails(&editor);
    assert!(error.contains("ended before its job was done (exit status: 3)"), "{error}");
    lab.recovers(&editor);
}

#[test]
fn a_learner_that_lies_about_its_file_is_not_believed() {
    let lab = Lab::new();
    let foreign = lab.home.path().join("foreign.gguf");
    let checksum = write_adapter(&foreign, &"0".repeat(64));
    let put = format!("cp {} \"$out\"\n", foreign.display());

    lab.claims_done("", &checksum);
    let editor = lab.editor_with_a_label();
    let error = lab.fails(&editor);
    let folder = lab.home.path().join("adapters").display().to_string();
    assert!(error.starts_with(&folder) && error.contains(".gguf: no candidate there"), "{error}");
    lab.claims_done(&put, &checksum);
    let error = lab.fails(&editor);
    assert!(error.contains("does not fit the model"), "{error}");
    assert_eq!(editor.status().unwrap()["adapter"]["active"], 0);
    lab.recovers(&editor);
}

#[test]
fn a_file_that_is_not_what_was_reported_is_not_served() {
    let lab = Lab::new();
    let other = lab.home.path().join("other.gguf");
    let checksum = write_adapter(&other, &sha256(&Model::Smol.file()).unwrap());
    lab.claims_done("echo x > \"$out\"\n", &checksum);
    let editor = lab.editor_with_a_label();
    let error = lab.fails(&editor);
    let folder = lab.home.path().join("adapters").display().to_string();
    assert!(error.starts_with(&folder), "{error}");
    assert!(error.ends_with(".gguf: not what the learner said it wrote"), "{error}");
}

/// What hangs is ended after minutes of silence; here somebody is quicker.
#[test]
fn a_learner_that_hangs_can_be_killed() {
    let lab = Lab::new();
    let pid = lab.home.path().join("learner.pid");
    lab.learner(&format!("echo $$ > {}\n{STAY}", pid.display()));
    let editor = lab.editor_with_a_label();
    assert!(editor.learn().unwrap().started);
    eventually("the learner starts", || {
        std::fs::read_to_string(&pid).is_ok_and(|s| s.ends_with('\n'))
    });
    let status = learner_status(&editor);
    assert_eq!((&status["state"], &status["waiting"]), (&"training".into(), &0.into()));
    assert!(Buffer::open(&editor, "week.rs", WEEK).complete().is_some(), "completions go on");
    let pid = std::fs::read_to_string(pid).unwrap();
    assert!(signal("-9", pid.trim().parse().unwrap()));
    let error = lab.failed(&editor);
    assert!(error.contains("ended before its job was done (signal: 9 (SIGKILL))"), "{error}");
}

/// One endless line must not fill the daemon's memory.
#[test]
fn a_line_without_end_is_cut_off() {
    let lab = Lab::new();
    lab.learner("read -r job\nexec tr '\\0' x < /dev/zero\n");
    let editor = lab.editor_with_a_label();
    let error = lab.fails(&editor);
    assert!(error.contains("a line over 4194304 bytes"), "{error}");
}

#[test]
fn a_missing_learner_is_named() {
    let lab = Lab::new();
    let editor = lab.editor_with_a_label();
    let error = lab.fails(&editor);
    let named = format!("{}: cannot be started", lab.script.display());
    assert!(error.starts_with(&named), "{error}");
}

/// A batch that fails again and again must not block the labels that follow,
/// and must not be lost.
#[test]
fn labels_set_aside_wait_again_after_a_restart() {
    let lab = Lab::new();
    let editor = lab.editor_with_a_label();
    lab.fails(&editor);
    lab.fails(&editor);
    assert!(editor.learn().unwrap().started);
    let set_aside = |status: Value| {
        status["last_error"].as_str().is_some_and(|error| {
            error.contains("1 label(s) set aside after 3 attempts, until the daemon starts again")
        })
    };
    eventually("the third attempt fails", || set_aside(learner_status(&editor)));
    assert_eq!(learner_status(&editor)["waiting"], 0);
    lab.home.output(&["stop"]);
    drop(editor);
    assert_eq!(learner_status(&lab.home.editor())["waiting"], 1);
}

/// How a learner can fail: what its script does with a job, and what the status says.
fn faults(quick: &Quick, lab: &Lab) -> Vec<(String, &'static str)> {
    let nan = lab.home.path().join("nan.gguf");
    let mut bytes = std::fs::read(lab.home.path().join("quick.gguf")).unwrap();
    let last = bytes.len() - 4;
    bytes[last..].copy_from_slice(&f32::NAN.to_le_bytes());
    std::fs::write(&nan, bytes).unwrap();
    let lies = |file: &std::path::Path| {
        let sum = sha256(file).unwrap();
        let line = LearnerLine::Done(Box::new(report("JOB", 1, &sum)));
        let told = file.with_extension("json");
        std::fs::write(&told, format!("{}\n", serde_json::to_string(&line).unwrap())).unwrap();
        let (file, told) = (file.display(), told.display());
        format!("{READ_JOB}cp {file} \"$out\"\nsed \"s/JOB/$id/\" {told}\n{STAY}")
    };
    let shape = lab.home.path().join("shape.gguf");
    write_adapter(&shape, &"0".repeat(64));
    let with_job = |then: &str| format!("{READ_JOB}{then}");
    vec![
        (with_job("kill -9 $$\n"), "SIGKILL"),
        (with_job("kill -SEGV $$\n"), "SIGSEGV"),
        (with_job("exit 1\n"), "exit status: 1"),
        // What the kernel's out-of-memory killer leaves, and what an allocator says.
        (
            with_job(
                "ulimit -v 40000; head -c 100000000 /dev/zero | tail -c 99999999; kill -ABRT $$\n",
            ),
            "SIGABRT",
        ),
        (with_job("echo noise\n") + STAY, "no report"),
        (with_job("head -c 300 /dev/urandom; echo\n") + STAY, "no report"),
        (with_job("echo '{\"line\":\"done\"}'\n") + STAY, "no report"),
        (with_job("exec 1>&-\n") + "exit 7\n", "exit status: 7"),
        (with_job(&quick.tell()) + STAY, "no candidate there"),
        (with_job("echo x > \"$out\"\n") + &quick.tell() + STAY, "not what the learner said"),
        (lies(&nan), "NaN or infinity"),
        (lies(&shape), "does not fit the model"),
    ]
}

/// Whatever the learner does, no completion fails, no label is lost, the reason is
/// told, and the next attempt waits longer.
#[test]
fn soak_no_fault_of_the_learner_costs_a_completion() {
    let lab = Lab::new();
    let mut draws = Draws::new(seed());
    let quick = Quick::of(&lab.home);
    let faults = faults(&quick, &lab);
    lab.learner("exit 1\n");
    let editor = lab.editor_with_a_label();
    let all = rounds(faults.len() as u64, 100);
    for round in 0..all {
        // Each once, then whichever.
        let (script, expected) = match faults.get(round as usize) {
            Some(fault) => fault,
            None => draws.pick(&faults),
        };
        // A batch that failed three times is set aside until a restart; another label comes.
        if learner_status(&editor)["waiting"] == 0 {
            let mut week = Buffer::open(&editor, &format!("{round}.rs"), WEEK);
            let item = week.offer();
            week.accept(&item);
        }
        lab.learner(script);
        // Of two attempts that end alike, the second is waited for too.
        let failures = || lab.home.daemon_log().matches("update failed").count();
        let before = failures();
        assert!(editor.learn().unwrap().started);
        // While it fails, every completion is answered.
        let mut asked = 0;
        eventually("the update fails", || {
            let buffer = Buffer::open(&editor, &format!("{round}-{asked}.rs"), WEEK);
            assert!(buffer.complete().is_some(), "{script}");
            asked += 1;
            let learner = learner_status(&editor);
            let told = learner["last_error"].as_str().is_some_and(|told| told.contains(expected));
            failures() > before && learner["state"] == "backoff" && told
        });
        assert_eq!(editor.status().unwrap()["adapter"]["active"], 0);
    }
    // Nobody lost anything: after a restart all labels wait, and are learned from.
    let episodes = lab.home.status()["episodes"]["accepted"].clone();
    lab.home.output(&["stop"]);
    drop(editor);
    lab.learner(&quick.learner());
    assert_eq!(lab.home.status()["learner"]["waiting"], episodes);
    let editor = lab.home.editor();
    // Enough of them start an update by themselves.
    editor.learn().unwrap();
    eventually("an update", || learner_status(&editor)["updates"] == 1);
    assert_eq!(learner_status(&editor)["last_error"], Value::Null);
}
