//! What a choice would give as the user types, where the gate shows only the likeliest offers.

use super::Tried;
use super::lines::{Outcome, compared, outcome};
use crate::lines::first_line;
use crate::places::record::Candidate;
use policy::gate::features::{Surroundings, features};
use policy::gate::{Gate, Recent};
use rehearsal::developer::MIN_OFFER_CHARS;
use settings::{Config, Eagerness};
use std::fmt::Write;

/// How long the developer has not typed, in milliseconds.
const IDLE_MS: u64 = 500;

/// The probability that a new gate gives to an offer of this candidate; nothing if it would not
/// come so far.
fn judged(one: &Candidate, tried: &Tried) -> Option<f64> {
    let record = tried.record;
    let text = first_line(&one.shown);
    let logprobs = super::new_logprobs(one);
    let least = Config::default().lab.min_token_probability;
    let mut sum = 0.0;
    let is_too_unlikely = logprobs.iter().enumerate().any(|(before, logprob)| {
        sum += logprob;
        engine::is_too_unlikely(sum, before + 1, least)
    });
    if is_too_unlikely || text.trim().chars().count() < MIN_OFFER_CHARS {
        return None;
    }
    let seen = Surroundings {
        logprobs: &logprobs,
        text,
        stop: one.stop,
        line_before: record.line_before(),
        rest_of_line: &record.closers,
        language: &record.language,
        idle_ms: IDLE_MS,
        rejects_here: 0,
        recent: Recent { rate: 0.25, rejects: 0 },
    };
    let threshold = Eagerness::default().gate_threshold();
    Some(f64::from(Gate::default().judge(&features(&seen), threshold).probability))
}

/// Compares choices at the same number of offers shown. `learned` names the candidate of a place.
pub fn table(places: &[&Tried], learned: &dyn Fn(&Tried) -> usize) -> String {
    let typed = |one: &&Tried| {
        let first = one.record.candidates.first()?;
        Some((judged(first, one)?, outcome(first_line(&first.shown), one.record)))
    };
    let chosen = |one: &&Tried| {
        let index = learned(one);
        Some((judged(one.candidates.get(index)?, one)?, one.outcome(index)))
    };
    let threshold = Eagerness::default().gate_threshold();
    let first: Vec<_> = places.iter().map(typed).collect();
    let chosen: Vec<_> = places.iter().map(chosen).collect();
    let is_shown = |one: &Option<(f64, Outcome)>| one.is_some_and(|one| one.0 >= threshold);
    let count = first.iter().filter(|one| is_shown(one)).count();
    let shown = |all: &[Option<(f64, Outcome)>]| {
        let mut order: Vec<usize> = (0..all.len()).collect();
        let probability = |index: &usize| all[*index].map_or(-1.0, |one| one.0);
        order.sort_by(|a, b| probability(b).total_cmp(&probability(a)));
        let mut outcomes = vec![Outcome::default(); all.len()];
        for index in order.into_iter().take(count) {
            outcomes[index] = all[index].map_or_else(Outcome::default, |one| one.1);
        }
        outcomes
    };
    let before = shown(&first);
    let mut table = format!("as typed, {count} offers shown\n");
    for (name, all) in [("first answer", &first), ("learned", &chosen)] {
        let pairs: Vec<(&str, Outcome, Outcome)> = places
            .iter()
            .zip(before.iter().zip(shown(all)))
            .map(|(one, (before, after))| (one.record.commit.as_str(), *before, after))
            .collect();
        let _ = writeln!(table, "{name:<30}{}", compared(&pairs));
    }
    table.push('\n');
    table
}
