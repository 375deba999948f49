//! Turns episodes into the samples that PPO trains on.
//!
//! An episode is dropped and counted if it has no label, was served too many versions ago
//! or by another base model, or showed nothing. All of this happens in normal use.
//!
//! A record that a correct daemon never writes is an error ([`BatchError::InvalidRecord`]).

use crate::limits::{PROMPT_TOKENS_MAX, TAIL_TOKENS_MAX};
use crate::model::lm_head::Target;
use feedback::episode::Episode;
use feedback::event::{AdapterVersion, Completion, OfferId};
use feedback::experts::ExpertLayout;
use feedback::job::Hyper;
use models::vocab::Vocab;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A recorded log-prob may be this far above 0, in nats, because of rounding.
const LOGPROB_ROUNDING: f32 = 1e-3;

/// From this reward on the whole text was accepted and is still in the document.
const FULLY_ACCEPTED_REWARD: f32 = 0.99;

/// A text that PPO trains on: what an episode offered, or what the user typed instead.
#[derive(Debug, Clone)]
pub struct Sample {
    pub seq: u64,
    /// `prompt[..adapter_from]`, which the base computes.
    pub prompt: Vec<u32>,
    /// `prompt[adapter_from..]` and every trained token but the last, which base and
    /// adapter compute.
    pub tail: Vec<u32>,
    /// The trained tokens, and the softmax that each was drawn from.
    pub targets: Vec<Target>,
    /// The experts that the server chose for the first rows of the tail
    /// ([`Tail::experts`](crate::model::Tail::experts)).
    pub experts: Vec<u16>,
    /// `None` for a demonstration: the user typed these tokens. If there is a judged
    /// sample with the same `seq`, they were typed instead of it.
    pub verdict: Option<Verdict>,
    /// The text is in the user's file now, and the demonstration loss raises its
    /// log-prob. That includes accepted text: with typed text alone the adapter would
    /// learn that whatever the model expects is wrong.
    pub in_demonstration_loss: bool,
}

/// The user's decision about an offer.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// Recorded ln π_behaviour of each target, in nats.
    pub behaviour: Vec<f32>,
    pub reward: f32,
    /// The reward less V ([`Hyper::baseline`]).
    pub advantage: f32,
    /// True if each token gets the advantage. If it is known what the user typed instead of a
    /// rejected offer, only the first token that differs gets it: the tokens before it were right,
    /// and those behind it follow from it and are left out of the sample.
    pub credited: Vec<bool>,
    /// The number of tokens that the verdict is about, with those that are left out. The loss
    /// is a mean over all of them.
    pub offered: usize,
    /// The offer was served by the adapter that this job starts from.
    pub by_parent: bool,
}

/// The number of episodes that were dropped, by reason.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Dropped {
    pub unlabelled: usize,
    pub stale: usize,
    /// Served by another base model.
    pub other_base: usize,
    /// Nothing was shown.
    pub empty: usize,
    /// The keys and values of the prompt did not fit into memory with those of the others.
    pub memory: usize,
}

impl Dropped {
    pub fn total(&self) -> usize {
        let of_policy = self.unlabelled + self.stale + self.empty;
        of_policy + self.other_base + self.memory
    }

    fn count(&mut self, why: &DropReason) {
        match why {
            DropReason::Unlabelled => self.unlabelled += 1,
            DropReason::Stale => self.stale += 1,
            DropReason::Empty => self.empty += 1,
        }
    }
}

/// The samples that one update trains on.
#[derive(Debug)]
pub struct Batch {
    /// The episodes of one document follow each other.
    pub samples: Vec<Sample>,
    pub dropped: Dropped,
    /// The control token that every tail begins with, if there is one. llama.cpp switches
    /// the adapter on at this token.
    pub invocation: Option<u32>,
}

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum BatchError {
    #[error(
        "no episode to learn from: of {episodes}, {} unlabelled, {} stale, {} of another base, \
         {} empty",
        dropped.unlabelled, dropped.stale, dropped.other_base, dropped.empty
    )]
    Nothing { episodes: usize, dropped: Dropped },
    #[error("episode {seq}: {what}; drop it from the batch")]
    InvalidRecord { seq: u64, what: String },
}

/// The inputs that the samples of a batch depend on, next to the episodes.
pub struct BatchInputs<'a> {
    pub vocab: &'a Vocab,
    pub base_sha256: &'a str,
    /// The context length that the base was trained with.
    pub context_tokens: usize,
    /// The way in which the experts of the base are recorded, if it has any.
    pub experts: Option<ExpertLayout>,
    /// The version of the adapter that the job starts from. 0 is the base.
    pub parent: AdapterVersion,
    pub hyper: &'a Hyper,
}

impl Batch {
    /// Builds the batch of these episodes.
    ///
    /// # Errors
    /// A record is invalid, or no episode is left to learn from.
    pub fn new(episodes: &[Episode], inputs: &BatchInputs) -> Result<Batch, BatchError> {
        let mut order: Vec<&Episode> = episodes.iter().collect();
        order.sort_by(|a, b| (&a.completion.path, a.seq).cmp(&(&b.completion.path, b.seq)));
        let mut builder = BatchBuilder {
            inputs,
            healing: HealingMasks { vocab: inputs.vocab, known: HashMap::new() },
            samples: Vec::with_capacity(order.len()),
            dropped: Dropped::default(),
        };
        for episode in order {
            builder.add(episode)?;
        }
        builder.finish(episodes.len())
    }

    /// The indices of the samples in the order in which they get the memory for their prompts: the
    /// oldest first, because the newest has waited least.
    pub fn by_urgency(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.samples.len()).collect();
        order.sort_by_key(|index| self.samples[*index].seq);
        order
    }

    /// Keeps these samples, because the prompts of more do not fit into memory. Returns the others.
    pub fn keep(&mut self, is_kept: &[bool]) -> Vec<Sample> {
        let mut left = Vec::new();
        for (sample, is_kept) in std::mem::take(&mut self.samples).into_iter().zip(is_kept) {
            if *is_kept { self.samples.push(sample) } else { left.push(sample) }
        }
        self.dropped.memory += left.iter().filter(|sample| sample.verdict.is_some()).count();
        left
    }

    /// The samples with a verdict.
    pub fn judged(&self) -> impl Iterator<Item = (&Sample, &Verdict)> {
        self.samples.iter().filter_map(|sample| Some((sample, sample.verdict.as_ref()?)))
    }

    /// The number of tokens with a verdict, with those that are left out.
    pub fn tokens(&self) -> usize {
        self.judged().map(|(_, verdict)| verdict.offered).sum()
    }

    /// The mean of a number over all verdicts; 0 if there is none.
    pub fn mean_of(&self, value: impl Fn(&Verdict) -> f32) -> f32 {
        let (sum, count) =
            self.judged().fold((0.0, 0), |(sum, n), (_, verdict)| (sum + value(verdict), n + 1));
        sum / count.max(1) as f32
    }
}

/// The offers of `episodes` from which a later job can learn what is `left` of this one: the
/// prompts of all others are too long for any job.
pub fn offers_left(
    left: &[Sample],
    episodes: &[Episode],
    fits_alone: impl Fn(&[u32]) -> bool,
) -> Vec<OfferId> {
    let waits = |sample: &&Sample| fits_alone(&sample.prompt);
    let seqs: HashSet<u64> = left.iter().filter(waits).map(|sample| sample.seq).collect();
    let waiting = episodes.iter().filter(|episode| seqs.contains(&episode.seq));
    waiting.map(|episode| episode.completion.id.clone()).collect()
}

/// Turns episodes into samples, one episode after the other.
struct BatchBuilder<'a> {
    inputs: &'a BatchInputs<'a>,
    healing: HealingMasks<'a>,
    samples: Vec<Sample>,
    dropped: Dropped,
}

impl BatchBuilder<'_> {
    /// Adds the samples of an episode: a judged one, a demonstration, both or none.
    fn add(&mut self, episode: &Episode) -> Result<(), BatchError> {
        if episode.completion.model_sha256 != self.inputs.base_sha256 {
            self.dropped.other_base += 1;
            return Ok(());
        }
        let reward = episode.reward();
        let judged = judged(episode, reward, self.inputs);
        // An accepted text needs no demonstration next to it.
        let is_accepted = reward.is_some_and(|reward| reward >= self.inputs.hyper.baseline);
        let typed = typed_instead(episode, self.inputs).filter(|_| !is_accepted);
        if let Err(why) = &judged
            && typed.is_none()
        {
            self.dropped.count(why);
            return Ok(());
        }
        let invalid = |what: String| BatchError::InvalidRecord { seq: episode.seq, what };
        check(&episode.completion, self.inputs).map_err(invalid)?;
        if let Ok((ids, verdict)) = judged {
            let sample = self.judged_sample(episode, &ids, verdict, typed).map_err(invalid)?;
            self.samples.push(sample);
        }
        if let Some(sample) = typed.and_then(|ids| self.demonstration(episode, ids)) {
            self.samples.push(sample);
        }
        Ok(())
    }

    /// The sample of the tokens `ids` that the verdict is about. If it is known what the
    /// user `typed` instead, only one of them is credited.
    fn judged_sample(
        &mut self,
        episode: &Episode,
        ids: &[u32],
        verdict: Verdict,
        typed: Option<&[u32]>,
    ) -> Result<Sample, String> {
        let mut credited = match typed {
            Some(typed) => credit_first_difference(ids, typed, self.inputs.vocab),
            None => vec![true; ids.len()],
        };
        let mut behaviour = verdict.behaviour;
        // Behind the last credited token only the KL penalty acts. It is small, and rows are what
        // a step takes its time for.
        let count = credited.iter().rposition(|credited| *credited).map_or(1, |last| last + 1);
        credited.truncate(count);
        behaviour.truncate(count);
        let mut judged = sample(episode, &ids[..count], self.inputs, &mut self.healing).map_err(
            |ContradictsHealing(index)| {
                format!("token {index} does not reproduce the text that healing cut")
            },
        )?;
        judged.in_demonstration_loss =
            has_demonstration_loss(self.inputs) && verdict.reward >= FULLY_ACCEPTED_REWARD;
        judged.verdict = Some(Verdict { behaviour, credited, ..verdict });
        Ok(judged)
    }

    /// The sample of the tokens `ids` that the user typed. `None` if they are too many, or
    /// if the policy could not have drawn them because of healing.
    fn demonstration(&mut self, episode: &Episode, ids: &[u32]) -> Option<Sample> {
        let completion = &episode.completion;
        let tail = completion.prompt.len() - completion.adapter_from + ids.len();
        if tail > TAIL_TOKENS_MAX {
            return None;
        }
        let mut typed = sample(episode, ids, self.inputs, &mut self.healing).ok()?;
        typed.in_demonstration_loss = true;
        // The tokenizer may merge the line break with an empty line below, which the user
        // did not type as a part of this text.
        if let Some(last) = typed.targets.last_mut() {
            last.equivalents = self.healing.line_ends(last.token);
        }
        Some(typed)
    }

    fn finish(self, episodes: usize) -> Result<Batch, BatchError> {
        let BatchBuilder { inputs, samples, dropped, .. } = self;
        if samples.is_empty() {
            return Err(BatchError::Nothing { episodes, dropped });
        }
        let invocation = inputs.vocab.shared_control(samples.iter().map(|sample| sample.tail[0]));
        Ok(Batch { samples, dropped, invocation })
    }
}

/// Returns whether nothing was offered. A text that was cut to nothing because of a defect
/// counts as an offer.
fn is_no_offer(episode: &Episode) -> bool {
    let has_defect = episode.completion.decision.defect.is_some();
    episode.is_no_offer() && !has_defect || episode.completion.tokens.is_empty()
}

/// The reason why an episode has no judged sample.
enum DropReason {
    Unlabelled,
    Stale,
    Empty,
}

/// The tokens that the verdict is about, and the verdict.
fn judged(
    episode: &Episode,
    reward: Option<f32>,
    inputs: &BatchInputs,
) -> Result<(Vec<u32>, Verdict), DropReason> {
    let completion = &episode.completion;
    let reward = reward.ok_or(DropReason::Unlabelled)?;
    // After a rollback an episode may come from a version that is newer than the parent.
    // The distance counts in both directions.
    if completion.adapter.abs_diff(inputs.parent) > inputs.hyper.max_staleness {
        return Err(DropReason::Stale);
    }
    let count = judged_tokens(completion, inputs.vocab);
    if is_no_offer(episode) || count == 0 {
        return Err(DropReason::Empty);
    }
    let tokens = &completion.tokens[..count];
    let verdict = Verdict {
        behaviour: tokens.iter().map(|token| token.logprob).collect(),
        reward,
        advantage: reward - inputs.hyper.baseline,
        by_parent: completion.adapter == inputs.parent,
        credited: Vec::new(),
        offered: count,
    };
    Ok((tokens.iter().map(|token| token.id).collect(), verdict))
}

/// Marks the first of the tokens `ids` whose text differs from what was `typed`. None is
/// marked if the typed text ends before the two differ.
fn credit_first_difference(ids: &[u32], typed: &[u32], vocab: &Vocab) -> Vec<bool> {
    let typed: Vec<u8> = typed.iter().flat_map(|id| vocab.piece(*id)).copied().collect();
    let mut agreed = Some(0);
    ids.iter()
        .map(|id| {
            let Some(from) = agreed else { return false };
            let (piece, rest) = (vocab.piece(*id), &typed[from..]);
            let agrees = !piece.is_empty() && rest.starts_with(piece);
            agreed = agrees.then_some(from + piece.len());
            !agrees && !rest.is_empty() && (piece.is_empty() || !piece.starts_with(rest))
        })
        .collect()
}

/// Refuses a record whose numbers cannot be right. Returns what is wrong with it.
fn check(completion: &Completion, inputs: &BatchInputs) -> Result<(), String> {
    let prompt = &completion.prompt;
    if prompt.len() > PROMPT_TOKENS_MAX {
        return Err(format!(
            "its prompt has {} tokens, the limit is {PROMPT_TOKENS_MAX}",
            prompt.len()
        ));
    }
    if completion.adapter_from >= prompt.len() {
        return Err(format!(
            "adapter_from is {}, but its prompt has {} tokens \
             and the last one must be the adapter's",
            completion.adapter_from,
            prompt.len()
        ));
    }
    let tail = prompt.len() - completion.adapter_from + completion.tokens.len();
    if tail > TAIL_TOKENS_MAX {
        return Err(format!("{tail} tokens from adapter_from on, the limit is {TAIL_TOKENS_MAX}"));
    }
    if prompt.len() + completion.tokens.len() > inputs.context_tokens {
        return Err(format!(
            "it is longer than the model's context of {} tokens",
            inputs.context_tokens
        ));
    }
    let ids = prompt.iter().copied().chain(completion.tokens.iter().map(|token| token.id));
    if let Some(id) = ids.into_iter().find(|id| *id as usize >= inputs.vocab.len()) {
        return Err(format!("token {id} is out of the vocabulary of {}", inputs.vocab.len()));
    }
    for (index, token) in completion.tokens.iter().enumerate() {
        if !token.logprob.is_finite() || token.logprob > LOGPROB_ROUNDING {
            return Err(format!("the recorded log-prob of token {index} is {}", token.logprob));
        }
    }
    let temperature = completion.sampling.policy_temperature();
    if !temperature.is_finite() {
        return Err(format!("its temperature is {temperature}"));
    }
    served_experts(completion, inputs).map(drop)
}

/// The experts that the server chose from `prompt[adapter_from..]` on, for each token those of each
/// layer. There are none if none are recorded.
fn served_experts(completion: &Completion, inputs: &BatchInputs) -> Result<Vec<u16>, String> {
    match (&completion.experts, inputs.experts) {
        (None, _) => Ok(Vec::new()),
        (Some(record), Some(layout)) => record.ids(layout),
        (Some(_), None) => Err("it has chosen experts, and the model has none".into()),
    }
}

/// The same for the rows of a sample with the tokens `ids`. Where they differ from what was served,
/// the server has chosen for other tokens.
fn experts_of_rows(completion: &Completion, ids: &[u32], inputs: &BatchInputs) -> Vec<u16> {
    let Some(layout) = inputs.experts else { return Vec::new() };
    let mut experts = served_experts(completion, inputs).unwrap_or_default();
    let same = ids.iter().zip(&completion.tokens).take_while(|(id, token)| **id == token.id);
    let rows = completion.prompt.len() - completion.adapter_from + same.count();
    experts.truncate(rows * usize::from(layout.used) * usize::from(layout.layers));
    experts
}

/// The index of a token that does not reproduce the text that healing has cut.
struct ContradictsHealing(usize);

/// A sample of the tokens `ids` as the continuation of the episode's prompt.
fn sample(
    episode: &Episode,
    ids: &[u32],
    inputs: &BatchInputs,
    healing: &mut HealingMasks,
) -> Result<Sample, ContradictsHealing> {
    let completion = &episode.completion;
    let temperature = f64::from(completion.sampling.policy_temperature());
    let mut need = completion.healing.as_bytes();
    let mut targets = Vec::with_capacity(ids.len());
    for (index, id) in ids.iter().enumerate() {
        let allowed = match need {
            [] => None,
            _ => Some(healing.allowed(need)),
        };
        if allowed.as_ref().is_some_and(|allowed| allowed.binary_search(id).is_err()) {
            return Err(ContradictsHealing(index));
        }
        let piece = inputs.vocab.piece(*id);
        need = if need.is_empty() { need } else { &need[piece.len().min(need.len())..] };
        targets.push(Target { token: *id, equivalents: [].into(), temperature, allowed });
    }
    let (prompt, ours) = completion.prompt.split_at(completion.adapter_from);
    let fed = &ids[..ids.len() - 1];
    let experts = experts_of_rows(completion, fed, inputs);
    Ok(Sample {
        seq: episode.seq,
        prompt: prompt.to_vec(),
        tail: ours.iter().chain(fed).copied().collect(),
        targets,
        experts,
        verdict: None,
        in_demonstration_loss: false,
    })
}

fn has_demonstration_loss(inputs: &BatchInputs) -> bool {
    inputs.hyper.demonstration_coefficient > 0.0
}

/// Returns what the user typed instead of an offer, or where nothing was offered; `None` if it is
/// unknown or there is no demonstration loss. It does not grow stale, because it is right whichever
/// adapter served.
fn typed_instead<'a>(episode: &'a Episode, inputs: &BatchInputs) -> Option<&'a [u32]> {
    let ids = episode
        .replacement
        .as_deref()
        .filter(|ids| has_demonstration_loss(inputs) && !ids.is_empty())?;
    ids.iter().all(|id| (*id as usize) < inputs.vocab.len()).then_some(ids)
}

/// The number of tokens, counted from the first, that the user's verdict is about: those
/// that begin before the shown text ends, and the token that stopped the policy if it
/// begins where the shown text ends. The user never saw what post-processing cut off.
fn judged_tokens(completion: &Completion, vocab: &Vocab) -> usize {
    if completion.shown.is_empty() && completion.decision.defect.is_some() {
        return completion.tokens.len();
    }
    let end = completion.shown_from + completion.shown.len();
    let mut at = 0;
    let mut count = 0;
    for token in &completion.tokens {
        if at >= end {
            break;
        }
        at += vocab.piece(token.id).len();
        count += 1;
    }
    let stops_here = count + 1 == completion.tokens.len() && completion.stop.is_policy_choice();
    if stops_here && at == end { count + 1 } else { count }
}

/// The tokens that are allowed at each step of healing. They are kept, because episodes at
/// the same place in a document need the same ones.
struct HealingMasks<'a> {
    vocab: &'a Vocab,
    known: HashMap<Vec<u8>, Arc<[u32]>>,
}

impl HealingMasks<'_> {
    /// The other tokens that end a line in the same way as this one.
    fn line_ends(&self, id: u32) -> Arc<[u32]> {
        self.vocab.line_ends(id).iter().copied().filter(|&end| end != id).collect()
    }

    fn allowed(&mut self, need: &[u8]) -> Arc<[u32]> {
        if let Some(allowed) = self.known.get(need) {
            return allowed.clone();
        }
        let allowed: Arc<[u32]> =
            (0..self.vocab.len() as u32).filter(|id| self.vocab.fits(*id, need)).collect();
        self.known.insert(need.to_vec(), allowed.clone());
        allowed
    }
}
