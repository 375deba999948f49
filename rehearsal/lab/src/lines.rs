//! Counts the lines that an adapter would have completed exactly.

use crate::scoring::TokenScores;
use anyhow::{Context, ensure};
use feedback::episode::Episode;
use learner::model::lm_head::Target;
use models::vocab::Vocab;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::Serialize;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Shorter lines, such as brackets and `else`, do not count.
const LINE_CHARS_MIN: usize = 4;
/// Resamples of a bootstrap.
const RESAMPLES: usize = 2000;

/// The scores of one author's texts.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Scores {
    pub lines: usize,
    pub characters: usize,
    pub right_lines: usize,
    pub right_characters: usize,
    pub tokens: usize,
    pub nats: f64,
}

/// The episodes of a file of `hone-lab texts`.
pub fn episodes(path: &Path) -> anyhow::Result<Vec<Episode>> {
    let lines = BufReader::new(File::open(path).with_context(|| path.display().to_string())?);
    let read = |line: std::io::Result<String>| Ok(serde_json::from_str(&line?)?);
    let episodes: Vec<Episode> = lines.lines().map(read).collect::<anyhow::Result<_>>()?;
    ensure!(!episodes.is_empty(), "{}: no episode", path.display());
    Ok(episodes)
}

/// By how many percent there is more.
pub fn gain(before: usize, after: usize) -> f64 {
    100.0 * (after as f64 / before.max(1) as f64 - 1.0)
}

/// The 95 % interval of the gain: a paired bootstrap over the texts.
pub fn interval(before: &[usize], after: &[usize]) -> (f64, f64) {
    let mut random = StdRng::seed_from_u64(1);
    let mut gains: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let drawn = (0..before.len()).map(|_| random.random_range(0..before.len()));
            let (was, is) =
                drawn.fold((0, 0), |(was, is), text| (was + before[text], is + after[text]));
            gain(was, is)
        })
        .collect();
    gains.sort_by(f64::total_cmp);
    (gains[RESAMPLES * 25 / 1000], gains[RESAMPLES * 975 / 1000])
}

impl Scores {
    /// Adds a text. Returns the characters of its right lines.
    pub fn add(&mut self, text: &TokenScores, targets: &[Target], vocab: &Vocab) -> usize {
        let right_before = self.right_characters;
        self.tokens += text.logprobs.len();
        self.nats += text.logprobs.iter().sum::<f64>();
        let (mut line, mut is_right) = (vec![], true);
        for (target, is_greedy) in targets.iter().zip(&text.is_greedy) {
            // A token may end a line and begin the next one.
            let piece = vocab.piece(target.token);
            is_right &= is_greedy;
            line.extend_from_slice(piece);
            if piece.contains(&b'\n') {
                self.add_line(&line, is_right);
                (line, is_right) = (vec![], true);
            }
        }
        self.right_characters - right_before
    }

    fn add_line(&mut self, line: &[u8], is_right: bool) {
        let characters = String::from_utf8_lossy(line).trim().chars().count();
        if characters < LINE_CHARS_MIN {
            return;
        }
        self.lines += 1;
        self.characters += characters;
        if is_right {
            self.right_lines += 1;
            self.right_characters += characters;
        }
    }
}

/// The first line with text of an offer, and what stands before it.
pub fn first_line(shown: &str) -> &str {
    let blank = shown.len() - shown.trim_start().len();
    let end = shown[blank..].find('\n').map_or(shown.len(), |at| blank + at);
    &shown[..end]
}
