//! With `completion.memory`, a line that was written before is offered where the text before it
//! comes again: from the folder that the editor has open, or from the file itself.

use feedback::event::{Completion, CopySource};
use rehearsal::client::{Client, TriggerKind};
use rehearsal::document::{Position, Range};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tests::{Home, Model, QUICK, eventually};
use url::Url;

/// The end of the third line cannot be guessed.
const LEDGER: &str = "pub fn post(ledger: &mut Ledger) {
    let accounts = ledger.accounts_of_customer(customer_id);
    let balance = ledger.balance_with_walrus_9173(&accounts);
}
";

/// The same up to the cursor, which is at the end of the third line.
const CLOSE: &str = "pub fn post(ledger: &mut Ledger) {
    let accounts = ledger.accounts_of_customer(customer_id);
    let balance = ledger.balance
}
";

const CANARY: &str = "walrus_9173";
const REST: &str = "_with_walrus_9173(&accounts);";

struct Project {
    root: PathBuf,
    home: Home,
    editor: Client,
    _folder: TempDir,
}

/// An editor that has a folder with these files open, and one more that is empty.
fn project(files: &[(&str, &str)], lsp: &[&str]) -> Project {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for (name, text) in files {
        fs::write(root.join(name), text).unwrap();
    }
    // The gate would weigh the copy against what a small model says here.
    let settings = format!("{QUICK}completion.memory = true\nlab.always_copy = true\n");
    let home = Home::with(Model::Smol, &settings);
    let editor = Client::spawn(home.hone().args(lsp)).unwrap();
    editor.initialize_in(&[], Some(&root)).unwrap();
    let project = Project { root, home, editor, _folder: folder };
    project.wait_for_index();
    project
}

impl Project {
    fn wait_for_index(&self) {
        eventually("the folder is indexed", || {
            self.home.status()["workspaces"][0]["state"] == "ready"
        });
    }

    fn uri(&self, name: &str) -> String {
        Url::from_file_path(self.root.join(name)).unwrap().to_string()
    }

    fn open(&self, name: &str, text: &str) -> String {
        let uri = self.uri(name);
        self.editor.open(&uri, "rust", text).unwrap();
        uri
    }

    /// What is offered as the user types.
    fn offered(&self, uri: &str, at: Position) -> String {
        let items = self.editor.inline_completion(uri, at, TriggerKind::Automatic).unwrap();
        items.into_iter().map(|item| item.insert_text).collect()
    }

    fn last(&self) -> Completion {
        self.home.completions().pop().expect("a completion is recorded")
    }
}

/// The end of a line.
fn end_of(text: &str, line: usize) -> Position {
    let character = text.lines().nth(line).unwrap_or_default().len() as u32;
    Position { line: line as u32, character }
}

fn name(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[test]
fn a_line_of_the_folder_is_offered_and_the_record_says_where_it_is_from() {
    let project = project(&[("ledger.rs", LEDGER)], &["lsp", "--manual-clock"]);
    let close = project.open("close.rs", CLOSE);
    assert_eq!(project.offered(&close, end_of(CLOSE, 2)), REST);
    let record = project.last();
    let copied = record.copied.expect("it is a copy");
    assert_eq!((copied.source, copied.places), (CopySource::Repository, 1));
    assert_eq!(record.context, [name(&project.root.join("ledger.rs"))], "forgetting goes by it");
    assert_eq!(record.shown, REST);
    // The model has read it, and the tokens give the text.
    assert!(record.tokens.iter().all(|token| token.logprob <= 1e-3) && !record.tokens.is_empty());
    let report: serde_json::Value =
        serde_json::from_str(&project.home.output(&["report", "--json"])).unwrap();
    assert_eq!(report["copied"]["shown"], 1, "{report}");
}

#[test]
fn without_the_setting_nothing_is_copied() {
    let project = project(&[("ledger.rs", LEDGER)], &["lsp", "--manual-clock"]);
    project.home.output(&["config", "set", "completion.memory", "false"]);
    let close = project.open("close.rs", CLOSE);
    assert!(!project.offered(&close, end_of(CLOSE, 2)).contains(CANARY));
    assert_eq!(project.last().copied, None);
}

/// The user sees a copy, and forgets the file that it is from. What is on screen goes with the next
/// key, and no byte of the file comes again: not while typing along, not at another place, not
/// after the file is written again, and not from the next daemon.
#[test]
fn no_byte_of_a_forgotten_file_is_offered_again() {
    let mut project = project(&[("ledger.rs", LEDGER)], &["lsp", "--manual-clock"]);
    let close = project.open("close.rs", CLOSE);
    let cursor = end_of(CLOSE, 2);
    assert_eq!(project.offered(&close, cursor), REST);
    let ledger = project.root.join("ledger.rs");
    project.home.output(&["forget", "--file", &name(&ledger), "--yes"]);
    let typed = Range { start: cursor, end: cursor };
    project.editor.change(&close, Some(typed), "_").unwrap();
    let behind = Position { character: cursor.character + 1, ..cursor };
    assert!(!project.offered(&close, behind).contains("with_walrus"), "typed along");
    let events = project.home.output(&["events", "--json", "--with-code"]);
    assert!(!events.contains(CANARY), "the log has forgotten it too");
    fs::write(&ledger, format!("// changed\n{LEDGER}")).unwrap();
    let other = project.open("other.rs", CLOSE);
    assert!(!project.offered(&other, cursor).contains(CANARY), "another place");
    project.home.output(&["stop"]);
    project.editor = Client::spawn(project.home.hone().args(["lsp", "--manual-clock"])).unwrap();
    project.editor.initialize_in(&[], Some(&project.root)).unwrap();
    project.wait_for_index();
    let again = project.open("again.rs", CLOSE);
    assert!(!project.offered(&again, cursor).contains(CANARY), "the next daemon");
}

/// Another program changes a file. The old line is offered no more, and the new one is.
#[test]
fn a_file_that_changes_is_copied_as_it_is_now() {
    let project = project(&[("ledger.rs", LEDGER)], &["lsp", "--manual-clock"]);
    let ledger = project.root.join("ledger.rs");
    fs::write(&ledger, LEDGER.replace(CANARY, "otter_4410")).unwrap();
    let uri = project.uri("ledger.rs");
    let changed = serde_json::json!({"changes": [{"uri": uri, "type": 2}]});
    project.editor.notify("workspace/didChangeWatchedFiles", changed).unwrap();
    let mut number = 0;
    eventually("the new line is offered", || {
        number += 1;
        let close = project.open(&format!("close{number}.rs"), CLOSE);
        let offered = project.offered(&close, end_of(CLOSE, 2));
        project.editor.close(&close).unwrap();
        offered == REST.replace(CANARY, "otter_4410")
    });
}

/// Files that repeat themselves, data, minified and generated code. None of them breaks anything,
/// and what is offered is a line that a person may want.
#[test]
fn strange_files_are_no_trouble() {
    let digits: String = (0..700_000).map(|number| format!("{}", number % 9_973)).collect();
    let minified = format!("{}\n", "a(b,c);d=e(f);g(h,i);".repeat(20_000));
    let line = "    push(item_of_the_list, other_item_of_the_list, 1);\n";
    let repeated = line.repeat(18_000);
    let lock = "[[package]]\nname = \"serde\"\nchecksum = \"0123456789abcdef\"\n\n".repeat(4_000);
    let project = project(
        &[
            ("digits.rs", &digits),
            ("app.min.js", &minified),
            ("minified.js", &minified),
            ("repeated.rs", &repeated),
            ("Cargo.lock", &lock),
            ("ledger.rs", LEDGER),
        ],
        &["lsp", "--manual-clock"],
    );
    let close = project.open("close.rs", CLOSE);
    assert_eq!(project.offered(&close, end_of(CLOSE, 2)), REST);
    let ends = |text: &str| Position { line: 0, character: text.len() as u32 };
    let in_digits = &digits[..200];
    let page = project.open("page.rs", in_digits);
    project.offered(&page, ends(in_digits));
    assert_eq!(project.last().copied, None, "data is no line of code");
    let in_minified = &minified[..210];
    let script = project.open("script.js", in_minified);
    project.offered(&script, ends(in_minified));
    assert_eq!(project.last().copied, None, "a line of 400 KB is not offered");
    let (typed, rest) = line.split_at(30);
    let list_text = format!("{}{typed}", line.repeat(3));
    let list = project.open("list.rs", &list_text);
    let offered = project.offered(&list, end_of(&list_text, 3));
    assert!(offered.is_empty() || offered == rest.trim_end(), "{offered}");
}

/// The model has read nothing of this long file, and the copy would be offered whatever it says. So
/// nobody waits for the model. Its record has no tokens, and learning leaves it out.
#[test]
fn a_certain_copy_does_not_wait_for_a_cold_prompt() {
    let project = project(&[("ledger.rs", LEDGER)], &["lsp"]);
    let above: String =
        (0..60).map(|n| format!("fn helper_{n}(x: u32) -> u32 {{ x }}\n")).collect();
    let text = format!("{above}{CLOSE}");
    let close = project.open("close.rs", &text);
    let cursor = end_of(&text, 62);
    assert_eq!(project.offered(&close, cursor), REST);
    let record = project.last();
    assert!(record.copied.is_some() && record.tokens.is_empty(), "{record:?}");
    assert_eq!((record.timing.prompt_evaluated, record.shown.as_str()), (0, REST));
    // While the user types along, only the rest of it is on screen, though the model is ready.
    let typed = Range { start: cursor, end: cursor };
    project.editor.change(&close, Some(typed), "_wi").unwrap();
    let behind = Position { character: cursor.character + 3, ..cursor };
    assert_eq!(project.offered(&close, behind), REST[3..]);
}
