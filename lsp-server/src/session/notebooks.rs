//! Notebooks: documents that are made of documents.
//!
//! An editor opens, changes and closes every cell as a document of its own. A prompt reads all
//! cells of one language as one text, in their order, because the code of a cell uses what the
//! cells above define. So a cell's prompt stays valid while another one below it changes.

use super::prompt_names::named_for_model;
use super::{Session, State};
use crate::privacy::QuotableFiles;
use completion::document::{Document, Edit};
use completion::prompt::FimPrompt;
use completion::prompt_builder::{PromptBuilder, PromptLimits};
use ropey::Rope;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The open notebooks by their addresses, and their cells in their order.
#[derive(Default)]
pub struct Notebooks {
    cells: HashMap<String, Vec<Cell>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    pub uri: String,
    pub is_code: bool,
}

/// The cells of a notebook that have the language and the kind of one of them, as one document.
pub(super) struct Joined {
    /// What the document is known by beside those of the editor. No address has a blank.
    pub(super) key: String,
    pub(super) document: Document,
    /// The start of that one cell, in characters.
    pub(super) start: usize,
}

impl Notebooks {
    pub fn is_cell(&self, uri: &str) -> bool {
        self.notebook_of(uri).is_some()
    }

    fn notebook_of(&self, uri: &str) -> Option<(&String, &Vec<Cell>)> {
        self.cells.iter().find(|(_, cells)| cells.iter().any(|cell| cell.uri == uri))
    }

    /// The text that a prompt reads around a cell, and the place of this cursor in it.
    pub fn around(
        &self,
        documents: &HashMap<String, Document>,
        uri: &str,
        cursor: usize,
    ) -> Option<(Rope, usize)> {
        let joined = self.joined(documents, uri)?;
        Some((joined.document.text, joined.start + cursor))
    }

    pub(super) fn joined(
        &self,
        documents: &HashMap<String, Document>,
        uri: &str,
    ) -> Option<Joined> {
        let (notebook, cells) = self.notebook_of(uri)?;
        let this = documents.get(uri)?;
        let is_code = cells.iter().any(|cell| cell.uri == uri && cell.is_code);
        let (mut text, mut start) = (Rope::new(), 0);
        for cell in cells.iter().filter(|cell| cell.is_code == is_code) {
            let Some(document) = documents.get(&cell.uri) else { continue };
            if document.language != this.language {
                continue;
            }
            if text.len_chars() > 0 {
                // A blank line stands between two cells.
                let ends_line = text.char(text.len_chars() - 1) == '\n';
                text.append(Rope::from_str(if ends_line { "\n" } else { "\n\n" }));
            }
            if cell.uri == uri {
                start = text.len_chars();
            }
            text.append(document.text.clone());
        }
        let key = format!("{notebook} {} {is_code}", this.language);
        Some(Joined { key, document: Document { text, ..this.clone() }, start })
    }

    /// The notebook in which this cell lies, joined for it; each other one, joined for its first
    /// cell of code.
    fn all_joined(&self, documents: &HashMap<String, Document>, uri: &str) -> Vec<Joined> {
        let joined = self.cells.values().filter_map(|cells| {
            let this = cells.iter().find(|cell| cell.uri == uri);
            let cell = this.or_else(|| cells.iter().find(|cell| cell.is_code));
            self.joined(documents, &cell.or(cells.first())?.uri)
        });
        joined.collect()
    }

    /// The documents with each notebook in place of its cells.
    fn in_place_of_cells<'a>(
        &self,
        documents: &'a HashMap<String, Document>,
        uri: &str,
    ) -> Cow<'a, HashMap<String, Document>> {
        if self.cells.is_empty() {
            return Cow::Borrowed(documents);
        }
        let cells: HashSet<&String> = self.cells.values().flatten().map(|cell| &cell.uri).collect();
        let others = documents.iter().filter(|(uri, _)| !cells.contains(uri));
        let others = others.map(|(uri, document)| (uri.clone(), document.clone()));
        let joined = self.all_joined(documents, uri).into_iter();
        Cow::Owned(others.chain(joined.map(|joined| (joined.key, joined.document))).collect())
    }

    /// Tells of an edit that was just made in a document whose text was `was` before.
    pub fn note_edit(
        &self,
        prompts: &mut PromptBuilder,
        documents: &HashMap<String, Document>,
        uri: &str,
        was: Rope,
        edit: &Edit,
    ) {
        let Some(document) = documents.get(uri) else { return };
        let Some(Joined { document: joined, start, .. }) = self.joined(documents, uri) else {
            return prompts.edit(document, was, edit);
        };
        let mut joined_was = joined.text.clone();
        joined_was.remove(start..start + document.text.len_chars());
        joined_was.insert(start, &was.to_string());
        let edit = Edit { start: start + edit.start, ..edit.clone() };
        prompts.edit(&joined, joined_was, &edit);
    }
}

impl State {
    /// The prompt at a cursor. In a cell it holds the cells above and below it.
    pub(super) fn prompt(
        &mut self,
        uri: &str,
        cursor: usize,
        limits: &PromptLimits,
    ) -> Option<FimPrompt> {
        let State { notebooks, documents, prompts, .. } = self;
        let joined = notebooks.joined(documents, uri);
        let documents = notebooks.in_place_of_cells(documents, uri);
        let (key, start) = match &joined {
            Some(joined) => (joined.key.as_str(), joined.start),
            None => (uri, 0),
        };
        let prompt = prompts.at(&documents, key, start + cursor, limits)?;
        let document = documents.get(key)?;
        let context = prompt.context.map(|context| named_for_model(context, document));
        Some(FimPrompt { context, ..prompt })
    }
}

impl Session {
    /// The editor has opened a notebook. It opens the documents of the cells afterwards.
    pub fn open_notebook(&self, uri: String, cells: Vec<Cell>) {
        self.state.lock().notebooks.cells.insert(uri, cells);
    }

    /// Cells were put in, taken out or moved.
    pub fn splice_cells(&self, notebook: &str, start: usize, removed: usize, added: Vec<Cell>) {
        if let Some(cells) = self.state.lock().notebooks.cells.get_mut(notebook) {
            let start = start.min(cells.len());
            let end = start.saturating_add(removed).min(cells.len());
            cells.splice(start..end, added);
        }
    }

    /// Cells have become code or text.
    pub fn change_cells(&self, notebook: &str, changed: Vec<Cell>) {
        if let Some(cells) = self.state.lock().notebooks.cells.get_mut(notebook) {
            for changed in changed {
                if let Some(cell) = cells.iter_mut().find(|cell| cell.uri == changed.uri) {
                    *cell = changed;
                }
            }
        }
    }

    /// Closes a notebook and all of its cells.
    pub fn close_notebook(&self, notebook: &str) {
        let cells = {
            let config = self.services.settings.current();
            let mut guard = self.state.lock();
            let State { notebooks, documents, prompts, .. } = &mut *guard;
            let Some(cells) = notebooks.cells.get(notebook).cloned() else { return };
            let rules = QuotableFiles::default();
            let limits = self.limits(&config, &rules);
            for cell in cells.iter().rev() {
                if let Some(Joined { key, document, .. }) = notebooks.joined(documents, &cell.uri) {
                    prompts.close(&key, &document, &limits);
                }
            }
            cells
        };
        cells.iter().for_each(|cell| self.close(&cell.uri));
        self.state.lock().notebooks.cells.remove(notebook);
    }

    /// The cells of a notebook, or the document itself.
    pub(super) fn documents_of(&self, uri: &str) -> Vec<String> {
        match self.state.lock().notebooks.cells.get(uri) {
            Some(cells) => cells.iter().map(|cell| cell.uri.clone()).collect(),
            None => vec![uri.to_owned()],
        }
    }
}
