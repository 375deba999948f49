//! A draft makes decoding faster and changes nothing of what is said: with the real small model,
//! behind healed text, with and without an adapter, whether the draft fits, fits at first, or is
//! wrong.

use crate::{load, prompt};
use completion::prompt::FimPrompt;
use engine::llama::LlamaEngine;
use engine::{Answer, Draft, Engine, Generated, Request};
use feedback::event::AdapterVersion;
use models::adapter::{LoraAdapter, LoraPair};
use models::fim::template;
use std::time::Duration;

/// What stands before the cursor: the line, and what healing has cut of it.
const PLACES: &[(&str, &str, &str)] = &[
    ("def add(a, b):\n", "   ", " return"),
    ("import os\nimport sys\n\ndef main():\n", "    path =", " os.pa"),
    ("for i in range(10):\n", "   ", " pri"),
    ("fn main() {\n    let mut list = Vec::new();\n", "    list", ".pu"),
    ("days = ['Monday', 'Tuesday',", " 'Wednesday',", " 'Thu"),
];

/// How far a log-prob may differ, in nats. llama.cpp rounds activations to 8 bits, and the rounding
/// depends on the batch.
const NOISE: f32 = 0.3;

const ROWS: usize = 576;
const RANK: usize = 4;

/// An engine with an adapter that changes what is said: version 1.
fn engine() -> LlamaEngine {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("v1.gguf");
    let noise = |count: usize, size: f32| -> Vec<f32> {
        (0..count).map(|index| size * (index as f32 * 12.9898).sin()).collect()
    };
    let query = LoraPair {
        name: "blk.0.attn_q.weight".into(),
        rows_out: ROWS,
        rows_in: ROWS,
        a: noise(RANK * ROWS, 0.01),
        b: noise(ROWS * RANK, 500.0),
    };
    let adapter = LoraAdapter {
        architecture: "llama".into(),
        base_sha256: String::new(),
        rank: RANK,
        shared_rank: 0,
        alpha: 8.0,
        invocation: vec![],
        pairs: vec![query],
    };
    adapter.write(&file).unwrap();
    let mut engine = load(template("prefix-only").unwrap());
    engine.load_adapter(1, &file, &[]).unwrap();
    engine
}

fn request(place: usize, adapter: AdapterVersion, draft: Option<(&str, bool)>) -> Request {
    let (prefix, line, healing) = PLACES[place];
    let draft = draft.map(|(text, is_scored)| Draft {
        text: text.into(),
        is_scored,
        is_certain: false,
        wait: Duration::MAX,
    });
    let prompt = FimPrompt { healing: healing.into(), ..prompt(prefix, line) };
    Request { adapter, max_tokens: 12, draft, ..crate::request(prompt) }
}

/// The answer, and the passes that it took.
fn generate(engine: &mut LlamaEngine, request: &Request) -> (Generated, u64) {
    let passes = engine.passes();
    (crate::generate(engine, request), engine.passes() - passes)
}

/// Answers a prompt that has nothing in common with the places, so that the next request computes
/// its own prompt and remembers no answer.
fn forget(engine: &mut LlamaEngine) {
    for number in 0..4 {
        let mut other = request(0, 0, None);
        other.prompt.prefix = format!("{number} other text\n");
        other.max_tokens = 1;
        generate(engine, &other);
    }
}

fn said(answer: &Answer, place: usize) -> String {
    let healing = PLACES[place].2.len();
    String::from_utf8_lossy(&answer.text[healing..]).trim_end_matches('\n').to_owned()
}

#[test]
fn a_draft_changes_nothing_of_what_greedy_decoding_says() {
    let mut engine = engine();
    let (mut plain_passes, mut fitting_passes) = (0, 0);
    for adapter in [0, 1] {
        for place in 0..PLACES.len() {
            forget(&mut engine);
            let (plain, passes) = generate(&mut engine, &request(place, adapter, None));
            let own = said(&plain.answers[0], place);
            let half: String = own.chars().take(own.chars().count() / 2).collect();
            let drafts = [own.clone(), format!("{half} zebra(walrus)"), "zebra walrus".into()];
            for (index, draft) in drafts.iter().enumerate() {
                forget(&mut engine);
                let wanted = Some((draft.as_str(), index == 1));
                let (drafted, with_draft) = generate(&mut engine, &request(place, adapter, wanted));
                let (plain, drafted) = (&plain.answers[0], &drafted.answers[0]);
                assert_eq!(plain.text, drafted.text, "place {place}, v{adapter}, draft {index}");
                let pairs = plain.tokens.iter().zip(&drafted.tokens);
                for (plain, drafted) in pairs {
                    assert_eq!(plain.id, drafted.id);
                    assert!((plain.logprob - drafted.logprob).abs() < NOISE);
                }
                assert!(with_draft <= passes, "a draft costs no more passes");
                if index == 0 {
                    plain_passes += passes;
                    fitting_passes += with_draft;
                }
            }
        }
    }
    assert!(fitting_passes * 2 < plain_passes, "{fitting_passes} of {plain_passes} passes");
}

/// Its log-probs are those that the model gives to the same tokens when it says them.
#[test]
fn a_scored_draft_is_as_likely_as_the_same_text_from_the_model() {
    let mut engine = engine();
    for place in 0..PLACES.len() {
        forget(&mut engine);
        let mut wanted = request(place, 0, None);
        // The line must end by itself, because a draft always does.
        wanted.max_tokens = 32;
        let (plain, _) = generate(&mut engine, &wanted);
        let plain = &plain.answers[0];
        let own = said(plain, place);
        forget(&mut engine);
        let (scored, _) = generate(&mut engine, &request(place, 0, Some((&own, true))));
        let scored = scored.draft.expect("it is scored");
        assert_eq!(said(&scored, place), own);
        assert_eq!(scored.healed, plain.healed);
        for (own, scored) in plain.tokens.iter().zip(&scored.tokens) {
            if own.id != scored.id {
                break;
            }
            assert!((own.logprob - scored.logprob).abs() < NOISE, "place {place}");
        }
    }
}

#[test]
fn a_certain_draft_is_scored_alone_and_a_cold_prompt_is_not_waited_for() {
    let mut engine = engine();
    let mut certain = request(1, 0, Some((".walrus(zebra)", true)));
    if let Some(draft) = &mut certain.draft {
        draft.is_certain = true;
        draft.wait = Duration::ZERO;
    }
    let (cold, passes) = generate(&mut engine, &certain);
    assert_eq!((cold.answers.len(), cold.draft.is_none(), passes), (0, true, 0));
    assert!(!cold.prompt.is_empty(), "its tokens are known, for the record");
    if let Some(draft) = &mut certain.draft {
        draft.wait = Duration::MAX;
    }
    let (warm, _) = generate(&mut engine, &certain);
    assert_eq!(warm.answers.len(), 0, "the model would have said something else");
    let text = warm.draft.expect("it is scored").text;
    assert_eq!(String::from_utf8_lossy(&text), " os.pa.walrus(zebra)\n");
}
