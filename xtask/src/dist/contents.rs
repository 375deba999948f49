//! The contents of every package of one target: the programs, the libraries next to them, and
//! the texts that must go with them. Each format only decides where they lie.

use super::target::Target;
use crate::files;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;

pub const PROGRAMS: [&str; 3] = ["hone", "hone-learner", "hone-rehearse"];

/// The folder of the libraries, seen from that above the programs. The server looks for
/// them there.
pub const LIBRARIES: &str = "lib/hone";

/// Where the template for JetBrains' editors lies, seen from there too, and in this repository.
pub const TEMPLATE: &str = "share/hone/jetbrains";
const TEMPLATE_SOURCE: &str = "lsp-server/src/cli/setup/jetbrains";

/// Our own licences.
const LICENCES: [&str; 3] = ["LICENSE", "LICENSE-APACHE", "LICENSE-MIT"];

/// The licences of others.
pub const NOTICES: &str = "THIRD-PARTY.txt";

#[derive(Clone, Debug)]
pub struct File {
    pub name: String,
    pub bytes: Vec<u8>,
}

impl File {
    pub fn text(name: &str, text: String) -> File {
        File { name: name.to_owned(), bytes: text.into_bytes() }
    }
}

#[derive(Debug)]
pub struct Contents {
    pub programs: Vec<File>,
    pub libraries: Vec<File>,
    /// The template for JetBrains' editors.
    pub template: Vec<File>,
    /// Our licences, and those of others.
    pub licences: Vec<File>,
    pub readme: File,
    pub changelog: File,
}

/// All that the packages of a release share.
pub struct Release {
    pub version: String,
    pub target: Target,
    /// The time that files in packages have, in seconds since 1970: the time of the commit, so that
    /// the same commit gives the same bytes.
    pub time: u64,
}

impl Contents {
    /// Reads the programs of a folder, and the libraries of `../lib/hone` next to it, as they
    /// lie in an unpacked archive. The folder of a build has no such libraries.
    pub fn read(root: &Path, programs: &Path, target: Target, notices: String) -> Result<Contents> {
        let of = |name: &str| read(&root.join(name), name.to_owned());
        let program = |name: &&str| {
            let name = target.program(name);
            read(&programs.join(&name), name)
        };
        let libraries = programs.parent().map(|folder| folder.join(LIBRARIES));
        let mut licences = LICENCES.iter().map(|name| of(name)).collect::<Result<Vec<_>>>()?;
        licences.push(File::text(NOTICES, notices));
        Ok(Contents {
            programs: PROGRAMS.iter().map(program).collect::<Result<_>>()?,
            libraries: libraries.map_or(Ok(vec![]), |folder| read_all(&folder))?,
            template: read_all(&root.join(TEMPLATE_SOURCE))?,
            licences,
            readme: of("README.md")?,
            changelog: of("CHANGELOG.md")?,
        })
    }

    pub fn bytes(&self) -> usize {
        self.programs.iter().chain(&self.libraries).map(|file| file.bytes.len()).sum()
    }
}

fn read(path: &Path, name: String) -> Result<File> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    ensure!(!bytes.is_empty(), "{}: the file is empty", path.display());
    Ok(File { name, bytes })
}

fn read_all(folder: &Path) -> Result<Vec<File>> {
    files::list(folder)?.iter().map(|path| read(path, files::name(path))).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Small contents, for the tests of the package formats.
    pub fn sample() -> (Release, Contents) {
        let file = |name: &str| File { name: name.to_owned(), bytes: name.as_bytes().to_vec() };
        let contents = Contents {
            programs: PROGRAMS.map(file).to_vec(),
            libraries: vec![file("libllama.so.0")],
            template: vec![file("template.json")],
            licences: vec![file("LICENSE"), file("LICENSE-MIT"), file(NOTICES)],
            readme: file("README.md"),
            changelog: file("CHANGELOG.md"),
        };
        let release =
            Release { version: "1.2.3".to_owned(), target: Target::LinuxX64, time: 1_700_000_000 };
        (release, contents)
    }

    #[test]
    fn a_missing_or_empty_program_is_named() {
        let folder = tempfile::TempDir::new().unwrap();
        let root = folder.path();
        for name in LICENCES.iter().chain(&["README.md", "CHANGELOG.md"]) {
            fs::write(root.join(name), "text").unwrap();
        }
        let programs = root.join("bin");
        fs::create_dir_all(&programs).unwrap();
        fs::write(programs.join("hone.exe"), "MZ").unwrap();
        fs::write(programs.join("hone-learner.exe"), "").unwrap();
        let read = || Contents::read(root, &programs, Target::Win32X64, "notices".to_owned());
        let error = format!("{:#}", read().unwrap_err());
        assert!(error.contains("hone-learner.exe: the file is empty"), "{error}");
        fs::write(programs.join("hone-learner.exe"), "MZ").unwrap();
        let error = format!("{:#}", read().unwrap_err());
        assert!(error.contains("hone-rehearse.exe"), "{error}");
        fs::write(programs.join("hone-rehearse.exe"), "MZ").unwrap();
        fs::create_dir_all(root.join(LIBRARIES)).unwrap();
        fs::write(root.join(LIBRARIES).join("b.so"), "b").unwrap();
        fs::write(root.join(LIBRARIES).join("a.so"), "a").unwrap();
        let contents = read().unwrap();
        let names: Vec<&str> = contents.libraries.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["a.so", "b.so"]);
        assert_eq!(contents.bytes(), 8);
    }
}
