//! The files that a document imports, as far as its import lines and the folders around it show.
//! No build system is asked. A file that is missed is only not quoted in a prompt. A name in a
//! document may say anything, so only plain files of the folder that is open are read.

use completion::document::Document;
use files::folder::{Folder, Name};
use host::addresses::name_of_file;
use host::paths::without_dots;
use ropey::Rope;
use std::ffi::OsStr;
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

/// Reads the files that a document imports, the nearest first. They lie below `root`, the folder
/// that is open around the document. If none is, they lie below the document's repository.
/// `may_read` is asked about the name of each.
pub fn read(
    root: Option<PathBuf>,
    path: &Path,
    text: &Rope,
    may_read: impl Fn(&str) -> bool,
) -> Vec<Document> {
    if !path.is_absolute() {
        return vec![];
    }
    let folder = root.and_then(Folder::at).or_else(|| Folder::of_repository(path));
    let Some(folder) = folder else { return vec![] };
    let files = files(&folder, path, &import_lines(text));
    let named = files.into_iter().map(|file| {
        let name = name_of_file(&folder.path().join(file.path())).into_owned();
        (file, name)
    });
    let readable = named.filter(|(_, name)| may_read(name));
    readable.filter_map(|(file, name)| document(&folder, &file, name)).take(FILES).collect()
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

fn files(root: &Folder, document: &Path, imports: &str) -> Vec<Name> {
    let endings = endings(document);
    let Some(folder) = document.parent() else { return vec![] };
    let mut found: Vec<Name> = vec![];
    let mut try_at = |stem: PathBuf| {
        let siblings = endings.iter().map(|ending| with_ending(&stem, ending));
        let indexes = INDEXES.iter().flat_map(|index| {
            let stem = stem.join(index);
            endings.iter().map(move |ending| with_ending(&stem, ending))
        });
        let file = [stem.clone()].into_iter().chain(siblings).chain(indexes);
        let names = file.filter(|file| file != document).filter_map(|file| root.name(&file));
        let file = names.into_iter().find(|name| root.holds(name));
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
    for folder in folder.ancestors().take(FOLDERS).filter(|folder| folder.starts_with(root.path()))
    {
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

fn document(folder: &Folder, file: &Name, path: String) -> Option<Document> {
    let text = folder.text(file, FILE_BYTES).ok()?;
    Some(Document { path, language: String::new(), version: 0, text: Rope::from_str(&text) })
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the files are the test's own")]
mod tests {
    use super::*;
    use std::fs;

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
        let found = read(Some(root.clone()), &path, &Rope::from_str(&text), |_| true);
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
        let unsaved = Path::new("untitled:1");
        assert!(read(None, unsaved, &Rope::from_str("use crate::a;\n"), |_| true).is_empty());
    }

    /// Each import names a file that is there. Those in the open folder are read, and no other.
    #[cfg(unix)]
    #[test]
    fn only_files_of_the_open_folder_are_read() {
        use std::os::unix::fs::symlink;
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let root = place.join("a/repo");
        fs::create_dir_all(root.join("src")).unwrap();
        fs::create_dir(place.join("a/other")).unwrap();
        for file in ["a/repo/inside.js", "a/repo/src/near.js", "a/outside.js", "a/other/far.js"] {
            fs::write(place.join(file), "text\n").unwrap();
        }
        symlink("../outside.js", root.join("link.js")).unwrap();
        symlink("../other", root.join("folder")).unwrap();
        symlink("/proc", root.join("proc")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(root.join("socket.js")).unwrap();
        let outside = place.join("a/outside.js");
        let names = [
            "../inside.js",
            "./near.js",
            "../../outside.js",
            "../../../a/outside.js",
            outside.to_str().unwrap(),
            "../link.js",
            "../folder/far.js",
            "../proc/self/environ",
            "../socket.js",
            "/proc/self/pagemap",
            "/dev/zero",
            "//host/share/x.js",
            "..",
            "/",
        ];
        let lines: String = names.iter().map(|name| format!("import '{name}'\n")).collect();
        let lines = Rope::from_str(&(lines + "import outside\nimport far\n"));
        let document = root.join("src/main.js");
        let paths = |root: Option<PathBuf>| -> Vec<String> {
            read(root, &document, &lines, |_| true).into_iter().map(|file| file.path).collect()
        };
        let expected =
            ["inside.js", "src/near.js"].map(|name| root.join(name).display().to_string());
        assert_eq!(paths(Some(root.clone())), expected);
        assert!(paths(None).is_empty(), "it is in no folder that is open, and in no repository");
        fs::create_dir(root.join(".git")).unwrap();
        assert_eq!(paths(None), expected);
    }
}
