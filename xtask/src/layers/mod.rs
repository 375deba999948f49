//! `cargo xtask layers`: which modules may import each other, and which may ask for the operating
//! system. What a crate may depend on is held by cargo and by deny.toml.

mod source;

use crate::versions;
use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use source::Module;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;

/// The folder of the package whose modules stand on floors.
const BINARY: &str = "lsp-server";

/// Its floors from top to bottom. A module imports what stands below its floor.
const FLOORS: &str = "cli > daemon > protocol > app > session, learning, report > services > \
                      privacy > config > adapters > addresses > tasks > paths > platform";

/// Crates that a single module of the binary names.
const OWNERS: [(&str, &str); 8] = [
    ("comfy_table", "report"),
    ("directories", "paths"),
    ("icu_normalizer", "privacy"),
    ("libc", PLATFORM),
    ("model_fetch", "cli"),
    ("textwrap", "report"),
    ("tower_lsp", "protocol"),
    ("tower_service", "protocol"),
];

/// The name of the modules that ask for the operating system, and the words of a `cfg` that do.
const PLATFORM: &str = "platform";
const SYSTEMS: [&str; 4] = ["unix", "windows", "target_os", "target_family"];

/// The first line of a program that is for one kind of operating system.
const FOR_UNIX: &str = "#![cfg(unix)]";

/// The modules of one folder between which an import leads, and the place of the first one.
type Arrows = BTreeMap<(String, String), String>;

pub fn run(workspace: &Workspace) -> Result<()> {
    let manifest = fs::read_to_string(workspace.root.join("Cargo.toml")).context("Cargo.toml")?;
    let mut problems = vec![];
    for member in versions::members(&manifest) {
        for root in ["src/lib.rs", "src/main.rs"].map(|root| Path::new(member).join(root)) {
            if workspace.root.join(&root).is_file() {
                problems.extend(of_crate(&workspace.root, &root, member == BINARY)?);
            }
        }
    }
    let list = problems.join("\n");
    ensure!(list.is_empty(), "the code breaks the layers of ARCHITECTURE.md:\n{list}");
    Ok(())
}

/// Returns what is wrong in a library or a program, which begins with the file `root`.
fn of_crate(workspace: &Path, root: &Path, has_floors: bool) -> Result<Vec<String>> {
    let modules = source::read(workspace, root)?;
    let names: HashSet<&[String]> = modules.iter().map(|module| module.path.as_slice()).collect();
    let is_for_unix = modules.iter().any(|module| module.text.contains(FOR_UNIX));
    let (mut problems, mut arrows) = (vec![], Arrows::new());
    for Module { path: from, file, text } in &modules {
        let mut report = |line, what| problems.push(format!("{}:{line}: {what}", file.display()));
        for (path, line) in source::paths(text) {
            let to = target(from, &path, &names);
            let forbidden = match &to {
                Some(to) => upward(from, to),
                None => foreign(from, path[0]),
            };
            if let Some(what) = forbidden.filter(|_| has_floors) {
                report(line, what);
            } else if let Some(arrow) = to.and_then(|to| arrow(from, &to)) {
                arrows.entry(arrow).or_insert_with(|| format!("{}:{line}", file.display()));
            }
        }
        if !is_for_unix && from.iter().all(|name| name != PLATFORM) {
            for line in conditions(text) {
                let what = format!("only modules named `{PLATFORM}` ask for the operating system");
                report(line, what);
            }
        }
    }
    problems.extend(circles(arrows).into_iter().map(|((from, to), place)| {
        format!("{place}: `{from}` imports `{to}`, which imports it too, perhaps by others")
    }));
    Ok(problems)
}

/// Returns the module that a path leads to, or none if it leads out of the crate.
fn target(from: &[String], path: &[&str], names: &HashSet<&[String]>) -> Option<Vec<String>> {
    if !["crate", "self", "super"].contains(&path[0]) {
        return None;
    }
    let mut to = from.to_vec();
    for name in path {
        match *name {
            "crate" => to.clear(),
            "self" => {}
            "super" => drop(to.pop()),
            name => to.push(name.to_owned()),
        }
        if !names.contains(to.as_slice()) {
            // The rest names something in the module.
            to.pop();
            break;
        }
    }
    Some(to)
}

/// Says that a module imports what does not stand below it. What has no floor stands below all.
fn upward(from: &[String], to: &[String]) -> Option<String> {
    let floor =
        |name: &str| FLOORS.split(" > ").position(|floor| floor.split(", ").any(|own| own == name));
    let level = |path: &[String]| path.first().map(|name| floor(name).unwrap_or(usize::MAX));
    let is_fine = from.first() == to.first() || level(from) < level(to);
    let (own, other) = (from.join("::"), to.join("::"));
    let what = format!("`{own}` imports `crate::{other}`, which does not stand below it");
    (!is_fine && !from.is_empty()).then_some(what)
}

/// Says that a module names a crate that another one has for itself.
fn foreign(from: &[String], name: &str) -> Option<String> {
    let (_, owner) = OWNERS.iter().find(|(own, _)| *own == name)?;
    let is_other = from.first().is_some_and(|own| own != owner);
    is_other.then(|| format!("only `{owner}` names `{name}`"))
}

/// Returns the two modules of one folder between which an import leads, whatever lies below them. A
/// folder may use its parts, and they what it declares itself.
fn arrow(from: &[String], to: &[String]) -> Option<(String, String)> {
    let shared = from.iter().zip(to).take_while(|(a, b)| a == b).count();
    let is_inside = shared == from.len() || shared == to.len();
    (!is_inside).then(|| (from[..=shared].join("::"), to[..=shared].join("::")))
}

/// Leaves the arrows that lie on a circle, or between two circles.
fn circles(mut arrows: Arrows) -> Arrows {
    loop {
        let count = arrows.len();
        let (begins, ends): (HashSet<String>, HashSet<String>) = arrows.keys().cloned().unzip();
        arrows.retain(|(from, to), _| ends.contains(from) && begins.contains(to));
        if arrows.len() == count {
            return arrows;
        }
    }
}

/// Returns the lines with a `cfg` that asks for the operating system.
fn conditions(text: &str) -> Vec<usize> {
    let asks = |line: &str| {
        let mut words = line.split(|c: char| !source::is_of_name(c));
        words.any(|word| word.starts_with("cfg")) && words.any(|word| SYSTEMS.contains(&word))
    };
    text.lines().zip(1..).filter(|(line, _)| asks(line)).map(|(_, number)| number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// Returns what is wrong in a crate of these files. Its other modules are empty.
    fn problems(files: &[(&str, &str)]) -> Vec<String> {
        let folder = TempDir::new().unwrap();
        let root = "mod cli;\nmod protocol;\nmod report;\nmod session;\nmod platform;\n";
        let empty = ["cli.rs", "protocol.rs", "report.rs", "platform.rs"].map(|file| (file, ""));
        let session = [("lib.rs", root), ("session/mod.rs", "mod a;\nmod b;\nmod c;\n")];
        let parts = ["session/a.rs", "session/b.rs", "session/c.rs"].map(|file| (file, ""));
        for (file, text) in session.iter().chain(&empty).chain(&parts).chain(files) {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        of_crate(folder.path(), Path::new("lib.rs"), true).unwrap()
    }

    #[test]
    fn an_import_goes_down_wherever_it_is_written() {
        for code in [
            "use crate::cli::Command;",
            "use crate::{platform, session::{a, b}, cli as command};",
            "use super::super::cli::*;",
            "fn f() { println!(\"{}\", crate::cli::NAME); }",
            "#[serde(with = \"crate::cli::format\")] struct S;",
            "use crate::report::Table;",
            "use tower_lsp::Client;",
            "#[cfg(not(test))]\nuse crate::cli;",
        ] {
            let found = problems(&[("session/a.rs", &format!("\n{code}"))]);
            assert_eq!(found.len(), 1, "{code}: {found:?}");
            assert!(found[0].starts_with("session/a.rs:"), "{found:?}");
        }
        for code in [
            "use crate::platform;\nuse super::{b, S};\nuse std::cli::X;",
            "// crate::cli\n#[cfg(test)]\nuse crate::cli;\n\n#[cfg(test)]\nfn f() {\n    \
             crate::cli::run();\n}\n",
            "#[cfg(test)]\nmod tests {\n    use crate::cli;\nconst CODE: &str = \"\n}\n\";\n    \
             use crate::cli;\n}\n",
        ] {
            assert_eq!(problems(&[("session/a.rs", code)]), [""; 0], "{code}");
        }
        assert_eq!(problems(&[("cli.rs", "use crate::session::{a::A, b};")]), [""; 0]);
        assert_eq!(problems(&[("protocol.rs", "use tower_lsp::Client;")]), [""; 0]);
    }

    #[test]
    fn circles_are_found_between_files_of_a_folder() {
        let [a, b, c] = ["use super::b::B;", "fn f() -> crate::session::c::C {}", "use super::a;"];
        let two = [("session/a.rs", a), ("session/b.rs", b)];
        assert_eq!(problems(&two), [""; 0]);
        let found = problems(&[&two[..], &[("session/c.rs", c)]].concat());
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("session/a.rs:1: `session::a` imports `session::b`, which"));
    }

    #[test]
    fn only_a_module_named_platform_asks_for_the_operating_system() {
        for code in ["#[cfg(not(unix))]\nfn f() {}", "fn f() { cfg!(target_os = \"macos\"); }"] {
            let found = problems(&[("cli.rs", code)]);
            assert!(found.len() == 1 && found[0].contains("`platform`"), "{code}: {found:?}");
            assert_eq!(problems(&[("platform.rs", code)]), [""; 0], "{code}");
        }
        let test = "#[cfg(all(test, unix))]\nmod tests {\n    #[cfg(unix)]\n    fn f() {}\n}\n";
        assert_eq!(problems(&[("cli.rs", test)]), [""; 0]);
    }
}
