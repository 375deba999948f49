//! The features by which one of several answers is chosen. They are known before anything is shown,
//! and of about unit size.

use std::collections::HashSet;

pub const FEATURES: usize = 15;

pub type Features = [f64; FEATURES];

pub const NAMES: [&str; FEATURES] = [
    "bias",
    "log-prob of the line with its end",
    "log-prob of the line against the likeliest",
    "mean log-prob of a token",
    "lowest log-prob of a token",
    "log-prob of the line's end",
    "the model ended the line",
    "first answer",
    "length",
    "unknown names",
    "unknown members",
    "more syntax errors than the others",
    "agreement with the others",
    "words written close by",
    "like a line next to it",
];

/// One of the answers to a request.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// The line that would be shown.
    pub text: &'a str,
    /// The log-probs, in nats, of its new tokens as the user sees them, the one that ends the line
    /// among them.
    pub logprobs: &'a [f32],
    /// The last of them ends the line.
    pub ends: bool,
    /// Names that nothing around the cursor knows, and those of them behind a dot.
    pub unknown_names: usize,
    pub unknown_members: usize,
    /// Syntax errors of the text around the cursor with it.
    pub errors: usize,
}

/// The text around the cursor.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    pub line_before: &'a str,
    /// The lines above and below.
    pub above: &'a str,
    pub below: &'a str,
    /// Lines that the user sees around the cursor.
    pub near: &'a str,
}

/// Log-probs are cut here, in nats: everything below is simply unlikely.
const LEAST_LOGPROB: f64 = -8.0;
const LEAST_LINE_LOGPROB: f64 = -20.0;

/// More unknown names count like so many.
const UNKNOWN_MAX: usize = 2;

/// More syntax errors count like so many.
const ERRORS_MAX: usize = 3;

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_word(c)).filter(|word| word.len() > 2)
}

/// The features of all candidates of one place. The first one is what is shown without a choice.
pub fn features(candidates: &[Candidate], around: &Surroundings) -> Vec<Features> {
    let lines: Vec<f64> = candidates.iter().map(line_logprob).collect();
    let likeliest = lines.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let fewest_errors = candidates.iter().map(|one| one.errors).min().unwrap_or_default();
    let near: HashSet<&str> = words(around.near).collect();
    let of = |(index, one): (usize, &Candidate)| {
        let is = |yes: bool| f64::from(u8::from(yes));
        let logprobs = || one.logprobs.iter().map(|&logprob| f64::from(logprob).max(LEAST_LOGPROB));
        let count = one.logprobs.len().max(1) as f64;
        let end = logprobs().next_back().filter(|_| one.ends).unwrap_or_default();
        let errors = one.errors.saturating_sub(fewest_errors).min(ERRORS_MAX);
        [
            1.0,
            lines[index] / 5.0,
            (lines[index] - likeliest).max(LEAST_LINE_LOGPROB) / 3.0,
            logprobs().sum::<f64>() / count,
            logprobs().fold(0.0, f64::min) / 3.0,
            end / 2.0,
            is(one.ends),
            is(index == 0),
            (one.text.chars().count() as f64 / 10.0).ln_1p(),
            one.unknown_names.min(UNKNOWN_MAX) as f64,
            one.unknown_members.min(UNKNOWN_MAX) as f64,
            errors as f64 / ERRORS_MAX as f64,
            agreement(candidates, index),
            share_known(one.text, &near),
            likeness(one.text, around),
        ]
    };
    candidates.iter().enumerate().map(of).collect()
}

/// ln π of the line with its end.
pub fn line_logprob(one: &Candidate) -> f64 {
    one.logprobs.iter().map(|&logprob| f64::from(logprob)).sum::<f64>().max(LEAST_LINE_LOGPROB)
}

/// Returns how much of this text the others begin with too, on average.
fn agreement(candidates: &[Candidate], index: usize) -> f64 {
    let own = candidates[index].text;
    let length = own.chars().count().max(1) as f64;
    let others = candidates.iter().enumerate().filter(|(other, _)| *other != index);
    let shares = others.map(|(_, other)| {
        let same = own.chars().zip(other.text.chars()).take_while(|(a, b)| a == b).count();
        same as f64 / length
    });
    shares.sum::<f64>() / candidates.len().saturating_sub(1).max(1) as f64
}

/// The share of a text's words that stand close by.
fn share_known(text: &str, near: &HashSet<&str>) -> f64 {
    let (known, all) = words(text).fold((0_u32, 0_u32), |(known, all), word| {
        (known + u32::from(near.contains(word)), all + 1)
    });
    if all == 0 { 0.5 } else { f64::from(known) / f64::from(all) }
}

/// Returns how like the line would be to the one above or below: the share of characters that both
/// begin with, and 1 if they are the same.
fn likeness(text: &str, around: &Surroundings) -> f64 {
    let line = format!("{}{text}", around.line_before);
    let line = line.trim();
    let like = |other: &str| {
        let other = other.trim();
        let longer = line.chars().count().max(other.chars().count()).max(1) as f64;
        line.chars().zip(other.chars()).take_while(|(a, b)| a == b).count() as f64 / longer
    };
    like(around.above).max(like(around.below))
}
