//! Documents that cannot be served, because a message about them was lost or contradicts what is
//! known of them. Offers in a text that the editor does not show would be wrong, so there are none.

use super::{SessionError, State, Turn};

/// Why a document is not served that the editor did not open, or whose opening was lost.
pub const NEVER_OPENED: &str = "was never opened here; open the file again";

const OUT_OF_STEP: &str = "a change begins past the end of the document, so editor and server are \
                           out of step: close and open the file again";

/// The most documents whose reason is remembered.
const DOCUMENTS: usize = 1024;

impl State {
    pub(super) fn stop_serving(&mut self, turn: &mut Turn, uri: &str, why: &str) -> bool {
        let mut is_news = false;
        for document in self.notebooks.documents_of(uri) {
            is_news |= !self.unserved.contains_key(&document);
            self.close(turn, &document);
            self.note_unserved(&document, why);
        }
        // Its cells are not known any more.
        self.notebooks.remove(uri);
        is_news
    }

    /// What a change of a document is answered that is not open, or that has another text here than
    /// in the editor. It is an error once.
    pub(super) fn out_of_step(&mut self, turn: &mut Turn, uri: &str) -> Result<(), SessionError> {
        if self.unserved.contains_key(uri) {
            return Ok(());
        }
        let why = if self.documents.contains_key(uri) { OUT_OF_STEP } else { NEVER_OPENED };
        self.stop_serving(turn, uri, why);
        Err(self.not_open(uri))
    }

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
