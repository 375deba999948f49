//! The prompts of a session's documents: how each is laid out, kept for as long
//! as it fits, and what other code it shows.

use crate::changes::Changes;
use crate::config::CompletionConfig;
use crate::document::{Document, Edit};
use crate::prompt::{Context, Excerpt, FimPrompt, Layout, Window};
use crate::related::{DOCUMENT_CHARS, Place, Related};
use ropey::Rope;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// Share of `context_chars` that the user's latest changes may take.
const CHANGES_SHARE: usize = 4;

#[derive(Default)]
pub struct Prompts {
    layouts: HashMap<String, Layout>,
    related: Related,
    changes: Changes,
}

/// What a prompt may quote of other documents. The answers come from memory: they are asked
/// for with the session's lock held.
pub trait QuoteRules {
    /// Whether any of a file may be quoted, by its path or URI and its language.
    fn may_quote_file(&self, path: &str, language: &str) -> bool;

    /// Whether any of a document with this text may be quoted.
    fn may_quote_text(&self, text: &str) -> bool;
}

/// What a prompt may hold.
pub struct Terms<'a> {
    pub window: Window,
    /// Characters of other code; 0: none.
    pub context_chars: usize,
    pub rules: &'a dyn QuoteRules,
}

pub fn window(config: &CompletionConfig) -> Window {
    Window { prefix_chars: config.prefix_chars, suffix_chars: config.suffix_chars }
}

impl Prompts {
    /// The user is at work in this document.
    pub fn visit(&mut self, document: &Document) {
        self.related.visit(&document.path);
    }

    /// An edit has made the document of the text `was`.
    pub fn edit(&mut self, document: &Document, was: Rope, edit: &Edit) {
        self.changes.edit(document, was, edit);
    }

    /// A file that one of them imports.
    pub fn add(&mut self, file: &Document, terms: &Terms) {
        let rules = terms.rules;
        let may_quote = rules.may_quote_file(&file.path, &file.language);
        self.related.add(file, &|text| may_quote && rules.may_quote_text(text));
    }

    /// Every file of which prompts quote something, or could: [`QuoteRules`] are asked about
    /// these and no others.
    pub fn sources(&self) -> HashSet<String> {
        let shown = self.layouts.values().filter_map(Layout::context);
        let shown = shown.flat_map(|context| context.shown()).map(|excerpt| &*excerpt.source);
        let sources = shown.chain(self.related.paths()).chain(self.changes.paths());
        sources.map(str::to_owned).collect()
    }

    /// The document was closed; the user may still write what goes with it.
    pub fn close(&mut self, uri: &str, document: &Document, terms: &Terms) {
        self.layouts.remove(uri);
        if terms.context_chars > 0 {
            self.related.look(document, &|text| terms.rules.may_quote_text(text));
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
        let Prompts { layouts, related, changes } = self;
        let document = documents.get(uri)?;
        let (text, window, rules) = (&document.text, terms.window, terms.rules);
        let layout = layouts.entry(uri.to_owned());
        let layout = layout.or_insert_with(|| Layout::new(text, cursor, window));
        let prompt = layout.prompt(text, cursor, window);
        // The user may have changed their mind since it was chosen.
        let unwanted = layout.context().is_some_and(|context| {
            terms.context_chars == 0
                || context.shown().any(|excerpt| !rules.may_quote_file(&excerpt.source, ""))
        });
        if unwanted {
            layout.set_context(None);
        } else if terms.context_chars == 0 || !layout.wants_context() {
            return Some(prompt);
        }
        for document in documents.values() {
            related.look(document, &|text| rules.may_quote_text(text));
        }
        let place = Place { document, cursor, window: layout.shows(text, cursor) };
        let is_ignored = |path: &str, language: &str| !rules.may_quote_file(path, language);
        let before = layout.context();
        let shown = text.slice(place.window.clone()).to_string();
        let changes = recent(changes, document, &shown, terms);
        let room = terms.context_chars - characters(&changes);
        let context = match related.choose(&place, room, &is_ignored, before) {
            None if changes.is_empty() => None,
            None => Some(Arc::new(alone(changes, &document.path))),
            Some(same) if same.changes == changes => Some(same),
            Some(chosen) => Some(Arc::new(Context { changes, ..(*chosen).clone() })),
        };
        layout.set_context(context.clone());
        Some(FimPrompt { context, ..prompt })
    }
}

/// The latest changes that find room and that the window does not show as they are,
/// a file's together, the last file's next to the cursor.
fn recent(changes: &mut Changes, here: &Document, window: &str, terms: &Terms) -> Vec<Excerpt> {
    let mut room = terms.context_chars / CHANGES_SHARE;
    let mut recent: Vec<Excerpt> = vec![];
    for change in changes.all().rev() {
        let diff = change.diff();
        let is_shown = change.path == here.path
            && change.before.is_empty()
            && change.after.iter().all(|line| window.contains(line.as_str()));
        let Some(left) = room.checked_sub(diff.chars().count()) else { continue };
        let may_quote = || {
            terms.rules.may_quote_file(&change.path, "")
                && may_quote_document(&change.document, terms.rules)
        };
        if is_shown || !may_quote() {
            continue;
        }
        room = left;
        match recent.iter_mut().find(|excerpt| excerpt.source == change.path) {
            Some(excerpt) => excerpt.text.insert_str(0, &diff),
            None => recent.push(Excerpt {
                source: change.path.clone(),
                path: format!("{}.diff", file_name(&change.path)),
                text: diff,
            }),
        }
    }
    recent.reverse();
    recent
}

/// As [`Related::look`] decides it: a document with a secret is not quoted.
fn may_quote_document(document: &Rope, rules: &dyn QuoteRules) -> bool {
    document.len_chars() <= DOCUMENT_CHARS && rules.may_quote_text(&document.to_string())
}

fn characters(excerpts: &[Excerpt]) -> usize {
    excerpts.iter().map(|excerpt| excerpt.text.chars().count()).sum()
}

/// Changes where nothing else is worth showing.
fn alone(changes: Vec<Excerpt>, path: &str) -> Context {
    let folder = Path::new(path).parent().map_or("", |folder| folder.to_str().unwrap_or_default());
    Context {
        repository: file_name(folder).to_owned(),
        excerpts: vec![],
        changes,
        path: file_name(path).to_owned(),
    }
}

fn file_name(path: &str) -> &str {
    Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::{Privacy, QuotableFiles};

    const HERE: &str = "file:///p/a.rs";
    const OTHER: &str = "file:///p/model.rs";

    fn document(path: &str, text: &str) -> Document {
        Document { path: path.into(), language: "rust".into(), version: 1, text: text.into() }
    }

    /// The rules of a user who ignores `/p/private/`.
    fn rules(path: &str) -> QuotableFiles {
        let paths = [path.to_owned(), "/p/a.rs".to_owned()].into();
        Privacy::default().quotable(paths, &["/p/private/".to_owned()])
    }

    /// What the prompt in `a.rs` holds of `other`, which was closed before.
    fn quoted(path: &str, other: &str, context_chars: usize) -> Vec<String> {
        let rules = rules(path);
        let window = Window { prefix_chars: 100, suffix_chars: 100 };
        let terms = Terms { window, context_chars, rules: &rules };
        let mut prompts = Prompts::default();
        let other = document(path, other);
        prompts.visit(&other);
        prompts.close(OTHER, &other, &terms);
        let text = "fn close(ledger: Ledger) {\n    ledger.post_entry(\n}\n";
        let here = document("/p/a.rs", text);
        prompts.visit(&here);
        let documents = HashMap::from([(HERE.to_owned(), here)]);
        let prompt = prompts.at(&documents, HERE, text.len() - 3, &terms).unwrap();
        let excerpts = prompt.context.iter().flat_map(|context| context.shown());
        excerpts.map(|excerpt| excerpt.source.clone()).collect()
    }

    /// What a prompt elsewhere shows of a line that the user changed at `path`, at the
    /// top of its document.
    fn changed(path: &str, line: &str, context_chars: usize) -> Vec<(String, String)> {
        let rules = rules(path);
        let window = Window { prefix_chars: 100, suffix_chars: 100 };
        let terms = Terms { window, context_chars, rules: &rules };
        let mut prompts = Prompts::default();
        let (line, rest) = line.split_once('\n').unwrap_or((line, ""));
        let was = document(path, &format!("let total = 1;\n{rest}"));
        let now = document(path, &format!("{line}\n{rest}"));
        let removed = "let total = 1;".len();
        prompts.edit(&now, was.text, &Edit { start: 0, removed, inserted: line.into() });
        let here = document("/p/a.rs", "fn a() {\n}\n");
        let documents = HashMap::from([(HERE.to_owned(), here)]);
        let prompt = prompts.at(&documents, HERE, 9, &terms).unwrap();
        let shown = prompt.context.iter().flat_map(|context| context.shown());
        shown.map(|excerpt| (excerpt.path.clone(), excerpt.text.clone())).collect()
    }

    #[test]
    fn what_was_changed_elsewhere_is_shown_as_a_diff() {
        let diff = "-let total = 1;\n+let sum = 1;\n";
        assert_eq!(changed("/p/b.rs", "let sum = 1;", 400), [("b.rs.diff".into(), diff.into())]);
        assert!(changed("/p/b.rs", "let sum = 1;", 0).is_empty(), "switched off");
        assert!(changed("/p/b.rs", "let sum = 1;", 4 * diff.len() - 4).is_empty(), "no room");
        assert!(changed("/p/private/b.rs", "let sum = 1;", 400).is_empty());
        let secret = format!("let password = \"{}\";", ["hun", "ter2!", "Xy9"].concat());
        assert!(changed("/p/b.rs", &secret, 400).is_empty());
        let elsewhere = format!("let sum = 1;\n{secret}");
        assert!(changed("/p/b.rs", &elsewhere, 400).is_empty(), "a secret in the document");
    }

    const MODEL: &str = "impl Ledger { pub fn post_entry(&mut self, entry: Entry) {} }\n";

    #[test]
    fn a_document_that_was_closed_is_still_quoted() {
        assert_eq!(quoted("/p/model.rs", MODEL, 1_000), ["/p/model.rs"]);
        assert!(quoted("/p/model.rs", MODEL, 0).is_empty(), "switched off");
    }

    /// A decision is made of every file that a prompt may quote: of those the user was at,
    /// of those that were changed, and of those that a prompt shows though all else about
    /// them is forgotten.
    #[test]
    fn the_sources_are_all_that_a_prompt_may_quote() {
        let allowed = rules("/p/model.rs");
        let window = Window { prefix_chars: 100, suffix_chars: 100 };
        let terms = Terms { window, context_chars: 1_000, rules: &allowed };
        let mut prompts = Prompts::default();
        let model = document("/p/model.rs", MODEL);
        prompts.visit(&model);
        prompts.close(OTHER, &model, &terms);
        let text = "fn close(ledger: Ledger) {\n    ledger.post_entry(\n}\n";
        let documents = HashMap::from([(HERE.to_owned(), document("/p/a.rs", text))]);
        prompts.at(&documents, HERE, text.len() - 3, &terms).unwrap();
        prompts.related = Related::default();
        let now = document("/p/b.rs", "let sum = 1;\n");
        let edit = Edit { start: 0, removed: 12, inserted: "let sum = 1;".into() };
        prompts.edit(&now, "let one = 1;\n".into(), &edit);
        prompts.visit(&document("/p/c.rs", ""));
        let expected = ["/p/model.rs", "/p/b.rs", "/p/c.rs"].map(str::to_owned);
        assert_eq!(prompts.sources(), expected.into());
    }

    #[test]
    fn ignored_documents_and_those_with_a_secret_are_not_quoted() {
        assert!(quoted("/p/private/model.rs", MODEL, 1_000).is_empty());
        assert!(quoted("/p/.env", MODEL, 1_000).is_empty());
        let secret = format!("{MODEL}let password = \"{}\";\n", ["hun", "ter2!", "Xy9"].concat());
        assert!(quoted("/p/model.rs", &secret, 1_000).is_empty());
    }
}
