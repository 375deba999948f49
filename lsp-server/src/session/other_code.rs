//! The other code that a prompt may show. It is looked for in the index of the document's folder,
//! and the files that it comes from are held to the rules. Both take time or wait for the disk, so
//! they happen before the lock on the state is taken.

use super::{Session, State};
use crate::addresses::name_of_file;
use crate::privacy::QuotableFiles;
use crate::services::settings::Current;
use crate::workspace::OpenFolder;
use completion::document::Position;
use completion::found_code::{FoundCode, PIECES_FOUND, Search};
use completion::prompt::{Excerpt, Window};
use completion::prompt_builder::{OtherCode, QuoteRules};
use retrieval::{Hit, Query};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The pieces of one file that are found at most.
const PIECES_OF_A_FILE: usize = 2;

/// The least score of a piece, as a share of what one with all names of the query has. Pieces that
/// share little more than common names cost time and mislead.
const SHARE_MIN: f32 = 0.1;

/// What prompts at one place may show.
#[derive(Default)]
pub(super) struct Quotable {
    pub rules: QuotableFiles,
    code: Code,
}

#[derive(Default)]
enum Code {
    /// No folder that holds the document has been indexed so far.
    #[default]
    OfDocuments,
    /// Another context would cost too much at present.
    AsBefore,
    Found(FoundCode),
    /// What llama.vim would show.
    Ring,
}

impl Quotable {
    pub fn by(rules: QuotableFiles) -> Quotable {
        Quotable { rules, code: Code::default() }
    }

    pub fn code(&self) -> OtherCode<'_> {
        match &self.code {
            Code::OfDocuments => OtherCode::OfDocuments,
            Code::AsBefore => OtherCode::AsBefore,
            Code::Found(found) => OtherCode::Found(found),
            Code::Ring => OtherCode::Ring,
        }
    }
}

impl Session {
    /// What the prompt at a position may show.
    pub(super) fn look_around(&self, uri: &str, position: Position, config: &Current) -> Quotable {
        if self.context_chars(config) == 0 {
            return Quotable::default();
        }
        let code = if config.lab.chunk_ring {
            Code::Ring
        } else if config.lab.index_folders {
            self.find_code(uri, position, config.lab.window())
        } else {
            Code::OfDocuments
        };
        let mut paths = {
            let state = self.state.lock();
            let mut paths = state.prompts.sources();
            // The prompt may quote other parts of the document itself.
            paths.extend(state.documents.get(uri).map(|document| document.path.clone()));
            paths
        };
        if let Code::Found(found) = &code {
            paths.extend(found.pieces.iter().map(|piece| piece.source.clone()));
        }
        let rules = self.services.privacy.quotable(paths, &config.not_stored);
        Quotable { code: permitted(code, &rules), rules }
    }

    fn find_code(&self, uri: &str, position: Position, window: Window) -> Code {
        let path = self.state.lock().documents.get(uri).map(|document| document.path.clone());
        let folder = path.and_then(|path| self.services.workspaces.holding(&path));
        let Some(folder) = folder.filter(|folder| folder.is_read()) else {
            return Code::OfDocuments;
        };
        let search = {
            let mut state = self.state.lock();
            if state.searched.insert(folder.root().to_owned()) {
                state.prompts.reconsider();
            }
            state.search(uri, position, window)
        };
        let Some(search) = search else { return Code::AsBefore };
        let hits = folder.snapshot().retrieval.search(&Query {
            text: &search.text,
            window: &search.window,
            shown: Some((&search.path, &search.lines)),
            count: PIECES_FOUND,
            a_file: PIECES_OF_A_FILE,
            ..Query::default()
        });
        Code::Found(found(&folder, &search.path, hits))
    }
}

impl State {
    /// What to look for, if the prompt at this position may show other code than the one before it.
    fn search(&mut self, uri: &str, position: Position, window: Window) -> Option<Search> {
        let cursor = self.documents.get(uri)?.offset(position, self.encoding).ok()?;
        let State { notebooks, documents, prompts, .. } = self;
        let joined = notebooks.joined(documents, uri);
        match &joined {
            Some(cell) => prompts.search(&cell.document, &cell.key, cell.start + cursor, window),
            None => prompts.search(documents.get(uri)?, uri, cursor, window),
        }
    }
}

/// Leaves out what may not be quoted.
fn permitted(code: Code, rules: &QuotableFiles) -> Code {
    let Code::Found(mut found) = code else { return code };
    let may_show = |piece: &Excerpt| {
        rules.may_quote_file(&piece.source, "") && rules.may_quote_text(&piece.text)
    };
    found.pieces.retain(may_show);
    Code::Found(found)
}

fn found(folder: &OpenFolder, path: &str, hits: Vec<Hit>) -> FoundCode {
    let root = folder.root();
    let below = |path: &str| {
        let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(path));
        name_of_file(below).into_owned()
    };
    let pieces = hits.into_iter().filter(|hit| hit.share >= SHARE_MIN).map(|hit| Excerpt {
        source: hit.file.to_string(),
        path: below(&hit.file),
        text: with_line_break(hit.text),
    });
    let name = root.file_name().map(|name| name.to_string_lossy().into_owned());
    FoundCode { repository: name.unwrap_or_default(), path: below(path), pieces: pieces.collect() }
}

fn with_line_break(mut text: String) -> String {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// The folders in whose index code was looked for.
pub(super) type Searched = HashSet<PathBuf>;
