//! Reads decided offers: one JSON object a line, or the CSV of RealHumanEval.

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::collections::HashMap;
use std::path::Path;

/// A decided offer.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    pub person: u64,
    /// Seconds since the person's session began.
    pub shown_s: f64,
    /// The CSV does not say when an offer was decided.
    pub decided_s: Option<f64>,
    pub accepted: bool,
    /// What stood before the cursor.
    pub before: String,
    pub after: String,
    pub offer: String,
    /// The person had stopped typing when the offer came.
    pub paused: bool,
    pub recorded: Option<Recorded>,
}

/// The log-probs, in nats, that the model which made the offer gave to the tokens of the offer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recorded {
    pub mean: f32,
    pub first: f32,
    pub lowest: f32,
    /// The number of tokens, where it is known.
    pub tokens: Option<usize>,
}

/// The verdicts of a file, and what is wrong with its other lines.
#[derive(Debug, Default)]
pub struct Read {
    pub verdicts: Vec<Verdict>,
    pub faults: Vec<String>,
    /// Offers that the person asked for. The gate has no part in them.
    pub invoked: usize,
}

impl Read {
    /// Reads a file. Lines that cannot be read are left out and named.
    ///
    /// # Errors
    /// The file cannot be read at all.
    pub fn file(path: &Path) -> Result<Read> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
        let is_csv = path.extension().is_some_and(|extension| extension == "csv");
        Ok(if is_csv { Read::csv(&name, &text) } else { Read::json_lines(&name, &text) })
    }

    pub fn json_lines(name: &str, text: &str) -> Read {
        let mut read = Read::default();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let verdict = serde_json::from_str::<JsonLine>(line).map_err(without_place);
            read.take(name, || index + 1, verdict.and_then(JsonLine::verdict));
        }
        read
    }

    pub fn csv(name: &str, text: &str) -> Read {
        let mut read = Read::default();
        let mut rows = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
        let head = rows.headers().cloned().unwrap_or_default();
        for cells in rows.records() {
            let cells = match cells {
                Ok(cells) => cells,
                Err(error) => {
                    let place = error.position().cloned();
                    read.take(name, || line_at(text, place.as_ref()), Err(error.into()));
                    continue;
                }
            };
            let line = || line_at(text, cells.position());
            let row = Row { cells: head.iter().zip(&cells).collect() };
            match row.is_invoked() {
                Ok(true) => read.invoked += 1,
                Ok(false) => read.take(name, line, row.verdict()),
                Err(error) => read.take(name, line, Err(error)),
            }
        }
        read
    }

    fn take(&mut self, name: &str, line: impl FnOnce() -> usize, verdict: Result<Verdict>) {
        match verdict {
            Ok(verdict) => self.verdicts.push(verdict),
            Err(error) => self.faults.push(format!("{name}:{}: {error:#}; it is left out", line())),
        }
    }
}

/// Returns the line of a row, counted from 1. The reader's own count is one too low behind a line
/// break of Windows.
fn line_at(text: &str, place: Option<&csv::Position>) -> usize {
    let before = place.map_or(0, |place| place.byte() as usize);
    let breaks = text[before..].len() - text[before..].trim_start_matches(['\r', '\n']).len();
    1 + text[..before + breaks].matches('\n').count()
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
        let recorded = mean_log_prob.map(|mean| Recorded {
            mean,
            first: mean,
            lowest: mean,
            tokens: Some((num_tokens as usize).max(1)),
        });
        checked(Verdict {
            person: self.person,
            shown_s: self.shown_s,
            decided_s: Some(self.decided_s),
            accepted: matches!(self.verdict, Decided::Accepted),
            before: self.before,
            after: String::new(),
            offer: self.offer,
            paused: self.moment != "UserTyping",
            recorded,
        })
    }
}

/// Returns a verdict on an offer that has text. What was typed along with it is taken off `before`.
fn checked(mut verdict: Verdict) -> Result<Verdict> {
    ensure!(!verdict.offer.trim().is_empty(), "the offer is empty");
    let times = [Some(verdict.shown_s), verdict.decided_s];
    ensure!(times.into_iter().flatten().all(f64::is_finite), "a time is no number");
    let typed = typed_along(&verdict.before, &verdict.offer);
    verdict.before.truncate(verdict.before.len() - typed);
    Ok(verdict)
}

/// The length, in bytes, of the longest beginning of the offer that `before` ends with.
fn typed_along(before: &str, offer: &str) -> usize {
    let mut ends = offer.char_indices().map(|(at, c)| at + c.len_utf8());
    ends.rfind(|&end| before.ends_with(&offer[..end])).unwrap_or(0)
}

/// A row of the CSV, by the names of its columns.
struct Row<'a> {
    cells: HashMap<&'a str, &'a str>,
}

impl Row<'_> {
    fn cell(&self, column: &str) -> Result<&str> {
        self.cells.get(column).copied().with_context(|| format!("missing field `{column}`"))
    }

    fn flag(&self, column: &str) -> Result<bool> {
        match self.cell(column)?.to_ascii_lowercase().as_str() {
            "true" | "1" | "1.0" => Ok(true),
            "false" | "0" | "0.0" => Ok(false),
            other => bail!("{column} is {other:?}, and it should be True or False"),
        }
    }

    fn number(&self, column: &str) -> Result<f64> {
        self.cell(column)?.parse().with_context(|| format!("{column} is no number"))
    }

    fn is_invoked(&self) -> Result<bool> {
        self.flag("requested")
    }

    fn verdict(&self) -> Result<Verdict> {
        checked(Verdict {
            person: self.number("programmer_id")? as u64,
            shown_s: self.number("timestamp")?,
            decided_s: None,
            accepted: self.flag("accepted")?,
            before: self.cell("prefix_code")?.to_owned(),
            after: self.cell("suffix_code")?.to_owned(),
            offer: self.cell("suggestion")?.to_owned(),
            // The study asked the model when the person had not typed for two seconds.
            paused: true,
            recorded: recorded_statistics(self.cell("logprobs")?),
        })
    }
}

/// Reads statistics that Python has printed as a dictionary.
fn recorded_statistics(text: &str) -> Option<Recorded> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Statistics {
        mean: f32,
        min: f32,
        first_element: f32,
    }
    let Statistics { mean, min, first_element } =
        serde_json::from_str(&text.replace('\'', "\"")).ok()?;
    Some(Recorded { mean, first: first_element, lowest: min, tokens: None })
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

    #[test]
    fn the_csv_of_real_human_eval_is_read() {
        let text = "programmer_id,prefix_code,suffix_code,suggestion,logprobs,accepted,timestamp,\
                    model,task_name,requested\n\
                    4,\"def f(\n\",,\"a, \"\"b\"\"):\",\"{'mean': -0.5, 'min': -2.0, 'max': 0, \
                    'firstElement': -1.0}\",True,1.5,m,t,False\n\
                    4,x,y,z,{},False,2.5,m,t,True\n\
                    4,x,y,z,{},perhaps,3.5,m,t,False\r\n\
                    4,x,y\n";
        let read = Read::csv("v.csv", text);
        assert_eq!(
            read.faults,
            [
                "v.csv:5: accepted is \"perhaps\", and it should be True or False; it is left out",
                "v.csv:6: missing field `requested`; it is left out",
            ]
        );
        assert_eq!((read.verdicts.len(), read.invoked), (1, 1));
        let first = &read.verdicts[0];
        assert_eq!((&*first.before, &*first.offer), ("def f(\n", "a, \"b\"):"));
        assert!(first.accepted);
        let recorded = Recorded { mean: -0.5, first: -1.0, lowest: -2.0, tokens: None };
        assert_eq!(first.recorded, Some(recorded));
    }
}
