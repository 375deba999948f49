//! Brackets and quotes that are closed right behind the cursor already.

/// The most marks behind the cursor that an offer replaces. Marks that editors close by themselves
/// are few; a longer rest was written by the user.
pub(super) const MARKS_LIMIT: usize = 8;

/// Tells whether `rest` consists of a few marks only, and `text` has them all in their order.
pub(super) fn brings(text: &str, rest: &str) -> bool {
    let are_marks = rest.len() <= MARKS_LIMIT && rest.bytes().all(|b| b.is_ascii_punctuation());
    let mut left = text.chars();
    are_marks && rest.chars().all(|mark| left.any(|c| c == mark))
}

/// The byte at which `shown` would close what is closed right behind the cursor already because the
/// editor closed it: in `if (|)`, `x > 0) {` must not leave `if (x > 0) {)`.
pub(super) fn closing(shown: &str, line_before: &str, rest: &str) -> Option<usize> {
    let closed = rest.trim_start().chars().next()?;
    let string = open_string(line_before);
    // Within a string, a bracket that the editor has closed is one of the text, or of code in it.
    let string = string.filter(|(_, within)| !leaves_open(within, closed));
    let (mut open, mut quote, mut escaped) = (vec![], string.map(|(mark, _)| mark), false);
    let began_in = quote;
    let mut before = line_before.chars().next_back();
    for (at, c) in shown.char_indices() {
        let previous = before.replace(c);
        if std::mem::take(&mut escaped) {
            continue;
        }
        match (quote, c) {
            (Some(_), '\\') => escaped = true,
            (Some(mark), c) if mark == c => {
                if began_in == Some(c) && c == closed && open.is_empty() {
                    return Some(at);
                }
                quote = None;
            }
            (Some(_), _) => {}
            (None, '"' | '`') => quote = Some(c),
            (None, '\'') if opens_string(previous) => quote = Some(c),
            (None, '(') => open.push(')'),
            (None, '[') => open.push(']'),
            (None, '{') => open.push('}'),
            (None, ')' | ']' | '}') if open.pop().is_none() && c == closed => return Some(at),
            _ => {}
        }
    }
    None
}

/// The quote that is open at the end of a line, and what the string has so far.
fn open_string(line: &str) -> Option<(char, &str)> {
    let (mut string, mut escaped) = (None, false);
    for (at, c) in line.char_indices() {
        let within = &line[at + c.len_utf8()..];
        match (string, c) {
            _ if std::mem::take(&mut escaped) => {}
            (Some(_), '\\') => escaped = true,
            (Some((mark, _)), c) if mark == c => string = None,
            (Some(_), _) => {}
            (None, '"' | '`') => string = Some((c, within)),
            (None, '\'') if has_string_prefix(&line[..at]) => string = Some((c, within)),
            (None, '\'') if opens_string(line[..at].chars().next_back()) => {
                string = Some((c, within));
            }
            _ => {}
        }
    }
    string
}

/// Tells whether a text opens a bracket that this mark closes, and does not close it.
fn leaves_open(text: &str, closing: char) -> bool {
    let opening = match closing {
        ')' => '(',
        ']' => '[',
        '}' => '{',
        _ => return false,
    };
    text.matches(opening).count() > text.matches(closing).count()
}

/// Tells whether an apostrophe behind this character opens a string. Within a word it is an
/// apostrophe of prose (`don't`), and behind `&` and `<` it is a lifetime of Rust.
fn opens_string(previous: Option<char>) -> bool {
    previous.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '_' | '&' | '<'))
}

/// Tells whether a line ends with the prefix of a string, such as the `f` of Python's `f'…'`.
fn has_string_prefix(line: &str) -> bool {
    const PREFIXES: [&str; 8] = ["b", "f", "r", "u", "br", "fr", "rb", "rf"];
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let word = &line[line.trim_end_matches(is_word).len()..];
    PREFIXES.iter().any(|prefix| word.eq_ignore_ascii_case(prefix))
}

/// Tells whether the text would close a bracket that is closed right behind the cursor already (by
/// the editor, when the user typed the opening one).
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

/// Tells whether `end` is one closing mark and `shown` holds the mark it closes.
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

    fn open_quote(line: &str) -> Option<char> {
        open_string(line).map(|(mark, _)| mark)
    }

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
        assert_eq!(open_quote("// they don't "), None);
        assert_eq!(open_quote("fn f<'a>(x: &'a str"), None);
        assert_eq!(open_quote("sub'"), None, "a word is no prefix");
        assert_eq!(open_quote("x = br'"), Some('\''));
        assert_eq!(open_quote("it('does not "), Some('\''));
        assert_eq!(open_quote("let c = 'x'"), None);
    }
}
