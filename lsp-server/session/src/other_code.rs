//! The other code that a prompt may show. The files that it comes from are held to the rules, which
//! takes time and waits for the disk, so it happens while the session's lock is free.

use super::State;
use completion::document::{Document, Source};
use completion::prompt_builder::PromptLimits;
use privacy::QuotableFiles;
use services::Services;
use services::settings::Current;
use settings::Config;
use std::collections::HashSet;

/// Returns the rules for prompts that may quote these sources.
pub fn quotable(services: &Services, sources: HashSet<Source>, config: &Current) -> QuotableFiles {
    if sources.is_empty() {
        return QuotableFiles::default();
    }
    services.privacy.quotable(sources, &config.not_stored)
}

pub fn limits<'a>(
    services: &Services,
    config: &Config,
    rules: &'a QuotableFiles,
) -> PromptLimits<'a> {
    PromptLimits {
        window: config.lab.window(),
        context_chars: context_chars(services, config),
        rules,
    }
}

/// Returns the number of characters of other code that a prompt may hold.
pub fn context_chars(services: &Services, config: &Config) -> usize {
    if !services.engine.info().reads_files {
        return 0;
    }
    let chosen = || services.context_budget.chars();
    config.completion.context_chars.unwrap_or_else(chosen)
}

impl State {
    /// Returns the sources that prompts in a document may quote, if the rules allow it.
    pub(super) fn sources(
        &self,
        services: &Services,
        uri: &str,
        config: &Config,
    ) -> HashSet<Source> {
        if context_chars(services, config) == 0 {
            return HashSet::new();
        }
        let mut sources = self.prompts.sources();
        // The prompt may quote other parts of the document itself.
        sources.extend(self.documents.get(uri).map(Document::source));
        sources
    }
}
