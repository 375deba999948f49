//! `hone learn --history` as its user runs it: interrupted, taken up again, adopted and forgotten.

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use tempfile::TempDir;
use tests::git::git;
use tests::{Home, Model, QUICK, hone};

/// Commits of two files each, which all begin with a habit. The model alone would continue
/// otherwise.
fn repository() -> TempDir {
    let repo = TempDir::new().expect("a folder");
    git(repo.path(), &["init", "--quiet"]);
    for commit in 0..64 {
        for number in [2 * commit, 2 * commit + 1] {
            let text = format!("# part {number}\nimport os\nimport re\nimport sys\n");
            fs::write(repo.path().join(format!("part_{number}.py")), text).expect("written");
        }
        git(repo.path(), &["add", "."]);
        git(repo.path(), &["commit", "--quiet", "-m", "more"]);
    }
    repo
}

fn learn(home: &Home, repo: &TempDir) -> Command {
    let mut command = Command::new(hone());
    command.env("HONE_HOME", home.path()).arg("learn").arg("--history").arg(repo.path());
    command.arg("--progress").stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// The percentages that a run has told, and what it said at its end.
fn told(output: &str) -> (Vec<u64>, String) {
    let (mut percents, mut said) = (vec![], vec![]);
    for line in output.lines() {
        match serde_json::from_str::<Value>(line) {
            Ok(at) => percents.push(at["percent"].as_u64().expect("a percentage")),
            Err(_) => said.push(line),
        }
    }
    (percents, said.join("\n"))
}

#[test]
fn a_history_is_learned_from_and_forgotten() {
    // Few texts are enough with larger steps.
    let home = Home::with(Model::Smol, &format!("{QUICK}\nlab.ppo.learning_rate = 1e-3\n"));
    let repo = repository();

    // The first run ends in its third round of six.
    let mut first = learn(&home, &repo).spawn().expect("it runs");
    let lines = BufReader::new(first.stdout.take().expect("a pipe")).lines();
    for line in lines {
        let (percents, _) = told(&line.expect("a line"));
        if percents.iter().any(|percent| *percent > 27) {
            break;
        }
    }
    first.kill().expect("it is killed");
    first.wait().expect("it has ended");
    let begun = home.path().join("history/begun.json");
    assert!(begun.exists(), "its rounds are kept");

    let second = learn(&home, &repo).output().expect("it runs");
    let (percents, said) = told(&String::from_utf8_lossy(&second.stdout));
    assert!(second.status.success(), "{said}");
    assert!(percents.is_sorted() && percents.last() == Some(&100), "{percents:?}");
    // The first two of six rounds are not done again: they end at 26 %.
    let learned = percents.iter().filter(|percent| (3..=25).contains(*percent)).count();
    assert_eq!(learned, 0, "{percents:?}");
    assert!(said.starts_with("adopted: v1 serves from now on."), "{said}");
    assert!(said.contains("It learned 96 changes"), "{said}");
    assert!(!begun.exists());

    let list: Value = serde_json::from_str(&home.output(&["adapter", "--json"])).unwrap();
    assert_eq!(
        (&list["active"], &list["adapters"][0]["report"]["job"]),
        (&1.into(), &"history".into())
    );
    let shown = home.output(&["adapter", "show"]);
    assert!(shown.contains("the history of"), "{shown}");
    let status = home.output(&["status"]);
    assert!(status.contains("v1, learned from the history of"), "{status}");

    // A daemon serves it, and forgets it with the repository.
    let editor = home.editor();
    assert_eq!(home.status()["adapter"]["active"], 1);
    let elsewhere = TempDir::new().expect("a folder");
    let forget = |folder: &TempDir| {
        let folder = folder.path().to_str().expect("a path");
        home.output(&["forget", "--folder", folder, "--yes", "--json"])
    };
    forget(&elsewhere);
    assert_eq!(home.status()["adapter"]["active"], 1, "it learned nothing there");
    forget(&repo);
    assert_eq!(home.status()["adapter"]["active"], 0);
    assert!(!home.path().join("adapters/v0001.gguf").exists());
    drop(editor);

    // What is forgotten is not learned from again.
    let third = learn(&home, &repo).stderr(Stdio::piped()).output().expect("it runs");
    let why = String::from_utf8_lossy(&third.stderr);
    assert!(!third.status.success() && why.contains("128 are kept private"), "{why}");
}

#[test]
fn a_folder_without_enough_history_is_told() {
    let home = Home::with(Model::Smol, QUICK);
    let repo = TempDir::new().expect("a folder");
    let folder = repo.path().to_str().expect("a path");
    let error = home.error(&["learn", "--history", folder]);
    assert!(error.contains("is not inside a git repository"), "{error}");
    git(repo.path(), &["init", "--quiet"]);
    let error = home.error(&["learn", "--history", folder]);
    assert!(error.contains("has no commit to read"), "{error}");
    fs::write(repo.path().join("a.rs"), "fn main() {}\n").expect("written");
    git(repo.path(), &["add", "."]);
    git(repo.path(), &["commit", "--quiet", "-m", "x"]);
    let error = home.error(&["learn", "--history", folder]);
    assert!(error.contains("it takes 64"), "{error}");
    let error = home.error(&["learn", "--history", folder, "--author", "nobody"]);
    assert!(error.contains("no commit"), "{error}");
}
