//! `cargo xtask layers`: no modules of a crate import each other in a circle, and only some ask for
//! the operating system. What a crate may depend on is held by cargo and by deny.toml.

use crate::versions;
use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::Path;

/// The folder of the package with the binary. Each of its folders imports the one below it, so an
/// import that leads up is part of a circle.
const BINARY: &str = "lsp-server";

/// Crates that a single folder of the binary names.
const OWNERS: [(&str, &str); 3] =
    [("model_fetch", "cli"), ("tower_lsp", "protocol"), ("tower_service", "protocol")];

/// The name of the modules that ask for the operating system, and the words of a `cfg` that do.
const PLATFORM: &str = "platform";
const SYSTEMS: [&str; 4] = ["unix", "windows", "target_os", "target_family"];

/// Modules by their paths, such as `crate::session::documents`. Each is the text that is compiled
/// for users, without comments and without groups of paths.
type Modules = BTreeMap<String, String>;

pub fn run(workspace: &Workspace) -> Result<()> {
    let manifest = fs::read_to_string(workspace.root.join("Cargo.toml")).context("Cargo.toml")?;
    let mut list = String::new();
    for member in versions::members(&manifest) {
        for root in ["src/lib.rs", "src/main.rs"] {
            let root = workspace.root.join(member).join(root);
            if root.is_file() {
                let problems = problems(&read(&root)?, member == BINARY);
                list.extend(problems.iter().map(|problem| format!("\n{member}: {problem}")));
            }
        }
    }
    ensure!(list.is_empty(), "the code breaks the layers of ARCHITECTURE.md:{list}");
    Ok(())
}

/// Reads the modules of a library or a program, which begins with the file `root`.
fn read(root: &Path) -> Result<Modules> {
    let mut modules = Modules::new();
    let mut waiting = vec![("crate".to_owned(), root.to_owned())];
    while let Some((path, file)) = waiting.pop() {
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let text = for_users(&text);
        let has_folder = file == root || file.ends_with("mod.rs");
        let folder = if has_folder { file.with_file_name("") } else { file.with_extension("") };
        for line in text.lines() {
            let declared = line.trim().strip_suffix(';').and_then(|line| line.split_once("mod "));
            if let Some((before, name)) = declared
                && (before.is_empty() || before.starts_with("pub"))
            {
                let flat = folder.join(format!("{name}.rs"));
                let file = if flat.is_file() { flat } else { folder.join(name).join("mod.rs") };
                waiting.push((format!("{path}::{name}"), file));
            }
        }
        modules.insert(path, text);
    }
    Ok(modules)
}

/// Leaves out comments and code for tests. The code is formatted by rustfmt, so an item ends on the
/// first line with its indentation that ends like an item.
fn for_users(text: &str) -> String {
    // Clippy lets nothing stand behind a module of tests.
    let text = text.split("]\nmod tests {").next().unwrap_or_default();
    let (mut kept, mut lines) = (String::new(), text.lines());
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        if code.starts_with("#[cfg(") && code.contains("test") && !code.contains("not(test") {
            let indentation = line.trim_end_matches(code);
            lines.find(|line| {
                let item = line.strip_prefix(indentation).filter(|item| !item.starts_with(' '));
                item.is_some_and(|item| item.ends_with(['}', ';', ',']))
            });
        } else if !code.starts_with("//") {
            kept.extend([line, "\n"]);
        }
    }
    // What stands open before a quote is a piece of a text.
    without_groups(kept.replace("::\"", "\""))
}

/// Writes a group of paths as paths: `a::{b, c::d}` as `a::b, a::c::d`.
fn without_groups(mut text: String) -> String {
    // The last group has no other one in it.
    while let Some(open) = text.rfind("::{") {
        let path = &text[text[..open].trim_end_matches(is_of_path).len()..open];
        let group = text[open + 3..].split('}').next().unwrap_or_default();
        let names = group.split(',').map(str::trim).filter(|name| !name.is_empty());
        let paths: Vec<String> = names.map(|name| format!("{path}::{name}")).collect();
        let end = (open + 3 + group.len() + 1).min(text.len());
        text.replace_range(open - path.len()..end, &paths.join(", "));
    }
    text
}

fn is_of_path(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == ':'
}

/// Returns what is wrong in a library or a program.
fn problems(modules: &Modules, is_binary: bool) -> BTreeSet<String> {
    let (mut problems, mut arrows) = (BTreeSet::new(), HashSet::new());
    for (from, text) in modules {
        let words = text.split(|c| !is_of_path(c));
        for path in words.filter(|word| word.contains("::")) {
            if is_binary && !may_name(from, path) {
                problems.insert(format!("`{from}` may not name `{path}`"));
            } else if let Some(to) = target(from, path, modules) {
                arrows.extend(arrow(from, &to));
            }
        }
        // A program may be for one system as a whole.
        let may_ask = |line: &str| !line.contains("cfg") || line.starts_with("#![cfg(");
        let asks = |line| !may_ask(line) && SYSTEMS.iter().any(|name| line.contains(name));
        if from.split("::").all(|name| name != PLATFORM) && text.lines().any(asks) {
            problems.insert(format!("`{from}` asks for the system; only `{PLATFORM}` modules may"));
        }
    }
    problems.extend(circles(arrows).iter().map(|(from, to)| {
        format!("`{from}` imports `{to}`, which imports it too, perhaps by others")
    }));
    problems
}

/// Returns the module that a path leads to, or none if it leads out of the crate.
fn target(from: &str, path: &str, modules: &Modules) -> Option<String> {
    let above = from.rsplit_once("::").map_or(from, |(above, _)| above);
    let mut to = match path.split_once("::")? {
        ("crate", _) => path.to_owned(),
        ("self", below) => format!("{from}::{below}"),
        ("super", more) if more.starts_with("super::") => return target(above, more, modules),
        ("super", below) => format!("{above}::{below}"),
        _ => return None,
    };
    // The last names may be those of something in the module.
    while !modules.contains_key(&to) {
        to.truncate(to.rfind("::")?);
    }
    Some(to)
}

/// Returns true if a module of the binary may name a path. The root may name everything.
fn may_name(from: &str, path: &str) -> bool {
    let Some(own) = from.split("::").nth(1) else { return true };
    let library = path.split("::").next();
    OWNERS.iter().all(|(one, owner)| library != Some(one) || own == *owner)
}

/// Returns the two modules of one folder between which an import leads, whatever lies below them. A
/// folder may use its parts, and they what it declares itself.
fn arrow(from: &str, to: &str) -> Option<(String, String)> {
    let [from, to] = [from, to].map(|module| module.split("::").collect::<Vec<_>>());
    let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let is_inside = shared == from.len() || shared == to.len();
    (!is_inside).then(|| (from[..=shared].join("::"), to[..=shared].join("::")))
}

/// Leaves the arrows that lie on a circle, or between two circles.
fn circles(mut arrows: HashSet<(String, String)>) -> HashSet<(String, String)> {
    loop {
        let count = arrows.len();
        let (begins, ends): (HashSet<String>, HashSet<String>) = arrows.iter().cloned().unzip();
        arrows.retain(|(from, to)| ends.contains(from) && begins.contains(to));
        if arrows.len() == count {
            return arrows;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is wrong in a crate of these modules and some others. One of them imports what
    /// is below it.
    fn found(modules: &[(&str, &str)]) -> Vec<String> {
        let empty = ["app", "platform", "protocol", "protocol::b"].map(|name| (name, ""));
        let above = ("cli", "use crate::protocol::b::B;");
        let all = empty.into_iter().chain([above]).chain(modules.iter().copied());
        let all = all.map(|(name, text)| (format!("crate::{name}"), for_users(text)));
        problems(&all.collect(), true).into_iter().collect()
    }

    #[test]
    fn an_import_is_seen_wherever_it_is_written() {
        for (module, code, count) in [
            ("protocol::a", "use crate::cli::Command;", 2),
            ("protocol::a", "use crate::{platform, protocol::{a, b}, cli as command};", 2),
            ("protocol::a", "use super::super::cli::*;", 2),
            ("protocol::a", "fn f() { println!(\"{}\", crate::cli::NAME); }", 2),
            ("protocol::a", "#[serde(with = \"crate::cli::format\")] struct S;", 2),
            ("protocol::a", "#[cfg(not(test))]\nuse crate::cli::Command;", 2),
            ("protocol::a", "#[cfg(not(unix))]\nfn f() {}", 1),
            ("protocol::a", "fn f() { cfg!(target_os = \"macos\"); }", 1),
            ("protocol::a", "use crate::platform;\nuse super::{b, S};\nuse std::cli::X;", 0),
            ("protocol::a", "// crate::cli\n#[cfg(test)]\nfn f() {\n    crate::cli::f();\n}", 0),
            ("protocol::a", "#[cfg(all(test, unix))]\nmod tests {\n\"\n}\"\nuse crate::cli;", 0),
            ("protocol::a", "use tower_lsp::Client;", 0),
            ("app", "use tower_lsp::Client;", 1),
            ("cli", "use crate::protocol::{a::A, b};", 0),
            ("platform", "#[cfg(not(unix))]\nfn f() {}", 0),
        ] {
            assert_eq!(found(&[(module, code)]).len(), count, "{code}");
        }
    }

    #[test]
    fn circles_are_found_between_files_of_a_folder() {
        let a = ("protocol::a", "use super::b::B;");
        let b = ("protocol::b", "fn f() -> crate::protocol::c::C {}");
        assert_eq!(found(&[a, b, ("protocol::c", "")]), [""; 0]);
        let found = found(&[a, b, ("protocol::c", "use super::a;")]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("`crate::protocol::a` imports `crate::protocol::b`,"));
    }

    #[test]
    fn the_modules_of_this_program_are_found() {
        let modules = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/main.rs")).unwrap();
        assert!(modules.contains_key("crate::dist::contents"));
    }
}
