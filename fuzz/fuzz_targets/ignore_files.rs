//! Ignore files, settings of git and the files of a repository may hold anything: there is a
//! verdict, and the same one again. The input is the content of each file, with a zero byte between
//! them.
#![no_main]

use files::ignored::{IgnoreRules, User};
use libfuzzer_sys::fuzz_target;
use std::fs;

const FILES: [&str; 9] = [
    ".gitignore",
    ".honeignore",
    "a/.gitignore",
    ".git/config",
    ".git/info/exclude",
    ".git/HEAD",
    ".git/commondir",
    "b/.git",
    ".git/index",
];

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["a/c", "b", ".git/objects", ".git/refs", ".git/info"] {
        fs::create_dir_all(folder.path().join(name)).expect("it is made");
    }
    for (name, content) in FILES.iter().zip(bytes.split(|byte| *byte == 0)) {
        fs::write(folder.path().join(name), content).expect("it is written");
    }
    let user = || User { home: Some(folder.path().to_owned()), ..User::default() };
    for file in ["x.py", "a/x.py", "a/c/x.py", "b/x.py"] {
        let verdict = || IgnoreRules::of(user()).is_ignored(&folder.path().join(file));
        assert_eq!(verdict(), verdict(), "{file}");
    }
});
