//! The finder of one session: the history of its edits, and the texts that are searched. Only the
//! thread of a search has it, so it may take its time.

use super::inbox::News;
use aho_corasick::AhoCorasick;
use next_edit::model::{Changed, Rejected, Shown};
use next_edit::{
    By, Edit, File, Language, NextEdit, NextEdits, Nothing, Query, Rule, RuleKind, Unit,
};
use privacy::may_tell;
use ropey::Rope;
use std::collections::{HashMap, HashSet};

/// The places that one search in an unopened file looks for, those of the open files among them.
const PLACES_MAX: usize = 64;

/// The latest changes that are looked at for a model.
const LATEST_MAX: usize = 12;

/// An open document, as it is when a search begins.
pub struct OpenDocument {
    pub uri: String,
    pub language: String,
    pub text: Rope,
}

#[derive(Default)]
pub struct Finder {
    edits: NextEdits,
    /// The documents in which something was changed near a secret. A model is shown no change of
    /// theirs elsewhere: one line of a key does not look like a part of it.
    held_secret: HashSet<String>,
    /// The edits of a model that the user did not want.
    rejected: Rejected,
    /// The changes that a model is shown.
    shown: Shown,
    /// The text of each document as one string, as long as the document stays as it is.
    texts: HashMap<String, (Rope, String)>,
}

impl Finder {
    /// Hears what happened since the last search. Changes of files that `is_private` is true of
    /// teach nothing, because what is written there must not turn up elsewhere.
    pub fn hear(&mut self, news: Vec<News>, is_private: impl Fn(&str, &str) -> bool) {
        for news in news {
            match news {
                News::Changed { uri, path, language, was, edits } => {
                    if !is_private(&path, &language) {
                        if edits.iter().any(|edit| !may_tell(&was, edit.start)) {
                            self.held_secret.insert(uri.clone());
                        }
                        let edits: Vec<Edit> = edits.into_iter().map(edit).collect();
                        let language = Language::named(&language);
                        self.edits.change(&uri, language, &was, &edits, By::Person);
                    }
                }
                News::Settle => self.edits.settle(),
                News::Right(edit) if edit.kind == RuleKind::Model => {}
                News::Wrong(edit) if edit.kind == RuleKind::Model => self.rejected.note(&edit),
                News::Right(edit) => self.edits.taken(&edit),
                News::Wrong(edit) => self.edits.rejected(&edit),
            }
        }
    }

    /// The latest changes, the oldest first, of which a model is shown some.
    pub fn latest(&self) -> Vec<Unit> {
        self.edits.history().latest(LATEST_MAX)
    }

    /// The changes that an edit repeats, each with the line at which it stands now.
    pub fn examples(&self, edit: &NextEdit) -> Vec<(Unit, usize)> {
        self.edits.examples(edit.rule)
    }

    /// Returns true if a secret is known to have stood in a document.
    pub fn has_held_secret(&self, uri: &str) -> bool {
        self.held_secret.contains(uri)
    }

    pub fn rejected(&self) -> &Rejected {
        &self.rejected
    }

    /// Returns which of these changes a model is shown.
    pub fn shown(&mut self, changes: &[Changed]) -> Shown {
        self.shown = self.shown.after(changes);
        self.shown
    }

    /// Returns where the user may want to continue, the likeliest place first, or why nowhere.
    /// `documents` is called only if there is something to search for; the document with the cursor
    /// comes first, and the number is the cursor's character in it.
    pub fn find(
        &mut self,
        count: usize,
        documents: impl FnOnce() -> (Vec<OpenDocument>, usize),
    ) -> Result<Vec<NextEdit>, Nothing> {
        let (rules, rename) = (self.edits.rules(), self.edits.rename());
        if let (Err(nothing), None) = (&rules, &rename) {
            return Err(*nothing);
        }
        let (documents, cursor) = documents();
        let Some(first) = documents.first() else { return Err(Nothing::NoPlace) };
        let cursor = first.text.char_to_byte(cursor.min(first.text.len_chars()));
        self.read(&documents);
        let files = self.files(&documents);
        let query = Query { files: &files, cursor, count };
        let found = rules.and_then(|rules| self.edits.find_for(&rules, &query));
        let uses = || self.edits.find_uses(&rename?, &query);
        found.or_else(|nothing| uses().ok_or(nothing))
    }

    /// The first place in files that are not open, by the rules that may be looked for there: the
    /// file and the line. `documents` are the open ones.
    pub fn find_unopened(
        &mut self,
        documents: &[OpenDocument],
        unopened: impl Iterator<Item = (String, String)>,
    ) -> Option<(String, usize)> {
        let first = documents.first()?;
        let language = Language::named(&first.language);
        let mut rules = self.edits.rules().ok()?;
        rules.retain(Rule::is_firm);
        let needles = AhoCorasick::new(rules.iter().flat_map(Rule::needles)).ok()?;
        if needles.patterns_len() == 0 {
            return None;
        }
        self.read(documents);
        let open = self.files(documents);
        unopened.filter(|(_, text)| needles.is_match(text)).find_map(|(name, text)| {
            let one = File { name: &name, text: &text, language };
            let files: Vec<File> = open.iter().copied().chain([one]).collect();
            // The user has been at all places of the open files, or does not want them.
            let query = Query { files: &files, cursor: 0, count: PLACES_MAX };
            let found = self.edits.find_for(&rules, &query).ok()?;
            let edit = found.into_iter().find(|edit| *edit.file == *name)?;
            Some((name.clone(), edit.line))
        })
    }

    /// The documents that were read, in the same order.
    fn files(&self, documents: &[OpenDocument]) -> Vec<File<'_>> {
        let file = |document: &OpenDocument| {
            let (name, text) = self.texts.get_key_value(&document.uri)?;
            Some(File { name, text: &text.1, language: Language::named(&document.language) })
        };
        documents.iter().filter_map(file).collect()
    }

    fn read(&mut self, documents: &[OpenDocument]) {
        self.texts.retain(|uri, _| documents.iter().any(|document| document.uri == *uri));
        for OpenDocument { uri, text, .. } in documents {
            let is_known = self.texts.get(uri).is_some_and(|(known, _)| known.is_instance(text));
            if !is_known {
                self.texts.insert(uri.clone(), (text.clone(), text.to_string()));
            }
        }
    }
}

fn edit(edit: completion::document::Edit) -> Edit {
    Edit { start: edit.start, removed: edit.removed, inserted: edit.inserted }
}
