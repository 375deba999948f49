//! The model's memory is given back while nobody asks for a completion, and the next key takes it
//! again, with the adapter that serves.

use feedback::event::AdapterVersion;
use models::file::sha256;
use rehearsal::client::Client;
use tests::adapters::write_adapter_of;
use tests::buffer::{Buffer, WEEK, accept_one};
use tests::processes::resident_mb;
use tests::{Home, Model, QUICK, eventually, learn};

/// The most memory that the daemon may hold without a model, in MiB.
const IDLE_MB: f64 = 60.0;

/// The noise of an adapter that changes how likely the answer is.
const NOISE: f32 = 500.0;

/// Completes in a new file. Returns which adapter did, and ln π of the first token.
fn complete(home: &Home, editor: &Client, name: &str) -> (AdapterVersion, f32) {
    Buffer::open(editor, name, WEEK).complete();
    let newest = home.completions().pop().expect("it is recorded");
    assert!(newest.path.ends_with(name), "{name} is not answered");
    (newest.adapter, newest.tokens[0].logprob)
}

#[test]
fn an_idle_daemon_holds_no_model_and_the_next_key_has_the_adapter_again() {
    let home = Home::with(Model::Smol, &format!("{QUICK}model.idle_unload_s = 1\n"));
    let file = home.path().join("noisy.gguf");
    write_adapter_of(&file, &sha256(&Model::Smol.file()).unwrap(), NOISE);
    let editor = home.editor();
    let (base, by_the_base) = complete(&home, &editor, "a.rs");
    home.output(&["adapter", "import", file.to_str().unwrap()]);
    home.output(&["adapter", "use", "1"]);
    let (version, by_the_adapter) = complete(&home, &editor, "b.rs");
    assert_eq!((base, version), (0, 1));
    assert!((by_the_base - by_the_adapter).abs() > tests::NOISE, "{by_the_base} {by_the_adapter}");
    let pid = home.daemon_pid().expect("it runs");
    eventually("the memory is given back", || home.status()["model"]["memory"] == "given_back");
    let idle = resident_mb(pid);
    assert!(idle <= IDLE_MB, "{idle} MiB");
    assert!(home.output(&["status"]).contains("the next key loads it"));
    let (version, again) = complete(&home, &editor, "c.rs");
    assert_eq!(version, 1);
    assert!((again - by_the_adapter).abs() < tests::NOISE, "{again} was {by_the_adapter}");
    assert_eq!(home.daemon_pid(), Some(pid), "the daemon did not start anew");
}

/// A learned adapter is loaded from a temporary file, which goes when it is registered.
#[test]
fn an_adapter_that_this_daemon_learned_serves_again_with_the_next_key() {
    let home = Home::with(Model::Smol, &format!("{QUICK}model.idle_unload_s = 1\n"));
    let editor = home.editor();
    accept_one(&editor, "week.rs", WEEK);
    learn(&editor);
    assert_eq!(complete(&home, &editor, "a.rs").0, 1);
    eventually("the memory is given back", || home.status()["model"]["memory"] == "given_back");
    assert_eq!(complete(&home, &editor, "b.rs").0, 1);
}

/// There may be too little memory for the adapter, or its file may be damaged.
#[test]
fn where_the_adapter_cannot_be_loaded_again_the_model_completes_alone() {
    let home = Home::with(Model::Smol, &format!("{QUICK}model.idle_unload_s = 1\n"));
    let file = home.path().join("noisy.gguf");
    write_adapter_of(&file, &sha256(&Model::Smol.file()).unwrap(), NOISE);
    let editor = home.editor();
    home.output(&["adapter", "import", file.to_str().unwrap()]);
    home.output(&["adapter", "use", "1"]);
    assert_eq!(complete(&home, &editor, "a.rs").0, 1);
    let registered = home.path().join("adapters/v0001.gguf");
    let hidden = home.path().join("hidden");
    std::fs::rename(&registered, &hidden).unwrap();
    eventually("the memory is given back", || home.status()["model"]["memory"] == "given_back");
    assert_eq!(complete(&home, &editor, "b.rs").0, 0);
    let told = home.output(&["status"]);
    assert!(told.contains("adapter v1 cannot answer"), "{told}");
    std::fs::rename(&hidden, &registered).unwrap();
    home.output(&["adapter", "use", "1"]);
    assert_eq!(complete(&home, &editor, "c.rs").0, 1);
    let told = home.output(&["status"]);
    assert!(!told.contains("cannot answer"), "{told}");
}

/// A key that comes before the model is there again is told so, and not that the model is slow.
#[test]
fn a_key_that_does_not_wait_for_the_model_is_told_that_it_is_being_loaded() {
    let home = Home::with(Model::Smol, &format!("{QUICK}model.idle_unload_s = 1\n"));
    home.output(&["config", "set", "lab.budget_ms", "1"]);
    let editor = home.editor();
    // Opening another file would load the model before a key is pressed.
    let week = Buffer::open(&editor, "a.rs", WEEK);
    let reason = || {
        week.complete();
        home.status()["last_request"]["why"]["reason"].as_str().expect("a reason").to_owned()
    };
    // On a busy machine the model may have been given back before the first key.
    eventually("a key for which the model is too slow", || reason() == "too_slow");
    eventually("the memory is given back", || home.status()["model"]["memory"] == "given_back");
    assert_eq!(reason(), "loading");
    assert!(home.output(&["why"]).contains("The model is being loaded"));
}

/// The new file was served, and its offers were recorded under the checksum of the old one, on
/// which adapters are learned.
#[test]
fn a_model_that_was_replaced_while_it_was_not_in_memory_is_not_served() {
    let home = Home::with(Model::Smol, &format!("{QUICK}model.idle_unload_s = 1\n"));
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    week.offer();
    let model = home.path().join("models").join(Model::Smol.file().file_name().unwrap());
    let put = |bytes: &[u8]| {
        let newer = home.path().join("newer");
        std::fs::write(&newer, bytes).unwrap();
        std::fs::rename(&newer, &model).unwrap();
    };
    let own = std::fs::read(&model).unwrap();
    let mut other = own.clone();
    *other.last_mut().unwrap() ^= 1;
    eventually("the memory is given back", || home.status()["model"]["memory"] == "given_back");
    put(&other);
    week.insert("\n// one, two, three, ");
    assert!(week.complete().is_none());
    let why = home.output(&["why"]);
    assert!(why.contains("it is another file") && why.contains("`hone stop"), "{why}");
    put(&own);
    week.offer();
}
