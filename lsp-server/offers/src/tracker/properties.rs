//! What holds of every offer in whatever order an editor, a user and the clock
//! may act: thousands of random stories, told to the tracker and folded.

use crate::tracker::{MIN_VISIBLE_MS, Offer, REJECT_TIMEOUT_MS, TextBefore, Tracker};
use completion::document::Edit;
use feedback::episode::Fold;
use feedback::event::{
    Completion, Event, EventKind, Evidence, Outcome, Sampling, StopReason, Typed,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use ropey::Rope;
use std::collections::HashMap;

const URI: &str = "file:///a.rs";
const OTHER: &str = "file:///b.rs";
const TEXTS: &[&str] =
    &["push(item);", "x", "größe = 1", "a, b);", "if größe {\n    b();\n}", "\n    a();\n    b();"];
const STORIES: u64 = 3_000;
const STEPS: usize = 40;

/// What is known of an offer apart from the tracker.
#[derive(Default)]
struct Known {
    served_ms: u64,
    shown_ms: Option<u64>,
    before: TextBefore,
    outcomes: Vec<(Outcome, Evidence)>,
}

struct Story {
    rng: StdRng,
    tracker: Tracker,
    fold: Fold,
    seq: u64,
    now_ms: u64,
    known: HashMap<String, Known>,
    ids: Vec<String>,
    /// Where the last offer was made, and what of it is typed.
    place: (usize, String, usize),
    text: Rope,
    /// True if the client reports some of its offers as shown, and if it has done so.
    reports: bool,
    has_reported: bool,
}

impl Story {
    fn new(seed: u64) -> Story {
        Story {
            rng: StdRng::seed_from_u64(seed),
            tracker: Tracker::default(),
            fold: Fold::new("base", None),
            seq: 0,
            now_ms: 0,
            known: HashMap::new(),
            ids: vec![],
            place: (0, String::new(), 0),
            text: Rope::from_str("x = 1\n  y(\n\na.b().c()\n    \n}\n"),
            reports: seed.is_multiple_of(2),
            has_reported: false,
        }
    }

    fn record(&mut self, events: Vec<EventKind>) {
        for kind in events {
            match &kind {
                EventKind::Outcome { id, outcome, evidence } => {
                    let known =
                        self.known.get_mut(id).expect("an outcome of an offer that was made");
                    known.outcomes.push((*outcome, *evidence));
                    let rejects =
                        [Outcome::RejectedEsc, Outcome::RejectedTimeout, Outcome::RejectedEdit];
                    if self.has_reported && rejects.contains(outcome) {
                        assert!(known.shown_ms.is_some(), "{id} was not shown and is {outcome:?}");
                    }
                    if *outcome == Outcome::RejectedTimeout {
                        let since = known.shown_ms.unwrap_or(known.served_ms).min(known.served_ms);
                        assert!(self.now_ms - since >= REJECT_TIMEOUT_MS, "{id} timed out early");
                    }
                }
                EventKind::Shown { id } => {
                    self.known.get_mut(id).expect("a known offer").shown_ms = Some(self.now_ms);
                }
                _ => {}
            }
            self.seq += 1;
            self.fold.apply(&Event { seq: self.seq, at_ms: self.now_ms, kind });
        }
    }

    fn serve(&mut self) {
        let count = self.rng.random_range(1..=3);
        let start = self.rng.random_range(0..20);
        let mut offers = vec![];
        for i in 0..count {
            let id = format!("o{}", self.ids.len());
            let text = TEXTS[(self.rng.random_range(0..TEXTS.len()) + i) % TEXTS.len()].to_owned();
            if i == 0 {
                self.place = (start, text.clone(), 0);
            }
            self.ids.push(id.clone());
            let before = TextBefore::of(&self.text, start);
            let (served_ms, known_before) = (self.now_ms, before.clone());
            let known = Known { served_ms, before: known_before, ..Known::default() };
            self.known.insert(id.clone(), known);
            let completion = Completion {
                id: id.clone(),
                path: URI.into(),
                context: vec![],
                real_names: vec![],
                language: "rust".into(),
                model_sha256: "base".into(),
                adapter: 0,
                sampling: Sampling::GREEDY,
                prompt: vec![],
                adapter_from: 0,
                healing: String::new(),
                tokens: vec![],
                stop: StopReason::Newline,
                shown: text.clone(),
                shown_from: 0,
                timing: Default::default(),
                decision: Default::default(),
                typed: Typed::default(),
                experts: None,
            };
            self.record(vec![EventKind::Completion(Box::new(completion))]);
            let (uri, healing) = (URI.to_owned(), String::new());
            offers.push(Offer { id, uri, start, text, before, healing, entry_chars: 0 });
        }
        let events = self.tracker.serve(offers, count > 1, self.now_ms);
        self.record(events);
    }

    fn some_id(&mut self) -> String {
        let newest = self.ids.len().saturating_sub(4);
        let at = self.rng.random_range(newest..=self.ids.len());
        self.ids.get(at).cloned().unwrap_or_else(|| "unknown".into())
    }

    fn edit(&mut self) -> Vec<EventKind> {
        let (start, text, typed) = self.place.clone();
        let rest: String = text.chars().skip(typed).collect();
        let at = start + typed;
        let edit = match self.rng.random_range(0..9) {
            0 | 1 => {
                self.place.2 += 1;
                let inserted = rest.chars().next().map(String::from).unwrap_or("q".into());
                Edit { start: at, removed: 0, inserted }
            }
            2 => Edit { start: at, removed: 0, inserted: rest },
            3 => Edit { start: at.saturating_sub(1), removed: 1, inserted: String::new() },
            // A line break comes with the indentation behind it.
            4 => {
                let blanks = rest.chars().take_while(|c| c.is_whitespace()).count();
                let inserted: String = rest.chars().take(blanks + 1).collect();
                self.place.2 += blanks + 1;
                Edit { start: at, removed: 0, inserted }
            }
            // An editor that has closed a bracket takes its place, or continues behind it.
            5 => Edit { start: at, removed: 1, inserted: rest },
            6 => Edit { start: at + 1, removed: 0, inserted: rest.chars().skip(1).collect() },
            7 => Edit { start: self.rng.random_range(0..30), removed: 0, inserted: "q".into() },
            _ => Edit { start: 0, removed: 0, inserted: String::new() },
        };
        if self.rng.random_range(0..8) == 0 {
            return self.tracker.edit(OTHER, &edit, self.now_ms);
        }
        let length = self.text.len_chars();
        let start = edit.start.min(length);
        let removed = edit.removed.min(length - start);
        let edit = Edit { start, removed, ..edit };
        self.text.remove(start..start + removed);
        self.text.insert(start, &edit.inserted);
        let mut events = self.tracker.edit(URI, &edit, self.now_ms);
        events.extend(self.tracker.check_text_before(URI, &self.text, self.now_ms));
        events
    }

    /// Asks for what is continued, which was asked for behind the same text.
    fn continue_live(&mut self, cursor: usize) {
        let rest = self.tracker.continuations(URI, &self.text, cursor);
        let place = self.tracker.place(URI);
        for (id, _) in rest.into_iter().flatten() {
            let start = place.as_ref().expect("a live offer").start;
            let known = &self.known[&id];
            assert!(known.before.is_before(&self.text, start), "{id} is for another text");
        }
    }

    fn step(&mut self) {
        self.now_ms +=
            [0, 1, MIN_VISIBLE_MS, 2_000, REJECT_TIMEOUT_MS][self.rng.random_range(0..5)];
        let (id, now_ms) = (self.some_id(), self.now_ms);
        let events = match self.rng.random_range(0..14) {
            0 | 1 => return self.serve(),
            12 => {
                self.tracker.told(&id, [")", "\")", ""][self.rng.random_range(0..3)], "");
                return;
            }
            13 => {
                let cursor = self.place.0 + self.place.2 + self.rng.random_range(0..3);
                return self.continue_live(cursor);
            }
            2..=5 => self.edit(),
            6 => self.tracker.accepted(&id),
            7 if !self.reports => return,
            7 => {
                self.has_reported = true;
                self.tracker.shown(&id, now_ms)
            }
            8 => {
                let length = self.rng.random_range(0..15);
                self.tracker.partly_accepted(&id, length)
            }
            9 => {
                let reasons = [Outcome::RejectedEsc, Outcome::Superseded];
                let reason = reasons[self.rng.random_range(0..2)];
                self.tracker.rejected(&id, reason, now_ms)
            }
            10 => self.tracker.tick(now_ms),
            _ => self.tracker.supersede_in(if now_ms % 2 == 0 { URI } else { OTHER }, now_ms),
        };
        self.record(events);
    }
}

#[test]
fn every_offer_meets_one_fate_in_whatever_order_things_happen() {
    for seed in 0..STORIES {
        let mut story = Story::new(seed);
        for _ in 0..STEPS {
            story.step();
        }
        let events = story.tracker.supersede(story.now_ms);
        story.record(events);

        for (id, known) in &story.known {
            let told: Vec<Outcome> = known.outcomes.iter().map(|(outcome, _)| *outcome).collect();
            // What was decided may change by late reports alone: of a part, of more, of the whole,
            // or by the first report of another offer, of one that was never reported.
            let was_seen = known.shown_ms.is_some();
            let may_follow = |pair: &[Outcome]| match (pair[0], pair[1]) {
                (Outcome::Accepted, _) => false,
                (_, Outcome::Accepted) => true,
                (Outcome::RejectedTimeout | Outcome::RejectedEdit, Outcome::Unseen) => !was_seen,
                (Outcome::PartlyAccepted { utf16 }, Outcome::PartlyAccepted { utf16: more }) => {
                    utf16 < more
                }
                (before, Outcome::PartlyAccepted { .. }) => {
                    !matches!(before, Outcome::TypedThrough { .. } | Outcome::RejectedEsc)
                }
                _ => false,
            };
            let right = !told.is_empty() && told.windows(2).all(may_follow);
            assert!(right, "story {seed}: {id} met {told:?}");
            assert!(
                !(was_seen && told.contains(&Outcome::Unseen)),
                "story {seed}: {id} was shown and is called unseen"
            );
        }
        let counts = story.fold.counts();
        assert_eq!(counts.total, story.known.len() as u64);
        assert_eq!(counts.unlabelled, 0, "story {seed}: {counts:?}");
        let met = counts.accepted
            + counts.partly_accepted
            + counts.typed_through
            + counts.rejected_esc
            + counts.rejected_timeout
            + counts.rejected_edit
            + counts.superseded
            + counts.unseen;
        assert_eq!(met, counts.total, "story {seed}: {counts:?}");
        let labels = met - counts.superseded - counts.unseen;
        assert_eq!(story.fold.waiting() as u64, labels, "story {seed}: every label waits once");
    }
}
