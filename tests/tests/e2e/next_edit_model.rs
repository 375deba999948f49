//! A model for next edits next to the one that completes. The weights that are made for it cannot
//! be had here, so a model for completions stands in: whatever it writes, what is offered fits the
//! text, every request ends, and no key waits for it.

use rehearsal::client::{Client, Pending, TriggerKind};
use rehearsal::document::{Document, Encoding, Position, Range};
use serde_json::{Value, json};
use tests::{Home, Model, QUICK};

const TEXT: &str = "\
def total(cart):
    price = 0
    for item in cart:
        price = price + item.price
    return price


def show(cart):
    print(total(cart))
    print(len(cart))
";

fn home() -> Home {
    let home = Home::with(
        Model::Smol,
        &format!(
            "{QUICK}completion.next_edit = \"on\"\n\
             completion.next_edit_model = \"qwen2.5-coder-0.5b\"\n"
        ),
    );
    home.add(Model::Qwen);
    home
}

/// A document in an editor.
struct Open<'a> {
    editor: &'a Client,
    uri: String,
    document: Document,
    version: i32,
}

impl<'a> Open<'a> {
    fn new(editor: &'a Client, name: &str) -> Open<'a> {
        let uri = format!("file:///project/{name}.py");
        editor.open(&uri, "python", TEXT).unwrap();
        let document = Document::new(TEXT.to_owned(), Encoding::Utf16);
        Open { editor, uri, document, version: 1 }
    }

    /// Replaces the first such text, and returns the place behind it.
    fn replace(&mut self, old: &str, new: &str) -> Position {
        let start = self.document.text().find(old).expect(old);
        let range = self.document.replace(start, start + old.len(), new);
        self.editor.change(&self.uri, Some(range), new).unwrap();
        self.version += 1;
        self.document.position(start + new.len())
    }

    fn ask(&self, position: Position) -> Pending {
        let document = json!({ "uri": self.uri, "version": self.version });
        let params = json!({ "textDocument": document, "position": position });
        self.editor.request_async("textDocument/copilotInlineEdit", params).unwrap()
    }

    /// Checks that an answer offers nothing, or an edit that fits the text and changes it.
    fn check(&self, answer: &Value) -> bool {
        let edits = answer["edits"].as_array().expect("a list");
        let reason = answer["_hone"]["reason"].as_str().expect("a reason");
        let Some(edit) = edits.first() else {
            assert_eq!(reason, "model_silent", "{answer}");
            return false;
        };
        assert_eq!(edit["textDocument"], json!({ "uri": self.uri, "version": self.version }));
        let range: Range = serde_json::from_value(edit["range"].clone()).unwrap();
        let place = self.document.offset(range.start)..self.document.offset(range.end);
        assert_eq!(edit["_hone"]["old"], self.document.text()[place]);
        assert_ne!(edit["_hone"]["old"], edit["text"], "it changes something");
        true
    }
}

#[test]
fn whatever_the_model_writes_what_is_offered_fits_and_every_request_ends() {
    let home = home();
    let editor = home.editor();
    let changes = [("price = 0", "price = 0.0"), ("def total(cart):", "def total(cart, tax):")];
    for (at, (old, new)) in changes.into_iter().enumerate() {
        let mut open = Open::new(&editor, &format!("file{at}"));
        let cursor = open.replace(old, new);
        let answer = editor.wait(open.ask(cursor)).unwrap();
        open.check(&answer);
    }
    let why: Value = serde_json::from_str(&home.output(&["why", "--all", "--json"])).unwrap();
    let reasons: Vec<&str> =
        why.as_array().unwrap().iter().filter_map(|one| one["why"]["reason"].as_str()).collect();
    assert_eq!(reasons.len(), changes.len());
    assert!(reasons.iter().all(|why| ["shown", "model_silent"].contains(why)), "{reasons:?}");
}

#[test]
fn keys_and_completions_end_what_the_model_computes() {
    let home = home();
    let editor = home.editor();
    let mut open = Open::new(&editor, "typed");
    let mut asked = vec![];
    for at in 0..6 {
        let (old, new) = (format!("0{}", "1".repeat(at)), format!("0{}", "1".repeat(at + 1)));
        let cursor = open.replace(&format!("price = {old}"), &format!("price = {new}"));
        asked.push(open.ask(cursor));
        let answer = editor.inline_completion(&open.uri, cursor, TriggerKind::Invoked);
        answer.expect("a completion is answered");
    }
    let last = asked.pop().expect("the last request");
    for pending in asked {
        let answer = editor.wait(pending).unwrap();
        assert_eq!(answer["_hone"]["reason"], "superseded", "{answer}");
    }
    let answer = editor.wait(last).unwrap();
    let reason = answer["_hone"]["reason"].as_str().expect("a reason").to_owned();
    assert!(["shown", "model_silent"].contains(&reason.as_str()), "{answer}");
}

#[test]
fn a_model_that_is_not_there_is_told_of_and_completions_work() {
    let home = Home::with(
        Model::Smol,
        &format!(
            "{QUICK}completion.next_edit = \"on\"\n\
             completion.next_edit_model = \"sweep-next-edit-0.5b\"\n"
        ),
    );
    assert_eq!(refused(&home.editor()), "hone model pull sweep-next-edit-0.5b");
    let told = home.output(&["status"]);
    assert!(told.contains("not here: run `hone model pull sweep-next-edit-0.5b`"), "{told}");
    let doctor = home.run(&["doctor"]).stdout;
    let doctor = String::from_utf8(doctor).expect("UTF-8");
    assert!(doctor.contains("`hone model pull sweep-next-edit-0.5b` fetches it"), "{doctor}");
}

/// A wrong name, or a manifest that went, stopped all completions.
#[test]
fn a_model_that_nobody_knows_is_told_of_and_completions_work() {
    let unknown = "completion.next_edit_model = \"sweep-next-edit-9b\"\n";
    let home = Home::with(Model::Smol, &format!("{QUICK}completion.next_edit = \"on\"\n{unknown}"));
    let without_daemon = home.output(&["status"]);
    assert_eq!(refused(&home.editor()), "hone model list");
    for told in [without_daemon, home.output(&["status"])] {
        assert!(told.contains("completion.next_edit_model: unknown model"), "{told}");
        assert!(told.contains("the nearest is sweep-next-edit-"), "{told}");
    }
    let log = home.daemon_log();
    let warnings = log.lines().filter(|line| line.contains(" WARN the model for next edits"));
    assert_eq!(warnings.count(), 1, "{log}");
    let doctor = home.run(&["doctor"]);
    let told = String::from_utf8(doctor.stdout).expect("UTF-8");
    assert!(!doctor.status.success(), "{told}");
    assert!(told.contains("`hone config set completion.next_edit_model NAME`"), "{told}");
}

/// Asks for a next edit, which fails, and for a completion, which does not. Returns the command
/// that the reason names.
fn refused(editor: &Client) -> String {
    let mut open = Open::new(editor, "a");
    let cursor = open.replace("price = 0", "price = 1");
    let answer = editor.wait(open.ask(cursor)).unwrap();
    assert_eq!(answer["_hone"]["reason"], "failed");
    assert_eq!(answer["_hone"]["remedy"], Value::Null, "a restart changes nothing");
    let sentence = answer["_hone"]["sentence"].as_str().expect("a sentence");
    editor.inline_completion(&open.uri, cursor, TriggerKind::Invoked).unwrap();
    sentence.split('`').nth(1).expect(sentence).to_owned()
}

/// A wrong name would bring no next edits, and a model for next edits completes nothing that
/// anybody wants.
#[test]
fn each_setting_takes_only_a_model_for_what_it_names() {
    let home = Home::with(Model::Smol, QUICK);
    let before = home.output(&["config", "get"]);
    let key = "completion.next_edit_model";
    let error = home.error(&["config", "set", key, "sweep-next-edit-9b"]);
    assert!(error.starts_with("completion.next_edit_model: not set: unknown model"), "{error}");
    let error = home.error(&["config", "set", key, "smollm2-135m"]);
    assert!(error.contains("smollm2-135m cannot write next edits, because it"), "{error}");
    for refused in [["model", "use"].as_slice(), &["config", "set", "model.name"]] {
        let error = home.error(&[refused, &["sweep-next-edit-0.5b"]].concat());
        assert!(error.contains("writes next edits and completes no code"), "{error}");
    }
    assert_eq!(home.output(&["config", "get"]), before, "nothing was changed");
    let said = home.output(&["config", "set", key, "sweep-next-edit-0.5b"]);
    let missing = "; it is not here yet; next: `hone model pull sweep-next-edit-0.5b`\n";
    assert!(said.ends_with(missing), "{said}");
    let listed = home.output(&["model", "list", "--json"]);
    assert!(!listed.contains("sweep-next-edit"), "an editor has the user choose from {listed}");
}
