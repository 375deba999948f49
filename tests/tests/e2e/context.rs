//! A prompt may quote code of other files that the user works on. Forgetting such a file also
//! forgets every completion whose prompt has quoted it.

use rehearsal::client::TriggerKind;
use rehearsal::document::Position;
use tests::buffer::Buffer;
use tests::{Home, Model, QUICK, eventually};
use url::Url;

/// A function whose parameters cannot be guessed.
const MODEL: &str = "pub struct Ledger;\n\nimpl Ledger {\n    \
    pub fn post_entry(&mut self, zebra_account: &str, walrus_cents: u64) {}\n}\n";

const CALL: &str = "use crate::run::ledger::Ledger;\n\n\
    fn close(ledger: &mut Ledger, zebra_account: &str) {\n    let walrus|\n    \
    ledger.post_entry(zebra_account, walrus_cents);\n}\n";

fn home(context_chars: usize) -> Home {
    Home::with(Model::Qwen, &format!("{QUICK}completion.context_chars = {context_chars}\n"))
}

/// The files that the last prompt quoted.
fn quoted(home: &Home) -> Vec<String> {
    home.completions().pop().expect("a completion is recorded").context
}

#[test]
fn a_prompt_quotes_code_that_has_the_same_names() {
    let home = home(1_000);
    let editor = home.editor();
    Buffer::open(&editor, "unrelated.rs", "fn circle(radius: f32) {}\n|");
    let model = Buffer::open(&editor, "src/ledger.rs", &format!("{MODEL}|"));
    editor.close(model.uri()).unwrap();
    // The parameters stand nowhere in the file itself, only in the quoted code.
    let call = "fn close(ledger: &mut Ledger) {\n    ledger.post_entry(|)\n}\n";
    let buffer = Buffer::open(&editor, "src/close.rs", call);
    let offer = buffer.complete().expect("the model has something to offer here");
    assert_eq!(quoted(&home), ["/project/src/ledger.rs"]);
    let knows = |text: &str| ["zebra", "walrus"].iter().any(|w| text.to_lowercase().contains(w));
    assert!(knows(&offer.insert_text), "{}", offer.insert_text);

    home.output(&["config", "set", "completion.context_chars", "0"]);
    let again = Buffer::open(&editor, "src/again.rs", call);
    let offer = again.complete().map(|offer| offer.insert_text).unwrap_or_default();
    assert!(quoted(&home).is_empty());
    assert!(!knows(&offer), "{offer}");

    home.output(&["forget", "--file", "/project/src/ledger.rs", "--yes"]);
    let left: Vec<_> = home.completions().into_iter().map(|made| made.path).collect();
    assert_eq!(
        left,
        ["/project/src/again.rs"],
        "a completion that quoted the file is forgotten with it"
    );
}

/// A line that is typed in one file is quoted in the prompts of the next. Forgetting the file
/// removes it from there too.
#[test]
fn a_prompt_shows_recent_edits() {
    let home = home(1_000);
    let editor = home.editor();
    let mut entry = Buffer::open(&editor, "src/entry.rs", "pub struct Entry {\n    |\n}\n");
    entry.type_text("pub walrus_cents: u64,");
    let call = "fn widest(names: &[&str]) -> usize {\n    let walrus|\n}\n";
    Buffer::open(&editor, "src/names.rs", call).complete();
    assert_eq!(quoted(&home), ["/project/src/entry.rs"]);
    let reads = home.completions().pop().unwrap().prompt.len();

    home.output(&["config", "set", "completion.context_chars", "0"]);
    Buffer::open(&editor, "src/again.rs", call).complete();
    assert!(quoted(&home).is_empty());
    assert!(home.completions().pop().unwrap().prompt.len() < reads);

    home.output(&["forget", "--file", "/project/src/entry.rs", "--yes"]);
    let left: Vec<_> = home.completions().into_iter().map(|made| made.path).collect();
    assert!(!left.contains(&"/project/src/names.rs".to_owned()), "{left:?}");

    home.output(&["config", "set", "completion.context_chars", "1000"]);
    Buffer::open(&editor, "src/later.rs", call).complete();
    assert!(quoted(&home).is_empty(), "the session does not remember it either");
}

#[test]
fn a_file_that_is_imported_is_quoted_though_nobody_opened_it() {
    let project = tempfile::tempdir().unwrap();
    let root = project.path().canonicalize().unwrap();
    let (ledger, close) = (root.join("ledger.rs"), root.join("close.rs"));
    // What is imported is read within an open folder or a repository, and this editor opens none.
    std::fs::create_dir(root.join(".git")).unwrap();
    std::fs::write(&ledger, MODEL).unwrap();
    let home = home(1_000);
    let editor = home.editor();
    let uri = Url::from_file_path(&close).unwrap();
    let at = Position { line: 3, character: "    let walrus".len() as u32 };
    // The import is read in the background, so the first prompts may have nothing to quote.
    eventually("the import is quoted", || {
        editor.open(uri.as_str(), "rust", &CALL.replacen('|', "", 1)).unwrap();
        editor.inline_completion(uri.as_str(), at, TriggerKind::Invoked).unwrap();
        editor.close(uri.as_str()).unwrap();
        quoted(&home) == [ledger.to_string_lossy()]
    });
    // Once it is forgotten, another import is still quoted, and it is not.
    home.output(&["forget", "--file", &ledger.to_string_lossy(), "--yes"]);
    let other = root.join("run.rs");
    std::fs::write(&other, MODEL).unwrap();
    eventually("the other import is quoted", || {
        editor.open(uri.as_str(), "rust", &CALL.replacen('|', "", 1)).unwrap();
        editor.inline_completion(uri.as_str(), at, TriggerKind::Invoked).unwrap();
        editor.close(uri.as_str()).unwrap();
        quoted(&home) == [other.to_string_lossy()]
    });
}

#[test]
fn ignored_files_are_never_quoted() {
    let home = home(1_000);
    home.configure(&format!(
        "{}privacy.ignore = [\"ledger.rs\"]\n",
        std::fs::read_to_string(home.path().join("config.toml")).unwrap()
    ));
    let editor = home.editor();
    Buffer::open(&editor, "src/ledger.rs", &format!("{MODEL}|"));
    let buffer = Buffer::open(&editor, "src/close.rs", CALL);
    buffer.complete();
    assert!(quoted(&home).is_empty());
    let reads = home.completions().pop().unwrap().prompt.len();
    home.output(&["config", "set", "privacy.ignore", "[]"]);
    Buffer::open(&editor, "src/other.rs", CALL).complete();
    assert_eq!(quoted(&home), ["/project/src/ledger.rs", "/project/src/close.rs"]);
    assert!(home.completions().pop().unwrap().prompt.len() > reads);
}
