//! What the user wrote lately, and how much of it is completions that were kept: the figure that
//! says what Hone is worth. Wrong offers are counted too.

use feedback::bounded_map::BoundedMap;
use feedback::event::{Event, EventKind, Evidence, OfferId, Outcome};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The typed characters of a span. A span is full when it has that many.
pub const SPAN_CHARS: u64 = 1_000;

/// The latest spans. A sparkline is drawn from them.
const SPANS: usize = 16;

/// Offers whose outcome or kept share may still change the figures.
const OFFERS: usize = 256;

/// What was written between two moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Characters that the user typed.
    pub typed_chars: u64,
    /// Line breaks that the user typed.
    pub typed_lines: u64,
    /// UTF-16 units that were accepted and still stood at the last check.
    pub kept: u64,
    /// Offers that were rejected.
    pub wrong: u64,
}

impl Span {
    /// `kept` / (`kept` + `typed_chars`), if anything was written.
    pub fn kept_share(&self) -> Option<f64> {
        let written = self.kept + self.typed_chars;
        (written > 0).then(|| self.kept as f64 / written as f64)
    }

    /// Rejected offers for every hundred lines that were typed, if there are any.
    pub fn wrong_per_100_lines(&self) -> Option<f64> {
        (self.typed_lines > 0).then(|| 100.0 * self.wrong as f64 / self.typed_lines as f64)
    }

    fn add(&mut self, other: Span) {
        self.typed_chars += other.typed_chars;
        self.typed_lines += other.typed_lines;
        self.kept += other.kept;
        self.wrong += other.wrong;
    }
}

/// An offer, and what it counts for by the events so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Offer {
    utf16: u64,
    outcome: Option<(Outcome, Evidence)>,
    /// The share of the accepted text that stood at the last check.
    share: f32,
    /// The number of the span that the offer was made in.
    span: u64,
}

impl Offer {
    fn counts(&self) -> (u64, u64) {
        let kept = |utf16: u64| (utf16 as f64 * f64::from(self.share)).round() as u64;
        match self.outcome.map(|(outcome, _)| outcome) {
            Some(Outcome::Accepted) => (kept(self.utf16), 0),
            Some(Outcome::PartlyAccepted { utf16 }) => (kept(u64::from(utf16)), 0),
            Some(Outcome::RejectedEsc | Outcome::RejectedTimeout | Outcome::RejectedEdit) => (0, 1),
            Some(Outcome::TypedThrough { .. } | Outcome::Superseded | Outcome::Unseen) | None => {
                (0, 0)
            }
        }
    }
}

/// The latest spans, the oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Written {
    spans: VecDeque<Span>,
    /// The number of spans that were dropped.
    dropped: u64,
    offers: BoundedMap<OfferId, Offer>,
}

impl Default for Written {
    fn default() -> Written {
        Written { spans: VecDeque::new(), dropped: 0, offers: BoundedMap::new(OFFERS) }
    }
}

impl Written {
    pub fn apply(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Completion(completion) => {
                let typed = completion.typed;
                self.typed(u64::from(typed.chars), u64::from(typed.lines));
                let utf16 = completion.shown.encode_utf16().count() as u64;
                if utf16 > 0 {
                    if self.spans.is_empty() {
                        self.spans.push_back(Span::default());
                    }
                    let span = self.dropped + self.spans.len() as u64 - 1;
                    let offer = Offer { utf16, outcome: None, share: 1.0, span };
                    self.offers.insert(completion.id.clone(), offer);
                }
            }
            EventKind::Outcome { id, outcome, evidence } => self.change(id, |offer| {
                if outcome.outweighs(*evidence, offer.outcome) {
                    offer.outcome = Some((*outcome, *evidence));
                }
            }),
            EventKind::Kept { id, share, .. } => self.change(id, |offer| offer.share = *share),
            EventKind::Shown { .. }
            | EventKind::PartlyAccepted { .. }
            | EventKind::Replacement { .. }
            | EventKind::Compared { .. }
            | EventKind::NextEdit(_)
            | EventKind::NextEditOutcome { .. } => {}
        }
    }

    fn typed(&mut self, chars: u64, lines: u64) {
        if chars == 0 && lines == 0 {
            return;
        }
        if self.spans.back().is_none_or(|span| span.typed_chars >= SPAN_CHARS) {
            self.spans.push_back(Span::default());
        }
        if self.spans.len() > SPANS {
            self.spans.pop_front();
            self.dropped += 1;
        }
        let last = self.spans.back_mut().expect("a span was pushed where there was none");
        last.add(Span { typed_chars: chars, typed_lines: lines, ..Span::default() });
    }

    /// Changes an offer, and what its span counts.
    fn change(&mut self, id: &OfferId, change: impl FnOnce(&mut Offer)) {
        let Some(offer) = self.offers.get_mut(id) else { return };
        let (kept, wrong) = offer.counts();
        change(offer);
        let (kept_now, wrong_now) = offer.counts();
        let Some(index) = offer.span.checked_sub(self.dropped) else { return };
        let Some(span) = self.spans.get_mut(index as usize) else { return };
        span.kept = span.kept - kept + kept_now;
        span.wrong = span.wrong - wrong + wrong_now;
    }

    /// The spans in which something was typed, the oldest first.
    pub fn spans(&self) -> impl DoubleEndedIterator<Item = &Span> {
        self.spans.iter()
    }

    /// All that the spans hold together.
    pub fn total(&self) -> Span {
        let mut total = Span::default();
        self.spans.iter().for_each(|span| total.add(*span));
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedback::event::{Completion, KeptCheck, Typed};
    use feedback::testing::{accepted, completion, numbered, outcome, served};

    /// An offer of ten characters, before which this many characters and a line were typed.
    fn offered(id: &str, chars: u32) -> EventKind {
        served(Completion { typed: Typed { chars, lines: 1 }, ..completion(id) })
    }

    fn kept(id: &str, share: f32) -> EventKind {
        EventKind::Kept { id: id.into(), check: KeptCheck::HalfMinute, share }
    }

    fn written(events: Vec<EventKind>) -> Written {
        let mut written = Written::default();
        numbered(events).for_each(|event| written.apply(&event));
        written
    }

    #[test]
    fn what_is_kept_is_set_against_what_was_typed() {
        let rejected = outcome("b", Outcome::RejectedEsc, Evidence::ClientNotice);
        let events = vec![
            offered("a", 20),
            accepted("a"),
            offered("b", 10),
            rejected,
            kept("a", 0.5),
            offered("c", 0),
            outcome("c", Outcome::PartlyAccepted { utf16: 5 }, Evidence::Command),
        ];
        let total = written(events).total();
        assert_eq!(total, Span { typed_chars: 30, typed_lines: 3, kept: 10, wrong: 1 });
        assert_eq!(total.kept_share(), Some(0.25));
        assert!((total.wrong_per_100_lines().unwrap() - 100.0 / 3.0).abs() < 1e-9);
        assert_eq!(
            (Span::default().kept_share(), Span::default().wrong_per_100_lines()),
            (None, None)
        );
    }

    /// A key that is seen in the document is weaker than the client's word.
    #[test]
    fn stronger_evidence_takes_the_place_of_weaker() {
        let mut events = vec![
            offered("a", 20),
            outcome("a", Outcome::RejectedEdit, Evidence::Document),
            accepted("a"),
            outcome("a", Outcome::RejectedTimeout, Evidence::Clock),
        ];
        assert_eq!(written(events.clone()).total().wrong, 0);
        assert_eq!(written(events.drain(..2).collect()).total().wrong, 1);
    }

    #[test]
    fn an_offer_counts_in_the_span_that_it_was_made_in_and_not_once_that_is_dropped() {
        let mut events = vec![offered("first", 1_000)];
        events.extend((1..16).map(|i| offered(&i.to_string(), 1_000)));
        events.push(accepted("first"));
        let mut all = written(events.clone());
        assert_eq!((all.spans().count(), all.spans().next().unwrap().kept), (16, 10));
        all.apply(&Event { seq: 17, at_ms: 0, kind: offered("last", 1_000) });
        all.apply(&Event { seq: 18, at_ms: 0, kind: kept("first", 0.5) });
        assert_eq!((all.spans().count(), all.total().kept), (16, 0));
    }
}
