//! One search: what was found, whether the gate lets it through, and the offer that is made of it.

use super::candidate::EditCandidate;
use super::finder::{Finder, OpenDocument};
use super::live::Live;
use super::{Asked, Session};
use crate::request::Trigger;
use crate::{State, Turn};
use completion::document::{Document, Position};
use feedback::event::{EventKind, GateRecord, NextEdit as Record, OfferId};
use next_edit::{NextEdit, Nothing, Unit};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use services::Services;
use services::reason::Reason;
use services::settings::Current;
use settings::Config;

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
        let (forgets, news) = self.turn(|state, _| (state.forgets, state.next_edits.take_news()));
        let is_private = |path: &str, language: &str| self.is_private(path, language, &config);
        finder.hear(news, is_private);
        let found = finder.find(CANDIDATES_MAX, || self.searched(asked, &config));
        let nothing = found.as_ref().err().copied().map(reason);
        let found = found.unwrap_or_default().into_iter();
        let found = found.map(|edit| (finder.examples(&edit), edit)).collect();
        let mut candidates = self.candidates(asked, found);
        for one in &mut candidates {
            one.may_store &= !is_private(&one.path, &one.language);
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
        self.read(|state| state.searched(asked, config))
    }

    /// What was found, each with the changes that it repeats.
    fn candidates(
        &self,
        asked: &Asked,
        found: Vec<(Vec<(Unit, usize)>, NextEdit)>,
    ) -> Vec<EditCandidate> {
        self.read(|state| {
            let candidate = |(examples, edit): (Vec<_>, NextEdit)| {
                EditCandidate::of(state, asked, edit, &examples)
            };
            found.into_iter().filter_map(candidate).collect()
        })
    }

    /// Offers the first candidate that the gate lets through. What is on screen stays if it is
    /// among them.
    pub(super) fn offer_first(
        &self,
        asked: &Asked,
        candidates: Vec<EditCandidate>,
        forgets: u64,
    ) -> Result<OfferedEdit, Reason> {
        self.turn(|state, turn| state.offer_first(turn, asked, candidates, forgets))
    }
}

impl State {
    fn searched(&self, asked: &Asked, config: &Current) -> (Vec<OpenDocument>, usize) {
        let Some(first) = self.documents.get(&asked.uri) else { return (vec![], 0) };
        let cursor = first.offset(asked.position, self.editor.encoding).unwrap_or(0);
        let is_invoked_here = |uri: &String| asked.trigger == Trigger::Invoked && *uri == asked.uri;
        let others = self.next_edits.recent().filter(|uri| **uri != asked.uri);
        let documents = std::iter::once(&asked.uri).chain(others).filter_map(|uri| {
            let Document { path, language, text, .. } = self.documents.get(uri)?;
            let is_wanted = is_invoked_here(uri) || config.completes(path, language);
            is_wanted.then(|| OpenDocument {
                uri: uri.clone(),
                language: language.clone(),
                text: text.clone(),
            })
        });
        (documents.collect(), cursor)
    }

    fn offer_first(
        &mut self,
        turn: &mut Turn,
        asked: &Asked,
        candidates: Vec<EditCandidate>,
        forgets: u64,
    ) -> Result<OfferedEdit, Reason> {
        let config = turn.services.settings.current();
        if self.forgets != forgets {
            return Err(Reason::Forgotten);
        }
        if !self.is_current(asked) {
            return Err(Reason::Superseded);
        }
        let live = self.next_edits.live.as_ref();
        let stays = candidates
            .iter()
            .find(|one| one.fits(self) && live.is_some_and(|live| live.is(&one.edit, &one.place)));
        if let (Some(one), Some(live)) = (stays, live) {
            let answer = offered(self, &live.id, one).ok_or(Reason::OutOfStep);
            self.next_edits.live.iter_mut().for_each(Live::is_found_again);
            return answer;
        }
        let mut otherwise = Reason::NoOtherPlace;
        let mut chosen = None;
        for one in candidates {
            if !one.fits(self) {
                continue;
            }
            let gate = judge(turn.services, &one, &config);
            let draw =
                StdRng::seed_from_u64(one.edit.rule.0 ^ one.place.start as u64).random::<f64>();
            if asked.trigger == Trigger::Invoked || draw < f64::from(gate.propensity) {
                chosen = Some((one, gate));
                break;
            }
            if otherwise == Reason::NoOtherPlace {
                otherwise = held_back(turn.services, &one, &gate, &config);
            }
        }
        self.make_offer(turn, asked, chosen).ok_or(otherwise)
    }

    /// Notes what was chosen, and makes an offer of it.
    fn make_offer(
        &mut self,
        turn: &mut Turn,
        asked: &Asked,
        chosen: Option<(EditCandidate, GateRecord)>,
    ) -> Option<OfferedEdit> {
        let now_ms = turn.now_ms;
        turn.events.extend(match &chosen {
            Some(_) => self.next_edits.supersede(now_ms),
            // It stays until it is known what the model says now.
            None if self.next_edits.is_by_model() => vec![],
            None => self.next_edits.withdraw(now_ms),
        });
        let (one, gate) = chosen?;
        let id = turn.services.recorder.next_offer_id();
        let id = if one.may_store { id } else { privacy::unstored(id) };
        let answer = offered(self, &id, &one)?;
        turn.events.push(record(id.clone(), &one, asked.trigger, gate));
        let EditCandidate { edit, place, cursor_line, .. } = one;
        let reports = self.next_edits.client_reports;
        self.next_edits.live = Some(Live::new(id, edit, place, cursor_line, now_ms, reports));
        Some(answer)
    }

    /// Withdraws what a model wrote, because it is known that nothing is offered any more.
    pub(super) fn withdraw_by_model(&mut self, turn: &mut Turn, asked: &Asked) {
        if self.is_current(asked) && self.next_edits.is_by_model() {
            turn.events.extend(self.next_edits.withdraw(turn.now_ms));
        }
    }

    /// Returns whether nobody has asked again, and the document is still the one that was asked
    /// about.
    pub(super) fn is_current(&self, asked: &Asked) -> bool {
        let document = self.documents.get(&asked.uri);
        self.next_edits.asked == asked.number
            && document.is_some_and(|document| document.version == asked.version)
    }
}

fn held_back(
    services: &Services,
    one: &EditCandidate,
    gate: &GateRecord,
    config: &Config,
) -> Reason {
    let weighed = services.recorder.edit_gate().weighed_against(one.seen.kind, gate);
    Reason::HeldBack {
        probability: gate.probability,
        threshold: threshold(one, config) as f32,
        weighed: weighed.into_iter().map(str::to_owned).collect(),
    }
}

fn judge(services: &Services, one: &EditCandidate, config: &Config) -> GateRecord {
    let threshold = threshold(one, config);
    let mut gate = services.recorder.edit_gate().judge(&one.seen, threshold);
    if !config.gate.enabled {
        gate.propensity = 1.0;
    }
    gate
}

fn threshold(one: &EditCandidate, config: &Config) -> f64 {
    config.completion.eagerness_in(&one.language).next_edit_threshold()
}

fn reason(nothing: Nothing) -> Reason {
    match nothing {
        Nothing::NoRule => Reason::NothingAlike,
        Nothing::NoPlace => Reason::NoOtherPlace,
        Nothing::Rejected => Reason::TurnedDown,
    }
}

fn offered(state: &State, id: &OfferId, one: &EditCandidate) -> Option<OfferedEdit> {
    let document = state.documents.get(&*one.edit.file)?;
    let position = |at| document.position(at, state.editor.encoding);
    Some(OfferedEdit {
        id: id.clone(),
        uri: one.edit.file.to_string(),
        version: document.version,
        range: (position(one.place.start), position(one.place.end)),
        old: one.edit.old.clone(),
        new: one.edit.new.clone(),
    })
}

fn record(id: OfferId, one: &EditCandidate, trigger: Trigger, gate: GateRecord) -> EventKind {
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
