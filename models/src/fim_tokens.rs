//! The tokens of a FIM template in the vocabulary of one model.

use crate::fim::{FileTexts, FimKind, FimOrder, FimTemplate, MarkerTexts, known_names, templates};
use crate::vocab::Vocab;

#[derive(Debug, thiserror::Error)]
#[error(
    "the vocabulary has no token {token}, which FIM template {template:?} needs; \
     choose the template this model was trained with (known: {})",
    known_names()
)]
pub struct MissingToken {
    template: &'static str,
    token: &'static str,
}

/// The tokens of a template in one vocabulary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FimTokens {
    /// `None` for [`FimKind::PrefixOnly`].
    pub markers: Option<FimMarkers>,
    /// `None` if the family or the vocabulary has none.
    pub files: Option<FileMarkers>,
    /// Never empty.
    pub stop: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FimMarkers {
    pub prefix: u32,
    pub suffix: u32,
    pub middle: Option<u32>,
    pub order: FimOrder,
}

/// The tokens of [`FileTexts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMarkers {
    pub repo: Option<u32>,
    pub file: u32,
}

impl FimMarkers {
    /// The tokens of a prompt. The completion follows them, beginning with the part of it
    /// that stands in the document already, if there is one.
    pub fn around(&self, prefix: &[u32], suffix: &[u32]) -> Vec<u32> {
        let (prefix, suffix) =
            ([&[self.prefix], prefix].concat(), [&[self.suffix], suffix].concat());
        let mut tokens = match self.order {
            FimOrder::PrefixFirst => [prefix, suffix].concat(),
            FimOrder::SuffixFirst => [suffix, prefix].concat(),
        };
        tokens.extend(self.middle);
        tokens
    }
}

/// The one template whose markers are all in this vocabulary, for a model file without a
/// manifest. `None` if no template fits, or several. It does not guess, and it never
/// returns [`FimKind::PrefixOnly`], which would fit everything.
pub fn detect(vocab: &Vocab) -> Option<&'static FimTemplate> {
    let mut fitting = templates()
        .iter()
        .filter(|template| template.kind != FimKind::PrefixOnly && template.resolve(vocab).is_ok());
    fitting.next().filter(|_| fitting.next().is_none())
}

impl FimTemplate {
    /// # Errors
    /// The vocabulary lacks a token, which the message names.
    pub fn resolve(&self, vocab: &Vocab) -> Result<FimTokens, MissingToken> {
        let id = |token: &'static str| {
            vocab.id_of(token).ok_or(MissingToken { template: self.name, token })
        };
        let markers = match self.kind {
            FimKind::PrefixOnly => None,
            FimKind::Markers(MarkerTexts { prefix, suffix, middle, order }) => Some(FimMarkers {
                prefix: id(prefix)?,
                suffix: id(suffix)?,
                middle: middle.map(id).transpose()?,
                order,
            }),
        };
        if let Some(end_of_text) = self.stop.first() {
            id(end_of_text)?;
        }
        let files = self.files.and_then(|FileTexts { repo, file }| {
            let repo = match repo {
                Some(repo) => Some(vocab.id_of(repo)?),
                None => None,
            };
            Some(FileMarkers { repo, file: vocab.id_of(file)? })
        });
        let stop = self.stop.iter().filter_map(|token| vocab.id_of(token)).collect();
        Ok(FimTokens { markers, files, stop })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fim::template;
    use crate::vocab::tests::vocab;

    const QWEN: &[(&str, u32)] = &[
        ("a", 1),
        ("<|endoftext|>", 3),
        ("<|fim_prefix|>", 3),
        ("<|fim_middle|>", 3),
        ("<|fim_suffix|>", 3),
    ];

    #[test]
    fn an_unknown_template_is_an_error_that_lists_the_known_ones() {
        let error = template("starcoder").unwrap_err().to_string();
        assert!(error.starts_with(r#"unknown FIM template "starcoder"; known: qwen2.5-coder, "#));
        assert!(error.ends_with("mellum, prefix-only"), "{error}");
    }

    /// A vocabulary of two ordinary tokens and every special token of a template.
    fn vocab_of(known: &FimTemplate) -> crate::vocab::Vocab {
        let mut texts: Vec<&str> = known.special_texts().collect();
        texts.sort_unstable();
        texts.dedup();
        let special = texts.into_iter().map(|text| (text, 3));
        vocab(&[("a", 1), ("b", 1)].into_iter().chain(special).collect::<Vec<_>>())
    }

    #[test]
    fn every_template_stops_at_each_of_its_special_tokens_and_shows_none() {
        for known in templates() {
            assert_eq!(template(known.name).unwrap(), known);
            let vocab = vocab_of(known);
            let tokens = known.resolve(&vocab).unwrap();
            for text in known.special_texts() {
                let id = vocab.id_of(text).unwrap();
                assert!(tokens.stop.contains(&id), "{} does not stop at {text}", known.name);
                assert_eq!(vocab.piece(id), b"", "{} would show {text}", known.name);
            }
        }
    }

    /// Each prompt is as the family's model card shows it, with `a` before the cursor and
    /// `b` after it.
    #[test]
    fn every_template_lays_a_prompt_out_as_its_family_was_trained() {
        let cases = [
            ("qwen2.5-coder", "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>"),
            ("starcoder2", "<fim_prefix>a<fim_suffix>b<fim_middle>"),
            ("deepseek-coder", "<｜fim▁begin｜>a<｜fim▁hole｜>b<｜fim▁end｜>"),
            ("codegemma", "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>"),
            ("granite-code", "<fim_prefix>a<fim_suffix>b<fim_middle>"),
            ("granite-4", "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>"),
            ("codestral", "[SUFFIX]b[PREFIX]a"),
            ("seed-coder", "<[fim-suffix]>b<[fim-prefix]>a<[fim-middle]>"),
            ("mellum", "<fim_suffix>b<fim_prefix>a<fim_middle>"),
        ];
        for (name, expected) in cases {
            let known = template(name).unwrap();
            let vocab = vocab_of(known);
            let id = |text: &str| vocab.id_of(text).unwrap();
            let markers = known.resolve(&vocab).unwrap().markers.unwrap();
            let texts: Vec<&str> = known.special_texts().chain(["a", "b"]).collect();
            let text_of = |token: u32| *texts.iter().find(|text| id(text) == token).unwrap();
            let prompt: String =
                markers.around(&[id("a")], &[id("b")]).into_iter().map(text_of).collect();
            assert_eq!(prompt, expected, "{name}");
        }
        let with_markers = templates().iter().filter(|known| known.kind != FimKind::PrefixOnly);
        assert_eq!(with_markers.count(), cases.len(), "each template is one of the cases");
    }

    #[test]
    fn families_that_read_several_files_have_their_tokens() {
        let cases = [
            ("qwen2.5-coder", Some("<|repo_name|>"), "<|file_sep|>"),
            ("starcoder2", Some("<repo_name>"), "<file_sep>"),
            ("granite-code", Some("<reponame>"), "<filename>"),
            ("granite-4", Some("<|reponame|>"), "<|filename|>"),
            ("mellum", None, "<filename>"),
        ];
        for (name, repo, file) in cases {
            let known = template(name).unwrap();
            let vocab = vocab_of(known);
            let repo = repo.map(|text| vocab.id_of(text).unwrap());
            let expected = FileMarkers { repo, file: vocab.id_of(file).unwrap() };
            assert_eq!(known.resolve(&vocab).unwrap().files, Some(expected), "{name}");
        }
        let several = templates().iter().filter(|known| known.files.is_some());
        assert_eq!(several.count(), cases.len(), "each template is one of the cases");
    }

    #[test]
    fn qwen_tokens_resolve() {
        let tokens = template("qwen2.5-coder").unwrap().resolve(&vocab(QWEN)).unwrap();
        let order = FimOrder::PrefixFirst;
        let markers = FimMarkers { prefix: 2, suffix: 4, middle: Some(3), order };
        assert_eq!(tokens.markers, Some(markers));
        assert_eq!(tokens.files, None, "this vocabulary has no token for a file");
        assert_eq!(tokens.stop, [1, 2, 4, 3]);
    }

    #[test]
    fn a_missing_token_is_named() {
        let no_suffix = vocab(&QWEN[..4]);
        let error = template("qwen2.5-coder").unwrap().resolve(&no_suffix).unwrap_err();
        assert!(error.to_string().contains("no token <|fim_suffix|>"), "{error}");
    }

    #[test]
    fn prefix_only_has_no_markers() {
        let tokens = template("prefix-only").unwrap().resolve(&vocab(&QWEN[..2])).unwrap();
        assert_eq!(tokens, FimTokens { markers: None, files: None, stop: vec![1] });
    }

    #[test]
    fn detection_goes_by_tokens_and_never_picks_prefix_only() {
        assert_eq!(detect(&vocab(QWEN)).map(|t| t.name), Some("qwen2.5-coder"));
        assert_eq!(detect(&vocab(&QWEN[..2])), None);
        let fits_several = vocab_of(template("mellum").unwrap());
        assert_eq!(detect(&fits_several), None, "StarCoder2 has these tokens in another order");
    }
}
