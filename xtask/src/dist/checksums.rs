//! `SHA256SUMS`, in the form that `sha256sum --check` reads.

use crate::files;
use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const NAME: &str = "SHA256SUMS";

/// The checksum of each package in a folder, by its file name.
pub type Sums = BTreeMap<String, String>;

/// Writes the checksums of the packages in `folder`, and returns them.
pub fn write(folder: &Path) -> Result<Sums> {
    let sums = of(folder)?;
    let mut text = String::new();
    for (name, sum) in &sums {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{sum}  {name}");
    }
    let path = folder.join(NAME);
    fs::write(&path, text).with_context(|| path.display().to_string())?;
    Ok(sums)
}

fn of(folder: &Path) -> Result<Sums> {
    let mut sums = Sums::new();
    for path in files::list(folder)? {
        let name = files::name(&path);
        if name != NAME && path.is_file() {
            let bytes = fs::read(path).with_context(|| name.clone())?;
            let digest = Sha256::digest(&bytes);
            sums.insert(name, digest.iter().map(|byte| format!("{byte:02x}")).collect());
        }
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_are_those_of_sha256sum() {
        let folder = tempfile::TempDir::new().unwrap();
        fs::write(folder.path().join("a.deb"), "hone").unwrap();
        fs::create_dir(folder.path().join("packaging")).unwrap();
        for _ in 0..2 {
            write(folder.path()).unwrap();
        }
        let text = fs::read_to_string(folder.path().join(NAME)).unwrap();
        let sum = "6528f84b7b8653d76da038054bd4338080d5f616981c99b5bc602a17db492b41";
        assert_eq!(text, format!("{sum}  a.deb\n"));
    }
}
