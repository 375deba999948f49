//! The other code that a prompt may show. The files that it comes from are held to the rules, which
//! takes time and waits for the disk, so it happens before the lock on the state is taken.

use super::Session;
use crate::privacy::QuotableFiles;
use crate::services::settings::Current;
use completion::document::Document;

impl Session {
    /// Returns the rules for what prompts in a document may quote.
    pub(super) fn quotable(&self, uri: &str, config: &Current) -> QuotableFiles {
        if self.context_chars(config) == 0 {
            return QuotableFiles::default();
        }
        let sources = {
            let state = self.state.lock();
            let mut sources = state.prompts.sources();
            // The prompt may quote other parts of the document itself.
            sources.extend(state.documents.get(uri).map(Document::source));
            sources
        };
        self.services.privacy.quotable(sources, &config.not_stored)
    }
}
