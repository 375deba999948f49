//! Forms that no single service owns: keys, headers, URLs, hashes and options of commands.

use super::super::value::{
    are_different_words, is_basic_login, is_password_in_url, is_random, is_token_in_header,
    is_typed_password,
};
use super::{Rule, rule};

pub(super) const RULES: &[Rule] = &[
    // Either end is enough, because the other one may lie outside the window.
    rule(
        "private key",
        &["private key"],
        r"-----(?:BEGIN|END) [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----",
    ),
    rule("PuTTY key", &["putty-user-key"], r"PuTTY-User-Key-File-\d"),
    rule("age key", &["age-secret-key"], r"\bAGE-SECRET-KEY-1[0-9A-Z]{20,}"),
    rule("private JSON Web Key", &["kty"], r#"(?s)"kty".{0,600}?"[dk]"\s*:\s*"[\w-]{20,}"#),
    rule(
        "private JSON Web Key",
        &["kty"],
        r#"(?s)"[dk]"\s*:\s*"[\w-]{20,}={0,2}".{0,600}?"kty"\s*:"#,
    ),
    rule("extended private key", &["xprv"], r"\b[xyzt]prv[1-9A-HJ-NP-Za-km-z]{70,}"),
    // Words of a wallet (BIP 39) have three to eight letters, and there are twelve to twenty-four.
    rule(
        "words of a wallet",
        &["mnemonic", "seed_phrase", "seedphrase", "recovery_phrase"],
        concat!(
            r#"(?:(?i)mnemonic|seed_?phrase|recovery_phrase)["'`]?\]?\s*(?::=|=>|[:=])\s*"#,
            r#"["'`]?((?:[a-z]{3,8} ){11,23}[a-z]{3,8})(?:["'`\r\n]|\z)"#
        ),
    )
    .check(are_different_words),
    rule("JSON Web Token", &["eyj"], r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}"),
    rule("JSON Web Token in base64", &["zxlk"], r"\bZXlK[A-Za-z0-9+/]{40,}").min_entropy(4.0),
    // A login is a name, a colon and a password in base64, which may be very short.
    rule("Authorization header", &["basic"], r"(?i)\bbasic +([A-Za-z0-9+/_-]{6,}={0,2})")
        .check(is_basic_login),
    rule(
        "Authorization header",
        &["bearer", "authorization"],
        concat!(
            r#"(?i)\b(?:bearer|authorization\W{1,6}token)[ :"']+"#,
            r"[A-Za-z0-9+/_.=-]{0,60}\d[A-Za-z0-9+/_.=-]{15,}"
        ),
    )
    .min_entropy(2.75),
    rule(
        "Authorization header",
        &["authorization"],
        concat!(
            r#"(?i)authorization\\?["']?\s*(?:\]\s*)?(?:=>|[:=,])\s*[bfr]?\\?["'`]?"#,
            r#"(?:bearer|token|apikey|api-key|key|digest)[ :=]+\\?["']?([\w=~@.+/-]{8,})"#
        ),
    )
    .check(is_token_in_header),
    // `://user:$PASSWORD@` and `://user:{password}@` do not match.
    rule(
        "URL with a password",
        &["://"],
        concat!(
            r#"\b[a-z][a-z0-9+.-]*://[^\s/:@'"`<>{}$]*:"#,
            r#"([^\s/@'"`<>{}$%*][^\s/@'"`<>{}]{2,})@[\w\[]"#
        ),
    )
    .check(is_password_in_url),
    rule(".netrc entry", &["machine"], r"\bmachine\s+\S+\s+login\s+\S+\s+password\s+([^\s$<{]\S*)")
        .check(is_password_in_url),
    rule(
        "hash of a password",
        &["$2", "$argon2", "$1$", "$5$", "$6$", "$y$", "$apr1$", "$7$", "pbkdf2", "{ssha"],
        concat!(
            r"\$2[abxy]\$\d\d\$[./A-Za-z0-9]{50,}|\$argon2(?:id|i|d)\$v=|",
            r"\$(?:[1567y]|apr1)\$[./A-Za-z0-9=,$]{4,}\$[./A-Za-z0-9]{20,}|",
            r"\bpbkdf2_sha\d+\$\d+\$\S{4,}\$[\w+/]{20,}|\$pbkdf2-\S{30,}|",
            r"\{SSHA(?:256|512)?\}[A-Za-z0-9+/]{28,}"
        ),
    ),
    rule(
        "line of a password file",
        &["$apr1$", "{sha}"],
        r"(?m)^[\w.@-]+:(?:\$apr1\$|\{SHA\})[\w./+$=]{20,}",
    ),
    // The options of `curl`, `wget`, `mysql` and their like.
    rule(
        "login on a command line",
        &["curl", "wget", "http"],
        concat!(
            r"\b(?:curl|wget|https?)\b[^\n]{0,300}?\s",
            r#"(?:-u|--user|--proxy-user|-a|--auth|-U)[ =]*["']?"#,
            r#"[^\s"':$]{1,60}:([^\s"'$<{][^\s"']{2,})"#
        ),
    )
    .check(is_typed_password),
    rule(
        "password on a command line",
        &["mysql", "mariadb"],
        concat!(
            r"\b(?:mysql|mysqldump|mysqladmin|mariadb|mariadb-dump)\b[^\n]{0,200}?",
            r#"\s-p["']?([^\s"'$-][^\s"']{3,})"#
        ),
    )
    .check(is_typed_password),
    rule(
        "password on a command line",
        &["sshpass", "docker", "podman", "helm", "redis-cli", "mongo", "ldap", "smbclient", "7z"],
        concat!(
            r"\b(?:sshpass[^\n]{0,40}?\s-p|",
            r"(?:docker|podman|helm)\b[^\n]{0,40}\blogin\b[^\n]{0,200}?\s-p|",
            r"redis-cli\b[^\n]{0,200}?\s-a|",
            r"(?:mongosh?|mongodump|mongorestore)\b[^\n]{0,200}?\s-p|",
            r#"ldap(?:search|modify|add|whoami)\b[^\n]{0,200}?\s-w|7z\b[^\n]{0,200}?\s-p)"#,
            r#"\s*["']?([^\s"'$-][^\s"']{3,})"#
        ),
    )
    .check(is_typed_password),
    rule(
        "login on a command line",
        &["-p"],
        concat!(r#"\s(?:-u|--user|--username)[ =]\S+\s+-p[ =]?"#, r#"["']?([^\s"'$-][^\s"']{3,})"#),
    )
    .check(is_typed_password),
    rule(
        "login in code",
        &["auth", "securestring", "wifi.begin"],
        concat!(
            r#"(?i)(?:auth\w*["']?\s*[=:]?\s*[(\[]\s*["'][^"'\n]+["']\s*,|"#,
            r#"ConvertTo-SecureString(?:\s+-String)?|WiFi\.begin\([^,\n]{1,40},)"#,
            r#"\s*["']([^"'\s]{6,})["']"#
        ),
    )
    .check(is_typed_password),
    rule(
        "session in a cookie",
        &["cookie"],
        r"(?i)\bcookie:[^\n]{0,300}?\b[\w.-]*(?:sess|sid|auth|token)[\w.-]*=([\w%.+/=-]{16,})",
    )
    .check(is_random),
    rule("URL with a token", &["://"], r"\bhttps?://([\w-]{20,})@[\w\[]").check(is_random),
    rule(
        "password of openssl",
        &["pass:"],
        r#"-(?:pass|passin|passout|pass(?:in|out)?:?)\s+["']?pass:([^\s"'$]{4,})"#,
    )
    .check(is_typed_password),
    rule(
        "password in SQL",
        &["identified"],
        concat!(
            r"(?i)\bidentified\s+(?:with\s+\S+\s+)?by\s+(?:password\s+)?",
            r#"["']([^\s"'$<{][^\s"']{3,})["']"#
        ),
    )
    .check(is_typed_password),
    rule(
        "secret of a cluster",
        &["kind"],
        concat!(
            r#"(?i)\bkind:[ \t]*["']?secret\b(?s:.){0,300}?\b(?:string)?data:"#,
            r#"(?s:.){0,120}?\s[\w.-]+:[ \t]*["']?([a-z0-9+/]{10,}={0,3})["']?[ \t]*(?:\n|\z)"#
        ),
    )
    .check(is_token_in_header),
    rule("login of a container registry", &["auth"], r#""auth"\s*:\s*"([A-Za-z0-9+/]{6,}={0,2})""#)
        .check(is_basic_login),
    rule(
        "key of a feed",
        &["<add"],
        r#"(?i)<add\s+key="(?:ClearText)?Password"\s*value="([^"%]{6,})""#,
    )
    .check(is_typed_password),
];
