//! `hone rehearse --next-edits`: a history is made as edits, and the server's next edits are taken
//! where the author made them.

use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};
use tempfile::TempDir;
use tests::git::git;
use tests::{Model, hone};

/// The calls of a file, after a renaming of the first ones.
fn calls(name: &str, others: &str) -> String {
    let call = |i| format!("    file.{}({i});\n", if i <= 5 { name } else { others });
    format!("fn all(file: &File) {{\n{}}}\n", (1..=8).map(call).collect::<String>())
}

/// A commit that renames five of eight calls and deletes a line in another file.
fn repository() -> TempDir {
    let repo = TempDir::new().unwrap();
    git(repo.path(), &["init", "--quiet"]);
    for (message, name, other) in
        [("before", "load", "one\ntwo\nthree\n"), ("after", "fetch", "one\nthree\n")]
    {
        fs::write(repo.path().join("a.rs"), calls(name, "load")).unwrap();
        fs::write(repo.path().join("b.py"), other).unwrap();
        git(repo.path(), &["add", "."]);
        git(repo.path(), &["commit", "--quiet", "-m", message]);
    }
    repo
}

#[test]
fn edits_that_the_author_made_are_taken_and_others_are_rejected() {
    let repo = repository();
    let mut command = Command::new(hone());
    command.args(["rehearse", "--next-edits", "--json", "--author", "Ada", "--repo"]);
    command.arg(repo.path()).arg("--model").arg(Model::Smol.file());
    command.args(["--template", "prefix-only"]).stderr(Stdio::inherit());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    let all: Value = serde_json::from_slice(&output.stdout).expect("--json prints JSON");
    let figures = &all[0];
    // Two calls are renamed by hand and three by next edits; the line in the other file goes too.
    // The sixth call is offered, and again from the other file. Then its rule has ended.
    let counts = ["commits", "places", "done", "partly", "shown", "right"];
    let counts = counts.map(|name| figures[name].as_u64().expect(name));
    assert_eq!(counts, [2, 6, 3, 0, 5, 3], "{figures}");
    assert!(figures["keys_saved"].as_i64().unwrap() > 0, "{figures}");
}
