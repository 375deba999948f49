//! Reads the texts back out of a prompt that a client has rendered with the markers of a model's
//! family. The session renders its own prompt of them.

use crate::limits::FILES;
use crate::{Around, File};
use models::fim::{FileTexts, FimKind, FimTemplate, MarkerTexts, templates};

/// Markers of families that Hone does not serve, and what must follow somewhere behind them.
const FOREIGN: &[(&str, &str)] = &[
    ("<PRE>", "<SUF>"),
    ("▁<PRE>", "▁<SUF>"),
    ("<fim-prefix>", "<fim-suffix>"),
    ("<|code_prefix|>", "<|code_suffix|>"),
    ("<|fim▁begin|>", "<|fim▁hole|>"),
];

/// The texts of a rendered prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FimPrompt {
    pub around: Around,
    /// The name of the file that the cursor is in.
    pub name: Option<String>,
    pub files: Vec<File>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForeignPrompt {
    #[error(
        "it has the markers of another family of models ({found}); Hone serves {served}: choose \
         the format of that family, or send `prompt` and `suffix` without markers"
    )]
    OtherFamily { found: &'static str, served: &'static str },
    #[error(
        "it has the markers of a family of models ({found}), and the model that Hone serves knows \
         none: send `prompt` and `suffix` without markers"
    )]
    NoMarkers { found: &'static str },
    #[error("it begins with {found}, and {missing} is missing behind it")]
    Incomplete { found: &'static str, missing: &'static str },
    #[error("it has files and no {missing}; prompts for next edits are not answered here")]
    NoCursor { missing: &'static str },
}

/// Reads a prompt. One without any markers is the text before the cursor.
///
/// # Errors
/// Its markers are those of another family than the served one's, or some are missing.
pub fn parse(prompt: &str, served: &FimTemplate) -> Result<FimPrompt, ForeignPrompt> {
    let plain = || FimPrompt {
        around: Around { before: prompt.to_owned(), after: String::new() },
        ..FimPrompt::default()
    };
    let FimKind::Markers(markers) = &served.kind else {
        return other_family(prompt, served).map_or_else(|| Ok(plain()), Err);
    };
    let (files, name, rest) = match served.files.and_then(|texts| split_files(prompt, texts)) {
        Some(split) => split,
        None => (vec![], None, prompt),
    };
    if let Some(around) = split_around(rest, markers)? {
        return Ok(FimPrompt { around, name, files });
    }
    if name.is_some() || !files.is_empty() {
        return Err(ForeignPrompt::NoCursor { missing: markers.prefix });
    }
    other_family(prompt, served).map_or_else(|| Ok(plain()), Err)
}

/// Splits off the files in front of a prompt: those before the file that is filled in, the name of
/// that one, and the rest of the prompt. `None` if there are none.
fn split_files(prompt: &str, texts: FileTexts) -> Option<(Vec<File>, Option<String>, &str)> {
    let mut rest = prompt;
    if let Some(behind) = texts.repo.and_then(|repo| rest.strip_prefix(repo)) {
        rest = &behind[behind.find('\n').map_or(behind.len(), |end| end + 1)..];
    }
    rest.starts_with(texts.file).then_some(())?;
    let mut files = vec![];
    while let Some(behind) = rest.strip_prefix(texts.file) {
        let (name, text) = behind.split_once('\n').unwrap_or((behind, ""));
        let Some(end) = text.find(texts.file) else {
            return Some((files, Some(name.to_owned()), text));
        };
        if files.len() < FILES {
            files.push(File { name: name.to_owned(), text: text[..end].to_owned() });
        }
        rest = &text[end..];
    }
    None
}

/// Splits the texts around the cursor from their markers. `None` if the prompt begins with no
/// marker. The text behind the middle token is the last of what stands before the cursor.
fn split_around(prompt: &str, markers: &MarkerTexts) -> Result<Option<Around>, ForeignPrompt> {
    let MarkerTexts { prefix, suffix, middle, .. } = *markers;
    let incomplete = |missing| ForeignPrompt::Incomplete { found: prefix, missing };
    if let Some(behind) = prompt.strip_prefix(prefix) {
        let is_spaced = is_spaced(behind);
        let (before, behind) = behind.split_once(suffix).ok_or_else(|| incomplete(suffix))?;
        let (after, typed) = match middle {
            Some(middle) => behind.rsplit_once(middle).ok_or_else(|| incomplete(middle))?,
            None => (behind, ""),
        };
        return Ok(Some(around(before, typed, after, is_spaced)));
    }
    let Some(behind) = prompt.strip_prefix(suffix) else { return Ok(None) };
    let incomplete = |missing| ForeignPrompt::Incomplete { found: suffix, missing };
    let is_spaced = is_spaced(behind);
    let (after, behind) = behind.split_once(prefix).ok_or_else(|| incomplete(prefix))?;
    let (before, typed) = match middle {
        Some(middle) => behind.rsplit_once(middle).ok_or_else(|| incomplete(middle))?,
        None => (behind, ""),
    };
    Ok(Some(around(before, typed, after, is_spaced)))
}

/// Returns true if a template has put a blank behind its first marker. Two blanks are an
/// indentation.
fn is_spaced(behind: &str) -> bool {
    behind.starts_with(' ') && !behind.starts_with("  ")
}

fn around(before: &str, typed: &str, after: &str, is_spaced: bool) -> Around {
    let text = |text: &str| match text.strip_prefix(' ').filter(|_| is_spaced) {
        Some(text) => text.to_owned(),
        None => text.to_owned(),
    };
    Around { before: text(before) + &text(typed), after: text(after) }
}

/// Returns true if a prompt begins with the markers of another family and has its others too.
fn other_family(prompt: &str, served: &FimTemplate) -> Option<ForeignPrompt> {
    let text = prompt.trim_start();
    let known = templates().iter().flat_map(|template| match &template.kind {
        FimKind::Markers(markers) => {
            vec![(markers.prefix, markers.suffix), (markers.suffix, markers.prefix)]
        }
        FimKind::PrefixOnly => vec![],
    });
    let is_there = |(first, other): &(&str, &str)| {
        text.strip_prefix(first).is_some_and(|rest| rest.contains(other))
    };
    let found = known.chain(FOREIGN.iter().copied()).find(is_there)?.0;
    Some(match served.kind {
        FimKind::Markers(_) => ForeignPrompt::OtherFamily { found, served: served.name },
        FimKind::PrefixOnly => ForeignPrompt::NoMarkers { found },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use models::fim::template;
    use rand::rngs::StdRng;
    use rand::seq::IndexedRandom;
    use rand::{Rng, SeedableRng};

    fn read(prompt: &str) -> Result<FimPrompt, ForeignPrompt> {
        parse(prompt, template("qwen2.5-coder").unwrap())
    }

    fn split(prompt: &str) -> (String, String) {
        let around = read(prompt).unwrap().around;
        (around.before, around.after)
    }

    fn texts(before: &str, after: &str) -> (String, String) {
        (before.into(), after.into())
    }

    #[test]
    fn the_markers_may_stand_in_any_order_and_have_blanks() {
        for prompt in [
            "<|fim_prefix|>a\n  b<|fim_suffix|>\nc<|fim_middle|>",
            "<|fim_prefix|> a\n  b<|fim_suffix|> \nc<|fim_middle|> ",
            "<|fim_suffix|>\nc<|fim_prefix|>a\n  b<|fim_middle|>",
            "<|fim_prefix|><|fim_suffix|>\nc<|fim_middle|>a\n  b",
            "<|fim_prefix|>a\n<|fim_suffix|>\nc<|fim_middle|>  b",
        ] {
            assert_eq!(split(prompt), texts("a\n  b", "\nc"), "{prompt}");
        }
        let indented = "<|fim_prefix|>    a<|fim_suffix|> b<|fim_middle|>";
        assert_eq!(split(indented), texts("    a", " b"), "the blanks are the text's");
        let codestral = template("codestral").unwrap();
        let around = parse("[SUFFIX]\nc[PREFIX]a", codestral).unwrap().around;
        assert_eq!((around.before, around.after), texts("a", "\nc"));
    }

    #[test]
    fn a_prompt_without_markers_is_the_text_before_the_cursor() {
        assert_eq!(split("fn a() {"), texts("fn a() {", ""));
        assert_eq!(split(""), texts("", ""));
        let about = "let marker = \"<|fim_prefix|>\";";
        assert_eq!(split(about), texts(about, ""), "it is code that names a marker");
        let plain = template("prefix-only").unwrap();
        assert_eq!(parse("a", plain).unwrap().around.before, "a");
    }

    #[test]
    fn files_in_front_are_read_with_their_names() {
        let prompt = "<|repo_name|>shop\n<|file_sep|>src/a.py\nA = 1\n<|file_sep|>b.py\nB\n\
            <|file_sep|>src/c.py\n<|fim_prefix|>x<|fim_suffix|>y<|fim_middle|>";
        let file = |name: &str, text: &str| File { name: name.into(), text: text.into() };
        let expected = FimPrompt {
            around: Around { before: "x".into(), after: "y".into() },
            name: Some("src/c.py".into()),
            files: vec![file("src/a.py", "A = 1\n"), file("b.py", "B\n")],
        };
        assert_eq!(read(prompt).unwrap(), expected);
    }

    #[test]
    fn what_cannot_be_answered_is_named_with_the_family_that_is_served() {
        let error = |prompt: &str| read(prompt).unwrap_err().to_string();
        for foreign in [
            "<PRE> a <SUF>b <MID>",
            "<fim_prefix>a<fim_suffix>b<fim_middle>",
            "<｜fim▁begin｜>a<｜fim▁hole｜>b<｜fim▁end｜>",
            "[SUFFIX]b[PREFIX]a",
        ] {
            let error = error(foreign);
            assert!(error.contains("another family"), "{error}");
            assert!(error.contains("Hone serves qwen2.5-coder"), "{error}");
        }
        let cut = error("<|fim_prefix|>a<|fim_suffix|>b");
        assert_eq!(cut, "it begins with <|fim_prefix|>, and <|fim_middle|> is missing behind it");
        let next_edit = error("<|file_sep|>a.py\nx\n<|file_sep|>updated/a.py:1:9\n");
        assert!(next_edit.contains("next edits"), "{next_edit}");
        let smol = template("prefix-only").unwrap();
        let error = parse("<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>", smol).unwrap_err();
        assert_eq!(error, ForeignPrompt::NoMarkers { found: "<|fim_prefix|>" });
    }

    /// A prompt that is laid out by a template is read as the texts that it was made of, and no
    /// text at all makes the reader panic.
    #[test]
    fn any_prompt_is_read_or_refused() {
        let pieces = [
            "<|fim_prefix|>",
            "<|fim_suffix|>",
            "<|fim_middle|>",
            "<|repo_name|>",
            "<|file_sep|>",
            "a",
            "\n",
            " ",
            "é",
            "<PRE>",
            "<SUF>",
            "[PREFIX]",
            "<|",
        ];
        let mut random = StdRng::seed_from_u64(63);
        for _ in 0..200_000 {
            let length = random.random_range(0..12);
            let any: String = (0..length).map(|_| *pieces.choose(&mut random).unwrap()).collect();
            for template in templates() {
                let _ = parse(&any, template);
            }
            let plain: String =
                (0..length).map(|_| *pieces[5..9].choose(&mut random).unwrap()).collect();
            let text = format!("x{plain}");
            let prompt = format!("<|fim_prefix|>{text}<|fim_suffix|>{plain}<|fim_middle|>");
            assert_eq!(split(&prompt), (text, plain), "{prompt}");
        }
    }
}
