//! Token ids and the bytes that they stand for, in byte-level BPE vocabularies
//! (`tokenizer.ggml.model = gpt2`). The bytes are those that llama.cpp's `token_to_piece`
//! returns with `special = false`; this module needs no llama.cpp.

use crate::fim::templates;
use crate::gguf::Gguf;
use std::collections::HashMap;
use std::convert::Infallible;
use std::path::PathBuf;

/// Token types in `tokenizer.ggml.token_type`.
mod token_type {
    pub const NORMAL: u32 = 1;
    pub const USER_DEFINED: u32 = 4;
    pub const BYTE: u32 = 6;
}

#[derive(Debug, thiserror::Error)]
#[error("{}: {what}", path.display())]
pub struct VocabError {
    path: PathBuf,
    what: String,
}

pub struct Vocab {
    /// All pieces one after another.
    bytes: Vec<u8>,
    /// The place where each piece ends in `bytes`.
    ends: Vec<u32>,
    ids: HashMap<Box<str>, u32>,
    /// The tokens that end a line, by the text before the line break.
    line_ends: HashMap<Box<[u8]>, LineEnd>,
}

#[derive(Default)]
struct LineEnd {
    /// Tokens that consist of the text and a line break, ascending.
    ids: Vec<u32>,
    /// The token that consists of the text alone.
    open: Option<u32>,
}

impl Vocab {
    /// # Errors
    /// The file holds no vocabulary, or one of another kind. The message names the file.
    pub fn from_gguf(gguf: &Gguf) -> Result<Vocab, VocabError> {
        let error = |what: String| VocabError { path: gguf.path.clone(), what };
        match gguf.str("tokenizer.ggml.model") {
            Some("gpt2") => {}
            Some(other) => {
                return Err(error(format!(
                    "tokenizer {other:?} is not supported; \
                     use a model with a byte-level BPE vocabulary (gpt2)"
                )));
            }
            None => {
                return Err(error(
                    "no vocabulary (tokenizer.ggml.model); use a complete model file".into(),
                ));
            }
        }
        let texts = gguf.strings("tokenizer.ggml.tokens").ok_or_else(|| {
            error("no tokens (tokenizer.ggml.tokens); use a complete model file".into())
        })?;
        let types = gguf.array("tokenizer.ggml.token_type");

        let tokens = texts.enumerate().map(|(id, text)| match types {
            None => Ok((text, token_type::NORMAL)),
            Some(types) => types
                .get(id)
                .and_then(|value| Some((text, value.as_u32()?)))
                .ok_or_else(|| error(format!("token {id} has no type; fetch the file again"))),
        });
        let vocab = Vocab::of(tokens)?;
        if vocab.is_empty() {
            return Err(error("an empty vocabulary; use a complete model file".into()));
        }
        Ok(vocab)
    }

    /// A vocabulary of these tokens: the text and the type of each, as in a model file.
    pub fn new<'t>(tokens: impl IntoIterator<Item = (&'t str, u32)>) -> Vocab {
        let Ok(vocab) = Vocab::of(tokens.into_iter().map(Ok::<_, Infallible>));
        vocab
    }

    fn of<'t, E>(tokens: impl Iterator<Item = Result<(&'t str, u32), E>>) -> Result<Vocab, E> {
        let byte_of = byte_of_char();
        let mut vocab = Vocab {
            bytes: Vec::new(),
            ends: Vec::new(),
            ids: HashMap::new(),
            line_ends: HashMap::new(),
        };
        for token in tokens {
            let (text, kind) = token?;
            match kind {
                _ if is_marker(text) => {}
                token_type::NORMAL | token_type::BYTE => decode(text, &byte_of, &mut vocab.bytes),
                token_type::USER_DEFINED => vocab.bytes.extend(text.as_bytes()),
                _ => {}
            }
            vocab.ids.insert(text.into(), vocab.ends.len() as u32);
            // There are fewer piece bytes than header bytes, whose limit is below u32::MAX.
            vocab.ends.push(vocab.bytes.len() as u32);
        }
        vocab.index_line_ends();
        Ok(vocab)
    }

    fn index_line_ends(&mut self) {
        let mut line_ends: HashMap<Box<[u8]>, LineEnd> = HashMap::new();
        for id in 0..self.len() as u32 {
            if let Some(text) = line_end(self.piece(id)) {
                line_ends.entry(text.into()).or_default().ids.push(id);
            }
        }
        for id in 0..self.len() as u32 {
            let piece = self.piece(id);
            if let Some(end) = line_ends.get_mut(piece).filter(|_| !piece.is_empty()) {
                end.open = Some(id);
            }
        }
        self.line_ends = line_ends;
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// False for every vocabulary of a file: [`Vocab::from_gguf`] refuses an empty one.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes of a token, which need not be whole characters. Control, FIM and unused
    /// tokens have none, nor have ids past the end.
    pub fn piece(&self, id: u32) -> &[u8] {
        let id = id as usize;
        let Some(&end) = self.ends.get(id) else { return &[] };
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        &self.bytes[start as usize..end as usize]
    }

    /// The control token that all of these are, if they are. llama.cpp switches an adapter on at
    /// such a token, and the text of a file cannot have it.
    pub fn shared_control(&self, tokens: impl IntoIterator<Item = u32>) -> Option<u32> {
        let mut tokens = tokens.into_iter();
        let first = tokens.next().filter(|first| self.piece(*first).is_empty())?;
        tokens.all(|token| token == first).then_some(first)
    }

    /// The token whose text in the vocabulary is exactly this one, such as `<|fim_middle|>`.
    pub fn id_of(&self, text: &str) -> Option<u32> {
        self.ids.get(text).copied()
    }

    /// The tokens that end a line in the same way as this one, itself among them, ascending.
    /// Each consists of the same text and then of white space with a line break in it. A
    /// tokenizer may merge `;`, the line break and that of an empty line below into one
    /// token, so several tokens end the same line. An end of text ends a line too, in the
    /// same way as a line break alone. Empty if the token ends no line.
    pub fn line_ends(&self, id: u32) -> &[u32] {
        self.end_of(id).map_or(&[], |end| &end.ids)
    }

    /// The token that consists of the text before this token's line break, such as `;` for
    /// `;` and a break. A token that ends the line may follow it.
    pub fn left_open(&self, id: u32) -> Option<u32> {
        self.end_of(id)?.open
    }

    /// The tokens that consist of this token's text and a line break, ascending.
    pub fn ended(&self, id: u32) -> &[u32] {
        let piece = self.piece(id);
        let end = self.line_ends.get(piece).filter(|_| !piece.is_empty());
        end.map_or(&[], |end| &end.ids)
    }

    /// The tokens that end a line and have no text of their own, ascending: line breaks and
    /// ends of text.
    pub fn bare_ends(&self) -> &[u32] {
        self.line_ends.get(&[][..]).map_or(&[], |end| &end.ids)
    }

    fn end_of(&self, id: u32) -> Option<&LineEnd> {
        let text = (id < self.len() as u32).then(|| line_end(self.piece(id)))?;
        text.and_then(|text| self.line_ends.get(text))
    }

    /// Token healing: whether `id` may come next while `need` is still to be reproduced. The
    /// token must agree with `need`, and must not be empty.
    pub fn fits(&self, id: u32, need: &[u8]) -> bool {
        let piece = self.piece(id);
        !piece.is_empty() && (piece.starts_with(need) || need.starts_with(piece))
    }
}

/// The text of a piece before its line break. Control tokens are empty and end every
/// answer, so they count as line breaks. `None` if the piece ends no line.
fn line_end(piece: &[u8]) -> Option<&[u8]> {
    let text = piece.trim_ascii_end();
    (piece.is_empty() || piece[text.len()..].contains(&b'\n')).then_some(text)
}

/// FIM markers count as control tokens, also if the converter gave them another type.
/// llama.cpp overrides their type in the same way.
fn is_marker(text: &str) -> bool {
    text.starts_with(['<', '['])
        && templates().iter().any(|template| template.special_texts().any(|t| t == text))
}

/// The inverse of GPT-2's map from bytes to printable characters. Bytes that are printable
/// in Latin-1 stand for themselves; the others follow from U+0100 on.
fn byte_of_char() -> HashMap<char, u8> {
    let printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let shifted = (0..=u8::MAX).filter(|&byte| !printable(byte));
    let shifted = ('\u{100}'..).zip(shifted);
    (0..=u8::MAX)
        .filter(|&byte| printable(byte))
        .map(|byte| (byte as char, byte))
        .chain(shifted)
        .collect()
}

/// Appends the bytes that a token's text stands for. A character outside the map stands
/// for itself, but no known vocabulary has one in a normal token.
fn decode(text: &str, byte_of: &HashMap<char, u8>, bytes: &mut Vec<u8>) {
    for character in text.chars() {
        match byte_of.get(&character) {
            Some(&byte) => bytes.push(byte),
            None => bytes.extend(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::gguf_write::{Builder, Item};

    /// A model file with nothing but this vocabulary of (text, type).
    pub(crate) fn vocabulary_gguf(tokens: &[(&str, u32)]) -> Vec<u8> {
        let texts: Vec<_> = tokens.iter().map(|(text, _)| Item::String((*text).into())).collect();
        let types: Vec<_> = tokens.iter().map(|&(_, kind)| Item::U32(kind)).collect();
        let mut builder = Builder::default();
        builder.string("general.architecture", "qwen2");
        builder.string("tokenizer.ggml.model", "gpt2");
        builder.array("tokenizer.ggml.tokens", &texts);
        builder.array("tokenizer.ggml.token_type", &types);
        builder.finish()
    }

    pub(crate) fn vocab(tokens: &[(&str, u32)]) -> Vocab {
        Vocab::new(tokens.iter().copied())
    }

    #[test]
    fn only_a_control_token_of_all_texts_is_shared() {
        let vocab = vocab(&[("a", 1), ("<|fim_middle|>", 3), ("<|fim_end|>", 3)]);
        assert_eq!(vocab.shared_control([1, 1, 1]), Some(1));
        assert_eq!(vocab.shared_control([1, 2]), None);
        assert_eq!(vocab.shared_control([0, 0]), None, "text may have it too");
        assert_eq!(vocab.shared_control([]), None);
    }

    #[test]
    fn the_byte_map_is_gpt2s() {
        let map = byte_of_char();
        assert_eq!(map.len(), 256);
        // Some values of bytes_to_unicode() in src/encoder.py of openai/gpt-2.
        let spots = [('Ġ', b' '), ('Ċ', b'\n'), ('ĉ', b'\t'), ('č', b'\r'), ('a', b'a')];
        for (character, byte) in spots.into_iter().chain([('Ń', 0xAD), ('ÿ', 0xFF), ('Ā', 0)]) {
            assert_eq!(map[&character], byte, "{character}");
        }
    }

    #[test]
    fn pieces_follow_token_types() {
        let vocab = vocab(&[
            ("Ġfoo", 1),
            ("Ã©", 1),
            ("<|endoftext|>", 3),
            ("<tool_call>", 4),
            ("[PAD9]", 5),
            ("<|fim_middle|>", 4),
        ]);
        assert_eq!(vocab.piece(0), b" foo");
        assert_eq!(vocab.piece(1), "é".as_bytes());
        assert_eq!(vocab.piece(2), b"");
        assert_eq!(vocab.piece(3), b"<tool_call>");
        assert_eq!(vocab.piece(4), b"");
        assert_eq!(vocab.piece(5), b"", "a FIM marker typed as user-defined");
        assert_eq!(vocab.piece(99), b"");
        assert_eq!(vocab.id_of("<|fim_middle|>"), Some(5));
        assert_eq!(vocab.id_of("<|nothing|>"), None);
        assert_eq!(vocab.len(), 6);
    }

    #[test]
    fn a_line_ends_the_same_whatever_is_merged_behind_it() {
        let texts = [";Ċ", ";", ";ĊĊ", ";Ċ}", ";ĊĠĠ", "Ċ", "Ġ", "ĊĊ"];
        let vocab = vocab(&texts.map(|text| (text, 1)));
        assert_eq!(vocab.line_ends(0), [0, 2, 4]);
        assert_eq!(vocab.line_ends(2), [0, 2, 4]);
        assert_eq!(vocab.line_ends(5), [5, 7]);
        for no_end in [1, 3, 6, 99] {
            assert!(vocab.line_ends(no_end).is_empty(), "{no_end}");
        }
    }

    #[test]
    fn the_text_before_a_line_break_and_the_break_can_be_two_tokens() {
        let texts = [(";Ċ", 1), (";", 1), ("Ċ", 1), ("<|endoftext|>", 3), (")Ċ", 1), ("Ġ", 1)];
        let vocab = vocab(&texts);
        assert_eq!((vocab.left_open(0), vocab.left_open(4)), (Some(1), None));
        assert_eq!((vocab.ended(1), vocab.ended(0)), (&[0][..], &[][..]));
        assert_eq!(vocab.bare_ends(), [2, 3]);
        for bare in [2, 3] {
            assert_eq!(vocab.line_ends(bare), [2, 3]);
            assert_eq!(vocab.left_open(bare), None);
            assert!(vocab.ended(bare).is_empty());
        }
    }

    #[test]
    fn healing_accepts_tokens_that_agree_with_the_text() {
        let vocab = vocab(&[("Ġ", 1), ("Ġfoo", 1), ("foo", 1), ("<|endoftext|>", 3)]);
        let fits = |need: &[u8]| (0..4).filter(|&id| vocab.fits(id, need)).collect::<Vec<_>>();
        assert_eq!(fits(b" f"), [0, 1]);
        assert_eq!(fits(b" foobar"), [0, 1]);
        assert_eq!(fits(b"fo"), [2]);
        assert_eq!(fits(b"x"), [] as [u32; 0]);
    }
}
