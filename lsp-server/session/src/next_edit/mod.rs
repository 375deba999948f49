//! Next edits: what the user changed twice is offered where it comes next.
//!
//! A keystroke only adds its change to a queue ([`inbox`]). A request hears what was queued and
//! searches on a thread of its own, one at a time for each session ([`finder`]). What becomes of an
//! offered edit is read from the documents, because clients differ in what they report ([`live`]).
//! Where no rule fits, a model is asked, if the user names one ([`model`]).

mod candidate;
mod finder;
mod inbox;
mod live;
mod model;
mod offer;
mod scan;
#[cfg(test)]
#[allow(clippy::disallowed_methods)]
mod tests;
mod unopened;

pub use finder::Finder;
pub use inbox::Inbox;
pub use next_edit::model::LastChange;
pub use offer::OfferedEdit;

use super::{Session, State, Turn};
use crate::completed::OpenRequest;
use crate::request::Trigger;
use completion::document::{Document, Position};
use parking_lot::Mutex;
use services::Services;
use services::reason::Reason;
use services::recent_requests::AskedFor;
use settings::NextEdit as Setting;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tokio::sync::Semaphore;

/// Searches at a time in one session.
const SEARCHES: usize = 1;

/// What a session needs to search, next to its own state.
pub struct Search {
    finder: Mutex<KnownSince>,
    turn: Semaphore,
    /// The number of times that the edits so far were forgotten.
    forgets: AtomicU64,
}

/// A finder that knows the edits since they were forgotten for the last time but so many.
#[derive(Default)]
struct KnownSince {
    forgets: u64,
    finder: Finder,
}

impl Default for Search {
    fn default() -> Search {
        let turn = Semaphore::new(SEARCHES);
        Search { finder: Mutex::default(), turn, forgets: AtomicU64::new(0) }
    }
}

impl Search {
    /// Forgets the edits so far. A search that is under way is not waited for, because it may wait
    /// for a disk: it drops what it knows and finds.
    pub fn forget(&self) {
        self.forgets.fetch_add(1, Ordering::SeqCst);
        if let Some(mut known) = self.finder.try_lock() {
            known.renew(self.forgets());
        }
    }

    fn forgets(&self) -> u64 {
        self.forgets.load(Ordering::SeqCst)
    }

    /// Searches with what is known. Returns nothing if that was forgotten meanwhile.
    fn with_finder<T>(&self, search: impl FnOnce(&mut Finder) -> T) -> Option<T> {
        let mut known = self.finder.lock();
        known.renew(self.forgets());
        let found = search(&mut known.finder);
        let is_current = known.forgets == self.forgets();
        known.renew(self.forgets());
        is_current.then_some(found)
    }
}

impl KnownSince {
    fn renew(&mut self, forgets: u64) {
        if self.forgets != forgets {
            *self = KnownSince { forgets, finder: Finder::default() };
        }
    }
}

/// A request for the next edit, as it was asked.
#[derive(Clone)]
struct Asked {
    number: u64,
    uri: String,
    version: i32,
    position: Position,
    trigger: Trigger,
}

impl Session {
    /// The next edit, or why there is none that is worth showing. The reason is remembered.
    pub async fn next_edit(
        self: &Arc<Session>,
        uri: &str,
        version: Option<i32>,
        position: Position,
        trigger: Trigger,
    ) -> Result<OfferedEdit, Reason> {
        let since = Instant::now();
        let (path, asked) = self.ask_for_edit(uri, version, position, trigger);
        let place = (path.unwrap_or_else(|| uri.to_owned()), position, trigger);
        let open = OpenRequest::new(&self.services, AskedFor::NextEdit, place, since);
        let found = match asked {
            Ok(asked) => match self.find_edit(asked.clone()).await {
                Err(silent) => {
                    let found = self.ask_model(&asked, silent).await;
                    if found.is_err() {
                        self.turn(|state, turn| state.withdraw_by_model(turn, &asked));
                    }
                    found
                }
                found => found,
            },
            Err(reason) => Err(reason),
        };
        open.end(Some(found.as_ref().err().cloned().unwrap_or(Reason::Shown)));
        found
    }

    /// There is no edit for a text that is not the one of the document now, nor if a newer request
    /// has come.
    async fn find_edit(self: &Arc<Session>, asked: Asked) -> Result<OfferedEdit, Reason> {
        let turn = self.search.turn.acquire().await;
        if turn.is_err() || !self.is_newest(&asked) {
            return Err(Reason::Superseded);
        }
        let session = self.clone();
        let searched = host::tasks::blocking(move || session.search(&asked)).await;
        searched.unwrap_or_else(|error| Err(Reason::Failed { message: error.to_string() }))
    }

    fn is_newest(&self, asked: &Asked) -> bool {
        self.read(|state| state.next_edits.asked == asked.number)
    }

    /// Returns the path of the document too, if it is open.
    fn ask_for_edit(
        &self,
        uri: &str,
        version: Option<i32>,
        position: Position,
        trigger: Trigger,
    ) -> (Option<String>, Result<Asked, Reason>) {
        self.turn(|state, turn| {
            let asked = state.ask_for_edit(turn, uri, version, position, trigger);
            (state.path_of(uri), asked)
        })
    }

    /// The client reports what the last change was, if the text that it means is the one of now.
    pub fn tell_last_change(&self, uri: &str, version: Option<i32>, change: LastChange) {
        self.turn(|state, _| {
            let is_meant = |document: &Document| version.is_none_or(|it| it == document.version);
            if state.documents.get(uri).is_some_and(is_meant) {
                state.next_edits.told(change);
            }
        });
    }

    /// Notes that the client of this session reports which next edits it shows.
    pub fn client_reports_edits(&self) {
        self.turn(|state, _| state.next_edits.client_reports = true);
    }

    /// The client has an edit on screen.
    pub fn next_edit_shown(&self, id: &str) {
        self.turn(|state, _| {
            state.next_edits.client_reports = true;
            if let Some(live) = state.next_edits.live.as_mut().filter(|live| live.id == id) {
                live.is_shown();
            }
        });
    }
}

impl State {
    fn ask_for_edit(
        &mut self,
        turn: &Turn,
        uri: &str,
        version: Option<i32>,
        position: Position,
        trigger: Trigger,
    ) -> Result<Asked, Reason> {
        let Services { settings, snoozes, .. } = turn.services;
        let config = settings.current();
        self.next_edits.asked += 1;
        let number = self.next_edits.asked;
        let document = self.documents.get(uri).ok_or(Reason::OutOfStep)?;
        let silence = match (config.completion.next_edit_in(&document.language), trigger) {
            (Setting::Off, _) => Some(Reason::NextEditsOff),
            (Setting::Subtle, Trigger::Automatic) => Some(Reason::NextEditsByKey),
            (Setting::Subtle | Setting::On, Trigger::Invoked) => None,
            (Setting::On, Trigger::Automatic) => {
                let snoozed = snoozes.until(&document.path);
                let snoozed = snoozed.map(|until| Reason::Snoozed { until: until.sentence() });
                snoozed.or_else(|| config.silence(&document.path, &document.language))
            }
        };
        let is_old = version.is_some_and(|version| version != document.version);
        match silence.or(is_old.then_some(Reason::Superseded)) {
            Some(reason) => Err(reason),
            None => Ok(Asked {
                number,
                uri: uri.to_owned(),
                version: document.version,
                position,
                trigger,
            }),
        }
    }
}
