//! What must never be stored: texts that hold a credential, and files that are made to hold
//! some. This module is pure: it reads no file and remembers nothing.
//!
//! A text is searched for two kinds of signs. Credentials of known services have a form of
//! their own ([`FORMS`]). All others are known by their place: a literal that is assigned to
//! something called `password` or `api_key`, and looks like nothing that a person would use
//! as a name ([`ASSIGNMENT`]). The second kind is a guess. In doubt it withholds the text:
//! that costs a label, and storing a password would cost more.

mod paths;
#[cfg(test)]
mod tests;

pub use paths::is_sensitive_path;

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use std::sync::LazyLock;

/// The forms of credentials: what each is, and how it looks. The lengths are a little below
/// the real ones, so that a credential is found while it is still being typed.
const FORMS: &[(&str, &str)] = &[
    // Either end is enough, because the other one may lie outside the window.
    ("private key", r"-----(BEGIN|END) [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----"),
    ("PuTTY key", r"PuTTY-User-Key-File-\d"),
    ("age key", r"\bAGE-SECRET-KEY-1[0-9A-Z]{20,}"),
    ("AWS access key", r"\b(AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    (
        "AWS secret key",
        r"(?i)aws[\w .:-]{0,30}(secret|key)\S{0,20}\s*[:=]{1,2}>?\s*.?[A-Za-z0-9/+]{40}\b",
    ),
    ("GitHub token", r"\bgh[pousr]_[A-Za-z0-9]{20,}"),
    ("GitHub token", r"\bgithub_pat_[A-Za-z0-9_]{30,}"),
    ("GitLab token", r"\bgl(pat|ptt|rt|oas|dt|cbt|soat|ft|imt|agent)-[\w-]{16,}"),
    ("Slack token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("Slack token", r"\bxapp-\d-[A-Za-z0-9-]{10,}"),
    ("Slack webhook", r"hooks\.slack\.com/(services|workflows|triggers)/[A-Za-z0-9/+]{20,}"),
    ("Discord webhook", r"discord(app)?\.com/api/webhooks/\d{15,}/[\w-]{30,}"),
    ("Discord token", r"\b[MNO][A-Za-z\d_-]{22,27}\.[\w-]{6}\.[\w-]{27,}"),
    ("Telegram token", r"\b\d{8,10}:AA[\w-]{32,}"),
    ("Stripe key", r"\b[rs]k_(live|test|prod)_[A-Za-z0-9]{10,}"),
    ("webhook secret", r"\bwhsec_[A-Za-z0-9+/=]{20,}"),
    ("Square token", r"\b(sq0[a-z]{3}-|EAAA)[\w-]{22,}"),
    ("Shopify token", r"\bshp(at|ca|pa|ss)_[A-Fa-f0-9]{20,}"),
    ("Google API key", r"\bAIza[\w-]{30,}"),
    ("Google OAuth", r"\b(GOCSPX-[\w-]{20,}|ya29\.[\w-]{20,}|1//0[\w-]{30,})"),
    ("Anthropic key", r"\bsk-ant-[\w-]{16,}"),
    ("OpenAI key", r"\bsk-(proj|svcacct|admin|or|lf|None)-[\w-]{16,}"),
    ("OpenAI key", r"\bsk-[A-Za-z0-9]{32,}"),
    (
        "model host's key",
        concat!(
            r"\b(hf_[A-Za-z]{30,}|gsk_[A-Za-z0-9]{40,}|r8_[A-Za-z0-9]{30,}|",
            r"xai-[A-Za-z0-9]{40,}|pplx-[A-Za-z0-9]{40,})"
        ),
    ),
    ("npm token", r"\bnpm_[A-Za-z0-9]{30,}"),
    ("npm token", r"(?m)(^|:)\s*_(authToken|auth|password)\s*=\s*[^\s$][\w+/=.-]{7,}"),
    ("PyPI token", r"\bpypi-[\w-]{40,}"),
    ("crates.io token", r"\bcio[A-Za-z0-9]{32}\b"),
    ("RubyGems token", r"\brubygems_[0-9a-f]{40,}"),
    ("NuGet key", r"\boy2[a-z0-9]{43}\b"),
    ("Docker token", r"\bdckr_(pat|oat)_[\w-]{20,}"),
    ("Vault token", r"\bhv[sbr]\.[\w-]{20,}"),
    ("DigitalOcean token", r"\bdo[opr]_v1_[a-f0-9]{40,}"),
    ("Databricks token", r"\bdapi[a-f0-9]{32}\b"),
    ("SendGrid key", r"\bSG\.[\w-]{16,}\.[\w-]{16,}"),
    ("Mailgun key", r"\bkey-[0-9a-f]{32}\b"),
    ("Mailchimp key", r"\b[0-9a-f]{32}-us\d{1,2}\b"),
    ("Twilio key", r"\b(SK|AC)[0-9a-f]{32}\b"),
    ("Atlassian token", r"\bAT(ATT|CTT|BB)3?[\w-]{20,}={0,2}[0-9A-F]{0,8}"),
    (
        "Linear, Notion, Sentry",
        concat!(
            r"\b(lin_(api|oauth)_[A-Za-z0-9]{30,}|ntn_[A-Za-z0-9]{40,}|",
            r"secret_[A-Za-z0-9]{43}\b|sntr[ysu]_[\w=+/-]{40,})"
        ),
    ),
    (
        "Supabase, PlanetScale, Doppler, Pulumi",
        concat!(
            r"\b(sbp_[a-f0-9]{40}|pscale_(tkn|pw|oauth)_[\w.-]{30,}|",
            r"dp\.(pt|st|ct|sa)\.[\w.-]{30,}|pul-[a-f0-9]{40})"
        ),
    ),
    (
        "Grafana, New Relic, Datadog",
        concat!(
            r"\b(glsa_[A-Za-z0-9]{32}_|glc_[A-Za-z0-9+/]{32,}|",
            r"NRAK-[A-Z0-9]{27}|ddp_[A-Za-z0-9]{36})"
        ),
    ),
    ("Azure key", r"(?i)(AccountKey|SharedAccessKey|SharedSecret)=[A-Za-z0-9+/]{30,}"),
    ("Azure secret", r"\b[\w~.-]{3}\dQ~[\w~.-]{31,34}"),
    ("JSON Web Token", r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}"),
    (
        "Authorization header",
        concat!(
            r#"(?i)\b(bearer|basic|authorization\W{1,6}token)[ :"']+"#,
            r"[A-Za-z0-9+/_.=-]{0,60}\d[A-Za-z0-9+/_.=-]{15,}"
        ),
    ),
    (".netrc entry", r"\bmachine\s+\S+\s+login\s+\S+\s+password\s+\S+"),
    (
        "hash of a password",
        concat!(
            r"\$(2[abxy]\$\d\d\$[./A-Za-z0-9]{50,}|argon2(id|i|d)\$v=|",
            r"[156y]\$[./A-Za-z0-9]{4,}\$[./A-Za-z0-9]{20,})"
        ),
    ),
    // `://user:$PASSWORD@` and `://user:{password}@` do not match.
    (
        "URL with a password",
        r#"\b[a-z][a-z0-9+.-]*://[^\s/:@'"`<>{}$]*:[^\s/@'"`<>{}$%*]([^\s/@'"`<>{}]){2,}@[\w\[]"#,
    ),
];

/// A name, and the literal that is assigned to it, in code, JSON, YAML, TOML, a header or a
/// command line. The groups are the name and the value, which is quoted or, as in a file of
/// settings, bare.
const ASSIGNMENT: &str = concat!(
    r#"(?im)(?P<name>pass_?word|passwd|passphrase|\bpwd|(?:\b|_)pass\b|secret|token|"#,
    r#"api_?key|apikey|access_?key|auth_?key|private_?key|signing_?key|"#,
    r#"encryption_?key|account_?key|credentials?|"#,
    r#"client_?secret)"#,
    r#"[\w.-]{0,20}['"`]?\]?\s*(?::\s*[&\w<>' ]{1,20}=|:=|=>|[:=,(]|\s=>)\s*"#,
    r#"(?:[bfru@]{0,2}["'`](?P<quoted>[^"'`\s]{6,400})["'`]"#,
    r#"|(?P<bare>[^\s"'`,;(){}\[\]<>$]{8,400})\s*$)"#
);

// Credentials are ASCII. The character classes of Unicode would make the automata many
// times as large.
static FORM_SET: LazyLock<RegexSet> = LazyLock::new(|| {
    let forms = RegexSetBuilder::new(FORMS.iter().map(|(_, form)| form)).unicode(false).build();
    forms.expect("constant patterns")
});
static ASSIGNMENT_REGEX: LazyLock<Regex> = LazyLock::new(|| {
    RegexBuilder::new(ASSIGNMENT).unicode(false).build().expect("a constant pattern")
});

/// The kind of credential that a text holds, if it holds one. The credential itself is never
/// returned.
pub fn find(text: &str) -> Option<&'static str> {
    if let Some(form) = FORM_SET.matches(text.as_bytes()).iter().next() {
        return Some(FORMS[form].0);
    }
    let assigned = ASSIGNMENT_REGEX.captures_iter(text.as_bytes()).any(|found| {
        let group = |name| found.name(name).map(|group| String::from_utf8_lossy(group.as_bytes()));
        let name = group("name").unwrap_or_default().to_ascii_lowercase();
        let name = name.trim_start_matches('_');
        let is_password = name.starts_with("pass") || name == "pwd";
        match (group("quoted"), group("bare")) {
            (Some(value), _) if is_password => is_like_a_password(&value),
            // `password: s3cr3t!` in a file of settings, but not `password = user.password_2`.
            (_, Some(value)) if is_password && name != "pass" => {
                let is_name = ["pass", ".", "::"].iter().any(|part| value.contains(part));
                !is_name && is_like_a_password(&value)
            }
            (Some(value), _) | (_, Some(value)) => is_random(&value),
            _ => false,
        }
    });
    assigned.then_some("a literal assigned to a secret's name")
}

pub fn holds_secret(text: &str) -> bool {
    find(text).is_some()
}

/// Whether a person may have chosen it as a password: letters with digits or marks, and
/// nothing that is filled in later.
fn is_like_a_password(value: &str) -> bool {
    let has = |of: fn(&char) -> bool| value.chars().any(|c| of(&c));
    let marks = value.chars().filter(|c| "!@#$%^&*?+=~".contains(*c)).count();
    let mixed = has(char::is_ascii_alphabetic) && (has(char::is_ascii_digit) || marks > 0);
    mixed && !is_placeholder(value)
}

/// The shortest literal whose characters show that it is no name.
const RANDOM_MIN_BYTES: usize = 12;

/// Entropy over a literal's own bytes, in bits a byte. English words and identifiers stay
/// below this, keys of 16 and more hexadecimal digits lie above it.
const RANDOM_MIN_ENTROPY: f64 = 2.8;

/// Whether a machine may have made it: letters and digits in no order that a person reads.
fn is_random(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    let of_key = |b: u8| b.is_ascii_alphanumeric() || b"+/=_-.~!@#%^&*?:".contains(&b);
    value.len() >= RANDOM_MIN_BYTES
        && value.bytes().all(of_key)
        && digits >= 2
        && letters >= 2
        // This excludes `error-404`, `v2.3.1-beta`, `example.com:8080` and `sha256`.
        && changes_between_letters_and_digits(value) >= 3
        && entropy(value) >= RANDOM_MIN_ENTROPY
        && !is_placeholder(value)
}

fn changes_between_letters_and_digits(value: &str) -> usize {
    let kinds: Vec<bool> =
        value.bytes().filter(u8::is_ascii_alphanumeric).map(|b| b.is_ascii_digit()).collect();
    kinds.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// Shannon's entropy over the text's own bytes, in bits a byte.
fn entropy(text: &str) -> f64 {
    let mut counts = [0u32; 256];
    text.bytes().for_each(|b| counts[usize::from(b)] += 1);
    let total = text.len() as f64;
    let shares = counts.iter().filter(|&&count| count > 0).map(|&count| f64::from(count) / total);
    shares.map(|share| -share * share.log2()).sum()
}

/// Whether the value is filled in later, or plainly made up.
fn is_placeholder(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let filled_in =
        ["${", "{{", "$(", "<", "%s", "%(", "{}", "#{", "\\(", "process.env", "os.environ"];
    let made_up = [
        "example",
        "placeholder",
        "changeme",
        "change_me",
        "your_",
        "your-",
        "xxxx",
        "****",
        "...",
        "dummy",
    ];
    filled_in.iter().chain(&made_up).any(|sign| lower.contains(sign))
        || value.starts_with('$')
        || value.starts_with('{')
}
