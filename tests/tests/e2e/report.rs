//! What the log holds, for others: labels for other programs, rewards of another version, and the
//! report. None of it holds code unless the user asks for it.

use rehearsal::client::Client;
use serde_json::{Value, json};
use tests::buffer::Buffer;
use tests::{Home, Model, QUICK};

const CANARY: &str = "// Canary4410, Canary4410, Canary4410, |\n";

/// Makes three offers: one is accepted, one rejected with Esc, one never seen.
fn judged(editor: &Client) {
    let mut taken = Buffer::open(editor, "taken.rs", CANARY);
    let item = taken.offer();
    taken.accept(&item);
    let item = Buffer::open(editor, "rejected.rs", CANARY).offer();
    editor.did_reject(&item.id, "esc").unwrap();
    let mut unseen = Buffer::open(editor, "unseen.rs", CANARY);
    unseen.complete().expect("an offer");
    unseen.insert("x");
    editor.status().unwrap();
}

/// What was typed is counted with the next completion of the document, and the report sets what
/// Hone wrote against it.
#[test]
fn what_was_typed_is_counted_and_the_report_says_what_was_kept() {
    let home = Home::with(Model::Smol, QUICK);
    let editor = home.editor();
    let mut buffer = Buffer::open(&editor, "typed.rs", CANARY);
    let item = buffer.offer();
    buffer.accept(&item);
    buffer.insert("\n    ");
    buffer.type_text("// Canary4410, ");
    buffer.insert("// Canary4410, which is pasted, ");
    buffer.complete();
    editor.status().unwrap();
    let typed = home
        .completions()
        .iter()
        .map(|c| (c.typed.chars, c.typed.lines))
        .fold((0, 0), |(chars, lines), (more_chars, more_lines)| {
            (chars + more_chars, lines + more_lines)
        });
    assert_eq!(typed, (15, 1), "neither the accepted nor the pasted text is typed");
    let report: Value = serde_json::from_str(&home.output(&["report", "--json"])).unwrap();
    assert_eq!(
        (&report["all"]["typed_chars"], &report["all"]["typed_lines"]),
        (&json!(15), &json!(1))
    );
    assert!(home.output(&["report"]).contains("completions that you kept"));
    // The status says it of what was written lately, which is all of it here.
    let share = (100.0 * report["all"]["kept_share"].as_f64().unwrap()).round();
    let headline = format!("{share} % of what you wrote lately are completions that you kept; 0");
    let status = home.output(&["status"]);
    assert!(status.lines().nth(1).unwrap().contains(&headline), "{status}");
}

fn export(home: &Home, args: &[&str]) -> Vec<Value> {
    let text = home.output(&[&["events", "--verdicts"], args].concat());
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn labels_are_exported_without_code_with_a_daemon_and_without() {
    let home = Home::with(Model::Smol, QUICK);
    let editor = home.editor();
    judged(&editor);
    let lines = export(&home, &[]);
    let kinds: Vec<_> = lines.iter().map(|line| line["outcome"]["kind"].clone()).collect();
    assert_eq!(kinds, ["accepted", "rejected_esc"], "the third offer has no label");
    assert_eq!(
        (&lines[0]["evidence"], &lines[1]["evidence"]),
        (&json!("document"), &json!("client_notice"))
    );
    assert_eq!((&lines[0]["reward"], &lines[1]["reward"]), (&json!(1.0), &json!(0.0)));
    assert_eq!(lines[0]["completion"]["path"], "/project/taken.rs");
    let text = home.output(&["events", "--verdicts"]);
    assert!(!text.contains("Canary") && !text.contains("\"tokens\":["), "{text}");
    let whole = export(&home, &["--with-code"]);
    assert!(whole[0]["completion"]["shown"].as_str().unwrap().contains("Canary"), "{}", whole[0]);

    drop(editor);
    home.output(&["stop"]);
    assert_eq!(export(&home, &[]), lines);
}

#[test]
fn the_report_has_the_counts_of_the_status_and_no_code() {
    let home = Home::with(Model::Smol, QUICK);
    assert!(home.output(&["report"]).contains("nothing is recorded yet"));
    let editor = home.editor();
    judged(&editor);
    let report: Value = serde_json::from_str(&home.output(&["report", "--json"])).unwrap();
    let (all, counts) = (&report["all"], &home.status()["episodes"]);
    assert_eq!(&all["shown"], &counts["total"], "{report}");
    assert_eq!((&all["judged"], &all["accepted"]), (&json!(2), &json!(1)));
    assert_eq!(all["accept"]["rate"], 0.5);
    assert_eq!(report["versions"][0]["name"], "base");
    let table = home.output(&["report"]);
    assert!(table.contains("50 % (9–91)"), "{table}");

    let page = home.path().join("page.html");
    let written = home.output(&["report", "--html", page.to_str().unwrap()]);
    assert_eq!(std::path::Path::new(written.trim()), page.canonicalize().unwrap());
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("<svg"), "{page}");
    for text in [&page, &table, &report.to_string()] {
        assert!(!text.contains("Canary") && !text.contains("taken.rs"), "{text}");
    }
    let error = home.error(&["report", "--html", "/nowhere/at/all.html"]);
    assert!(error.starts_with("/nowhere/at/all.html: cannot be written; name another"), "{error}");
    drop(editor);
    home.output(&["stop"]);
    assert_eq!(home.output(&["report"]), table, "without a daemon too");
}
