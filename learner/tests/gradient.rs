//! The hand-written forward and backward, in f64, against slow definitions.

mod common;

use common::{ARCHITECTURES, adapter, model, shape};
use learner::head::Target;
use learner::kernels::{matrix, values};
use learner::lora::Lora;
use learner::model::{Model, Tail, TailBatch};
use learner::prompt::PromptKv;
use learner::threads::Threads;
use models::disk_cache::DiskCache as Shelf;
use std::sync::Arc;

/// Two prompts that share a prefix.
const PROMPTS: [&[u32]; 2] = [&[1, 2, 3, 16, 5], &[1, 2, 3, 9]];

fn target(token: u32) -> Target {
    Target { token, equivalents: [].into(), temperature: 1.0, allowed: None }
}

/// Two tails of different length and start; one token under a healing mask that
/// spans two vocabulary blocks, one at another temperature.
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

/// Weights of the log-probs in the test's loss.
const LOSS: [f64; 5] = [0.7, -1.3, 0.4, 1.1, -0.6];

fn loss(model: &Model<f64>, lora: &Lora, batch: &TailBatch, kv: &PromptKv) -> f64 {
    let logprobs = model.logprobs(Some(lora), batch, kv).unwrap();
    logprobs.iter().zip(LOSS).map(|(logprob, weight)| logprob * weight).sum()
}

#[test]
fn a_shelf_gives_the_bits_that_were_computed() {
    let model = model::<f32>(ARCHITECTURES[0], 1);
    let folder = tempfile::TempDir::new().unwrap();
    let shelf = || Shelf::new(folder.path(), "learner").unwrap();
    let compute = |prompts: &[&[u32]], shelf: Option<&mut Shelf>| {
        PromptKv::compute(&model, prompts, shelf, &Threads::fixed(2), |_| Ok(())).unwrap()
    };
    let bits = |kv: &PromptKv, prompt: usize| -> Vec<u32> {
        let layers = (0..model.shape.layers).map(|layer| {
            let (k, v) = kv.prefix::<f32>(kv.place(prompt), layer).unwrap().unwrap();
            [values::<f32>(&k).unwrap(), values::<f32>(&v).unwrap()].concat()
        });
        layers.flatten().map(f32::to_bits).collect()
    };
    let plain = compute(&PROMPTS, None);
    // One prompt lies there, and was computed without its neighbours.
    compute(&PROMPTS[..1], Some(&mut shelf()));
    let half = compute(&PROMPTS, Some(&mut shelf()));
    let whole = compute(&PROMPTS, Some(&mut shelf()));
    for prompt in 0..PROMPTS.len() {
        assert_eq!(bits(&half, prompt), bits(&plain, prompt));
        assert_eq!(bits(&whole, prompt), bits(&plain, prompt));
    }
    assert!(std::fs::read_dir(folder.path()).unwrap().count() > 1, "nothing lies there");
    let twice = compute(&[PROMPTS[0], &[], PROMPTS[0]], Some(&mut shelf()));
    assert_eq!(bits(&twice, 2), bits(&plain, 0));
    assert_eq!(twice.place(0), twice.place(2), "held once");
    for file in std::fs::read_dir(folder.path()).unwrap() {
        std::fs::write(file.unwrap().path(), b"short").unwrap();
    }
    assert_eq!(
        bits(&compute(&PROMPTS, Some(&mut shelf())), 1),
        bits(&plain, 1),
        "damaged: computed"
    );
}

/// Every value of every pair, both architectures. Central differences of step
/// 1e-5 are off by about 1e-10 relative to gradients of order 1.
#[test]
fn every_lora_gradient_matches_central_differences() {
    const STEP: f64 = 1e-5;
    const TOLERANCE: f64 = 1e-7;
    for architecture in ARCHITECTURES {
        let model = model::<f64>(architecture, 1);
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
                    "{architecture}, tensor {index}, value {at}: {numeric} but {}",
                    gradient[index][at]
                );
                largest = largest.max(numeric.abs());
            }
        }
        assert!(largest > 0.01, "the loss must depend on the adapter at all");
    }
}

/// The same tokens as one tail without a prompt, under the base: the split into
/// prompt pass and tail must not show.
#[test]
fn prompt_and_tail_compute_what_one_sequence_does() {
    for architecture in ARCHITECTURES {
        let model = model::<f64>(architecture, 3);
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
            assert!((split - expected).abs() < 1e-12, "{architecture}: {split} but {expected}");
        }
    }
}

#[test]
fn probabilities_of_all_allowed_tokens_add_up_to_one() {
    let model = model::<f64>("llama", 4);
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
    assert!((together - sum).abs() < 1e-12, "any of them: {together}, {sum}");
}

/// A mask of one token leaves nothing to decide.
#[test]
fn a_forced_token_has_logprob_zero_and_no_gradient() {
    let model = model::<f64>("qwen2", 5);
    let lora = adapter::<f64>(&shape("qwen2"), 2, 6);
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

/// A new adapter is the base, to the last bit; the update may then skip one of
/// the two reference passes.
#[test]
fn a_fresh_adapter_changes_no_bit() {
    for architecture in ARCHITECTURES {
        let model = model::<f32>(architecture, 7);
        let lora = Lora::fresh(&model.shape, 3, 6.0, 8).unwrap();
        let kv = PromptKv::compute(&model, &PROMPTS, None, &Threads::fixed(2), |_| Ok(())).unwrap();
        let batch = batch(&kv);
        let base = model.logprobs(None, &batch, &kv).unwrap();
        assert_eq!(model.logprobs(Some(&lora), &batch, &kv).unwrap(), base);
        assert_eq!(model.forward(&lora, &batch, &kv).unwrap().logprobs, base);
    }
}
