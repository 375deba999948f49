//! Files that are made to hold credentials, known by their paths.

/// Returns true if a file is made to hold credentials, by its name. Nothing that is written in such
/// a file is stored, whatever it looks like.
pub fn is_sensitive_path(path: &str) -> bool {
    let lower = path.to_ascii_lowercase().replace('\\', "/");
    // In an address they end the path; in the path of a file they are characters like any other.
    let is_path = lower.starts_with('/') || lower.get(1..3) == Some(":/");
    let ends = |c| !is_path && matches!(c, '?' | '#');
    let lower = lower.split(ends).next().unwrap_or_default();
    let name = lower.rsplit('/').next().unwrap_or_default();
    let copied = copied(name);
    // Vim puts a dot before the names of its own files.
    let names = [Some(name), copied, copied.and_then(|name| name.strip_prefix('.'))];
    is_in_folder_of_credentials(lower) || names.into_iter().flatten().any(is_sensitive_name)
}

/// Returns true if a file with this name, in lower case, is made to hold credentials.
fn is_sensitive_name(name: &str) -> bool {
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let is_sample =
        ["example", "sample", "template", "dist", "defaults", "tmpl", "tpl"].contains(&extension);
    let env = (name.starts_with(".env.")
        || ENVIRONMENTS.contains(&name)
        || extension == "env"
        || is_env_of_stage(name))
        && !is_sample;
    env || NAMES.contains(&name)
        || EXTENSIONS.contains(&extension)
        || (STEMS.contains(&stem) && DATA.contains(&extension))
        || KEY_FILES.iter().any(|start| name.starts_with(start) && extension != "pub")
        || (extension == "json"
            && ["service-account", "service_account", "client_secret"]
                .iter()
                .any(|s| stem.contains(s)))
        || (extension == "json" && stem.ends_with(".tfvars"))
}

/// Endings of the copies that editors and people make of a file.
const COPIES: &[&str] = &["~", ".bak", ".backup", ".old", ".orig", ".save", ".swn", ".swo", ".swp"];

/// Returns the name of the file that this one is a copy of: `.env~`, `#.env#`, `.#.env`,
/// `server.pem.bak`, `server.pem.~1~`, `terraform.tfstate.1700000000.backup`.
fn copied(name: &str) -> Option<&str> {
    let mut of = name.strip_prefix(".#").unwrap_or(name).trim_matches('#');
    while let Some(shorter) = COPIES.iter().find_map(|end| of.strip_suffix(*end)) {
        let is_number =
            |part: &str| part.trim_start_matches('~').bytes().all(|b| b.is_ascii_digit());
        let numbered = shorter.rsplit_once('.').filter(|(_, part)| is_number(part));
        of = numbered.map_or(shorter, |(before, _)| before);
    }
    (of != name).then_some(of)
}

/// A relative name may begin with such a folder.
fn is_in_folder_of_credentials(lower: &str) -> bool {
    FOLDERS.iter().any(|folder| lower.contains(folder) || lower.starts_with(&folder[1..]))
}

/// Names of files that set an environment, all of them.
const ENVIRONMENTS: &[&str] =
    &[".env", ".envrc", ".flaskenv", ".dev.vars", ".secrets", ".env-local"];

/// The stages of a program's life, after which files that set an environment are named.
const STAGES: &[&str] = &[
    "dev",
    "development",
    "local",
    "live",
    "prod",
    "production",
    "qa",
    "release",
    "secret",
    "secrets",
    "stage",
    "staging",
    "test",
    "testing",
    "uat",
];

/// Returns true for the names of environments of one stage, such as `env.production`, `env-prod`
/// and `staging_env`, and their copies. Code has other extensions.
fn is_env_of_stage(name: &str) -> bool {
    let parts: Vec<&str> = name.split(['.', '-', '_']).filter(|part| !part.is_empty()).collect();
    let is_known = |part: &&str| *part == "env" || STAGES.contains(part);
    parts.len() >= 2
        && parts.contains(&"env")
        && parts.iter().any(|part| STAGES.contains(part))
        && parts.iter().all(|part| is_known(part) || ["bak", "old", "backup"].contains(part))
}

/// Whole names of files.
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
    "local.settings.json",
    "database.yml",
    "database.yaml",
    "credentials.yml.enc",
    "application-default-credentials.json",
    "application_default_credentials.json",
    "appsettings.secrets.json",
    "terraform.tfvars.json",
    "connectionstrings.config",
    "settings-security.xml",
    "key.properties",
    "keystore.properties",
    "signing.properties",
    "localsettings.php",
    "settings.local.php",
    "wp-config-local.php",
    "config.inc.php",
    "pgpass.conf",
    ".mylogin.cnf",
    "my.cnf",
    ".pg_service.conf",
    ".wgetrc",
    ".curlrc",
    ".fetchmailrc",
    ".msmtprc",
    ".mbsyncrc",
    ".offlineimaprc",
    "wpa_supplicant.conf",
    "ipsec.secrets",
    "chap-secrets",
    "pap-secrets",
    "smbcredentials",
    ".smbcredentials",
    "krb5.keytab",
    ".ansible_vault_pass",
    ".vault_pass",
    ".vault_password",
    ".vault_pass.txt",
    "vault.yml",
    "vault.yaml",
    ".sentryclirc",
    ".mysql_history",
    ".rediscli_history",
    "fish_history",
    "secring.gpg",
    "pubring.kbx",
    "terraform.tfstate",
    "terraform.tfstate.backup",
    ".bash_history",
    ".zsh_history",
    ".psql_history",
];

/// Extensions of keys, keystores and vaults.
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

/// Names before the last dot. They count for files of [`DATA`]: `secrets.yaml` is sensitive,
/// `secrets.rs` is not.
const STEMS: &[&str] =
    &["credentials", "credential", "secrets", "secret", ".secrets", ".credentials", "passwords"];

/// Extensions of files that hold data and no code.
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

/// The way in which SSH names its private keys. A file that ends in `.pub` holds a public key.
const KEY_FILES: &[&str] = &["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "ssh_host_"];

/// Folders in which programs keep credentials, anywhere in a path. Each begins with a slash.
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

    #[test]
    fn files_that_hold_credentials_are_known_by_name() {
        for path in [
            "/p/.env",
            "/p/.env.local",
            "/p/prod.env",
            "/p/.envrc",
            "/home/me/.ssh/config",
            ".ssh/config",
            ".kube/config",
            ".docker/config.json",
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
            "/p/c#/.env",
            "/p/why?/id_rsa",
            "/p/local.settings.json",
            "/p/config/database.yml",
            "/p/env.production",
            "/p/env.prod.bak",
            "/p/production.env",
            "/p/staging_env",
            "/p/env-local",
            "/p/.env.production",
            "/p/.dev.vars",
            "/p/.vault_pass",
            "/p/.env~",
            "/p/#.env#",
            "/p/.#.env",
            "/p/.npmrc.old",
            "/p/.git-credentials~",
            "/p/secrets.yaml.orig",
            "/p/server.pem.bak",
            "/p/server.p12.~1~",
            "/p/credentials.json.bak",
            "/p/.credentials.json.swp",
            "/p/.wp-config.php.swp",
            "/p/prod.tfvars.json",
            "/p/terraform.tfstate.1700000000.backup",
        ] {
            assert!(is_sensitive_path(path), "{path}");
        }
        for path in [
            "/p/.env.example",
            "/p/a.kube/config",
            "a.kube/config",
            "/p/environment.rs",
            "/p/keys.rs",
            "/p/key.rs",
            "/p/id_rsa.pub",
            "/p/token.ts",
            "/p/secrets.rs",
            "/p/env/main.py",
            "/p/env.production.ts",
            "/p/env.d.ts",
            "/p/env.test.js",
            "/p/production.rs",
            "/p/test_env.py",
            "/p/database.py",
            "/p/.env.production.example",
            "/p/settings.json",
            "/p/secrets.rs.bak",
            "/p/keys.rs~",
            "/p/.main.rs.swp",
            "/p/settings.json.orig",
            "/p/~",
            "untitled:Untitled-1",
        ] {
            assert!(!is_sensitive_path(path), "{path}");
        }
    }
}
