//! Two texts that may stand at one place are scored behind one prompt, with the real small model,
//! and no document loses what was computed for its completions.

use crate::{generate, load, prompt, request};
use engine::{Engine, EngineError, ScorePrompt, ScoreRequest};
use models::fim::template;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Interruptions after which a score must have ended.
const INTERRUPTIONS_MAX: u64 = 100;

#[test]
fn the_likelier_of_two_texts_is_told_and_completions_keep_their_prompt() {
    let mut engine = load(template("prefix-only").unwrap());
    let document = "import os\nimport sys\n\ndef main():\n";
    generate(&mut engine, &request(prompt(document, "    path =")));

    let place = prompt("# Counts to ten.\nfor i in range(10):\n    print(i)\n", "");
    let tokenizer = engine.tokenizer();
    let mut logprob = |text: &str| {
        let passes = engine.passes();
        let request = ScoreRequest {
            prompt: ScorePrompt::Fim(place.clone()),
            healing: String::new(),
            tokens: tokenizer(text),
            adapters: vec![0],
        };
        let scores = engine.score(&request, &AtomicBool::default()).unwrap();
        // Each place of the text takes one pass.
        let more = engine.passes() - passes - request.tokens.len() as u64;
        (scores[0].logprob, more)
    };
    let (likely, first) = logprob("for i in range(20):\n");
    let (unlikely, second) = logprob("for i in walrus(20):\n");
    assert!(likely > unlikely + 1.0, "{likely} {unlikely}");
    assert!(first > 0 && second <= 1, "the prompt is computed once: {first}, {second}");

    let generated = generate(&mut engine, &request(prompt(document, "    path = os")));
    assert!(generated.prompt_reused + 2 >= generated.prompt.len() as u32, "{generated:?}");
}

#[test]
fn a_score_that_is_interrupted_again_and_again_comes_to_its_end() {
    let engine = || load(template("prefix-only").unwrap());
    let body = "    for name in names:\n        print(name, len(name))\n";
    let place = prompt(&format!("def show(names):\n{}", body.repeat(10)), "");
    let mut whole = engine();
    let request = ScoreRequest {
        prompt: ScorePrompt::Fim(place),
        healing: String::new(),
        tokens: whole.tokenizer()("    return sorted(names)\n"),
        adapters: vec![0, 0],
    };
    let started = Instant::now();
    let expected = whole.score(&request, &AtomicBool::default()).unwrap();
    let slice = started.elapsed() / 4;

    let mut engine = engine();
    let mut interruptions = 0;
    let scores = loop {
        assert!(interruptions < INTERRUPTIONS_MAX, "it begins again each time");
        match engine.score(&request, &set_after(slice)) {
            Ok(scores) => break scores,
            Err(EngineError::Aborted) => interruptions += 1,
            Err(error) => panic!("{error}"),
        }
    };
    assert!(interruptions > 0);
    for (score, expected) in scores.iter().zip(&expected) {
        assert!((score.logprob - expected.logprob).abs() < 1e-2, "{score:?} {expected:?}");
        assert_eq!(score.is_greedy, expected.is_greedy);
    }
    // An interruption costs what was under way, and the logits of the place before.
    let more = engine.passes() - whole.passes();
    assert!(more <= 2 * interruptions, "{more} passes more, {interruptions} interruptions");
}

/// A flag that another thread sets after this time.
fn set_after(time: Duration) -> Arc<AtomicBool> {
    let flag = Arc::<AtomicBool>::default();
    let set = flag.clone();
    std::thread::spawn(move || {
        std::thread::sleep(time);
        set.store(true, Ordering::Relaxed);
    });
    flag
}
