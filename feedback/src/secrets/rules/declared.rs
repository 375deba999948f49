//! Values whose name stands elsewhere: on a line above, as the default of a parameter, or in front
//! of the text that looks it up.

use super::super::value::{is_random, is_typed_password};
use super::{Rule, rule};

/// Names of passwords, and of what machines make. Nothing may follow them in a name, because a name
/// such as `password_file` says something else.
macro_rules! password {
    () => {
        r"(?:password|passwd|passphrase|passwort|pwd|passcode)"
    };
}
macro_rules! secret {
    () => {
        concat!(
            r"(?:secret|token|api[_-]?key|apikey|access[_-]?key|secret[_-]?key|private[_-]?key",
            r"|credentials?)"
        )
    };
}

/// The text between a name and the default of what it names: the rest of its line, and lines of
/// settings. Another name with settings of its own, or the end of the block, ends it.
macro_rules! until_default {
    () => {
        concat!(
            r#"["'`]?(?:\s*[\]})]*\s*[:=({,]|\s*\{|[ \t]*:)[^\n}]{0,160}?"#,
            r#"(?:\n[ \t]+["'-]*[\w.-]+["']?[ \t]*[:=][ \t]*[^\s{\[][^\n]{0,160}){0,6}?"#,
            r#"(?:\n[ \t]+|[\s{,(;]|\b)["']?"#
        )
    };
}

macro_rules! default {
    () => {
        r#"(?i:default(?:[_-]?value)?)["']?\s*(?:=>|[:=(,])\s*["']?"#
    };
}

const WORDS: &[&str] = &["default"];

pub(super) const RULES: &[Rule] = &[
    // Terraform, CloudFormation, Bicep, OpenAPI, inputs of actions, options of command lines.
    rule(
        "default of a password",
        WORDS,
        concat!(
            r"(?i)",
            password!(),
            until_default!(),
            default!(),
            r#"([^\s"'$<{(\[,][^\s"',]{5,})"#
        ),
    )
    .check(is_typed_password),
    rule(
        "default of a secret",
        WORDS,
        concat!(
            r"(?i)",
            secret!(),
            until_default!(),
            default!(),
            r#"([^\s"'$<{(\[,][^\s"',]{11,})"#
        ),
    )
    .check(is_random),
    // `${DB_PASSWORD:-…}` of shells and of Compose, `${db.password:…}` of Spring.
    rule(
        "default of a password",
        &["${"],
        concat!(r"(?i)\$\{[\w.-]{0,40}", password!(), r#":[-=]?([^\s}"'$?{][^\s}"'$]{4,})\}"#),
    )
    .check(is_typed_password),
    rule(
        "default of a secret",
        &["${"],
        concat!(r"(?i)\$\{[\w.-]{0,40}", secret!(), r#":[-=]?([^\s}"'$?{][^\s}"'$]{11,})\}"#),
    )
    .check(is_random),
    // Lists of properties, and elements that hold a name and a value.
    rule(
        "password in an element",
        &["</"],
        concat!(
            r"(?i)<(?:key|name|param-name|parameterkey)>\s*[\w.-]{0,40}",
            password!(),
            r"\s*</[\w-]+>\s*<(?:string|value|param-value|parametervalue)>\s*([^\s<$%{][^\s<]{5,})"
        ),
    )
    .check(is_typed_password),
    // Parameters of CloudFormation, and environments of ECS and Kubernetes in JSON.
    rule(
        "password in a list of parameters",
        &["value"],
        concat!(
            r#"(?i)"?(?:ParameterKey|name|key)"?\s*[:=]\s*["']?[\w.-]{0,40}"#,
            password!(),
            r#"["']?\s*[,\n]\s*"?(?:ParameterValue|value)"?\s*[:=]\s*["']?([^\s"'$<{(\[]"#,
            r#"[^\s"',]{5,})"#
        ),
    )
    .check(is_typed_password),
    // `CREATE USER … PASSWORD '…'`, `SET PASSWORD FOR … = PASSWORD('…')`.
    rule(
        "password in SQL",
        &["password"],
        concat!(
            r#"(?i)\b(?:user|role|login)\b[^\n;]{0,120}?\bpassword\s*(?:=\s*)?\(?\s*N?'([^\s'$<{]"#,
            r#"[^\s']{3,})'"#
        ),
    )
    .check(is_typed_password),
];
