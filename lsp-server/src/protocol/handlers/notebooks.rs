//! LSP's messages about notebooks, whose cells are documents of their own.

use super::Backend;
use host::addresses;
use session::SessionError;
use session::notebooks::Cell;
use tower_lsp::ls_types::{
    NotebookCell, NotebookCellKind, NotebookDocumentCellChange,
    NotebookDocumentCellChangeStructure, TextDocumentItem, Uri,
};

/// A cell as a session knows it.
pub fn cell(cell: &NotebookCell) -> Cell {
    Cell { uri: cell.document.to_string(), is_code: cell.kind == NotebookCellKind::CODE }
}

impl Backend {
    /// A cell is recorded under its notebook's name: they are one file, which the rules of privacy
    /// and the user mean.
    pub fn open_cells(&self, notebook: &Uri, cells: Vec<TextDocumentItem>) {
        let name = addresses::name(notebook.as_str());
        let uris = cells.iter().map(|cell| cell.uri.to_string()).collect();
        cells.into_iter().for_each(|cell| self.open(cell, name.clone()));
        self.look_at_imports(uris);
    }

    pub fn change_cells(
        &self,
        notebook: &Uri,
        change: NotebookDocumentCellChange,
    ) -> Vec<SessionError> {
        if let Some(NotebookDocumentCellChangeStructure { array, did_open, did_close }) =
            change.structure
        {
            for closed in did_close.into_iter().flatten() {
                self.session.close(closed.uri.as_str());
            }
            let added = array.cells.iter().flatten().map(cell).collect();
            let (start, removed) = (array.start as usize, array.delete_count as usize);
            self.session.splice_cells(notebook.as_str(), start, removed, added);
            self.open_cells(notebook, did_open.unwrap_or_default());
        }
        let changed = change.data.iter().flatten().map(cell).collect();
        self.session.change_cells(notebook.as_str(), changed);
        let texts = change.text_content.into_iter().flatten();
        texts.filter_map(|text| self.change(text.document, text.changes).err()).collect()
    }
}
