//! Two texts that may stand at one place are scored behind one prompt, with the real small model,
//! and no document loses what was computed for its completions.

mod small_model;

use completion::prompt::FimPrompt;
use completion::stop_rule::StopRule;
use engine::{Engine, Request, ScorePrompt, ScoreRequest};
use feedback::event::Sampling;
use models::fim::template;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

fn prompt(prefix: &str, line: &str) -> FimPrompt {
    FimPrompt {
        context: None,
        prefix: prefix.into(),
        typed: String::new(),
        line: line.into(),
        healing: String::new(),
        suffix: String::new(),
    }
}

#[test]
fn the_likelier_of_two_texts_is_told_and_completions_keep_their_prompt() {
    let mut engine = small_model::load(template("prefix-only").unwrap());
    let abort = AtomicBool::default();
    let request = Request {
        prompt: prompt("import os\nimport sys\n\ndef main():\n", "    path ="),
        adapter: 0,
        sampling: Sampling::GREEDY,
        stop_rule: StopRule::LINE,
        max_tokens: 4,
        budget: Duration::from_secs(300),
        min_probability: 0.0,
        alternatives: 0,
        context_wait: Duration::MAX,
        draft: None,
    };
    engine.generate(&request, &abort).unwrap();

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
        let scores = engine.score(&request, &abort).unwrap();
        (scores[0].logprob, engine.passes() - passes)
    };
    let (likely, first) = logprob("for i in range(20):\n");
    let (unlikely, second) = logprob("for i in walrus(20):\n");
    assert!(likely > unlikely + 1.0, "{likely} {unlikely}");
    assert_eq!((first, second), (1, 0), "the prompt is computed once");

    let longer = Request {
        prompt: prompt("import os\nimport sys\n\ndef main():\n", "    path = os"),
        ..request
    };
    let generated = engine.generate(&longer, &abort).unwrap();
    assert!(generated.prompt_reused + 2 >= generated.prompt.len() as u32, "{generated:?}");
}
