//! The log by offers, for the report, the export and the replay of another reward: each offer once,
//! with everything that became of it.

use feedback::episode::{Episode, Fold};
use feedback::event::{Completion, Event, EventKind, Evidence, OfferId, Outcome};
use feedback::limits::KNOWN_OFFERS_MAX;
use std::collections::{HashMap, VecDeque};

/// The most offers whose events may still come. The daemon remembers as many. So the memory does
/// not grow with the log.
const OPEN_LIMIT: usize = KNOWN_OFFERS_MAX;

/// The most events of one offer. A client that reports each accepted word makes a handful.
const EVENTS_LIMIT: usize = 64;

/// Groups events by their offer. It takes them in the log's order, and passes on each offer when no
/// more of its events can come.
pub struct Offers<F> {
    order: VecDeque<OfferId>,
    open: HashMap<OfferId, Vec<Event>>,
    each: F,
}

impl<F: FnMut(OfferHistory) -> anyhow::Result<()>> Offers<F> {
    pub fn new(each: F) -> Self {
        Offers { order: VecDeque::new(), open: HashMap::new(), each }
    }

    pub fn event(&mut self, event: Event) -> anyhow::Result<()> {
        let id = event.kind.offer_id();
        match (&event.kind, self.open.get_mut(id)) {
            (EventKind::Completion(_), None) => {
                let id = id.clone();
                self.order.push_back(id.clone());
                self.open.insert(id, vec![event]);
                if self.order.len() > OPEN_LIMIT {
                    self.close_oldest()?;
                }
            }
            (_, Some(known)) if known.len() < EVENTS_LIMIT => known.push(event),
            // The offer was forgotten, or was made too long ago.
            _ => {}
        }
        Ok(())
    }

    pub fn finish(mut self) -> anyhow::Result<()> {
        while !self.order.is_empty() {
            self.close_oldest()?;
        }
        Ok(())
    }

    fn close_oldest(&mut self) -> anyhow::Result<()> {
        let oldest = self.order.pop_front().and_then(|id| self.open.remove(&id));
        oldest.map_or(Ok(()), |events| (self.each)(OfferHistory { events }))
    }
}

/// The events of one offer. The first is its completion.
pub struct OfferHistory {
    events: Vec<Event>,
}

impl OfferHistory {
    pub fn first(&self) -> &Event {
        &self.events[0]
    }

    pub fn completion(&self) -> &Completion {
        match &self.first().kind {
            EventKind::Completion(completion) => completion,
            other => unreachable!("an offer begins with its completion, not {other:?}"),
        }
    }

    pub fn offer_utf16(&self) -> u32 {
        self.completion().shown.encode_utf16().count() as u32
    }

    /// Returns the episode that the events give by the same fold that learning uses.
    pub fn episode(&self) -> Option<Episode> {
        let mut fold = Fold::new(&self.completion().model_sha256, None);
        self.events.iter().for_each(|event| {
            fold.apply(event);
        });
        fold.into_episodes().next()
    }

    /// The outcome that counts, its evidence, and its time.
    pub fn outcome(&self, episode: &Episode) -> Option<(Outcome, Evidence, u64)> {
        let (outcome, evidence) = episode.outcome?;
        let decisive = self.events.iter().find(|event| {
            matches!(&event.kind, EventKind::Outcome { outcome: o, evidence: e, .. }
                if *o == outcome && *e == evidence)
        });
        Some((outcome, evidence, decisive.map_or(0, |event| event.at_ms)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::group;
    use feedback::testing::outcome;
    use fixtures::completion;

    fn rewards(events: Vec<EventKind>) -> Vec<(OfferId, Option<f32>, Option<u64>)> {
        let mut all = vec![];
        group(events, |history| {
            let episode = history.episode().unwrap();
            let at = history.outcome(&episode).map(|(_, _, at_ms)| at_ms);
            all.push((history.completion().id.clone(), episode.reward(), at));
        });
        all
    }

    #[test]
    fn each_offer_comes_once_with_the_outcome_that_counts() {
        let all = rewards(vec![
            completion("a", "/a.rs"),
            completion("b", "/a.rs"),
            outcome("a", Outcome::TypedThrough { utf16: 5 }, Evidence::Document),
            outcome("b", Outcome::Unseen, Evidence::Document),
            outcome("a", Outcome::Accepted, Evidence::Command),
            outcome("a", Outcome::RejectedTimeout, Evidence::Clock),
            outcome("gone", Outcome::Accepted, Evidence::Command),
        ]);
        assert_eq!(all, [("a".into(), Some(1.0), Some(40)), ("b".into(), None, Some(30))]);
    }

    #[test]
    fn a_long_log_takes_no_more_memory_than_a_short_one() {
        let mut open = 0;
        let mut count = 0;
        let mut offers = Offers::new(|_| {
            count += 1;
            Ok(())
        });
        for seq in 0..OPEN_LIMIT as u64 + 100 {
            let kind = completion(&format!("o{seq}"), "/a.rs");
            offers.event(Event { seq, at_ms: 0, kind }).unwrap();
            open = open.max(offers.open.len());
        }
        offers.finish().unwrap();
        assert_eq!((open, count), (OPEN_LIMIT, OPEN_LIMIT + 100));
    }
}
