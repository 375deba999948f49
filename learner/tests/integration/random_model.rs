//! Models with random weights (`models::random_model`), as the learner reads them.

use learner::machine::threads::Threads;
use learner::model::lm_head::Target;
use learner::model::load::load;
use learner::model::prompt_pass::PromptKv;
use learner::model::weights::{DOWN, Q, V, Weight};
use learner::model::{Tail, TailBatch};
use models::gguf::Gguf;
use models::random_model::{self, Shape, Speech};
use std::sync::Arc;

const SHAPE: Shape = Shape {
    layers: 9,
    width: 256,
    heads: 4,
    kv_heads: 2,
    head_width: 64,
    feed_forward: 512,
    experts: None,
    context: 64,
    has_output: true,
};

/// The root of the mean square of all values, relative to `expected`.
fn spread(weight: &Weight, expected: f32) -> f32 {
    let rows: Vec<u32> = (0..weight.rows().unwrap() as u32).collect();
    let values = weight.rows_of::<f32>(&rows).unwrap();
    let mean = values.iter().sum::<f32>() / values.len() as f32;
    assert!(mean.abs() < 0.05 * expected, "the mean is {mean}");
    (values.iter().map(|v| v * v).sum::<f32>() / values.len() as f32).sqrt() / expected
}

#[test]
fn a_random_model_has_weights_of_the_size_of_a_real_one_and_finite_log_probs() {
    let folder = tempfile::tempdir().unwrap();
    let (like, out) = (folder.path().join("like.gguf"), folder.path().join("out.gguf"));
    crate::common::write_gguf(&like, "qwen2", 1);
    random_model::write(&Gguf::open(&like).unwrap(), &SHAPE, Speech::Words, 1, 2, &out).unwrap();
    let model = load(&Gguf::open(&out).unwrap()).unwrap();

    // Layer 0 has the formats with more bits, layer 1 those with fewer.
    let added = (2.0 * SHAPE.layers as f32).sqrt();
    for (layer, map, expected) in [
        (0, Q, 1.0 / 16.0),
        (0, V, 1.0 / 16.0),
        (1, V, 1.0 / 16.0),
        (0, DOWN, 1.0 / (512f32.sqrt() * added)),
        (1, DOWN, 1.0 / (512f32.sqrt() * added)),
    ] {
        let ratio = spread(&model.layers[layer].maps[map].weight, expected);
        assert!((0.95..1.05).contains(&ratio), "layer {layer}, map {map}: {ratio}");
    }

    let threads = Threads::fixed(2);
    let prompt = [1, 2, 3, 4, 5];
    let kv = PromptKv::compute(&model, &[&prompt], None, &threads, |_| Ok(())).unwrap();
    let target =
        |token| Target { token, equivalents: Arc::from([]), temperature: 1.0, allowed: None };
    let tail = Tail {
        place: kv.place(0),
        past: prompt.len(),
        tokens: vec![6, 7, 21],
        targets: vec![target(7), target(21), target(22)],
        experts: vec![],
    };
    let logprobs = model.logprobs(None, &TailBatch::new([&tail]), &kv).unwrap();
    assert!(logprobs.iter().all(|logprob| logprob.is_finite() && *logprob < 0.0), "{logprobs:?}");
}
