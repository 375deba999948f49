//! Copies: a line that went on in the same way where it was written before, in the document itself,
//! in what was typed lately, or in the open folder. It competes with the model's own line.
//!
//! The rule is a mixture of the two sources. How likely a line is, is
//!
//! `trust × share + (1 − trust) × p`,
//!
//! where `p` is how likely the model finds it, `share` is the share of the matching places that go
//! on with it, and `trust` is how often a match of this length goes on as it did before
//! ([`trust`]). The likelier line is offered. Where the copy is likelier than all other lines
//! together, the model is not waited for.

use super::Session;
use crate::services::settings::Current;
use completion::document::Position;
use completion::prompt_builder::QuoteRules;
use engine::{Answer, Draft, Generated, Request};
use feedback::event::{Copied, CopySource, StopReason};
use feedback::secrets;
use memory::{Match, Memory, Query, Source};
use ropey::Rope;
use std::collections::HashSet;
use std::time::Duration;

/// A match of so many bytes, blanks not counted, is long.
const LONG_MATCH: usize = 50;

/// A shorter match is no candidate.
const MATCH_MIN: usize = 26;

/// How often the line behind a long match was the one that was written, and behind a shorter one
/// (docs/lab/memory.md: 16 of 24 places, and 6 of 22).
const TRUST_LONG: f32 = 0.67;
const TRUST_SHORT: f32 = 0.27;

/// The longest line that is offered as a copy, in bytes. Longer ones are mostly data or minified.
const COPY_BYTES_MAX: usize = 160;

/// The text around the cursor that is searched, in bytes on each side.
const AROUND_BYTES_MAX: usize = 64 * 1024;

/// A prompt that takes longer is cold: a copy that will be offered anyway does not wait for it.
const COLD_AFTER: Duration = Duration::from_millis(100);

/// How the text before the cursor may go on.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Several lines, if the text went on so far.
    text: String,
    record: Copied,
    /// The file that it stands in.
    file: String,
    /// The lines of all matching places, blanks left out, and the share of the places of each.
    shares: Vec<(String, f32)>,
}

/// A text that may be offered.
pub struct Proposal {
    pub answer: Answer,
    pub copied: Option<CopiedText>,
}

/// What is known of a text that was copied.
pub struct CopiedText {
    pub record: Copied,
    pub file: String,
    /// How likely the line is by both sources together.
    pub probability: f32,
}

impl Session {
    /// The copy that may be offered at a position. It takes no lock while it searches.
    pub(super) fn recall(
        &self,
        uri: &str,
        position: Position,
        config: &Current,
    ) -> Option<Candidate> {
        if !config.completion.memory {
            return None;
        }
        let (path, text, cursor) = {
            let state = self.state.lock();
            let document = state.documents.get(uri).filter(|_| !state.notebooks.is_cell(uri))?;
            let cursor = document.offset(position, state.encoding).ok()?;
            (document.path.clone(), document.text.clone(), cursor)
        };
        let (before, after) = around(&text, cursor);
        let folder = self.services.workspaces.holding(&path).map(|folder| folder.snapshot());
        let nothing = Memory::default();
        let memory = folder.as_ref().map_or(&nothing, |snapshot| &snapshot.memory);
        let may_quote = |file: &str| {
            let rules = |file: &str| {
                let files = HashSet::from([file.to_owned()]);
                self.services.privacy.quotable(files, &config.not_stored)
            };
            file == path || rules(file).may_quote_file(file, "")
        };
        let query = Query {
            file: &path,
            before: &before,
            after: &after,
            now_ms: self.services.clock.unix_ms(),
            lines: config.completion.max_lines,
            may_quote: &may_quote,
            ..Query::default()
        };
        let candidate = Candidate::of(memory.find(&query))?;
        let line = before.rsplit('\n').next().unwrap_or_default();
        // A secret is offered nowhere, not even in its own file.
        (!secrets::holds_secret(&format!("{line}{}", candidate.text))).then_some(candidate)
    }
}

/// The text before and behind the cursor.
fn around(text: &Rope, cursor: usize) -> (String, String) {
    let at = text.char_to_byte(cursor);
    let from = text.byte_to_char(at.saturating_sub(AROUND_BYTES_MAX));
    let to = text.byte_to_char((at + AROUND_BYTES_MAX).min(text.len_bytes()));
    (text.slice(from..cursor).to_string(), text.slice(cursor..to).to_string())
}

/// How often a match of this length goes on with one of the lines that stand there.
fn trust(matched: u32) -> f32 {
    if matched as usize >= LONG_MATCH { TRUST_LONG } else { TRUST_SHORT }
}

/// A line without its blanks, by which lines are compared.
fn solid(line: &str) -> String {
    line.split_whitespace().collect()
}

impl Candidate {
    /// Of the places that match longest, the line that most of them go on with. Among equals it is
    /// the nearest.
    pub fn of(matches: Vec<Match>) -> Option<Candidate> {
        let fits = |found: &Match| {
            found.rest_agrees
                && found.matched >= MATCH_MIN
                && found.text.chars().any(char::is_alphabetic)
        };
        let fitting: Vec<Match> = matches.into_iter().filter(fits).collect();
        let longest = fitting.iter().map(|found| found.matched).max()?;
        let places: Vec<Match> =
            fitting.into_iter().filter(|found| found.matched == longest).collect();
        let mut shares: Vec<(String, f32)> = vec![];
        let each = 1.0 / places.len() as f32;
        for found in &places {
            let line = solid(found.line());
            match shares.iter_mut().find(|(known, _)| *known == line) {
                Some((_, share)) => *share += each,
                None => shares.push((line, each)),
            }
        }
        // The first of equal ones stays.
        let (best, agreement) = shares.iter().rev().max_by(|a, b| a.1.total_cmp(&b.1)).cloned()?;
        let found = places.iter().find(|found| solid(found.line()) == best)?;
        let record = Copied {
            source: match found.source {
                Source::OwnFile { .. } => CopySource::OwnFile,
                Source::Typed { .. } => CopySource::Typed,
                Source::Repository { .. } => CopySource::Repository,
            },
            matched: longest as u32,
            agreement,
            places: places.len() as u32,
        };
        let (text, file) = (found.text.clone(), found.file.to_string());
        Some(Candidate { text, record, file, shares })
    }

    /// The line that may be offered.
    fn line(&self) -> Option<&str> {
        let line = self.text.split('\n').next().unwrap_or_default();
        let is_fit = line.chars().any(char::is_alphabetic) && line.len() <= COPY_BYTES_MAX;
        is_fit.then_some(line)
    }

    /// Whether the copy is likelier than all other lines together.
    fn is_certain(&self) -> bool {
        trust(self.record.matched) * self.record.agreement > 0.5
    }

    /// What the engine is to do with it. `passes`: the user's time passes.
    pub fn draft(&self, request: &Request, passes: bool) -> Draft {
        let is_line = request.stop_rule.lines() == 1;
        let line = self.line().filter(|_| is_line);
        let is_certain = line.is_some() && self.is_certain() && request.alternatives == 0;
        let first = self.text.split('\n').next().unwrap_or_default();
        Draft {
            text: if is_line { first } else { &self.text }.to_owned(),
            is_scored: line.is_some(),
            is_certain,
            wait: if is_certain && passes { COLD_AFTER } else { Duration::MAX },
        }
    }

    /// How likely a line is by both sources, where `p` is how likely the model finds it.
    fn probability(&self, line: &str, p: f32) -> f32 {
        let (trust, line) = (trust(self.record.matched), solid(line));
        let share =
            self.shares.iter().find(|(known, _)| *known == line).map_or(0.0, |known| known.1);
        trust * share + (1.0 - trust) * p
    }

    /// The copy, if it is likelier than the model's own answer.
    fn proposal(&self, request: &Request, generated: &Generated) -> Option<Proposal> {
        let line = self.line().filter(|_| request.stop_rule.lines() == 1)?;
        let scored = generated.draft.as_ref();
        let p_copy = scored.map_or(0.0, probability);
        let likely = self.probability(line, p_copy);
        if let Some(own) = generated.answers.first() {
            let said = said(own, &request.prompt.healing);
            let is_same = solid(&said) == solid(line);
            if is_same || scored.is_none() || likely <= self.probability(&said, probability(own)) {
                return None;
            }
        }
        let healing = &request.prompt.healing;
        let answer = scored.cloned().unwrap_or_else(|| unscored(&format!("{healing}{line}\n")));
        let (record, file) = (self.record, self.file.clone());
        let copied = Some(CopiedText { record, file, probability: likely });
        Some(Proposal { answer, copied })
    }
}

impl Proposal {
    /// What may be offered, the best first. If no alternatives are wanted, that is one text.
    pub fn all(
        copy: Option<&Candidate>,
        request: &Request,
        generated: &Generated,
    ) -> Vec<Proposal> {
        let copy = copy.and_then(|copy| copy.proposal(request, generated));
        let is_enough = copy.is_some() && request.alternatives == 0;
        let own = generated.answers.iter().filter(|_| !is_enough);
        let own = own.map(|answer| Proposal { answer: answer.clone(), copied: None });
        copy.into_iter().chain(own).collect()
    }
}

/// How likely the model finds an answer, without what healing reproduces.
fn probability(answer: &Answer) -> f32 {
    answer.visible_logprobs[answer.healed..].iter().sum::<f32>().exp()
}

/// The first line of an answer, without what healing reproduces.
fn said(answer: &Answer, healing: &str) -> String {
    let text = answer.offered().get(healing.len()..).unwrap_or_default();
    String::from_utf8_lossy(text).split('\n').next().unwrap_or_default().to_owned()
}

/// A text that the model has not seen.
fn unscored(text: &str) -> Answer {
    Answer {
        tokens: vec![],
        visible_logprobs: vec![],
        healed: 0,
        text: text.as_bytes().to_vec(),
        ends: vec![],
        given_up: None,
        stop: StopReason::Newline,
        decode_time: Duration::ZERO,
        experts: None,
    }
}

#[cfg(test)]
mod tests;
