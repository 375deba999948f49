//! The keys and values that the engine hands over are those that the learner computes, for every
//! form of every architecture.

use engine::Engine;
use feedback::event::AdapterVersion;
use learner::machine::threads::Threads;
use learner::model::known_prompts::KnownPrompts;
use learner::model::load::load;
use learner::model::prompt_pass::PromptKv;
use learner::model::{Tail, TailBatch};
use models::disk_cache::DiskCache;
use models::fim::template;
use models::gguf::Gguf;
use models::random_model::tiny::{FORMS, Form, Matrices, Sizes};
use parity::{difference, engine, generate, target};

const BASE: AdapterVersion = 0;

/// The mean of all absolute differences of log-probs, in nats. llama.cpp and the learner compute in
/// f32 here, and keys and values have 16 bits in both.
const MEAN_MAX: f64 = 0.002;

fn check(form: &Form) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.gguf");
    form.write(Sizes::SMALL, Matrices::F32, 5, &path).unwrap();
    let model = load(&Gguf::open(&path).unwrap()).unwrap();
    let mut engine = engine(&path, template("qwen2.5-coder").unwrap());
    let generated = generate(&mut engine, ["ab\ncd\nef\n", "gh"], BASE, 0.0, 1);
    let (prompt, tail) = generated.prompt.split_at(generated.adapter_from);
    let rows = engine.prompt_kv(prompt).unwrap_or_else(|| panic!("{}: nothing", form.name));

    let mut cache = DiskCache::handed(folder.path(), "m").unwrap();
    cache.put(prompt, &rows).unwrap();
    let known = KnownPrompts::new(None, Some(cache));
    let logprobs = |known: Option<&KnownPrompts>| {
        let threads = Threads::fixed(1);
        let known = known.map(|known| known.open(&model, &[prompt]));
        let kv = PromptKv::compute(&model, &[prompt], known, &threads, |_| Ok(())).unwrap();
        let tails: Vec<Tail> = (0..8)
            .map(|token| Tail {
                place: kv.place(0),
                past: prompt.len(),
                tokens: tail.to_vec(),
                targets: vec![target(token)],
                experts: vec![],
            })
            .collect();
        (kv.known, model.logprobs(None, &TailBatch::new(&tails), &kv).unwrap())
    };
    let (taken, handed) = logprobs(Some(&known));
    let (_, computed) = logprobs(None);
    let (mean, largest) = difference(&handed, &computed);
    println!("{}: mean {mean:.6}, largest {largest:.6}", form.name);
    assert_eq!(taken, 1, "{}: the learner does not take it", form.name);
    assert!(mean <= MEAN_MAX, "{}: {mean}", form.name);
}

#[test]
fn what_the_engine_hands_over_is_what_the_learner_computes() {
    for form in FORMS {
        check(form);
    }
}
