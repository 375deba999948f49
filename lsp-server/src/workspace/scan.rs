//! Reads files of a folder without an index of it, the nearest to a document first.

use super::Workspaces;
use crate::addresses::name_of_file;
use crate::workspace::listing;
use crate::workspace::reader::{is_generated, read};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Which files are read.
pub struct Scan<'a> {
    pub root: &'a Path,
    /// The files have its ending, and it is not among them.
    pub document: &'a Path,
    pub language: &'a str,
    /// Nothing is read after this.
    pub until: Instant,
}

impl Workspaces {
    /// The files with their texts. None is ignored, forgotten, generated, or holds a secret.
    pub fn scan<'a>(&'a self, scan: &'a Scan) -> impl Iterator<Item = (String, String)> + 'a {
        let center = scan.document.parent().unwrap_or(scan.root);
        let time = scan.until.saturating_duration_since(Instant::now());
        let files = listing::list_within(scan.root, center, time).files;
        let files = files.into_iter().map(|file| scan.root.join(file));
        let files = files.filter(|file| scan.names(file));
        let in_time = files.take_while(|_| Instant::now() < scan.until);
        in_time.filter_map(|file| self.text_of(file, scan.language))
    }

    fn text_of(&self, file: PathBuf, language: &str) -> Option<(String, String)> {
        let name = name_of_file(&file).into_owned();
        let text = self.access.may_read(&name, language).then(|| read(&file).ok())??.0;
        self.access.may_index(&text).then_some((name, text))
    }
}

impl Scan<'_> {
    fn names(&self, file: &Path) -> bool {
        file != self.document
            && file.extension() == self.document.extension()
            && !is_generated(file)
    }
}
