//! Scores what users typed, token by token, under an adapter or the base.

use feedback::job::Hyper;
use learner::machine::threads::Threads;
use learner::model::known_prompts::KnownPrompts;
use learner::model::load::load;
use learner::model::lora::Lora;
use learner::model::prompt_pass::PromptKv;
use learner::model::{Tail, TailBatch, Transformer};
use learner::ppo::batch::{Batch, BatchInputs};
use models::gguf::Gguf;
use models::vocab::Vocab;

/// At this temperature the likeliest token has all of the probability.
const GREEDY_TEMPERATURE: f64 = 1e-3;
/// The number of texts that are scored at once. Their rows fit into the cache of the CPU.
const TEXTS_AT_ONCE: usize = 8;

/// The model that is learned on.
pub struct Base {
    pub sha256: String,
    pub vocab: Vocab,
    pub model: Transformer<f32>,
    pub threads: Threads,
}

impl Base {
    pub fn open(gguf: &Gguf) -> anyhow::Result<Base> {
        Ok(Base {
            sha256: models::file::sha256(&gguf.path)?,
            vocab: Vocab::from_gguf(gguf)?,
            model: load(gguf)?,
            threads: Threads::fixed(rayon::current_num_threads()),
        })
    }

    /// Returns what a batch of texts that the base served depends on.
    pub fn inputs<'a>(&'a self, hyper: &'a Hyper) -> BatchInputs<'a> {
        BatchInputs {
            vocab: &self.vocab,
            base_sha256: &self.sha256,
            context_tokens: self.model.shape.context,
            experts: self.model.shape.expert_layout(),
            parent: 0,
            hyper,
        }
    }
}

/// The scores of one text.
pub struct TokenScores {
    /// The text's sample in the batch.
    pub sample: usize,
    /// The log-prob of each token, in nats.
    pub logprobs: Vec<f64>,
    /// True if greedy decoding gives each token behind those before it.
    pub is_greedy: Vec<bool>,
}

/// The keys and values of a batch's prompts.
pub fn prompts(
    base: &Base,
    batch: &Batch,
    known: Option<&mut KnownPrompts>,
) -> anyhow::Result<PromptKv> {
    let prompts: Vec<&[u32]> = batch.samples.iter().map(|s| s.prompt.as_slice()).collect();
    let open = known.as_ref().map(|known| known.open(&base.model, &prompts));
    let kv = PromptKv::compute(&base.model, &prompts, open, &base.threads, |_| Ok(()))?;
    if let Some(known) = known {
        known.keep(&prompts, |index| kv.computed(index))?;
    }
    Ok(kv)
}

/// Scores every text of the batch that the user typed. Without an adapter the base scores it.
pub fn score_texts(
    base: &Base,
    batch: &Batch,
    kv: &PromptKv,
    lora: Option<&Lora>,
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
            base.threads.run(|| base.model.logprobs(lora, &TailBatch::new(&tails), kv))
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
