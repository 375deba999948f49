//! Plays a recording into the machine that labels offers.

use super::offer::AtCaret;
use completion::document::{Document, Edit, Encoding};
use feedback::event::{EventKind, Evidence, KeptCheck, OfferId, Outcome};
use offers::{ClientReport, Documents, LogEntry, Offer, Offers, Served, TextBefore};
use rehearsal::recording::{ACCEPTED, OtherAnswer, Recording, Replacement, What};
use ropey::Rope;
use std::collections::{BTreeMap, HashMap, HashSet};

/// How often the daemon looks at the clock, in milliseconds.
const TICK_MS: u64 = 1_000;

/// Ticks of a long pause, by which everything is decided that a clock decides.
const TICKS_MAX: u64 = 700;

/// A text that is back within this time, in milliseconds, was undone.
const UNDO_MS: u64 = 10_000;

/// What the person did with an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    Whole,
    /// So many UTF-16 units of it by now.
    Part {
        utf16: u32,
    },
}

/// An accept, and the number of its entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accept {
    pub entry: usize,
    pub offer: OfferId,
    pub taken: Taken,
    /// The text was soon what it had been before.
    pub is_undone: bool,
}

/// What is known of an offer in the end.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Labelled {
    /// The entry at which it came.
    pub entry: usize,
    pub outcome: Option<(Outcome, Evidence)>,
    pub is_undone: bool,
}

#[derive(Debug, Default)]
pub struct Played {
    pub offers: BTreeMap<OfferId, Labelled>,
    pub accepts: Vec<Accept>,
    /// Answers that are no text at the caret.
    pub unfit: usize,
    /// Accepts of edits anywhere in the document, and of others than the first answer. Neither are
    /// offers that Hone makes while the person types.
    pub edits_taken: Vec<usize>,
    pub alternatives_taken: usize,
}

/// The answers that are on the recording's screen.
struct OnScreen {
    document: usize,
    offer: OfferId,
    answers: Vec<OtherAnswer>,
    /// UTF-16 units that were taken of it.
    taken: u32,
}

pub struct Play<'r> {
    recording: &'r Recording,
    /// True if the editor says what it shows and what is taken.
    reports: bool,
    machine: Offers,
    documents: Documents,
    /// The character of each document's caret.
    carets: HashMap<usize, usize>,
    /// The document of a request, and how often it had changed by then.
    requests: HashMap<u64, (usize, usize)>,
    changes: HashMap<usize, usize>,
    screen: Option<OnScreen>,
    /// Accepts that may be undone: the index, the text before, and when.
    undoable: Vec<(usize, usize, Rope, u64)>,
    now_ms: u64,
    entry: usize,
    played: Played,
}

impl<'r> Play<'r> {
    pub fn of(recording: &'r Recording, reports: bool) -> Played {
        let mut play = Play {
            recording,
            reports,
            machine: Offers::new(|_, _| true),
            documents: Documents::new(),
            carets: HashMap::new(),
            requests: HashMap::new(),
            changes: HashMap::new(),
            screen: None,
            undoable: Vec::new(),
            now_ms: 0,
            entry: 0,
            played: Played::default(),
        };
        for event in &recording.events {
            play.entry = event.entry;
            play.wait_until(event.at_ms);
            play.follow(&event.what);
        }
        play.wait_until(play.now_ms + TICKS_MAX * TICK_MS);
        play.played
    }

    fn wait_until(&mut self, at_ms: u64) {
        let ticks = (at_ms.saturating_sub(self.now_ms) / TICK_MS).min(TICKS_MAX);
        for tick in 1..=ticks {
            let log = self.machine.tick(&self.documents, self.now_ms + tick * TICK_MS);
            self.note(log);
        }
        self.now_ms = at_ms;
        let log = self.machine.tick(&self.documents, at_ms);
        self.note(log);
    }

    fn follow(&mut self, what: &What) {
        match what {
            What::Text { document, text } => {
                self.close(*document);
                let path = self.recording.documents[*document].path.clone();
                let text = Rope::from_str(text);
                let opened = Document { path, language: String::new(), version: 1, text };
                self.documents.insert(uri(*document), opened);
            }
            What::Closed { document } => self.close(*document),
            What::Changed { document, replacements, reason } => {
                let is_accept = reason.as_deref() == Some(ACCEPTED);
                self.change(*document, replacements, is_accept);
            }
            What::Selected { document, carets } => {
                self.carets.remove(document);
                if let ([caret], Some(open)) = (&carets[..], self.documents.get(&uri(*document)))
                    && caret.is_empty()
                {
                    self.carets.insert(*document, open.text.byte_to_char(caret.start));
                }
            }
            What::Asked { document, request } => {
                let changes = self.changes.get(document).copied().unwrap_or(0);
                self.requests.insert(*request, (*document, changes));
            }
            What::Answered { request, answers: Some(answers) } => self.answer(*request, answers),
            What::Answered { answers: None, .. } | What::Focused { .. } => {}
        }
    }

    fn close(&mut self, document: usize) {
        if let Some(open) = self.documents.remove(&uri(document)) {
            let log = self.machine.closed(&uri(document), &open, self.now_ms);
            self.note(log);
        }
        self.carets.remove(&document);
        self.screen.take_if(|screen| screen.document == document);
    }

    /// The other tool answers. A server answers nothing that was asked before the last change.
    fn answer(&mut self, request: u64, answers: &[OtherAnswer]) {
        let Some((document, changes)) = self.requests.remove(&request) else { return };
        let is_late = self.changes.get(&document).copied().unwrap_or(0) != changes;
        let (Some(open), Some(&caret)) =
            (self.documents.get(&uri(document)), self.carets.get(&document))
        else {
            return;
        };
        if is_late {
            return;
        }
        let first = answers.first();
        let found = first.and_then(|answer| AtCaret::of(open, caret, answer));
        let Some(AtCaret { text, marks }) = found else {
            self.played.unfit += usize::from(first.is_some_and(|answer| !answer.is_edit));
            self.screen = None;
            self.serve(vec![]);
            return;
        };
        let live = self.machine.rest_at(&uri(document), &open.text, caret);
        let id = match live.filter(|(_, rest)| *rest == text) {
            Some((id, _)) => id,
            None => {
                let id = format!("{:05}", self.played.offers.len() + 1);
                let offer = Offer {
                    id: id.clone(),
                    uri: uri(document),
                    start: caret,
                    text,
                    before: TextBefore::of(&open.text, caret),
                    healing: String::new(),
                    entry_chars: 0,
                };
                let entry = self.entry;
                self.played.offers.insert(id.clone(), Labelled { entry, ..Labelled::default() });
                self.serve(vec![offer]);
                id
            }
        };
        self.machine.told(&id, &marks, "");
        self.report(ClientReport::Shown(&id));
        let taken = self.screen.take().filter(|screen| screen.offer == id);
        let taken = taken.map_or(0, |screen| screen.taken);
        self.screen = Some(OnScreen { document, offer: id, answers: answers.to_vec(), taken });
    }

    fn serve(&mut self, offers: Vec<Offer>) {
        let served = Served { offers, continues: false, is_complete: false };
        let log = self.machine.serve(served, &self.documents, self.now_ms);
        self.note(log);
    }

    fn report(&mut self, report: ClientReport) {
        if self.reports {
            let log = self.machine.reported(report, &self.documents, self.now_ms);
            self.note(log);
        }
    }

    fn change(&mut self, document: usize, replacements: &[Replacement], is_accept: bool) {
        let uri = uri(document);
        let Some(open) = self.documents.get(&uri) else { return };
        let before = open.text.clone();
        let taken = if is_accept { self.taken(document, replacements) } else { None };
        let mut edits: Vec<Edit> = Vec::new();
        for Replacement { range, text, .. } in replacements {
            let Some(open) = self.documents.get_mut(&uri) else { return };
            let was = open.text.clone();
            let at = |byte| open.position(was.byte_to_char(byte), Encoding::Utf16);
            let place = (at(range.start), at(range.end));
            let Ok(edit) = open.apply(Some(place), text.clone(), Encoding::Utf16) else { return };
            let told = (edit.clone(), was.byte_to_char(range.start));
            let log = self.machine.edited(&uri, &was, told, &self.documents, self.now_ms);
            self.note(log);
            edits.push(edit);
        }
        let log = self.machine.changed(&uri, &edits, &self.documents, self.now_ms);
        self.note(log);
        *self.changes.entry(document).or_default() += 1;
        self.move_caret(document, replacements);
        if let Some((offer, taken)) = taken {
            self.accept(document, offer, taken, before);
        } else {
            self.look_for_undo(document);
        }
    }

    /// Returns what an accepted change takes of the offer on the recording's screen.
    fn taken(&mut self, document: usize, changes: &[Replacement]) -> Option<(OfferId, Taken)> {
        let screen = self.screen.as_mut().filter(|screen| screen.document == document);
        let ([change], Some(screen)) = (changes, screen) else {
            self.played.edits_taken.push(self.entry);
            return None;
        };
        if screen.answers.first().is_some_and(|answer| answer.text == change.text) {
            return Some((screen.offer.clone(), Taken::Whole));
        }
        if screen.answers.iter().any(|answer| answer.text == change.text && !answer.is_edit) {
            self.played.alternatives_taken += 1;
            return None;
        }
        let (open, caret) =
            (self.documents.get(&uri(document))?, self.carets.get(&document).copied());
        let rest = caret.and_then(|caret| AtCaret::of(open, caret, screen.answers.first()?));
        let (_, inserted) = change.minimal();
        match rest.filter(|rest| rest.text.starts_with(inserted) && !inserted.is_empty()) {
            Some(rest) if rest.text.len() == inserted.len() => {
                Some((screen.offer.clone(), Taken::Whole))
            }
            Some(_) => {
                screen.taken += inserted.encode_utf16().count() as u32;
                Some((screen.offer.clone(), Taken::Part { utf16: screen.taken }))
            }
            None => {
                self.played.edits_taken.push(self.entry);
                None
            }
        }
    }

    fn accept(&mut self, document: usize, offer: OfferId, taken: Taken, before: Rope) {
        match taken {
            Taken::Whole => self.report(ClientReport::Accepted(&offer)),
            Taken::Part { utf16 } => {
                self.report(ClientReport::PartlyAccepted { id: &offer, utf16 });
            }
        }
        self.undoable.push((self.played.accepts.len(), document, before, self.now_ms));
        let accept = Accept { entry: self.entry, offer, taken, is_undone: false };
        self.played.accepts.push(accept);
    }

    /// Notes the accepts whose text is what it was before them.
    fn look_for_undo(&mut self, document: usize) {
        let (now_ms, accepts) = (self.now_ms, &mut self.played.accepts);
        self.undoable.retain(|(_, _, _, at_ms)| now_ms - at_ms < UNDO_MS);
        let Some(open) = self.documents.get(&uri(document)) else { return };
        for (index, of, before, _) in &self.undoable {
            if *of == document && *before == open.text {
                accepts[*index].is_undone = true;
            }
        }
    }

    fn move_caret(&mut self, document: usize, replacements: &[Replacement]) {
        self.carets.remove(&document);
        if let ([one], Some(open)) = (replacements, self.documents.get(&uri(document))) {
            let caret = open.text.byte_to_char(one.range.start + one.text.len());
            self.carets.insert(document, caret);
        }
    }

    fn note(&mut self, log: Vec<LogEntry>) {
        for entry in log {
            let LogEntry::Event(event) = entry else { continue };
            match event {
                EventKind::Outcome { id, outcome, evidence } => self.label(id, outcome, evidence),
                EventKind::Kept { id, check: KeptCheck::Undone, .. } => {
                    self.played.offers.entry(id).or_default().is_undone = true;
                }
                _ => {}
            }
        }
    }

    fn label(&mut self, id: OfferId, outcome: Outcome, evidence: Evidence) {
        let labelled = self.played.offers.entry(id).or_default();
        if outcome.outweighs(evidence, labelled.outcome) {
            labelled.outcome = Some((outcome, evidence));
        }
    }
}

impl Played {
    /// The offers that the person took.
    pub fn taken(&self) -> HashSet<&OfferId> {
        self.accepts.iter().map(|accept| &accept.offer).collect()
    }
}

fn uri(document: usize) -> String {
    format!("file:///recorded/{document}")
}
