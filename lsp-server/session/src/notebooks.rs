//! Notebooks: documents that are made of documents.
//!
//! An editor opens, changes and closes every cell as a document of its own. A prompt reads all
//! cells of one language as one text, in their order, because the code of a cell uses what the
//! cells above define. So a cell's prompt stays valid while another one below it changes.

use super::prompt_names::named_for_model;
use super::{State, Turn};
use crate::other_code::limits;
use completion::document::{Document, Edit};
use completion::prompt::FimPrompt;
use completion::prompt_builder::{PromptBuilder, PromptLimits};
use host::addresses;
use privacy::QuotableFiles;
use ropey::Rope;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The open notebooks by their addresses, and their cells in their order.
#[derive(Default)]
pub struct Notebooks {
    cells: HashMap<String, Vec<Cell>>,
    /// The notebook of each cell.
    of_cell: HashMap<String, String>,
    #[cfg(test)]
    pub(super) joins: std::cell::Cell<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    pub uri: String,
    pub is_code: bool,
}

/// The cells of a notebook that have the language and the kind of one of them, as one document.
pub(super) struct Joined {
    /// The name of the document next to those of the editor. No address has a blank.
    pub(super) key: String,
    pub(super) document: Document,
    /// The start of that one cell, in characters.
    pub(super) start: usize,
}

impl Joined {
    /// Applies an edit of the one cell, and returns it as an edit of the whole, with the text
    /// before.
    fn apply(&mut self, edit: &Edit) -> (Rope, Edit) {
        let was = self.document.text.clone();
        let edit = Edit { start: self.start + edit.start, ..edit.clone() };
        self.document.text.remove(edit.start..edit.start + edit.removed);
        self.document.text.insert(edit.start, &edit.inserted);
        (was, edit)
    }
}

impl Notebooks {
    pub fn is_cell(&self, uri: &str) -> bool {
        self.of_cell.contains_key(uri)
    }

    /// Returns the notebook of a cell.
    pub fn of(&self, uri: &str) -> Option<&str> {
        self.of_cell.get(uri).map(String::as_str)
    }

    /// Returns the cells of a notebook, or the document itself.
    pub(super) fn documents_of(&self, uri: &str) -> Vec<String> {
        match self.cells.get(uri) {
            Some(cells) => cells.iter().map(|cell| cell.uri.clone()).collect(),
            None => vec![uri.to_owned()],
        }
    }

    fn notebook_of(&self, uri: &str) -> Option<(&String, &Vec<Cell>)> {
        self.cells.get_key_value(self.of_cell.get(uri)?)
    }

    fn open(&mut self, notebook: String, cells: Vec<Cell>) {
        self.remove(&notebook);
        self.adopt(&notebook, &cells);
        self.cells.insert(notebook, cells);
    }

    fn splice(&mut self, notebook: &str, start: usize, removed: usize, added: Vec<Cell>) {
        let Some(cells) = self.cells.get_mut(notebook) else { return };
        let names = added.clone();
        let removed = completion::cells::splice(cells, start, removed, added);
        self.orphan(notebook, &removed);
        self.adopt(notebook, &names);
    }

    /// Notes that cells have become code or text.
    pub(super) fn change(&mut self, notebook: &str, changed: Vec<Cell>) {
        if let Some(cells) = self.cells.get_mut(notebook) {
            completion::cells::replace(cells, changed, |cell| cell.uri.clone());
        }
    }

    /// Removes a notebook, and returns its cells.
    pub(super) fn remove(&mut self, notebook: &str) -> Vec<Cell> {
        let cells = self.cells.remove(notebook).unwrap_or_default();
        self.orphan(notebook, &cells);
        cells
    }

    fn adopt(&mut self, notebook: &str, cells: &[Cell]) {
        let names = cells.iter().map(|cell| (cell.uri.clone(), notebook.to_owned()));
        self.of_cell.extend(names);
    }

    fn orphan(&mut self, notebook: &str, cells: &[Cell]) {
        for cell in cells {
            if self.of(&cell.uri) == Some(notebook) {
                self.of_cell.remove(&cell.uri);
            }
        }
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
        #[cfg(test)]
        self.joins.set(self.joins.get() + 1);
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

    /// The documents with each notebook instead of its cells.
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

    /// The cells of a notebook, joined once for each language and kind, in their order.
    fn each_joined(&self, documents: &HashMap<String, Document>, notebook: &str) -> Vec<Joined> {
        let mut kinds = HashSet::new();
        let cells = self.cells.get(notebook).into_iter().flatten();
        let firsts = cells.filter(|cell| {
            let language = documents.get(&cell.uri).map(|document| &document.language);
            language.is_some_and(|language| kinds.insert((language, cell.is_code)))
        });
        let firsts: Vec<_> = firsts.collect();
        firsts.iter().filter_map(|cell| self.joined(documents, &cell.uri)).collect()
    }
}

/// Notes an edit that was just made in a document whose text was `was` before. `joined` is the
/// notebook of the document before the edit, if it is a cell, and then the one after it.
pub(super) fn note_edit(
    prompts: &mut PromptBuilder,
    document: &Document,
    joined: Option<&mut Joined>,
    was: Rope,
    edit: &Edit,
) {
    match joined {
        Some(joined) => {
            let (was, edit) = joined.apply(edit);
            prompts.edit(&joined.document, was, &edit);
        }
        None => prompts.edit(document, was, edit),
    }
}

impl State {
    pub(super) fn open_notebook(&mut self, uri: String, cells: Vec<Cell>) {
        self.unserved.remove(&uri);
        self.notebooks.open(uri.clone(), cells);
        self.name_cells(&uri);
    }

    pub(super) fn splice_cells(
        &mut self,
        notebook: &str,
        start: usize,
        removed: usize,
        added: Vec<Cell>,
    ) {
        self.notebooks.splice(notebook, start, removed, added);
        self.name_cells(notebook);
    }

    /// Closes a notebook and all of its cells.
    pub(super) fn close_notebook(&mut self, turn: &mut Turn, notebook: &str) {
        let Some(cells) = self.notebooks.cells.get(notebook).cloned() else { return };
        let config = turn.services.settings.current();
        let rules = QuotableFiles::default();
        let limits = limits(turn.services, &config, &rules);
        let all = self.notebooks.each_joined(&self.documents, notebook);
        for Joined { key, document, .. } in all.iter().rev() {
            self.prompts.close(key, document, &limits);
        }
        cells.iter().for_each(|cell| self.close(turn, &cell.uri));
        self.notebooks.remove(notebook);
    }

    /// Records all cells of a notebook under its name, also those that were open before it had
    /// them.
    fn name_cells(&mut self, notebook: &str) {
        let State { notebooks, documents, .. } = self;
        let name = addresses::name(notebook);
        for cell in notebooks.cells.get(notebook).into_iter().flatten() {
            if let Some(document) = documents.get_mut(&cell.uri) {
                document.path.clone_from(&name);
            }
        }
    }

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
