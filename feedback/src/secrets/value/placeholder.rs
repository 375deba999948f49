//! Values that are filled in later, or that somebody made up for an example.

use super::super::pattern::compiled;
use regex::bytes::Regex;
use std::sync::LazyLock;

/// The marks in a value that a program fills in.
const FILLED_IN: &[&[u8]] = &[
    b"${",
    b"{{",
    b"<",
    b"%s",
    b"%(",
    b"{}",
    b"#{",
    b"\\(",
    b"process.env",
    b"os.environ",
    b"getenv",
    b"secrets.",
];

/// The words that people write where a secret would stand.
const MADE_UP: &[&[u8]] = &[
    b"example",
    b"placeholder",
    b"changeme",
    b"change_me",
    b"change-me",
    b"changeit",
    b"your_",
    b"your-",
    b"yourpass",
    b"yourtoken",
    b"yourkey",
    b"yoursecret",
    b"xxxx",
    b"****",
    b"...",
    b"dummy",
    b"redacted",
    b"replace",
    b"insert_",
    b"insert-",
    b"_here",
    b"-here",
    b"0000000000",
    b"abcdefghijklmnopqrstuvwxyz",
];

/// Whole values that are filled in: `$NAME`, `%NAME%`, `@NAME@`, `__NAME__`, `:name`, `{name}`,
/// `[name]`, the name of a variable, `DB_PASSWORD_2`, and a date with its time.
static WHOLE: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"^(?:\$[A-Za-z_]\w*|%\w+%|@\w+@|__\w+__|:[a-z]\w*|\{.*\}?|\[.*\]|",
        r"[A-Z]+(?:_[A-Z]+)+(?:_?\d+)?|\d{4}-\d\d-\d\d[T ].*)$"
    ))
});

/// A command whose output is the value. A drawn key may hold the two signs too.
static COMMAND: LazyLock<Regex> = LazyLock::new(|| compiled(r"\$\([\w ./-]*(?:\)|$)"));

/// Files and addresses: a path says where a secret lies.
static PATH: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?i)^(?:\.{0,2}/[\w.-]+/|\.\w+$|~/|[a-z]:\\|https?://[^:@]*$|",
        r"[\w./*-]*\.(?:json|ya?ml|toml|txt|pem|key|crt|rs|py|js|ts|go|c|h|comp|html?)$)"
    ))
});

/// Returns true if the value is filled in later, says where the secret lies, or is plainly made up.
pub fn is_placeholder(value: &[u8]) -> bool {
    is_filled_in(value) || PATH.is_match(value)
}

/// Returns true if the value is filled in later, or plainly made up.
pub fn is_filled_in(value: &[u8]) -> bool {
    holds_any(value, FILLED_IN)
        || is_made_up(value)
        || WHOLE.is_match(value)
        || COMMAND.is_match(value)
}

/// Returns true if a value, or a token of a known form, is plainly made up.
pub fn is_made_up(value: &[u8]) -> bool {
    holds_any(value, MADE_UP)
}

fn holds_any(value: &[u8], signs: &[&[u8]]) -> bool {
    let holds =
        |sign: &&[u8]| value.windows(sign.len()).any(|part| part.eq_ignore_ascii_case(sign));
    signs.iter().any(holds)
}
