//! What a session knows of next edits under its own lock: what the finder has yet to hear, and the
//! edit that the editor has. A keystroke only adds to the queue.

use super::live::{Ended, Live, Message};
use completion::document::{Document, Edit};
use feedback::event::{EventKind, Evidence, NextEditOutcome, OfferId};
use next_edit::model::{Decision, LastChange, Moment};
use next_edit::{NextEdit, RuleKind};
use ropey::Rope;
use std::collections::{HashMap, VecDeque};

/// Changes that wait for the finder. A client that never asks for next edits fills it, and then all
/// of them are dropped.
const QUEUE_MAX: usize = 1024;

/// The open documents that one search looks into: those that were used last.
pub const DOCUMENTS_MAX: usize = 50;

/// The latest changes of a document that an undo is looked for among.
const BEFORE_MAX: usize = 32;

/// The fewest characters that are put in or taken out at once if it is an undo. A key alone, or the
/// two marks that some keys make, is as likely a typo that is taken back.
const UNDONE_CHARS_MIN: usize = 3;

/// Edits whose outcome is known, so that a late message about one is understood.
const ENDED_MAX: usize = 16;

/// What the finder has yet to hear, in order.
pub enum News {
    Changed {
        uri: String,
        path: String,
        language: String,
        was: Rope,
        edits: Vec<Edit>,
    },
    /// Changes are missing from here on.
    Settle,
    Right(NextEdit),
    Wrong(NextEdit),
}

#[derive(Default)]
pub struct Inbox {
    news: Vec<News>,
    /// The changes of the message that is being applied.
    message: Vec<Edit>,
    pub live: Option<Live>,
    ended: VecDeque<Ended>,
    last_taken: Option<Taken>,
    /// True once the client has reported an edit as shown.
    pub client_reports: bool,
    /// Requests so far. Only the newest one is answered.
    pub asked: u64,
    /// The documents, the one that was used last first.
    recent: VecDeque<String>,
    /// `None` if there is no model for next edits.
    for_model: Option<ForModel>,
}

/// What a model for next edits needs to know.
#[derive(Default)]
struct ForModel {
    moment: Moment,
    /// The documents as they were opened.
    opened: HashMap<String, Rope>,
    /// Each document before its latest changes, by which an undo is known.
    before: HashMap<String, VecDeque<Rope>>,
}

impl ForModel {
    fn changed(&mut self, uri: &str, was: &Rope, is: &Rope, edits: &[Edit], now_ms: u64) {
        let before = self.before.entry(uri.to_owned()).or_default();
        let is_back = edits.iter().any(is_more_than_a_key) && before.contains(is);
        if before.len() == BEFORE_MAX {
            before.pop_front();
        }
        before.push_back(was.clone());
        let inserted =
            edits.iter().map(|edit| edit.inserted.as_str()).max_by_key(|text| text.len());
        self.moment.changed(inserted.unwrap_or_default(), is_back, now_ms);
    }

    fn ended(&mut self, outcome: NextEditOutcome, now_ms: u64) {
        match outcome {
            NextEditOutcome::Accepted => self.moment.accepted(now_ms),
            NextEditOutcome::Rejected => self.moment.rejected(now_ms),
            _ => {}
        }
    }
}

/// Returns whether the edit puts in or takes out more than a key does. A key may indent a line.
fn is_more_than_a_key(edit: &Edit) -> bool {
    let inserted = edit.inserted.chars().filter(|c| !c.is_whitespace()).count();
    inserted.max(edit.removed) >= UNDONE_CHARS_MIN
}

/// The edit that was made last, and its document before that.
struct Taken {
    id: OfferId,
    edit: NextEdit,
    was: Option<Rope>,
}

impl Inbox {
    /// `has_model` is true if a model writes next edits.
    pub fn new(has_model: bool) -> Inbox {
        Inbox { for_model: has_model.then(ForModel::default), ..Inbox::default() }
    }

    /// A document is opened with this text.
    pub fn open(&mut self, uri: &str, text: &Rope) {
        self.visit(uri);
        if let Some(for_model) = &mut self.for_model {
            for_model.opened.insert(uri.to_owned(), text.clone());
        }
    }

    /// The document as it was opened, if a model may be shown it.
    pub fn opened(&self, uri: &str) -> Option<&Rope> {
        self.for_model.as_ref()?.opened.get(uri)
    }

    /// The client reports what the last change was.
    pub fn told(&mut self, change: LastChange) {
        self.for_model.iter_mut().for_each(|for_model| for_model.moment.told(change));
    }

    /// When a model is to be asked.
    pub fn when_to_ask(&self, is_invoked: bool, is_line_end: bool, now_ms: u64) -> Decision {
        let nothing = Moment::default();
        let moment = self.for_model.as_ref().map_or(&nothing, |for_model| &for_model.moment);
        moment.ask(is_invoked, is_line_end, now_ms)
    }

    /// The document is used now.
    pub fn visit(&mut self, uri: &str) {
        if self.recent.front().is_some_and(|front| front == uri) {
            return;
        }
        self.recent.retain(|other| other != uri);
        self.recent.push_front(uri.to_owned());
        self.recent.truncate(DOCUMENTS_MAX);
    }

    /// The documents in the order in which a person would go through them.
    pub fn recent(&self) -> impl Iterator<Item = &String> {
        self.recent.iter()
    }

    pub fn note(&mut self, edit: &Edit) {
        self.message.push(edit.clone());
    }

    /// All changes of a message are applied.
    pub fn changed(&mut self, uri: &str, was: Rope, is: &Document, now_ms: u64) -> Vec<EventKind> {
        let edits = std::mem::take(&mut self.message);
        self.visit(uri);
        let message = Message { uri, was: &was, is: &is.text, edits: &edits };
        let mut events = self.undone(&message);
        self.ended.iter_mut().for_each(|ended| ended.follow(&message));
        let outcome = self.live.as_mut().and_then(|live| live.changed(&message, now_ms));
        if let Some(for_model) = &mut self.for_model {
            for_model.changed(uri, &was, &is.text, &edits, now_ms);
            outcome.iter().for_each(|outcome| for_model.ended(*outcome, now_ms));
        }
        if let Some(outcome) = outcome {
            events.extend(self.end(outcome, Evidence::Document));
            if let Some(taken) = &mut self.last_taken {
                taken.was = Some(was.clone());
            }
        }
        let (path, language) = (is.path.clone(), is.language.clone());
        self.tell(News::Changed { uri: uri.to_owned(), path, language, was, edits });
        events
    }

    /// The text of a document is not followed any more.
    pub fn left(&mut self, uri: &str) -> Vec<EventKind> {
        self.message.clear();
        self.recent.retain(|other| other != uri);
        if let Some(for_model) = &mut self.for_model {
            for_model.opened.remove(uri);
            for_model.before.remove(uri);
        }
        self.tell(News::Settle);
        self.last_taken.take_if(|taken| *taken.edit.file == *uri);
        let there = self.ended.iter_mut().filter(|ended| *ended.edit.file == *uri);
        there.for_each(|ended| ended.place = None);
        let is_there = self.live.as_ref().is_some_and(|live| *live.edit.file == *uri);
        if is_there { self.end(NextEditOutcome::Superseded, Evidence::Document) } else { vec![] }
    }

    /// Forgets the edits that the finder has yet to hear of. What is on screen stays, and a request
    /// under way is not answered any more.
    pub fn forget(&mut self) {
        self.asked += 1;
        self.news = vec![News::Settle];
        self.last_taken = None;
        self.for_model.iter_mut().for_each(|for_model| *for_model = ForModel::default());
    }

    /// All that the finder has yet to hear.
    pub fn take_news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    /// Returns whether this is an edit of this session. Its outcome may be known already.
    pub fn knows(&self, id: &str) -> bool {
        self.live.as_ref().is_some_and(|live| live.id == id)
            || self.ended.iter().any(|ended| ended.id == id)
    }

    /// The client reports what became of the edit with this id.
    pub fn decided(
        &mut self,
        id: &str,
        outcome: NextEditOutcome,
        evidence: Evidence,
        documents: &HashMap<String, Document>,
        now_ms: u64,
    ) -> Vec<EventKind> {
        let Some(live) = self.live.as_ref().filter(|live| live.id == id) else {
            return match outcome {
                NextEditOutcome::Accepted => self.made(id, evidence, documents, now_ms),
                NextEditOutcome::Rejected => self.rejected_late(id, evidence, now_ms),
                _ => vec![],
            };
        };
        let outcome = match outcome {
            NextEditOutcome::Superseded => live.left(outcome, now_ms),
            outcome => outcome,
        };
        self.for_model.iter_mut().for_each(|for_model| for_model.ended(outcome, now_ms));
        self.end(outcome, evidence)
    }

    /// The client has made an edit that counts as ended here, such as one that it kept on screen
    /// while nothing else was offered.
    fn made(
        &mut self,
        id: &str,
        evidence: Evidence,
        documents: &HashMap<String, Document>,
        now_ms: u64,
    ) -> Vec<EventKind> {
        let Some(ended) = self.ended.iter_mut().find(|ended| ended.id == id) else { return vec![] };
        let outcome = NextEditOutcome::Accepted;
        // The user began to type it, and the client made the rest.
        let was_begun = ended.outcome == NextEditOutcome::MadeByHand;
        let document = documents.get(&*ended.edit.file);
        let was_made = document.is_some_and(|document| ended.was_made(&document.text));
        if was_begun || was_made {
            self.for_model.iter_mut().for_each(|for_model| for_model.ended(outcome, now_ms));
        }
        if !was_made {
            return vec![];
        }
        ended.outcome = outcome;
        let edit = ended.edit.clone();
        self.tell(News::Right(edit));
        vec![EventKind::NextEditOutcome { id: id.to_owned(), outcome, evidence }]
    }

    /// The user rejects an edit that counts as ended here, because the client still shows it.
    fn rejected_late(&mut self, id: &str, evidence: Evidence, now_ms: u64) -> Vec<EventKind> {
        let is_it = |ended: &&mut Ended| ended.id == id && ended.has_no_verdict();
        let Some(ended) = self.ended.iter_mut().find(is_it) else { return vec![] };
        let outcome = NextEditOutcome::Rejected;
        let before = std::mem::replace(&mut ended.outcome, outcome);
        let edit = ended.edit.clone();
        self.for_model.iter_mut().for_each(|for_model| for_model.ended(outcome, now_ms));
        // The finder has heard of one that was passed by, and counts how often a rule was wrong.
        if before.is_right().is_none() {
            self.tell(News::Wrong(edit));
        }
        vec![EventKind::NextEditOutcome { id: id.to_owned(), outcome, evidence }]
    }

    /// Ends the live edit, because another one is offered.
    pub fn supersede(&mut self, now_ms: u64) -> Vec<EventKind> {
        let Some(live) = &self.live else { return vec![] };
        let outcome = match live.is_touched() {
            true => NextEditOutcome::EditedOtherwise,
            false => NextEditOutcome::Superseded,
        };
        let outcome = live.left(outcome, now_ms);
        self.end(outcome, Evidence::Document)
    }

    /// Returns true if a model wrote the live edit.
    pub fn is_by_model(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.edit.kind == RuleKind::Model)
    }

    /// Nothing is offered any more. What the user is writing at a place is waited for.
    pub fn withdraw(&mut self, now_ms: u64) -> Vec<EventKind> {
        let is_touched = self.live.as_ref().is_some_and(Live::is_touched);
        if is_touched { vec![] } else { self.supersede(now_ms) }
    }

    fn tell(&mut self, news: News) {
        if self.news.len() >= QUEUE_MAX {
            self.news.clear();
            self.news.push(News::Settle);
        }
        self.news.push(news);
    }

    fn end(&mut self, outcome: NextEditOutcome, evidence: Evidence) -> Vec<EventKind> {
        let Some(live) = self.live.take() else { return vec![] };
        let (id, edit) = (live.id.clone(), live.edit.clone());
        self.ended.push_back(live.ended(outcome));
        if self.ended.len() > ENDED_MAX {
            self.ended.pop_front();
        }
        match outcome.is_right() {
            Some(true) => self.tell(News::Right(edit.clone())),
            Some(false) => self.tell(News::Wrong(edit.clone())),
            None => {}
        }
        let is_taken = outcome == NextEditOutcome::Accepted;
        self.last_taken = is_taken.then(|| Taken { id: id.clone(), edit, was: None });
        vec![EventKind::NextEditOutcome { id, outcome, evidence }]
    }

    /// The user takes an edit back with the next change of its document.
    fn undone(&mut self, message: &Message) -> Vec<EventKind> {
        let is_there = |taken: &mut Taken| *taken.edit.file == *message.uri && taken.was.is_some();
        let Some(taken) = self.last_taken.take_if(is_there) else { return vec![] };
        if taken.was.is_none_or(|was| was != *message.is) {
            return vec![];
        }
        self.tell(News::Wrong(taken.edit));
        let (outcome, evidence) = (NextEditOutcome::Undone, Evidence::Document);
        vec![EventKind::NextEditOutcome { id: taken.id, outcome, evidence }]
    }
}
