//! Compares the passes on an NVIDIA GPU with those on the CPU, for all tiny models that learn
//! there. A machine without a GPU compares them on an emulated one.
#![cfg(feature = "cuda")]

use learner::kernels::{matrix, values};
use learner::machine::threads::Threads;
use learner::model::gpu::{Gpu, GpuModel};
use learner::model::lm_head::Target;
use learner::model::load::load;
use learner::model::lora::Lora;
use learner::model::prompt_pass::PromptKv;
use learner::model::{Tail, TailBatch, Transformer};
use models::gguf::Gguf;
use models::random_model::tiny::{FORMS, Form, Matrices, Sizes};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::process::Command;
use std::sync::Arc;

/// Two prompts that share a prefix, and an empty one.
const PROMPTS: [&[u32]; 3] = [&[1, 2, 3, 16, 5], &[1, 2, 3, 9], &[]];

/// The weights of the log-probs in the loss.
const LOSS: [f32; 6] = [0.7, -1.3, 0.4, 1.1, -0.6, 0.9];

/// A log-prob may be off by this many nats, because a factor of bf16 is off by 0.2 % on average.
const LOGPROB_OFF: f32 = 0.03;

/// The least cosine of the gradient on the GPU with that on the CPU: of a pair, and of the whole.
const COSINE_OF_A_PAIR: f64 = 0.99;
const COSINE: f64 = 0.999;

/// Set where the GPU is an emulated one.
const EMULATED: &str = "HONE_TEST_EMULATED_GPU";

/// The values of an adapter are up to this large.
const ADAPTER: f32 = 0.4;

fn model(form: &Form) -> Transformer<f32> {
    let file = tempfile::NamedTempFile::new().unwrap();
    form.write(Sizes::SMALLEST, Matrices::F32, 1, file.path()).unwrap();
    load(&Gguf::open(file.path()).unwrap()).unwrap()
}

/// An adapter in which neither factor is zero.
fn adapter(model: &Transformer<f32>) -> Lora {
    let mut random = StdRng::seed_from_u64(2);
    let mut lora = Lora::fresh(&model.shape, 2, 3.0, 2).unwrap();
    for layer in lora.layers.iter_mut().flatten() {
        for factor in [&mut layer.a, &mut layer.b] {
            let (rows, width) = factor.dims2().unwrap();
            let values = (0..rows * width).map(|_| random.random_range(-ADAPTER..ADAPTER));
            *factor = matrix::<f32>(values.collect(), rows, width).unwrap();
        }
    }
    lora
}

fn target(token: u32) -> Target {
    Target { token, equivalents: [].into(), temperature: 1.0, allowed: None }
}

/// Tails with masks, another temperature and equivalents, one of them without a prompt.
fn batch(kv: &PromptKv) -> TailBatch {
    let healed = Target { allowed: Some(Arc::from([3, 8, 9, 14])), ..target(9) };
    let sharp = Target { temperature: 0.7, ..target(17) };
    let either = Target { equivalents: Arc::from([1, 15]), ..target(4) };
    let tail = |place: usize, tokens: &[u32], targets: &[Target]| Tail {
        place: kv.place(place),
        past: PROMPTS[place].len(),
        tokens: tokens.to_vec(),
        targets: targets.to_vec(),
        experts: vec![],
    };
    TailBatch::new(&[
        tail(0, &[8, 9, 6], &[healed, target(6), target(2)]),
        tail(1, &[8, 9, 4, 4], &[either, sharp]),
        tail(2, &[7, 3], &[target(5)]),
    ])
}

struct Passed {
    base: Vec<f32>,
    adapted: Vec<f32>,
    /// A and B of every pair.
    gradient: Vec<Vec<f32>>,
}

fn passed(model: &Transformer<f32>, lora: &Lora) -> anyhow::Result<Passed> {
    let threads = Threads::fixed(2);
    // Nothing is rounded to 8 bits on the CPU, because the matrices are F32.
    let kv = PromptKv::compute(model, &PROMPTS, None, &threads, |_| Ok(()))?;
    let batch = batch(&kv);
    let pass = model.forward(lora, &batch, &kv)?;
    let (base, adapted) = (model.logprobs(None, &batch, &kv)?, pass.logprobs.clone());
    let again = model.logprobs(Some(lora), &batch, &kv)?;
    anyhow::ensure!(again == adapted, "a pass with and without a gradient differ");
    let pairs = pass.backward(&LOSS)?;
    let tensors = pairs.iter().flat_map(|pair| [&pair.a, &pair.b]);
    let gradient = tensors.map(|tensor| Ok(values::<f32>(&tensor.contiguous()?)?));
    Ok(Passed { base, adapted, gradient: gradient.collect::<anyhow::Result<_>>()? })
}

fn farthest(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

/// Returns true if the rest of a test is left out, because there is no GPU.
fn skips(error: &anyhow::Error) -> bool {
    println!("SKIPPED the passes on a GPU: {error:#}");
    let missing = std::env::var("HONE_TEST_WITHOUT").unwrap_or_default();
    let strict = std::env::var("HONE_TEST_STRICT").is_ok_and(|value| value == "1");
    let is_emulated = std::env::var_os(EMULATED).is_some();
    !is_emulated && (!strict || missing.split(',').any(|name| name.trim() == "gpu"))
}

/// The same test as the one below, in a process whose CUDA driver and cuBLAS are those of
/// `emulated_gpu/driver.cpp`. What it compares are our kernels and all that is asked of cuBLAS.
#[cfg(target_os = "linux")]
#[test]
fn the_passes_on_an_emulated_gpu_are_those_on_the_cpu() {
    let folder = tempfile::tempdir().unwrap();
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/emulated_gpu");
    let driver = folder.path().join("libcuda.so");
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-O1", "-shared", "-fPIC", "-I", sources, "-o"]).arg(&driver);
    let compiled = compiler.arg(format!("{sources}/driver.cpp")).status();
    assert!(compiled.expect("this test needs a C++ compiler").success());
    std::os::unix::fs::symlink(&driver, folder.path().join("libcublas.so")).unwrap();
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args(["the_passes_on_a_gpu_are_those_on_the_cpu", "--exact", "--nocapture"]);
    test.env("LD_LIBRARY_PATH", folder.path()).env(EMULATED, "1");
    assert!(test.status().unwrap().success());
}

/// One test, because the last part of it takes all memory of the GPU.
#[test]
fn the_passes_on_a_gpu_are_those_on_the_cpu() {
    let gpu = match Gpu::open() {
        Ok(gpu) => gpu,
        Err(error) => {
            assert!(skips(&error), "name gpu in HONE_TEST_WITHOUT if there is none: {error:#}");
            return;
        }
    };
    println!("on {}", gpu.name().unwrap());
    let mut wrong = vec![];
    let mut compared = 0;
    let mut last = None;
    for form in FORMS {
        let mut model = model(form);
        let copy = match GpuModel::copy_of(&model) {
            Ok(copy) => copy,
            Err(error) => {
                println!("{}: {error:#}", form.name);
                continue;
            }
        };
        let lora = adapter(&model);
        let on_cpu = passed(&model, &lora).unwrap();
        model.gpu = Some(copy);
        let on_gpu = passed(&model, &lora).unwrap();
        let base_off = farthest(&on_cpu.base, &on_gpu.base);
        let adapted_off = farthest(&on_cpu.adapted, &on_gpu.adapted);
        assert_eq!(on_cpu.gradient.len(), on_gpu.gradient.len(), "{}", form.name);
        let pairs = on_cpu.gradient.iter().zip(&on_gpu.gradient);
        let least = pairs.map(|(a, b)| cosine(a, b)).fold(1.0, f64::min);
        let all = cosine(&on_cpu.gradient.concat(), &on_gpu.gradient.concat());
        println!(
            "{}: log-probs of the base off by {base_off:.4}, under the adapter by \
             {adapted_off:.4}; cosine of the gradient {all:.5}, of a pair at least {least:.5}",
            form.name
        );
        let is_near = base_off < LOGPROB_OFF && adapted_off < LOGPROB_OFF;
        if !(is_near && least > COSINE_OF_A_PAIR && all > COSINE) {
            println!("  cpu {:?} {:?}", on_cpu.base, on_cpu.adapted);
            println!("  gpu {:?} {:?}", on_gpu.base, on_gpu.adapted);
            wrong.push(form.name);
        }
        compared += 1;
        last = Some((model, lora, on_cpu.base));
    }
    assert!(compared > 5, "only {compared} models were compared");
    assert!(wrong.is_empty(), "{wrong:?}");

    let (mut model, lora, base) = last.unwrap();
    let held = gpu.hold_all_but(0).unwrap();
    let error = passed(&model, &lora).err().expect("there is no memory").to_string();
    assert!(model.gpu.as_ref().unwrap().has_failed(), "{error}");
    drop(held);
    model.gpu = None;
    assert_eq!(passed(&model, &lora).unwrap().base, base, "the CPU continues");
}
