//! Reads files of a folder, the nearest to a document first.

use super::listing;
use super::reader::{is_generated, read};
use crate::addresses::name_of_file;
use crate::privacy::access::Access;
use feedback::secrets;
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

impl Scan<'_> {
    /// Returns the files with their texts. None is ignored, forgotten, generated, or holds a
    /// secret.
    pub fn files(&self, access: &Access) -> impl Iterator<Item = (String, String)> {
        let center = self.document.parent().unwrap_or(self.root);
        let time = self.until.saturating_duration_since(Instant::now());
        let files = listing::list(self.root, center, time).into_iter();
        let files = files.map(|file| self.root.join(file)).filter(|file| self.names(file));
        let in_time = files.take_while(|_| Instant::now() < self.until);
        in_time.filter_map(|file| self.text_of(file, access))
    }

    fn names(&self, file: &Path) -> bool {
        file != self.document
            && file.extension() == self.document.extension()
            && !is_generated(file)
    }

    fn text_of(&self, file: PathBuf, access: &Access) -> Option<(String, String)> {
        let name = name_of_file(&file).into_owned();
        let text = access.may_read(&name, self.language).then(|| read(&file).ok())??;
        (!secrets::holds_secret(&text)).then_some((name, text))
    }
}
