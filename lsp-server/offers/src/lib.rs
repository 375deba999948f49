//! An offer's life, from the answer that it is made of to what is left of it ten minutes later.
//!
//! [`Offers`] is a pure state machine: it is told what was served, what the editor did to the
//! documents, what the client says and what time it is, and it returns what the log gets. It reads
//! no file, knows no clock, no setting and no engine.
//!
//! Inside, `tracker` decides what became of the live offer, `survival` watches its place from then
//! on, `suppressed` keeps the last answer that was not shown, `rejected` what the user does not
//! want to see again, `tool_edits` says which edits say nothing or less, and `typed` counts what
//! the user typed.

mod kept_share;
mod rejected;
mod suppressed;
mod survival;
mod tool_edits;
mod tracker;
mod typed;

pub use suppressed::{HeldBackAnswer, Remainder, Suppressed};
pub use survival::MayTell;
pub use tracker::{MIN_VISIBLE_MS, Offer, REJECT_TIMEOUT_MS, TextBefore};

use completion::document::{Document, Edit};
use feedback::event::{EventKind, OfferId, Outcome, Typed};
use rejected::Rejected;
use ropey::Rope;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use survival::{Finding, SurvivalWatch};
use tracker::{Decided, Tracker};
use typed::TypedCounts;

/// The open documents by their addresses.
pub type Documents = HashMap<String, Document>;

/// An entry of the log.
#[derive(Debug, Clone, PartialEq)]
pub enum LogEntry {
    Event(EventKind),
    /// What the user wrote instead of an offer. The log gets its tokens.
    Instead {
        id: OfferId,
        text: String,
    },
}

/// The offers that are made of one answer.
pub struct Served {
    /// One without text is not shown, and what the user writes at its place is recorded.
    pub offers: Vec<Offer>,
    /// The live offer stays, and these are others that the user may turn to from it.
    pub continues: bool,
    /// There are no other offers than these for the place.
    pub is_complete: bool,
}

/// What a client says of offers.
#[derive(Debug, Clone, Copy)]
pub enum ClientReport<'a> {
    Shown(&'a str),
    /// The user turned to it. The client does not report each offer that it shows.
    TurnedTo(&'a str),
    Accepted(&'a str),
    /// So many UTF-16 units of it are in the document.
    PartlyAccepted {
        id: &'a str,
        utf16: u32,
    },
    /// The offer, or a part of it, is about to be put into the document.
    Taking(&'a str),
    Rejected {
        id: &'a str,
        outcome: Outcome,
    },
    /// The user dismissed whichever of these is on screen.
    Dismissed(&'a [OfferId]),
}

/// The offers of one connection.
#[derive(Debug)]
pub struct Offers {
    tracker: Tracker,
    survival: SurvivalWatch,
    suppressed: Option<Suppressed>,
    typed: TypedCounts,
    rejected: Rejected,
    /// The document and the character behind the text that was accepted last.
    accepted_until: Option<(String, usize)>,
    /// Offers that were forgotten and of which the client may still speak. Nothing about them is
    /// recorded.
    forgotten: HashSet<OfferId>,
}

impl Offers {
    /// `may_tell` says of a text whether what the user wrote at a place of it may be recorded.
    pub fn new(may_tell: MayTell) -> Offers {
        Offers {
            tracker: Tracker::default(),
            survival: SurvivalWatch::new(may_tell),
            suppressed: None,
            typed: TypedCounts::default(),
            rejected: Rejected::default(),
            accepted_until: None,
            forgotten: HashSet::new(),
        }
    }

    /// Makes offers of an answer.
    pub fn serve(&mut self, served: Served, documents: &Documents, now_ms: u64) -> Vec<LogEntry> {
        let Served { offers, continues, is_complete } = served;
        let (shown, empty): (Vec<Offer>, Vec<Offer>) =
            offers.into_iter().partition(|offer| !offer.text.is_empty());
        for Offer { id, uri, start, healing, .. } in empty {
            if !self.awaits(&uri, start) {
                self.survival.not_taken(id, uri, start, "", healing, now_ms);
            }
        }
        let events = if continues {
            self.tracker.complete(shown, now_ms);
            vec![]
        } else {
            self.tracker.serve(shown, is_complete, now_ms)
        };
        self.conclude(events, None, documents, now_ms)
    }

    /// Ends the live offer without a verdict.
    pub fn supersede(&mut self, documents: &Documents, now_ms: u64) -> Vec<LogEntry> {
        let events = self.tracker.supersede(now_ms);
        self.conclude(events, None, documents, now_ms)
    }

    /// Follows an edit that was just made in a document whose text was `was` before. `told_from` is
    /// where the change begins that the editor told. It may replace text by the same text.
    pub fn edited(
        &mut self,
        uri: &str,
        was: &Rope,
        (edit, told_from): (Edit, usize),
        documents: &Documents,
        now_ms: u64,
    ) -> Vec<LogEntry> {
        let Some(document) = documents.get(uri) else { return vec![] };
        let place = self.tracker.place(uri);
        // A line break below the cursor may be the final newline that a tool puts in on save, so it
        // does not count as one at the cursor.
        let seen = match &place {
            Some(place) if !edit.inserted.chars().all(tool_edits::is_line_break) => {
                document.seen_at(edit, place.end)
            }
            _ => edit,
        };
        let edit = match &place {
            Some(place) => tool_edits::taken_back(was, seen, place),
            None => seen,
        };
        self.survival.edit(uri, &edit, now_ms);
        self.rejected.edited(uri, was, &edit);
        self.suppressed.take_if(|suppressed| !suppressed.survives(uri, &edit));
        let tracker = &mut self.tracker;
        let mut events = match place {
            Some(_) if tool_edits::is_final_newline(was, &edit) => {
                tracker.final_newline(uri, &edit, now_ms)
            }
            Some(place) if tool_edits::may_be(was, &edit, &place) => {
                tracker.edit_by_tool(uri, &edit, now_ms)
            }
            Some(place) if tool_edits::completes_word(was, told_from, &edit, &place) => {
                tracker.edit_by_list(uri, &edit, now_ms)
            }
            _ => tracker.edit(uri, &edit, now_ms),
        };
        events.extend(tracker.check_text_before(uri, &document.text, now_ms));
        self.conclude(events, Some(&edit), documents, now_ms)
    }

    /// Notes that all edits of a message are made.
    pub fn changed(
        &mut self,
        uri: &str,
        edits: &[Edit],
        documents: &Documents,
        now_ms: u64,
    ) -> Vec<LogEntry> {
        self.typed.note(uri, edits);
        entries(self.survival.look(documents, now_ms)).collect()
    }

    /// Ends all that is known of places in a document, because its text is not followed any more.
    pub fn closed(&mut self, uri: &str, document: &Document, now_ms: u64) -> Vec<LogEntry> {
        self.suppressed.take_if(|suppressed| suppressed.is_in(uri));
        self.rejected.closed(uri);
        self.typed.take(uri);
        let events = self.tracker.supersede_in(uri, now_ms);
        // Without a verdict, it does not matter where the offer was.
        let mut ended = self.conclude(events, None, &Documents::new(), now_ms);
        ended.extend(entries(self.survival.close(uri, document, now_ms)));
        ended
    }

    /// Notes that the client reports which offers it shows. Returns what that changes about those
    /// before.
    pub fn client_reports(&mut self) -> Vec<LogEntry> {
        let Offers { tracker, forgotten, .. } = self;
        let events = tracker.client_reports(None).into_iter();
        let kept = events.filter(|event| !forgotten.contains(event.offer_id()));
        kept.map(LogEntry::Event).collect()
    }

    /// Follows what the client says of offers.
    pub fn reported(
        &mut self,
        report: ClientReport,
        documents: &Documents,
        now_ms: u64,
    ) -> Vec<LogEntry> {
        let tracker = &mut self.tracker;
        let events = match report {
            ClientReport::Shown(id) => tracker.shown(id, now_ms),
            ClientReport::TurnedTo(id) => tracker.turned_to(id, now_ms),
            ClientReport::Accepted(id) => tracker.accepted(id),
            ClientReport::PartlyAccepted { id, utf16 } => tracker.partly_accepted(id, utf16),
            ClientReport::Taking(id) => tracker.taking(id, now_ms),
            ClientReport::Rejected { id, outcome } => tracker.rejected(id, outcome, now_ms),
            ClientReport::Dismissed(ids) => match tracker.on_screen() {
                Some(id) if ids.contains(&id) => {
                    tracker.rejected(&id, Outcome::RejectedEsc, now_ms)
                }
                _ => vec![],
            },
        };
        self.conclude(events, None, documents, now_ms)
    }

    /// Notes that time has passed.
    pub fn tick(&mut self, documents: &Documents, now_ms: u64) -> Vec<LogEntry> {
        let events = self.tracker.tick(now_ms);
        let mut found = self.conclude(events, None, documents, now_ms);
        found.extend(entries(self.survival.look(documents, now_ms)));
        found
    }

    /// Watches the places of the offers that were just decided. `edit` is the edit that decided
    /// them, if one did.
    fn conclude(
        &mut self,
        events: Vec<EventKind>,
        edit: Option<&Edit>,
        documents: &Documents,
        now_ms: u64,
    ) -> Vec<LogEntry> {
        let Offers { tracker, survival, rejected, forgotten, accepted_until, .. } = self;
        for Decided { offer, outcome, chars_in_document } in tracker.take_decided() {
            let Offer { id, uri, start, text, healing, entry_chars, before: _ } = offer;
            if forgotten.contains(&id) {
                continue;
            }
            match outcome {
                Outcome::Accepted => {
                    *accepted_until = Some((uri.clone(), start + text.chars().count()));
                    survival.taken(id, uri, start, text, chars_in_document, now_ms)
                }
                Outcome::RejectedEsc | Outcome::RejectedTimeout | Outcome::RejectedEdit => {
                    if let Some(document) = documents.get(&uri) {
                        rejected.note(&uri, &document.text, start, &text);
                    }
                    let typed: String = text.chars().take(chars_in_document).collect();
                    // The prompt of an offer behind an entry holds the entry, which the user did
                    // not choose, so what is written instead says nothing about that prompt.
                    if entry_chars == 0 {
                        survival.not_taken(id, uri, start, &typed, healing, now_ms);
                        if let Some(edit) = edit {
                            survival.edit_newest(edit, now_ms);
                        }
                    }
                }
                Outcome::PartlyAccepted { .. }
                | Outcome::TypedThrough { .. }
                | Outcome::Superseded
                | Outcome::Unseen => {}
            }
        }
        let events = events.into_iter().filter(|event| !forgotten.contains(event.offer_id()));
        events.map(LogEntry::Event).collect()
    }
}

/// What is on screen, and what was computed and is not.
impl Offers {
    /// Returns what remains of the offer on screen at this cursor of a text, if the text still
    /// agrees with it. While the user types along, no new offer is needed.
    pub fn rest_at(&mut self, uri: &str, text: &Rope, cursor: usize) -> Option<(OfferId, String)> {
        self.tracker.continuation(uri, text, cursor)
    }

    /// Returns true if the user asked for what is on screen.
    pub fn is_asked_for(&self) -> bool {
        self.tracker.is_complete()
    }

    /// Returns the same for every offer that the user can turn to, once others were asked for. What
    /// is on screen comes first.
    pub fn rests_at(
        &mut self,
        uri: &str,
        text: &Rope,
        cursor: usize,
    ) -> Option<Vec<(OfferId, String)>> {
        self.tracker.continuations(uri, text, cursor)
    }

    /// Notes that the client was told that what remains of an offer replaces these marks behind the
    /// cursor, and that its text begins with what was `typed` of an entry of the suggestion list.
    pub fn told(&mut self, id: &str, marks: &str, typed: &str) {
        self.tracker.told(id, marks, typed);
    }

    /// Returns where in a document the live offer begins, and where its next character would go.
    pub fn place(&self, uri: &str) -> Option<Range<usize>> {
        self.tracker.place(uri)
    }

    /// Keeps the last answer, if it was not shown.
    pub fn suppress(&mut self, answer: Option<Suppressed>) {
        self.suppressed = answer;
    }

    /// Returns the last answer, if it was not shown and the user may still type it.
    pub fn suppressed(&self) -> Option<&Suppressed> {
        self.suppressed.as_ref()
    }

    /// Returns true if this offer is live, or if its outcome may still be changed here.
    pub fn knows(&self, id: &str) -> bool {
        self.tracker.knows(id)
    }
}

/// What the user did.
impl Offers {
    /// Returns how often the user rejected an offer on this line, if it was the last one on which
    /// the user did.
    pub fn rejects_on(&self, uri: &str, line: usize) -> u32 {
        self.rejected.count_on(uri, line) as u32
    }

    /// Returns true if the user rejected what this offer would make of its line.
    pub fn was_rejected(&self, uri: &str, line: usize, line_before: &str, offer: &str) -> bool {
        self.rejected.holds(uri, line, line_before, offer)
    }

    /// Returns true if the text that was accepted last ends here.
    pub fn was_accepted_until(&self, uri: &str, at: usize) -> bool {
        self.accepted_until.as_ref().is_some_and(|place| (place.0.as_str(), place.1) == (uri, at))
    }

    /// Returns what was typed in a document since the last call.
    pub fn take_typed(&mut self, uri: &str) -> Typed {
        self.typed.take(uri)
    }

    /// Returns true if the text that is typed at this place is watched already.
    pub fn awaits(&self, uri: &str, cursor: usize) -> bool {
        self.survival.awaits(uri, cursor)
    }

    /// Returns the places in a document that are watched, the oldest first.
    pub fn watched(&self, uri: &str) -> Vec<Range<usize>> {
        self.survival.places(uri)
    }
}

/// What is forgotten.
impl Offers {
    /// Forgets what was computed and not shown, and what was rejected. What is on screen stays.
    pub fn forget(&mut self) {
        self.suppressed = None;
        self.rejected.forget();
    }

    /// Stops watching what becomes of these offers in the document. One that is on screen can still
    /// be accepted, but nothing that becomes of it is recorded.
    pub fn forget_offers(&mut self, offers: &HashSet<OfferId>) {
        self.survival.forget(offers);
        let is_forgotten = |id: &&OfferId| offers.contains(*id) || self.forgotten.contains(*id);
        self.forgotten = self.tracker.known().filter(is_forgotten).cloned().collect();
    }

    /// Returns the offers in a document of which more may be recorded: those on screen, and those
    /// whose places are watched.
    pub fn pending_in(&self, uri: &str) -> impl Iterator<Item = &OfferId> {
        self.tracker.live_in(uri).chain(self.survival.watched_in(uri))
    }

    /// Returns true if this offer was forgotten before all was known that became of it.
    pub fn is_forgotten(&self, id: &str) -> bool {
        self.forgotten.contains(id)
    }
}

fn entries(findings: Vec<Finding>) -> impl Iterator<Item = LogEntry> {
    findings.into_iter().map(|finding| match finding {
        Finding::Kept { id, check, share } => LogEntry::Event(EventKind::Kept { id, check, share }),
        Finding::Instead { id, text } => LogEntry::Instead { id, text },
    })
}
