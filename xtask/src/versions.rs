//! One version for all parts. It stands in Cargo.toml, and the parts that other package managers
//! read must repeat it.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// JSON files with a version, and where in them it is.
const JSON: [(&str, &str); 3] = [
    ("vscode-extension/package.json", "/version"),
    ("vscode-extension/package-lock.json", "/version"),
    ("vscode-extension/package-lock.json", "/packages//version"),
];

/// The Neovim plugin's own version, and what stands around it.
const LUA: (&str, &str) = ("neovim/lua/hone/version.lua", "return '");

/// The file that lists the members of the workspace, and the line on the version in theirs.
const MANIFEST: &str = "Cargo.toml";
const INHERITED: &str = "version.workspace = true";

pub fn check(root: &Path) -> Result<()> {
    check_against(root, env!("CARGO_PKG_VERSION"))
}

fn check_against(root: &Path, version: &str) -> Result<()> {
    let mut problems = vec![];
    for (file, place) in JSON {
        let value: Value = serde_json::from_str(&read(root, file)?).with_context(|| file)?;
        let found = value.pointer(place).and_then(Value::as_str);
        if found != Some(version) {
            problems.push(format!("{file}: {place} is {found:?}"));
        }
    }
    let (file, before) = LUA;
    let text = read(root, file)?;
    let found = text.lines().find_map(|line| line.strip_prefix(before)?.strip_suffix('\''));
    if found != Some(version) {
        problems.push(format!("{file}: returns {found:?}"));
    }
    for member in members(&read(root, MANIFEST)?) {
        let file = format!("{member}/{MANIFEST}");
        if !read(root, &file)?.lines().any(|line| line == INHERITED) {
            problems.push(format!("{file}: lacks the line `{INHERITED}`"));
        }
    }
    ensure!(
        problems.is_empty(),
        "every part has the version of Cargo.toml, {version}; correct these:\n{}",
        problems.join("\n")
    );
    Ok(())
}

fn read(root: &Path, file: &str) -> Result<String> {
    fs::read_to_string(root.join(file)).with_context(|| file.to_owned())
}

/// The folders that the list `members = [...]` names.
pub fn members(manifest: &str) -> Vec<&str> {
    let list = manifest.split_once("members = [").and_then(|(_, rest)| rest.split_once(']'));
    let list = list.map_or("", |(list, _)| list);
    list.split('"').skip(1).step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(version: &str) -> tempfile::TempDir {
        let folder = tempfile::TempDir::new().unwrap();
        let json =
            format!(r#"{{"version": "{version}", "packages": {{"": {{"version": "1.0.0"}}}}}}"#);
        for (file, text) in [
            ("vscode-extension/package.json", json.as_str()),
            ("vscode-extension/package-lock.json", &json),
            ("neovim/lua/hone/version.lua", "-- It.\nreturn '1.0.0'\n"),
            ("Cargo.toml", "[workspace]\nmembers = [\n    \"a\",\n    \"b/c\",\n]\n"),
            ("a/Cargo.toml", "[package]\nversion.workspace = true\n"),
            ("b/c/Cargo.toml", "[package]\nversion = \"1.0.0\"\n"),
        ] {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn a_part_with_another_version_is_named() {
        let folder = root("0.9.0");
        let error = check_against(folder.path(), "1.0.0").unwrap_err().to_string();
        assert!(error.contains("package.json: /version is Some(\"0.9.0\")"), "{error}");
        assert!(error.contains("b/c/Cargo.toml: lacks the line"), "{error}");
        assert!(!error.contains("a/Cargo.toml: lacks"), "{error}");
        assert!(!error.contains("version.lua"), "{error}");
        fs::write(folder.path().join("neovim/lua/hone/version.lua"), "return '2'\n").unwrap();
        let error = check_against(folder.path(), "1.0.0").unwrap_err().to_string();
        assert!(error.contains("version.lua: returns Some(\"2\")"), "{error}");
    }

    #[test]
    fn this_repository_has_one_version() {
        check(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()).unwrap();
    }
}
