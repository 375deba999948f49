//! All settings are in `config.toml`. A change by `hone config` reaches the running daemon and all
//! its clients.

use rehearsal::client::{Client, TriggerKind};
use rehearsal::document::Position;
use serde_json::{Value, json};
use tests::buffer::{Buffer, WEEK};
use tests::{Home, Model, QUICK};

fn home() -> Home {
    Home::with(Model::Smol, QUICK)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn offers(editor: &Client, uri: &str, language: &str, trigger: TriggerKind) -> usize {
    let line = "Monday, Tuesday, Wednesday, ";
    editor.open(uri, language, line).unwrap();
    let at = Position { line: 0, character: line.len() as u32 };
    editor.inline_completion(uri, at, trigger).unwrap().len()
}

#[test]
fn a_changed_setting_reaches_the_running_daemon() {
    let home = home();
    let editor = home.editor();
    assert_eq!(Buffer::open(&editor, "a.rs", WEEK).complete().map(|_| ()), Some(()));
    assert_eq!(home.completions()[0].tokens.len(), 8);
    let said = home.output(&["config", "set", "lab.max_tokens", "3"]);
    assert_eq!(said, "lab.max_tokens = 3 from now on\n");
    Buffer::open(&editor, "b.rs", WEEK).complete();
    assert_eq!(home.completions()[1].tokens.len(), 3);
    assert_eq!(home.output(&["config", "get", "lab.max_tokens"]), "lab.max_tokens = 3\n");

    home.output(&["config", "set", "lab.max_tokens"]);
    let all = json(&home.output(&["config", "get", "--all", "--json"]));
    assert_eq!(all["lab"]["max_tokens"], 32, "the setting has its default again");
    assert_eq!(all["lab"]["budget_ms"], 120_000, "other settings stay");
}

#[test]
fn a_setting_that_needs_a_restart_says_so() {
    let home = home();
    let _editor = home.editor();
    assert_eq!(home.status()["daemon"]["needs_restart"], false);
    let said = json(&home.output(&["config", "set", "--json", "model.threads", "2"]));
    assert_eq!(said, json!({"key": "model.threads", "value": 2, "restart": true}));
    assert_eq!(home.status()["daemon"]["needs_restart"], true);
    assert!(home.output(&["status"]).contains("`hone restart`"));
    home.output(&["config", "set", "model.threads", "1"]);
    assert_eq!(home.status()["daemon"]["needs_restart"], false, "the old value needs no restart");
    home.output(&["model", "use", "qwen2.5-coder-0.5b"]);
    assert_eq!(home.status()["daemon"]["needs_restart"], true);
    // The doctor and the status recommended a restart, which ended all completions.
    let missing = "qwen2.5-coder-0.5b is chosen and not here";
    let advice = "run `hone model pull`, or `hone model use smollm2-135m` for the one that serves";
    let pid = home.daemon_pid();
    let error = home.error(&["restart"]);
    assert_eq!(error, format!("not restarted: {missing}: {advice}"));
    assert_eq!(home.daemon_pid(), pid, "the daemon continues");
    let doctor = String::from_utf8(home.run(&["doctor"]).stdout).expect("UTF-8");
    for told in [home.output(&["status"]), doctor] {
        assert!(told.contains(missing) && told.contains(advice), "{told}");
        assert!(!told.contains("`hone restart`"), "{told}");
    }
    let file = home.path().join("config.toml");
    let right = std::fs::read_to_string(&file).unwrap();
    for (name, wrong) in
        [("qwen2.5-coder-0.5b", "qwen2.5-coder-05b"), ("threads = 1", "threads = []")]
    {
        std::fs::write(&file, right.replace(name, wrong)).unwrap();
        let error = home.error(&["restart"]);
        let told = format!("not restarted: {}:", file.display());
        assert!(error.starts_with(&told), "{wrong}: {error}");
        assert_eq!(home.daemon_pid(), pid, "the daemon continues");
        assert!(!home.output(&["status"]).contains("`hone restart`"), "{wrong}");
    }
    std::fs::write(&file, right).unwrap();
    home.output(&["stop"]);
    let said = json(&home.output(&["config", "set", "--json", "model.threads", "1"]));
    assert_eq!(said["restart"], false, "no daemon runs");
}

/// `hone config set lab.ppo.lora_rank` said "from now on", and then no update could continue
/// from the adapter there was.
#[test]
fn what_is_for_new_adapters_is_said() {
    let home = home();
    let said = home.output(&["config", "set", "lab.ppo.lora_rank", "8"]);
    assert!(said.contains("= 8 for the next adapter that starts from the base"), "{said}");
}

#[test]
fn a_value_that_would_not_load_is_refused_and_nothing_changes() {
    let home = home();
    let before = home.output(&["config", "get"]);
    let error = home.error(&["config", "set", "lab.temperature", "3"]);
    assert!(error.contains("lab.temperature must be from 0 to 2"), "{error}");
    let error = home.error(&["config", "set", "learning.enabled", "perhaps"]);
    let told = "learning.enabled must be true or false; it is \"perhaps\"; nothing was changed";
    assert_eq!(error, told);
    let error = home.error(&["config", "set", "completion.token", "3"]);
    assert_eq!(error, "completion.token: no such setting; `hone config get` lists them");
    assert_eq!(home.output(&["config", "get"]), before);
}

/// `hone config set model.name` took any name, and then `hone status`, `hone model list` and
/// every editor refused it. Whoever sets a wrong value is the one to be told, and the
/// commands that choose another model work whatever the settings say.
#[test]
fn a_model_that_nobody_knows_is_refused_when_it_is_set_and_can_be_replaced() {
    let home = home();
    let error = home.error(&["config", "set", "model.name", "qwen"]);
    assert!(
        error.starts_with("model.name: not set: unknown model \"qwen\"; the nearest is "),
        "{error}"
    );
    assert!(error.contains("qwen2.5-coder-0.5b"), "{error}");
    assert_eq!(home.output(&["config", "get", "model.name"]), "model.name = \"smollm2-135m\"\n");
    for wrong in ["model.name = \"qwen\"\n", "model.name = 7\n"] {
        home.configure(wrong);
        let listed = json(&home.output(&["model", "list", "--json"]));
        let models = listed["models"].as_array().expect("models");
        assert!(models.iter().all(|model| model["configured"] == false), "{models:?}");
        let problem = listed["problem"].as_str().expect("what is wrong");
        assert!(problem.contains("config.toml:1: model.name"), "{problem}");
        assert!(home.output(&["model", "list"]).contains("smollm2-135m"));
        home.output(&["model", "use", "smollm2-135m"]);
        let listed = json(&home.output(&["model", "list", "--json"]));
        assert_eq!(listed["problem"], Value::Null);
    }
}

/// `lab.idle_exit_s = 0` was accepted, and each daemon ended as soon as it listened: the
/// editor waited two minutes for it. A file that still says so is refused at once, with
/// the setting's name, and one command corrects it.
#[test]
fn a_daemon_that_would_end_at_once_is_refused_by_name_and_corrected() {
    let home = home();
    let error = home.error(&["config", "set", "lab.idle_exit_s", "0"]);
    let told = "lab.idle_exit_s must be at least 1, such as 600";
    assert!(error.contains(told), "{error}");
    home.configure("model.name = \"smollm2-135m\"\nlab.idle_exit_s = 0\n");
    let error = home.error(&["lsp"]);
    assert!(error.contains("config.toml") && error.contains(told), "{error}");
    home.output(&["config", "set", "lab.idle_exit_s", "60"]);
    assert!(home.editor().status().is_ok());
}

#[test]
fn the_schema_tells_each_settings_default() {
    let home = home();
    home.configure("");
    let schema = json(&home.output(&["config", "get", "--schema"]));
    let defaults = json(&home.output(&["config", "get", "--json"]));
    for table in ["completion", "learning", "privacy"] {
        for (name, setting) in schema["properties"][table]["properties"].as_object().unwrap() {
            assert_eq!(setting["default"], defaults[table][name], "{table}.{name}");
        }
    }
}

/// 29 of 52 settings were of use only in experiments, and every user saw them. They are in a
/// table of their own now that is shown on demand.
#[test]
fn what_only_experiments_change_is_shown_on_demand() {
    let home = home();
    for shown in [&["config", "get"][..], &["config", "get", "--schema"]] {
        let (usual, all) = (home.output(shown), home.output(&[shown, &["--all"]].concat()));
        for name in ["learning_rate", "prompt_tokens", "temperature"] {
            assert!(!usual.contains(name), "{name}: {usual}");
            assert!(all.contains(name), "{name}: {all}");
        }
    }
    let rate = "lab.ppo.learning_rate = 0.0003\n";
    assert_eq!(home.output(&["config", "set", "lab.ppo.learning_rate", "3e-4"]), rate);
    assert_eq!(home.output(&["config", "get", "lab.ppo.learning_rate"]), rate);
    let all = json(&home.output(&["config", "get", "--all", "--json"]));
    assert_eq!(all["lab"]["ppo"]["learning_rate"], 0.0003);
}

#[test]
fn the_status_names_the_files() {
    let home = home();
    let expected = json!({
        "home": home.path(),
        "config": home.path().join("config.toml"),
        "socket": home.path().join("run/hone.sock"),
        "log": home.path().join("logs/daemon.log"),
    });
    assert_eq!(home.status()["paths"], expected, "without a daemon");
    let editor = home.editor();
    assert_eq!(editor.status().unwrap()["paths"], expected, "and with one");
    let settings = home.output(&["config", "get"]);
    let file = format!("# {}", expected["config"].as_str().unwrap());
    assert_eq!(settings.lines().next(), Some(&*file));
}

#[test]
fn a_language_is_switched_off_for_every_client_unless_completion_is_invoked() {
    let home = home();
    let (one, two) = (home.editor(), home.editor());
    home.output(&["config", "set", "completion.languages.markdown", "false"]);
    for (editor, name) in [(&one, "one"), (&two, "two")] {
        let (notes, more) = (format!("file:///{name}.md"), format!("file:///{name}-2.md"));
        assert_eq!(offers(editor, &notes, "markdown", TriggerKind::Automatic), 0);
        assert!(offers(editor, &more, "markdown", TriggerKind::Invoked) > 0);
        let code = format!("file:///{name}.rs");
        assert_eq!(offers(editor, &code, "rust", TriggerKind::Automatic), 1);
    }
    assert_eq!(home.status()["episodes"]["no_offer"], 0, "nothing was computed for them");
    home.output(&["config", "set", "completion.languages.markdown"]);
    assert_eq!(offers(&one, "file:///later.md", "markdown", TriggerKind::Automatic), 1);
}

#[test]
fn ignored_files_have_offers_only_when_completion_is_invoked() {
    let home = home();
    let editor = home.editor();
    home.output(&["config", "set", "completion.ignore", "[\"notes/\", \"*.min.rs\"]"]);
    let error = home.error(&["config", "set", "completion.ignore", "[\"a[\"]"]);
    let told = "completion.ignore has a line that is no pattern of a .gitignore";
    assert!(error.starts_with(told) && error.contains("it is \"a[\""), "{error}");
    for path in ["file:///p/notes/a.rs", "file:///p/a.min.rs"] {
        assert_eq!(offers(&editor, path, "rust", TriggerKind::Automatic), 0);
        let again = path.replace("a.", "b.");
        assert!(offers(&editor, &again, "rust", TriggerKind::Invoked) > 0);
    }
    assert_eq!(offers(&editor, "file:///p/a.rs", "rust", TriggerKind::Automatic), 1);
}
