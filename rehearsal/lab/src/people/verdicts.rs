//! Reads decided offers: one JSON object a line.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::path::Path;

/// A decided offer.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    pub person: u64,
    /// Seconds since the person's session began.
    pub shown_s: f64,
    pub decided_s: f64,
    pub accepted: bool,
    /// What stood before the cursor.
    pub before: String,
    pub offer: String,
    /// The person had stopped typing when the offer came.
    pub paused: bool,
    pub recorded: Option<Recorded>,
}

/// What the model which made the offer said of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recorded {
    /// The mean log-prob of a token, in nats.
    pub mean: f32,
    pub tokens: usize,
}

/// The verdicts of a file, and what is wrong with its other lines.
#[derive(Debug, Default)]
pub struct Read {
    pub verdicts: Vec<Verdict>,
    pub faults: Vec<String>,
}

impl Read {
    /// Reads a file. Lines that cannot be read are left out and named.
    ///
    /// # Errors
    /// The file cannot be read at all.
    pub fn file(path: &Path) -> Result<Read> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
        Ok(Read::json_lines(&name, &text))
    }

    pub fn json_lines(name: &str, text: &str) -> Read {
        let mut read = Read::default();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let verdict = serde_json::from_str::<JsonLine>(line).map_err(without_place);
            match verdict.and_then(JsonLine::verdict) {
                Ok(verdict) => read.verdicts.push(verdict),
                Err(error) => {
                    let line = index + 1;
                    read.faults.push(format!("{name}:{line}: {error:#}; it is left out"));
                }
            }
        }
        read
    }
}

/// The error without serde_json's own place, which is always in line 1.
fn without_place(error: serde_json::Error) -> anyhow::Error {
    let text = error.to_string();
    anyhow::anyhow!("{}", text.split(" at line ").next().unwrap_or_default())
}

#[derive(Deserialize)]
struct JsonLine {
    person: u64,
    shown_s: f64,
    decided_s: f64,
    verdict: Decided,
    before: String,
    offer: String,
    moment: String,
    #[serde(default)]
    other_model: OtherModel,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Decided {
    Accepted,
    Rejected,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OtherModel {
    mean_log_prob: Option<f32>,
    num_tokens: f32,
}

impl JsonLine {
    fn verdict(self) -> Result<Verdict> {
        let OtherModel { mean_log_prob, num_tokens } = self.other_model;
        let tokens = (num_tokens as usize).max(1);
        let recorded = mean_log_prob.map(|mean| Recorded { mean, tokens });
        checked(Verdict {
            person: self.person,
            shown_s: self.shown_s,
            decided_s: self.decided_s,
            accepted: matches!(self.verdict, Decided::Accepted),
            before: self.before,
            offer: self.offer,
            paused: self.moment != "UserTyping",
            recorded,
        })
    }
}

/// Returns a verdict on an offer that has text. What was typed along with it is taken off `before`.
fn checked(mut verdict: Verdict) -> Result<Verdict> {
    ensure!(!verdict.offer.trim().is_empty(), "the offer is empty");
    let times = [verdict.shown_s, verdict.decided_s];
    ensure!(times.into_iter().all(f64::is_finite), "a time is no number");
    let typed = typed_along(&verdict.before, &verdict.offer);
    verdict.before.truncate(verdict.before.len() - typed);
    Ok(verdict)
}

/// The length, in bytes, of the longest beginning of the offer that `before` ends with.
fn typed_along(before: &str, offer: &str) -> usize {
    let mut ends = offer.char_indices().map(|(at, c)| at + c.len_utf8());
    ends.rfind(|&end| before.ends_with(&offer[..end])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MADE_UP: &str = include_str!("made-up.jsonl");

    #[test]
    fn lines_that_cannot_be_read_are_named_and_the_others_are_kept() {
        let read = Read::json_lines("v.jsonl", MADE_UP);
        assert_eq!(read.verdicts.len(), 6);
        assert_eq!(
            read.faults,
            [
                "v.jsonl:3: missing field `verdict`; it is left out",
                "v.jsonl:5: the offer is empty; it is left out",
                "v.jsonl:8: EOF while parsing a string; it is left out",
            ]
        );
        let people: Vec<u64> = read.verdicts.iter().map(|verdict| verdict.person).collect();
        assert_eq!(people, [1, 1, 1, 2, 2, 2]);
    }

    #[test]
    fn what_is_typed_along_belongs_to_the_offer() {
        let read = Read::json_lines("v.jsonl", MADE_UP);
        assert_eq!(read.verdicts[0].before, "import math\nx = math.sqrt");
        assert_eq!(read.verdicts[0].offer, "(2)");
        assert_eq!(typed_along("größe", "öße = 1"), "öße".len());
        assert_eq!(typed_along("a", "b"), 0);
    }

    #[test]
    fn an_offer_may_be_without_the_log_probs_of_the_model_that_made_it() {
        let read = Read::json_lines("v.jsonl", MADE_UP);
        let mean = read.verdicts.iter().map(|verdict| verdict.recorded.map(|known| known.mean));
        assert_eq!(
            mean.collect::<Vec<_>>(),
            [Some(-0.1), Some(-1.5), None, Some(-0.3), None, None]
        );
    }
}
