//! The terms of a text: its identifiers in lower case, and the parts of those that have several.
//!
//! `parseHttpRequest` and `parse_http_request` both have the parts `parse`, `http` and `request`,
//! so one finds the other. Keywords are left out: they stand everywhere and tell nothing.

/// The longest word that is a term, in bytes. Longer ones are mostly data, such as a checksum.
const WORD_BYTES_MAX: usize = 64;

/// The shortest term, in bytes.
const TERM_BYTES_MIN: usize = 2;

/// Keywords, and the names of types that every program has, of the common languages, in order.
#[rustfmt::skip]
const STOP_WORDS: &[&str] = &[
    "abstract", "and", "any", "as", "async", "await", "bool", "boolean", "break", "case", "catch",
    "char", "class", "const", "continue", "crate", "def", "default", "del", "delete", "do",
    "double", "elif", "else", "end", "enum", "except", "export", "extends", "extern", "false",
    "final", "finally", "float", "fn", "for", "from", "func", "function", "get", "goto", "if",
    "impl", "implements", "import", "in", "include", "int", "interface", "is", "it", "lambda",
    "let", "local", "long", "loop", "match", "mod", "module", "mut", "namespace", "new", "nil",
    "none", "not", "null", "of", "ok", "operator", "option", "or", "override", "package", "pass",
    "private", "protected", "pub", "public", "raise", "range", "ref", "require", "return", "self",
    "set", "short", "signed", "some", "static", "str", "string", "struct", "super", "switch",
    "template", "test", "the", "then", "this", "throw", "throws", "to", "trait", "true", "try",
    "type", "typedef", "typename", "typeof", "undefined", "union", "unsafe", "unsigned", "use",
    "using", "var", "vec", "virtual", "void", "where", "while", "with", "yield",
];

/// Calls `each` with every term of a text, in its order. A term that occurs again is told again.
pub fn each_term(text: &str, mut each: impl FnMut(&[u8])) {
    let mut lower = Vec::with_capacity(WORD_BYTES_MAX);
    for word in words(text) {
        if word.len() > WORD_BYTES_MAX || word[0].is_ascii_digit() {
            continue;
        }
        lower.clear();
        lower.extend(word.iter().map(u8::to_ascii_lowercase));
        let mut tell = |term: &[u8]| {
            if term.len() >= TERM_BYTES_MIN && !is_stop_word(term) {
                each(term);
            }
        };
        let mut start = 0;
        for end in 1..=word.len() {
            if end == word.len() || is_border(word, end) {
                let part = trim(&lower[start..end]);
                if part.len() < word.len() {
                    tell(part);
                }
                start = end;
            }
        }
        tell(&lower);
    }
}

/// The identifiers and numbers of a text. Letters outside ASCII belong to words.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &[u8]> {
    let words = text.as_bytes().split(|byte| !is_word_byte(*byte));
    words.filter(|word| !word.is_empty())
}

pub(crate) fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// Whether a new part begins at `at`: behind an underscore, at the `R` of `fooRequest`, and at the
/// `R` of `HTTPRequest`.
fn is_border(word: &[u8], at: usize) -> bool {
    let (before, here, next) = (word[at - 1], word[at], word.get(at + 1));
    before == b'_'
        || (!before.is_ascii_uppercase() && here.is_ascii_uppercase())
        || (before.is_ascii_uppercase()
            && here.is_ascii_uppercase()
            && next.is_some_and(u8::is_ascii_lowercase))
}

fn trim(part: &[u8]) -> &[u8] {
    part.strip_suffix(b"_").unwrap_or(part)
}

fn is_stop_word(term: &[u8]) -> bool {
    STOP_WORDS.binary_search_by(|word| word.as_bytes().cmp(term)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        let mut terms = vec![];
        each_term(text, |term| terms.push(String::from_utf8_lossy(term).into_owned()));
        terms
    }

    #[test]
    fn identifiers_are_told_whole_and_in_parts() {
        assert_eq!(terms("parseHTTPRequest"), ["parse", "http", "request", "parsehttprequest"]);
        assert_eq!(terms("post_entry(x1)"), ["post", "entry", "post_entry", "x1"]);
        assert_eq!(terms("MAX_LEN"), ["max", "len", "max_len"]);
        assert_eq!(terms("Ledger"), ["ledger"]);
        assert_eq!(terms("_hidden"), ["hidden", "_hidden"]);
    }

    #[test]
    fn keywords_numbers_and_data_are_no_terms() {
        assert!(terms("pub fn if return 123 0xff1e2a ++ x").is_empty());
        assert!(terms(&"e3b0c44298fc1c14".repeat(5)).is_empty());
        assert_eq!(terms("größe"), ["größe"]);
    }

    #[test]
    fn the_stop_words_are_in_order() {
        assert!(STOP_WORDS.is_sorted());
    }
}
