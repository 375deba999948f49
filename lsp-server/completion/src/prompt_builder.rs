//! Builds the prompts of a session's documents. It keeps the layout of each document for as long as
//! it fits, and chooses the other code that a prompt shows.

use crate::document::{Document, Edit, Source};
use crate::prompt::{Excerpt, FimPrompt, PromptContext, PromptLayout, Window};
use crate::recent_edits::RecentEdits;
use crate::related_code::{DOCUMENT_CHARS, PromptLocation, RelatedCode};
use ropey::{Rope, RopeSlice};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// Divisor of `context_chars` for the user's latest changes: they may take this part of it.
const CHANGES_DIVISOR: usize = 4;

/// The most characters of a new file. A longer text shows its language by itself.
const HEADER_CHARS: usize = 500;

#[derive(Default)]
pub struct PromptBuilder {
    layouts: HashMap<String, PromptLayout>,
    related: RelatedCode,
    changes: RecentEdits,
}

/// The rules for what a prompt may quote of other documents. They answer from memory, because they
/// are asked while the session's lock is held.
pub trait QuoteRules {
    /// Returns true if the rules are known for this document. If not, none of it may be quoted so
    /// far.
    fn knows(&self, source: &Source) -> bool;

    /// Returns true if any part of a document may be quoted.
    fn may_quote(&self, source: &Source) -> bool;

    /// Returns true if any part of a document with this text may be quoted.
    fn may_quote_text(&self, text: &str) -> bool;
}

/// The limits of what a prompt may hold.
pub struct PromptLimits<'a> {
    pub window: Window,
    /// The most characters of other code. With 0 a prompt holds none.
    pub context_chars: usize,
    pub rules: &'a dyn QuoteRules,
}

impl PromptBuilder {
    /// Notes that the user works in this document.
    pub fn visit(&mut self, document: &Document) {
        self.related.visit(&document.source());
    }

    /// Notes an edit that turned the text `was` into this document.
    pub fn edit(&mut self, document: &Document, was: Rope, edit: &Edit) {
        self.changes.edit(document, was, edit);
    }

    /// Adds a file that one of the documents imports. The next prompts may quote it, although the
    /// first ones were asked for before the file was read.
    pub fn add(&mut self, file: &Document, limits: &PromptLimits) {
        let rules = limits.rules;
        let may_quote = rules.may_quote(&file.source());
        if may_quote && self.related.add(file, &|text| rules.may_quote_text(text)) {
            self.reconsider();
        }
    }

    /// Returns true if a secret is known to have stood in a document.
    pub fn has_held_secret(&self, path: &str) -> bool {
        self.related.has_held_secret(path)
    }

    /// Every file that prompts quote, or could quote. [`QuoteRules`] are asked about these files
    /// only.
    pub fn sources(&self) -> HashSet<Source> {
        let shown = self.layouts.values().filter_map(PromptLayout::context);
        let shown = shown.flat_map(|context| context.shown()).map(|excerpt| &excerpt.source);
        shown.chain(self.changes.sources()).cloned().chain(self.related.sources()).collect()
    }

    /// Notes that the document was closed. It may still be quoted, because the user may write code
    /// that belongs to it.
    pub fn close(&mut self, uri: &str, document: &Document, limits: &PromptLimits) {
        self.layouts.remove(uri);
        if limits.context_chars > 0 {
            self.related.update(document, &|text| limits.rules.may_quote_text(text));
        }
    }

    /// Has other code chosen again for the next prompts, because there is more to choose from.
    fn reconsider(&mut self) {
        self.layouts.values_mut().for_each(PromptLayout::reconsider_context);
    }

    /// The prompt at a cursor in a text that is likely to come, if it will be laid out as the last
    /// prompt of the document was.
    pub fn ahead(
        &self,
        uri: &str,
        text: &Rope,
        cursor: usize,
        window: Window,
    ) -> Option<FimPrompt> {
        self.layouts.get(uri)?.ahead(text, cursor, window)
    }

    /// The prompt at a cursor in one of the open documents.
    pub fn at(
        &mut self,
        documents: &HashMap<String, Document>,
        uri: &str,
        cursor: usize,
        limits: &PromptLimits,
    ) -> Option<FimPrompt> {
        let PromptBuilder { layouts, related, changes, .. } = self;
        let document = documents.get(uri)?;
        let (text, window, rules) = (&document.text, limits.window, limits.rules);
        let layout = layouts.entry(uri.to_owned());
        let layout = layout.or_insert_with(|| PromptLayout::new(text, cursor, window));
        let prompt = layout.prompt(text, cursor, window);
        // The user may have forbidden a file since the context was chosen.
        let unwanted = layout.context().is_some_and(|context| {
            let is_secret = |excerpt: &Excerpt| related.has_held_secret(&excerpt.source.path);
            context.shown().any(|excerpt| !rules.may_quote(&excerpt.source) || is_secret(excerpt))
        });
        if limits.context_chars == 0 {
            layout.set_context(file_header(document));
            return Some(FimPrompt { context: layout.context().cloned(), ..prompt });
        }
        if unwanted {
            layout.set_context(None);
            layout.reconsider_context();
        }
        if !layout.wants_context() {
            return Some(FimPrompt { context: layout.context().cloned(), ..prompt });
        }
        for document in documents.values() {
            related.update(document, &|text| rules.may_quote_text(text));
        }
        let location = PromptLocation { document, cursor, window: layout.shows(text, cursor) };
        for change in changes.all() {
            if !change.is_permitted(|text| may_quote_document(text, rules)) {
                related.held_secret(&change.source.path);
            }
        }
        let is_ignored = |source: &Source| !rules.may_quote(source);
        // A file may have been read since the rules were asked. The next prompt may quote it.
        let is_late = related.sources().any(|source| !rules.knows(&source))
            || changes.sources().any(|source| !rules.knows(source));
        let before = layout.context();
        let shown = text.slice(location.window.clone()).to_string();
        let changes = recent_changes(changes, related, document, &shown, limits);
        let room = limits.context_chars - characters(&changes);
        let chosen = related.choose(&location, room, &is_ignored, before);
        let context = match chosen {
            None if changes.is_empty() => file_header(document),
            None => Some(Arc::new(changes_alone(changes, &document.path))),
            Some(same) if same.changes == changes => Some(same),
            Some(chosen) => Some(Arc::new(PromptContext { changes, ..(*chosen).clone() })),
        };
        // Whatever chose them: no text is quoted that was not searched.
        let context =
            context.filter(|context| context.texts().all(|text| rules.may_quote_text(&text)));
        layout.set_context(context.clone());
        if is_late {
            layout.reconsider_context();
        }
        Some(FimPrompt { context, ..prompt })
    }
}

/// The name of a new file, in which at most one line has text, without any other code. The name
/// tells the model the language, which the text does not show so far.
fn file_header(document: &Document) -> Option<Arc<PromptContext>> {
    let name = file_name(&document.path);
    let has_text = |line: &RopeSlice| line.chars().any(|c| !c.is_whitespace());
    let is_new = document.text.len_chars() <= HEADER_CHARS
        && document.text.lines().filter(has_text).count() <= 1;
    if !is_new || name.is_empty() {
        return None;
    }
    // A document that was never saved has a name without an ending. The editors' ids of most
    // languages are, or resemble, the ending of their files.
    let has_ending = Path::new(name).extension().is_some();
    let path = if has_ending { name.to_owned() } else { format!("{name}.{}", document.language) };
    Some(Arc::new(PromptContext { path, ..PromptContext::default() }))
}

/// The latest changes that fit into their share and that the window does not show already. The
/// changes of one file stand together, those of the last file next to the cursor.
fn recent_changes(
    changes: &mut RecentEdits,
    related: &RelatedCode,
    here: &Document,
    window: &str,
    limits: &PromptLimits,
) -> Vec<Excerpt> {
    let mut room = limits.context_chars / CHANGES_DIVISOR;
    let mut recent: Vec<Excerpt> = vec![];
    for change in changes.all().rev() {
        let diff = change.diff();
        let path = &change.source.path;
        let is_shown = *path == here.path
            && change.before.is_empty()
            && change.after.iter().all(|line| window.contains(line.as_str()));
        let Some(left) = room.checked_sub(diff.chars().count()) else { continue };
        let may_quote = || {
            limits.rules.may_quote(&change.source)
                && !related.has_held_secret(path)
                && change.is_permitted(|text| may_quote_document(text, limits.rules))
        };
        if is_shown || !may_quote() {
            continue;
        }
        room = left;
        match recent.iter_mut().find(|excerpt| excerpt.source.path == *path) {
            Some(excerpt) => excerpt.text.insert_str(0, &diff),
            None => recent.push(Excerpt {
                source: change.source.clone(),
                path: format!("{}.diff", file_name(path)),
                text: diff,
            }),
        }
    }
    recent.reverse();
    recent
}

/// Decides like [`RelatedCode::update`]: a document with a secret is not quoted.
fn may_quote_document(document: &Rope, rules: &dyn QuoteRules) -> bool {
    document.len_chars() <= DOCUMENT_CHARS && rules.may_quote_text(&document.to_string())
}

fn characters(excerpts: &[Excerpt]) -> usize {
    excerpts.iter().map(|excerpt| excerpt.text.chars().count()).sum()
}

/// A context that holds changes only, for when no other code is worth showing.
fn changes_alone(changes: Vec<Excerpt>, path: &str) -> PromptContext {
    let folder = Path::new(path).parent().map_or("", |folder| folder.to_str().unwrap_or_default());
    PromptContext {
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
    use feedback::secrets;

    const HERE: &str = "file:///p/a.rs";
    const OTHER: &str = "file:///p/model.rs";

    fn document(path: &str, text: &str) -> Document {
        Document { path: path.into(), language: "rust".into(), version: 1, text: text.into() }
    }

    /// The rules of a user who ignores `/p/private/`.
    struct Rules;

    impl QuoteRules for Rules {
        fn knows(&self, _source: &Source) -> bool {
            true
        }

        fn may_quote(&self, source: &Source) -> bool {
            !source.path.starts_with("/p/private/")
        }

        fn may_quote_text(&self, text: &str) -> bool {
            !secrets::holds_secret(text)
        }
    }

    /// The sources that the prompt in `a.rs` quotes after the document at `path` was closed.
    fn quoted(path: &str, other: &str, context_chars: usize) -> Vec<String> {
        let window = Window { prefix_chars: 100, suffix_chars: 100 };
        let limits = PromptLimits { window, context_chars, rules: &Rules };
        let mut prompts = PromptBuilder::default();
        let other = document(path, other);
        prompts.visit(&other);
        prompts.close(OTHER, &other, &limits);
        let text = "fn close(ledger: Ledger) {\n    ledger.post_entry(\n}\n";
        let here = document("/p/a.rs", text);
        prompts.visit(&here);
        let documents = HashMap::from([(HERE.to_owned(), here)]);
        let prompt = prompts.at(&documents, HERE, text.len() - 3, &limits).unwrap();
        let excerpts = prompt.context.iter().flat_map(|context| context.shown());
        excerpts.map(|excerpt| excerpt.source.path.clone()).collect()
    }

    /// The excerpts that a prompt elsewhere shows after the user changed a line at `path`, at the
    /// top of its document.
    fn changed(path: &str, line: &str, context_chars: usize) -> Vec<(String, String)> {
        changed_from("let total = 1;", path, line, context_chars)
    }

    /// The same if that line was this one.
    fn changed_from(
        was: &str,
        path: &str,
        line: &str,
        context_chars: usize,
    ) -> Vec<(String, String)> {
        let window = Window { prefix_chars: 100, suffix_chars: 100 };
        let limits = PromptLimits { window, context_chars, rules: &Rules };
        let mut prompts = PromptBuilder::default();
        let (line, rest) = line.split_once('\n').unwrap_or((line, ""));
        let removed = was.len();
        let was = document(path, &format!("{was}\n{rest}"));
        let now = document(path, &format!("{line}\n{rest}"));
        prompts.edit(&now, was.text, &Edit { start: 0, removed, inserted: line.into() });
        let here = document("/p/a.rs", "fn a() {\n}\n");
        let documents = HashMap::from([(HERE.to_owned(), here)]);
        let prompt = prompts.at(&documents, HERE, 9, &limits).unwrap();
        let shown = prompt.context.iter().flat_map(|context| context.shown());
        shown.map(|excerpt| (excerpt.path.clone(), excerpt.text.clone())).collect()
    }

    #[test]
    fn a_change_in_another_file_is_shown_as_a_diff() {
        let diff = "-let total = 1;\n+let sum = 1;\n";
        assert_eq!(changed("/p/b.rs", "let sum = 1;", 400), [("b.rs.diff".into(), diff.into())]);
        assert!(changed("/p/b.rs", "let sum = 1;", 0).is_empty(), "switched off");
        assert!(changed("/p/b.rs", "let sum = 1;", 4 * diff.len() - 4).is_empty(), "no room");
        assert!(changed("/p/private/b.rs", "let sum = 1;", 400).is_empty());
        let secret = format!("let password = \"{}\";", ["hun", "ter2!", "Xy9"].concat());
        assert!(changed("/p/b.rs", &secret, 400).is_empty());
        let elsewhere = format!("let sum = 1;\n{secret}");
        assert!(changed("/p/b.rs", &elsewhere, 400).is_empty(), "a secret in the document");
        let removed = changed_from(&secret, "/p/b.rs", "let password = load();", 400);
        assert!(removed.is_empty(), "a secret was removed");
    }

    const MODEL: &str = "impl Ledger { pub fn post_entry(&mut self, entry: Entry) {} }\n";

    #[test]
    fn a_closed_document_is_still_quoted() {
        assert_eq!(quoted("/p/model.rs", MODEL, 1_000), ["/p/model.rs"]);
        assert!(quoted("/p/model.rs", MODEL, 0).is_empty(), "switched off");
    }

    #[test]
    fn an_imported_file_that_is_read_after_the_first_prompt_is_quoted_in_the_next() {
        let window = Window { prefix_chars: 100, suffix_chars: 100 };
        let limits = PromptLimits { window, context_chars: 1_000, rules: &Rules };
        let mut prompts = PromptBuilder::default();
        let text = "fn close(ledger: Ledger) {\n    ledger.post_entry(\n}\n";
        let documents = HashMap::from([(HERE.to_owned(), document("/p/a.rs", text))]);
        let quotes = |prompts: &mut PromptBuilder| {
            let prompt = prompts.at(&documents, HERE, text.len() - 3, &limits).unwrap();
            prompt.context.is_some()
        };
        assert!(!quotes(&mut prompts));
        prompts.add(&document("/p/model.rs", MODEL), &limits);
        assert!(quotes(&mut prompts));
    }

    /// The rules of somebody who has not been asked about one file yet.
    struct RulesBefore(&'static str);

    impl QuoteRules for RulesBefore {
        fn knows(&self, source: &Source) -> bool {
            source.path != self.0
        }

        fn may_quote(&self, source: &Source) -> bool {
            self.knows(source)
        }

        fn may_quote_text(&self, _text: &str) -> bool {
            true
        }
    }

    /// Such a file was never quoted, because nothing was chosen again.
    #[test]
    fn a_file_that_is_read_after_the_rules_were_asked_is_quoted_in_the_next_prompt() {
        let window = Window { prefix_chars: 100, suffix_chars: 100 };
        let limits = |rules| PromptLimits { window, context_chars: 1_000, rules };
        let mut prompts = PromptBuilder::default();
        let text = "fn close(ledger: Ledger) {\n    ledger.post_entry(\n}\n";
        let documents = HashMap::from([(HERE.to_owned(), document("/p/a.rs", text))]);
        prompts.add(&document("/p/model.rs", MODEL), &limits(&Rules));
        let quotes = |prompts: &mut PromptBuilder, rules: &dyn QuoteRules| {
            let limits = PromptLimits { rules, ..limits(&Rules) };
            prompts.at(&documents, HERE, text.len() - 3, &limits).unwrap().context.is_some()
        };
        assert!(!quotes(&mut prompts, &RulesBefore("/p/model.rs")));
        assert!(quotes(&mut prompts, &Rules));
    }

    /// The sources include the files the user worked in, the files that were changed, and the files
    /// that a prompt still shows although all else about them is forgotten.
    #[test]
    fn the_sources_are_all_files_that_a_prompt_may_quote() {
        let window = Window { prefix_chars: 100, suffix_chars: 100 };
        let limits = PromptLimits { window, context_chars: 1_000, rules: &Rules };
        let mut prompts = PromptBuilder::default();
        let model = document("/p/model.rs", MODEL);
        prompts.visit(&model);
        prompts.close(OTHER, &model, &limits);
        let text = "fn close(ledger: Ledger) {\n    ledger.post_entry(\n}\n";
        let documents = HashMap::from([(HERE.to_owned(), document("/p/a.rs", text))]);
        prompts.at(&documents, HERE, text.len() - 3, &limits).unwrap();
        prompts.related = RelatedCode::default();
        let now = document("/p/b.rs", "let sum = 1;\n");
        let edit = Edit { start: 0, removed: 12, inserted: "let sum = 1;".into() };
        prompts.edit(&now, "let one = 1;\n".into(), &edit);
        prompts.visit(&document("/p/c.rs", ""));
        let expected = ["/p/model.rs", "/p/b.rs", "/p/c.rs"].map(str::to_owned);
        let sources: HashSet<String> =
            prompts.sources().into_iter().map(|source| source.path).collect();
        assert_eq!(sources, expected.into());
    }

    #[test]
    fn the_model_is_told_the_name_of_a_new_file() {
        let header = |path: &str, text: &str| {
            let document = document(path, text);
            file_header(&document).map(|context| context.path.clone())
        };
        assert_eq!(header("/home/me/app/fresh.py", "import ").as_deref(), Some("fresh.py"));
        assert_eq!(header("untitled:Untitled-1", "").as_deref(), Some("untitled:Untitled-1.rust"));
        assert_eq!(header("/p/a.rs", "\n\nuse "), Some("a.rs".into()));
        assert_eq!(header("/p/a.rs", "mod a;\nuse "), None, "the text shows its language");
        assert_eq!(header("/p/a.rs", &"x ".repeat(HEADER_CHARS)), None);
    }

    #[test]
    fn ignored_documents_and_documents_with_a_secret_are_not_quoted() {
        assert!(quoted("/p/private/model.rs", MODEL, 1_000).is_empty());
        let secret = format!("{MODEL}let password = \"{}\";\n", ["hun", "ter2!", "Xy9"].concat());
        assert!(quoted("/p/model.rs", &secret, 1_000).is_empty());
    }
}
