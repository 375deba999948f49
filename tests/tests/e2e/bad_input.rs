//! Whatever is wrong with Hone's input, one line names the file and says what to do, and
//! nothing is lost. The user of an editor sees the same line as the user of a terminal.

use models::file::{sha256, sha256_of};
use models::random_model::tiny::{self, Form, Matrices, Sizes};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tests::adapters::{report, write_adapter, write_adapter_of};
use tests::buffer::{Buffer, WEEK};
use tests::{Home, Model, QUICK};

fn home() -> Home {
    Home::with(Model::Smol, QUICK)
}

/// The one line with which `hone serve` and `hone lsp` both end.
fn refusal(home: &Home, options: &[&str]) -> String {
    let of = |command: &str| home.error(&[&[command], options].concat());
    let (terminal, editor) = (of("serve"), of("lsp"));
    assert_eq!(terminal, editor, "the forwarder passes on the daemon's reason");
    terminal
}

fn check(line: &str, file: &Path, parts: &[&str]) {
    assert!(line.contains(&file.display().to_string()), "{} is in {line}", file.display());
    for part in parts {
        assert!(line.contains(part), "{part} is in {line}");
    }
}

/// The configured model's file in this home.
fn model_path(home: &Home) -> PathBuf {
    home.path().join("models").join(Model::Smol.file().file_name().unwrap())
}

/// Replaces the link to the model by a changed copy of the model.
fn replace_model(home: &Home, change: impl FnOnce(&mut Vec<u8>)) -> PathBuf {
    let path = model_path(home);
    let mut bytes = std::fs::read(&path).unwrap();
    change(&mut bytes);
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn a_missing_model_names_the_command_that_fetches_it() {
    let home = Home::empty();
    let file = home.path().join("models/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf");
    let line = refusal(&home, &[]);
    check(&line, &file, &["is missing", "`hone model pull qwen2.5-coder-0.5b`"]);

    let file = home.path().join("own.gguf");
    let option = file.display().to_string();
    check(&refusal(&home, &["--model", &option]), &file, &["No such file"]);
}

#[test]
fn a_truncated_model_is_told_from_a_damaged_one() {
    let home = home();
    let path = replace_model(&home, |bytes| bytes.truncate(bytes.len() / 2));
    check(&refusal(&home, &[]), &path, &["truncated", "`hone model pull smollm2-135m`"]);
    assert!(home.output(&["model", "list"]).contains("damaged"));
    let option = path.display().to_string();
    let line = refusal(&home, &["--model", &option, "--template", "prefix-only"]);
    check(&line, &path, &["truncated", "fetch it again"]);
}

#[test]
fn a_model_with_one_wrong_bit_is_not_served() {
    let home = home();
    let path = replace_model(&home, |bytes| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
    });
    let right = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";
    check(&refusal(&home, &[]), &path, &["sha256", right, "`hone model pull smollm2-135m`"]);
}

/// A GGUF (version 3) that holds one string and no tensor.
fn tiny_gguf(key: &str, text: &str) -> Vec<u8> {
    const STRING: u32 = 8;
    let mut bytes = b"GGUF".to_vec();
    bytes.extend(3u32.to_le_bytes());
    bytes.extend(0u64.to_le_bytes());
    bytes.extend(1u64.to_le_bytes());
    bytes.extend((key.len() as u64).to_le_bytes());
    bytes.extend(key.as_bytes());
    bytes.extend(STRING.to_le_bytes());
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(32), 0);
    bytes
}

#[test]
fn files_that_are_no_known_model_are_named() {
    let home = home();
    for (name, bytes, parts) in [
        (
            "mamba.gguf",
            tiny_gguf("general.architecture", "mamba"),
            &["\"mamba\"", "use a model of one of qwen2, llama, "][..],
        ),
        ("empty.gguf", tiny_gguf("general.architecture", "llama"), &["tokenizer"]),
        ("notes.txt", b"# not a model".to_vec(), &["not a GGUF file", ".gguf"]),
    ] {
        let path = home.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        check(&refusal(&home, &["--model", &path.display().to_string()]), &path, parts);
    }
}

/// llama.cpp ends the process on some numbers of a file.
#[test]
fn a_model_on_which_llama_cpp_ends_the_process_is_named() {
    let home = home();
    let path = home.path().join("own.gguf");
    const SIZES: Sizes =
        Sizes { layers: 2, width: 64, heads: 4, kv_heads: 2, head_width: 16, feed_forward: 64 };
    let llama = tiny::form("llama").unwrap();
    for (form, part) in [
        (Form { texts: &[("rope.scaling.type", "spiral")], ..*llama }, "rope_scaling_type"),
        (Form { integers: &[("expert_group_count", 3)], ..*llama }, "n_expert_groups"),
    ] {
        form.write(SIZES, Matrices::F32, 1, &path).unwrap();
        let option = path.display().to_string();
        let line = refusal(&home, &["--model", &option, "--template", "prefix-only"]);
        check(&line, &path, &["llama.cpp cannot continue", part, "use another one"]);
    }
}

/// A template that is guessed from a name could be wrong and serve nonsense, so a model without
/// a known one is an error.
#[test]
fn a_model_without_fim_tokens_wants_its_template_named() {
    let home = home();
    let file = Model::Smol.file();
    let model = file.display().to_string();
    let line = refusal(&home, &["--model", &model]);
    check(&line, &file, &["FIM tokens", "name one of", "prefix-only"]);
    let line = refusal(&home, &["--model", &model, "--template", "guess"]);
    check(&line, &file, &["unknown FIM template \"guess\"", "qwen2.5-coder", "prefix-only"]);
    let line = refusal(&home, &["--model", &model, "--template", "qwen2.5-coder"]);
    check(&line, &file, &["<|fim_prefix|>"]);

    let named = ["lsp", "--manual-clock", "--model", &model, "--template", "prefix-only"];
    let editor = home.editor_with(&named);
    assert!(Buffer::open(&editor, "week.rs", WEEK).complete().is_some());
}

#[test]
fn a_model_that_sees_no_suffix_says_so() {
    let home = home();
    let _editor = home.editor();
    let log = home.daemon_log();
    assert!(log.contains("smollm2-135m: It was never trained to fill in"), "{log}");
}

#[test]
fn a_configuration_that_is_wrong_is_named_with_its_key() {
    let home = home();
    let file = home.path().join("config.toml");
    for (text, parts) in [
        ("[lab]\nbudget_sm = 5\n", &[":2: lab.budget_sm", "budget_ms"][..]),
        ("[lab.ppo]\nlearning_rte = 0.1\n", &["learning_rte"]),
        ("[lab]\nmax_tokens = 0\n", &["lab.max_tokens", "from 1 to"]),
        ("[lab]\nmax_tokens = \"many\"\n", &["max_tokens"]),
        ("model.name = \"gpt-9\"\n", &["model.name", "gpt-9", "hone model list"]),
        ("[completion\n", &[":1: "]),
    ] {
        home.configure(text);
        check(&refusal(&home, &[]), &file, parts);
        check(&home.output(&["status"]), &file, parts);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "the user's file stays as it is");
    }
}

#[test]
fn an_unknown_model_names_the_nearest_and_where_all_are_listed() {
    let home = Home::empty();
    for command in ["pull", "use"] {
        let line = home.error(&["model", command, "gpt-9"]);
        assert!(line.contains("\"gpt-9\"") && line.contains("`hone model list`"), "{line}");
        let line = home.error(&["model", command, "smollm2-135n"]);
        assert!(line.contains("the nearest is smollm2-135m"), "{line}");
    }
    assert!(!home.path().join("config.toml").exists());
}

#[test]
fn a_pull_without_a_network_says_how_to_do_without() {
    let mut home = Home::empty();
    for (name, value) in
        [("HF_ENDPOINT", "http://127.0.0.1:9"), ("PIP_INDEX_URL", "http://127.0.0.1:9")]
    {
        home.set_env(name, value);
    }
    let cache = home.path().join("hub-cache");
    home.set_env("HF_HOME", cache);
    let line = home.error(&["model", "pull", "smollm2-135m"]);
    let file = home.path().join("models/SmolLM2-135M-Instruct.Q4_1.gguf");
    let instead = "run `hone model add SmolLM2-135M-Instruct.Q4_1.gguf`";
    for part in ["could not fetch", "127.0.0.1:9", instead] {
        assert!(line.contains(part), "{part} is in {line}");
    }
    assert!(!file.exists());
    let lines = home.run(&["model", "pull", "--json", "smollm2-135m"]).stdout;
    let lines = String::from_utf8(lines).unwrap();
    let notes: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!notes.is_empty() && notes.iter().all(|line| line["note"].is_string()), "{lines}");
}

/// A bare container is such a system.
#[test]
fn a_pull_on_a_system_without_certificates_says_what_to_install() {
    let mut home = Home::empty();
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("https://{}", server.local_addr().unwrap());
    let none = home.path().join("none.pem");
    std::fs::write(&none, "").unwrap();
    home.set_env("SSL_CERT_FILE", none);
    home.set_env("SSL_CERT_DIR", home.path().join("none"));
    home.set_env("HF_HOME", home.path().join("hub-cache"));
    for name in ["HF_ENDPOINT", "PIP_INDEX_URL"] {
        home.set_env(name, &address);
    }
    let line = home.error(&["model", "pull", "smollm2-135m"]);
    assert!(line.contains("ca-certificates") && line.contains("SSL_CERT_FILE"), "{line}");
}

/// Writes a registry of two adapters for this base; v1 is the parent of v2.
fn two_adapters(home: &Home, base_sha256: &str) -> PathBuf {
    let folder = home.path().join("adapters");
    std::fs::create_dir_all(&folder).unwrap();
    let entry = |version: u32| {
        let sha256 = write_adapter(&folder.join(format!("v{version:04}.gguf")), base_sha256);
        json!({"version": version, "parent": version - 1, "sha256": sha256,
            "base_sha256": base_sha256, "created_at_ms": 0, "labels": [0, 0], "offers": [],
            "forgotten": false, "verdict": null, "report": report("v1-1", version, &sha256)})
    };
    let registry = json!({"format": 1, "checksum": "", "generation": 0, "base": base_sha256,
        "active": 2,
        "head": null, "trial": null, "resting": {}, "adapters": [entry(1), entry(2)]});
    // The checksum is that of the text without it.
    let text = registry.to_string();
    let checksum = format!("\"checksum\":\"{}\"", sha256_of(text.as_bytes()));
    let path = folder.join("registry.json");
    std::fs::write(&path, text.replacen("\"checksum\":\"\"", &checksum, 1)).unwrap();
    path
}

/// Completes once. Returns the adapter that served, the active adapter and the last error.
fn served_by(home: &Home) -> (u32, Value, String) {
    let editor = home.editor();
    assert!(Buffer::open(&editor, "week.rs", WEEK).complete().is_some(), "completions continue");
    let status = home.status();
    let trouble = status["learner"]["last_error"].as_str().unwrap_or_default().to_owned();
    let version = home.completions().last().map(|completion| completion.adapter).unwrap();
    (version, status["adapter"]["active"].clone(), trouble)
}

#[test]
fn a_registered_adapter_serves_after_a_restart() {
    let home = home();
    two_adapters(&home, &sha256(&Model::Smol.file()).unwrap());
    assert_eq!(served_by(&home), (2, json!(2), String::new()));
}

#[test]
fn a_corrupt_adapter_gives_way_to_its_parent() {
    let home = home();
    let registry = two_adapters(&home, &sha256(&Model::Smol.file()).unwrap());
    let before = std::fs::read(&registry).unwrap();
    let path = home.path().join("adapters/v0002.gguf");
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).unwrap();

    let (version, active, trouble) = served_by(&home);
    assert_eq!((version, active), (1, json!(1)));
    check(&trouble, &path, &["damaged", "serving v1 instead"]);
    assert!(home.daemon_log().contains("serving v1 instead"));
    assert_eq!(std::fs::read(&registry).unwrap(), before, "history is not rewritten");
}

/// After `hone model use`, the adapters of the model before neither serve nor disappear.
#[test]
fn an_adapter_of_another_base_waits_for_that_base() {
    let home = home();
    let registry = two_adapters(&home, &"0".repeat(64));
    let before = std::fs::read(&registry).unwrap();
    assert_eq!(served_by(&home), (0, json!(0), String::new()));
    assert_eq!(std::fs::read(&registry).unwrap(), before);
    for version in ["v0001.gguf", "v0002.gguf"] {
        assert!(home.path().join("adapters").join(version).exists());
    }
}

/// A damaged registry still names files that exist. A new registry would lose them.
#[test]
fn a_damaged_registry_is_left_as_it_is_and_the_base_serves() {
    let home = home();
    let path = two_adapters(&home, &sha256(&Model::Smol.file()).unwrap());
    let damaged = ["damaged", "move the folder away"];
    for (text, parts) in [
        ("{\"format\": 1, \"active\":", damaged),
        ("", damaged),
        ("{\"format\": 99}", ["format 99", "update Hone"]),
    ] {
        std::fs::write(&path, text).unwrap();
        let (version, active, trouble) = served_by(&home);
        assert_eq!((version, active), (0, json!(0)));
        check(&trouble, &path, &parts);
        home.output(&["stop"]);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}

/// Every file of the adapters folder, with its bytes.
fn adapter_files(home: &Home) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = std::fs::read_dir(home.path().join("adapters")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    paths.map(|path| (path.clone(), std::fs::read(&path).unwrap())).collect()
}

/// A registry that cannot be read looks empty, and the next number seemed to be 1. Whatever
/// is asked of it then, `hone learn` and `hone adapter import` with a daemon and without one,
/// must touch no file that is there; and what was recorded can be forgotten all the same.
#[test]
fn a_registry_that_cannot_be_read_costs_no_adapter() {
    let home = home();
    let base = sha256(&Model::Smol.file()).unwrap();
    let registry = two_adapters(&home, &base);
    let folder = home.path().join("adapters");
    std::fs::write(folder.join("v0001.optimizer"), "what the optimizer knows").unwrap();
    let other = home.path().join("other.gguf");
    // It differs from the adapters that are there, so that the test sees if it replaces one.
    write_adapter_of(&other, &base, 0.5);
    let import = ["adapter", "import", other.to_str().unwrap()];
    for (text, part) in [
        ("{\"format\": 1, \"active\":", "damaged"),
        ("", "damaged"),
        ("{\"format\": 99}", "update Hone"),
    ] {
        std::fs::write(&registry, text).unwrap();
        let before = adapter_files(&home);
        check(&home.error(&import), &registry, &[part]);
        assert!(adapter_files(&home) == before, "without a daemon: {text}");

        let editor = home.editor();
        let mut week = Buffer::open(&editor, "week.rs", WEEK);
        let item = week.offer();
        week.accept(&item);
        check(&home.error(&import), &registry, &[part]);
        check(&home.error(&["learn"]), &registry, &["nothing is learned", part]);
        let refused = editor.learn().unwrap_err().to_string();
        check(&refused, &registry, &["nothing is learned", part]);
        let learner = home.status()["learner"].clone();
        assert_eq!((&learner["state"], &learner["waiting"]), (&"off".into(), &1.into()), "{text}");
        assert!(adapter_files(&home) == before, "with a daemon: {text}");

        let told = home.output(&["forget", "--file", "/project/week.rs", "--yes"]);
        assert!(told.starts_with("forgotten: 1 offer\n"), "{told}");
        check(&told, &folder, &["may have learned from it", "delete that folder", part]);
        assert!(home.events().is_empty());
        drop(editor);
        home.output(&["stop"]);
        assert!(adapter_files(&home) == before, "after forgetting: {text}");
    }
}

#[test]
fn an_event_log_that_cannot_be_opened_is_named() {
    let home = home();
    let log = home.path().join("data/events.sled");
    std::fs::create_dir_all(home.path().join("data")).unwrap();
    std::fs::write(&log, "a file where a folder should be").unwrap();
    check(&refusal(&home, &[]), &log, &["cannot open the event log", "move"]);
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "a file where a folder should be");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let home = home();
    let data = home.path().join("data");
    std::fs::write(&data, "").unwrap();
    check(&refusal(&home, &[]), &data, &["cannot make this folder"]);

    let mut nowhere = Home::empty();
    let file = nowhere.path().join("file");
    std::fs::write(&file, "").unwrap();
    nowhere.set_env("HONE_HOME", &file);
    // Those that ask a daemon blamed a socket below the file, which is not there.
    let asking = [&["lsp"][..], &["status"], &["stop"], &["why"], &["events"], &["api"]];
    for command in asking {
        check(&nowhere.error(command), &file, &["HONE_HOME is a file", "set it to a folder"]);
    }
}

/// A `~` in quotes made a folder of that name wherever one stood.
#[test]
fn a_home_that_is_no_absolute_path_is_refused() {
    let (mut home, folder) = (Home::empty(), tempfile::tempdir().unwrap());
    home.set_env("HONE_HOME", "~/hone");
    let mut set = home.hone();
    set.args(["config", "set", "lab.max_tokens", "3"]).current_dir(folder.path());
    let refused = set.output().unwrap();
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success(), "{told}");
    assert!(told.starts_with("Error: HONE_HOME is ~/hone, "), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "nothing was made");
}

#[test]
fn a_daemon_log_that_cannot_be_written_is_named() {
    let home = home();
    let log = home.path().join("logs/daemon.log");
    std::fs::create_dir_all(&log).unwrap();
    check(&home.error(&["lsp"]), &log, &["cannot be opened", "move it elsewhere"]);
}
