//! The files that a document imports, as far as its import lines and the folders beside it tell.
//! No build system is asked. A file that is missed is only not quoted in a prompt.

use crate::addresses::name_of_file;
use crate::paths::without_dots;
use completion::document::Document;
use ropey::Rope;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Lines of a document in which imports are looked for.
const LINES: usize = 200;

/// The longest line that is looked at. No import is longer.
const LINE_CHARS: usize = 500;

/// Names and paths that are looked for on the disk.
const NAMES: usize = 64;

/// Files that are read.
const FILES: usize = 8;

/// Longest file that is read, in bytes.
const FILE_BYTES: u64 = 100_000;

/// Folders in which a module's name is looked for, from the document's own upwards.
const FOLDERS: usize = 3;

/// Lines that import something begin with one of these.
const BEGINNINGS: &[&str] =
    &["use ", "pub use ", "mod ", "pub mod ", "import ", "from ", "export ", "#include", "require"];

/// A line that has one of these anywhere imports something.
const WITHIN: &[&str] = &["require(", " from '", " from \""];

/// Endings of files that can stand for each other, because a module's name leaves them out.
const ENDINGS: &[&[&str]] = &[
    &["rs"],
    &["py", "pyi"],
    &["ts", "tsx", "js", "jsx", "mts", "mjs"],
    &["c", "h", "cc", "cpp", "hpp"],
    &["lua"],
    &["rb"],
    &["go"],
    &["java"],
    &["kt"],
];

/// The files by which a folder is recognised as a module.
const INDEXES: &[&str] = &["mod", "index", "__init__", "init"];

/// Reads the files that a document imports, the nearest first.
pub fn read(path: &str, text: &Rope) -> Vec<Document> {
    let path = Path::new(path);
    let files = files(path, &import_lines(text));
    files.into_iter().filter_map(|file| document(&file)).take(FILES).collect()
}

fn import_lines(text: &Rope) -> String {
    let lines = text.lines().take(LINES).filter(|line| line.len_chars() <= LINE_CHARS);
    let lines = lines.map(|line| line.to_string()).filter(|line| {
        let line = line.trim_start();
        BEGINNINGS.iter().any(|beginning| line.starts_with(beginning))
            || WITHIN.iter().any(|part| line.contains(part))
    });
    lines.collect()
}

fn files(document: &Path, imports: &str) -> Vec<PathBuf> {
    let endings = endings(document);
    let Some(folder) = document.parent().filter(|_| document.is_absolute()) else { return vec![] };
    let mut found: Vec<PathBuf> = vec![];
    let mut try_at = |stem: PathBuf| {
        let beside = endings.iter().map(|ending| with_ending(&stem, ending));
        let indexes = INDEXES.iter().flat_map(|index| {
            let stem = stem.join(index);
            endings.iter().map(move |ending| with_ending(&stem, ending))
        });
        let file = [stem.clone()].into_iter().chain(beside).chain(indexes);
        let file = file.filter(|file| file != document).find(|file| file.is_file());
        found.extend(file.filter(|file| !found.contains(file)));
    };
    // Said as a path: exactly there.
    let quoted = imports.split(['"', '\'']).skip(1).step_by(2);
    for path in quoted.filter(|path| !path.is_empty()).take(NAMES) {
        try_at(without_dots(&folder.join(path)));
    }
    let mut names: Vec<&str> = imports
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|name| name.len() > 1)
        .collect();
    names.sort_unstable();
    names.dedup();
    for folder in folder.ancestors().take(FOLDERS) {
        for name in names.iter().take(NAMES) {
            let stem = folder.join(name);
            // A folder of that name without an index is none of ours.
            try_at(stem);
        }
    }
    found
}

fn endings(document: &Path) -> Vec<&str> {
    let ending = document.extension().and_then(OsStr::to_str).unwrap_or_default();
    // What the cells of a notebook import is written in Python, or is not found.
    let ending = if ending == "ipynb" { "py" } else { ending };
    let family = ENDINGS.iter().find(|family| family.contains(&ending));
    family.map_or_else(|| vec![ending], |family| family.to_vec())
}

fn with_ending(stem: &Path, ending: &str) -> PathBuf {
    let mut path = stem.as_os_str().to_owned();
    path.push(".");
    path.push(ending);
    path.into()
}

fn document(file: &Path) -> Option<Document> {
    let short = fs::metadata(file).ok().filter(|file| file.len() <= FILE_BYTES);
    let text = short.and_then(|_| fs::read_to_string(file).ok())?;
    Some(Document {
        path: name_of_file(file).into_owned(),
        language: String::new(),
        version: 0,
        text: Rope::from_str(&text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files of a project, and which of them one of them imports.
    fn imported(files: &[(&str, &str)], from: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for (path, text) in files {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        let path = root.join(from);
        let text = fs::read_to_string(&path).unwrap();
        let found = read(&path.to_string_lossy(), &Rope::from_str(&text));
        let below = |found: Document| {
            let below = Path::new(&found.path).strip_prefix(&root).unwrap().to_owned();
            below.to_string_lossy().into_owned()
        };
        found.into_iter().map(below).collect()
    }

    #[test]
    fn modules_are_found_by_their_names() {
        let files = [
            (
                "src/session.rs",
                "use completion::prompt::{Layout, Window};\nuse std::fs;\nmod engine;\n",
            ),
            ("src/prompt.rs", "a"),
            ("src/engine/mod.rs", "b"),
            ("src/unrelated.rs", "c"),
        ];
        assert_eq!(imported(&files, "src/session.rs"), ["src/engine/mod.rs", "src/prompt.rs"]);
        let files = [
            ("app/views/home.py", "from app.models import User\nfrom .forms import Login\n"),
            ("app/models.py", "a"),
            ("app/views/forms.py", "b"),
        ];
        assert_eq!(imported(&files, "app/views/home.py"), ["app/views/forms.py", "app/models.py"]);
        let files = [("rates.ipynb", "import ledger\n"), ("ledger.py", "a")];
        assert_eq!(imported(&files, "rates.ipynb"), ["ledger.py"], "a cell of a notebook");
    }

    #[test]
    fn paths_are_followed() {
        let files = [
            ("src/a.ts", "import { x } from '../lib/x'\nimport y from './y.js'\nimport 'zod'\n"),
            ("lib/x.ts", "a"),
            ("src/y.js", "b"),
        ];
        assert_eq!(imported(&files, "src/a.ts"), ["lib/x.ts", "src/y.js"]);
        let files =
            [("main.c", "#include \"deep/util.h\"\n#include <stdio.h>\n"), ("deep/util.h", "")];
        assert_eq!(imported(&files, "main.c"), ["deep/util.h"]);
    }

    #[test]
    fn neither_the_document_itself_nor_what_is_too_long_or_no_text_is_read() {
        let long = "x".repeat(FILE_BYTES as usize + 1);
        let files = [("a.rs", "use a::b;\nmod long;\n"), ("long.rs", long.as_str())];
        assert!(imported(&files, "a.rs").is_empty());
        assert!(read("untitled:1", &Rope::from_str("use crate::a;\n")).is_empty());
    }
}
