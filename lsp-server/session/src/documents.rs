//! What the editor reports of its documents: they are opened, changed and closed, and the cursor
//! moves.

use super::{Session, SessionError, State, Turn, other_code};
use crate::imports;
use crate::notebooks::{Cell, Joined, note_edit};
use completion::document::{Document, Edit, Position};
use privacy::QuotableFiles;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The number of open folders that are kept of one editor.
const FOLDERS_MAX: usize = 16;

/// The longest time for which the files that a document imports are read.
const IMPORTS_TIME_MAX: Duration = Duration::from_secs(5);

/// The notebook of a document that is being changed. It is joined once for all changes of a
/// message.
enum Whole {
    /// No prompt quotes changes.
    Unwanted,
    /// It is nothing if the document is no cell.
    Wanted(Option<Joined>),
}

/// What one message changes in a document: ranges, which are nothing for the whole text, and what
/// stands there instead.
type Changes = Vec<(Option<(Position, Position)>, String)>;

impl Session {
    pub fn open(&self, uri: String, document: Document) {
        self.turn(|state, turn| {
            // Editors also open a document again that is open, and show another text then.
            state.leave(turn, &uri);
            state.unserved.remove(&uri);
            state.prompts.visit(&document);
            state.next_edits.open(&uri, &document.text);
            state.documents.insert(uri, document);
        });
    }

    pub fn close(&self, uri: &str) {
        self.turn(|state, turn| state.close(turn, uri));
    }

    /// Stops serving a document, or all cells of a notebook, until the editor opens it again.
    /// `why` ends with what the user can do. Returns true if it was served or is not known to be
    /// unserved.
    pub fn stop_serving(&self, uri: &str, why: &str) -> bool {
        self.turn(|state, turn| state.stop_serving(turn, uri, why))
    }

    /// Applies changes in their order. The live offer sees each of them as it happens.
    ///
    /// # Errors
    /// The document is not served. This is reported once.
    pub fn change(&self, uri: &str, version: i32, changes: Changes) -> Result<(), SessionError> {
        self.services.touch();
        self.turn(|state, turn| state.change(turn, uri, version, changes))
    }

    /// Adds text above and below a document of which the client has shown only a part so far. This
    /// is no edit of the user's.
    pub fn reveal(&self, uri: &str, above: &str, below: &str) {
        self.turn(|state, turn| state.reveal(turn, uri, above, below));
    }

    /// Notes a folder that the editor has opened. Files of it may be looked through for the next
    /// edit.
    pub fn open_folder(&self, path: &Path) {
        let mut roots = self.roots.lock();
        if roots.len() < FOLDERS_MAX && !roots.iter().any(|root| root == path) {
            roots.push(path.to_owned());
        }
    }

    pub fn close_folder(&self, path: &Path) {
        self.roots.lock().retain(|root| root != path);
    }

    /// Returns the innermost open folder around a file.
    pub(super) fn open_folder_around(&self, file: &Path) -> Option<PathBuf> {
        let roots = self.roots.lock();
        let around = roots.iter().filter(|root| file.starts_with(root));
        around.max_by_key(|root| root.components().count()).cloned()
    }

    /// Reads the files that a document imports, so that prompts can quote them. This waits for the
    /// disk, but not for one that is silent, and the session does not wait meanwhile.
    pub fn look_at_imports(&self, uri: &str) {
        let (services, config) = (&self.services, self.services.settings.current());
        if other_code::context_chars(services, &config) == 0 {
            return;
        }
        let (document, forgets) =
            self.read(|state| (state.documents.get(uri).cloned(), state.forgets));
        let Some(Document { path, text, .. }) = document else { return };
        let root = self.open_folder_around(Path::new(&path));
        let access = services.access.clone();
        let may_read = move |name: &str| access.may_read(name, "");
        let read = move || imports::read(root, Path::new(&path), &text, may_read);
        let files = self.disk.ask(IMPORTS_TIME_MAX, read).unwrap_or_default();
        let sources = files.iter().map(Document::source).collect();
        let rules = other_code::quotable(services, sources, &config);
        let limits = other_code::limits(services, &config, &rules);
        for file in files {
            self.turn(|state, _| {
                if state.forgets == forgets {
                    state.prompts.add(&file, &limits);
                }
            });
        }
    }

    /// The open documents: the name, language and text of each, and whether it is a cell. Tests
    /// compare them.
    pub fn held(&self) -> std::collections::BTreeMap<String, (String, String, String, bool)> {
        self.read(|state| {
            let held = |(uri, document): (&String, &Document)| {
                let Document { path, language, text, .. } = document.clone();
                (uri.clone(), (path, language, text.to_string(), state.notebooks.is_cell(uri)))
            };
            state.documents.iter().map(held).collect()
        })
    }

    /// The user looks at this document.
    pub fn visit(&self, uri: &str) {
        self.turn(|state, _| state.visit(uri));
    }

    /// The user has put the cursor here. The prompt of a request here is computed now, while the
    /// user looks around.
    pub fn focus(&self, uri: &str, position: Position) -> Result<(), SessionError> {
        let (services, config) = (&self.services, self.services.settings.current());
        let sources = self.read(|state| state.sources(services, uri, &config));
        let rules = other_code::quotable(services, sources, &config);
        self.turn(|state, _| {
            state.visit(uri);
            let document = state.documents.get(uri).ok_or_else(|| state.not_open(uri))?;
            let cursor = document.offset(position, state.editor.encoding)?;
            if !state.is_computing() && config.completes(&document.path, &document.language) {
                state.prompts.visit(document);
                let limits = other_code::limits(services, &config, &rules);
                if let Some(prompt) = state.prompt(uri, cursor, &limits) {
                    services.engine.warm(prompt);
                }
            }
            Ok(())
        })
    }

    /// The editor has opened a notebook. It opens the documents of the cells afterwards.
    pub fn open_notebook(&self, uri: String, cells: Vec<Cell>) {
        self.turn(|state, _| state.open_notebook(uri, cells));
    }

    /// Cells were put in, taken out or moved.
    pub fn splice_cells(&self, notebook: &str, start: usize, removed: usize, added: Vec<Cell>) {
        self.turn(|state, _| state.splice_cells(notebook, start, removed, added));
    }

    /// Cells have become code or text.
    pub fn change_cells(&self, notebook: &str, changed: Vec<Cell>) {
        self.turn(|state, _| state.notebooks.change(notebook, changed));
    }

    /// Closes a notebook and all of its cells.
    pub fn close_notebook(&self, notebook: &str) {
        self.turn(|state, turn| state.close_notebook(turn, notebook));
    }

    /// The address under whose name a document is recorded: that of its notebook, if it is a cell.
    pub fn recorded_as(&self, uri: &str) -> String {
        self.read(|state| state.notebooks.of(uri).unwrap_or(uri).to_owned())
    }
}

impl State {
    /// Ends all that is known of places in a document, because its text is not followed any more.
    fn leave(&mut self, turn: &mut Turn, uri: &str) {
        self.abort_current_in(uri);
        let Some(document) = self.documents.remove(uri) else { return };
        let entries = self.offers.closed(uri, &document, turn.now_ms);
        turn.log(entries);
        turn.events.extend(self.next_edits.left(uri));
        if !self.notebooks.is_cell(uri) {
            let config = turn.services.settings.current();
            let rules = QuotableFiles::default();
            let limits = other_code::limits(turn.services, &config, &rules);
            self.prompts.close(uri, &document, &limits);
        }
    }

    pub(super) fn close(&mut self, turn: &mut Turn, uri: &str) {
        self.unserved.remove(uri);
        self.leave(turn, uri);
    }

    fn visit(&mut self, uri: &str) {
        if self.documents.contains_key(uri) {
            self.next_edits.visit(uri);
        }
    }

    fn change(
        &mut self,
        turn: &mut Turn,
        uri: &str,
        version: i32,
        changes: Changes,
    ) -> Result<(), SessionError> {
        let now_ms = turn.now_ms;
        self.abort_current_in(uri);
        // A request may have begun since `touch`, and seen the text of before.
        turn.services.next_edit_model.iter().for_each(|model| model.interrupt());
        self.debounce.key(now_ms);
        let was = self.documents.get(uri).map(|document| document.text.clone());
        let config = turn.services.settings.current();
        let quotes = other_code::context_chars(turn.services, &config) > 0;
        let mut whole = Whole::Unwanted;
        if quotes {
            whole = Whole::Wanted(self.notebooks.joined(&self.documents, uri));
        }
        let apply = |change| self.apply(turn, uri, version, change, &mut whole);
        let edits: Option<Vec<Edit>> = changes.into_iter().map(apply).collect();
        let Some(edits) = edits.filter(|_| was.is_some()) else {
            return self.out_of_step(turn, uri);
        };
        if let (Some(was), Some(document)) = (was, self.documents.get(uri)) {
            turn.events.extend(self.next_edits.changed(uri, was, document, now_ms));
        }
        let entries = self.offers.changed(uri, &edits, &self.documents, now_ms);
        turn.log(entries);
        Ok(())
    }

    fn reveal(&mut self, turn: &mut Turn, uri: &str, above: &str, below: &str) {
        let State { documents, offers, .. } = self;
        for (is_above, inserted) in [(true, above), (false, below)] {
            let Some(document) = documents.get_mut(uri) else { return };
            let was = document.text.clone();
            let start = if is_above { 0 } else { was.len_chars() };
            document.text.insert(start, inserted);
            let edit = Edit { start, removed: 0, inserted: inserted.to_owned() };
            if !inserted.is_empty() {
                turn.log(offers.edited(uri, &was, (edit, start), documents, turn.now_ms));
            }
        }
    }

    /// Applies a change, and returns what it did, if it can be one of this document.
    fn apply(
        &mut self,
        turn: &mut Turn,
        uri: &str,
        version: i32,
        (range, text): (Option<(Position, Position)>, String),
        whole: &mut Whole,
    ) -> Option<Edit> {
        let State { documents, offers, editor, prompts, next_edits, .. } = self;
        let document = documents.get_mut(uri)?;
        let was = document.text.clone();
        let told_from = range.and_then(|(from, _)| document.offset(from, editor.encoding).ok());
        let edit = document.apply(range, text, editor.encoding).ok()?;
        let told_from = told_from.unwrap_or(edit.start);
        document.version = version;
        prompts.visit(document);
        next_edits.note(&edit);
        if let Whole::Wanted(joined) = whole {
            note_edit(prompts, document, joined.as_mut(), was.clone(), &edit);
        }
        let told = (edit.clone(), told_from);
        turn.log(offers.edited(uri, &was, told, documents, turn.now_ms));
        Some(edit)
    }
}
