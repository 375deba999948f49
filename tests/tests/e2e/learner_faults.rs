//! A learner that crashes, hangs or reports something false costs one update, and never a
//! completion or a label.

use feedback::job::{LearnerLine, UpdateReport};
use models::file::sha256;
use rehearsal::client::Client;
use serde_json::Value;
use std::path::PathBuf;
use tests::adapters::{report, write_adapter};
use tests::buffer::{Buffer, WEEK};
use tests::processes::signal;
use tests::scripts::{Quick, READ_JOB, STAY, install};
use tests::soak::{Draws, rounds, seed};
use tests::{Home, Model, QUICK, eventually, learner};

/// A home whose learner is a shell script that a test can replace at any time.
struct Fixture {
    home: Home,
    script: PathBuf,
}

impl Fixture {
    fn new() -> Fixture {
        let mut home = Home::with(Model::Smol, QUICK);
        let script = home.path().join("learner.sh");
        home.set_env("HONE_LEARNER", &script);
        Fixture { home, script }
    }

    fn learner(&self, body: &str) {
        install(&self.script, body);
    }

    /// Installs a learner that reports success for a file with this checksum.
    fn claims_done(&self, prepare: &str, adapter_sha256: &str) {
        self.reports(prepare, report("JOB", 1, adapter_sha256));
    }

    /// Installs a learner that reports this after every job.
    fn reports(&self, prepare: &str, report: UpdateReport) {
        let line = LearnerLine::Done(Box::new(report));
        let path = self.home.path().join("report.json");
        std::fs::write(&path, format!("{}\n", serde_json::to_string(&line).unwrap())).unwrap();
        let answer = format!("sed \"s/JOB/$id/\" {}\n", path.display());
        self.learner(&[READ_JOB, prepare, &answer, STAY].concat());
    }

    /// An editor after one acceptance, whose label waits.
    fn editor_with_a_label(&self) -> Client {
        let editor = self.home.editor();
        let mut week = Buffer::open(&editor, "week.rs", WEEK);
        let item = week.offer();
        week.accept(&item);
        assert_eq!(learner_status(&editor)["waiting"], 1);
        editor
    }

    /// Starts an update that fails, and checks that it costs nothing else.
    fn fails(&self, editor: &Client) -> String {
        // The state may still be that of the failure before.
        let failures = || self.home.daemon_log().matches("update failed").count();
        let before = failures();
        assert!(editor.learn().unwrap().started);
        eventually("another update fails", || failures() > before);
        self.failed(editor)
    }

    /// Does the same twice, for two reasons, because a warning that repeats is logged once.
    fn fails_twice(&self, editor: &Client) {
        self.fails(editor);
        self.learner(&format!("{READ_JOB}exit 1\n"));
        self.fails(editor);
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
        assert!(served.is_some(), "completions continue");
        error
    }

    /// Installs the real learner, which learns from the waiting label.
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
    let fixture = Fixture::new();
    fixture.learner(&format!("read -r job\necho 'which job?'\n{STAY}"));
    let editor = fixture.editor_with_a_label();
    let error = fixture.fails(&editor);
    assert!(error.contains("learner.sh") && error.contains("no report"), "{error}");
    fixture.learner("read -r job\nexit 3\n");
    let error = fixture.fails(&editor);
    assert!(error.contains("ended before its job was done (exit status: 3)"), "{error}");
    fixture.recovers(&editor);
}

#[test]
fn a_learner_that_lies_about_its_file_is_not_believed() {
    let fixture = Fixture::new();
    let foreign = fixture.home.path().join("foreign.gguf");
    let checksum = write_adapter(&foreign, &"0".repeat(64));
    let put = format!("cp {} \"$out\"\n", foreign.display());

    fixture.claims_done("", &checksum);
    let editor = fixture.editor_with_a_label();
    let error = fixture.fails(&editor);
    let folder = fixture.home.path().join("adapters").display().to_string();
    assert!(error.starts_with(&folder) && error.contains(".gguf: no candidate there"), "{error}");
    fixture.claims_done(&put, &checksum);
    let error = fixture.fails(&editor);
    assert!(error.contains("does not fit the model"), "{error}");
    assert_eq!(editor.status().unwrap()["adapter"]["active"], 0);
    fixture.recovers(&editor);
}

#[test]
fn a_file_that_is_not_what_was_reported_is_not_served() {
    let fixture = Fixture::new();
    let other = fixture.home.path().join("other.gguf");
    let checksum = write_adapter(&other, &sha256(&Model::Smol.file()).unwrap());
    fixture.claims_done("echo x > \"$out\"\n", &checksum);
    let editor = fixture.editor_with_a_label();
    let error = fixture.fails(&editor);
    let folder = fixture.home.path().join("adapters").display().to_string();
    assert!(error.starts_with(&folder), "{error}");
    assert!(error.ends_with(".gguf: not what the learner said it wrote"), "{error}");
}

/// The learner has no room for all prompts of a batch if the model needs much memory for them.
#[test]
fn what_the_learner_has_left_out_waits_also_after_a_restart() {
    let fixture = Fixture::new();
    let adapter = fixture.home.path().join("quick.gguf");
    let checksum = write_adapter(&adapter, &sha256(&Model::Smol.file()).unwrap());
    let put = format!("cp {} \"$out\"\n", adapter.display());
    let editor = fixture.editor_with_a_label();
    let mut other = Buffer::open(&editor, "other.rs", WEEK);
    let left_out = other.offer();
    other.accept(&left_out);
    let ids: Vec<String> = fixture.home.completions().into_iter().map(|c| c.id).collect();
    let says = |left_out: &[String]| {
        let left_out = left_out.to_vec();
        fixture.reports(&put, UpdateReport { left_out, ..report("JOB", 1, &checksum) });
    };
    says(&ids);
    assert!(editor.learn().unwrap().started);
    eventually("the update fails", || learner_status(&editor)["state"] == "backoff");
    let learner = learner_status(&editor);
    let error = learner["last_error"].as_str().unwrap_or_default();
    assert!(error.contains("left out all labels"), "{error}");
    assert_eq!(learner["waiting"], 2);

    says(&[left_out.id.clone(), "unknown".to_owned()]);
    assert!(editor.learn().unwrap().started);
    eventually("an update", || {
        let learner = learner_status(&editor);
        learner["updates"] == 1 && learner["state"] != "training"
    });
    assert_eq!(learner_status(&editor)["waiting"], 1);
    let entry = |at: usize| fixture.home.registry()["adapters"][at].clone();
    assert_eq!(entry(0)["report"]["left_out"], serde_json::json!([left_out.id]));
    assert!(!entry(0)["offers"].as_array().unwrap().contains(&left_out.id.as_str().into()));
    drop(editor);
    fixture.home.output(&["stop"]);

    let editor = fixture.home.editor();
    assert_eq!(learner_status(&editor)["waiting"], 1, "it is in the registry");
    says(&[]);
    tests::learn(&editor);
    assert_eq!(learner_status(&editor)["waiting"], 0);
    assert_eq!(entry(1)["offers"], serde_json::json!([left_out.id]));
    drop(editor);
    fixture.home.output(&["stop"]);
    assert_eq!(learner_status(&fixture.home.editor())["waiting"], 0);
}

/// The daemon ends a learner that is silent for minutes. The test kills it before that.
#[test]
fn a_learner_that_hangs_can_be_killed() {
    let fixture = Fixture::new();
    let pid = fixture.home.path().join("learner.pid");
    fixture.learner(&format!("echo $$ > {}\n{STAY}", pid.display()));
    let editor = fixture.editor_with_a_label();
    assert!(editor.learn().unwrap().started);
    eventually("the learner starts", || {
        std::fs::read_to_string(&pid).is_ok_and(|s| s.ends_with('\n'))
    });
    let status = learner_status(&editor);
    assert_eq!((&status["state"], &status["waiting"]), (&"training".into(), &0.into()));
    assert!(Buffer::open(&editor, "week.rs", WEEK).complete().is_some(), "completions continue");
    let pid = std::fs::read_to_string(pid).unwrap();
    assert!(signal("-9", pid.trim().parse().unwrap()));
    let error = fixture.failed(&editor);
    assert!(error.contains("ended before its job was done (signal: 9 (SIGKILL))"), "{error}");
}

/// An endless line must not fill the daemon's memory.
#[test]
fn a_line_without_end_is_cut_off() {
    let fixture = Fixture::new();
    fixture.learner("read -r job\nexec tr '\\0' x < /dev/zero\n");
    let editor = fixture.editor_with_a_label();
    let error = fixture.fails(&editor);
    assert!(error.contains("a line over 4194304 bytes"), "{error}");
}

#[test]
fn a_missing_learner_is_named() {
    let fixture = Fixture::new();
    let editor = fixture.editor_with_a_label();
    let error = fixture.fails(&editor);
    let named = format!("{}: cannot be started", fixture.script.display());
    assert!(error.starts_with(&named), "{error}");
}

/// A batch that keeps failing neither blocks the labels after it nor is lost.
#[test]
fn labels_set_aside_wait_again_after_a_restart() {
    let fixture = Fixture::new();
    let editor = fixture.editor_with_a_label();
    fixture.fails_twice(&editor);
    assert!(editor.learn().unwrap().started);
    let set_aside = |status: Value| {
        status["last_error"].as_str().is_some_and(|error| {
            error.contains("1 label set aside after 3 attempts, until another update")
        })
    };
    eventually("the third attempt fails", || set_aside(learner_status(&editor)));
    assert_eq!(learner_status(&editor)["waiting"], 0);
    fixture.home.output(&["stop"]);
    drop(editor);
    assert_eq!(learner_status(&fixture.home.editor())["waiting"], 1);
}

/// The cause was not in the batch, as the update after it shows.
#[test]
fn labels_set_aside_are_learned_from_once_another_update_succeeds() {
    let fixture = Fixture::new();
    let editor = fixture.editor_with_a_label();
    fixture.fails_twice(&editor);
    assert!(editor.learn().unwrap().started);
    eventually("the third attempt fails", || learner_status(&editor)["waiting"] == 0);
    fixture.learner(&Quick::of(&fixture.home).learner());
    let mut week = Buffer::open(&editor, "another.rs", WEEK);
    let item = week.offer();
    week.accept(&item);
    editor.learn().unwrap();
    eventually("both are learned from", || learner_status(&editor)["updates"] == 2);
    let registry = fixture.home.registry();
    let offers = |at: usize| registry["adapters"][at]["offers"].as_array().expect("offers").len();
    assert_eq!((offers(0), offers(1)), (1, 1), "{registry}");
    assert_ne!(registry["adapters"][0]["offers"], registry["adapters"][1]["offers"]);
}

/// The ways in which a learner can fail: its script, and a part of the status's message.
fn faults(quick: &Quick, fixture: &Fixture) -> Vec<(String, &'static str)> {
    let nan = fixture.home.path().join("nan.gguf");
    let mut bytes = std::fs::read(fixture.home.path().join("quick.gguf")).unwrap();
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
    let shape = fixture.home.path().join("shape.gguf");
    write_adapter(&shape, &"0".repeat(64));
    let with_job = |then: &str| format!("{READ_JOB}{then}");
    vec![
        (with_job("kill -9 $$\n"), "SIGKILL"),
        (with_job("kill -SEGV $$\n"), "SIGSEGV"),
        (with_job("exit 1\n"), "exit status: 1"),
        // A memory limit, as an allocator meets it.
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

/// Whatever the learner does, no completion fails, no label is lost, and the status gives the
/// reason.
#[test]
fn soak_no_fault_of_the_learner_costs_a_completion() {
    let fixture = Fixture::new();
    let mut draws = Draws::new(seed());
    let quick = Quick::of(&fixture.home);
    let faults = faults(&quick, &fixture);
    fixture.learner("exit 1\n");
    let editor = fixture.editor_with_a_label();
    let all = rounds(faults.len() as u64, 100);
    for round in 0..all {
        // First each of them once, then random ones.
        let (script, expected) = match faults.get(round as usize) {
            Some(fault) => fault,
            None => draws.pick(&faults),
        };
        // A batch that has failed three times is set aside, so another label is
        // needed.
        if learner_status(&editor)["waiting"] == 0 {
            let mut week = Buffer::open(&editor, &format!("{round}.rs"), WEEK);
            let item = week.offer();
            week.accept(&item);
        }
        fixture.learner(script);
        // Two attempts may end with the same message, so the failures are counted.
        let failures = || fixture.home.daemon_log().matches("update failed").count();
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
    // No label is lost: after a restart all of them wait, and the learner learns from them.
    let episodes = fixture.home.status()["episodes"]["accepted"].clone();
    fixture.home.output(&["stop"]);
    drop(editor);
    fixture.learner(&quick.learner());
    assert_eq!(fixture.home.status()["learner"]["waiting"], episodes);
    let editor = fixture.home.editor();
    // Enough labels may have started an update already.
    editor.learn().unwrap();
    eventually("an update", || learner_status(&editor)["updates"] == 1);
    assert_eq!(learner_status(&editor)["last_error"], Value::Null);
}
