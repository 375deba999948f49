//! Many editors insert the closing bracket when the opening one is typed. An offer that closes
//! the bracket itself replaces the inserted one, so that no bracket is closed twice.

use feedback::event::{Evidence, Outcome};
use rehearsal::client::Client;
use serde_json::json;
use tests::buffer::Buffer;
use tests::{Home, Model, QUICK};

/// The small model, which does not see what is behind the cursor, continues it by `4, 5);`.
const SUMS: &str = "sum(1, 2);\nsum(2, 3);\nsum(3, 4);\nsum(|)\n";
const DONE: &str = "sum(1, 2);\nsum(2, 3);\nsum(3, 4);\nsum(4, 5);\n";

fn home() -> Home {
    Home::with(Model::Smol, QUICK)
}

#[test]
fn what_the_editor_closed_is_replaced_by_a_line_that_continues_behind_it() {
    let home = home();
    let editor = home.editor();
    let mut sums = Buffer::open(&editor, "sums.rs", SUMS);
    let item = sums.offer();
    sums.take(&item);
    assert_eq!(sums.text(), DONE, "{item:?}");
    editor.status().expect("a status");
    assert_eq!(home.outcomes(&item.id), [(Outcome::Accepted, Evidence::Document)]);
}

#[test]
fn a_bracket_that_closes_while_typing_along_is_replaced_too() {
    let home = home();
    let editor = home.editor();
    let before = SUMS.replace("sum(|)", "s|");
    let mut sums = Buffer::open(&editor, "sums.rs", &before);
    let first = sums.offer();
    assert_eq!(first.insert_text, "um(4, 5);");
    sums.type_text("um");
    sums.type_pair("()");
    let rest = sums.offer();
    assert_eq!((rest.id.as_str(), rest.insert_text.as_str()), (first.id.as_str(), "4, 5);"));
    sums.take(&rest);
    assert_eq!(sums.text(), DONE, "{rest:?}");
    editor.status().expect("a status");
    assert_eq!(home.outcomes(&first.id), [(Outcome::Accepted, Evidence::Document)]);
}

/// Typing a closing bracket that is there already only moves the cursor.
#[test]
fn a_bracket_that_is_typed_over_is_typed_along() {
    let home = home();
    let editor = home.editor();
    let mut sums = Buffer::open(&editor, "sums.rs", SUMS);
    let item = sums.offer();
    assert_eq!(item.insert_text, "4, 5);");
    sums.type_text("4, 5");
    sums.right(")");
    let rest = sums.offer();
    assert_eq!((rest.id.as_str(), rest.insert_text.as_str()), (item.id.as_str(), ";"));
    sums.type_text(";");
    assert_eq!(sums.text(), DONE);
    editor.status().expect("a status");
    let through = Outcome::TypedThrough { utf16: 6 };
    assert_eq!(home.outcomes(&item.id), [(through, Evidence::Document)]);
}

/// LSP4IJ shows the text in an item's range, and then the item's whole text, so that a bracket
/// stood there twice. It reports nothing: the text alone tells that the offer was accepted.
#[test]
fn an_editor_of_jetbrains_gets_no_bracket_again() {
    let home = home();
    let editor = Client::spawn(home.hone().args(["lsp", "--manual-clock"])).expect("hone runs");
    let client = json!({"name": "IntelliJ IDEA 2026.1", "version": "2026.1 (build IU-261.1)"});
    editor
        .request("initialize", json!({"clientInfo": client, "capabilities": {}}))
        .expect("an answer");
    editor.notify("initialized", json!({})).expect("it is sent");
    let mut sums = Buffer::open(&editor, "sums.rs", SUMS);
    let item = sums.complete().expect("an offer");
    let range = item.range.expect("a range");
    assert_eq!((item.insert_text.as_str(), range.start), ("4, 5", range.end));
    editor.advance_clock(1_000).expect("time passes");
    sums.take(&item);
    assert_eq!(sums.text(), DONE.replacen("4, 5);", "4, 5)", 1));
    editor.status().expect("a status");
    assert_eq!(home.outcomes(&item.id), [(Outcome::Accepted, Evidence::Document)]);
}
