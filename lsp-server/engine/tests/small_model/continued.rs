//! Files are continued by the real small model, and what was computed of the first ones stays.

use crate::load;
use engine::continuation::{Continuation, Enough};
use engine::{Engine, EngineError};
use models::fim::{FileTexts, FimKind, FimTemplate};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The model's own token for a file, without tokens for a completion.
static FILES: FimTemplate = FimTemplate {
    name: "files",
    kind: FimKind::PrefixOnly,
    files: Some(FileTexts { repo: Some("<repo_name>"), file: "<file_sep>" }),
    stop: &["<|endoftext|>", "<file_sep>"],
};

fn request(files: &[&str], max_tokens: usize) -> Continuation {
    let files = files.iter().map(|file| (*file).to_owned()).collect();
    let budget = Duration::from_secs(300);
    Continuation { files, max_tokens, budget, enough: Enough::default() }
}

#[test]
fn the_last_file_is_continued_and_the_first_ones_are_computed_once() {
    let mut engine = load(&FILES);
    let go = AtomicBool::default();
    let head = format!("a.py\n{}", "import os\n".repeat(12));
    let lines: String = (1..5).map(|at| format!("count({at})\n")).collect();
    let first = request(&[&head, &format!("b.py\n{lines}count(")], 3);
    let answer = engine.continued(&first, &go).unwrap();
    assert!(answer.text.starts_with('5'), "{answer:?}");
    assert_eq!((answer.tokens, answer.is_whole, answer.prompt_reused), (3, false, 0));
    assert_eq!(answer.logprobs.len(), 3);
    assert_eq!(answer.logprobs[2].0, answer.text.len());
    assert!(answer.logprobs.iter().all(|(_, logprob)| *logprob <= 0.0), "{answer:?}");
    let again = engine.continued(&first, &go).unwrap();
    assert_eq!(again.text, answer.text);
    assert!(again.prompt_reused + 1 >= answer.prompt_evaluated, "{again:?}");
    let second = request(&[&head, "c.py\nimport "], 3);
    let other = engine.continued(&second, &go).unwrap();
    assert!(other.prompt_reused >= 30, "the first file is the same: {other:?}");
}

#[test]
fn what_is_copied_takes_few_passes_and_is_the_same_text() {
    let mut engine = load(&FILES);
    let go = AtomicBool::default();
    let lines = "alpha = load()\nbeta = total(alpha)\nshow(beta, alpha)\nsave(beta)\n";
    let mut continued = |count: usize| {
        let request = request(&[&format!("a.py\n{lines}"), "b.py\nalpha = load()\nbeta"], count);
        let before = engine.passes();
        let answer = engine.continued(&request, &go).unwrap();
        (answer, engine.passes() - before)
    };
    let (whole, passes) = continued(18);
    assert!(whole.text.starts_with(" = total(alpha)\nshow(beta, alpha)\n"), "{whole:?}");
    assert!(passes <= u64::from(whole.tokens) / 2, "{passes} passes: {whole:?}");
    for count in 1..18 {
        let (part, _) = continued(count);
        assert!(whole.text.starts_with(&part.text), "{count}: {part:?}");
        let same = |(a, b): (&(usize, f32), &(usize, f32))| a.0 == b.0 && (a.1 - b.1).abs() < 0.1;
        assert!(part.logprobs.iter().zip(&whole.logprobs).all(same), "{part:?}, {whole:?}");
    }
}

#[test]
fn an_answer_ends_at_a_line_where_it_is_enough() {
    let mut engine = load(&FILES);
    let go = AtomicBool::default();
    let lines = "alpha = load()\nbeta = total(alpha)\nshow(beta, alpha)\nsave(beta)\n";
    let all = request(&[&format!("a.py\n{lines}"), "b.py\nalpha = load()\nbeta"], 18);
    let asked = Arc::new(Mutex::new(vec![]));
    let seen = asked.clone();
    let enough = Enough::when(move |text| {
        seen.lock().push(text.to_owned());
        text.contains("show")
    });
    let part = engine.continued(&Continuation { enough, ..all.clone() }, &go).unwrap();
    assert_eq!(
        (part.text.as_str(), part.is_whole),
        (" = total(alpha)\nshow(beta, alpha)\n", false)
    );
    assert_eq!(*asked.lock(), [" = total(alpha)\n", part.text.as_str()]);
}

#[test]
fn the_first_files_make_room_and_an_interrupt_ends_it() {
    let mut engine = load(&FILES);
    let long = "import os\n".repeat(300);
    let request = request(&[&long, "b.py\ncount(1)\ncount("], 3);
    let answer = engine.continued(&request, &AtomicBool::default()).unwrap();
    assert!(answer.prompt_evaluated < 30, "{answer:?}");
    let stopped = engine.continued(
        &Continuation { files: vec!["c.py\n".repeat(60)], ..request.clone() },
        &AtomicBool::new(true),
    );
    assert!(matches!(stopped, Err(EngineError::Aborted)), "{stopped:?}");
    let alone = Continuation { files: vec![long], ..request };
    let error = engine.continued(&alone, &AtomicBool::default()).unwrap_err();
    assert_eq!(error.to_string(), "the model cannot read a text of this length");
}

#[test]
fn a_model_without_a_token_for_files_says_so() {
    let mut engine = load(models::fim::template("prefix-only").unwrap());
    let error = engine.continued(&request(&["a"], 1), &AtomicBool::default()).unwrap_err();
    assert_eq!(error.to_string(), "the model reads no files");
}
