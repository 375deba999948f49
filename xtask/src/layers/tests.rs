//! The rules on small made-up workspaces.

use super::crates::{Dependency, Package};
use super::table;
use super::*;
use std::collections::BTreeMap;
use tempfile::TempDir;

const TABLES: &str = "\
<!-- layers -->
| floor of `app` | crates | alone |
|---|---|---|
| `cli` | `engine` | |
| `left` | | `web` |
| beside it: `right` | | |
| `paths` | | |

| crate | may depend on | never links |
|---|---|---|
| `app` | `engine` | |
| `engine` | | `web` |

| module | never imports |
|---|---|
| `left::client` | `left::server` |

EXCEPTIONS
<!-- /layers -->
";

/// A workspace of two packages; every file not given is empty.
struct Workshop {
    folder: TempDir,
    packages: Vec<Package>,
    exceptions: String,
}

impl Workshop {
    fn of(files: &[(&str, &str)]) -> Workshop {
        let folder = TempDir::new().unwrap();
        let base = [
            ("app/src/lib.rs", "mod cli;\nmod left;\nmod paths;\nmod right;\n"),
            ("app/src/cli.rs", ""),
            ("app/src/left/mod.rs", "mod client;\nmod server;\n"),
            ("app/src/left/client.rs", ""),
            ("app/src/left/server.rs", ""),
            ("app/src/right.rs", ""),
            ("app/src/paths.rs", ""),
            ("engine/src/lib.rs", ""),
        ];
        for (path, text) in base.iter().chain(files) {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let dependency = |name: &str, is_of_workspace| Dependency {
            name: name.to_owned(),
            is_of_workspace,
            line: 7,
        };
        let package = |name: &str, dependencies| Package {
            name: name.to_owned(),
            manifest: format!("{name}/Cargo.toml").into(),
            roots: vec![format!("{name}/src/lib.rs").into()],
            dependencies,
            links: BTreeMap::new(),
        };
        let packages = vec![
            package("app", vec![dependency("engine", true), dependency("web", false)]),
            package("engine", vec![]),
        ];
        Workshop { folder, packages, exceptions: String::new() }
    }

    /// Everything that is wrong, one line each.
    fn problems(&self) -> Vec<String> {
        let rules = table::parse(&TABLES.replace("EXCEPTIONS", &self.exceptions)).unwrap();
        let problems = problems(self.folder.path(), &rules, &self.packages).unwrap();
        problems.iter().map(|one| format!("{}:{}: {}", one.file, one.line, one.what)).collect()
    }
}

/// What is wrong if `cli`, `left` or another file says this.
fn problems_of(file: &str, text: &str) -> Vec<String> {
    Workshop::of(&[(file, text)]).problems()
}

#[test]
fn imports_that_go_down_pass() {
    let down =
        "use crate::left::{client, server::Server};\nuse crate::paths;\nuse engine::Llama;\n";
    assert_eq!(problems_of("app/src/cli.rs", down), [""; 0]);
    assert_eq!(
        problems_of("app/src/left/mod.rs", "mod client;\nmod server;\nuse web::Get;"),
        [""; 0]
    );
}

#[test]
fn an_import_that_goes_up_or_beside_is_named_with_its_line() {
    let above = problems_of("app/src/paths.rs", "\nuse crate::cli::Command;\n");
    assert_eq!(above, ["app/src/paths.rs:2: `paths` imports `cli`, which stands above it"]);
    let beside = problems_of("app/src/right.rs", "use crate::left::client::Client;\n");
    assert_eq!(
        beside,
        ["app/src/right.rs:1: `right` imports `left::client`, which stands beside it"]
    );
    let root = problems_of("app/src/paths.rs", "use crate::Config;\n");
    assert_eq!(root, ["app/src/paths.rs:1: `paths` imports the root of its crate"]);
}

#[test]
fn a_path_is_found_wherever_it_is_written() {
    for code in [
        "pub use crate::cli::Command;",
        "use crate::{cli as command};",
        "use super::cli::*;",
        "use ::std::fs; use crate::cli::{self};",
        "fn f() { crate::cli::run(); }",
        "fn f(command: &crate::cli::Command) {}",
        "fn f() { println!(\"{}\", crate::cli::NAME); }",
        "fn f() { assert!(matches!(x, Some(super::cli::Command::Stop))); }",
        "macro_rules! m { () => { use $crate::{left, cli::X}; } }",
        "#[serde(with = \"crate::cli::format\")] struct S;",
        "mod inner { use super::super::cli; }",
        "mod inner { use self::super::super::cli; }",
        "struct S<T = crate::cli::Command>(T);",
        "fn f() { let x: Vec<crate::cli::Command> = vec![]; }",
    ] {
        let found = problems_of("app/src/paths.rs", code);
        assert!(!found.is_empty(), "{code}");
        let cli = found.iter().filter(|one| one.contains("`paths` imports `cli`")).count();
        assert_eq!(cli, 1, "{code}: {found:?}");
    }
}

#[test]
fn code_for_tests_and_words_that_only_look_alike_are_left_out() {
    for code in [
        "#[cfg(test)]\nmod checks { use crate::cli; }",
        "mod tests { use crate::cli; }",
        "#[cfg(any(test, feature = \"testing\"))]\nuse crate::cli;",
        "#[cfg(all(test, unix))]\nfn f() { crate::cli::run() }",
        "struct S;\nimpl S { #[cfg(test)] fn f() { crate::cli::run() } }",
        "/// See [`crate::cli`].\nfn f() {}",
        "fn f() { \"crate::cli::run\"; }",
        "pub(in crate::cli) struct S;",
        "use std::web::x; fn f() { x.engine::<u8>(); }",
        // `engine` is here a module of std that the file imports.
        "use std::engine; fn f() { engine::run() }",
    ] {
        assert_eq!(problems_of("app/src/paths.rs", code), [""; 0], "{code}");
    }
    let not = problems_of("app/src/paths.rs", "#[cfg(not(test))]\nuse crate::cli;");
    assert_eq!(not.len(), 1, "what is compiled for users counts: {not:?}");
}

#[test]
fn another_crate_is_imported_by_who_may() {
    let engine = problems_of("app/src/left/client.rs", "fn f() { engine::run() }");
    assert_eq!(engine, ["app/src/left/client.rs:1: `left` imports the crate `engine`"]);
    let web = problems_of("app/src/paths.rs", "use web::Get;");
    assert_eq!(web, ["app/src/paths.rs:1: `paths` names `web`"]);
    // A module of the same name is nobody else's crate.
    let own =
        [("app/src/paths.rs", "mod engine;\nuse engine::X;"), ("app/src/paths/engine.rs", "")];
    assert_eq!(Workshop::of(&own).problems(), [""; 0]);
}

#[test]
fn a_module_without_a_floor_and_a_floor_without_a_module_are_told() {
    let all = "mod cli;\nmod left;\nmod paths;\nmod news;\n";
    let told = Workshop::of(&[("app/src/lib.rs", all), ("app/src/news/mod.rs", "")]).problems();
    assert_eq!(
        told,
        [
            "ARCHITECTURE.md:6: `app` has no module `right`",
            "app/src/news/mod.rs:1: `news` has no floor"
        ]
    );
}

#[test]
fn a_ban_holds_within_a_floor() {
    let told = problems_of("app/src/left/client.rs", "use super::server::Server;");
    assert_eq!(told, ["app/src/left/client.rs:1: `left::client` imports `left::server`"]);
    assert_eq!(problems_of("app/src/left/server.rs", "use super::client::Client;"), [""; 0]);
}

#[test]
fn circles_are_found_between_files_and_between_folders() {
    let files = Workshop::of(&[
        ("engine/src/lib.rs", "mod a;\nmod b;\nmod c;\n"),
        ("engine/src/a.rs", "use crate::b::B;"),
        ("engine/src/b.rs", "\nuse crate::c::C;"),
        ("engine/src/c.rs", "fn f() -> crate::a::A {}"),
    ]);
    let round = "the modules import each other in a circle";
    assert_eq!(files.problems(), [format!("engine/src/a.rs:1: {round}: a → b → c → a")]);
    let folders = Workshop::of(&[
        ("engine/src/lib.rs", "mod a;\nmod b;\n"),
        ("engine/src/a/mod.rs", "mod deep;\nmod other;\n"),
        ("engine/src/a/deep.rs", "use crate::b::B;"),
        ("engine/src/a/other.rs", ""),
        ("engine/src/b.rs", "use crate::a::other::X;"),
    ]);
    assert_eq!(folders.problems(), [format!("engine/src/a/deep.rs:1: {round}: a → b → a")]);
    let deep = Workshop::of(&[
        ("engine/src/lib.rs", "mod a;\n"),
        ("engine/src/a/mod.rs", "mod x;\nmod y;\n"),
        ("engine/src/a/x.rs", "use super::y::Y;"),
        ("engine/src/a/y.rs", "use super::x::X;"),
    ]);
    assert_eq!(deep.problems(), [format!("engine/src/a/x.rs:1: {round}: a::x → a::y → a::x")]);
}

/// A folder uses its parts, and they use the types that it declares.
#[test]
fn a_folder_and_its_parts_are_no_circle() {
    let folder = Workshop::of(&[
        ("engine/src/lib.rs", "mod a;\n"),
        ("engine/src/a/mod.rs", "mod x;\nuse x::X;\npub struct A;"),
        ("engine/src/a/x.rs", "use super::A;"),
    ]);
    assert_eq!(folder.problems(), [""; 0]);
}

#[test]
fn dependencies_and_links_are_held_to_the_table() {
    let mut workshop = Workshop::of(&[]);
    let engine = &mut workshop.packages[1];
    engine.dependencies.push(Dependency { name: "app".into(), is_of_workspace: true, line: 3 });
    let way = ["engine", "app", "web"].map(str::to_owned).to_vec();
    engine.links.insert("web".into(), way);
    assert_eq!(
        workshop.problems(),
        [
            "engine/Cargo.toml:3: `engine` depends on `app`",
            "engine/Cargo.toml:3: `engine` links `web`: engine → app → web",
        ]
    );
    workshop.packages.push(Package { name: "new".into(), ..Package::default() });
    assert!(workshop.problems().contains(&":1: the crate `new` has no rule".to_owned()));
    workshop.packages.retain(|package| package.name == "engine");
    let told = workshop.problems();
    assert!(
        told.contains(&"ARCHITECTURE.md:4: the workspace has no package `app`".to_owned()),
        "{told:?}"
    );
    assert!(
        told.contains(&"ARCHITECTURE.md:11: the workspace has no crate `app`".to_owned()),
        "{told:?}"
    );
}

#[test]
fn an_exception_covers_its_import_until_it_is_not_needed() {
    let mut workshop = Workshop::of(&[("app/src/paths.rs", "use crate::cli::Command;")]);
    workshop.exceptions = "- `app/src/paths.rs` -> `cli`: until it is cut".into();
    assert_eq!(workshop.problems(), [""; 0]);
    let mut clean = Workshop::of(&[]);
    clean.exceptions = workshop.exceptions.clone();
    let stale = "the exception `app/src/paths.rs` -> `cli` is needed by nothing";
    assert_eq!(clean.problems(), [format!("ARCHITECTURE.md:18: {stale}")]);

    let mut circle = Workshop::of(&[
        ("engine/src/lib.rs", "mod a;\nmod b;\n"),
        ("engine/src/a.rs", "use crate::b::B;"),
        ("engine/src/b.rs", "use crate::a::A;"),
    ]);
    circle.exceptions = "- `engine/src/b.rs` -> `a`: until it is cut".into();
    assert_eq!(circle.problems(), [""; 0]);
    fs::write(circle.folder.path().join("engine/src/a.rs"), "").unwrap();
    let stale = "the exception `engine/src/b.rs` -> `a` is needed by nothing";
    assert_eq!(circle.problems(), [format!("ARCHITECTURE.md:18: {stale}")]);
}

#[test]
fn a_path_include_is_forbidden_everywhere() {
    let include = "fn f() {}\n#[path = \"../app/src/cli.rs\"]\nmod cli;\n";
    let told = problems_of("fuzz/targets/one.rs", include);
    assert_eq!(told, ["fuzz/targets/one.rs:2: `#[path]` includes a file of another place"]);
}

#[test]
fn only_a_module_named_platform_asks_which_operating_system_this_is() {
    let advice = "depends on the operating system";
    for (code, what) in [
        ("#[cfg(unix)]\nfn f() {}", "cfg(unix)"),
        ("fn f() { if cfg!(target_os = \"macos\") {} }", "cfg(target_os)"),
        ("fn f() { assert!(cfg!(windows)) }", "cfg(windows)"),
        ("#[cfg_attr(not(windows), allow(dead_code))]\nfn f() {}", "cfg(windows)"),
        ("fn f() { #[cfg(all(feature = \"x\", unix))]\nlet x = 1; }", "cfg(unix)"),
        ("use std::os::unix::fs::MetadataExt;", "std::os::unix::fs::MetadataExt"),
        ("use tokio::net::{TcpStream, UnixStream};", "tokio::net::UnixStream"),
        ("fn f() { rustix::process::getpid(); }", "rustix::process::getpid"),
    ] {
        let told = problems_of("app/src/paths.rs", code);
        assert_eq!(told.len(), 1, "{code}: {told:?}");
        assert!(told[0].ends_with(&format!("`{what}` {advice}")), "{code}: {told:?}");
        let module = [("engine/src/lib.rs", "mod platform;"), ("engine/src/platform.rs", code)];
        assert_eq!(Workshop::of(&module).problems(), [""; 0], "{code}");
    }
    for code in [
        "#[cfg(test)]\nmod tests { use std::os::unix::fs::symlink; }",
        "#[cfg(all(test, target_os = \"linux\"))]\nmod checks { fn f() {} }",
        "#[cfg(feature = \"unix\")]\nfn f() {}",
        "fn f() { std::env::consts::OS; }",
    ] {
        assert_eq!(problems_of("app/src/paths.rs", code), [""; 0], "{code}");
    }
    let one = [("engine/src/lib.rs", "#![cfg(unix)]\nuse std::os::unix::net::UnixStream;")];
    assert_eq!(Workshop::of(&one).problems(), [""; 0]);
}
