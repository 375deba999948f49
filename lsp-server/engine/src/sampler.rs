//! The sampler: chooses the next token and records how likely it was.

use crate::exp_sum::exp_sum;
use feedback::event::{Sampling, TokenRecord};
use models::vocab::Vocab;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// The number of likeliest tokens that are recorded next to the chosen one.
const RUNNERS_UP: usize = 2;

/// Samples from the softmax over the tokens that healing allows, at the request's temperature.
pub struct Sampler {
    sampling: Sampling,
    random: StdRng,
}

/// A token that was chosen.
#[derive(Debug, Clone, Copy)]
pub struct Chosen {
    pub token: TokenRecord,
    /// ln π of the token as the user sees it: the probability of this token and of all tokens that
    /// end its line the same way.
    pub visible_logprob: f32,
}

/// The softmax at one place.
pub struct Softmax<'a> {
    logits: &'a [f32],
    vocab: &'a Vocab,
    need: &'a [u8],
    temperature: f32,
    /// The likeliest token.
    pub best: u32,
    highest: f32,
    total: f64,
}

impl<'a> Softmax<'a> {
    /// `None` if no token fits `need`.
    pub fn new(
        logits: &'a [f32],
        vocab: &'a Vocab,
        need: &'a [u8],
        temperature: f32,
    ) -> Option<Softmax<'a>> {
        let (best, highest, total) = (0, 0.0, 0.0);
        let mut softmax = Softmax { logits, vocab, need, temperature, best, highest, total };
        (softmax.best, softmax.highest) = softmax.scaled().max_by(|a, b| a.1.total_cmp(&b.1))?;
        softmax.total = if need.is_empty() {
            let allowed = &logits[..logits.len().min(vocab.len())];
            exp_sum(allowed, softmax.highest * temperature, temperature)
        } else {
            softmax.scaled().map(|(_, logit)| softmax.weight(logit)).sum()
        };
        Some(softmax)
    }

    /// The allowed tokens with their scaled logits.
    fn scaled(&self) -> impl Iterator<Item = (u32, f32)> {
        let ids = 0..self.logits.len().min(self.vocab.len()) as u32;
        ids.filter(|&id| self.allows(id)).map(|id| (id, self.logit(id)))
    }

    /// The record of an allowed token with this scaled logit, including the tokens that end its
    /// line the same way.
    pub fn choice(&self, id: u32, logit: f32) -> Chosen {
        let token = self.record(id, logit);
        let ended = self.logprob_of(self.vocab.line_ends(id));
        Chosen { token, visible_logprob: ended.unwrap_or(token.logprob) }
    }

    /// ln π of choosing any of these tokens. `None` if none of them is allowed.
    pub fn logprob_of(&self, ids: &[u32]) -> Option<f32> {
        let allowed = ids.iter().copied().filter(|&id| self.allows(id));
        let weight: f64 = allowed.map(|id| self.weight(self.logit(id))).sum();
        (weight > 0.0).then(|| (weight / self.total).ln() as f32)
    }

    fn allows(&self, id: u32) -> bool {
        (id as usize) < self.logits.len()
            && (self.need.is_empty() || self.vocab.fits(id, self.need))
    }

    /// The scaled logit of a token.
    pub fn logit(&self, id: u32) -> f32 {
        self.logits[id as usize] / self.temperature
    }

    fn weight(&self, logit: f32) -> f64 {
        f64::from(logit - self.highest).exp()
    }

    /// The record of a token with this scaled logit, with its ln π.
    pub fn record(&self, id: u32, logit: f32) -> TokenRecord {
        TokenRecord { id, logprob: logit - self.highest - self.total.ln() as f32 }
    }
}

impl Sampler {
    pub fn new(sampling: Sampling) -> Sampler {
        Sampler { sampling, random: StdRng::seed_from_u64(sampling.seed) }
    }

    /// `None` if no token fits `need`.
    pub fn choose(&mut self, logits: &[f32], vocab: &Vocab, need: &[u8]) -> Option<Chosen> {
        let softmax = Softmax::new(logits, vocab, need, self.sampling.policy_temperature())?;
        let (id, logit) = if self.sampling.temperature > 0.0 {
            let mut left = self.random.random::<f64>() * softmax.total;
            softmax
                .scaled()
                .find(|(_, logit)| {
                    left -= softmax.weight(*logit);
                    left <= 0.0
                })
                .unwrap_or((softmax.best, softmax.highest))
        } else {
            (softmax.best, softmax.highest)
        };
        Some(softmax.choice(id, logit))
    }

    /// The likeliest tokens except the chosen one.
    pub fn runners_up(
        &self,
        logits: &[f32],
        vocab: &Vocab,
        need: &[u8],
        chosen: TokenRecord,
    ) -> Vec<TokenRecord> {
        let temperature = self.sampling.policy_temperature();
        let Some(softmax) = Softmax::new(logits, vocab, need, temperature) else { return vec![] };
        let mut best: Vec<(u32, f32)> = vec![];
        for (id, logit) in softmax.scaled().filter(|(id, _)| *id != chosen.id) {
            let place = best.iter().position(|(_, other)| logit > *other).unwrap_or(best.len());
            if place < RUNNERS_UP {
                best.insert(place, (id, logit));
                best.truncate(RUNNERS_UP);
            }
        }
        best.into_iter().map(|(id, logit)| softmax.record(id, logit)).collect()
    }
}
