//! The log-probs of the same tokens under the same model file and adapter: by the engine, which
//! runs llama.cpp, and by the learner. The tests of this package compare them for every
//! architecture that the learner computes. It is a package of its own because no program links
//! both.

use completion::prompt::FimPrompt;
use engine::llama::{LlamaConfig, LlamaEngine};
use engine::{Engine, Generated, Request, ScorePrompt, ScoreRequest};
use feedback::event::{AdapterVersion, Sampling};
use learner::kernels::matrix;
use learner::machine::threads::Threads;
use learner::model::lm_head::Target;
use learner::model::lora::Lora;
use learner::model::prompt_pass::PromptKv;
use learner::model::{Tail, TailBatch, Transformer};
use models::fim::FimTemplate;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// A sequence, and from which of its tokens on the adapter acts. Behind each of those tokens the
/// first `predicted` tokens of the vocabulary are predicted. Those that end a text are not among
/// them, because the engine counts all of them as one.
pub struct Sequence {
    pub tokens: Vec<u32>,
    pub adapter_from: usize,
    pub predicted: u32,
}

impl Sequence {
    /// The number of tokens before each place.
    fn places(&self) -> impl Iterator<Item = usize> {
        self.adapter_from + 1..=self.tokens.len()
    }
}

/// An engine that computes on one thread of the CPU.
pub fn engine(path: &Path, template: &'static FimTemplate) -> LlamaEngine {
    let config = LlamaConfig::on_cpu(path, template, 1, 64);
    LlamaEngine::load(&config).expect("llama.cpp loads the model")
}

/// An adapter whose B is not zero, so that it changes what is said.
pub fn adapter(model: &Transformer<f32>, rank: usize) -> Lora {
    let mut lora = Lora::fresh(&model.shape, rank, 8.0, 3).expect("an adapter fits the model");
    let mut random = StdRng::seed_from_u64(4);
    for layer in lora.layers.iter_mut().flatten() {
        let (rows, width) = layer.b.dims2().expect("B is a matrix");
        let b = (0..rows * width).map(|_| random.random_range(-0.3..0.3)).collect();
        layer.b = matrix::<f32>(b, rows, width).expect("the numbers fit the matrix");
    }
    lora
}

/// A token that is predicted as the engine samples at temperature 1.
pub fn target(token: u32) -> Target {
    Target { token, equivalents: [].into(), temperature: 1.0, allowed: None }
}

/// Returns what the engine answers behind the lines of a prefix and the beginning of a line.
pub fn generate(
    engine: &mut LlamaEngine,
    [prefix, line]: [&str; 2],
    adapter: AdapterVersion,
    temperature: f32,
    seed: u64,
) -> Generated {
    let (prefix, line, suffix) = (prefix.into(), line.into(), "cd".into());
    let prompt = FimPrompt { prefix, line, suffix, ..FimPrompt::default() };
    let sampling = Sampling { temperature, seed };
    let request = Request { adapter, sampling, ..Request::line(prompt, 12) };
    engine.generate(&request, &AtomicBool::default()).expect("llama.cpp answers")
}

/// The log-probs of the predicted tokens at all places by llama.cpp.
pub fn served(engine: &mut LlamaEngine, sequence: &Sequence, adapter: AdapterVersion) -> Vec<f32> {
    let mut logprobs = Vec::new();
    for place in sequence.places() {
        for token in 0..sequence.predicted {
            let request = ScoreRequest {
                prompt: ScorePrompt::Tokens {
                    prompt: sequence.tokens[..place].to_vec(),
                    adapter_from: sequence.adapter_from,
                },
                healing: String::new(),
                tokens: vec![token],
                adapters: vec![adapter],
            };
            let scores = engine.score(&request, &AtomicBool::default());
            logprobs.push(scores.expect("llama.cpp scores a token")[0].logprob);
        }
    }
    logprobs
}

/// The same by the learner.
pub fn learned(model: &Transformer<f32>, sequence: &Sequence, lora: Option<&Lora>) -> Vec<f32> {
    let (prompt, tail) = sequence.tokens.split_at(sequence.adapter_from);
    let kv = PromptKv::compute(model, &[prompt], None, &Threads::fixed(1), |_| Ok(()));
    let kv = kv.expect("the learner computes a prompt");
    let tails: Vec<Tail> = sequence
        .places()
        .flat_map(|place| (0..sequence.predicted).map(move |token| (place, token)))
        .map(|(place, token)| Tail {
            place: kv.place(0),
            past: prompt.len(),
            tokens: tail[..place - prompt.len()].to_vec(),
            targets: vec![target(token)],
            experts: vec![],
        })
        .collect();
    let logprobs = model.logprobs(lora, &TailBatch::new(&tails), &kv);
    logprobs.expect("the learner computes log-probs")
}

/// The mean and the largest absolute difference.
pub fn difference(a: &[f32], b: &[f32]) -> (f64, f64) {
    assert_eq!(a.len(), b.len());
    let differences = a.iter().zip(b).map(|(a, b)| f64::from((a - b).abs()));
    let (sum, largest) = differences.fold((0.0, 0f64), |(sum, largest), difference| {
        (sum + difference, if difference > largest { difference } else { largest })
    });
    (sum / a.len() as f64, largest)
}
