//! Fill-in-the-middle (FIM) templates: how each model family wants its prompts laid out.
//!
//! A manifest names its template, and an unknown name is an error, because a model that
//! is given another family's markers answers fluently and wrongly.

#[derive(Debug, PartialEq, Eq)]
pub struct FimTemplate {
    pub name: &'static str,
    pub kind: FimKind,
    /// The way in which a prompt of several files is laid out. `None` if the family was not trained
    /// on several files, or not with special tokens.
    pub files: Option<FileTexts>,
    /// Tokens that end a completion. The first is the model's own end of text. A token
    /// that a vocabulary lacks cannot be generated, so it is left out.
    pub stop: &'static [&'static str],
}

#[derive(Debug, PartialEq, Eq)]
pub enum FimKind {
    /// Special tokens around the text before and after the cursor.
    Markers(MarkerTexts),
    /// The model was never trained to fill in. It continues the text before the cursor.
    PrefixOnly,
}

#[derive(Debug, PartialEq, Eq)]
pub struct MarkerTexts {
    pub prefix: &'static str,
    pub suffix: &'static str,
    /// `None` if the completion follows right behind the prefix.
    pub middle: Option<&'static str>,
    pub order: FimOrder,
}

/// Special tokens of a prompt of several files. Such a prompt is `{repo}name`, then for
/// each file `{file}path` and its text, each on a line of its own. The last file is the
/// one that is filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileTexts {
    /// Stands before the repository's name, if the family has such a token.
    pub repo: Option<&'static str>,
    pub file: &'static str,
}

/// The order of the two texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FimOrder {
    /// Prefix, suffix, middle (PSM).
    PrefixFirst,
    /// Suffix, prefix, middle (SPM).
    SuffixFirst,
}

const QWEN_CODER: FimKind = FimKind::Markers(MarkerTexts {
    prefix: "<|fim_prefix|>",
    suffix: "<|fim_suffix|>",
    middle: Some("<|fim_middle|>"),
    order: FimOrder::PrefixFirst,
});

/// The markers of BigCode's tokenizer and of those made after it.
const STARCODER: MarkerTexts = MarkerTexts {
    prefix: "<fim_prefix>",
    suffix: "<fim_suffix>",
    middle: Some("<fim_middle>"),
    order: FimOrder::PrefixFirst,
};

/// Every template. A model family is added here, and its manifest names the template.
static TEMPLATES: &[FimTemplate] = &[
    // Qwen2.5-Coder Technical Report (arXiv:2409.12186), section 3.1 and table 1.
    // Qwen3-Coder has the same tokens.
    FimTemplate {
        name: "qwen2.5-coder",
        kind: QWEN_CODER,
        files: Some(FileTexts { repo: Some("<|repo_name|>"), file: "<|file_sep|>" }),
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
    // StarCoder 2 and The Stack v2 (arXiv:2402.19173), section 5.1.
    FimTemplate {
        name: "starcoder2",
        kind: FimKind::Markers(STARCODER),
        files: Some(FileTexts { repo: Some("<repo_name>"), file: "<file_sep>" }),
        stop: &[
            "<|endoftext|>",
            "<fim_prefix>",
            "<fim_suffix>",
            "<fim_middle>",
            "<fim_pad>",
            "<repo_name>",
            "<file_sep>",
        ],
    },
    // DeepSeek-Coder (arXiv:2401.14196), section 3.1.2.
    FimTemplate {
        name: "deepseek-coder",
        kind: FimKind::Markers(MarkerTexts {
            prefix: "<｜fim▁begin｜>",
            suffix: "<｜fim▁hole｜>",
            middle: Some("<｜fim▁end｜>"),
            order: FimOrder::PrefixFirst,
        }),
        files: None,
        stop: &[
            "<｜end▁of▁sentence｜>",
            "<｜begin▁of▁sentence｜>",
            "<｜fim▁begin｜>",
            "<｜fim▁hole｜>",
            "<｜fim▁end｜>",
            "<|EOT|>",
        ],
    },
    // CodeGemma: Open Code Models Based on Gemma (arXiv:2406.11409), section 2.
    FimTemplate {
        name: "codegemma",
        kind: QWEN_CODER,
        files: None,
        stop: &[
            "<eos>",
            "<bos>",
            "<|fim_prefix|>",
            "<|fim_suffix|>",
            "<|fim_middle|>",
            "<|file_separator|>",
        ],
    },
    // Granite Code Models (arXiv:2405.04324): BigCode's tokens.
    FimTemplate {
        name: "granite-code",
        kind: FimKind::Markers(STARCODER),
        files: Some(FileTexts { repo: Some("<reponame>"), file: "<filename>" }),
        stop: &[
            "<|endoftext|>",
            "<fim_prefix>",
            "<fim_suffix>",
            "<fim_middle>",
            "<fim_pad>",
            "<filename>",
            "<reponame>",
        ],
    },
    // Granite 4: the special tokens of its tokenizer.
    FimTemplate {
        name: "granite-4",
        kind: QWEN_CODER,
        files: Some(FileTexts { repo: Some("<|reponame|>"), file: "<|filename|>" }),
        stop: &[
            "<|end_of_text|>",
            "<|fim_prefix|>",
            "<|fim_suffix|>",
            "<|fim_middle|>",
            "<|fim_pad|>",
            "<|filename|>",
            "<|reponame|>",
        ],
    },
    // Codestral 22B: the FIM encoding of mistral-common.
    FimTemplate {
        name: "codestral",
        kind: FimKind::Markers(MarkerTexts {
            prefix: "[PREFIX]",
            suffix: "[SUFFIX]",
            middle: None,
            order: FimOrder::SuffixFirst,
        }),
        files: None,
        stop: &["</s>", "<s>", "[PREFIX]", "[SUFFIX]", "[MIDDLE]"],
    },
    // Seed-Coder (arXiv:2506.03524), the section on fill-in-the-middle.
    FimTemplate {
        name: "seed-coder",
        kind: FimKind::Markers(MarkerTexts {
            prefix: "<[fim-prefix]>",
            suffix: "<[fim-suffix]>",
            middle: Some("<[fim-middle]>"),
            order: FimOrder::SuffixFirst,
        }),
        files: None,
        stop: &[
            "<[end▁of▁sentence]>",
            "<[begin▁of▁sentence]>",
            "<[fim-prefix]>",
            "<[fim-suffix]>",
            "<[fim-middle]>",
        ],
    },
    // JetBrains Mellum (arXiv:2510.05788): BigCode's tokens, the suffix first.
    FimTemplate {
        name: "mellum",
        kind: FimKind::Markers(MarkerTexts { order: FimOrder::SuffixFirst, ..STARCODER }),
        files: Some(FileTexts { repo: None, file: "<filename>" }),
        stop: &[
            "<|endoftext|>",
            "<fim_prefix>",
            "<fim_suffix>",
            "<fim_middle>",
            "<fim_pad>",
            "<filename>",
            "<reponame>",
        ],
    },
    FimTemplate {
        name: "prefix-only",
        kind: FimKind::PrefixOnly,
        files: None,
        stop: &[
            "<|endoftext|>",
            "<|im_end|>",
            "<|im_start|>",
            // These stand between files in the code corpora of SmolLM2 and StarCoder.
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

pub fn templates() -> &'static [FimTemplate] {
    TEMPLATES
}

pub fn template(name: &str) -> Result<&'static FimTemplate, UnknownTemplate> {
    TEMPLATES
        .iter()
        .find(|template| template.name == name)
        .ok_or_else(|| UnknownTemplate { name: name.to_owned() })
}

impl FimTemplate {
    /// The texts of every special token that this template knows. None is ever shown.
    pub(crate) fn special_texts(&self) -> impl Iterator<Item = &'static str> {
        let markers = match self.kind {
            FimKind::PrefixOnly => [None; 3],
            FimKind::Markers(MarkerTexts { prefix, suffix, middle, .. }) => {
                [Some(prefix), Some(suffix), middle]
            }
        };
        let files = self.files.map_or([None; 2], |files| [files.repo, Some(files.file)]);
        markers.into_iter().chain(files).flatten().chain(self.stop.iter().copied())
    }
}

pub(crate) fn known_names() -> String {
    TEMPLATES.iter().map(|template| template.name).collect::<Vec<_>>().join(", ")
}
