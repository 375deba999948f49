//! Checks a model file that has no manifest, as in `--model FILE.gguf`.

use crate::architecture;
use crate::experts::Experts;
use crate::file;
use crate::fim::{self, FimTemplate};
use crate::fim_tokens;
use crate::gguf::{Gguf, GgufError};
use crate::vocab::{Vocab, VocabError};
use std::io;
use std::path::{Path, PathBuf};

/// A model file that can be served, and how.
#[derive(Debug)]
pub struct InspectedModel {
    pub path: PathBuf,
    pub arch: String,
    pub template: &'static FimTemplate,
    /// Lower-case hex.
    pub sha256: String,
}

#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    #[error(transparent)]
    Gguf(#[from] GgufError),
    #[error(transparent)]
    Vocab(#[from] VocabError),
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error(
        "{}: architecture {arch:?} is not supported; use a model of one of {}",
        path.display(),
        architecture::served_names()
    )]
    Architecture { path: PathBuf, arch: String },
    #[error("{}: {what}", path.display())]
    Template { path: PathBuf, what: String },
    #[error("{}: {what}; use another model", path.display())]
    Experts { path: PathBuf, what: String },
}

/// Checks a file, and reads all of it once. `template` names its FIM template. With `None`
/// it is the one whose tokens are in the vocabulary.
///
/// # Errors
/// The file cannot be served. The message is one line that names the file and the fix.
pub fn inspect(path: &Path, template: Option<&str>) -> Result<InspectedModel, InspectError> {
    let gguf = Gguf::open(path)?;
    let arch = gguf.architecture().unwrap_or_default().to_owned();
    if !architecture::is_served(&arch) {
        return Err(InspectError::Architecture { path: path.to_owned(), arch });
    }
    Experts::of(&gguf).map_err(|what| InspectError::Experts { path: path.to_owned(), what })?;
    let vocab = Vocab::from_gguf(&gguf)?;
    let template_error = |what| InspectError::Template { path: path.to_owned(), what };
    let template = match template {
        Some(name) => fim::template(name).map_err(|error| template_error(error.to_string()))?,
        None => fim_tokens::detect(&vocab).ok_or_else(|| {
            let known: Vec<_> = fim::templates().iter().map(|known| known.name).collect();
            template_error(format!(
                "its vocabulary has the FIM tokens of no known template; \
                 name one of {} to serve it all the same",
                known.join(", ")
            ))
        })?,
    };
    template.resolve(&vocab).map_err(|error| template_error(error.to_string()))?;
    let sha256 =
        file::sha256(path).map_err(|error| InspectError::Io { path: path.to_owned(), error })?;
    Ok(InspectedModel { path: path.to_owned(), arch, template, sha256 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gguf_write::Builder;
    use crate::vocab::tests::vocabulary_gguf;

    const QWEN: &[(&str, u32)] = &[
        ("<|endoftext|>", 3),
        ("<|fim_prefix|>", 3),
        ("<|fim_middle|>", 3),
        ("<|fim_suffix|>", 3),
    ];

    fn inspect_bytes(bytes: &[u8], template: Option<&str>) -> Result<InspectedModel, InspectError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own.gguf");
        std::fs::write(&path, bytes).unwrap();
        inspect(&path, template)
    }

    fn refused(bytes: &[u8], template: Option<&str>) -> String {
        let error = inspect_bytes(bytes, template).unwrap_err().to_string();
        assert!(error.contains("own.gguf") && !error.contains('\n'), "{error}");
        error
    }

    #[test]
    fn the_template_is_found_by_its_tokens() {
        let bytes = vocabulary_gguf(QWEN);
        let model = inspect_bytes(&bytes, None).unwrap();
        assert_eq!((model.arch.as_str(), model.template.name), ("qwen2", "qwen2.5-coder"));
        assert_eq!(model.sha256, file::sha256_of(&bytes));
    }

    #[test]
    fn a_model_without_fim_tokens_needs_a_named_template() {
        let bytes = vocabulary_gguf(&QWEN[..1]);
        let error = refused(&bytes, None);
        assert!(error.contains("name one of qwen2.5-coder, "), "{error}");
        assert!(error.contains(", prefix-only to serve it"), "{error}");
        assert!(refused(&bytes, Some("qwen2.5-coder")).contains("no token <|fim_prefix|>"));
        assert!(refused(&bytes, Some("guess")).contains("unknown FIM template"));
        assert_eq!(
            inspect_bytes(&bytes, Some("prefix-only")).unwrap().template.name,
            "prefix-only"
        );
    }

    #[test]
    fn an_unknown_architecture_is_named_with_the_known_ones() {
        let mut builder = Builder::default();
        builder.string("general.architecture", "mamba");
        let error = refused(&builder.finish(), None);
        assert!(
            error.contains(r#""mamba" is not supported; use a model of one of qwen2, llama, "#)
        );
    }

    /// llama.cpp would end the process.
    #[test]
    fn experts_that_cannot_be_are_refused() {
        let mut builder = Builder::default();
        builder.string("general.architecture", "qwen3moe");
        builder.u32("qwen3moe.expert_count", 8);
        builder.u32("qwen3moe.expert_used_count", 9);
        let error = refused(&builder.finish(), None);
        assert!(error.contains("use 9 of 8 experts, which cannot be; use another"), "{error}");
    }

    #[test]
    fn a_truncated_file_is_refused() {
        let bytes = vocabulary_gguf(QWEN);
        assert!(refused(&bytes[..bytes.len() / 2], None).contains("truncated"));
        assert!(refused(b"", None).contains("not a GGUF file"));
    }
}
