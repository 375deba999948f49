//! Names, and what they say about the value that is assigned to them.

/// The kind of a secret that a name calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A person chose it.
    Password,
    /// A machine made it.
    Secret,
    /// It may be a secret, or the key of a map: only a very random value counts.
    Vague,
    /// The key of the service at an index of [`super::services::SERVICES`].
    Service(usize),
}

/// A word within a name that may make it the name of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    Pass,
    Pwd,
    Secret,
    Key,
    Auth,
    Service(usize),
}

/// The words, each as it is looked for: in upper or lower case, anywhere in a text.
pub const WORDS: &[(&str, Word)] = &[
    ("pass", Word::Pass),
    ("pwd", Word::Pwd),
    ("pw", Word::Pwd),
    ("psk", Word::Pwd),
    ("kennwort", Word::Pwd),
    ("contrasena", Word::Pwd),
    ("clave", Word::Pwd),
    ("senha", Word::Pwd),
    ("wachtwoord", Word::Pwd),
    ("mot_de_passe", Word::Pwd),
    ("motdepasse", Word::Pwd),
    ("psw", Word::Pwd),
    ("otp_seed", Word::Secret),
    ("otpseed", Word::Secret),
    ("mfa_seed", Word::Secret),
    ("secret", Word::Secret),
    ("token", Word::Secret),
    ("credential", Word::Secret),
    ("creds", Word::Secret),
    ("bearer", Word::Secret),
    ("key", Word::Key),
    ("salt", Word::Key),
    ("auth", Word::Auth),
];

/// A name that ends in one of these says something about a secret, and not the secret.
const TELLING_ENDS: &[&str] = &[
    "id",
    "ids",
    "name",
    "names",
    "url",
    "uri",
    "file",
    "files",
    "path",
    "length",
    "len",
    "size",
    "count",
    "type",
    "field",
    "input",
    "label",
    "hint",
    "regex",
    "pattern",
    "policy",
    "prompt",
    "message",
    "error",
    "ttl",
    "expiry",
    "expires",
    "timeout",
    "version",
    "format",
    "alias",
    "index",
    "kind",
    "column",
    "limit",
    "bytes",
    "text",
    "title",
    "class",
    "selector",
    "endpoint",
    "page",
    "required",
    "min",
    "max",
    "algorithm",
    "stdin",
    "env",
    "dir",
    "ref",
    "arn",
    "pair",
    "board",
    "press",
    "code",
    "usage",
    "schema",
    "izer",
    "izers",
    "ize",
    "ized",
];

/// The words before `key` in the name of a secret.
const SECRET_KEYS: &[&str] = &[
    "api",
    "access",
    "auth",
    "private",
    "signing",
    "sign",
    "encryption",
    "encrypt",
    "account",
    "shared",
    "master",
    "license",
    "secret",
    "service",
    "app",
    "client",
    "consumer",
    "storage",
    "subscription",
    "admin",
    "deploy",
    "hmac",
    "aes",
    "jwt",
    "crypt",
    "write",
    "security",
    "session",
    "cookie",
    "instrumentation",
    "functions",
    "host",
    "webhook",
];

/// The words before `key` in the name of something that everybody may see.
const OPEN_KEYS: &[&str] = &[
    "public",
    "pub",
    "primary",
    "foreign",
    "cache",
    "sort",
    "partition",
    "natural",
    "schema",
    "sequence",
    "bucket",
    "hot",
    "idx",
    "mon",
    "tur",
    "registry",
    "object",
    "group",
    "dedup",
    "integrity",
    "host_public",
    "publishable",
    "site",
];

/// The words, in lower case and without a separator, before `pass` in the name of a password.
const OWNERS: &[&str] = &[
    "db", "user", "usr", "mail", "sql", "smtp", "ftp", "root", "admin", "ssh", "ldap", "proxy",
    "redis", "store", "auth", "my", "pg", "key", "login", "http", "imap", "wifi", "vpn",
];

/// Returns what a name calls for: the name's parts before, in, and after a word.
pub fn class(word: Word, before: &[u8], written: &[u8], after: &[u8]) -> Option<Class> {
    if tells_about_it(after) {
        return None;
    }
    match word {
        Word::Pass => is_password(before, written, after).then_some(Class::Password),
        Word::Pwd => {
            (is_part_start(before, written) && is_part_end(after)).then_some(Class::Password)
        }
        Word::Secret => Some(Class::Secret),
        Word::Auth => is_part_end(after).then_some(Class::Vague),
        Word::Key => key(before, after),
        Word::Service(index) => Some(Class::Service(index)),
    }
}

fn is_password(before: &[u8], written: &[u8], after: &[u8]) -> bool {
    let long = ["word", "wd", "phrase", "code", "wort", "_word", "-word", "_phrase", "-phrase"];
    if long.iter().any(|rest| starts_with(after, rest)) {
        return true;
    }
    let owned = OWNERS.iter().any(|owner| ends_with(before, owner));
    // `pass` alone ends the name: `pass_count` counts something.
    let ends = after.first().is_none_or(u8::is_ascii_digit);
    ends && (owned || is_part_start(before, written))
}

fn key(before: &[u8], after: &[u8]) -> Option<Class> {
    let rest = after.strip_prefix(b"s").unwrap_or(after);
    let open = OPEN_KEYS.iter().any(|word| ends_with(trimmed(before), word));
    if open || !is_part_end(rest) {
        return None;
    }
    let secret = SECRET_KEYS.iter().any(|word| ends_with(trimmed(before), word));
    Some(if secret { Class::Secret } else { Class::Vague })
}

/// Returns true if the last part of a name, behind the word, says that the value is no secret.
fn tells_about_it(after: &[u8]) -> bool {
    TELLING_ENDS.iter().any(|end| {
        let starts = after.len() - end.len().min(after.len());
        ends_with(after, end) && (starts == 0 || is_part_start(&after[..starts], &after[starts..]))
    })
}

/// Returns true if a part of a name begins here: after a separator, or with a capital.
fn is_part_start(before: &[u8], written: &[u8]) -> bool {
    let capital = written.first().is_some_and(u8::is_ascii_uppercase);
    before.last().is_none_or(|b| !b.is_ascii_alphabetic() || (capital && b.is_ascii_lowercase()))
}

fn is_part_end(after: &[u8]) -> bool {
    after.first().is_none_or(|b| !b.is_ascii_lowercase())
}

fn trimmed(before: &[u8]) -> &[u8] {
    let end = before.iter().rposition(|b| !b"_-. ".contains(b)).map_or(0, |last| last + 1);
    &before[..end]
}

fn ends_with(text: &[u8], end: &str) -> bool {
    text.len() >= end.len() && text[text.len() - end.len()..].eq_ignore_ascii_case(end.as_bytes())
}

fn starts_with(text: &[u8], start: &str) -> bool {
    text.len() >= start.len() && text[..start.len()].eq_ignore_ascii_case(start.as_bytes())
}
