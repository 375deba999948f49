//! Takes one training step at a time, for `cargo xtask bench learn`.
//!
//! It reads the tokens of one sequence (prompt, then completion) from a JSON file. It answers
//! each line on stdin with a line on stdout:
//!
//!   prompt         runs the prompt pass; {"s": seconds}
//!   step           runs forward, backward and Adam on the completion; {"s": seconds}
//!   check FOLDER   writes files into a folder, which the peer compares with its own: an
//!                  adapter (also as `hone adapter export` does), the log-probs of the
//!                  completion under it, and their gradient; {"s": seconds}
//!   end            ends the process; {"peak_mb": largest resident memory in MiB}

use anyhow::{Context, bail, ensure};
use clap::{Parser, ValueEnum};
use feedback::job::Hyper;
use learner::kernels;
use learner::machine::platform;
use learner::machine::threads::Threads;
use learner::model::lm_head::Target;
use learner::model::load::load;
use learner::model::lora::Lora;
use learner::model::prompt_pass::PromptKv;
use learner::model::weights::Shape;
use learner::model::{Tail, TailBatch, Transformer};
use learner::ppo::adam::{Adam, GradientSum};
use learner::ppo::trained_part::TrainedPart;
use models::gguf::Gguf;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// The adapter acts after the prompt, as Hone serves it.
    Tail,
    /// The adapter acts on every token, as in PEFT.
    Everywhere,
}

#[derive(Parser)]
struct Arguments {
    #[arg(long)]
    model: PathBuf,
    /// A JSON array of token ids
    #[arg(long)]
    tokens: PathBuf,
    /// The number of tokens at the end that are learned
    #[arg(long)]
    completion: usize,
    #[arg(long)]
    rank: usize,
    #[arg(long)]
    mode: Mode,
}

/// An adapter whose B is not zero, so that no gradient is zero.
fn random_adapter(shape: &Shape, hyper: &Hyper) -> anyhow::Result<Lora> {
    const SIZE: f32 = 0.02;
    let mut lora = Lora::fresh(shape, hyper.lora_rank, hyper.lora_alpha, 1)?;
    let mut random = StdRng::seed_from_u64(2);
    for layer in lora.layers.iter_mut().flatten() {
        let (rows, width) = layer.b.dims2()?;
        let b = (0..rows * width).map(|_| random.random_range(-SIZE..SIZE)).collect();
        layer.b = kernels::matrix::<f32>(b, rows, width)?;
    }
    Ok(lora)
}

fn write_values(path: &Path, values: &[f32]) -> anyhow::Result<()> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    std::fs::write(path, bytes).with_context(|| path.display().to_string())
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let text = std::fs::read_to_string(&arguments.tokens)
        .with_context(|| arguments.tokens.display().to_string())?;
    let tokens: Vec<u32> = serde_json::from_str(&text)?;
    ensure!(
        (1..tokens.len()).contains(&arguments.completion),
        "--completion must be 1 to {}",
        tokens.len() - 1
    );
    let base = Gguf::open(&arguments.model)?;
    let model = load(&base)?;
    let learned = tokens.len() - arguments.completion;
    // The adapter acts on the row that predicts the first learned token.
    let past = if arguments.mode == Mode::Everywhere { 0 } else { learned - 1 };
    let hyper = Hyper { lora_rank: arguments.rank, ..Hyper::default() };
    let mut lora = Lora::fresh(&model.shape, hyper.lora_rank, hyper.lora_alpha, 1)?;
    let mut optimizer = Adam::new(&lora);

    let threads = Threads::fixed(rayon::current_num_threads());
    let pass = || PromptKv::compute(&model, &[&tokens[..past]], None, &threads, |_| Ok(()));
    let mut kv = pass()?;
    let tail = |kv: &PromptKv| {
        TailBatch::new([&Tail {
            place: kv.place(0),
            past,
            tokens: tokens[past..tokens.len() - 1].to_vec(),
            targets: tokens[learned..]
                .iter()
                .map(|token| Target {
                    token: *token,
                    equivalents: [].into(),
                    temperature: 1.0,
                    allowed: None,
                })
                .collect(),
            experts: Vec::new(),
        }])
    };
    // The loss is the mean negative log-likelihood. Any loss on log-probs takes the same time.
    let d_loss = vec![-1.0 / arguments.completion as f32; arguments.completion];
    let mut step = |kv: &PromptKv| -> anyhow::Result<()> {
        let batch = tail(kv);
        let pass = model.forward(&lora, &batch, kv)?;
        let mut gradient = GradientSum::zero(&TrainedPart::Full.lengths(&lora));
        pass.backward_into(&d_loss, &mut |pair, part| gradient.add(pair, &part))?;
        optimizer.step(&mut lora, &gradient, &hyper)?;
        Ok(())
    };
    let check = |folder: &Path| -> anyhow::Result<()> {
        // Activations are not rounded, because the peer does not round them.
        let model = Transformer { unit: None, ..load(&base)? };
        let prompts = [&tokens[..past]];
        let kv = &PromptKv::compute(&model, &prompts, None, &threads, |_| Ok(()))?;
        let lora = random_adapter(&model.shape, &hyper)?;
        // No token occurs twice in the sequence, so that this one tells PEFT where an activated
        // LoRA begins.
        let invocation = if past == 0 { Vec::new() } else { vec![tokens[past]] };
        let file = lora.to_adapter(&model.shape, "unchecked", invocation)?;
        file.write(&folder.join("adapter.gguf"))?;
        models::peft::export(&file, &base, &folder.join("peft"))?;
        let batch = tail(kv);
        let pass = model.forward(&lora, &batch, kv)?;
        write_values(&folder.join("logprobs.f32"), &pass.logprobs)?;
        let gradient = pass.backward(&d_loss)?;
        let mut flat = Vec::new();
        for pair in &gradient {
            flat.extend(kernels::values::<f32>(&pair.a)?);
            flat.extend(kernels::values::<f32>(&pair.b)?);
        }
        write_values(&folder.join("gradient.f32"), &flat)
    };

    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let started = Instant::now();
        match line.split_once(' ').unwrap_or((line.as_str(), "")) {
            ("prompt", _) => kv = pass()?,
            ("step", _) => step(&kv)?,
            ("check", folder) => check(Path::new(folder))?,
            ("end", _) => {
                writeln!(out, r#"{{"peak_mb": {}}}"#, platform::peak_memory_mb())?;
                break;
            }
            (other, _) => bail!("{other:?} is not one of prompt, step, check and end"),
        }
        writeln!(out, r#"{{"s": {}}}"#, started.elapsed().as_secs_f64())?;
        out.flush()?;
    }
    Ok(())
}
