//! The other code that a prompt may show. The files that it comes from are held to the rules, which
//! takes time and waits for the disk, so it happens before the lock on the state is taken.

use super::Session;
use crate::privacy::QuotableFiles;
use crate::services::settings::Current;

impl Session {
    /// Returns the rules for what prompts in a document may quote.
    pub(super) fn quotable(&self, uri: &str, config: &Current) -> QuotableFiles {
        if self.context_chars(config) == 0 {
            return QuotableFiles::default();
        }
        let paths = {
            let state = self.state.lock();
            let mut paths = state.prompts.sources();
            // The prompt may quote other parts of the document itself.
            paths.extend(state.documents.get(uri).map(|document| document.path.clone()));
            paths
        };
        self.services.privacy.quotable(paths, &config.not_stored)
    }
}
