//! The editor's notebooks, as it has opened and changed them. Their addresses have their normal
//! forms.

use super::{address, each};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Default)]
pub struct Notebooks {
    open: BTreeMap<String, Value>,
    /// The notebook of each cell.
    of_cell: BTreeMap<String, String>,
}

impl Notebooks {
    pub fn open(&mut self, notebook: &Value) {
        let uri = address(notebook);
        self.close(uri);
        self.adopt(uri, &names(&notebook["cells"]));
        self.open.insert(uri.to_owned(), notebook.clone());
    }

    /// Closes a notebook, and returns the addresses of the cells that it had.
    pub fn close(&mut self, uri: &str) -> Vec<String> {
        let closed = self.open.remove(uri).unwrap_or_default();
        let cells = names(&closed["cells"]);
        self.orphan(uri, &cells);
        cells
    }

    /// Applies what `notebookDocument/didChange` says of the cells themselves.
    pub fn change(&mut self, identifier: &Value, change: &Value) {
        let uri = address(identifier);
        let Some(notebook) = self.open.get_mut(uri) else { return };
        notebook["version"] = identifier["version"].clone();
        let Some(cells) = notebook["cells"].as_array_mut() else { return };
        let array = &change["structure"]["array"];
        let number = |name: &str| array[name].as_u64().and_then(|number| number.try_into().ok());
        let mut removed = vec![];
        if let Some(start) = number("start") {
            let added = each(&array["cells"]).cloned().collect();
            let count = number("deleteCount").unwrap_or(0);
            removed = completion::cells::splice(cells, start, count, added);
        }
        let changed = each(&change["data"]).cloned().collect();
        completion::cells::replace(cells, changed, |cell| name(cell).to_owned());
        self.orphan(uri, &names(&removed.into()));
        self.adopt(uri, &names(&array["cells"]));
    }

    fn adopt(&mut self, notebook: &str, cells: &[String]) {
        self.of_cell.extend(cells.iter().map(|cell| (cell.clone(), notebook.to_owned())));
    }

    fn orphan(&mut self, notebook: &str, cells: &[String]) {
        for cell in cells {
            if self.of(cell) == Some(notebook) {
                self.of_cell.remove(cell);
            }
        }
    }

    /// Returns the notebook of a cell.
    pub fn of(&self, cell: &str) -> Option<&str> {
        self.of_cell.get(cell).map(String::as_str)
    }

    /// Returns the addresses of the cells of a notebook.
    pub fn cells(&self, uri: &str) -> Vec<String> {
        self.open.get(uri).map_or_else(Vec::new, |notebook| names(&notebook["cells"]))
    }

    /// Each notebook, and the addresses of its cells.
    pub fn all(&self) -> impl Iterator<Item = (&Value, Vec<String>)> {
        self.open.values().map(|notebook| (notebook, names(&notebook["cells"])))
    }
}

fn name(cell: &Value) -> &str {
    cell["document"].as_str().unwrap_or_default()
}

fn names(cells: &Value) -> Vec<String> {
    each(cells).map(|cell| name(cell).to_owned()).collect()
}
