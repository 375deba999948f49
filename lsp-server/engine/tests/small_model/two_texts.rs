//! Two texts that may stand at one place are scored behind one prompt, with the real small model,
//! and no document loses what was computed for its completions.

use crate::{generate, load, prompt, request};
use engine::{Engine, ScorePrompt, ScoreRequest};
use models::fim::template;
use std::sync::atomic::AtomicBool;

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
        (scores[0].logprob, engine.passes() - passes)
    };
    let (likely, first) = logprob("for i in range(20):\n");
    let (unlikely, second) = logprob("for i in walrus(20):\n");
    assert!(likely > unlikely + 1.0, "{likely} {unlikely}");
    assert_eq!((first, second), (1, 0), "the prompt is computed once");

    let generated = generate(&mut engine, &request(prompt(document, "    path = os")));
    assert!(generated.prompt_reused + 2 >= generated.prompt.len() as u32, "{generated:?}");
}
