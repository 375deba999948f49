//! Brackets and quotes that are closed right behind the cursor already.

use crate::auto_closed::MARKS_LIMIT;

/// Returns whether `rest` consists of a few marks only, and `text` has them all in their order.
pub(super) fn brings(text: &str, rest: &str) -> bool {
    let are_marks = rest.len() <= MARKS_LIMIT && rest.bytes().all(|b| b.is_ascii_punctuation());
    let mut left = text.chars();
    are_marks && rest.chars().all(|mark| left.any(|c| c == mark))
}

/// The byte at which `shown` would close what is closed right behind the cursor already because the
/// editor closed it: in `if (|)`, `x > 0) {` must not leave `if (x > 0) {)`.
pub(super) fn closing(shown: &str, line_before: &str, rest: &str) -> Option<usize> {
    let closed = rest.trim_start().chars().next()?;
    let mut quotes = Quotes::open_at_end_of(line_before);
    // Within a string, a bracket that the editor has closed is one of the text, or of code in it.
    if leaves_open(quotes.within(line_before), closed) {
        quotes = Quotes::default();
    }
    let mut open = vec![];
    let began_in = quotes.current();
    let mut before = line_before.chars().next_back();
    for (at, c) in shown.char_indices() {
        let quote = quotes.current();
        quotes.read(before.replace(c), c);
        match (quote, c) {
            (Some(mark), c) => {
                let ends = mark == c && quotes.current().is_none();
                if ends && began_in == Some(c) && c == closed && open.is_empty() {
                    return Some(at);
                }
            }
            (None, '(') => open.push(')'),
            (None, '[') => open.push(']'),
            (None, '{') => open.push('}'),
            (None, ')' | ']' | '}') if open.pop().is_none() && c == closed => return Some(at),
            _ => {}
        }
    }
    None
}

/// Follows the strings of a line, character by character.
#[derive(Default)]
pub(super) struct Quotes {
    quote: Option<char>,
    escaped: bool,
    /// The bytes of the line up to the text of the string that is open.
    start: usize,
}

impl Quotes {
    pub(super) fn open_at_end_of(line: &str) -> Quotes {
        let mut quotes = Quotes::default();
        let mut previous = None;
        for (at, c) in line.char_indices() {
            let was_open = quotes.quote.is_some();
            if !was_open && c == '\'' && has_string_prefix(&line[..at]) {
                quotes.quote = Some(c);
            } else {
                quotes.read(previous, c);
            }
            if !was_open {
                quotes.start = at + c.len_utf8();
            }
            previous = Some(c);
        }
        quotes
    }

    /// The mark of the string that is open.
    pub(super) fn current(&self) -> Option<char> {
        self.quote
    }

    /// Returns what the string has so far that is open at the end of this line.
    fn within<'a>(&self, line: &'a str) -> &'a str {
        if self.quote.is_some() { &line[self.start..] } else { "" }
    }

    /// Reads the next character, which stands behind `previous`.
    pub(super) fn read(&mut self, previous: Option<char>, c: char) {
        match (self.quote, c) {
            _ if std::mem::take(&mut self.escaped) => {}
            (Some(_), '\\') => self.escaped = true,
            (Some(mark), c) if mark == c => self.quote = None,
            (None, '"' | '`') => self.quote = Some(c),
            (None, '\'') if opens_string(previous) => self.quote = Some(c),
            _ => {}
        }
    }
}

/// Returns whether a text opens a bracket that this mark closes, and does not close it.
fn leaves_open(text: &str, closing: char) -> bool {
    let opening = match closing {
        ')' => '(',
        ']' => '[',
        '}' => '{',
        _ => return false,
    };
    text.matches(opening).count() > text.matches(closing).count()
}

/// Returns whether an apostrophe behind this character opens a string. Within a word it is an
/// apostrophe of prose (`don't`), and behind `&` and `<` it is a lifetime of Rust.
fn opens_string(previous: Option<char>) -> bool {
    previous.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '_' | '&' | '<'))
}

/// Returns whether a line ends with the prefix of a string, such as the `f` of Python's `f'…'`.
fn has_string_prefix(line: &str) -> bool {
    const PREFIXES: [&str; 8] = ["b", "f", "r", "u", "br", "fr", "rb", "rf"];
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let word = &line[line.trim_end_matches(is_word).len()..];
    PREFIXES.iter().any(|prefix| word.eq_ignore_ascii_case(prefix))
}

/// Returns whether the text would close a bracket that is closed right behind the cursor already
/// (by the editor, when the user typed the opening one).
pub(super) fn repeats_closing(shown: &str, rest_of_line: &str) -> bool {
    let first = shown.trim_start().chars().next();
    matches!(first, Some(')' | ']' | '}')) && first == rest_of_line.trim_start().chars().next()
}

/// Cuts the longest end of `shown` that `rest` begins with: accepting `a)` before `)` must not
/// leave `a))`. An end that closes what `shown` itself opened stays: `foo()` inside `bar(|)` is
/// complete.
pub(super) fn without_overlap<'a>(shown: &'a str, rest: &str) -> &'a str {
    let cut = shown
        .char_indices()
        .map(|(at, _)| at)
        .find(|&at| rest.starts_with(&shown[at..]) && !closes_its_own(shown, &shown[at..]))
        .unwrap_or(shown.len());
    shown[..cut].trim_end()
}

/// Returns whether `end` is one closing mark and `shown` holds the mark it closes.
fn closes_its_own(shown: &str, end: &str) -> bool {
    let count = |mark: char| shown.matches(mark).count();
    match end {
        ")" => count('(') >= count(')'),
        "]" => count('[') >= count(']'),
        "}" => count('{') >= count('}'),
        "\"" => count('"') % 2 == 0,
        "'" => count('\'') % 2 == 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only the quote was looked for within a string, so `}` of `${…}` was closed twice.
    #[test]
    fn a_bracket_that_the_editor_closed_within_a_string_is_closed_already() {
        assert_eq!(closing("name}`;", "`${", "}`"), Some(4));
        assert_eq!(closing("x)}`", "`${f(", ")}`"), Some(1));
        assert_eq!(closing("0]\");", "f(\"a[", "]\")"), Some(1));
        assert_eq!(closing(") {", "if (\"a sad smile (", "\")"), None, "no bracket is closed");
        assert_eq!(closing("\") {", "if (\"a sad smile (", "\")"), Some(0));
    }

    #[test]
    fn an_apostrophe_of_prose_or_a_lifetime_opens_no_string() {
        let open_quote = |line| Quotes::open_at_end_of(line).current();
        assert_eq!(open_quote("// they don't "), None);
        assert_eq!(open_quote("fn f<'a>(x: &'a str"), None);
        assert_eq!(open_quote("sub'"), None, "a word is no prefix");
        assert_eq!(open_quote("x = br'"), Some('\''));
        assert_eq!(open_quote("it('does not "), Some('\''));
        assert_eq!(open_quote("let c = 'x'"), None);
    }
}
