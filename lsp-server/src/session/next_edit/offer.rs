//! One search: what was found, whether the gate lets it through, and the offer that is made of it.

use super::candidate::Candidate;
use super::finder::{Finder, OpenDocument};
use super::live::Live;
use super::{Asked, Session};
use crate::privacy;
use crate::services::reason::Reason;
use crate::services::settings::Current;
use crate::session::State;
use crate::session::request::Trigger;
use completion::document::{Document, Position};
use feedback::event::{EventKind, GateRecord, NextEdit as Record, OfferId};
use next_edit::{NextEdit, Nothing};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Places that one search looks for: the gate may hold back the first ones.
const CANDIDATES_MAX: usize = 4;

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

impl Session {
    /// Hears what was queued, and searches. This takes its time and may read ignore files.
    pub(super) fn search(&self, asked: &Asked) -> Result<OfferedEdit, Reason> {
        let found = self.search.with_finder(|finder| self.search_with(finder, asked));
        found.unwrap_or(Err(Reason::Forgotten))
    }

    fn search_with(&self, finder: &mut Finder, asked: &Asked) -> Result<OfferedEdit, Reason> {
        let config = self.services.settings.current();
        let forgets = self.state.lock().forgets;
        let news = self.state.lock().next_edits.take_news();
        let is_private = |path: &str, language: &str| self.is_private(path, language, &config);
        finder.hear(news, is_private);
        let found = finder.find(CANDIDATES_MAX, || self.searched(asked, &config));
        let nothing = found.as_ref().err().copied().map(reason);
        let mut candidates = self.candidates(asked, found.unwrap_or_default());
        for one in &mut candidates {
            one.may_store = !is_private(&one.path, &one.language);
        }
        match (self.offer_first(asked, candidates, forgets), nothing) {
            // Nothing was held back, because nothing was found.
            (Err(Reason::NoOtherPlace), Some(Reason::NoOtherPlace)) => {
                let further = self.look_further(asked, finder, &config);
                Err(further.unwrap_or(Reason::NoOtherPlace))
            }
            (Err(Reason::NoOtherPlace), Some(nothing)) => Err(nothing),
            (answer, _) => answer,
        }
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

    fn candidates(&self, asked: &Asked, found: Vec<NextEdit>) -> Vec<Candidate> {
        let state = self.state.lock();
        found.into_iter().filter_map(|edit| Candidate::of(&state, asked, edit)).collect()
    }

    /// Offers the first candidate that the gate lets through. What is on screen stays if it is
    /// among them.
    fn offer_first(
        &self,
        asked: &Asked,
        candidates: Vec<Candidate>,
        forgets: u64,
    ) -> Result<OfferedEdit, Reason> {
        let config = self.services.settings.current();
        let mut state = self.state.lock();
        if state.forgets != forgets {
            return Err(Reason::Forgotten);
        }
        if !self.is_current(&state, asked) {
            return Err(Reason::Superseded);
        }
        let live = state.next_edits.live.as_ref();
        let stays = candidates.iter().find(|one| {
            one.fits(&state) && live.is_some_and(|live| live.is(&one.edit, &one.place))
        });
        if let (Some(one), Some(live)) = (stays, live) {
            return offered(&state, &live.id, one).ok_or(Reason::OutOfStep);
        }
        let mut otherwise = Reason::NoOtherPlace;
        let mut chosen = None;
        for one in candidates {
            if !one.fits(&state) {
                continue;
            }
            let gate = self.judge(&one, &config);
            let draw =
                StdRng::seed_from_u64(one.edit.rule.0 ^ one.place.start as u64).random::<f64>();
            if asked.trigger == Trigger::Invoked || draw < f64::from(gate.propensity) {
                chosen = Some((one, gate));
                break;
            }
            if otherwise == Reason::NoOtherPlace {
                otherwise = self.held_back(&one, &gate, &config);
            }
        }
        self.make_offer(&mut state, asked, chosen).ok_or(otherwise)
    }

    /// Records what was chosen, and makes an offer of it.
    fn make_offer(
        &self,
        state: &mut State,
        asked: &Asked,
        chosen: Option<(Candidate, GateRecord)>,
    ) -> Option<OfferedEdit> {
        let now_ms = self.services.clock.elapsed_ms();
        let mut events = match &chosen {
            Some(_) => state.next_edits.supersede(now_ms),
            None => state.next_edits.withdraw(now_ms),
        };
        let answer = chosen.and_then(|(one, gate)| {
            let id = self.services.recorder.next_offer_id();
            let id = if one.may_store { id } else { privacy::unstored(id) };
            let answer = offered(state, &id, &one)?;
            events.push(record(id.clone(), &one, asked.trigger, gate));
            let Candidate { edit, place, cursor_line, .. } = one;
            let reports = state.next_edits.client_reports;
            state.next_edits.live = Some(Live::new(id, edit, place, cursor_line, now_ms, reports));
            Some(answer)
        });
        self.services.recorder.record(events);
        answer
    }

    /// Whether nobody has asked again, and the document is still the one that was asked about.
    fn is_current(&self, state: &State, asked: &Asked) -> bool {
        let document = state.documents.get(&asked.uri);
        state.next_edits.asked == asked.number
            && document.is_some_and(|document| document.version == asked.version)
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
        real_name: None,
        language: one.language.clone(),
        line: one.edit.line as u32 + 1,
        rule: one.edit.rule.0,
        kind: one.seen.kind,
        support: one.seen.support,
        invoked: trigger == Trigger::Invoked,
        gate: Some(gate),
    }))
}
