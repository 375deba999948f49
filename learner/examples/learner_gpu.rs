//! Compares a training step on an NVIDIA GPU with the same step on the CPU, and fills the GPU's
//! memory for tests of what happens then. It needs the feature `cuda`.
//!
//!   learner_gpu compare --model FILE.gguf       one JSON object: times, log-probs, gradients
//!   learner_gpu fill --leave-mib 500            holds the rest until a line comes on stdin

#[cfg(not(feature = "cuda"))]
fn main() -> anyhow::Result<()> {
    anyhow::bail!("built without the feature `cuda`")
}

#[cfg(feature = "cuda")]
fn main() -> anyhow::Result<()> {
    gpu::main()
}

#[cfg(feature = "cuda")]
mod gpu {
    use anyhow::{Result, ensure};
    use clap::Parser;
    use feedback::job::Hyper;
    use learner::kernels;
    use learner::machine::threads::Threads;
    use learner::model::gpu::{Gpu, GpuModel};
    use learner::model::lm_head::Target;
    use learner::model::load::load;
    use learner::model::lora::Lora;
    use learner::model::prompt_pass::PromptKv;
    use learner::model::weights::Shape;
    use learner::model::{Tail, TailBatch, Transformer};
    use models::gguf::Gguf;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use serde_json::{Value, json};
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::time::Instant;

    /// Episodes of a step, the tokens of a prompt, and those that are learned.
    const EPISODES: usize = 6;
    const PROMPT_TOKENS: usize = 480;
    const LEARNED_TOKENS: usize = 12;

    #[derive(Parser)]
    enum Command {
        /// A step on the CPU and on the GPU
        Compare {
            #[arg(long)]
            model: PathBuf,
        },
        /// Hold the GPU's memory but for a rest
        Fill {
            #[arg(long)]
            leave_mib: usize,
        },
    }

    pub fn main() -> Result<()> {
        match Command::parse() {
            Command::Compare { model } => compare(&model),
            Command::Fill { leave_mib } => fill(leave_mib),
        }
    }

    fn fill(leave_mib: usize) -> Result<()> {
        let gpu = Gpu::open()?;
        let _held = gpu.hold_all_but(leave_mib << 20)?;
        println!("full, {} MiB are free", gpu.free_bytes()? >> 20);
        std::io::stdin().read_line(&mut String::new())?;
        Ok(())
    }

    fn compare(path: &std::path::Path) -> Result<()> {
        let mut model = load(&Gguf::open(path)?)?;
        let step = Step::new(&model.shape)?;
        // Both are exact. On a CPU an update rounds activations to 8 bits.
        model.unit = None;
        let cpu = step.take(&model)?;
        let started = Instant::now();
        let copy = GpuModel::copy_of(&model)?;
        let name = copy.name().to_owned();
        model.gpu = Some(copy);
        let moved_s = started.elapsed().as_secs_f64();
        let warm_up = step.take(&model)?;
        let gpu = step.take(&model)?;
        let report = json!({
            "gpu": name,
            "move_s": moved_s,
            "rows": EPISODES * PROMPT_TOKENS,
            "cpu_s": cpu.times,
            "gpu_first_s": warm_up.times,
            "gpu_s": gpu.times,
            "logprob_off_mean": mean_off(&cpu.logprobs, &gpu.logprobs),
            "gradient": difference(&cpu.gradient, &gpu.gradient)?,
        });
        println!("{report}");
        Ok(())
    }

    struct Step {
        prompts: Vec<Vec<u32>>,
        learned: Vec<Vec<u32>>,
        lora: Lora,
        threads: Threads,
    }

    struct Taken {
        times: Value,
        logprobs: Vec<f32>,
        gradient: Vec<f32>,
    }

    impl Step {
        fn new(shape: &Shape) -> Result<Step> {
            let mut random = StdRng::seed_from_u64(3);
            let mut tokens = |count: usize| -> Vec<u32> {
                // Ids below those of special tokens, which come last in a vocabulary.
                (0..count).map(|_| random.random_range(0..shape.vocabulary as u32 / 2)).collect()
            };
            let prompts = (0..EPISODES).map(|_| tokens(PROMPT_TOKENS)).collect();
            let learned = (0..EPISODES).map(|_| tokens(LEARNED_TOKENS)).collect();
            let hyper = Hyper::default();
            let mut lora = Lora::fresh(shape, hyper.lora_rank, hyper.lora_alpha, 1)?;
            // A fresh adapter has B = 0, and with it no gradient of A.
            for layer in lora.layers.iter_mut().flatten() {
                let (rows, width) = layer.b.dims2()?;
                let b = (0..rows * width).map(|_| random.random_range(-0.02..0.02)).collect();
                layer.b = kernels::matrix::<f32>(b, rows, width)?;
            }
            let threads = Threads::fixed(rayon_threads());
            Ok(Step { prompts, learned, lora, threads })
        }

        fn take(&self, model: &Transformer<f32>) -> Result<Taken> {
            let started = Instant::now();
            let prompts: Vec<&[u32]> =
                self.prompts.iter().map(|prompt| &prompt[..PROMPT_TOKENS - 1]).collect();
            let kv = PromptKv::compute(model, &prompts, None, &self.threads, |_| Ok(()))?;
            let prompt_s = started.elapsed().as_secs_f64();
            let tails: Vec<Tail> = (0..EPISODES).map(|index| self.tail(index, &kv)).collect();
            let batch = TailBatch::new(&tails);
            let started = Instant::now();
            let pass = model.forward(&self.lora, &batch, &kv)?;
            let forward_s = started.elapsed().as_secs_f64();
            let logprobs = pass.logprobs.clone();
            let d_loss = vec![-1.0 / logprobs.len() as f32; logprobs.len()];
            let started = Instant::now();
            let pairs = pass.backward(&d_loss)?;
            let backward_s = started.elapsed().as_secs_f64();
            let mut gradient = vec![];
            for pair in &pairs {
                gradient.extend(kernels::values::<f32>(&pair.a)?);
                gradient.extend(kernels::values::<f32>(&pair.b)?);
            }
            let times = json!({
                "prompts": prompt_s, "forward": forward_s, "backward": backward_s,
            });
            Ok(Taken { times, logprobs, gradient })
        }

        fn tail(&self, index: usize, kv: &PromptKv) -> Tail {
            let (last, learned) = (self.prompts[index][PROMPT_TOKENS - 1], &self.learned[index]);
            let fed = learned[..LEARNED_TOKENS - 1].iter().copied();
            let target = |token: &u32| Target {
                token: *token,
                equivalents: Arc::from([]),
                temperature: 1.0,
                allowed: None,
            };
            Tail {
                place: kv.place(index),
                past: PROMPT_TOKENS - 1,
                tokens: [last].into_iter().chain(fed).collect(),
                targets: learned.iter().map(target).collect(),
                experts: Vec::new(),
            }
        }
    }

    fn rayon_threads() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    fn mean_off(a: &[f32], b: &[f32]) -> f64 {
        let off = a.iter().zip(b).map(|(a, b)| f64::from((a - b).abs()));
        off.sum::<f64>() / a.len() as f64
    }

    fn difference(a: &[f32], b: &[f32]) -> Result<Value> {
        ensure!(a.len() == b.len(), "gradients of {} and {} values", a.len(), b.len());
        let sum = |of: fn(f64, f64) -> f64| -> f64 {
            a.iter().zip(b).map(|(a, b)| of(f64::from(*a), f64::from(*b))).sum()
        };
        let (aa, bb) = (sum(|a, _| a * a), sum(|_, b| b * b));
        ensure!(aa > 0.0 && bb > 0.0, "a gradient is zero");
        Ok(json!({
            "cosine": sum(|a, b| a * b) / (aa * bb).sqrt(),
            "relative_error": (sum(|a, b| (a - b) * (a - b)) / aa).sqrt(),
        }))
    }
}
