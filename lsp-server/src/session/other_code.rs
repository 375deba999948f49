//! The other code that a prompt may show. The files that it comes from are held to the rules, which
//! takes time and waits for the disk, so it happens before the lock on the state is taken.

use super::Session;
use crate::privacy::QuotableFiles;
use crate::services::settings::Current;
use completion::prompt_builder::OtherCode;

/// What prompts at one place may show.
#[derive(Default)]
pub(super) struct Quotable {
    pub rules: QuotableFiles,
    code: OtherCode,
}

impl Quotable {
    pub fn by(rules: QuotableFiles) -> Quotable {
        Quotable { rules, code: OtherCode::default() }
    }

    pub fn code(&self) -> OtherCode {
        self.code
    }
}

impl Session {
    /// Returns what prompts in a document may show.
    pub(super) fn look_around(&self, uri: &str, config: &Current) -> Quotable {
        if self.context_chars(config) == 0 {
            return Quotable::default();
        }
        let code =
            if config.lab.chunk_ring { OtherCode::Ring } else { OtherCode::OfDocuments };
        let paths = {
            let state = self.state.lock();
            let mut paths = state.prompts.sources();
            // The prompt may quote other parts of the document itself.
            paths.extend(state.documents.get(uri).map(|document| document.path.clone()));
            paths
        };
        Quotable { code, rules: self.services.privacy.quotable(paths, &config.not_stored) }
    }
}
