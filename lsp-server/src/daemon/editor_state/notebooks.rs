//! The editor's notebooks, as it has opened and changed them.

use super::each;
use crate::addresses;
use serde_json::Value;
use std::collections::BTreeMap;

/// By the normal forms of their addresses.
#[derive(Default)]
pub struct Notebooks(BTreeMap<String, Value>);

impl Notebooks {
    pub fn open(&mut self, notebook: &Value) {
        if let Some(uri) = notebook["uri"].as_str() {
            self.0.insert(addresses::normal(uri), notebook.clone());
        }
    }

    /// Answers the addresses of the cells that it had.
    pub fn close(&mut self, uri: &Value) -> Vec<String> {
        let uri = addresses::normal(uri.as_str().unwrap_or_default());
        let closed = self.0.remove(&uri).unwrap_or_default();
        each(&closed["cells"]).map(address).collect()
    }

    /// Applies what `notebookDocument/didChange` says of the cells themselves.
    pub fn change(&mut self, identifier: &Value, change: &Value) {
        let uri = addresses::normal(identifier["uri"].as_str().unwrap_or_default());
        let Some(notebook) = self.0.get_mut(&uri) else { return };
        notebook["version"] = identifier["version"].clone();
        let Some(cells) = notebook["cells"].as_array_mut() else { return };
        let array = &change["structure"]["array"];
        let number = |name: &str| array[name].as_u64().and_then(|number| number.try_into().ok());
        if let Some(start) = number("start") {
            let start: usize = cells.len().min(start);
            let end = start.saturating_add(number("deleteCount").unwrap_or(0)).min(cells.len());
            cells.splice(start..end, each(&array["cells"]).cloned());
        }
        for changed in each(&change["data"]) {
            if let Some(cell) = cells.iter_mut().find(|cell| address(cell) == address(changed)) {
                *cell = changed.clone();
            }
        }
    }

    /// Whether a document is a cell.
    pub fn have(&self, uri: &str) -> bool {
        self.0.values().any(|notebook| each(&notebook["cells"]).any(|cell| address(cell) == uri))
    }

    /// Each notebook, and the addresses of its cells.
    pub fn all(&self) -> impl Iterator<Item = (&Value, Vec<String>)> {
        self.0.values().map(|notebook| (notebook, each(&notebook["cells"]).map(address).collect()))
    }
}

fn address(cell: &Value) -> String {
    addresses::normal(cell["document"].as_str().unwrap_or_default())
}
