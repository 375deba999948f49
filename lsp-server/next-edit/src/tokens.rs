//! Cuts a text into words, numbers and marks, and says which of them stand in a comment or in a
//! string. Blanks are no tokens: rules do not see them.

use crate::language::{Language, Quote};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub start: u32,
    pub end: u32,
    pub kind: Kind,
    pub class: Class,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Word,
    Number,
    Mark,
    /// The end of a line.
    Break,
}

/// What a token stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    Code,
    String,
    Comment,
}

/// What the beginning of a line stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Inside {
    #[default]
    Code,
    /// A block comment, by its number in the language, and how deeply it is nested.
    Comment(usize, u32),
    /// A string, by the number of its quotes in the language.
    String(usize),
    /// A raw string of Rust, with so many `#`.
    RawString(usize),
}

/// Operators of several characters. One of them is never taken for its parts: a rule about `=`
/// does not touch `==`.
const OPERATORS: &[&str] = &[
    "...", "..=", "===", "!==", "<=>", "**=", "??=", "==", "!=", "<=", ">=", "&&", "||", "->",
    "=>", "::", ":=", "+=", "-=", "*=", "/=", "%=", "|=", "&=", "^=", "..", "??", "?.", "++", "--",
    "<<", "**", "//",
];

pub(crate) fn tokens(text: &str, language: &Language, inside: Inside) -> Vec<Token> {
    let mut tokens = Vec::with_capacity(text.len() / 4);
    lex_on(text, language, (0, inside), text.len(), |token| tokens.push(token));
    tokens
}

/// Returns what the line that begins at `until` stands in, if the line at `at` begins inside
/// `inside`. This cuts no tokens out of what lies between, and so takes a fraction of the time.
pub(crate) fn inside_at(
    text: &str,
    language: &Language,
    (at, inside): (usize, Inside),
    until: usize,
) -> Inside {
    let mut lexer = Lexer { text, language, opens: opens(language), at, inside, emit: |_| () };
    loop {
        lexer.skip(until);
        if lexer.at >= until {
            return lexer.inside;
        }
        lexer.step();
    }
}

/// Continues where an earlier call has stopped, until this byte is reached. Returns where it stops.
pub(crate) fn lex_on(
    text: &str,
    language: &Language,
    (at, inside): (usize, Inside),
    until: usize,
    emit: impl FnMut(Token),
) -> (usize, Inside) {
    let mut lexer = Lexer { text, language, opens: opens(language), at, inside, emit };
    while lexer.at < until {
        lexer.step();
    }
    (lexer.at, lexer.inside)
}

/// The bytes with which comments and strings begin.
fn opens(language: &Language) -> [bool; 256] {
    let mut opens = [false; 256];
    let comments =
        language.line_comments.iter().chain(language.block_comments.iter().map(|b| &b.0));
    for open in comments.chain(language.strings.iter().map(|quote| &quote.open)) {
        opens[usize::from(open.as_bytes()[0])] = true;
    }
    if language.is_rust {
        opens[usize::from(b'r')] = true;
    }
    opens
}

struct Lexer<'a, F: FnMut(Token)> {
    text: &'a str,
    language: &'a Language,
    opens: [bool; 256],
    at: usize,
    inside: Inside,
    emit: F,
}

impl<F: FnMut(Token)> Lexer<'_, F> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Goes to the next byte at which a comment or a string may begin or end.
    fn skip(&mut self, until: usize) {
        let rest = &self.text.as_bytes()[self.at..until];
        let first = |marks: [u8; 3]| rest.iter().position(|byte| marks.contains(byte));
        let found = match self.inside {
            Inside::Code => return self.skip_code(until),
            Inside::Comment(number, _) => {
                let (open, close) = self.language.block_comments[number];
                let (open, close) = (open.as_bytes()[0], close.as_bytes()[0]);
                first([open, close, close])
            }
            Inside::String(number) => {
                first([self.language.strings[number].close.as_bytes()[0], b'\\', b'\n'])
            }
            Inside::RawString(_) => first([b'"'; 3]),
        };
        self.at = found.map_or(until, |found| self.at + found);
    }

    fn skip_code(&mut self, until: usize) {
        let bytes = self.text.as_bytes();
        while self.at < until {
            let byte = bytes[self.at];
            // An `r` within a word begins no raw string.
            let may_open = self.opens[usize::from(byte)]
                && !(is_word_byte(byte) && ends_with_word(&self.text[..self.at]));
            if may_open {
                return;
            }
            self.at += 1;
        }
    }

    fn step(&mut self) {
        match self.inside {
            Inside::Code => self.code(),
            Inside::Comment(number, depth) => {
                let (open, close) = self.language.block_comments[number];
                if self.rest().starts_with(close) {
                    let deeper = depth.saturating_sub(1);
                    self.inside =
                        if deeper == 0 { Inside::Code } else { Inside::Comment(number, deeper) };
                    self.take(close.len(), Kind::Mark, Class::Comment);
                } else if self.language.is_rust && self.rest().starts_with(open) {
                    self.inside = Inside::Comment(number, depth + 1);
                    self.take(open.len(), Kind::Mark, Class::Comment);
                } else {
                    self.any(Class::Comment);
                }
            }
            Inside::String(number) => self.string(&self.language.strings[number]),
            Inside::RawString(hashes) => {
                let rest = self.rest().as_bytes();
                let closes = rest[0] == b'"'
                    && rest.len() > hashes
                    && rest[1..=hashes].iter().all(|byte| *byte == b'#');
                if closes {
                    self.inside = Inside::Code;
                    self.take(1 + hashes, Kind::Mark, Class::String);
                } else {
                    self.any(Class::String);
                }
            }
        }
    }

    fn code(&mut self) {
        let first = self.rest().as_bytes()[0];
        if !self.opens[usize::from(first)] {
            return self.any(Class::Code);
        }
        let language = self.language;
        let rest = self.rest();
        for (number, (open, _)) in language.block_comments.iter().enumerate() {
            if rest.starts_with(open) {
                self.inside = Inside::Comment(number, 1);
                return self.take(open.len(), Kind::Mark, Class::Comment);
            }
        }
        if let Some(open) = language.line_comments.iter().find(|open| rest.starts_with(**open)) {
            return self.line_comment(open.len());
        }
        if language.is_rust {
            if let Some(hashes) = raw_string_hashes(rest) {
                self.inside = Inside::RawString(hashes);
                return self.take(2 + hashes, Kind::Mark, Class::String);
            }
            if first == b'\'' && !is_char_literal(rest) {
                return self.take(1, Kind::Mark, Class::Code);
            }
        }
        for (number, quote) in language.strings.iter().enumerate() {
            if rest.starts_with(quote.open) {
                self.inside = Inside::String(number);
                return self.take(quote.open.len(), Kind::Mark, Class::String);
            }
        }
        self.any(Class::Code);
    }

    fn line_comment(&mut self, open: usize) {
        let end = self.rest().find('\n').map_or(self.text.len(), |length| self.at + length);
        self.take(open, Kind::Mark, Class::Comment);
        while self.at < end {
            self.any(Class::Comment);
        }
    }

    fn string(&mut self, quote: &Quote) {
        let rest = self.rest();
        if rest.starts_with(quote.close) {
            self.inside = Inside::Code;
            return self.take(quote.close.len(), Kind::Mark, Class::String);
        }
        if rest.starts_with('\n') && !quote.has_lines {
            self.inside = Inside::Code;
            return self.any(Class::Code);
        }
        if quote.has_escapes && rest.starts_with('\\') {
            let escaped = rest[1..].chars().next().filter(|c| !matches!(c, '\n' | '\r'));
            let length = 1 + escaped.map_or(0, char::len_utf8);
            return self.take(length, Kind::Mark, Class::String);
        }
        self.any(Class::String);
    }

    /// Takes the next token, whatever it is.
    fn any(&mut self, class: Class) {
        let rest = self.rest();
        let first = rest.as_bytes()[0];
        if first == b'\n' {
            return self.take(1, Kind::Break, class);
        }
        if first.is_ascii_whitespace() {
            let is_blank = |byte: &u8| byte.is_ascii_whitespace() && *byte != b'\n';
            self.at += rest.bytes().take_while(is_blank).count();
            return;
        }
        let word = word_length(rest);
        if word > 0 {
            let kind = if first.is_ascii_digit() { Kind::Number } else { Kind::Word };
            return self.take(word, kind, class);
        }
        if class == Class::Code
            && let Some(length) = operator_length(rest)
        {
            return self.take(length, Kind::Mark, class);
        }
        let first = rest.chars().next().unwrap_or(' ');
        if first.is_whitespace() {
            self.at += first.len_utf8();
        } else {
            self.take(first.len_utf8(), Kind::Mark, class);
        }
    }

    fn take(&mut self, length: usize, kind: Kind, class: Class) {
        let start = self.at as u32;
        self.at += length;
        (self.emit)(Token { start, end: self.at as u32, kind, class });
    }
}

/// The length of the operator of several characters that begins here.
fn operator_length(text: &str) -> Option<usize> {
    // Most marks stand alone, which one look at the next byte shows.
    let next = *text.as_bytes().get(1)?;
    if !b"=.>&|:<+-*/?".contains(&next) {
        return None;
    }
    OPERATORS.iter().find(|operator| text.starts_with(**operator)).map(|found| found.len())
}

fn word_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        while at < bytes.len() && is_word_byte(bytes[at]) {
            at += 1;
        }
        if at == bytes.len() || bytes[at].is_ascii() {
            return at;
        }
        match text[at..].chars().next() {
            Some(c) if c.is_alphanumeric() => at += c.len_utf8(),
            _ => return at,
        }
    }
}

fn ends_with_word(text: &str) -> bool {
    match text.as_bytes().last() {
        Some(byte) if byte.is_ascii() => is_word_byte(*byte),
        _ => text.chars().next_back().is_some_and(char::is_alphanumeric),
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

/// Returns how many `#` a raw string of Rust has that begins here.
fn raw_string_hashes(text: &str) -> Option<usize> {
    let rest = text.strip_prefix('r')?.as_bytes();
    let hashes = rest.iter().take_while(|byte| **byte == b'#').count();
    (rest.get(hashes) == Some(&b'"')).then_some(hashes)
}

/// Returns true if an apostrophe begins a character, and not a lifetime.
fn is_char_literal(text: &str) -> bool {
    let mut chars = text.chars().skip(1);
    match chars.next() {
        Some('\\') => true,
        Some(_) => chars.next() == Some('\''),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    /// At the beginning of each line of random text, in each family of languages.
    #[test]
    fn what_a_line_stands_in_is_the_same_with_and_without_tokens() {
        const PIECES: &[&str] = &[
            "/", "*", "/*", "*/", "//", "#", "--", "--[[", "]]", "[[", "<!--", "-->", "\"", "'",
            "`", "\"\"\"", "'''", "\\", "r", "r#\"", "\"#", "bar", "é", "→", "=", "<", "{-", "-}",
            ";", " ", "\n", "\n", "\r\n", "x1", "$",
        ];
        const NAMES: &[&str] =
            &["c", "go", "ts", "kt", "rs", "py", "rb", "php", "css", "lua", "sql", "clj", "html"];
        for seed in 0..3_000 {
            let mut random = StdRng::seed_from_u64(seed);
            let language = Language::named(NAMES[random.random_range(0..NAMES.len())]);
            let pieces = (0..random.random_range(0..60))
                .map(|_| PIECES[random.random_range(0..PIECES.len())]);
            let text: String = pieces.collect();
            let starts = text.match_indices('\n').map(|(at, _)| at + 1);
            let mut from = (0, Inside::Code);
            for start in starts {
                let cut = lex_on(&text, language, (0, Inside::Code), start, |_| ());
                assert_eq!(cut.0, start, "seed {seed}: {text:?}");
                for known in [(0, Inside::Code), from] {
                    let skipped = inside_at(&text, language, known, start);
                    assert_eq!(skipped, cut.1, "seed {seed}: {language:?} {text:?}");
                }
                from = cut;
            }
        }
    }
}
