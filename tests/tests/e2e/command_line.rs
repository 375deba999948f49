//! The command line as a whole: every command in a pipe whose reader has gone, commands that
//! repair under settings that are wrong, and what `hone doctor` finds.

use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use tests::buffer::{Buffer, WEEK};
use tests::processes::succeeds;
use tests::skip::{Missing, skipped};
use tests::{Home, Model, QUICK};

/// Returns what the commands need that do not run without an argument. The path is that of a
/// temporary folder.
fn arguments(command: &str, folder: &Path) -> Vec<String> {
    let new = folder.join("new").display().to_string();
    let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
    match command {
        "adapter use" | "adapter show" => owned(&["1"]),
        "adapter export" | "adapter import" | "model add" => vec![new],
        "completions" => owned(&["bash"]),
        "config set" => owned(&["lab.max_tokens", "9"]),
        "forget" => owned(&["--all", "--yes"]),
        "model use" => owned(&["smollm2-135m"]),
        "setup" => owned(&["zed"]),
        "team contribute" => owned(&["--members", "3"]),
        "team join" => owned(&["127.0.0.1:9"]),
        _ => vec![],
    }
}

/// `hone why --json` printed a sentence while no daemon ran, and `hone adapter show --json` failed
/// while the model served alone.
#[test]
fn every_command_that_has_json_prints_json_on_a_new_home() {
    let mut home = Home::with(Model::Smol, QUICK);
    for name in ["HF_ENDPOINT", "PIP_INDEX_URL"] {
        home.set_env(name, "http://127.0.0.1:9");
    }
    let log = Home::with(Model::Smol, QUICK);
    Buffer::open(&log.editor(), "week.rs", WEEK).offer();
    log.output(&["stop"]);
    let adopted = log.path().display().to_string();
    let mut checked = 0;
    for command in commands(&home, &[]) {
        let words: Vec<_> = command.split(' ').collect();
        let is_other_program = command == "rehearse";
        let has_json = || home.output(&[&words[..], &["--help"]].concat()).contains("--json");
        if is_other_program || !has_json() {
            continue;
        }
        let more: &[&[&str]] = match command.as_str() {
            // They need a file, or a team.
            "model add" | "team contribute" | "team receive" => continue,
            "adapter show" => &[&[], &["0"]],
            "config get" => &[&[], &["completion.enabled"], &["--schema"]],
            "config set" => &[&["lab.max_tokens", "9"]],
            "forget" => &[&["--all", "--yes"], &["--file", "/a.rs", "--yes"]],
            "gate" => &[&[], &["--adopt", &adopted]],
            "learn" => continue,
            "model pull" => &[&["smollm2-135m"]],
            _ => &[&[]],
        };
        for more in more {
            let output = home.run(&[&words[..], more, &["--json"]].concat());
            let (text, error) = (output.stdout, String::from_utf8_lossy(&output.stderr));
            let lines = serde_json::Deserializer::from_slice(&text).into_iter::<Value>();
            let is_json = lines.collect::<Result<Vec<_>, _>>();
            let may_fail = command == "doctor";
            let has_succeeded = output.status.success() || may_fail;
            let text = String::from_utf8_lossy(&text);
            assert!(has_succeeded && is_json.is_ok(), "{command} {more:?}: {text}{error}");
            checked += 1;
        }
    }
    assert!(checked > 14, "{checked}");
}

/// The commands below one, by its help.
fn commands(home: &Home, above: &[&str]) -> Vec<String> {
    let help = home.output(&[above, &["--help"]].concat());
    let groups = help.split("\n\n").filter(|part| part.starts_with("Commands"));
    let lines = groups.flat_map(str::lines);
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let mut names: Vec<_> = names.filter_map(|line| line.split_whitespace().next()).collect();
    names.retain(|name| *name != "help");
    let below = names.iter().flat_map(|name| {
        let command = [above, &[*name]].concat();
        // Another program answers `hone rehearse --help`, and a server has no commands.
        let deeper = match *name {
            "rehearse" | "serve" => vec![],
            _ => commands(home, &command),
        };
        if deeper.is_empty() { vec![command.join(" ")] } else { deeper }
    });
    // Some that have commands below them also do something alone.
    let is_command = !above.is_empty() && !names.is_empty() && help.contains(" [OPTIONS]\n");
    is_command.then(|| above.join(" ")).into_iter().chain(below).collect()
}

/// A pipe that nobody reads.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

/// `hone config get | head -1` ended with a panic's message, and so did 30 other commands.
#[test]
fn every_command_is_silent_when_its_reader_has_gone() {
    let mut home = Home::with(Model::Smol, QUICK);
    // No network is asked.
    for name in ["HF_ENDPOINT", "PIP_INDEX_URL"] {
        home.set_env(name, "http://127.0.0.1:9");
    }
    let all = commands(&home, &[]);
    assert!(all.len() > 30 && all.contains(&"adapter show".to_owned()), "{all:?}");
    let folder = tempfile::tempdir().unwrap();
    // The first is a server that does not end by itself, the second is another program.
    for command in all.iter().filter(|command| !["serve", "rehearse"].contains(&command.as_str())) {
        let run = |stderr: Stdio| {
            let mut hone = home.hone();
            hone.args(command.split(' ')).args(arguments(command, folder.path()));
            let run = hone.stdout(closed()).stderr(stderr).spawn().expect("hone runs");
            run.wait_with_output().expect("hone ends")
        };
        let output = run(Stdio::piped());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("panicked"), "{command}: {said}");
        assert!(!said.contains("Usage:"), "{command} needs arguments in this test: {said}");
        // A panic ends the process with 101.
        assert_ne!(run(closed()).status.code(), Some(101), "{command}: stderr is gone too");
    }
}

#[test]
fn the_options_that_clients_append_to_a_server_are_taken() {
    let home = Home::with(Model::Smol, QUICK);
    let appended = ["lsp", "--manual-clock", "--stdio", "--clientProcessId=42"];
    assert!(home.editor_with(&appended).status().is_ok());
    let error = home.error(&["lsp", "--node-ipc"]);
    assert!(error.contains("stdin and stdout only"), "{error}");
}

/// `hone status`, the first thing that help names, said "not loaded" of a model that is not here.
#[test]
fn the_status_tells_that_the_model_is_not_here() {
    let home = Home::empty();
    let model = |home: &Home| {
        let screen = home.output(&["status"]);
        screen.lines().find(|line| line.trim_start().starts_with("model")).unwrap().to_owned()
    };
    assert!(model(&home).contains("not here: run `hone model pull`"), "{}", model(&home));
    assert_eq!(home.status()["model"]["file"], "missing");
    let models = home.path().join("models");
    let file = models.join("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf");
    std::fs::write(models.join("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf.part"), "GGUF").unwrap();
    assert!(model(&home).contains("not here yet (0 % of it is)"), "{}", model(&home));
    std::fs::write(&file, "GGUF").unwrap();
    assert!(model(&home).contains("damaged: run `hone model pull`"), "{}", model(&home));
    let home = Home::with(Model::Smol, QUICK);
    assert!(model(&home).ends_with("not loaded") || model(&home).contains("not loaded "));
    assert_eq!(home.status()["model"]["file"], "here");
}

/// Without a network, a model comes from a disk, and `hone` tells which one it is.
#[test]
fn a_model_is_taken_from_a_file() {
    let home = Home::empty();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a download.gguf");
    std::fs::copy(Model::Smol.file(), &file).unwrap();
    let file = file.display().to_string();
    let added: Value =
        serde_json::from_str(&home.output(&["model", "add", &file, "--json"])).unwrap();
    assert_eq!(added["name"], Model::Smol.name());
    home.output(&["model", "use", Model::Smol.name()]);
    std::fs::write(&file, "GGUF").unwrap();
    let error = home.error(&["model", "add", &file]);
    assert!(error.contains("no known model has 4 bytes"), "{error}");
    let listed: Value = serde_json::from_str(&home.output(&["model", "list", "--json"])).unwrap();
    let models = listed["models"].as_array().unwrap();
    assert!(models.iter().all(|model| model["expected_line_ms"].as_u64().unwrap() > 0), "{listed}");
    let suggested: Vec<_> = models.iter().filter(|model| model["suggested"] == true).collect();
    assert!(suggested.iter().any(|model| model["name"] == Model::Smol.name()), "{listed}");
    // All of them fit a terminal of 24 lines, so that no answer is asked for page by page.
    assert!((2..10).contains(&suggested.len()), "{listed}");
    assert!(suggested.len() < models.len(), "{listed}");
}

/// Whatever the settings are, the commands that repair them work. With two wrong values neither
/// could be corrected by a command, because of the other.
#[test]
fn commands_that_repair_work_whatever_the_settings_are() {
    let home = Home::with(Model::Smol, QUICK);
    for (wrong, place) in [
        ("lab.idle_exit_s = 0\n", "config.toml:1: lab.idle_exit_s must be at least 1"),
        ("\nmodel.name = \"gpt-9\"\n", "config.toml:2: model.name: unknown model"),
        ("[lab]\nmax_tokens = \"many\"\n", "config.toml:2: lab.max_tokens must be"),
        ("[completion\n", "config.toml:1: this line cannot be read"),
        ("colour = 3\n", "config.toml:1: colour: no such setting"),
    ] {
        home.configure(wrong);
        let told = |args: &[&str]| {
            let output = home.run(args);
            let text = [output.stdout, output.stderr].concat();
            (output.status.success(), String::from_utf8(text).unwrap())
        };
        for args in [
            &["status"][..],
            &["config", "get"],
            &["config", "get", "lab.max_tokens"],
            &["model", "list"],
            &["forget", "--all", "--yes"],
        ] {
            let (is_done, text) = told(args);
            assert!(is_done && text.contains(place), "{wrong}: hone {args:?}: {text}");
        }
        assert!(told(&["stop"]).0, "{wrong}");
        let (is_well, text) = told(&["doctor"]);
        assert!(!is_well && text.contains(place), "{wrong}: {text}");
        let (started, text) = told(&["lsp"]);
        assert!(!started && text.contains(place), "{wrong}: {text}");
        for words in ["invalid type", "usize", "TOML parse", "expected"] {
            assert!(!text.contains(words), "{wrong}: {text}");
        }
    }
    home.configure("lab.idle_exit_s = 0\nlab.max_tokens = 0\n");
    let error = home.error(&["config", "set", "lab.max_tokens", "8"]);
    assert!(error.starts_with("lab.max_tokens is written, but"), "{error}");
    assert!(error.contains("config.toml:1: lab.idle_exit_s"), "{error}");
    let said = home.output(&["config", "set", "lab.idle_exit_s", "60"]);
    assert_eq!(said, "lab.idle_exit_s = 60\n");
    home.output(&["model", "use", "smollm2-135m"]);
    assert!(home.editor().status().is_ok());
}

/// A page of nothing was written into the current folder.
#[test]
fn a_report_of_nothing_writes_no_page() {
    let home = Home::with(Model::Smol, QUICK);
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("hone-report.html");
    let report = || {
        let mut hone = home.hone();
        let output = hone.current_dir(folder.path()).args(["report", "--html"]).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    };
    let (written, told) = report();
    assert!(!written && told.contains("nothing is recorded yet"), "{told}");
    assert!(!page.exists());
    let editor = home.editor();
    Buffer::open(&editor, "week.rs", WEEK).offer();
    editor.status().unwrap();
    let (written, told) = report();
    assert!(written && page.exists(), "{told}");
    let place = page.canonicalize().unwrap().display().to_string();
    assert!(told.contains(&place), "{told}");
}

/// A home on a read-only file system was answered with the advice to move the folder away.
#[test]
fn a_read_only_home_is_named_with_what_helps() {
    let home = Home::with(Model::Smol, QUICK);
    home.output(&["status"]);
    let place = home.path().display().to_string();
    let bound = succeeds("mount", &["--bind", &place, &place])
        && succeeds("mount", &["-o", "remount,bind,ro", &place]);
    let unmount = || succeeds("umount", &["--lazy", &place]);
    if !bound {
        unmount();
        return skipped("a read-only home", Missing::Mount);
    }
    let told: Vec<_> = [
        &["lsp"][..],
        &["status"],
        &["config", "set", "lab.max_tokens", "9"],
        &["forget", "--all", "--yes"],
    ]
    .map(|args| {
        let output = home.run(args);
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    })
    .into();
    let listed = home.run(&["model", "list"]).status.success();
    let settings = home.run(&["config", "get"]).status.success();
    let doctor = home.run(&["doctor"]);
    unmount();
    for (done, text) in told {
        assert!(!done && text.contains(&place), "{text}");
        assert!(text.contains("Read-only file system") && text.contains("HONE_HOME"), "{text}");
        assert!(!text.contains("move"), "{text}");
    }
    assert!(listed && settings, "what only reads works");
    let doctor = String::from_utf8(doctor.stdout).unwrap();
    assert!(doctor.contains("Read-only file system"), "{doctor}");
}

/// Runs `hone doctor` in this home, for a user whose home folder is another one. Returns whether
/// all is well, and what is said on stdout and on stderr.
fn examined(home: &Home, user: &Path, args: &[&str]) -> (bool, String, String) {
    let program = tests::hone();
    let mut hone: Command = home.hone();
    hone.env("HOME", user).env("PATH", program.parent().unwrap());
    for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "NVIM_APPNAME"] {
        hone.env_remove(name);
    }
    let output = hone.arg("doctor").args(args).output().unwrap();
    let [said, error] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    (output.status.success(), said, error)
}

fn doctor(home: &Home, user: &Path, args: &[&str]) -> (bool, String) {
    let (is_well, said, _) = examined(home, user, args);
    (is_well, said)
}

fn check<'r>(report: &'r Value, name: &str) -> &'r Value {
    let checks = report["checks"].as_array().expect("checks");
    checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("{name}: {report}"))
}

#[test]
fn the_doctor_tells_what_is_here_and_names_nothing_private() {
    let user = tempfile::Builder::new().prefix("private-person").tempdir().unwrap();
    let home = Home::with_below(user.path(), Model::Smol, QUICK);
    let extension = user.path().join(".vscode/extensions/hone.hone-0.1.0");
    std::fs::create_dir_all(&extension).unwrap();
    let (is_well, text) = doctor(&home, user.path(), &[]);
    assert!(is_well, "{text}");
    assert!(text.contains("its checksum is right"), "{text}");
    let editor = home.editor();
    Buffer::open(&editor, "acme/week.rs", WEEK).offer();
    let (is_well, json) = doctor(&home, user.path(), &["--json"]);
    let report: Value = serde_json::from_str(&json).unwrap();
    assert!(is_well && report["ok"] == true, "{report}");
    let found = |name: &str| check(&report, name)["found"].as_str().unwrap().to_owned();
    assert!(found("daemon").starts_with("pid "), "{report}");
    assert!(found("socket").contains("mode 600"), "{report}");
    assert!(found("speed").starts_with("the last completion came within"), "{report}");
    assert!(found("editors").contains("(extension 0.1.0): starts this program"), "{report}");
    assert!(found("files").starts_with("~/"), "{report}");
    for private in ["private-person", "acme", "Monday"] {
        assert!(!json.contains(private) && !text.contains(private), "{private}: {text}{json}");
    }
    let socket = home.path().join("run/hone.sock");
    std::fs::set_permissions(socket, PermissionsExt::from_mode(0o666)).unwrap();
    let (is_well, json) = doctor(&home, user.path(), &["--json"]);
    let report: Value = serde_json::from_str(&json).unwrap();
    assert!(!is_well, "{report}");
    assert_eq!(check(&report, "socket")["found"], "others can open it (mode 666)");
}

#[test]
fn the_doctor_says_what_is_wrong_and_what_to_do() {
    let user = tempfile::tempdir().unwrap();
    let home = Home::empty();
    home.configure("lab.max_tokens = 0\nprivacy.ignore = [\"~/clients/acme[\"]\n");
    let (is_well, json) = doctor(&home, user.path(), &["--json"]);
    let report: Value = serde_json::from_str(&json).unwrap();
    assert!(!is_well && report["ok"] == false, "{report}");
    let settings = check(&report, "settings");
    assert_eq!(settings["state"], "wrong");
    assert!(settings["found"].as_str().unwrap().contains("config.toml:1: "), "{settings}");
    assert!(settings["fix"].as_str().unwrap().contains("hone config set"), "{settings}");
    assert!(!json.contains("acme"), "a wrong value may be private: {json}");
    let model = check(&report, "model");
    assert_eq!(model["fix"], "`hone model pull qwen2.5-coder-0.5b` fetches it");
    // The verdict stood there twice, once as an error.
    let (is_well, text, error) = examined(&home, user.path(), &[]);
    assert!(!is_well && text.contains("\n3 things are wrong"), "{text}");
    assert_eq!(error, "");
}
