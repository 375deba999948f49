//! Runs two updates of random episodes, the second one from the adapter of the first, for `cargo
//! xtask bench learn`. It prints a JSON object about the second one: the seconds of each phase,
//! how many billions of floating-point operations its matrix products do in a second, and the
//! largest resident memory in MiB. `matmul_gflops` is what candle reaches with a large product.
//!
//!   update --model FILE.gguf            the learner computes every prompt
//!   update --model FILE.gguf --handed   the keys and values of every prompt are in files

use anyhow::Result;
use clap::Parser;
use feedback::episode::Episode;
use feedback::event::{
    Completion, Evidence, Outcome, Sampling, StopReason, Timing, TokenRecord, Typed,
};
use feedback::job::{Base, Hyper, JOB_FORMAT, Job, Parent, Train, UpdateReport};
use learner::job::trainer::{PromptFolders, Trainer};
use learner::kernels;
use learner::model::load::load;
use learner::model::weights::Shape;
use models::disk_cache::DiskCache;
use models::gguf::Gguf;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Episodes of an update. Every other one was accepted; the others were typed by hand.
const EPISODES: usize = 16;
/// Tokens of a prompt before the adapter acts, and those that are learned.
const PROMPT_TOKENS: usize = 1000;
const LEARNED_TOKENS: usize = 20;

#[derive(Parser)]
struct Arguments {
    #[arg(long)]
    model: PathBuf,
    /// Take the keys and values of all prompts from files
    #[arg(long)]
    handed: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let shape = load(&Gguf::open(&arguments.model)?)?.shape;
    let sha256 = models::file::sha256(&arguments.model)?;
    let folder = tempfile::tempdir()?;
    let mut random = StdRng::seed_from_u64(5);
    let episodes: Vec<Episode> =
        (0..EPISODES).map(|seq| episode(seq, &sha256, &shape, &mut random)).collect();
    let mut folders = PromptFolders::default();
    if arguments.handed {
        let handed = folder.path().join("prompts");
        write_prompts(&handed, &sha256, &shape, &episodes)?;
        folders.handed = Some(handed);
    }
    let mut trainer = Trainer::with_prompts(folders);
    let mut run = |name: &str, parent: Option<Parent>| -> Result<(UpdateReport, Parent)> {
        let job = Job {
            format: JOB_FORMAT,
            id: name.to_owned(),
            base: Base { path: arguments.model.clone(), sha256: sha256.clone() },
            parent,
            train: Train::default(),
            candidate: 1,
            adapter_out: folder.path().join(format!("{name}.gguf")),
            optimizer_out: folder.path().join(format!("{name}.opt")),
            seed: 7,
            // Random tokens are far from what any model expects.
            hyper: Hyper { target_kl: 1e3, ..Hyper::default() },
            episodes: episodes.clone(),
            memory_limit_mb: 0,
        };
        let report = trainer.run(&job, &mut |_| ControlFlow::Continue(()))?;
        let candidate = Parent {
            version: job.candidate,
            path: job.adapter_out,
            sha256: report.adapter_sha256.clone(),
            optimizer: Some(job.optimizer_out),
        };
        Ok((report, candidate))
    };
    let (_, parent) = run("first", None)?;
    let (report, _) = run("second", Some(parent))?;
    println!("{}", described(&report, &shape)?);
    Ok(())
}

/// An episode with a random prompt and random tokens, which were accepted or typed by hand.
fn episode(seq: usize, base_sha256: &str, shape: &Shape, random: &mut StdRng) -> Episode {
    // Ids below those of special tokens, which come last in a vocabulary.
    let ids = 0..shape.vocabulary as u32 / 2;
    let mut tokens = |count: usize| -> Vec<u32> {
        (0..count).map(|_| random.random_range(ids.clone())).collect()
    };
    // The first token of the adapter is the last one of the prompt.
    let (prompt, learned) = (tokens(PROMPT_TOKENS + 1), tokens(LEARNED_TOKENS));
    let is_accepted = seq.is_multiple_of(2);
    Episode {
        seq: seq as u64,
        completion: Completion {
            id: format!("offer-{seq}"),
            path: "src/lib.rs".into(),
            context: vec![],
            real_names: vec![],
            language: "rust".into(),
            model_sha256: base_sha256.to_owned(),
            adapter: 0,
            sampling: Sampling::GREEDY,
            prompt,
            adapter_from: PROMPT_TOKENS,
            healing: String::new(),
            tokens: learned.iter().map(|id| TokenRecord { id: *id, logprob: -3.0 }).collect(),
            stop: StopReason::MaxTokens,
            // It is longer than the texts of any tokens, so that all of them were judged.
            shown: if is_accepted { "x".repeat(1 << 14) } else { String::new() },
            shown_from: 0,
            timing: Timing::default(),
            decision: Default::default(),
            typed: Typed::default(),
            experts: None,
        },
        shown: is_accepted,
        outcome: is_accepted.then_some((Outcome::Accepted, Evidence::Command)),
        hurried: false,
        replacement: (!is_accepted).then_some(learned),
        kept: None,
    }
}

/// Writes keys and values of every prompt that are zero. Other values take the same time.
fn write_prompts(
    folder: &Path,
    base_sha256: &str,
    shape: &Shape,
    episodes: &[Episode],
) -> Result<()> {
    let mut cache = DiskCache::handed(folder, base_sha256).map_err(anyhow::Error::msg)?;
    let width = shape.kv_heads * shape.head_width;
    let zeros = vec![0; 2 * shape.layers * PROMPT_TOKENS * width * size_of::<u16>()];
    for episode in episodes {
        cache.put(episode.completion.base_prompt(), &zeros)?;
    }
    Ok(())
}

/// The phases of an update in the order in which they come.
fn described(report: &UpdateReport, shape: &Shape) -> Result<Value> {
    let times = report.phases;
    let work = Work::of(shape);
    let phases = [
        ("load", report.load_ms, 0.0),
        ("keys and values of prompts", times.prompts, work.prompts),
        ("log-probs before", times.references, work.references),
        ("forward", times.forward, work.forward),
        ("backward", times.backward, work.backward),
        ("optimizer", times.optimizer, 0.0),
        ("log-probs after", times.check, work.check),
        ("write", times.write, 0.0),
    ];
    let all: u64 = phases.iter().map(|(_, milliseconds, _)| milliseconds).sum();
    let mut rows: Vec<Value> = phases
        .iter()
        .map(|(name, milliseconds, operations)| {
            let seconds = *milliseconds as f64 / 1e3;
            let rate = (*operations > 0.0 && seconds > 0.1).then_some(operations / seconds / 1e9);
            json!({ "name": name, "s": seconds, "gflops": rate })
        })
        .collect();
    let other = report.total_ms.saturating_sub(all) as f64 / 1e3;
    rows.push(json!({ "name": "other", "s": other }));
    rows.push(json!({ "name": "all", "s": report.total_ms as f64 / 1e3 }));
    Ok(json!({
        "phases": rows,
        "prompts_known": report.prompts_known,
        "steps": report.steps,
        "peak_mb": report.peak_memory_mb,
        "matmul_gflops": matmul_gflops()?,
    }))
}

/// Floating-point operations of the matrix products of each phase. A multiplication and an addition
/// are two.
struct Work {
    prompts: f64,
    references: f64,
    forward: f64,
    backward: f64,
    check: f64,
}

impl Work {
    fn of(shape: &Shape) -> Work {
        let hyper = Hyper::default();
        let sizes: Vec<(usize, usize)> = shape.maps().iter().map(|map| shape.map(*map)).collect();
        let of_layers = |of_map: fn(&(usize, usize)) -> usize| {
            (shape.layers * sizes.iter().map(of_map).sum::<usize>()) as f64
        };
        let linear = 2.0 * of_layers(|(rows_out, rows_in)| rows_out * rows_in);
        let lora =
            2.0 * hyper.lora_rank as f64 * of_layers(|(rows_out, rows_in)| rows_out + rows_in);
        let head = 2.0 * (shape.vocabulary * shape.width) as f64;
        // One product of a row of q, of all heads, with the keys that it sees.
        let seen =
            |tokens: usize| 2.0 * (shape.layers * shape.heads * shape.head_width * tokens) as f64;
        let attention = seen(PROMPT_TOKENS + LEARNED_TOKENS / 2);
        let rows = (EPISODES * LEARNED_TOKENS) as f64;
        let epochs = f64::from(hyper.epochs);
        Work {
            prompts: (EPISODES * PROMPT_TOKENS) as f64 * (linear + 2.0 * seen(PROMPT_TOKENS / 2)),
            // Under the base and under the parent.
            references: rows * (2.0 * (linear + 2.0 * attention + head) + lora),
            // The head gives the gradient with respect to its rows in the same pass.
            forward: epochs * rows * (linear + lora + 2.0 * attention + 2.0 * head),
            // Scores, and the gradients of scores and queries; those of A and B next to that of x.
            backward: epochs * rows * (linear + 2.0 * lora + 3.0 * attention),
            // The accepted half.
            check: rows / 2.0 * (linear + lora + 2.0 * attention + head),
        }
    }
}

/// The rate of a product of two f32 matrices of 1,024 × 1,024, the best of ten.
fn matmul_gflops() -> Result<f64> {
    const SIZE: usize = 1024;
    let matrix = || kernels::matrix::<f32>(vec![0.5; SIZE * SIZE], SIZE, SIZE);
    let (x, w) = (matrix()?, matrix()?);
    let mut best = 0f64;
    for _ in 0..10 {
        let started = Instant::now();
        x.matmul(&w)?;
        best = best.max(2.0 * (SIZE as f64).powi(3) / started.elapsed().as_secs_f64() / 1e9);
    }
    Ok(best)
}
