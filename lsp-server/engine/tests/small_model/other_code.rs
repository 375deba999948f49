//! Prompts that show other code, with the real small model: they are computed in advance with it
//! and without it, so that a request waits for neither.

use crate::{generate, load, request};
use completion::document::Source;
use completion::prompt::{Excerpt, FimPrompt, PromptContext};
use engine::llama::LlamaEngine;
use engine::{Engine, Generated, Request};
use models::fim::{FileTexts, FimKind, FimTemplate};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The small model's vocabulary has tokens for files, though its own template shows it none.
static SEVERAL_FILES: FimTemplate = FimTemplate {
    name: "several-files",
    kind: FimKind::PrefixOnly,
    files: Some(FileTexts { repo: Some("<repo_name>"), file: "<file_sep>" }),
    stop: &["<|endoftext|>"],
};

/// The most tokens that a request computes of a prompt that was computed in advance: those of the
/// current line.
const LINE_TOKENS_MAX: u32 = 8;

fn prompt(document: &str, other_code: &str) -> FimPrompt {
    let lines = |name: &str| -> String {
        (0..8).map(|number| format!("let {name}_{number} = open({number});\n")).collect()
    };
    let excerpt = Excerpt {
        source: Source { path: format!("/p/{other_code}.rs"), language: "rust".into() },
        path: format!("{other_code}.rs"),
        text: lines(other_code),
    };
    let context = PromptContext {
        repository: "p".into(),
        excerpts: vec![excerpt],
        changes: vec![],
        path: format!("{document}.rs"),
    };
    let context = Some(Arc::new(context));
    FimPrompt { context, ..crate::prompt(&lines(document), "let ") }
}

/// The answer to somebody who waits for other code no longer than for nothing.
fn ask(engine: &mut LlamaEngine, prompt: &FimPrompt) -> Generated {
    let asked = Request { context_wait: Duration::ZERO, ..request(prompt.clone()) };
    generate(engine, &asked)
}

fn warm(engine: &mut LlamaEngine, prompt: &FimPrompt) {
    engine.warm(prompt, &AtomicBool::default()).unwrap();
}

#[test]
fn a_prompt_is_computed_with_its_other_code_and_without() {
    let mut engine = load(&SEVERAL_FILES);
    warm(&mut engine, &prompt("here", "library"));
    let whole = ask(&mut engine, &prompt("here", "library"));
    assert!(!whole.without_context);
    assert!(whole.prompt_evaluated <= LINE_TOKENS_MAX, "{}", whole.prompt_evaluated);
    let cold = ask(&mut engine, &prompt("here", "other"));
    assert!(cold.without_context, "what was chosen since then is not there yet");
    assert!(cold.prompt_evaluated <= LINE_TOKENS_MAX, "{}", cold.prompt_evaluated);
}

#[test]
fn other_code_that_is_chosen_again_takes_no_room_from_another_document() {
    let mut engine = load(&SEVERAL_FILES);
    warm(&mut engine, &prompt("there", "library"));
    for other_code in ["one", "two", "three", "four"] {
        warm(&mut engine, &prompt("here", other_code));
    }
    let back = ask(&mut engine, &prompt("there", "library"));
    assert!(!back.without_context);
    assert!(back.prompt_evaluated <= LINE_TOKENS_MAX, "{}", back.prompt_evaluated);
}
