//! The policy: which token follows, and how likely it was.

use feedback::event::{Sampling, TokenRecord};
use models::vocab::Vocab;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Tokens looked at beside the one chosen.
const RUNNERS_UP: usize = 2;

/// Softmax policy over the tokens healing allows, at the request's temperature.
pub struct Policy {
    sampling: Sampling,
    random: StdRng,
}

/// The softmax itself, at one place.
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
        softmax.total = softmax.scaled().map(|(_, logit)| softmax.weight(logit)).sum();
        Some(softmax)
    }

    /// Allowed tokens with their scaled logits.
    fn scaled(&self) -> impl Iterator<Item = (u32, f32)> {
        let ids = 0..self.logits.len().min(self.vocab.len()) as u32;
        ids.filter(|&id| self.need.is_empty() || self.vocab.fits(id, self.need))
            .map(|id| (id, self.logits[id as usize] / self.temperature))
    }

    /// ln π of any of these tokens.
    pub fn logprob_of_any(&self, ids: &[u32]) -> f32 {
        let scaled = self.scaled().filter(|(id, _)| ids.contains(id));
        let weight: f64 = scaled.map(|(_, logit)| self.weight(logit)).sum();
        (weight / self.total).ln() as f32
    }

    fn weight(&self, logit: f32) -> f64 {
        f64::from(logit - self.highest).exp()
    }

    /// ln π of a token with this scaled logit.
    pub fn record(&self, id: u32, logit: f32) -> TokenRecord {
        TokenRecord { id, logprob: logit - self.highest - self.total.ln() as f32 }
    }
}

impl Policy {
    pub fn new(sampling: Sampling) -> Policy {
        Policy { sampling, random: StdRng::seed_from_u64(sampling.seed) }
    }

    /// `None` if no token fits `need`.
    pub fn choose(&mut self, logits: &[f32], vocab: &Vocab, need: &[u8]) -> Option<TokenRecord> {
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
        Some(softmax.record(id, logit))
    }

    /// The likeliest tokens but the one chosen.
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
