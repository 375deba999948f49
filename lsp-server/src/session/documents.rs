//! What the editor reports of its documents: they are opened, changed and closed, and the cursor
//! moves.

use super::{Session, SessionError, State};
use crate::config::Config;
use crate::privacy::QuotableFiles;
use crate::session::notebooks::{Joined, note_edit};
use crate::session::{imports, tool_edits};
use completion::document::{Document, Edit, Position};
use completion::prompt_builder::PromptLimits;
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

impl Session {
    pub fn open(&self, uri: String, document: Document) {
        let mut state = self.state.lock();
        // Editors also open a document again that is open, and show another text then.
        self.leave(&mut state, &uri);
        state.unserved.remove(&uri);
        state.prompts.visit(&document);
        state.next_edits.visit(&uri);
        state.documents.insert(uri, document);
    }

    /// Ends all that is known of places in a document, because its text is not followed any more.
    fn leave(&self, state: &mut State, uri: &str) -> Option<Document> {
        let now_ms = self.services.clock.elapsed_ms();
        state.abort_current_in(uri);
        state.suppressed.take_if(|suppressed| suppressed.is_in(uri));
        let events = state.tracker.supersede_in(uri, now_ms);
        self.conclude(state, events, None, now_ms);
        let document = state.documents.remove(uri)?;
        state.typed.take(uri);
        self.services.recorder.record(state.next_edits.left(uri));
        if !state.notebooks.is_cell(uri) {
            let config = self.services.settings.current();
            let rules = QuotableFiles::default();
            state.prompts.close(uri, &document, &self.limits(&config, &rules));
        }
        let findings = state.survival.close(uri, &document, now_ms);
        self.tell(findings);
        Some(document)
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
        let config = self.services.settings.current();
        if self.context_chars(&config) == 0 {
            return;
        }
        let (document, forgets) = {
            let state = self.state.lock();
            (state.documents.get(uri).cloned(), state.forgets)
        };
        let Some(Document { path, text, .. }) = document else { return };
        let root = self.open_folder_around(Path::new(&path));
        let read = move || imports::read(root, Path::new(&path), &text);
        let files = self.disk.ask(IMPORTS_TIME_MAX, read).unwrap_or_default();
        let sources = files.iter().map(Document::source).collect();
        let rules = self.services.privacy.quotable(sources, &config.not_stored);
        let limits = self.limits(&config, &rules);
        for file in files {
            let mut state = self.state.lock();
            if state.forgets == forgets {
                state.prompts.add(&file, &limits);
            }
        }
    }

    pub fn close(&self, uri: &str) {
        let mut state = self.state.lock();
        state.unserved.remove(uri);
        self.leave(&mut state, uri);
    }

    /// Applies changes in their order. The live offer sees each of them as it happens.
    ///
    /// # Errors
    /// The document is not served. This is told once.
    pub fn change(
        &self,
        uri: &str,
        version: i32,
        changes: Vec<(Option<(Position, Position)>, String)>,
    ) -> Result<(), SessionError> {
        self.services.activity.touch();
        let now_ms = self.services.clock.elapsed_ms();
        let mut state = self.state.lock();
        state.abort_current_in(uri);
        state.last_edit_ms = Some(now_ms);
        state.debounce.key(now_ms);
        let was = state.documents.get(uri).map(|document| document.text.clone());
        let quotes = self.context_chars(&self.services.settings.current()) > 0;
        let mut whole = Whole::Unwanted;
        if quotes {
            let State { notebooks, documents, .. } = &*state;
            whole = Whole::Wanted(notebooks.joined(documents, uri));
        }
        let apply = |change| self.apply(&mut state, uri, version, change, &mut whole);
        let edits = changes.into_iter().map(apply);
        let edits: Option<Vec<Edit>> = edits.collect();
        let Some(edits) = edits.filter(|_| was.is_some()) else {
            return self.out_of_step(state, uri);
        };
        state.typed.note(uri, &edits);
        let State { documents, next_edits, .. } = &mut *state;
        if let (Some(was), Some(document)) = (was, documents.get(uri)) {
            self.services.recorder.record(next_edits.changed(uri, was, document, now_ms));
        }
        self.look(&mut state, now_ms);
        Ok(())
    }

    /// Applies a change, and returns what it did, if it can be one of this document.
    fn apply(
        &self,
        state: &mut State,
        uri: &str,
        version: i32,
        (range, text): (Option<(Position, Position)>, String),
        whole: &mut Whole,
    ) -> Option<Edit> {
        let now_ms = self.services.clock.elapsed_ms();
        let State {
            documents, tracker, suppressed, encoding, survival, prompts, next_edits, ..
        } = &mut *state;
        let document = documents.get_mut(uri)?;
        let (place, was) = (tracker.place(uri), document.text.clone());
        let applied = document.apply(range, text, *encoding).ok()?;
        document.version = version;
        prompts.visit(document);
        next_edits.note(&applied);
        // A line break below the cursor may be the final newline that a tool puts in on save, so it
        // does not count as one at the cursor.
        let seen = match &place {
            Some(place) if !applied.inserted.chars().all(tool_edits::is_line_break) => {
                document.seen_at(applied.clone(), place.end)
            }
            _ => applied.clone(),
        };
        if let Whole::Wanted(joined) = whole {
            note_edit(prompts, document, joined.as_mut(), was.clone(), &applied);
        }
        let edit = match &place {
            Some(place) => tool_edits::taken_back(&was, seen, place),
            None => seen,
        };
        survival.edit(uri, &edit, now_ms);
        suppressed.take_if(|suppressed| !suppressed.survives(uri, &edit));
        let mut events = match place {
            Some(_) if tool_edits::is_final_newline(&was, &edit) => {
                tracker.final_newline(uri, &edit, now_ms)
            }
            Some(place) if tool_edits::may_be(&was, &edit, &place) => {
                tracker.edit_by_tool(uri, &edit, now_ms)
            }
            _ => tracker.edit(uri, &edit, now_ms),
        };
        events.extend(tracker.check_text_before(uri, &document.text, now_ms));
        self.conclude(state, events, Some(&edit), now_ms);
        Some(applied)
    }

    /// The open documents: the name, language and text of each, and whether it is a cell.
    #[cfg(test)]
    pub fn held(&self) -> std::collections::BTreeMap<String, (String, String, String, bool)> {
        let state = self.state.lock();
        let held = |(uri, document): (&String, &Document)| {
            let Document { path, language, text, .. } = document.clone();
            (uri.clone(), (path, language, text.to_string(), state.notebooks.is_cell(uri)))
        };
        state.documents.iter().map(held).collect()
    }

    /// The user looks at this document.
    pub fn visit(&self, uri: &str) {
        let mut state = self.state.lock();
        if state.documents.contains_key(uri) {
            state.next_edits.visit(uri);
        }
    }

    /// The user has put the cursor here. The prompt of a request here is computed now, while the
    /// user looks around.
    pub fn focus(&self, uri: &str, position: Position) -> Result<(), SessionError> {
        let config = self.services.settings.current();
        let rules = self.quotable(uri, &config);
        let mut guard = self.state.lock();
        let state = &mut *guard;
        if state.documents.contains_key(uri) {
            state.next_edits.visit(uri);
        }
        let document = state.documents.get(uri).ok_or_else(|| state.not_open(uri))?;
        let cursor = document.offset(position, state.encoding)?;
        if state.current.is_none() && config.completes(&document.path, &document.language) {
            state.prompts.visit(document);
            let limits = self.limits(&config, &rules);
            if let Some(prompt) = state.prompt(uri, cursor, &limits) {
                self.services.engine.warm(prompt);
            }
        }
        Ok(())
    }

    pub(super) fn limits<'a>(&self, config: &Config, rules: &'a QuotableFiles) -> PromptLimits<'a> {
        PromptLimits {
            window: config.lab.window(),
            context_chars: self.context_chars(config),
            rules,
        }
    }

    /// Characters of other code that a prompt may hold.
    pub(super) fn context_chars(&self, config: &Config) -> usize {
        if !self.services.engine.info().reads_files {
            return 0;
        }
        let chosen = || self.services.context_budget.chars();
        config.completion.context_chars.unwrap_or_else(chosen)
    }
}
