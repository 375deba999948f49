//! `hone model add`: takes a model's file from this disk, where there is no network.

use anyhow::{Context, Result, bail};
use models::file;
use models::manifest::{Catalogue, Manifest};
use models::store::Store;
use std::fs;
use std::path::{Path, PathBuf};

/// Copies the file into the models folder, if it is one of the known models. Its size and checksum
/// say which one.
pub fn add<'a>(
    store: &Store,
    catalogue: &'a Catalogue,
    from: &Path,
) -> Result<(&'a Manifest, PathBuf)> {
    let manifest = recognise(store, catalogue, from)?;
    let to = store.path(manifest);
    if fs::canonicalize(from).ok() != fs::canonicalize(&to).ok() {
        copy(from, &to)?;
    }
    // It compares the checksum once more, of what has arrived, and notes it.
    Ok((manifest, store.verified(manifest)?))
}

fn recognise<'a>(store: &Store, catalogue: &'a Catalogue, from: &Path) -> Result<&'a Manifest> {
    let bytes = fs::metadata(from).with_context(|| from.display().to_string())?.len();
    let is_of_size = |manifest: &&Manifest| manifest.is_pinned() && manifest.bytes == bytes;
    let of_size: Vec<&Manifest> = catalogue.iter().filter(is_of_size).collect();
    let place = from.display();
    if of_size.is_empty() {
        bail!(
            "{place}: no known model has {bytes} bytes. Of some models of `hone model list` the \
             size is known only after `hone model pull`; put a model of your own into {} with a \
             manifest",
            store.dir().display()
        );
    }
    let sha256 = file::sha256(from).with_context(|| place.to_string())?;
    let found = of_size.iter().find(|manifest| manifest.sha256 == sha256);
    found.copied().with_context(|| {
        let names: Vec<&str> = of_size.iter().map(|manifest| manifest.name.as_str()).collect();
        format!(
            "{place}: it has the size of {} and another checksum, so it is damaged or another \
             file; copy it once more",
            names.join(" and ")
        )
    })
}

/// Nobody sees half a file: the name appears with the whole.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let unfinished = file::with_suffix(to, ".adding");
    let copied = fs::copy(from, &unfinished).and_then(|_| file::publish(&unfinished, to));
    copied.with_context(|| {
        // What has been copied of it is of no use.
        let _ = fs::remove_file(&unfinished);
        format!("cannot copy {} to {}", from.display(), to.display())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// A models folder that knows a model of seven bytes.
    fn folder() -> (TempDir, Store, Catalogue) {
        let folder = TempDir::new().unwrap();
        let sha256 = file::sha256_of(b"weights");
        let manifest = format!(
            "name = \"tiny\"\narchitecture = \"llama\"\ntemplate = \"prefix-only\"\n\
             context = 64\nlicence = \"MIT\"\nfile = \"tiny.gguf\"\nbytes = 7\n\
             sha256 = \"{sha256}\"\n"
        );
        fs::write(folder.path().join("tiny.toml"), manifest).unwrap();
        let catalogue = Catalogue::load(folder.path()).unwrap();
        let store = Store::new(folder.path());
        (folder, store, catalogue)
    }

    #[test]
    fn a_file_is_recognised_by_its_checksum_and_copied() {
        let (_folder, store, catalogue) = folder();
        let elsewhere = TempDir::new().unwrap();
        let file = elsewhere.path().join("download (1).gguf");
        fs::write(&file, "weights").unwrap();
        let (manifest, path) = add(&store, &catalogue, &file).unwrap();
        assert_eq!(manifest.name, "tiny");
        assert_eq!(fs::read(&path).unwrap(), b"weights");
        assert!(file.exists(), "the user's own file stays");
        // The file that lies in its place already is left as it is.
        assert_eq!(add(&store, &catalogue, &path).unwrap().1, path);
    }

    #[test]
    fn a_file_that_is_no_known_model_is_named_with_what_to_do() {
        let (_folder, store, catalogue) = folder();
        let elsewhere = TempDir::new().unwrap();
        let file = elsewhere.path().join("a.gguf");
        let error = |text: &str| {
            fs::write(&file, text).unwrap();
            format!("{:#}", add(&store, &catalogue, &file).unwrap_err())
        };
        assert!(error("too long").contains("no known model has 8 bytes"), "{}", error("too long"));
        let wrong = error("weighty");
        assert!(wrong.contains("the size of tiny and another checksum"), "{wrong}");
        assert!(!store.dir().join("tiny.gguf").exists());
        fs::remove_file(&file).unwrap();
        let gone = format!("{:#}", add(&store, &catalogue, &file).unwrap_err());
        assert!(gone.contains("a.gguf"), "{gone}");
    }
}
