//! The files and folders that the user has forgotten. They are not indexed, in whichever run of the
//! daemon.
//!
//! The list has no names, because a name would tell what was forgotten: it has their SHA-256. Each
//! line of the file is one, in hexadecimal digits.

use crate::addresses::name_of_file;
use crate::privacy::forget_scope::Scope;
use crate::workspace::limits::FORGOTTEN_MAX;
use anyhow::{Context, Result, ensure};
use models::file::{sha256_of, write_atomic};
use parking_lot::RwLock;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub struct Forgotten {
    file: PathBuf,
    hashes: RwLock<BTreeSet<String>>,
}

impl Forgotten {
    pub fn open(file: PathBuf) -> Forgotten {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let hashes = text.lines().take(FORGOTTEN_MAX).map(str::to_owned).collect();
        Forgotten { file, hashes: RwLock::new(hashes) }
    }

    /// Adds the files or the folder of a scope. The other scopes name none.
    ///
    /// # Errors
    /// The file cannot be written. Until this process ends, they count as forgotten all the same.
    pub fn add(&self, scope: &Scope) -> Result<()> {
        let (Scope::File { names } | Scope::Folder { names }) = scope else { return Ok(()) };
        let mut hashes = self.hashes.write();
        let before = hashes.len();
        hashes.extend(names.iter().map(|name| hash(Path::new(name))));
        if hashes.len() == before {
            return Ok(());
        }
        ensure!(
            hashes.len() <= FORGOTTEN_MAX,
            "{}: full with {FORGOTTEN_MAX} files and folders",
            self.file.display()
        );
        let text: String = hashes.iter().flat_map(|hash| [hash.as_str(), "\n"]).collect();
        write_atomic(&self.file, text.as_bytes())
            .with_context(|| format!("{}: cannot be written", self.file.display()))
    }

    /// Whether a file is forgotten, by its own name or with a folder above it.
    pub fn holds(&self, path: &Path) -> bool {
        let hashes = self.hashes.read();
        !hashes.is_empty() && path.ancestors().any(|above| hashes.contains(&hash(above)))
    }
}

fn hash(path: &Path) -> String {
    let name = name_of_file(path);
    let name = match name.trim_end_matches('/') {
        "" => &name,
        name => name,
    };
    sha256_of(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_forgotten_stays_so_in_the_next_run_without_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("forgotten");
        let forgotten = Forgotten::open(file.clone());
        let names = |name: &str| vec![name.to_owned()];
        forgotten.add(&Scope::File { names: names("/p/secret_plan.rs") }).unwrap();
        forgotten.add(&Scope::Folder { names: names("/p/clients/") }).unwrap();
        forgotten.add(&Scope::Since { at_ms: 1 }).unwrap();
        let again = Forgotten::open(file.clone());
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
}
