//! Compares the hand-written forward and backward passes, in f64, with slow definitions, and in f32
//! with those without rounding.

use crate::common::{adapter, model};
use feedback::experts::NOT_CHOSEN;
use learner::kernels::int8_dot::Int8Unit;
use learner::kernels::{matrix, values};
use learner::machine::threads::Threads;
use learner::model::known_prompts::KnownPrompts;
use learner::model::lm_head::Target;
use learner::model::load::load;
use learner::model::lora::Lora;
use learner::model::prompt_pass::PromptKv;
use learner::model::{Tail, TailBatch, Transformer};
use models::disk_cache::DiskCache;
use models::gguf::Gguf;
use models::random_model::tiny::{FORMS, Matrices, Sizes, form};
use std::sync::Arc;

/// Two prompts that share a prefix.
const PROMPTS: [&[u32]; 2] = [&[1, 2, 3, 16, 5], &[1, 2, 3, 9]];

fn target(token: u32) -> Target {
    Target { token, equivalents: [].into(), temperature: 1.0, allowed: None }
}

/// Two tails with different lengths and starts. One token has a healing mask that spans two
/// vocabulary blocks, one has another temperature, and one has equivalents.
fn tails(kv: &PromptKv) -> [Tail; 2] {
    let healed = Target { allowed: Some(Arc::from([3, 8, 9, 14])), ..target(9) };
    let sharp = Target { temperature: 0.7, ..target(17) };
    let either = Target { equivalents: Arc::from([1, 15]), ..target(4) };
    [
        Tail {
            place: kv.place(0),
            past: 5,
            tokens: vec![8, 9, 6],
            targets: vec![healed, target(6), target(2)],
            experts: vec![],
        },
        Tail {
            place: kv.place(1),
            past: 4,
            tokens: vec![8, 9, 4, 4],
            targets: vec![either, sharp],
            experts: vec![],
        },
    ]
}

fn batch(kv: &PromptKv) -> TailBatch {
    TailBatch::new(&tails(kv))
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
    let cache = || {
        let shared = DiskCache::new(folder.path(), "learner").unwrap();
        KnownPrompts::new(Some(shared), None)
    };
    let compute = |prompts: &[&[u32]], cache: Option<&mut KnownPrompts>| {
        let open = cache.as_ref().map(|cache| cache.open(&model, prompts));
        let kv = PromptKv::compute(&model, prompts, open, &Threads::fixed(2), |_| Ok(())).unwrap();
        if let Some(cache) = cache {
            cache.keep(prompts, |index| kv.computed(index)).unwrap();
        }
        kv
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
    assert_eq!(twice.place(0), twice.place(2), "the same prompt is opened once");
    assert_eq!(twice.rows, 0, "nothing of a known prompt stays in memory");
    for file in std::fs::read_dir(folder.path()).unwrap() {
        std::fs::write(file.unwrap().path(), b"short").unwrap();
    }
    assert_eq!(
        bits(&compute(&PROMPTS, Some(&mut cache())), 1),
        bits(&plain, 1),
        "a damaged file is not used"
    );
    let open = cache().open(&model, &PROMPTS);
    for file in std::fs::read_dir(folder.path()).unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }
    let removed = PromptKv::compute(&model, &PROMPTS, Some(open), &Threads::fixed(2), |_| Ok(()));
    let removed = removed.unwrap();
    assert_eq!(removed.known, 2);
    assert_eq!(bits(&removed, 1), bits(&plain, 1), "a removed file can still be read");
}

/// Checks the gradient of every matrix of an adapter along random directions of length 1, as
/// PyTorch's `gradcheck` does in its fast mode. A wrong value shows in all of them: of its error in
/// a matrix of N values, 1/√N is left. Central differences with a step of 1e-5 have an error of
/// about 1e-10 for gradients of order 1.
fn check_gradient(name: &str, model: &Transformer<f64>, batch: &TailBatch, kv: &PromptKv) {
    const STEP: f64 = 1e-5;
    const TOLERANCE: f64 = 1e-8;
    const DIRECTIONS: u64 = 3;
    let mut lora = adapter::<f64>(&model.shape, 2, 2);
    let gradient = model.forward(&lora, batch, kv).unwrap().backward(&LOSS).unwrap();
    let gradient: Vec<Vec<f64>> =
        gradient.iter().flat_map(|pair| [&pair.a, &pair.b]).map(|t| values(t).unwrap()).collect();
    let tensors: Vec<_> = lora.tensors().cloned().collect();
    let mut largest = 0f64;
    for (index, tensor) in tensors.iter().enumerate() {
        let (rows, width) = tensor.dims2().unwrap();
        for seed in 0..DIRECTIONS {
            let direction = direction(rows * width, seed);
            let mut moved = |step: f64| {
                let mut changed = tensors.clone();
                let mut numbers = values::<f64>(tensor).unwrap();
                numbers
                    .iter_mut()
                    .zip(&direction)
                    .for_each(|(number, part)| *number += step * part);
                changed[index] = matrix(numbers, rows, width).unwrap();
                lora.replace(changed);
                loss(model, &lora, batch, kv)
            };
            let numeric = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
            let exact: f64 = gradient[index].iter().zip(&direction).map(|(g, d)| g * d).sum();
            assert!(
                (numeric - exact).abs() < TOLERANCE,
                "{name}, tensor {index}, direction {seed}: {numeric} but {exact}"
            );
            largest = largest.max(numeric.abs());
        }
    }
    assert!(largest > 0.01, "the loss must depend on the adapter at all");
}

/// A vector of length 1 whose values have random signs (by splitmix64) and equal size.
fn direction(values: usize, seed: u64) -> Vec<f64> {
    let size = (values as f64).sqrt().recip();
    let sign = |at: usize| {
        let mut bits = (seed << 32 | at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        if (bits ^ (bits >> 31)) & 1 == 0 { size } else { -size }
    };
    (0..values).map(sign).collect()
}

/// For every form of every architecture.
#[test]
fn every_lora_gradient_matches_central_differences() {
    for form in FORMS {
        let model = model::<f64>(form, 1);
        let kv = PromptKv::compute(&model, &PROMPTS, None, &Threads::fixed(2), |_| Ok(())).unwrap();
        check_gradient(form.name, &model, &batch(&kv), &kv);
    }
}

/// The server chose experts that the router finds unlikely, which makes all weights count.
#[test]
fn the_gradient_through_recorded_experts_matches_central_differences() {
    let model = model::<f64>(form("qwen3moe").unwrap(), 1);
    let layout = model.shape.expert_layout().unwrap();
    let (used, layers) = (usize::from(layout.used), usize::from(layout.layers));
    let kv = PromptKv::compute(&model, &PROMPTS, None, &Threads::fixed(2), |_| Ok(())).unwrap();
    let mut tails = tails(&kv);
    // In each row and layer the experts i, i + 1 and i + 2 with another i. The last row has none.
    let rows = tails[0].tokens.len() - 1;
    let first = (0..rows * layers).map(|place| (5 * place as u16 + 1) % layout.experts);
    let ids = first.flat_map(|first| (0..layout.used).map(move |i| (first + i) % layout.experts));
    let mut experts: Vec<u16> = ids.collect();
    // The server did not compute the first row in its last layer.
    experts[used..2 * used].fill(NOT_CHOSEN);
    tails[0].experts = experts.clone();
    let recorded = TailBatch::new(&tails);
    check_gradient("qwen3moe", &model, &recorded, &kv);

    let lora = adapter::<f64>(&model.shape, 2, 2);
    let pass = model.forward(&lora, &recorded, &kv).unwrap();
    let unrecorded = batch(&kv);
    let live = model.forward(&lora, &unrecorded, &kv).unwrap();
    for (layer, (chosen, live)) in pass.chosen_experts().zip(live.chosen_experts()).enumerate() {
        for row in 0..rows {
            let place = row * used..(row + 1) * used;
            let recorded = &experts[(row * layers + layer) * used..][..used];
            if recorded[0] == NOT_CHOSEN {
                continue;
            }
            assert_eq!(&chosen[place.clone()], recorded, "row {row} of layer {layer}");
            assert_ne!(&live[place], recorded, "the record changes nothing");
        }
        // The second tail has no record.
        assert_eq!(chosen.len(), 7 * used);
    }
    let of_last = |pass: &learner::model::ForwardPass<f64>| pass.logprobs[3..].to_vec();
    assert_eq!(of_last(&pass), of_last(&live), "a record concerns its own tail only");
    assert_ne!(pass.logprobs[..3], live.logprobs[..3]);
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
            let tail = Tail { place: empty.place(0), past: 0, tokens, targets, experts: vec![] };
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
            let tail = Tail {
                place: kv.place(0),
                past: 5,
                tokens: vec![8],
                targets: vec![target],
                experts: vec![],
            };
            model.logprobs(None, &TailBatch::new([&tail]), &kv).unwrap()[0].exp()
        };
        tokens.iter().map(probability).sum()
    };
    let some: Vec<u32> = vec![0, 6, 7, 13, 17];
    assert!((sum(&some, Some(Arc::from(some.as_slice()))) - 1.0).abs() < 1e-12);
    let all: Vec<u32> = (0..model.shape.vocabulary as u32).collect();
    assert!((sum(&all, None) - 1.0).abs() < 1e-9);
    let together = Target { equivalents: Arc::from([13, 6, 17]), ..target(0) };
    let tail = Tail {
        place: kv.place(0),
        past: 5,
        tokens: vec![8],
        targets: vec![together],
        experts: vec![],
    };
    let together = model.logprobs(None, &TailBatch::new([&tail]), &kv).unwrap()[0].exp();
    let one_by_one = |token: &u32| {
        let targets = vec![target(*token)];
        let tail = Tail { place: kv.place(0), past: 5, tokens: vec![8], targets, experts: vec![] };
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
    let tail = Tail {
        place: kv.place(1),
        past: 4,
        tokens: vec![8],
        targets: vec![forced],
        experts: vec![],
    };
    let batch = TailBatch::new([&tail]);
    let pass = model.forward(&lora, &batch, &kv).unwrap();
    assert_eq!(pass.logprobs, [0.0]);
    for pair in pass.backward(&[1.0]).unwrap() {
        let zero = |t| values::<f64>(t).unwrap().iter().all(|value| value.abs() < 1e-15);
        assert!(zero(&pair.a) && zero(&pair.b));
    }
}

/// The forward pass rounds activations to 8 bits, and the gradient is that of floats where the
/// rounded pass went.
#[test]
fn the_gradient_of_rounded_activations_has_the_direction_of_that_of_floats() {
    const LOGPROB_OFF: f32 = 0.1;
    const COSINE: f64 = 0.99;
    let loss = LOSS.map(|weight| weight as f32);
    for form in FORMS {
        let file = tempfile::NamedTempFile::new().unwrap();
        form.write(Sizes::SMALL, Matrices::Q8_0, 1, file.path()).unwrap();
        let mut model = load(&Gguf::open(file.path()).unwrap()).unwrap();
        let lora = adapter::<f32>(&model.shape, 2, 2);
        let mut pass = |unit| {
            model.unit = unit;
            let threads = Threads::fixed(2);
            let kv = PromptKv::compute(&model, &PROMPTS, None, &threads, |_| Ok(())).unwrap();
            let batch = batch(&kv);
            let pass = model.forward(&lora, &batch, &kv).unwrap();
            let logprobs = pass.logprobs.clone();
            assert_eq!(model.logprobs(Some(&lora), &batch, &kv).unwrap(), logprobs);
            let pairs = pass.backward(&loss).unwrap();
            let tensors = pairs.iter().flat_map(|pair| [&pair.a, &pair.b]);
            let gradient = tensors.flat_map(|tensor| values::<f32>(tensor).unwrap());
            (logprobs, gradient.map(f64::from).collect::<Vec<_>>())
        };
        let (exact, rounded) = (pass(None), pass(Some(Int8Unit::Portable)));
        assert_ne!(exact.0, rounded.0, "{}: nothing was rounded", form.name);
        let off = exact.0.iter().zip(&rounded.0).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let (a, b) = (&exact.1, &rounded.1);
        let cosine = dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
        println!("{}: log-probs off by {off}, cosine {cosine}", form.name);
        assert!(off < LOGPROB_OFF && cosine > COSINE, "{}: {off}, {cosine}", form.name);
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

/// An adapter of the upper layers is one whose lower layers change nothing, and what is below it
/// need be computed once alone.
#[test]
fn an_adapter_of_the_upper_layers_has_their_gradient_whether_or_not_the_rest_is_kept() {
    for form in FORMS {
        let model = model::<f64>(form, 1);
        let mut whole = adapter::<f64>(&model.shape, 2, 2);
        for pair in &mut whole.layers[0] {
            pair.b = pair.b.zeros_like().unwrap();
        }
        let mut upper = whole.clone();
        let below = std::mem::take(&mut upper.layers[0]).len();
        assert_eq!(upper.first_layer(), 1, "{}", form.name);
        let kv = PromptKv::compute(&model, &PROMPTS, None, &Threads::fixed(2), |_| Ok(())).unwrap();
        let gradient = |lora: &Lora, batch: &TailBatch| {
            let pass = model.forward(lora, batch, &kv).unwrap();
            let logprobs = pass.logprobs.clone();
            let pairs = pass.backward(&LOSS).unwrap();
            let tensors = pairs.iter().flat_map(|pair| [&pair.a, &pair.b]);
            (logprobs, tensors.map(|tensor| values::<f64>(tensor).unwrap()).collect::<Vec<_>>())
        };
        let (logprobs, of_whole) = gradient(&whole, &batch(&kv));
        let expected = (logprobs, of_whole[2 * below..].to_vec());
        assert_eq!(gradient(&upper, &batch(&kv)), expected, "{}", form.name);
        let kept = batch(&kv).adapted_from(1);
        let base = model.logprobs(None, &batch(&kv), &kv).unwrap();
        for _ in 0..2 {
            assert_eq!(gradient(&upper, &kept), expected, "{}", form.name);
            assert_eq!(model.logprobs(None, &kept, &kv).unwrap(), base, "{}", form.name);
        }
        assert!(model.logprobs(Some(&whole), &kept, &kv).is_err(), "it changes what is below");
    }
}

#[test]
fn joined_tails_have_the_log_probs_of_each_alone() {
    let close = |ours: &[f64], expected: &[f64], form: &str| {
        assert_eq!(ours.len(), expected.len(), "{form}");
        let same = ours.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(same, "{form}: {ours:?} for {expected:?}");
    };
    for form in FORMS {
        let model = model::<f64>(form, 1);
        let mut upper = adapter::<f64>(&model.shape, 2, 2);
        upper.layers[0].clear();
        let kv = PromptKv::compute(&model, &PROMPTS, None, &Threads::fixed(2), |_| Ok(())).unwrap();
        let logprobs = |batch: &TailBatch| model.logprobs(Some(&upper), batch, &kv).unwrap();
        let expected = logprobs(&batch(&kv));
        let [first, second] = tails(&kv).map(|tail| TailBatch::new([&tail]).adapted_from(1));
        let joined = TailBatch::joined(&[(&first, 1), (&second, 1)]).unwrap();
        assert_eq!((joined.len(), joined.rows()), (2, 7));
        close(&logprobs(&joined), &expected, form.name);
        let of_first = TailBatch::joined(&[(&joined, 1)]).unwrap();
        close(&logprobs(&of_first), &expected[..3], form.name);
        first.take_below(&joined, 0).unwrap();
        second.take_below(&joined, first.rows()).unwrap();
        close(&logprobs(&first), &expected[..3], form.name);
        let swapped = TailBatch::joined(&[(&second, 1), (&first, 1)]).unwrap();
        close(&logprobs(&swapped), &[&expected[3..], &expected[..3]].concat(), form.name);
    }
}

#[test]
fn an_adapter_of_the_upper_layers_is_the_same_from_its_file() {
    let model = model::<f32>(form("qwen2").unwrap(), 1);
    let mut upper = Lora::fresh(&model.shape, 2, 4.0, 3).unwrap();
    upper.layers[0].clear();
    let mut file = upper.to_adapter(&model.shape, "no checksum", vec![]).unwrap();
    let read = Lora::from_adapter(&file, &model.shape).unwrap();
    assert_eq!(read.first_layer(), 1);
    let bits = |lora: &Lora| lora.tensors().map(|t| values::<f32>(t).unwrap()).collect::<Vec<_>>();
    assert_eq!(bits(&read), bits(&upper));
    file.pairs.pop();
    let refused = Lora::from_adapter(&file, &model.shape).unwrap_err().to_string();
    assert!(refused.contains("whole layers"), "{refused}");
}
