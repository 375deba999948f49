//! The packages that a release's programs are made of, as cargo has resolved them for one target.

use super::target::Target;
use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

/// The packages whose programs are shipped.
const SHIPPED: [&str; 3] = ["hone", "learner", "rehearsal"];

#[derive(Debug)]
pub struct Package {
    pub name: String,
    pub version: String,
    /// An SPDX expression.
    pub licence: String,
    pub authors: Vec<String>,
    pub folder: PathBuf,
    /// True if it is of this workspace.
    pub is_own: bool,
    /// The SHA-256 of what was downloaded; none for a package of our own.
    pub checksum: Option<String>,
    /// Keys of other packages.
    pub depends_on: BTreeSet<String>,
}

/// The packages by a key that sorts by name: `anyhow 1.0.100`.
pub type Packages = BTreeMap<String, Package>;

pub fn read(workspace: &Workspace, target: Target) -> Result<Packages> {
    let options = ["--locked", "--filter-platform", target.triple()];
    let mut packages = parse(&workspace.metadata(&options)?)?;
    let lock = fs::read_to_string(workspace.root.join("Cargo.lock")).context("Cargo.lock")?;
    for (key, sum) in checksums(&lock) {
        if let Some(package) = packages.get_mut(&key) {
            package.checksum = Some(sum);
        }
    }
    Ok(packages)
}

fn parse(metadata: &Value) -> Result<Packages> {
    let by_id: HashMap<&str, &Value> = list(&metadata["packages"])
        .filter_map(|package| Some((package["id"].as_str()?, package)))
        .collect();
    let nodes: HashMap<&str, &Value> = list(&metadata["resolve"]["nodes"])
        .filter_map(|node| Some((node["id"].as_str()?, node)))
        .collect();
    let own: Vec<&str> = list(&metadata["workspace_members"]).filter_map(Value::as_str).collect();
    let is_shipped = |id: &&&str| SHIPPED.iter().any(|name| by_id[**id]["name"] == *name);
    let mut waiting: Vec<&str> = own.iter().filter(is_shipped).copied().collect();
    ensure!(waiting.len() == SHIPPED.len(), "the workspace lacks one of {SHIPPED:?}");
    let mut packages = Packages::new();
    while let Some(id) = waiting.pop() {
        let key = key(by_id[id]);
        if packages.contains_key(&key) {
            continue;
        }
        let linked: Vec<&str> = list(&nodes[id]["deps"])
            .filter(is_linked)
            .filter_map(|dependency| {
                let id = dependency["pkg"].as_str()?;
                (!is_macro(by_id[id])).then_some(id)
            })
            .collect();
        let depends_on = linked.iter().map(|id| self::key(by_id[id])).collect();
        packages.insert(key, package(by_id[id], own.contains(&id), depends_on)?);
        waiting.extend(linked);
    }
    Ok(packages)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Returns true for a dependency of the program itself: not of its tests or its build script.
fn is_linked(dependency: &&Value) -> bool {
    list(&dependency["dep_kinds"]).any(|kind| kind["kind"].is_null())
}

/// Macros run in the compiler, and nothing of them is in the programs.
fn is_macro(package: &Value) -> bool {
    list(&package["targets"]).any(|target| list(&target["kind"]).any(|kind| kind == "proc-macro"))
}

fn key(package: &Value) -> String {
    let text = |field: &str| package[field].as_str().unwrap_or_default().to_owned();
    format!("{} {}", text("name"), text("version"))
}

fn package(package: &Value, is_own: bool, depends_on: BTreeSet<String>) -> Result<Package> {
    let text = |field: &str| {
        let text = package[field].as_str();
        Ok::<_, anyhow::Error>(
            text.with_context(|| format!("{}: no {field}", key(package)))?.to_owned(),
        )
    };
    let manifest = text("manifest_path")?;
    let folder = Path::new(&manifest).parent().context("a manifest lies in no folder")?;
    Ok(Package {
        name: text("name")?,
        version: text("version")?,
        // Older packages write `MIT/Apache-2.0`, which SPDX does not know.
        licence: text("license")?.replace('/', " OR "),
        authors: list(&package["authors"]).filter_map(Value::as_str).map(str::to_owned).collect(),
        folder: folder.to_owned(),
        is_own,
        checksum: None,
        depends_on,
    })
}

/// The checksums of Cargo.lock, by the keys of packages.
fn checksums(lock: &str) -> Vec<(String, String)> {
    let value = |block: &str, name: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""));
        line.map(|rest| rest.trim_end_matches('"').to_owned())
    };
    let of = |block: &str| {
        let key = format!("{} {}", value(block, "name")?, value(block, "version")?);
        Some((key, value(block, "checksum")?))
    };
    lock.split("[[package]]").filter_map(of).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use serde_json::json;

    pub fn sample() -> Packages {
        let dependency =
            |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let package = |name: &str, kind: &str| {
            json!({
                "id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0",
                "authors": ["Ada"], "manifest_path": format!("/p/{name}/Cargo.toml"),
                "targets": [{ "kind": [kind] }],
            })
        };
        let metadata = json!({
            "workspace_members": ["hone", "learner", "rehearsal", "xtask"],
            "packages": [
                package("hone", "bin"), package("learner", "bin"), package("rehearsal", "bin"),
                package("xtask", "bin"), package("serde", "lib"), package("derive", "proc-macro"),
                package("cc", "lib"), package("syn", "lib"), package("proptest", "lib"),
            ],
            "resolve": { "nodes": [
                { "id": "hone", "deps": [dependency("serde", Value::Null),
                    dependency("cc", json!("build")), dependency("proptest", json!("dev"))] },
                { "id": "learner", "deps": [] },
                { "id": "rehearsal", "deps": [] },
                { "id": "xtask", "deps": [dependency("syn", Value::Null)] },
                { "id": "serde", "deps": [dependency("derive", Value::Null)] },
                { "id": "derive", "deps": [dependency("syn", Value::Null)] },
            ] },
        });
        parse(&metadata).unwrap()
    }

    #[test]
    fn what_only_the_build_or_the_tests_need_is_not_shipped() {
        let packages = sample();
        let names: Vec<&String> = packages.keys().collect();
        assert_eq!(names, ["hone 1.0.0", "learner 1.0.0", "rehearsal 1.0.0", "serde 1.0.0"]);
        assert!(packages["hone 1.0.0"].is_own);
        assert_eq!(packages["serde 1.0.0"].licence, "MIT OR Apache-2.0");
        assert_eq!(packages["hone 1.0.0"].depends_on, BTreeSet::from(["serde 1.0.0".to_owned()]));
    }

    #[test]
    fn checksums_are_those_of_the_lock_file() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n\
                    checksum = \"0123\"\n\n[[package]]\nname = \"hone\"\nversion = \"0.1.0\"\n";
        assert_eq!(checksums(lock), [("a 1.0.0".to_owned(), "0123".to_owned())]);
    }
}
