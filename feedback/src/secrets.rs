//! What must never be stored: texts that hold a credential, and files that are
//! made to hold some. Pure: no file is read, nothing is remembered.
//!
//! Two kinds of signs. Credentials of known services have a form of their own
//! ([`FORMS`]). All others are known by their place: a literal that looks like
//! nothing a person would name, given to something called `password` or
//! `api_key` ([`GIVEN`]). The second kind is a guess; it leans to withholding,
//! which costs a label, where storing would cost a password.

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use std::sync::LazyLock;

/// Credentials by their form: what each is, and how it looks. The lengths are a
/// little below the real ones, for what is still being typed.
const FORMS: &[(&str, &str)] = &[
    // Either end alone: the other may lie outside of the window.
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
        r"\b(hf_[A-Za-z]{30,}|gsk_[A-Za-z0-9]{40,}|r8_[A-Za-z0-9]{30,}|xai-[A-Za-z0-9]{40,}|pplx-[A-Za-z0-9]{40,})",
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
        r"\b(lin_(api|oauth)_[A-Za-z0-9]{30,}|ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43}\b|sntr[ysu]_[\w=+/-]{40,})",
    ),
    (
        "Supabase, PlanetScale, Doppler, Pulumi",
        r"\b(sbp_[a-f0-9]{40}|pscale_(tkn|pw|oauth)_[\w.-]{30,}|dp\.(pt|st|ct|sa)\.[\w.-]{30,}|pul-[a-f0-9]{40})",
    ),
    (
        "Grafana, New Relic, Datadog",
        r"\b(glsa_[A-Za-z0-9]{32}_|glc_[A-Za-z0-9+/]{32,}|NRAK-[A-Z0-9]{27}|ddp_[A-Za-z0-9]{36})",
    ),
    ("Azure key", r"(?i)(AccountKey|SharedAccessKey|SharedSecret)=[A-Za-z0-9+/]{30,}"),
    ("Azure secret", r"\b[\w~.-]{3}\dQ~[\w~.-]{31,34}"),
    ("JSON Web Token", r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}"),
    (
        "Authorization header",
        r#"(?i)\b(bearer|basic|authorization\W{1,6}token)[ :"']+[A-Za-z0-9+/_.=-]{0,60}\d[A-Za-z0-9+/_.=-]{15,}"#,
    ),
    (".netrc entry", r"\bmachine\s+\S+\s+login\s+\S+\s+password\s+\S+"),
    (
        "hash of a password",
        r"\$(2[abxy]\$\d\d\$[./A-Za-z0-9]{50,}|argon2(id|i|d)\$v=|[156y]\$[./A-Za-z0-9]{4,}\$[./A-Za-z0-9]{20,})",
    ),
    // Not `://user:$PASSWORD@` nor `://user:{password}@`.
    (
        "URL with a password",
        r#"\b[a-z][a-z0-9+.-]*://[^\s/:@'"`<>{}$]*:[^\s/@'"`<>{}$%*]([^\s/@'"`<>{}]){2,}@[\w\[]"#,
    ),
];

/// A name, and the literal it is given: in code, JSON, YAML, TOML, a header, a
/// command line. Groups: the name, then the value, quoted or (where a file of
/// settings would have it so) bare.
const GIVEN: &str = concat!(
    r#"(?im)(?P<name>pass_?word|passwd|passphrase|\bpwd|(?:\b|_)pass\b|secret|token|api_?key|apikey|access_?key|"#,
    r#"auth_?key|private_?key|signing_?key|encryption_?key|account_?key|credentials?|client_?secret)"#,
    r#"[\w.-]{0,20}['"`]?\]?\s*(?::\s*[&\w<>' ]{1,20}=|:=|=>|[:=,(]|\s=>)\s*"#,
    r#"(?:[bfru@]{0,2}["'`](?P<quoted>[^"'`\s]{6,400})["'`]"#,
    r#"|(?P<bare>[^\s"'`,;(){}\[\]<>$]{8,400})\s*$)"#
);

// Credentials are ASCII; Unicode's classes would make the automata many times
// as large.
static FORMED: LazyLock<RegexSet> = LazyLock::new(|| {
    let forms = RegexSetBuilder::new(FORMS.iter().map(|(_, form)| form)).unicode(false).build();
    forms.expect("constant patterns")
});
static ASSIGNED: LazyLock<Regex> =
    LazyLock::new(|| RegexBuilder::new(GIVEN).unicode(false).build().expect("a constant pattern"));

/// What kind of credential a text holds, if any; never the credential itself.
pub fn find(text: &str) -> Option<&'static str> {
    if let Some(form) = FORMED.matches(text.as_bytes()).iter().next() {
        return Some(FORMS[form].0);
    }
    let given = ASSIGNED.captures_iter(text.as_bytes()).any(|found| {
        let group = |name| found.name(name).map(|group| String::from_utf8_lossy(group.as_bytes()));
        let name = group("name").unwrap_or_default().to_ascii_lowercase();
        let name = name.trim_start_matches('_');
        let is_password = name.starts_with("pass") || name == "pwd";
        match (group("quoted"), group("bare")) {
            (Some(value), _) if is_password => is_like_a_password(&value),
            // `password: s3cr3t!` of a settings file, not `password = user.password_2`.
            (_, Some(value)) if is_password && name != "pass" => {
                let is_name = ["pass", ".", "::"].iter().any(|part| value.contains(part));
                !is_name && is_like_a_password(&value)
            }
            (Some(value), _) | (_, Some(value)) => is_random(&value),
            _ => false,
        }
    });
    given.then_some("a literal given to a secret's name")
}

pub fn holds_secret(text: &str) -> bool {
    find(text).is_some()
}

/// What people choose: letters with digits or marks, and nothing that is filled
/// in later.
fn is_like_a_password(value: &str) -> bool {
    let has = |of: fn(&char) -> bool| value.chars().any(|c| of(&c));
    let marks = value.chars().filter(|c| "!@#$%^&*?+=~".contains(*c)).count();
    let mixed = has(char::is_ascii_alphabetic) && (has(char::is_ascii_digit) || marks > 0);
    mixed && !is_placeholder(value)
}

/// Shortest literal that can be told from a name by how it is made up.
const RANDOM_MIN_BYTES: usize = 12;

/// Bits a byte of its own letters: English and identifiers of this length stay
/// below, keys of 16 and more hexadecimal digits lie above.
const RANDOM_MIN_ENTROPY: f64 = 2.8;

/// What machines make: letters and digits in no order a person reads.
fn is_random(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    let of_key = |b: u8| b.is_ascii_alphanumeric() || b"+/=_-.~!@#%^&*?:".contains(&b);
    value.len() >= RANDOM_MIN_BYTES
        && value.bytes().all(of_key)
        && digits >= 2
        && letters >= 2
        // Not `error-404`, `v2.3.1-beta`, `example.com:8080`, `sha256`.
        && changes_between_letters_and_digits(value) >= 3
        && entropy(value) >= RANDOM_MIN_ENTROPY
        && !is_placeholder(value)
}

fn changes_between_letters_and_digits(value: &str) -> usize {
    let kinds: Vec<bool> =
        value.bytes().filter(u8::is_ascii_alphanumeric).map(|b| b.is_ascii_digit()).collect();
    kinds.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// Shannon's, over the text's own bytes, in bits a byte.
fn entropy(text: &str) -> f64 {
    let mut counts = [0u32; 256];
    text.bytes().for_each(|b| counts[usize::from(b)] += 1);
    let total = text.len() as f64;
    let shares = counts.iter().filter(|&&count| count > 0).map(|&count| f64::from(count) / total);
    shares.map(|share| -share * share.log2()).sum()
}

/// Filled in later, or plainly made up.
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

/// Files that are made to hold credentials, by their names: nothing of what is
/// written in them is stored, whatever it looks like.
pub fn is_sensitive_path(path: &str) -> bool {
    let lower = path.to_ascii_lowercase().replace('\\', "/");
    let lower = lower.split(['?', '#']).next().unwrap_or_default();
    let name = lower.rsplit('/').next().unwrap_or_default();
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let env =
        (name == ".env" || name.starts_with(".env.") || extension == "env" || name == ".envrc")
            && !["example", "sample", "template", "dist", "defaults"].contains(&extension);
    env || NAMES.contains(&name)
        || EXTENSIONS.contains(&extension)
        || (STEMS.contains(&stem) && DATA.contains(&extension))
        || KEY_FILES.iter().any(|start| name.starts_with(start) && extension != "pub")
        || (extension == "json"
            && ["service-account", "service_account", "client_secret"]
                .iter()
                .any(|s| stem.contains(s)))
        || FOLDERS.iter().any(|folder| lower.contains(folder))
}

/// Whole names.
const NAMES: &[&str] = &[
    ".npmrc",
    ".yarnrc.yml",
    ".netrc",
    "_netrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".htpasswd",
    ".s3cfg",
    ".boto",
    ".git-credentials",
    ".dockercfg",
    ".dockerconfigjson",
    ".vault-token",
    ".terraformrc",
    "terraform.rc",
    ".rclone.conf",
    "rclone.conf",
    ".authinfo",
    ".authinfo.gpg",
    ".password-store",
    "wp-config.php",
    "shadow",
    "gshadow",
    "master.key",
    "kubeconfig",
    "nuget.config",
    "auth.json",
    "secring.gpg",
    "pubring.kbx",
    "terraform.tfstate",
    "terraform.tfstate.backup",
    ".bash_history",
    ".zsh_history",
    ".psql_history",
];

/// Keys, keystores, vaults.
const EXTENSIONS: &[&str] = &[
    "pem",
    "key",
    "p12",
    "pfx",
    "p8",
    "pkcs12",
    "jks",
    "keystore",
    "ppk",
    "kdbx",
    "kdb",
    "asc",
    "gpg",
    "pgp",
    "ovpn",
    "tfvars",
    "mobileprovision",
    "agekey",
    "keytab",
    "vault",
];

/// Names before the last dot, of files that hold [`DATA`]: `secrets.yaml`, not
/// `secrets.rs`.
const STEMS: &[&str] =
    &["credentials", "credential", "secrets", "secret", ".secrets", ".credentials", "passwords"];

const DATA: &[&str] = &[
    "",
    "json",
    "yaml",
    "yml",
    "toml",
    "ini",
    "cfg",
    "conf",
    "txt",
    "csv",
    "xml",
    "properties",
    "xlsx",
    "md",
    "enc",
];

/// How SSH names its private keys; what ends in `.pub` is public.
const KEY_FILES: &[&str] = &["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "ssh_host_"];

/// Folders of programs that keep credentials, anywhere in a path.
const FOLDERS: &[&str] = &[
    "/.ssh/",
    "/.gnupg/",
    "/.aws/",
    "/.azure/",
    "/.config/gcloud/",
    "/.kube/",
    "/.docker/config.json",
    "/.password-store/",
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::time::Instant;

    /// Letters and digits that look drawn; the same at every run.
    fn random(length: usize, alphabet: &str) -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let next = |_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            letters[(state >> 33) as usize % letters.len()]
        };
        (0..length).map(next).collect()
    }

    fn word(length: usize) -> String {
        random(length, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
    }

    fn hex(length: usize) -> String {
        random(length, "0123456789abcdef")
    }

    #[test]
    fn credentials_of_known_services_are_seen_wherever_they_stand() {
        let secrets = [
            format!("-----BEGIN {}-----", "RSA PRIVATE KEY"),
            format!("-----END {}-----", "OPENSSH PRIVATE KEY"),
            format!("AKIA{}", random(16, "ABCDEFGHIJKLMNOP234567")),
            format!("ghp_{}", word(36)),
            format!("github_pat_{}", word(60)),
            format!("glpat-{}", word(20)),
            format!("xoxb-{}-{}", "123456789012", word(24)),
            format!("https://hooks.slack.com/services/T{}/B{}/{}", word(8), word(8), word(24)),
            format!("sk_live_{}", word(24)),
            format!("AIza{}", word(35)),
            format!("sk-ant-api03-{}", word(40)),
            format!("sk-proj-{}", word(40)),
            format!("npm_{}", word(36)),
            format!("hf_{}", random(34, "abcdefghijklmnopqrstuvwxyzABCDEFG")),
            format!("eyJ{}.eyJ{}.{}", word(20), word(40), word(43)),
            format!("postgres://app:{}@db.internal:5432/app", word(8)),
            format!("Authorization: Bearer {}7", word(30)),
            format!("machine example.org login me password {}", word(9)),
            format!("DefaultEndpointsProtocol=https;AccountKey={}==", word(86)),
        ];
        for secret in &secrets {
            for around in [
                secret.clone(),
                format!("let x = \"{secret}\"; // {secret}"),
                format!("a:\n  {secret}\n"),
            ] {
                assert!(holds_secret(&around), "{around}");
            }
        }
    }

    #[test]
    fn a_literal_that_is_given_to_a_secrets_name_is_one() {
        let (key, password) = (hex(32), format!("hunter{}!", 2));
        for line in [
            format!("const API_KEY = \"{key}\";"),
            format!("api_key: '{key}'"),
            format!("  \"clientSecret\": \"{key}\","),
            format!("let token: &str = \"{key}\";"),
            format!("os.environ[\"SECRET_KEY\"] = \"{key}\""),
            format!("SECRET_KEY={key}"),
            format!("POSTGRES_PASSWORD: {password}9\n"),
            format!("export DB_TOKEN={key}\n"),
            format!("password = \"{password}\""),
            format!("db_pass = \"{password}\""),
            format!("connect(user=\"me\", password='{password}')"),
            format!("\"db_password\" => \"{password}\","),
            format!("std::string passphrase(\"{password}\");"),
        ] {
            assert!(holds_secret(&line), "{line}");
        }
    }

    #[test]
    fn ordinary_code_about_secrets_is_none() {
        for line in [
            "let token = lexer.next_token();",
            "let token = \"identifier\";",
            "password = os.environ[\"DB_PASSWORD\"]",
            "password: \"${DB_PASSWORD}\"",
            "<input type=\"password\" name=\"password\">",
            "if token == \"end_of_text\" { secret = None }",
            "API_KEY = \"your_api_key_here_123\"",
            "fn check(password: &str) -> bool {",
            "sha256 = \"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"",
            "curl https://example.org:8080/path@2x.png",
            "postgres://app:$PASSWORD@localhost/app",
            "format!(\"https://{user}:{password}@{host}\")",
            "# token: see https://example.com/docs/tokens",
            "max_tokens = 32",
            "tokens: vec![TokenRecord { id: 987_654, logprob: -0.5 }],",
            "git@github.com:owner/name.git",
            "pipeline(\"cumsum_multipass1_f32\", \"cumsum_multipass1.comp\");",
        ] {
            assert_eq!(find(line), None, "{line}");
        }
    }

    #[test]
    fn files_that_hold_credentials_are_known_by_name() {
        for path in [
            "/p/.env",
            "/p/.env.local",
            "/p/prod.env",
            "/p/.envrc",
            "/home/me/.ssh/config",
            "/p/id_rsa",
            "/p/id_ed25519.bak",
            "/p/server.pem",
            "/p/server.KEY",
            "/home/me/.npmrc",
            "/home/me/.netrc",
            "/home/me/.aws/credentials",
            "/p/credentials.json",
            "/p/secrets.yaml",
            "/p/my-service-account.json",
            "/p/prod.tfvars",
            "C:\\p\\.env",
            "untitled:/p/.env?x=1",
        ] {
            assert!(is_sensitive_path(path), "{path}");
        }
        for path in [
            "/p/.env.example",
            "/p/environment.rs",
            "/p/keys.rs",
            "/p/key.rs",
            "/p/id_rsa.pub",
            "/p/token.ts",
            "/p/secrets.rs",
            "/p/env/main.py",
            "untitled:Untitled-1",
        ] {
            assert!(!is_sensitive_path(path), "{path}");
        }
    }

    /// Windows as a completion is asked for in them, over this repository's own
    /// sources: what would be withheld of ordinary work.
    #[test]
    fn ordinary_sources_are_hardly_ever_withheld() {
        const WINDOW_BYTES: usize = 2000;
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut files = vec![];
        for part in [
            "models",
            "feedback",
            "lsp-server",
            "learner",
            "rehearsal",
            "tests",
            "xtask",
            "neovim",
            "docs",
        ] {
            sources(&root.join(part), &mut files);
        }
        let (mut windows, mut withheld) = (0u32, vec![]);
        for path in files.iter().filter(|path| !path.ends_with("feedback/src/secrets.rs")) {
            let text = std::fs::read_to_string(path).unwrap();
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let mut window = String::new();
            for (number, line) in lines.iter().enumerate() {
                window.push_str(line);
                if window.len() >= WINDOW_BYTES || number + 1 == lines.len() {
                    windows += 1;
                    if let Some(kind) = find(&window) {
                        withheld.push(format!(
                            "{} near line {}: {kind}",
                            path.display(),
                            number + 1
                        ));
                    }
                    window.clear();
                }
            }
        }
        println!("withheld {} of {windows} windows: {withheld:#?}", withheld.len());
        assert!(windows > 300 && withheld.len() * 200 <= windows as usize, "{withheld:#?}");
    }

    fn sources(folder: &Path, files: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
            if path.is_dir() {
                sources(&path, files);
            } else if ["rs", "toml", "lua", "md", "py", "json"].contains(&extension) {
                files.push(path);
            }
        }
    }

    /// A prompt's window of two kilobytes, with nothing in it that ends the search.
    #[test]
    fn a_prompt_takes_well_under_a_millisecond() {
        let text = include_str!("sled_log.rs");
        let window = &text[..2048];
        assert_eq!(find(window), None);
        let started = Instant::now();
        const ROUNDS: u32 = 200;
        for _ in 0..ROUNDS {
            assert!(!holds_secret(std::hint::black_box(window)));
        }
        let each = started.elapsed() / ROUNDS;
        println!("{each:?} for 2 KiB");
        assert!(each.as_micros() < 1000, "{each:?}");
    }
}
