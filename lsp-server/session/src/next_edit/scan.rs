//! Reads files of a folder, the nearest to a document first.

use feedback::secrets;
use files::disk::{Disk, Found};
use files::folder::Folder;
use files::walk::Walk;
use host::addresses::name_of_file;
use privacy::access::Access;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The longest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The number of texts that are read before they are searched.
const AHEAD_MAX: usize = 8;

/// Names of files that a package manager writes. They are text, and nobody writes such code.
const LOCK_FILES: &[&str] = &[
    "Cargo.lock",
    "Gemfile.lock",
    "composer.lock",
    "flake.lock",
    "go.sum",
    "package-lock.json",
    "pnpm-lock.yaml",
    "poetry.lock",
    "uv.lock",
    "yarn.lock",
];

/// Endings of files that a tool writes.
const GENERATED_ENDINGS: &[&str] = &[".map", ".min.css", ".min.js", ".svg"];

/// Which files are read.
pub struct Scan {
    /// The open folder around the document. Without one it is the document's repository, because
    /// some editors open no folders.
    pub root: Option<PathBuf>,
    /// The files have its ending, and it is not among them.
    pub document: PathBuf,
    pub language: String,
    /// Nothing is returned after this.
    pub until: Instant,
}

impl Scan {
    /// Returns the files with their texts. None is ignored, forgotten, generated, or holds a
    /// secret. They are read on another thread, which is left behind if the disk is silent.
    pub fn files(self, disk: &Disk, access: Arc<Access>) -> Found<(String, String)> {
        disk.find(self.until, AHEAD_MAX, move |hand_over| {
            let root = self.root.clone().and_then(Folder::at);
            let folder = root.or_else(|| Folder::of_repository(&self.document));
            if let Some(folder) = folder.filter(|_| self.document.is_absolute()) {
                self.read(&folder, &access, hand_over);
            }
        })
    }

    fn read(
        &self,
        folder: &Folder,
        access: &Access,
        hand_over: &mut dyn FnMut((String, String)) -> bool,
    ) {
        let center = self.document.parent().unwrap_or(folder.path());
        let walk = Walk::new(folder.clone(), center, access.ignore_rules(), self.until);
        for file in walk {
            let path = folder.path().join(file.path());
            if !self.names(&path) || !access.may_read(&name_of_file(&path), &self.language) {
                continue;
            }
            let text = folder.text(&file, FILE_BYTES_MAX).ok();
            let text = text.filter(|text| !secrets::holds_secret(text));
            let name = name_of_file(&path).into_owned();
            if text.is_some_and(|text| !hand_over((name, text))) {
                return;
            }
        }
    }

    fn names(&self, file: &Path) -> bool {
        *file != self.document
            && file.extension() == self.document.extension()
            && !is_generated(file)
    }
}

/// Returns true if a tool wrote the file, by its name.
fn is_generated(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    LOCK_FILES.contains(&name) || GENERATED_ENDINGS.iter().any(|ending| name.ends_with(ending))
}
