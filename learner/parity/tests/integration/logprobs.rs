//! The learner and llama.cpp agree about the log-probs of every form of every architecture, of the
//! base and with an adapter.

use engine::Engine;
use learner::model::load::load;
use models::fim::template;
use models::gguf::Gguf;
use models::random_model::tiny::{FORMS, Form, Matrices, Sizes, TOKENS};
use parity::{Sequence, adapter, difference, engine, learned, served};

/// The largest mean of all absolute differences, in nats. llama.cpp computes in f32
/// here, with keys and values of 16 bits.
const MEAN_OF_F32_MAX: f64 = 0.002;

/// The same for 16-bit matrices. llama.cpp rounds activations to 16 bits then.
const MEAN_OF_F16_MAX: f64 = 0.002;

/// The same for 8-bit matrices. Both round activations to 8 bits then.
const MEAN_OF_Q8_0_MAX: f64 = 0.03;

/// The least that the adapter of the test changes in the mean, in nats.
const ADAPTER_CHANGES_MIN: f64 = 0.1;

fn check(form: &Form, matrices: Matrices, mean_max: f64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.gguf");
    form.write(Sizes::SMALL, matrices, 5, &path).unwrap();
    let model = load(&Gguf::open(&path).unwrap()).unwrap();
    let sequence = Sequence {
        tokens: vec![37, 1, 2, 34, 25, 0, 28, 38, 29, 30, 39, 20, 7, 9, 27, 31, 32],
        adapter_from: 10,
        predicted: TOKENS.iter().position(|token| token.starts_with("<|")).unwrap() as u32,
    };
    let mut engine = engine(&path, template("qwen2.5-coder").unwrap());

    let base = served(&mut engine, &sequence, 0);
    let (mean, largest) = difference(&base, &learned(&model, &sequence, None));
    println!("{}, {matrices:?}, base: mean {mean:.6}, largest {largest:.6}", form.name);
    assert!(mean <= mean_max, "{}: {mean}", form.name);

    let lora = adapter(&model, 4);
    let file = folder.path().join("adapter.gguf");
    lora.to_adapter(&model.shape, "no checksum", vec![]).unwrap().write(&file).unwrap();
    engine.load_adapter(1, &file, &[]).unwrap();
    let adapted = served(&mut engine, &sequence, 1);
    let (mean, largest) = difference(&adapted, &learned(&model, &sequence, Some(&lora)));
    println!("{}, {matrices:?}, adapter: mean {mean:.6}, largest {largest:.6}", form.name);
    assert!(mean <= mean_max, "{} with an adapter: {mean}", form.name);
    let (changed, _) = difference(&adapted, &base);
    assert!(changed > ADAPTER_CHANGES_MIN, "{}: the adapter changes {changed}", form.name);
}

#[test]
fn the_learner_agrees_with_llama_cpp_on_f32_weights() {
    for form in FORMS {
        check(form, Matrices::F32, MEAN_OF_F32_MAX);
    }
}

#[test]
fn the_learner_agrees_with_llama_cpp_on_f16_weights() {
    for form in FORMS {
        check(form, Matrices::F16, MEAN_OF_F16_MAX);
    }
}

#[test]
fn the_learner_agrees_with_llama_cpp_on_8_bit_weights() {
    for form in FORMS {
        check(form, Matrices::Q8_0, MEAN_OF_Q8_0_MAX);
    }
}

/// An architecture without a form would be compared with nothing, and what `hone model list` says
/// of learning must be what the learner does.
#[test]
fn every_architecture_that_learns_has_a_form() {
    let mut computed: Vec<&str> = learner::model::architecture::names().collect();
    let mut listed: Vec<&str> = models::architecture::learned().collect();
    computed.sort_unstable();
    listed.sort_unstable();
    assert_eq!(computed, listed);
    for name in computed {
        assert!(FORMS.iter().any(|form| form.architecture == name), "{name} has no form");
    }
}
