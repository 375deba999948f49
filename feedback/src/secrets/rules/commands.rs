//! Passwords that are handed to a command: by a pipe, by an option of one letter that every user of
//! the command writes, or by their place.

use super::super::value::{is_random, is_typed_password};
use super::{Rule, rule};

pub(super) const RULES: &[Rule] = &[
    // `echo … | sudo -S`, `printf '%s' … | docker login --password-stdin`.
    rule(
        "password in a pipe",
        &[
            "sudo",
            "stdin",
            "chpasswd",
            "passwd",
            "token",
            "login",
            "cryptsetup",
            "passphrase",
            "kinit",
        ],
        concat!(
            r"\b(?:echo|printf|print|Write-Output)\s+(?:-[neE]+\s+)?",
            r#"(?:(?:'%s(?:\\n)?'|"%s(?:\\n)?"|%s)\s+)?["']?(?:"#,
            r#"[\w.@-]{1,40}:)?([^\s"'|$`{<:]{4,})["']?"#,
            r"\s*\|\s*(?:",
            r"[^\n|]{0,120}(?:sudo\b[^\n|]{0,60}\s-\w*S\b|--password-stdin\b|--with-token\b|",
            r"--stdin\b|--passphrase-fd\b|stdin:)|",
            r"(?:sudo\s+(?:-\S+\s+)*)?(?:chpasswd|passwd|smbpasswd|cryptsetup|kinit|su",
            r"|vncpasswd)\b|",
            r"[^\n|]{0,60}\blogin\b)"
        ),
    )
    .check(is_typed_password),
    // `sudo -S id <<< '…'`.
    rule(
        "password in a pipe",
        &["<<<"],
        concat!(
            r"\b(?:sudo\b[^\n]{0,200}\s-\w*S\b|(?:chpasswd|passwd|smbpasswd|cryptsetup|kinit|su)",
            r"\b|",
            r"[^\n]{0,200}(?:--password-stdin|--with-token|--stdin|--passphrase-fd|\blogin\b))",
            r#"[^\n]{0,200}<<<\s*["']?(?:[\w.@-]{1,40}:)?([^\s"'$`{<:]{4,})"#
        ),
    )
    .check(is_typed_password),
    // The name of a user comes before the password.
    rule(
        "password of a user",
        &["htpasswd"],
        concat!(
            r#"\bhtpasswd\b[^\n]{0,60}?\s-\w*b\w*(?:\s+-\S+)*(?:\s+[^\s-]\S*){1,2}\s+"#,
            r#"["']?([^\s"'$<>|&-][^\s"']{3,})"#
        ),
    )
    .check(is_typed_password),
    rule(
        "password of a user",
        &["rabbitmqctl", "wpa_passphrase", "add_user", "change_password"],
        concat!(
            r"\b(?:rabbitmqctl\b[^\n]{0,60}\b(?:add_user|change_password|authenticate_user)",
            r"|wpa_passphrase)",
            r#"\s+\S+\s+["']?([^\s"'$<][^\s"']{3,})"#
        ),
    )
    .check(is_typed_password),
    // `net use Z: \\server\share …`, `net user name … /add`.
    rule(
        "password on a command line",
        &["net use"],
        concat!(
            r#"(?i)\bnet(?:\.exe)?\s+(?:use\s+(?:(?:[a-z]:|\*)\s+)?["']?\\{2,4}[^\s"']+"#,
            r#"["']?|user\s+["']?[\w.-]+["']?)"#,
            r#"\s+["']?([^\s"'/*%$][^\s"'%]{3,})"#
        ),
    )
    .check(is_typed_password),
    // Commands for Windows take options that begin with a slash.
    rule(
        "password on a command line",
        &["xfreerdp", "wfreerdp", "schtasks", "signtool", "cmdkey", "psexec", "mstsc"],
        concat!(
            r"(?i)\b(?:[xw]freerdp|schtasks|signtool|cmdkey|psexec|mstsc)\b[^\n]{0,300}?",
            r#"\s[/-](?:rp|pass|p)[: ]\s*["']?([^\s"'$%*/-][^\s"'%]{3,})"#
        ),
    )
    .check(is_typed_password),
    rule(
        "password on a command line",
        &["ipmitool", "sqlcmd", "bcp", "zip", "mosquitto_", "osql"],
        concat!(
            r"\b(?:ipmitool|sqlcmd|osql|bcp|zip|unzip|mosquitto_(?:pub|sub|rr))\b[^\n]{0,200}?",
            r#"\s-P\s*["']?([^\s"'$-][^\s"']{3,})"#
        ),
    )
    .check(is_typed_password),
    rule(
        "password on a command line",
        &["cqlsh", "rar ", "openssl", "usermod", "useradd", "snmp", "rdesktop", "ncftp"],
        concat!(
            r"\b(?:cqlsh\b[^\n]{0,200}?\s-p|rar\s[^\n]{0,100}?\s-h?p|",
            r"openssl\s+enc\b[^\n]{0,200}?\s-k|user(?:mod|add)\b[^\n]{0,100}?\s-p|",
            r"snmp(?:walk|get|set|bulkwalk)\b[^\n]{0,200}?\s-[AX]|(?:rdesktop|ncftp\w*)\b",
            r"[^\n]{0,200}?\s-p)",
            r#"\s*["']?([^\s"'$-][^\s"']{3,})"#
        ),
    )
    .check(is_typed_password),
    // Redis has them in its own file, on its command line and in a command.
    rule(
        "password of Redis",
        &["requirepass", "masterauth"],
        concat!(
            r"(?im)(?:^[ \t]*|--|\bconfig[ \t]+set[ \t]+)(?:requirepass|masterauth)[ \t]+",
            r#"["']?([^\s"'$<]{6,})"#
        ),
    )
    .check(is_typed_password),
    // The name and the password are one word.
    rule(
        "login on a command line",
        &["sqlplus", "sqlldr", "expdp", "impdp", "smbclient", "rpcclient", "lftp"],
        concat!(
            r"\b(?:(?:sqlplus|sqlldr|expdp|impdp)\b[^\n]{0,60}?\s(?:userid=)?\w+/|",
            r"(?:smbclient|rpcclient)\b[^\n]{0,200}?\s-U\s*\S+?%|lftp\b[^\n]{0,100}?\s-u\s*",
            r"[\w.@-]+,)",
            r#"["']?([^\s"'@$<][^\s"'@]{3,})"#
        ),
    )
    .check(is_typed_password),
    rule(
        "token on a command line",
        &["aws configure", "vault login"],
        concat!(
            r#"\b(?:aws\s+configure\s+set\s+\S*(?:secret|token)\S*|vault\s+login)\s+"#,
            r#"["']?([^\s"'$<-][^\s"']{11,})"#
        ),
    )
    .check(is_random),
];
