//! Documents that cannot be served, because a message about them was lost or contradicts what is
//! known of them. Offers in a text that the editor does not show would be wrong, so there are none.

use super::{Session, SessionError, State};
use parking_lot::MutexGuard;

/// Why a document is not served that the editor did not open, or whose opening was lost.
pub const NEVER_OPENED: &str = "was never opened here; open the file again";

const OUT_OF_STEP: &str = "a change begins past the end of the document, so editor and server are \
                           out of step: close and open the file again";

/// The most documents whose reason is remembered.
const DOCUMENTS: usize = 1024;

impl Session {
    /// Stops serving a document, or all cells of a notebook, until the editor opens it again.
    /// `why` ends with what the user can do. Returns true if it was served or is not known to be
    /// unserved.
    pub fn stop_serving(&self, uri: &str, why: &str) -> bool {
        let mut is_news = false;
        for document in self.documents_of(uri) {
            is_news |= !self.state.lock().unserved.contains_key(&document);
            self.close(&document);
            self.state.lock().note_unserved(&document, why);
        }
        self.forget_notebook(uri);
        is_news
    }

    /// What a change of a document is answered that is not open, or that has another text here than
    /// in the editor. It is an error once.
    pub(super) fn out_of_step(
        &self,
        state: MutexGuard<State>,
        uri: &str,
    ) -> Result<(), SessionError> {
        if state.unserved.contains_key(uri) {
            return Ok(());
        }
        let why = if state.documents.contains_key(uri) { OUT_OF_STEP } else { NEVER_OPENED };
        drop(state);
        self.stop_serving(uri, why);
        Err(self.state.lock().not_open(uri))
    }
}

impl State {
    /// Notes that a document is not served, and why.
    fn note_unserved(&mut self, uri: &str, why: &str) {
        if self.unserved.len() >= DOCUMENTS {
            self.unserved.clear();
        }
        self.unserved.insert(uri.to_owned(), why.to_owned());
    }

    /// The error of a request or change in a document that is not open here.
    pub(super) fn not_open(&self, uri: &str) -> SessionError {
        match self.unserved.get(uri) {
            Some(why) => SessionError::Unserved { uri: uri.to_owned(), why: why.clone() },
            None => SessionError::NotOpen { uri: uri.to_owned() },
        }
    }
}
