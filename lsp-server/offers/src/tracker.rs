//! Decides the outcome of each offer. It is a pure state machine over what the client reports and
//! what its document shows.
//!
//! A session has one live answer: the offer on screen and, if the user invoked the request, others
//! to turn to. Clients differ in what they report, so the document itself is evidence. If the
//! offer's text appears at once, the offer is accepted. If the text is typed bit by bit, the offer
//! is typed through. Anything else in its place is a rejection.
//!
//! An edit elsewhere in the document says nothing, because other cursors, formatters and automatic
//! imports make such edits too. The offer then moves along with its place. It ends without a
//! verdict if the edit changes the text that it continues ([`TextBefore`]).
//!
//! An offer that the user cannot have read in time gets no label ([`ends`]). Neither does one that
//! the user left for another offer of the same answer.

mod ends;
mod text_before;

pub use ends::MIN_VISIBLE_MS;
pub use text_before::TextBefore;

use completion::document::Edit;
use ends::{End, Exposure};
use feedback::event::{EventKind, Evidence, OfferId, Outcome};
use ropey::Rope;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;

/// An offer that stands for this long without an answer is rejected.
pub const REJECT_TIMEOUT_MS: u64 = 10_000;

const _: () = assert!(MIN_VISIBLE_MS < REJECT_TIMEOUT_MS);

/// If the user types an offer and then leaves it, at least this share must be typed for it to count
/// as typed through and not as rejected.
const TYPED_THROUGH_MIN_SHARE: f32 = 0.5;

/// Offers whose outcome a late or repeated client message may still change.
const DECIDED_LIMIT: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    pub id: OfferId,
    pub uri: String,
    /// Character offset in the document at which the text goes in.
    pub start: usize,
    pub text: String,
    /// What it continues.
    pub before: TextBefore,
    /// Text before `start` that the prompt had left for the answer to reproduce.
    pub healing: String,
    /// Characters at the beginning of `text` that are the rest of an entry of the editor's
    /// suggestion list. They are no part of what was offered.
    pub entry_chars: usize,
}

/// An offer whose outcome is decided.
#[derive(Debug)]
pub struct Decided {
    pub offer: Offer,
    pub outcome: Outcome,
    /// Characters of it that stand in the document.
    pub chars_in_document: usize,
}

#[derive(Debug)]
struct Live {
    offer: Offer,
    served_at_ms: u64,
    /// When the user last continued it, or else when it was served.
    waits_since_ms: u64,
    /// The client confirmed that it was shown.
    shown: bool,
    /// Characters of the offer that stand in the document by now.
    progress: usize,
    /// UTF-16 units taken by the client's partial-accept commands.
    accepted_utf16: u32,
    /// The client said that it takes some of it, and that the change follows.
    taking: bool,
    /// The document differs from it, so that the user cannot turn to it any more.
    diverged: bool,
    /// The marks behind the cursor that it replaces, as the client was told last.
    replaces: String,
    /// UTF-16 units at the beginning of the client's text that are no part of what was offered:
    /// what was typed of an entry of the suggestion list, and the rest of that entry.
    lead_utf16: u32,
}

/// What an edit does to an offer.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// A part of it was typed, or taken back.
    Along,
    /// All of it is in the document. It appeared at once if no hand can have typed it.
    Whole { at_once: bool },
    /// It does not fit any more.
    Away,
    /// The edit is elsewhere in the document. The offer moves along with its place.
    Elsewhere,
    /// The edit rewrites the place of the offer together with what is around it, as a formatter
    /// does, or what stands before it. This says nothing about the offer.
    Rewritten,
}

impl Live {
    fn new(offer: Offer, now_ms: u64) -> Live {
        Live {
            offer,
            served_at_ms: now_ms,
            waits_since_ms: now_ms,
            shown: false,
            progress: 0,
            accepted_utf16: 0,
            taking: false,
            diverged: false,
            replaces: String::new(),
            lead_utf16: 0,
        }
    }

    /// Returns where in the document its next character would go.
    fn cursor(&self) -> usize {
        self.offer.start + self.progress
    }

    fn step(&mut self, edit: &Edit) -> Step {
        let (cursor, marks) = (self.cursor(), self.replaces.len());
        let end = edit.start + edit.removed;
        if edit.start > cursor + marks {
            return Step::Elsewhere;
        }
        // What is typed of the offer keeps the cursor away from its start.
        if end < self.offer.start || (end == self.offer.start && self.progress > 0) {
            let inserted = edit.inserted.chars().count();
            self.offer.start = self.offer.start - edit.removed + inserted;
            return Step::Elsewhere;
        }
        // The marks go with the text before them if a key takes both of an empty pair.
        let takes_marks = marks > 0 && end == cursor + marks && !edit.inserted.is_empty();
        let is_around = edit.start < self.offer.start && (end > cursor + marks || takes_marks);
        // A key at the start of the offer puts text in or takes it away. It does not do both.
        let is_before = edit.start < self.offer.start && !edit.inserted.is_empty();
        if is_around || is_before {
            return Step::Rewritten;
        }
        let is_at_cursor = edit.start >= cursor && end <= cursor + marks;
        if let Some(step) = is_at_cursor.then(|| self.grow(edit)).flatten() {
            return step;
        }
        let takes_back = edit.inserted.is_empty()
            && (self.offer.start..=cursor).contains(&edit.start)
            && (cursor..=cursor + marks).contains(&end);
        if takes_back {
            // An editor that closed a bracket takes both of an empty pair.
            self.replaces.drain(..end - cursor);
            self.progress = edit.start - self.offer.start;
            return Step::Along;
        }
        Step::Away
    }

    /// Returns what an edit puts in at the cursor, if it continues the offer.
    fn grow(&mut self, edit: &Edit) -> Option<Step> {
        let (cursor, end) = (self.cursor(), edit.start + edit.removed);
        // The marks before the edit may have been typed over by now, or left out of the edit since
        // they stay what they are; as may those behind it.
        let (before, behind) =
            (&self.replaces[..edit.start - cursor], &self.replaces[end - cursor..]);
        let text = format!("{before}{}", edit.inserted);
        let remaining = self.remaining();
        let left = remaining.chars().count();
        let inserted = edit.inserted.chars().count();
        // The mark was typed; the editor closed it, and the cursor is between.
        let typed_pair = edit.removed == 0
            && is_auto_closed_pair(&edit.inserted)
            && remaining.starts_with(&text[..=before.len()]);
        // An editor puts its own line breaks in, which need not be those of the document's text.
        let (put, offered) = (with_line_feeds(&text), with_line_feeds(remaining));
        let taken_whole = format!("{put}{behind}") == *offered;
        if typed_pair && !taken_whole && left > before.len() + 1 {
            self.progress += before.len() + 1;
            // What it takes the place of is behind the new mark now.
            self.replaces.clear();
            return Some(Step::Along);
        }
        if taken_whole || (edit.removed == 0 && put.starts_with(&*offered)) {
            // One character at the end may be the last one typed, as may the first of a pair; more
            // than one at once is an editor's doing.
            let by_editor = !typed_pair && (inserted.min(left) > 1 || edit.removed > 0);
            let at_once = by_editor || self.is_being_taken();
            self.progress += left;
            return Some(Step::Whole { at_once });
        }
        if remaining.starts_with(&text) {
            self.replaces = behind.to_owned();
            self.progress += text.chars().count();
            return Some(Step::Along);
        }
        None
    }

    /// The cursor moved over marks that the editor had closed, as typing them does. `false` if the
    /// cursor is somewhere else.
    fn follow(&mut self, cursor: usize) -> bool {
        let over = cursor.checked_sub(self.cursor()).and_then(|over| self.replaces.get(..over));
        let Some(over) = over.map(str::len) else { return false };
        if !self.remaining().starts_with(&self.replaces[..over]) {
            return false;
        }
        self.progress += over;
        self.replaces.drain(..over);
        !self.remaining().is_empty()
    }

    /// Returns true if an entry of the suggestion list may be what puts all of it in. An offer
    /// behind an entry begins with the word as entries do, and what the client said counts more.
    fn may_be_of_list(&self) -> bool {
        self.offer.entry_chars == 0 && !self.is_being_taken()
    }

    /// Returns true if the client said that the offer is taken, or that a part of it was.
    fn is_being_taken(&self) -> bool {
        self.taking || self.accepted_utf16 > 0
    }

    fn remaining(&self) -> &str {
        let at = self.offer.text.char_indices().nth(self.progress);
        at.map_or("", |(byte, _)| &self.offer.text[byte..])
    }

    fn progress_utf16(&self) -> u32 {
        utf16_units(self.offer.text.chars().take(self.progress).skip(self.offer.entry_chars))
    }

    /// Characters of what was offered that stand in the document by now.
    fn offered_progress(&self) -> usize {
        self.progress.saturating_sub(self.offer.entry_chars)
    }

    /// The outcome if it ends now in this way, unless some of it is in the document.
    fn left_with(&self, end: End, client_reports: bool, now_ms: u64) -> Outcome {
        let length = self.offer.text.chars().count() - self.offer.entry_chars;
        let progress = self.offered_progress();
        if self.accepted_utf16 > 0 || (self.taking && progress > 0) {
            return Outcome::PartlyAccepted {
                utf16: self.accepted_utf16.max(self.progress_utf16()),
            };
        }
        if progress as f32 >= TYPED_THROUGH_MIN_SHARE * length as f32 {
            return Outcome::TypedThrough { utf16: self.progress_utf16() };
        }
        let visible_ms = now_ms.saturating_sub(self.served_at_ms);
        end.outcome(Exposure { is_reported: self.shown, client_reports, visible_ms })
    }
}

/// What made an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    User,
    /// An entry of the suggestion list.
    List,
    /// Maybe a tool.
    Tool,
    /// The editor, which saves the document.
    Save,
}

impl By {
    /// Returns how an offer ends that the edit does not continue. Without it, the offer stays.
    fn away(self) -> Option<End> {
        match self {
            By::User | By::List => Some(End::Edited),
            By::Tool => Some(End::Replaced),
            By::Save => None,
        }
    }
}

/// The offers that answered one request. All of them are for one place.
#[derive(Debug)]
struct LiveAnswer {
    /// They are in the order in which they were given. There is at least one.
    offers: Vec<Live>,
    /// The offer that is on screen, as far as is known.
    current: usize,
    /// The user invoked the request, and there are no other offers than these.
    is_complete: bool,
}

impl LiveAnswer {
    fn current(&self) -> &Live {
        &self.offers[self.current]
    }

    fn current_mut(&mut self) -> &mut Live {
        &mut self.offers[self.current]
    }

    fn index_of(&self, id: &str) -> Option<usize> {
        self.offers.iter().position(|live| live.offer.id == id)
    }

    fn others(&mut self) -> impl Iterator<Item = (usize, &mut Live)> {
        let current = self.current;
        let others = self.offers.iter_mut().enumerate();
        others.filter(move |(index, live)| *index != current && !live.diverged)
    }
}

/// What is known of an offer that was decided.
#[derive(Debug)]
struct Known {
    id: OfferId,
    outcome: Outcome,
    /// The client, or what the user did, said that it was on screen.
    is_seen: bool,
}

#[derive(Debug, Default)]
pub struct Tracker {
    live: Option<LiveAnswer>,
    decided: VecDeque<Known>,
    decided_now: Vec<Decided>,
    /// True once the client has reported an offer as shown. Its silence about another one then
    /// means that this one was not shown.
    client_reports: bool,
}

impl Tracker {
    /// A new answer takes the place of the live one. Its first offer is on screen. `is_complete` if
    /// it has all offers that there are for the place.
    pub fn serve(&mut self, offers: Vec<Offer>, is_complete: bool, now_ms: u64) -> Vec<EventKind> {
        let events = self.leave(End::Replaced, now_ms);
        let offers: Vec<_> = offers.into_iter().map(|offer| Live::new(offer, now_ms)).collect();
        self.live = (!offers.is_empty()).then_some(LiveAnswer { offers, current: 0, is_complete });
        events
    }

    /// Others the user may turn to from the live offer.
    pub fn complete(&mut self, offers: Vec<Offer>, now_ms: u64) {
        if let Some(answer) = &mut self.live {
            answer.offers.extend(offers.into_iter().map(|offer| Live::new(offer, now_ms)));
            answer.is_complete = true;
        }
    }

    /// The offers of the live answer, and those whose outcome may still be changed here.
    pub fn known(&self) -> impl Iterator<Item = &OfferId> {
        let live = self.live.iter().flat_map(|answer| &answer.offers).map(|live| &live.offer.id);
        live.chain(self.decided.iter().map(|known| &known.id))
    }

    /// Returns true if the user invoked the live answer.
    pub fn is_complete(&self) -> bool {
        self.live.as_ref().is_some_and(|answer| answer.is_complete)
    }

    /// Returns the offers that are live in a document.
    pub fn live_in(&self, uri: &str) -> impl Iterator<Item = &OfferId> {
        let live = self.live.iter().flat_map(|answer| &answer.offers).map(|live| &live.offer);
        live.filter(move |offer| offer.uri == uri).map(|offer| &offer.id)
    }

    /// Returns true if this offer is live, or if its outcome may still be changed here.
    pub fn knows(&self, id: &str) -> bool {
        self.known().any(|known| known == id)
    }

    /// Notes that the client reports which offers it shows. Those that count as rejected and were
    /// never reported become unseen. `of` is the offer that the first report is about, if it is
    /// about one: that one was on screen.
    pub fn client_reports(&mut self, of: Option<&str>) -> Vec<EventKind> {
        if std::mem::replace(&mut self.client_reports, true) {
            return vec![];
        }
        let others = self.decided.iter_mut().filter(|known| Some(known.id.as_str()) != of);
        let unseen = others.filter(|known| {
            let is_reject =
                matches!(known.outcome, Outcome::RejectedTimeout | Outcome::RejectedEdit);
            is_reject && !known.is_seen
        });
        let events = unseen.map(|known| {
            known.outcome = Outcome::Unseen;
            outcome_event(&known.id, Outcome::Unseen, Evidence::ClientNotice)
        });
        events.collect()
    }

    /// Offers that were decided since this was asked last.
    pub fn take_decided(&mut self) -> Vec<Decided> {
        std::mem::take(&mut self.decided_now)
    }

    /// Returns what remains of the live offer at this cursor of a text, if the text still agrees
    /// with it. While the user types along, no new computation and no new offer are needed.
    pub fn continuation(
        &mut self,
        uri: &str,
        text: &Rope,
        cursor: usize,
    ) -> Option<(OfferId, String)> {
        let live = self.live.as_mut()?.current_mut();
        let is_same = live.offer.uri == uri && live.offer.before.is_before(text, live.offer.start);
        let here = is_same && live.follow(cursor);
        here.then(|| (live.offer.id.clone(), live.remaining().to_owned()))
    }

    /// The same for every offer of the live answer, once others were asked for. What is on screen
    /// comes first, because clients show the first.
    pub fn continuations(
        &mut self,
        uri: &str,
        text: &Rope,
        cursor: usize,
    ) -> Option<Vec<(OfferId, String)>> {
        let first = self.continuation(uri, text, cursor)?;
        let answer = self.live.as_mut().filter(|answer| answer.is_complete)?;
        let others = answer.others().filter_map(|(_, live)| {
            live.follow(cursor).then(|| (live.offer.id.clone(), live.remaining().to_owned()))
        });
        Some(std::iter::once(first).chain(others).collect())
    }

    /// The client was told that what remains of an offer replaces these marks behind the cursor,
    /// and that its text begins with what was `typed` of an entry of the suggestion list.
    pub fn told(&mut self, id: &str, marks: &str, typed: &str) {
        let answer = self.live.as_mut();
        let live = answer.and_then(|all| all.offers.iter_mut().find(|live| live.offer.id == id));
        if let Some(live) = live {
            debug_assert!(marks.is_ascii(), "each is counted as one character");
            live.replaces = marks.to_owned();
            let rest = live.offer.text.chars().take(live.offer.entry_chars).skip(live.progress);
            live.lead_utf16 = utf16_units(typed.chars()) + utf16_units(rest);
        }
    }

    /// Returns where in a document the live offer begins, and where its next character would go.
    pub fn place(&self, uri: &str) -> Option<Range<usize>> {
        let live = self.live.as_ref()?.current();
        (live.offer.uri == uri).then(|| live.offer.start..live.cursor())
    }

    /// The cursor is elsewhere, and there was no edit.
    pub fn supersede(&mut self, now_ms: u64) -> Vec<EventKind> {
        self.leave(End::Replaced, now_ms)
    }

    /// The document changed.
    pub fn edit(&mut self, uri: &str, edit: &Edit, now_ms: u64) -> Vec<EventKind> {
        self.follow(uri, edit, By::User, now_ms)
    }

    /// The document changed by an entry of the editor's suggestion list. If that is what was
    /// offered, the user had it without the offer, as if it was typed.
    pub fn edit_by_list(&mut self, uri: &str, edit: &Edit, now_ms: u64) -> Vec<EventKind> {
        self.follow(uri, edit, By::List, now_ms)
    }

    /// The document changed, and a tool may have done it. That is no verdict on the offer.
    pub fn edit_by_tool(&mut self, uri: &str, edit: &Edit, now_ms: u64) -> Vec<EventKind> {
        self.follow(uri, edit, By::Tool, now_ms)
    }

    /// The document ends with a line break now. The offer stays before it, where the editor keeps
    /// it on screen if this is done on save. If it is the Enter key, the next request is elsewhere.
    pub fn final_newline(&mut self, uri: &str, edit: &Edit, now_ms: u64) -> Vec<EventKind> {
        self.follow(uri, edit, By::Save, now_ms)
    }

    /// Ends the live offer without a verdict if the document, whose text this is after an edit, has
    /// another text before the offer than the one that it continues.
    pub fn check_text_before(&mut self, uri: &str, text: &Rope, now_ms: u64) -> Vec<EventKind> {
        let live = self.live.as_ref().map(LiveAnswer::current);
        let is_other = live.is_some_and(|live| {
            live.offer.uri == uri && !live.offer.before.is_before(text, live.offer.start)
        });
        if is_other { self.leave(End::Replaced, now_ms) } else { vec![] }
    }

    /// Follows an edit.
    fn follow(&mut self, uri: &str, edit: &Edit, by: By, now_ms: u64) -> Vec<EventKind> {
        let on = |answer: &&mut LiveAnswer| answer.current().offer.uri == uri;
        let Some(answer) = self.live.as_mut().filter(on) else { return vec![] };
        if edit.removed == 0 && edit.inserted.is_empty() {
            return vec![];
        }
        match answer.current_mut().step(edit) {
            step @ (Step::Along | Step::Elsewhere) => {
                if step == Step::Along {
                    answer.current_mut().waits_since_ms = now_ms;
                }
                answer.others().for_each(|(_, live)| live.diverged = live.step(edit) != step);
                vec![]
            }
            Step::Rewritten => self.supersede(now_ms),
            TAKEN if by != By::List || !answer.current().may_be_of_list() => {
                self.decide(Outcome::Accepted, Evidence::Document)
            }
            Step::Whole { .. } => {
                let utf16 = answer.current().progress_utf16();
                self.decide(Outcome::TypedThrough { utf16 }, Evidence::Document)
            }
            Step::Away => {
                // Another one was taken by a client that does not say what it shows.
                let taken =
                    answer.others().find_map(|(i, live)| (live.step(edit) == TAKEN).then_some(i));
                match taken {
                    Some(index) => {
                        answer.current = index;
                        self.decide(Outcome::Accepted, Evidence::Document)
                    }
                    None => by.away().map_or_else(Vec::new, |away| self.leave(away, now_ms)),
                }
            }
        }
    }

    /// The client ran the offer's accept command.
    pub fn accepted(&mut self, id: &str) -> Vec<EventKind> {
        if self.turn_to(id).is_some() {
            return self.decide(Outcome::Accepted, Evidence::Command);
        }
        // The change came first and may have been read otherwise.
        match self.decided.iter_mut().find(|known| known.id == id) {
            Some(known) if known.outcome != Outcome::Accepted => {
                known.outcome = Outcome::Accepted;
                vec![outcome_event(id, Outcome::Accepted, Evidence::Command)]
            }
            _ => vec![],
        }
    }

    /// The client confirms that the offer is on screen. It may have replaced another one of the
    /// same answer.
    pub fn shown(&mut self, id: &str, now_ms: u64) -> Vec<EventKind> {
        let mut events = self.client_reports(Some(id));
        events.extend(self.show(id, now_ms));
        events
    }

    /// Notes that the user turned to an offer of the answer on screen. It says nothing of offers
    /// that are not reported.
    pub fn turned_to(&mut self, id: &str, now_ms: u64) -> Vec<EventKind> {
        self.show(id, now_ms)
    }

    /// Notes that an offer is on screen.
    fn show(&mut self, id: &str, now_ms: u64) -> Vec<EventKind> {
        let before = self.live.as_ref().map(|answer| answer.current);
        let Some(live) = self.turn_to(id) else { return vec![] };
        let first_time = !std::mem::replace(&mut live.shown, true);
        let turned = self.live.as_ref().map(|answer| answer.current) != before;
        if let Some(answer) = self.live.as_mut().filter(|_| turned) {
            let live = answer.current_mut();
            (live.served_at_ms, live.waits_since_ms) = (now_ms, now_ms);
        }
        if first_time { vec![EventKind::Shown { id: id.to_owned() }] } else { vec![] }
    }

    /// The client accepted a part of the offer: `length` UTF-16 units from the start of the text as
    /// the client was told it last.
    pub fn partly_accepted(&mut self, id: &str, length: u32) -> Vec<EventKind> {
        let Some(live) = self.turn_to(id) else { return self.partly_accepted_late(id, length) };
        let offered = length.saturating_sub(live.lead_utf16);
        let accepted_utf16 = live.accepted_utf16.max(live.progress_utf16()).max(offered);
        live.accepted_utf16 = accepted_utf16;
        if accepted_utf16 == 0 {
            // A part of the entry was taken, and nothing of what was offered behind it.
            return vec![];
        }
        vec![EventKind::PartlyAccepted { id: id.to_owned(), accepted_utf16 }]
    }

    /// The client accepted a part of an offer that counts as left already, such as one that stood
    /// for long. That takes the verdict back, as an acceptance of the whole does.
    fn partly_accepted_late(&mut self, id: &str, utf16: u32) -> Vec<EventKind> {
        let known = self.decided.iter_mut().find(|known| known.id == id);
        let Some(Known { outcome, .. }) = known.filter(|_| utf16 > 0) else { return vec![] };
        let is_less = match *outcome {
            Outcome::Accepted | Outcome::TypedThrough { .. } | Outcome::RejectedEsc => false,
            Outcome::PartlyAccepted { utf16: known } => known < utf16,
            Outcome::RejectedTimeout
            | Outcome::RejectedEdit
            | Outcome::Superseded
            | Outcome::Unseen => true,
        };
        if !is_less {
            return vec![];
        }
        *outcome = Outcome::PartlyAccepted { utf16 };
        vec![outcome_event(id, *outcome, Evidence::ClientNotice)]
    }

    /// The client is about to accept the offer or a word of it. The change that follows says which.
    pub fn taking(&mut self, id: &str, now_ms: u64) -> Vec<EventKind> {
        let events = self.show(id, now_ms);
        match self.turn_to(id) {
            Some(live) => live.taking = true,
            None => return self.accepted(id),
        }
        events
    }

    /// The offer that is on screen, as far as is known.
    pub fn on_screen(&self) -> Option<OfferId> {
        self.live.as_ref().map(|answer| answer.current().offer.id.clone())
    }

    /// The client says that the user rejected the offer.
    pub fn rejected(&mut self, id: &str, reason: Outcome, now_ms: u64) -> Vec<EventKind> {
        let Some(answer) = &mut self.live else { return vec![] };
        match answer.index_of(id) {
            Some(index) if index == answer.current || reason != Outcome::Superseded => {
                answer.current = index;
                self.leave(End::Notice(reason), now_ms)
            }
            // Nobody looked at it; what is on screen stays.
            Some(index) => {
                answer.offers[index].diverged = true;
                vec![]
            }
            None => vec![],
        }
    }

    /// Time passed. Who types along, or accepts word after word, has not rejected the offer.
    pub fn tick(&mut self, now_ms: u64) -> Vec<EventKind> {
        let since = self.live.as_ref().map(|answer| answer.current().waits_since_ms);
        let expired = since.is_some_and(|since| now_ms.saturating_sub(since) >= REJECT_TIMEOUT_MS);
        if expired { self.leave(End::TimedOut, now_ms) } else { vec![] }
    }

    /// The document was closed, or opened again. The offer ends without a verdict.
    pub fn supersede_in(&mut self, uri: &str, now_ms: u64) -> Vec<EventKind> {
        match &self.live {
            Some(answer) if answer.current().offer.uri == uri => self.supersede(now_ms),
            _ => vec![],
        }
    }

    /// The client speaks of this offer, so it is the one on screen.
    fn turn_to(&mut self, id: &str) -> Option<&mut Live> {
        let answer = self.live.as_mut()?;
        answer.current = answer.index_of(id)?;
        Some(answer.current_mut())
    }

    fn leave(&mut self, end: End, now_ms: u64) -> Vec<EventKind> {
        match &self.live {
            Some(answer) => {
                let outcome = answer.current().left_with(end, self.client_reports, now_ms);
                self.decide(outcome, end.evidence())
            }
            None => vec![],
        }
    }

    /// The offer on screen gets its outcome. The others of its answer end without
    /// a label.
    fn decide(&mut self, outcome: Outcome, evidence: Evidence) -> Vec<EventKind> {
        let Some(LiveAnswer { mut offers, current, .. }) = self.live.take() else { return vec![] };
        let left = offers.remove(current);
        let known = Known { id: left.offer.id.clone(), outcome, is_seen: left.shown };
        let mut known = vec![(known, evidence)];
        self.decided_now.push(Decided {
            offer: left.offer,
            outcome,
            chars_in_document: left.progress,
        });
        for other in offers {
            let outcome = if other.shown { Outcome::Superseded } else { Outcome::Unseen };
            let other = Known { id: other.offer.id, outcome, is_seen: other.shown };
            known.push((other, Evidence::Document));
        }
        let events = known.iter().map(|(one, by)| outcome_event(&one.id, one.outcome, *by));
        let events = events.collect();
        self.decided.extend(known.into_iter().map(|(one, _)| one));
        while self.decided.len() > DECIDED_LIMIT {
            self.decided.pop_front();
        }
        events
    }
}

/// All of the offer appeared at once, so no hand typed it.
const TAKEN: Step = Step::Whole { at_once: true };

fn utf16_units(text: impl Iterator<Item = char>) -> u32 {
    text.map(|c| c.len_utf16() as u32).sum()
}

fn outcome_event(id: &str, outcome: Outcome, evidence: Evidence) -> EventKind {
    EventKind::Outcome { id: id.to_owned(), outcome, evidence }
}

/// The text with the line breaks of an offer. Editors write those of the document in their place.
pub fn with_line_feeds(text: &str) -> Cow<'_, str> {
    if !text.contains('\r') {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
}

/// Returns whether an editor inserts this when the user types one opening mark.
fn is_auto_closed_pair(inserted: &str) -> bool {
    matches!(inserted, "()" | "[]" | "{}" | "\"\"" | "''" | "``")
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
