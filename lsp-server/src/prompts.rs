//! The prompts of a session's documents: how each is laid out, kept for as long
//! as it fits, and what other code it shows.

use crate::config::CompletionConfig;
use crate::document::Document;
use crate::privacy::{self, Privacy};
use crate::prompt::{FimPrompt, Layout, Window};
use crate::related::{Place, Related};
use std::collections::HashMap;

#[derive(Default)]
pub struct Prompts {
    layouts: HashMap<String, Layout>,
    related: Related,
}

/// What a prompt may hold.
pub struct Terms<'a> {
    pub window: Window,
    /// Characters of other code; 0: none.
    pub context_chars: usize,
    pub privacy: &'a Privacy,
    /// The setting `privacy.ignore`.
    pub ignore: &'a [String],
}

impl Terms<'_> {
    fn ignores(&self, path: &str, language: &str) -> bool {
        self.privacy.ignores(path, language, self.ignore)
    }
}

pub fn window(config: &CompletionConfig) -> Window {
    Window { prefix_chars: config.prefix_chars, suffix_chars: config.suffix_chars }
}

impl Prompts {
    /// The user is at work in this document.
    pub fn visit(&mut self, document: &Document) {
        self.related.visit(&document.path);
    }

    /// A file that one of them imports.
    pub fn add(&mut self, file: &Document, terms: &Terms) {
        let is_ignored = terms.ignores(&file.path, &file.language);
        self.related.add(file, &|text| !is_ignored && privacy::may_quote(text));
    }

    /// The document was closed; the user may still write what goes with it.
    pub fn close(&mut self, uri: &str, document: &Document, terms: &Terms) {
        self.layouts.remove(uri);
        if terms.context_chars > 0 {
            self.related.look(document, &privacy::may_quote);
        }
    }

    /// The prompt at a cursor in one of the open documents.
    pub fn at(
        &mut self,
        documents: &HashMap<String, Document>,
        uri: &str,
        cursor: usize,
        terms: &Terms,
    ) -> Option<FimPrompt> {
        let Prompts { layouts, related } = self;
        let document = documents.get(uri)?;
        let (text, window) = (&document.text, terms.window);
        let layout = layouts.entry(uri.to_owned());
        let layout = layout.or_insert_with(|| Layout::new(text, cursor, window));
        let prompt = layout.prompt(text, cursor, window);
        let quotes = layout.context().map_or(&[][..], |context| &context.excerpts);
        // The user may have changed their mind since it was chosen.
        let unwanted = quotes.iter().any(|excerpt| terms.ignores(&excerpt.source, ""));
        if unwanted || (terms.context_chars == 0 && !quotes.is_empty()) {
            layout.set_context(None);
        } else if terms.context_chars == 0 || !layout.wants_context() {
            return Some(prompt);
        }
        for document in documents.values() {
            related.look(document, &privacy::may_quote);
        }
        let place = Place { document, cursor, window: layout.shows(text, cursor) };
        let is_ignored = |path: &str, language: &str| terms.ignores(path, language);
        let before = layout.context();
        let context = related.choose(&place, terms.context_chars, &is_ignored, before);
        layout.set_context(context.clone());
        Some(FimPrompt { context, ..prompt })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: &str = "file:///p/a.rs";
    const OTHER: &str = "file:///p/model.rs";

    fn document(path: &str, text: &str) -> Document {
        Document { path: path.into(), language: "rust".into(), version: 1, text: text.into() }
    }

    /// What the prompt in `a.rs` holds of `other`, which was closed before.
    fn quoted(path: &str, other: &str, context_chars: usize) -> Vec<String> {
        let privacy = Privacy::default();
        let window = Window { prefix_chars: 100, suffix_chars: 100 };
        let ignore = ["/p/private/".to_owned()];
        let terms = Terms { window, context_chars, privacy: &privacy, ignore: &ignore };
        let mut prompts = Prompts::default();
        let other = document(path, other);
        prompts.visit(&other);
        prompts.close(OTHER, &other, &terms);
        let text = "fn close(ledger: Ledger) {\n    ledger.post_entry(\n}\n";
        let here = document("/p/a.rs", text);
        prompts.visit(&here);
        let documents = HashMap::from([(HERE.to_owned(), here)]);
        let prompt = prompts.at(&documents, HERE, text.len() - 3, &terms).unwrap();
        let excerpts = prompt.context.iter().flat_map(|context| &context.excerpts);
        excerpts.map(|excerpt| excerpt.source.clone()).collect()
    }

    const MODEL: &str = "impl Ledger { pub fn post_entry(&mut self, entry: Entry) {} }\n";

    #[test]
    fn a_document_that_was_closed_is_still_quoted() {
        assert_eq!(quoted("/p/model.rs", MODEL, 1_000), ["/p/model.rs"]);
        assert!(quoted("/p/model.rs", MODEL, 0).is_empty(), "switched off");
    }

    #[test]
    fn ignored_documents_and_those_with_a_secret_are_not_quoted() {
        assert!(quoted("/p/private/model.rs", MODEL, 1_000).is_empty());
        assert!(quoted("/p/.env", MODEL, 1_000).is_empty());
        let secret = format!("{MODEL}let password = \"{}\";\n", ["hun", "ter2!", "Xy9"].concat());
        assert!(quoted("/p/model.rs", &secret, 1_000).is_empty());
    }
}
