//! Copies: a line that went on in the same way where it was written before, in the document itself,
//! in what was typed lately, or in the open folder. It competes with the model's own line.
//!
//! [`super::proposals`] says which of the two is offered.

use super::Session;
use crate::services::settings::Current;
use completion::document::Position;
use completion::prompt_builder::QuoteRules;
use engine::{Draft, Request};
use feedback::event::{Copied, CopySource};
use feedback::secrets;
use memory::{Match, Memory, Query, Source};
use policy::gate::features::{Recalled, Writer};
use ropey::Rope;
use std::collections::HashSet;
use std::time::Duration;

/// A shorter match is no candidate, in bytes, blanks not counted.
const MATCH_MIN: usize = 16;

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
    pub record: Copied,
    /// The file that it stands in.
    pub file: String,
    /// The lines of all matching places, blanks left out, and the share of the places of each.
    shares: Vec<(String, f32)>,
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

/// A line without its blanks, by which lines are compared.
pub fn solid(line: &str) -> String {
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
    pub fn line(&self) -> Option<&str> {
        let line = self.text.split('\n').next().unwrap_or_default();
        let is_fit = line.chars().any(char::is_alphabetic) && line.len() <= COPY_BYTES_MAX;
        is_fit.then_some(line)
    }

    /// What the places say of a line.
    pub fn recalled(&self, line: &str, writer: Writer) -> Recalled {
        let line = solid(line);
        let (mut share, mut share_of_other) = (0.0, 0.0);
        for (known, of_places) in &self.shares {
            if *known == line {
                share = *of_places;
            } else {
                share_of_other = f32::max(share_of_other, *of_places);
            }
        }
        let Copied { source, matched, places, .. } = self.record;
        let is_own_file = source == CopySource::OwnFile;
        Recalled { writer, matched, places, is_own_file, share, share_of_other }
    }

    /// The line as it is before the model has seen it, and what the places say of it.
    pub fn unseen(&self) -> Option<(&str, Recalled)> {
        let line = self.line()?;
        Some((line, self.recalled(line, Writer::UnseenCopy)))
    }

    /// What the engine is to do with it. `passes`: the user's time passes.
    pub fn draft(&self, request: &Request, is_certain: bool, passes: bool) -> Draft {
        let is_line = request.stop_rule.lines() == 1;
        let line = self.line().filter(|_| is_line);
        let is_certain = line.is_some() && is_certain && request.alternatives == 0;
        let first = self.text.split('\n').next().unwrap_or_default();
        Draft {
            text: if is_line { first } else { &self.text }.to_owned(),
            is_scored: line.is_some(),
            is_certain,
            wait: if is_certain && passes { COLD_AFTER } else { Duration::MAX },
        }
    }
}

#[cfg(test)]
mod tests;
