//! What a name says about the value that is assigned to it.

/// What kind of a secret a name calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A person chose it.
    Password,
    /// A machine made it.
    Secret,
    /// It may be a secret, or the key of a map: only a very random value counts.
    Vague,
    /// The key of the service at an index of [`SERVICES`].
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
    ("kennwort", Word::Pwd),
    ("contrasena", Word::Pwd),
    ("secret", Word::Secret),
    ("token", Word::Secret),
    ("credential", Word::Secret),
    ("creds", Word::Secret),
    ("bearer", Word::Secret),
    ("key", Word::Key),
    ("salt", Word::Key),
    ("auth", Word::Auth),
];

/// Services whose keys have no form of their own: what they are called, and the least and the
/// greatest length of their keys.
pub const SERVICES: &[(&str, usize, usize)] = &[
    ("adafruit", 32, 32),
    ("adobe", 32, 32),
    ("airtable", 17, 17),
    ("algolia", 32, 32),
    ("alibaba", 30, 30),
    ("asana", 32, 32),
    ("atlassian", 24, 24),
    ("beamer", 44, 46),
    ("bitbucket", 32, 64),
    ("bittrex", 32, 32),
    ("cloudflare", 37, 40),
    ("codecov", 32, 36),
    ("cohere", 40, 40),
    ("coinbase", 64, 64),
    ("confluence", 24, 24),
    ("confluent", 16, 64),
    ("contentful", 43, 43),
    ("datadog", 32, 40),
    ("discord", 32, 64),
    ("droneci", 32, 32),
    ("dropbox", 15, 64),
    ("etsy", 24, 24),
    ("facebook", 32, 32),
    ("fastly", 32, 32),
    ("finicity", 20, 32),
    ("finnhub", 20, 20),
    ("flickr", 32, 32),
    ("freshbooks", 64, 64),
    ("gitter", 40, 40),
    ("heroku", 36, 36),
    ("hubspot", 36, 36),
    ("intercom", 60, 60),
    ("jfrog", 64, 73),
    ("artifactory", 64, 73),
    ("jira", 24, 24),
    ("kraken", 80, 90),
    ("kucoin", 24, 36),
    ("launchdarkly", 40, 40),
    ("linkedin", 16, 16),
    ("looker", 24, 24),
    ("mattermost", 26, 26),
    ("meraki", 40, 40),
    ("messagebird", 25, 25),
    ("netlify", 40, 46),
    ("newrelic", 32, 64),
    ("nytimes", 32, 32),
    ("okta", 42, 42),
    ("plaid", 24, 30),
    ("rapidapi", 50, 50),
    ("sendbird", 36, 40),
    ("sentry", 64, 64),
    ("snyk", 36, 36),
    ("sonar", 40, 44),
    ("squarespace", 36, 36),
    ("sumologic", 64, 64),
    ("travis", 22, 22),
    ("twilio", 32, 32),
    ("twitch", 30, 30),
    ("twitter", 25, 50),
    ("zendesk", 40, 40),
];

/// A name that ends in one of these tells something about a secret, and not the secret.
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

/// What stands before `key` in the name of a secret.
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

/// What stands before `key` in the name of something that everybody may see.
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

/// What stands, in lower case and without a separator, before `pass` in the name of a password.
const OWNERS: &[&str] = &[
    "db", "user", "usr", "mail", "sql", "smtp", "ftp", "root", "admin", "ssh", "ldap", "proxy",
    "redis", "store", "auth", "my", "pg", "key", "login", "http", "imap", "wifi", "vpn",
];

/// What a name calls for: the name's parts before, in, and after a word.
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

/// Whether the last part of a name, behind the word, says that the value is no secret.
fn tells_about_it(after: &[u8]) -> bool {
    TELLING_ENDS.iter().any(|end| {
        let starts = after.len() - end.len().min(after.len());
        ends_with(after, end) && (starts == 0 || is_part_start(&after[..starts], &after[starts..]))
    })
}

/// Whether a part of a name begins here: after a separator, or with a capital.
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
