//! The packages of the workspace: where they begin, what they depend on, what they link.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A package of the workspace.
#[derive(Debug, Default)]
pub struct Package {
    pub name: String,
    /// Its Cargo.toml, relative to the workspace.
    pub manifest: PathBuf,
    /// `lib.rs` and each `main.rs`, the library first.
    pub roots: Vec<PathBuf>,
    pub dependencies: Vec<Dependency>,
    /// External packages that its programs are linked with, and how each gets there:
    /// `feedback`, `models`, `ureq`.
    pub links: BTreeMap<String, Vec<String>>,
}

#[derive(Debug)]
pub struct Dependency {
    /// As Cargo.toml names it.
    pub name: String,
    pub is_of_workspace: bool,
    /// In [`Package::manifest`].
    pub line: usize,
}

/// What cargo says of this workspace. `cargo` runs in it.
pub fn read(root: &Path, mut cargo: Command) -> Result<Vec<Package>> {
    cargo.args(["metadata", "--format-version", "1", "--locked"]);
    cargo.args(["--filter-platform", &host()?]);
    let output = cargo.output().context("cannot start cargo")?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo metadata failed: {error}");
    parse(root, &serde_json::from_slice(&output.stdout)?)
}

/// The platform of this machine, as rustc names it.
fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("cannot start rustc")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not say for which host it compiles")?.to_owned())
}

fn parse(root: &Path, metadata: &Value) -> Result<Vec<Package>> {
    let members: HashSet<&str> =
        list(&metadata["workspace_members"]).filter_map(Value::as_str).collect();
    let names: HashMap<&str, &str> = list(&metadata["packages"])
        .filter_map(|package| Some((package["id"].as_str()?, package["name"].as_str()?)))
        .collect();
    let graph = Graph::of(metadata);
    let mut packages = vec![];
    for package in list(&metadata["packages"]) {
        let id = package["id"].as_str().context("a package has no id")?;
        if !members.contains(id) {
            continue;
        }
        let relative = |path: &Value| {
            let path = Path::new(path.as_str().unwrap_or_default());
            path.strip_prefix(root).unwrap_or(path).to_owned()
        };
        let member_names: HashSet<&str> =
            members.iter().filter_map(|id| names.get(id)).copied().collect();
        packages.push(Package {
            name: names[id].to_owned(),
            manifest: relative(&package["manifest_path"]),
            roots: roots(package).map(relative).collect(),
            dependencies: dependencies(package, &member_names),
            links: graph.links(id, &names, &members),
        });
    }
    Ok(packages)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn roots(package: &Value) -> impl Iterator<Item = &Value> {
    let of = |kinds: &'static [&str]| {
        list(&package["targets"]).filter(move |target| {
            list(&target["kind"])
                .any(|kind| kind.as_str().is_some_and(|kind| kinds.contains(&kind)))
        })
    };
    of(&["lib", "rlib", "proc-macro"]).chain(of(&["bin"])).map(|target| &target["src_path"])
}

fn dependencies(package: &Value, members: &HashSet<&str>) -> Vec<Dependency> {
    let path = package["manifest_path"].as_str().unwrap_or_default();
    let manifest = std::fs::read_to_string(path).unwrap_or_default();
    let dependency = |dependency: &Value| {
        let name = dependency["name"].as_str()?;
        let written = dependency["rename"].as_str().unwrap_or(name);
        let is_of_workspace = dependency["path"].is_string() && members.contains(name);
        let line = line_of(&manifest, written);
        Some(Dependency { name: written.to_owned(), is_of_workspace, line })
    };
    list(&package["dependencies"]).filter_map(dependency).collect()
}

/// The line of a Cargo.toml that names a dependency; the first if none does.
fn line_of(manifest: &str, name: &str) -> usize {
    let names =
        |line: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', ' ', '=']));
    manifest.lines().position(names).map_or(1, |at| at + 1)
}

/// Who links whom, by package id; dependencies of tests and of build scripts aside.
struct Graph<'a>(HashMap<&'a str, Vec<&'a str>>);

impl<'a> Graph<'a> {
    fn of(metadata: &'a Value) -> Graph<'a> {
        let is_normal =
            |dependency: &&Value| list(&dependency["dep_kinds"]).any(|kind| kind["kind"].is_null());
        let node = |node: &'a Value| {
            let linked = list(&node["deps"]).filter(is_normal);
            let linked = linked.filter_map(|dependency| dependency["pkg"].as_str()).collect();
            Some((node["id"].as_str()?, linked))
        };
        Graph(list(&metadata["resolve"]["nodes"]).filter_map(node).collect())
    }

    /// Each external package by name, with the shortest way to it.
    fn links(
        &self,
        id: &'a str,
        names: &HashMap<&str, &str>,
        members: &HashSet<&str>,
    ) -> BTreeMap<String, Vec<String>> {
        let mut ways: HashMap<&str, Vec<String>> =
            HashMap::from([(id, vec![names[id].to_owned()])]);
        let mut waiting = VecDeque::from([id]);
        while let Some(from) = waiting.pop_front() {
            for &to in self.0.get(from).into_iter().flatten() {
                if !ways.contains_key(to) {
                    let way = [ways[from].as_slice(), &[names[to].to_owned()]].concat();
                    ways.insert(to, way);
                    waiting.push_back(to);
                }
            }
        }
        ways.retain(|id, _| !members.contains(id));
        ways.into_iter().map(|(id, way)| (names[id].to_owned(), way)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cargos_word_is_read_with_renames_and_the_way_to_each_link() {
        let package = |name: &str, dependencies: Value, kind: &str| {
            json!({"id": name, "name": name, "manifest_path": format!("/w/{name}/Cargo.toml"),
                "dependencies": dependencies,
                "targets": [{"kind": ["example"], "src_path": "/w/no.rs"},
                            {"kind": [kind], "src_path": format!("/w/{name}/src/{kind}.rs")}]})
        };
        let node = |name: &str, to: &[(&str, Value)]| {
            let deps: Vec<_> = to
                .iter()
                .map(|(name, kind)| json!({"pkg": name, "dep_kinds": [{"kind": kind}]}))
                .collect();
            json!({"id": name, "deps": deps})
        };
        let metadata = json!({
            "workspace_members": ["app", "models"],
            "packages": [
                package("app", json!([{"name": "models", "path": "/w/models"},
                    {"name": "tower-lsp-server", "rename": "tower-lsp"}]), "bin"),
                package("models", json!([]), "lib"),
                package("ureq", json!([]), "lib"),
                package("tower-lsp-server", json!([]), "lib"),
                package("cc", json!([]), "lib"),
            ],
            "resolve": {"nodes": [
                node("app", &[("models", Value::Null), ("tower-lsp-server", Value::Null)]),
                node("models", &[("ureq", Value::Null), ("cc", json!("build"))]),
                node("ureq", &[]), node("tower-lsp-server", &[]), node("cc", &[]),
            ]},
        });
        let packages = parse(Path::new("/w"), &metadata).unwrap();
        let app = &packages[0];
        assert_eq!(app.roots, [Path::new("app/src/bin.rs")]);
        let named: Vec<_> =
            app.dependencies.iter().map(|one| (one.name.as_str(), one.is_of_workspace)).collect();
        assert_eq!(named, [("models", true), ("tower-lsp", false)]);
        assert_eq!(app.links.keys().collect::<Vec<_>>(), ["tower-lsp-server", "ureq"]);
        assert_eq!(app.links["ureq"], ["app", "models", "ureq"]);
    }
}
