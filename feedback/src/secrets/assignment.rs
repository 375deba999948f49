//! Values that are given to a name: in code, JSON, YAML, TOML, XML, a header, a file of
//! settings, a connection string or a command line.
//!
//! The search begins at a word such as `password` that the text holds. It takes the name
//! around the word, then the sign that assigns, then the value.

use super::names::{self, Class, Word};
use super::pattern::compiled;
use super::services::SERVICES;
use super::value::{
    PASSWORD_MIN_BYTES, VALUE_MAX_BYTES, is_drawn_with_marks, is_key_of_service,
    is_like_a_password, is_random, is_shuffled, is_very_random,
};
use regex::bytes::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// The longest part of a name on either side of the word.
const NAME_MAX_BYTES: usize = 40;

/// The distance behind a name within which the quotation mark of its value is looked for.
const BETWEEN_MAX_BYTES: usize = 120;

/// The shortest value at a line's end. Shorter ones are mostly words.
const LINE_MIN_BYTES: usize = 8;

/// The text between a name and a quoted value: a type, the sign that assigns, a call.
static BEFORE_QUOTED: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r#"(?i)\A(?:"#,
        // `name: PASSWORD, value: "…"`.
        r#",?\s*["']?(?:default_?)?value["']?\s*[:=]|"#,
        // A type: `token: &str =`.
        r#"\s*\??:\s*[&\w<>'\[\]:.?|* ]{1,40}?\s*=|"#,
        r#"\s*(?:::=|:=|=>|->|[!=]==?|\?\?=?|\|\|=?|\?=|\+=|[:=,(])|"#,
        r#"\s+(?:or|is|to|as)\b|"#,
        // `#define PASSWORD "…"`.
        r#"[ \t]+)\s*"#,
        r#"(?:(?:new |&|await )?[\w:.<>!]{1,40}\(\s*)?"#,
        r#"[@$&a-z]{0,2}\\?(?:"""|'''|["'`])"#
    ))
});

/// The text between a name and a quoted value in Go: a type without a sign before it.
static TYPE_BEFORE_QUOTED: LazyLock<Regex> =
    LazyLock::new(|| compiled(r#"\A[ \t]+[\w&*.<>\[\]]{1,30}[ \t]*=\s*["`]"#));

/// The text between a name and the first quoted value in brackets: of a list, of a text that goes
/// over several lines, and of bytes in Go.
static BRACKET_BEFORE_QUOTED: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"\A\s*(?::=|=>|[:=])\s*(?:\[\]byte)?",
        r#"[\[(]\s*[a-z]{0,2}(?:"""|'''|["'`])"#
    ))
});

/// The brackets behind the name of an array: `char password[] =`.
static ARRAY: LazyLock<Regex> = LazyLock::new(|| compiled(r"\A\[\w{0,20}\][ \t]*="));

/// The text between a name and a value without quotation marks. The value of YAML may be a block
/// that begins in the next line.
static BEFORE_BARE: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"\A(?:[ \t]*:[ \t]+[|>][-+\d]{0,2}[ \t]*\r?\n[ \t]+|",
        r"[ \t]*(?::=|=>|[:=])[ \t]*(?:!!?\w+[ \t]+)?|[ \t]+|>|",
        r"\n[ \t]*value:[ \t]*)"
    ))
});

/// Calls that look a value up under the name in the quotation marks.
const LOOK_UPS: &[&str] = &[
    "env", "get", "config", "read", "load", "lookup", "find", "prompt", "input", "select", "label",
];

/// A value, and where it stands.
enum Found<'t> {
    /// Between quotation marks.
    Quoted(&'t [u8]),
    /// The place where only data stands: an option of a command, a connection string, an element of
    /// XML.
    Data(&'t [u8]),
    /// The rest of a line, which may be code.
    Line(&'t [u8]),
}

/// A name in a text.
struct Name {
    /// The place where it lies.
    range: Range<usize>,
    class: Class,
    /// It is `pass` and nothing else.
    is_pass: bool,
}

/// Returns true if a secret is assigned to the name that lies around a word.
pub fn holds_secret(text: &[u8], at: Range<usize>, word: Word) -> bool {
    let Some(name) = name(text, at, word) else { return false };
    value(text, &name).is_some_and(|found| is_secret(&name, &found))
}

fn name(text: &[u8], at: Range<usize>, word: Word) -> Option<Name> {
    let of_name = |b: &u8| b.is_ascii_alphanumeric() || b"_-.".contains(b);
    let first = at.start.saturating_sub(NAME_MAX_BYTES);
    let before = text[first..at.start].iter().rev().take_while(|b| of_name(b)).count();
    let after = text[at.end..].iter().take(NAME_MAX_BYTES).take_while(|b| of_name(b)).count();
    let range = at.start - before..at.end + after;
    let (head, tail) = (&text[range.start..at.start], &text[at.end..range.end]);
    let class = names::class(word, head, &text[at.clone()], tail)?;
    let is_pass = word == Word::Pass && head.is_empty() && tail.is_empty();
    Some(Name { range, class, is_pass })
}

fn is_secret(name: &Name, found: &Found) -> bool {
    match (name.class, found) {
        (Class::Password, Found::Quoted(value) | Found::Data(value)) => {
            value.len() >= PASSWORD_MIN_BYTES && is_like_a_password(value)
        }
        // In a file of settings the rest of the line is the password. In code it is a name.
        (Class::Password, Found::Line(value)) => {
            (!name.is_pass || is_shuffled(value))
                && value.len() >= LINE_MIN_BYTES
                && !is_like_code(value)
                && is_like_a_password(value)
        }
        (class, Found::Quoted(value) | Found::Data(value) | Found::Line(value)) => match class {
            Class::Vague => is_very_random(value),
            Class::Service(index) => {
                let (_, least, greatest) = SERVICES[index];
                (least..=greatest).contains(&value.len()) && is_key_of_service(value)
            }
            _ => is_random(value),
        },
    }
}

fn is_like_code(value: &[u8]) -> bool {
    static CODE: LazyLock<Regex> =
        LazyLock::new(|| compiled(r"(?i)pass|::|->|^[a-z_]+\.|\.[a-z_]+$"));
    CODE.is_match(value)
}

fn value<'t>(text: &'t [u8], name: &Name) -> Option<Found<'t>> {
    let behind = &text[name.range.end..];
    let start = if ARRAY.is_match(&behind[..behind.len().min(BETWEEN_MAX_BYTES)]) {
        name.range.end + upto(behind, b"]").len() + 1
    } else {
        let closers = behind.iter().take(4).take_while(|b| b"\\\"'`])".contains(b));
        name.range.end + closers.count()
    };
    if !text.get(start).is_some_and(|b| b" \t\n\r:=,(>?|!+-".contains(b)) {
        return None;
    }
    quoted(text, name, start).map(Found::Quoted).or_else(|| bare(text, name, start))
}

/// The value that begins with a quotation mark. A window may end before the second mark.
fn quoted<'t>(text: &'t [u8], name: &Name, start: usize) -> Option<&'t [u8]> {
    let between = &text[start..text.len().min(start + BETWEEN_MAX_BYTES)];
    let typed = || TYPE_BEFORE_QUOTED.find(between).filter(|_| start == name.range.end);
    let in_bracket = || BRACKET_BEFORE_QUOTED.find(between);
    let found = BEFORE_QUOTED.find(between).or_else(typed).or_else(in_bracket)?.as_bytes();
    let call = found.iter().rposition(|b| *b == b'(').map_or(&[][..], |end| &found[..end]);
    let is_look_up = |word: &&str| {
        call.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
    };
    if LOOK_UPS.iter().any(is_look_up) {
        return None;
    }
    let (mark, sign) = found.split_last()?;
    // Prose quotes what it passes on: "pass `mode=1`".
    if sign.trim_ascii().is_empty() && (name.is_pass || *mark == b'`') {
        return None;
    }
    let rest = &text[start + found.len()..];
    let ends = |b: &u8| b == mark || b.is_ascii_whitespace();
    let end = rest.iter().position(ends).unwrap_or(rest.len());
    let is_closed = rest.get(end).is_none_or(|b| b == mark || *b == b'\n' || *b == b'\r');
    let value = rest[..end].strip_suffix(b"\\").unwrap_or(&rest[..end]);
    (is_closed && value.len() <= VALUE_MAX_BYTES).then_some(value)
}

/// The value without quotation marks, where it cannot be a name in code.
fn bare<'t>(text: &'t [u8], name: &Name, start: usize) -> Option<Found<'t>> {
    let between = &text[start..text.len().min(start + BETWEEN_MAX_BYTES)];
    let sign = BEFORE_BARE.find(between)?.as_bytes();
    let rest = &text[start + sign.len()..];
    let rest = &rest[..rest.len().min(VALUE_MAX_BYTES)];
    let whole = upto(rest, b" \t\r\n\"'`");
    let is_data = is_data(text, name, sign, whole);
    if is_data && is_drawn_with_marks(whole) {
        return Some(Found::Data(whole));
    }
    let value = upto(rest, b" \t\r\n\"'`;,<>(){}[]|&");
    let behind = &rest[value.len()..];
    if is_data && ends_as_data(text, name, sign, value, behind) {
        return Some(Found::Data(value));
    }
    let behind = &behind[behind.iter().take_while(|b| b" \t".contains(b)).count()..];
    let ends_line = matches!(behind, [] | [b'\n' | b'\r' | b'#', ..] | [b'/', b'/', ..]);
    let assigns = sign.iter().any(|b| b":=".contains(b)) && !value.contains(&b'$');
    (ends_line && assigns).then_some(Found::Line(value))
}

/// Returns true if the value stands where no code can stand.
fn is_data(text: &[u8], name: &Name, sign: &[u8], whole: &[u8]) -> bool {
    let previous = previous(text, name);
    let is_option = is_option(text, name);
    match sign {
        b">" => matches!(previous, Some(b'<' | b':')) || is_key_of_element(text, name),
        // This is a comparison, or a drawn key whose first mark is the same sign.
        b"=" if whole.starts_with(b"=") => is_drawn_with_marks(whole),
        b"=" => {
            is_option
                || in_string(text, name)
                || previous.is_none_or(|b| b" \t\n\r;?&,".contains(&b))
        }
        _ if sign.iter().all(|b| b" \t".contains(b)) => is_option || is_setting(text, name),
        // A header in a string: `"X-Api-Key: …"`.
        _ if sign.starts_with(b":") => in_string(text, name),
        _ => sign.starts_with(b"\n"),
    }
}

/// Returns true if a value that stands among data also ends there.
fn ends_as_data(text: &[u8], name: &Name, sign: &[u8], value: &[u8], behind: &[u8]) -> bool {
    let in_string = || in_string(text, name);
    // A shell's variables are in upper case, and code assigns with blanks around the sign.
    let is_plain = !text[name.range.clone()].iter().any(u8::is_ascii_lowercase)
        || is_option(text, name)
        || previous(text, name).is_some_and(|b| b";?&".contains(&b));
    match behind.first() {
        Some(b'<') => sign == b">",
        _ if sign == b">" => false,
        Some(b'"' | b'\'' | b'`') => true,
        Some(b';' | b'&') => is_plain || !is_like_code(value),
        Some(b',' | b')' | b'|' | b']' | b'}') => in_string() && !is_like_code(value),
        Some(b' ' | b'\t') => is_plain || in_string() || is_followed_by_pair(behind),
        None | Some(b'\n' | b'\r') => is_plain,
        Some(_) => false,
    }
}

/// Returns true if the name is the name of an element of XML: `<entry key="password">`.
fn is_key_of_element(text: &[u8], name: &Name) -> bool {
    let before = &text[..name.range.start];
    before.ends_with(b"key=\"") || before.ends_with(b"name=\"")
}

fn previous(text: &[u8], name: &Name) -> Option<u8> {
    name.range.start.checked_sub(1).map(|at| text[at])
}

fn is_option(text: &[u8], name: &Name) -> bool {
    text[name.range.start] == b'-'
}

/// Returns true if another name and its value follow after a blank, as in `password=… dbname=app`.
fn is_followed_by_pair(behind: &[u8]) -> bool {
    let next = upto(behind.trim_ascii_start(), b" \t\r\n\"'");
    let sign = next.iter().position(|b| *b == b'=').unwrap_or(0);
    sign > 0
        && next[..sign].iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
        && next.get(sign + 1).is_some_and(u8::is_ascii_alphanumeric)
}

/// Returns true if the name stands behind an odd number of quotation marks of its line.
fn in_string(text: &[u8], name: &Name) -> bool {
    let before = before_in_line(text, name);
    let odd = |mark: u8| before.iter().filter(|b| **b == mark).count() % 2 == 1;
    odd(b'"') || odd(b'\'') || odd(b'`')
}

/// Returns true if a line of a shell or of a Dockerfile sets the name: `ENV NAME value`.
fn is_setting(text: &[u8], name: &Name) -> bool {
    let head = before_in_line(text, name).trim_ascii();
    [&b"ENV"[..], b"ARG", b"setenv", b"set -x", b"set -gx", b"set -Ux", b"setx"].contains(&head)
}

/// Returns what stands in the line before the name. A line without an end, as of a minified file,
/// is not read from its start: each of its words would read all that is before it.
fn before_in_line<'t>(text: &'t [u8], name: &Name) -> &'t [u8] {
    let first = name.range.start.saturating_sub(VALUE_MAX_BYTES);
    let before = &text[first..name.range.start];
    let line = before.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    &before[line..]
}

fn upto<'t>(text: &'t [u8], ends: &[u8]) -> &'t [u8] {
    &text[..text.iter().position(|b| ends.contains(b)).unwrap_or(text.len())]
}
