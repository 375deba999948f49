//! Compares the hand-written forward and backward passes, in f64, with slow definitions.

mod common;

use common::{adapter, model};
use learner::kernels::{matrix, values};
use learner::machine::threads::Threads;
use learner::model::lm_head::Target;
use learner::model::lora::Lora;
use learner::model::prompt_pass::PromptKv;
use learner::model::{Tail, TailBatch, Transformer};
use models::disk_cache::DiskCache;
use models::random_model::tiny::{FORMS, form};
use std::sync::Arc;

/// Two prompts that share a prefix.
const PROMPTS: [&[u32]; 2] = [&[1, 2, 3, 16, 5], &[1, 2, 3, 9]];

fn target(token: u32) -> Target {
    Target { token, equivalents: [].into(), temperature: 1.0, allowed: None }
}

/// Two tails with different lengths and starts. One token has a healing mask that spans two
/// vocabulary blocks, one has another temperature, and one has equivalents.
fn batch(kv: &PromptKv) -> TailBatch {
    let healed = Target { allowed: Some(Arc::from([3, 8, 9, 14])), ..target(9) };
    let sharp = Target { temperature: 0.7, ..target(17) };
    let either = Target { equivalents: Arc::from([1, 15]), ..target(4) };
    let tails = [
        Tail {
            place: kv.place(0),
            past: 5,
            tokens: vec![8, 9, 6],
            targets: vec![healed, target(6), target(2)],
        },
        Tail {
            place: kv.place(1),
            past: 4,
            tokens: vec![8, 9, 4, 4],
            targets: vec![either, sharp],
        },
    ];
    TailBatch::new(&tails)
}

/// The weights of the log-probs in the loss of the tests.
const LOSS: [f64; 5] = [0.7, -1.3, 0.4, 1.1, -0.6];

fn loss(model: &Transformer<f64>, lora: &Lora, batch: &TailBatch, kv: &PromptKv) -> f64 {
    let logprobs = model.logprobs(Some(lora), batch, kv).unwrap();
    logprobs.iter().zip(LOSS).map(|(logprob, weight)| logprob * weight).sum()
}

#[test]
fn a_disk_cache_gives_the_bits_that_were_computed() {
    let model = model::<f32>(&FORMS[0], 1);
    let folder = tempfile::TempDir::new().unwrap();
    let cache = || DiskCache::new(folder.path(), "learner").unwrap();
    let compute = |prompts: &[&[u32]], cache: Option<&mut DiskCache>| {
        PromptKv::compute(&model, prompts, cache, &Threads::fixed(2), |_| Ok(())).unwrap()
    };
    let bits = |kv: &PromptKv, prompt: usize| -> Vec<u32> {
        let layers = (0..model.shape.layers).map(|layer| {
            let (k, v) = kv.prefix::<f32>(kv.place(prompt), layer).unwrap().unwrap();
            [values::<f32>(&k).unwrap(), values::<f32>(&v).unwrap()].concat()
        });
        layers.flatten().map(f32::to_bits).collect()
    };
    let plain = compute(&PROMPTS, None);
    // The cache has one of the prompts, which was computed without the other one.
    compute(&PROMPTS[..1], Some(&mut cache()));
    let half = compute(&PROMPTS, Some(&mut cache()));
    let whole = compute(&PROMPTS, Some(&mut cache()));
    for prompt in 0..PROMPTS.len() {
        assert_eq!(bits(&half, prompt), bits(&plain, prompt));
        assert_eq!(bits(&whole, prompt), bits(&plain, prompt));
    }
    assert!(std::fs::read_dir(folder.path()).unwrap().count() > 1, "the cache is empty");
    let twice = compute(&[PROMPTS[0], &[], PROMPTS[0]], Some(&mut cache()));
    assert_eq!(bits(&twice, 2), bits(&plain, 0));
    assert_eq!(twice.place(0), twice.place(2), "the same prompt is in memory once");
    for file in std::fs::read_dir(folder.path()).unwrap() {
        std::fs::write(file.unwrap().path(), b"short").unwrap();
    }
    assert_eq!(
        bits(&compute(&PROMPTS, Some(&mut cache())), 1),
        bits(&plain, 1),
        "a damaged file is not used"
    );
}

/// Checks every value of every pair, for every form of every architecture. Central differences
/// with a step of 1e-5 have an error of about 1e-10 for gradients of order 1.
#[test]
fn every_lora_gradient_matches_central_differences() {
    const STEP: f64 = 1e-5;
    const TOLERANCE: f64 = 1e-7;
    for form in FORMS {
        let model = model::<f64>(form, 1);
        let mut lora = adapter::<f64>(&model.shape, 2, 2);
        let kv = PromptKv::compute(&model, &PROMPTS, None, &Threads::fixed(2), |_| Ok(())).unwrap();
        let batch = batch(&kv);
        let gradient = model.forward(&lora, &batch, &kv).unwrap().backward(&LOSS).unwrap();
        let gradient: Vec<Vec<f64>> = gradient
            .iter()
            .flat_map(|pair| [&pair.a, &pair.b])
            .map(|t| values(t).unwrap())
            .collect();
        let tensors: Vec<_> = lora.tensors().cloned().collect();
        let mut largest = 0f64;
        for (index, tensor) in tensors.iter().enumerate() {
            let (rows, width) = tensor.dims2().unwrap();
            for at in 0..rows * width {
                let mut moved = |step: f64| {
                    let mut changed = tensors.clone();
                    let mut numbers = values::<f64>(tensor).unwrap();
                    numbers[at] += step;
                    changed[index] = matrix(numbers, rows, width).unwrap();
                    lora.replace(changed);
                    loss(&model, &lora, &batch, &kv)
                };
                let numeric = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
                let error = (numeric - gradient[index][at]).abs();
                assert!(
                    error < TOLERANCE,
                    "{}, tensor {index}, value {at}: {numeric} but {}",
                    form.name,
                    gradient[index][at]
                );
                largest = largest.max(numeric.abs());
            }
        }
        assert!(largest > 0.01, "the loss must depend on the adapter at all");
    }
}

/// The same tokens as one tail without a prompt give the same log-probs under the base: the
/// split into prompt and tail makes no difference.
#[test]
fn prompt_and_tail_compute_what_one_sequence_does() {
    for form in FORMS {
        let model = model::<f64>(form, 3);
        let kv = PromptKv::compute(&model, &PROMPTS, None, &Threads::fixed(2), |_| Ok(())).unwrap();
        let split = model.logprobs(None, &batch(&kv), &kv).unwrap();
        let empty =
            PromptKv::compute(&model, &[&[][..]], None, &Threads::fixed(2), |_| Ok(())).unwrap();
        let whole = |prompt: &[u32], tokens: &[u32], targets: Vec<Target>| {
            let tokens = [prompt, tokens].concat();
            let tail = Tail { place: empty.place(0), past: 0, tokens, targets };
            model.logprobs(None, &TailBatch::new([&tail]), &empty).unwrap()
        };
        let healed = Target { allowed: Some(Arc::from([3, 8, 9, 14])), ..target(9) };
        let sharp = Target { temperature: 0.7, ..target(17) };
        let mut expected = whole(PROMPTS[0], &[8, 9, 6], vec![healed, target(6), target(2)]);
        let either = Target { equivalents: Arc::from([1, 15]), ..target(4) };
        expected.extend(whole(PROMPTS[1], &[8, 9, 4, 4], vec![either, sharp]));
        for (split, expected) in split.iter().zip(&expected) {
            assert!((split - expected).abs() < 1e-12, "{}: {split} but {expected}", form.name);
        }
    }
}

#[test]
fn probabilities_of_all_allowed_tokens_add_up_to_one() {
    let model = model::<f64>(form("llama").unwrap(), 4);
    let kv = PromptKv::compute(&model, &PROMPTS, None, &Threads::fixed(2), |_| Ok(())).unwrap();
    let sum = |tokens: &[u32], allowed: Option<Arc<[u32]>>| -> f64 {
        let probability = |token: &u32| {
            let target = Target { temperature: 0.5, allowed: allowed.clone(), ..target(*token) };
            let tail = Tail { place: kv.place(0), past: 5, tokens: vec![8], targets: vec![target] };
            model.logprobs(None, &TailBatch::new([&tail]), &kv).unwrap()[0].exp()
        };
        tokens.iter().map(probability).sum()
    };
    let some: Vec<u32> = vec![0, 6, 7, 13, 17];
    assert!((sum(&some, Some(Arc::from(some.as_slice()))) - 1.0).abs() < 1e-12);
    let all: Vec<u32> = (0..model.shape.vocabulary as u32).collect();
    assert!((sum(&all, None) - 1.0).abs() < 1e-9);
    let together = Target { equivalents: Arc::from([13, 6, 17]), ..target(0) };
    let tail = Tail { place: kv.place(0), past: 5, tokens: vec![8], targets: vec![together] };
    let together = model.logprobs(None, &TailBatch::new([&tail]), &kv).unwrap()[0].exp();
    let one_by_one = |token: &u32| {
        let targets = vec![target(*token)];
        let tail = Tail { place: kv.place(0), past: 5, tokens: vec![8], targets };
        model.logprobs(None, &TailBatch::new([&tail]), &kv).unwrap()[0].exp()
    };
    let sum: f64 = [0, 6, 13, 17].iter().map(one_by_one).sum();
    assert!((together - sum).abs() < 1e-12, "{together} together, {sum} one by one");
}

/// With a mask of one token there is no choice.
#[test]
fn a_forced_token_has_logprob_zero_and_no_gradient() {
    let model = model::<f64>(form("qwen2").unwrap(), 5);
    let lora = adapter::<f64>(&model.shape, 2, 6);
    let kv = PromptKv::compute(&model, &PROMPTS, None, &Threads::fixed(2), |_| Ok(())).unwrap();
    let forced = Target { allowed: Some(Arc::from([9])), ..target(9) };
    let tail = Tail { place: kv.place(1), past: 4, tokens: vec![8], targets: vec![forced] };
    let batch = TailBatch::new([&tail]);
    let pass = model.forward(&lora, &batch, &kv).unwrap();
    assert_eq!(pass.logprobs, [0.0]);
    for pair in pass.backward(&[1.0]).unwrap() {
        let zero = |t| values::<f64>(t).unwrap().iter().all(|value| value.abs() < 1e-15);
        assert!(zero(&pair.a) && zero(&pair.b));
    }
}

/// A fresh adapter gives exactly the log-probs of the base. An update relies on this when it
/// computes only one of the two reference passes.
#[test]
fn a_fresh_adapter_changes_no_bit() {
    for form in FORMS {
        let model = model::<f32>(form, 7);
        let lora = Lora::fresh(&model.shape, 3, 6.0, 8).unwrap();
        let kv = PromptKv::compute(&model, &PROMPTS, None, &Threads::fixed(2), |_| Ok(())).unwrap();
        let batch = batch(&kv);
        let base = model.logprobs(None, &batch, &kv).unwrap();
        assert_eq!(model.logprobs(Some(&lora), &batch, &kv).unwrap(), base);
        assert_eq!(model.forward(&lora, &batch, &kv).unwrap().logprobs, base);
    }
}
