//! A name in a document may be anything. Nothing outside of the folder is read by it.
#![no_main]

use files::folder::{Folder, Name};
use libfuzzer_sys::fuzz_target;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

const BYTES_MAX: u64 = 1_000;

static PLACE: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let place = tempfile::tempdir().expect("a folder");
    let at = |name: &str| place.path().join(name);
    fs::create_dir_all(at("repo/src")).expect("it is made");
    fs::write(at("outside"), "outside").expect("it is written");
    fs::write(at("repo/src/a"), "inside").expect("it is written");
    let links = [("..", "repo/up"), ("/", "repo/root"), ("src", "repo/in"), ("in", "repo/loop")];
    for (to, link) in links {
        std::os::unix::fs::symlink(to, at(link)).expect("it is made");
    }
    place
});

fuzz_target!(|name: &str| {
    let folder = Folder::at(PLACE.path().join("repo")).expect("it is absolute");
    for name in [Name::of(Path::new(name)), folder.name(Path::new(name))].into_iter().flatten() {
        if let Ok(text) = folder.text(&name, BYTES_MAX) {
            assert_eq!(text, "inside", "{name:?}");
        }
    }
});
