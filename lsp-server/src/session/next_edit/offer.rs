//! One search: what was found, whether the gate lets it through, and the offer that is made of it.

use super::finder::OpenDocument;
use super::live::Live;
use super::{Asked, Session};
use crate::privacy;
use crate::services::reason::Reason;
use crate::services::settings::Current;
use crate::session::State;
use crate::session::request::Trigger;
use completion::document::{Document, Position};
use feedback::event::{EventKind, GateRecord, NextEdit as Record, NextEditKind, OfferId};
use feedback::secrets;
use next_edit::{NextEdit, Nothing, RuleKind};
use policy::next_edit::features::Surroundings;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use ropey::Rope;
use std::ops::Range;

/// Places that one search looks for: the gate may hold back the first ones.
const CANDIDATES_MAX: usize = 4;

/// How far cursor and place may be apart, in lines, for both to be looked at as one block.
const BLOCK_LINES_MAX: usize = 400;

/// An edit as the editor gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedEdit {
    pub id: OfferId,
    pub uri: String,
    /// The version of the document that the range is meant for.
    pub version: i32,
    pub range: (Position, Position),
    /// What stands there, by which the editor checks the place before it makes the edit.
    pub old: String,
    pub new: String,
}

/// A found edit, with all that the gate and the log want to know of it.
struct Candidate {
    edit: NextEdit,
    /// The replaced characters.
    place: Range<usize>,
    path: String,
    language: String,
    seen: Surroundings,
    cursor_line: usize,
}

impl Session {
    /// Hears what was queued, and searches. This takes its time and may read ignore files.
    pub(super) fn search(&self, asked: &Asked) -> Result<OfferedEdit, Reason> {
        let config = self.services.settings.current();
        let mut finder = self.search.finder.lock();
        let news = self.state.lock().next_edits.take_news();
        let is_private = |path: &str, language: &str| self.is_private(path, language, &config);
        finder.hear(news, is_private);
        let found = finder.find(CANDIDATES_MAX, || self.searched(asked, &config));
        let nothing = found.as_ref().err().copied().map(reason);
        let candidates = self.candidates(asked, found.unwrap_or_default());
        let is_stored = |one: &Candidate| !self.is_private(&one.path, &one.language, &config);
        let candidates = candidates.into_iter().map(|one| (is_stored(&one), one)).collect();
        let offered = self.offer_first(asked, candidates, &config);
        offered.map_err(|otherwise| match (otherwise, nothing) {
            // Nothing was held back, because nothing was found.
            (Reason::NoOtherPlace, Some(Reason::NoOtherPlace)) => {
                self.look_further(asked, &mut finder, &config).unwrap_or(Reason::NoOtherPlace)
            }
            (Reason::NoOtherPlace, Some(nothing)) => nothing,
            (otherwise, _) => otherwise,
        })
    }

    pub(super) fn is_private(&self, path: &str, language: &str, config: &Current) -> bool {
        self.services.privacy.ignores(path, language, &config.not_stored)
    }

    /// The documents that are searched, and the cursor in the first one.
    pub(super) fn searched(&self, asked: &Asked, config: &Current) -> (Vec<OpenDocument>, usize) {
        let state = self.state.lock();
        let Some(first) = state.documents.get(&asked.uri) else { return (vec![], 0) };
        let cursor = first.offset(asked.position, state.encoding).unwrap_or(0);
        let is_invoked_here = |uri: &String| asked.trigger == Trigger::Invoked && *uri == asked.uri;
        let others = state.next_edits.recent().filter(|uri| **uri != asked.uri);
        let documents = std::iter::once(&asked.uri).chain(others).filter_map(|uri| {
            let Document { path, language, text, .. } = state.documents.get(uri)?;
            let is_wanted = is_invoked_here(uri) || config.completes(path, language);
            is_wanted.then(|| OpenDocument {
                uri: uri.clone(),
                language: language.clone(),
                text: text.clone(),
            })
        });
        (documents.collect(), cursor)
    }

    /// What was found, as far as it still fits the documents as they are now.
    fn candidates(&self, asked: &Asked, found: Vec<NextEdit>) -> Vec<Candidate> {
        let state = self.state.lock();
        found.into_iter().filter_map(|edit| candidate(&state, asked, edit)).collect()
    }

    /// Offers the first candidate that the gate lets through. What is on screen stays if it is
    /// among them.
    fn offer_first(
        &self,
        asked: &Asked,
        candidates: Vec<(bool, Candidate)>,
        config: &Current,
    ) -> Result<OfferedEdit, Reason> {
        let now_ms = self.services.clock.elapsed_ms();
        let mut state = self.state.lock();
        let is_current = |state: &State| {
            let document = state.documents.get(&asked.uri);
            document.is_some_and(|document| document.version == asked.version)
        };
        if state.next_edits.asked != asked.number || !is_current(&state) {
            return Err(Reason::Superseded);
        }
        let live = state.next_edits.live.as_ref();
        let stays = candidates.iter().find(|(_, one)| {
            fits(&state, one) && live.is_some_and(|live| live.is(&one.edit, &one.place))
        });
        if let (Some((_, one)), Some(live)) = (stays, live) {
            return offered(&state, &live.id, one).ok_or(Reason::OutOfStep);
        }
        let mut otherwise = Reason::NoOtherPlace;
        let chosen = candidates.into_iter().find_map(|(may_store, one)| {
            let gate = fits(&state, &one).then(|| self.judge(&one, config))?;
            let draw =
                StdRng::seed_from_u64(one.edit.rule.0 ^ one.place.start as u64).random::<f64>();
            let passes = asked.trigger == Trigger::Invoked || draw < f64::from(gate.propensity);
            if !passes && otherwise == Reason::NoOtherPlace {
                otherwise = self.held_back(&one, &gate, config);
            }
            passes.then_some((may_store, one, gate))
        });
        let mut events = match &chosen {
            Some(_) => state.next_edits.supersede(now_ms),
            None => state.next_edits.withdraw(now_ms),
        };
        let answer = chosen.and_then(|(may_store, one, gate)| {
            let id = self.services.recorder.next_offer_id();
            let id = if may_store { id } else { privacy::unstored(id) };
            let answer = offered(&state, &id, &one)?;
            events.push(record(id.clone(), &one, asked.trigger, gate));
            let Candidate { edit, place, cursor_line, .. } = one;
            state.next_edits.live = Some(Live::new(id, edit, place, cursor_line, now_ms));
            Some(answer)
        });
        self.services.recorder.record(events);
        answer.ok_or(otherwise)
    }

    fn held_back(&self, one: &Candidate, gate: &GateRecord, config: &Current) -> Reason {
        let weighed = self.services.recorder.edit_gate().weighed_against(gate);
        Reason::HeldBack {
            probability: gate.probability,
            threshold: threshold(one, config) as f32,
            weighed: weighed.into_iter().map(str::to_owned).collect(),
        }
    }

    fn judge(&self, one: &Candidate, config: &Current) -> GateRecord {
        let threshold = threshold(one, config);
        let mut gate = self.services.recorder.edit_gate().judge(&one.seen, threshold);
        if !config.gate.enabled {
            gate.propensity = 1.0;
        }
        gate
    }
}

fn threshold(one: &Candidate, config: &Current) -> f64 {
    config.completion.eagerness_in(&one.language).next_edit_threshold()
}

fn reason(nothing: Nothing) -> Reason {
    match nothing {
        Nothing::NoRule => Reason::NothingAlike,
        Nothing::NoPlace => Reason::NoOtherPlace,
        Nothing::TurnedDown => Reason::TurnedDown,
    }
}

fn candidate(state: &State, asked: &Asked, edit: NextEdit) -> Option<Candidate> {
    let document = state.documents.get(&*edit.file)?;
    let text = &document.text;
    if edit.range.end > text.len_bytes() {
        return None;
    }
    let place = text.byte_to_char(edit.range.start)..text.byte_to_char(edit.range.end);
    let is_here = *edit.file == *asked.uri;
    // A secret stays in its own file.
    if !is_here && secrets::holds_secret(&edit.new) {
        return None;
    }
    let cursor = state.documents.get(&asked.uri)?.offset(asked.position, state.encoding).ok()?;
    let cursor_line = state.documents.get(&asked.uri)?.text.char_to_line(cursor);
    let line = text.char_to_line(place.start);
    let seen = Surroundings {
        rule: edit.rule.0,
        kind: kind(edit.kind),
        support: edit.support as u32,
        lines_away: is_here.then(|| line.abs_diff(cursor_line) as u32),
        is_in_same_block: is_here && is_in_same_block(text, line, cursor_line),
    };
    let Document { path, language, .. } = document;
    let (path, language) = (path.clone(), language.clone());
    Some(Candidate { edit, place, path, language, seen, cursor_line })
}

/// Whether what is to be replaced stands at the place now.
fn fits(state: &State, one: &Candidate) -> bool {
    state.documents.get(&*one.edit.file).is_some_and(|document| {
        let text = &document.text;
        one.place.end <= text.len_chars()
            && text.char_to_byte(one.place.start) == one.edit.range.start
            && text.slice(one.place.clone()) == one.edit.old
    })
}

/// Whether no line between these two begins at the left margin, as the lines of a function do.
fn is_in_same_block(text: &Rope, one: usize, other: usize) -> bool {
    let lines = one.min(other)..one.max(other);
    lines.len() <= BLOCK_LINES_MAX
        && lines.chain([one.max(other)]).all(|line| {
            text.get_line(line)
                .and_then(|line| line.get_char(0))
                .is_none_or(|first| first.is_whitespace())
        })
}

fn offered(state: &State, id: &OfferId, one: &Candidate) -> Option<OfferedEdit> {
    let document = state.documents.get(&*one.edit.file)?;
    let position = |at| document.position(at, state.encoding);
    Some(OfferedEdit {
        id: id.clone(),
        uri: one.edit.file.to_string(),
        version: document.version,
        range: (position(one.place.start), position(one.place.end)),
        old: one.edit.old.clone(),
        new: one.edit.new.clone(),
    })
}

fn record(id: OfferId, one: &Candidate, trigger: Trigger, gate: GateRecord) -> EventKind {
    EventKind::NextEdit(Box::new(Record {
        id,
        path: one.path.clone(),
        language: one.language.clone(),
        line: one.edit.line as u32 + 1,
        rule: one.edit.rule.0,
        kind: one.seen.kind,
        support: one.seen.support,
        invoked: trigger == Trigger::Invoked,
        gate: Some(gate),
    }))
}

fn kind(kind: RuleKind) -> NextEditKind {
    match kind {
        RuleKind::Rewrite => NextEditKind::Rewrite,
        RuleKind::RewriteWithHoles => NextEditKind::RewriteWithHoles,
        RuleKind::Insertion => NextEditKind::Insertion,
        RuleKind::InlineDeletion => NextEditKind::InlineDeletion,
        RuleKind::InsertedLines => NextEditKind::InsertedLines,
        RuleKind::DeletedLines => NextEditKind::DeletedLines,
    }
}
