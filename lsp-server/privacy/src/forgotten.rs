//! The files and folders that the user has removed with `hone forget`. Hone does not read them by
//! itself any more, in whichever run of the daemon.
//!
//! The list has no names, because a name would reveal what was removed: it has their SHA-256. Each
//! line of the file is one, in hexadecimal digits.

use crate::forget_scope::Scope;
use crate::names::folded;
use anyhow::{Context, Result, anyhow, ensure};
use host::addresses::name_of_file;
use models::file::{sha256_of, write_atomic};
use parking_lot::RwLock;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The number of files and folders that the list holds at most.
const FORGOTTEN_MAX: usize = 100_000;

/// The length of a line: a SHA-256 in hexadecimal digits, and the line break.
const LINE_BYTES: usize = 65;

pub struct ForgottenFiles {
    file: PathBuf,
    /// What the file held when it was read or written last, or why it could not be read.
    hashes: RwLock<Result<BTreeSet<String>, String>>,
}

impl ForgottenFiles {
    pub fn open(file: PathBuf) -> ForgottenFiles {
        let hashes = read(&file).map_err(|error| format!("{error:#}"));
        if let Err(error) = &hashes {
            tracing::warn!("{error}");
        }
        ForgottenFiles { file, hashes: RwLock::new(hashes) }
    }

    /// Adds the files or the folder of a scope. The other scopes name none. The file decides what
    /// is missing in it, because an earlier attempt may have failed.
    ///
    /// # Errors
    /// The file cannot be read, and is left as it is, or it cannot be written.
    pub fn add(&self, scope: &Scope) -> Result<()> {
        let (Scope::File { names } | Scope::Folder { names }) = scope else { return Ok(()) };
        let mut hashes = self.hashes.write();
        let mut wanted = read(&self.file)?;
        let before = wanted.len();
        wanted.extend(names.iter().map(|name| hash(Path::new(name))));
        if wanted.len() > before {
            ensure!(
                wanted.len() <= FORGOTTEN_MAX,
                "{}: full with {FORGOTTEN_MAX} files and folders",
                self.file.display()
            );
            let text: String = wanted.iter().flat_map(|hash| [hash.as_str(), "\n"]).collect();
            write_atomic(&self.file, text.as_bytes())
                .with_context(|| format!("{}: cannot be written", self.file.display()))?;
        }
        *hashes = Ok(wanted);
        Ok(())
    }

    /// # Errors
    /// The list could not be read. The error says why.
    pub fn check(&self) -> Result<()> {
        self.hashes.read().as_ref().map(drop).map_err(|error| anyhow!("{error}"))
    }

    /// Returns true if a file is forgotten, by its own name or with a folder above it. Every file
    /// counts as forgotten while the list cannot be read.
    pub fn holds(&self, path: &Path) -> bool {
        match &*self.hashes.read() {
            Err(_) => true,
            Ok(hashes) => {
                !hashes.is_empty() && path.ancestors().any(|above| hashes.contains(&hash(above)))
            }
        }
    }
}

/// Reads the list. A missing file is an empty one.
///
/// # Errors
/// It cannot be read, or holds anything but hashes.
fn read(file: &Path) -> Result<BTreeSet<String>> {
    let cannot = || format!("{}: cannot be read", file.display());
    let opened = match File::open(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
        opened => opened.with_context(cannot)?,
    };
    let mut bytes = vec![];
    opened
        .take((LINE_BYTES * FORGOTTEN_MAX) as u64 + 1)
        .read_to_end(&mut bytes)
        .with_context(cannot)?;
    let mut hashes = BTreeSet::new();
    for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let hash = line.strip_suffix(b"\n").and_then(|line| str::from_utf8(line).ok());
        let hash = hash.filter(|hash| is_hash(hash)).with_context(|| {
            format!(
                "{}: damaged in line {}; remove that line. Until then nothing is added, and every \
                 file that is not open in an editor counts as forgotten",
                file.display(),
                number + 1
            )
        })?;
        hashes.insert(hash.to_owned());
    }
    ensure!(hashes.len() <= FORGOTTEN_MAX, "{}: it is too long", file.display());
    Ok(hashes)
}

fn is_hash(line: &str) -> bool {
    line.len() + 1 == LINE_BYTES
        && line.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn hash(path: &Path) -> String {
    let name = name_of_file(path);
    let name = match name.trim_end_matches('/') {
        "" => &name,
        name => name,
    };
    sha256_of(folded(name).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use models::file::faults::FailingWrite;

    #[test]
    fn what_is_forgotten_stays_so_in_the_next_run_without_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("forgotten");
        let forgotten = ForgottenFiles::open(file.clone());
        let names = |name: &str| vec![name.to_owned()];
        forgotten.add(&Scope::File { names: names("/p/secret_plan.rs") }).unwrap();
        forgotten.add(&Scope::Folder { names: names("/p/clients/") }).unwrap();
        forgotten.add(&Scope::Since { at_ms: 1 }).unwrap();
        let again = ForgottenFiles::open(file.clone());
        for (path, is_forgotten) in [
            ("/p/secret_plan.rs", true),
            ("/p/clients/acme/a.rs", true),
            ("/p/clients2/a.rs", false),
            ("/p/other.rs", false),
        ] {
            assert_eq!(again.holds(Path::new(path)), is_forgotten, "{path}");
        }
        let text = std::fs::read_to_string(file).unwrap();
        assert!(!text.contains("secret_plan") && text.lines().count() == 2);
    }

    fn file(name: &str) -> Scope {
        Scope::File { names: vec![name.to_owned()] }
    }

    /// What had failed counted as written, because memory had it.
    #[test]
    fn a_name_that_could_not_be_written_is_written_by_the_next_attempt() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("forgotten");
        let forgotten = ForgottenFiles::open(path.clone());
        forgotten.add(&file("/p/first.rs")).unwrap();
        for fails_at in 0..3 {
            let name = format!("/p/{fails_at}.rs");
            let fault = FailingWrite::arm(folder.path(), fails_at);
            let error = forgotten.add(&file(&name)).unwrap_err().to_string();
            assert!(error.contains("forgotten: cannot be written"), "{error}");
            drop(fault);
            forgotten.add(&file(&name)).unwrap();
            assert!(forgotten.holds(Path::new(&name)));
            assert!(ForgottenFiles::open(path.clone()).holds(Path::new(&name)), "{name}");
        }
        assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 4);
    }

    #[test]
    fn a_list_that_cannot_be_read_is_left_alone_and_forgets_every_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("forgotten");
        let whole = format!("{}\n", hash(Path::new("/p/a.rs")));
        let upper = whole.to_uppercase();
        let cut = &whole[..40];
        for damaged in [&b"\xff\xfe a damaged line\n"[..], cut.as_bytes(), upper.as_bytes()] {
            let text = [whole.as_bytes(), damaged].concat();
            std::fs::write(&path, &text).unwrap();
            let forgotten = ForgottenFiles::open(path.clone());
            assert!(forgotten.holds(Path::new("/p/any.rs")) && forgotten.check().is_err());
            let error = forgotten.add(&file("/p/b.rs")).unwrap_err().to_string();
            assert!(error.contains("damaged in line 2; remove that line"), "{error}");
            assert_eq!(std::fs::read(&path).unwrap(), text);
            std::fs::write(&path, &whole).unwrap();
            forgotten.add(&file("/p/b.rs")).unwrap();
            assert!(forgotten.holds(Path::new("/p/a.rs")) && forgotten.holds(Path::new("/p/b.rs")));
            assert!(!forgotten.holds(Path::new("/p/any.rs")));
        }
    }
}
