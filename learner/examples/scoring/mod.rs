//! Scores what users typed, token by token, under an adapter or the base.

use learner::machine::threads::Threads;
use learner::model::lora::Lora;
use learner::model::prompt_pass::PromptKv;
use learner::model::{Tail, TailBatch, Transformer};
use learner::ppo::batch::Batch;
use models::disk_cache::DiskCache;

/// At this temperature the likeliest token has all of the probability.
const GREEDY_TEMPERATURE: f64 = 1e-3;
/// The number of texts that are scored at once. Their rows fit into the cache of the CPU.
const TEXTS_AT_ONCE: usize = 8;

/// The scores of one text.
pub struct TokenScores {
    /// The text's sample in the batch.
    pub sample: usize,
    /// The log-prob of each token, in nats.
    pub logprobs: Vec<f64>,
    /// Whether greedy decoding gives each token behind those before it.
    pub is_greedy: Vec<bool>,
}

/// The keys and values of a batch's prompts.
pub fn prompts(
    model: &Transformer<f32>,
    batch: &Batch,
    cache: Option<&mut DiskCache>,
    threads: &Threads,
) -> anyhow::Result<PromptKv> {
    let prompts: Vec<&[u32]> = batch.samples.iter().map(|s| s.prompt.as_slice()).collect();
    PromptKv::compute(model, &prompts, cache, threads, |_| Ok(()))
}

/// Scores every text of the batch that the user typed. Without an adapter the base scores it.
pub fn score_texts(
    model: &Transformer<f32>,
    batch: &Batch,
    kv: &PromptKv,
    lora: Option<&Lora>,
    threads: &Threads,
) -> anyhow::Result<Vec<TokenScores>> {
    let typed: Vec<usize> =
        (0..batch.samples.len()).filter(|&i| batch.samples[i].in_demonstration_loss).collect();
    let tail = |index: usize, temperature: Option<f64>| {
        let sample = &batch.samples[index];
        let mut targets = sample.targets.clone();
        for target in &mut targets {
            target.temperature = temperature.unwrap_or(target.temperature);
        }
        let tokens = sample.tail.clone();
        let (past, experts) = (sample.prompt.len(), sample.experts.clone());
        Tail { place: kv.place(index), past, tokens, targets, experts }
    };
    let mut texts = vec![];
    for few in typed.chunks(TEXTS_AT_ONCE) {
        let logprobs = |temperature| {
            let tails: Vec<Tail> = few.iter().map(|&index| tail(index, temperature)).collect();
            threads.run(|| model.logprobs(lora, &TailBatch::new(&tails), kv))
        };
        let (mut warm, mut cold) =
            (logprobs(None)?.into_iter(), logprobs(Some(GREEDY_TEMPERATURE))?.into_iter());
        for &sample in few {
            let tokens = batch.samples[sample].targets.len();
            let logprobs = warm.by_ref().take(tokens).map(f64::from).collect();
            let is_greedy = cold.by_ref().take(tokens).map(|p| p > 0.5f32.ln()).collect();
            texts.push(TokenScores { sample, logprobs, is_greedy });
        }
    }
    Ok(texts)
}
