//! Fill-in-the-middle templates, named explicitly.
//!
//! A manifest names its template; an unknown name is an error, because a model
//! given another family's markers answers fluently and wrongly.

use crate::vocab::Vocab;

#[derive(Debug, PartialEq, Eq)]
pub struct FimTemplate {
    pub name: &'static str,
    pub kind: FimKind,
    /// Tokens that end a completion. The first is the model's own end of text;
    /// one that a vocabulary lacks cannot be generated and is passed over.
    pub stop: &'static [&'static str],
}

#[derive(Debug, PartialEq, Eq)]
pub enum FimKind {
    /// Special tokens around the text before and after the cursor.
    PrefixSuffixMiddle { prefix: &'static str, suffix: &'static str, middle: &'static str },
    /// The model was never trained to fill in: it continues the text before the cursor.
    PrefixOnly,
}

/// Every template; a model family is added here, with a manifest that names it.
static TEMPLATES: &[FimTemplate] = &[
    // Qwen2.5-Coder Technical Report (arXiv:2409.12186), section 3.1 and table 1.
    FimTemplate {
        name: "qwen2.5-coder",
        kind: FimKind::PrefixSuffixMiddle {
            prefix: "<|fim_prefix|>",
            suffix: "<|fim_suffix|>",
            middle: "<|fim_middle|>",
        },
        stop: &[
            "<|endoftext|>",
            "<|im_end|>",
            "<|fim_prefix|>",
            "<|fim_suffix|>",
            "<|fim_middle|>",
            "<|fim_pad|>",
            "<|repo_name|>",
            "<|file_sep|>",
        ],
    },
    FimTemplate {
        name: "prefix-only",
        kind: FimKind::PrefixOnly,
        stop: &[
            "<|endoftext|>",
            "<|im_end|>",
            "<|im_start|>",
            // Borders between files in SmolLM2's and StarCoder's code corpora.
            "<repo_name>",
            "<file_sep>",
            "<filename>",
        ],
    },
];

#[derive(Debug, thiserror::Error)]
#[error("unknown FIM template {name:?}; known: {}", known_names())]
pub struct UnknownTemplate {
    name: String,
}

#[derive(Debug, thiserror::Error)]
#[error(
    "the vocabulary has no token {token}, which FIM template {template:?} needs; choose the template this model was trained with (known: {})",
    known_names()
)]
pub struct MissingToken {
    template: &'static str,
    token: &'static str,
}

/// A template's tokens in one vocabulary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FimTokens {
    /// `None` for [`FimKind::PrefixOnly`].
    pub markers: Option<FimMarkers>,
    /// Never empty.
    pub stop: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FimMarkers {
    pub prefix: u32,
    pub suffix: u32,
    pub middle: u32,
}

pub fn templates() -> &'static [FimTemplate] {
    TEMPLATES
}

pub fn template(name: &str) -> Result<&'static FimTemplate, UnknownTemplate> {
    TEMPLATES
        .iter()
        .find(|template| template.name == name)
        .ok_or_else(|| UnknownTemplate { name: name.to_owned() })
}

/// The one template all of whose markers this vocabulary has, for a model file
/// that comes without a manifest. `None` where none or several fit: never a
/// guess, and never [`FimKind::PrefixOnly`], which would fit everything.
pub fn detect(vocab: &Vocab) -> Option<&'static FimTemplate> {
    let mut fitting = TEMPLATES
        .iter()
        .filter(|template| template.kind != FimKind::PrefixOnly && template.resolve(vocab).is_ok());
    fitting.next().filter(|_| fitting.next().is_none())
}

impl FimTemplate {
    /// # Errors
    /// Names the token that the vocabulary lacks.
    pub fn resolve(&self, vocab: &Vocab) -> Result<FimTokens, MissingToken> {
        let id = |token: &'static str| {
            vocab.id_of(token).ok_or(MissingToken { template: self.name, token })
        };
        let markers = match self.kind {
            FimKind::PrefixOnly => None,
            FimKind::PrefixSuffixMiddle { prefix, suffix, middle } => {
                Some(FimMarkers { prefix: id(prefix)?, suffix: id(suffix)?, middle: id(middle)? })
            }
        };
        if let Some(end_of_text) = self.stop.first() {
            id(end_of_text)?;
        }
        let stop = self.stop.iter().filter_map(|token| vocab.id_of(token)).collect();
        Ok(FimTokens { markers, stop })
    }

    /// Texts of every special token this template knows; none of them is ever shown.
    pub(crate) fn special_texts(&self) -> impl Iterator<Item = &'static str> {
        let markers = match self.kind {
            FimKind::PrefixOnly => [""; 3],
            FimKind::PrefixSuffixMiddle { prefix, suffix, middle } => [prefix, suffix, middle],
        };
        markers.into_iter().filter(|text| !text.is_empty()).chain(self.stop.iter().copied())
    }
}

fn known_names() -> String {
    TEMPLATES.iter().map(|template| template.name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert_eq!(error, r#"unknown FIM template "starcoder"; known: qwen2.5-coder, prefix-only"#);
    }

    #[test]
    fn every_template_is_found_by_its_own_name_and_stops_at_its_own_markers() {
        for known in templates() {
            assert_eq!(template(known.name).unwrap(), known);
            assert!(!known.stop.is_empty());
            if let FimKind::PrefixSuffixMiddle { prefix, suffix, middle } = known.kind {
                for marker in [prefix, suffix, middle] {
                    assert!(known.stop.contains(&marker), "{}: {marker}", known.name);
                }
            }
        }
    }

    #[test]
    fn qwen_tokens_resolve() {
        let tokens = template("qwen2.5-coder").unwrap().resolve(&vocab(QWEN)).unwrap();
        assert_eq!(tokens.markers, Some(FimMarkers { prefix: 2, suffix: 4, middle: 3 }));
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
        assert_eq!(tokens, FimTokens { markers: None, stop: vec![1] });
    }

    #[test]
    fn detection_goes_by_tokens_and_never_picks_prefix_only() {
        assert_eq!(detect(&vocab(QWEN)).map(|t| t.name), Some("qwen2.5-coder"));
        assert_eq!(detect(&vocab(&QWEN[..2])), None);
    }
}
