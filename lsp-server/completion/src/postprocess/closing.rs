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
    let (mut open, mut quote, mut escaped) = (vec![], open_quote(line_before), false);
    let began_in = quote;
    for (at, c) in shown.char_indices() {
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
            (None, '(') => open.push(')'),
            (None, '[') => open.push(']'),
            (None, '{') => open.push('}'),
            (None, ')' | ']' | '}') if open.pop().is_none() && c == closed => return Some(at),
            _ => {}
        }
    }
    None
}

/// The quote that is open at the end of a line. An apostrophe does not count, since it may be a
/// lifetime.
fn open_quote(line: &str) -> Option<char> {
    let (mut quote, mut escaped) = (None, false);
    for c in line.chars() {
        match (quote, c) {
            _ if std::mem::take(&mut escaped) => {}
            (Some(_), '\\') => escaped = true,
            (Some(mark), c) if mark == c => quote = None,
            (None, '"' | '`') => quote = Some(c),
            _ => {}
        }
    }
    quote
}

/// Tells whether the text would close a bracket that is closed right behind the cursor already (by
/// the editor, when the user typed the opening one).
pub fn repeats_closing(shown: &str, rest_of_line: &str) -> bool {
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
