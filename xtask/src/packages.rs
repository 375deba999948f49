//! The packages that the build and the tests need from the system.

use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::Command;

/// How one can see that a package is installed.
enum Sign {
    /// A program on the PATH.
    Program(&'static str),
    /// A file in a library folder whose name begins like this.
    Library(&'static str),
    /// A module of Python 3.
    PythonModule(&'static str),
}

struct Package {
    /// Its name on Debian and Ubuntu.
    name: &'static str,
    /// What it is, for other systems.
    what: &'static str,
    sign: Sign,
}

/// Tools that compile llama.cpp.
const FOR_BUILD: &[Package] = &[
    Package { name: "cmake", what: "CMake", sign: Sign::Program("cmake") },
    Package {
        name: "build-essential",
        what: "a C++ compiler and make",
        sign: Sign::Program("c++"),
    },
    Package { name: "clang", what: "Clang", sign: Sign::Program("clang") },
    Package { name: "libclang-dev", what: "libclang", sign: Sign::Library("libclang") },
    Package { name: "libgomp1", what: "the OpenMP runtime", sign: Sign::Library("libgomp.so.1") },
];

/// Programs that tests of other users, full disks and closed networks run.
const FOR_TESTS: &[Package] = &[
    Package { name: "e2fsprogs", what: "mkfs.ext4", sign: Sign::Program("mkfs.ext4") },
    Package { name: "perl-base", what: "Perl", sign: Sign::Program("perl") },
    Package { name: "util-linux", what: "setpriv", sign: Sign::Program("setpriv") },
    Package { name: "mount", what: "mount", sign: Sign::Program("mount") },
];

/// Node and Neovim come from a Python package index, in pinned versions.
const FOR_EXTENSION: &[Package] = &[Package {
    name: "python3-venv",
    what: "Python 3 with venv and pip",
    sign: Sign::PythonModule("ensurepip"),
}];

/// Programs that real editors need beside that.
const FOR_EDITORS: &[Package] = &[
    Package { name: "tmux", what: "tmux", sign: Sign::Program("tmux") },
    Package { name: "chromium", what: "Chromium", sign: Sign::Program("chromium") },
    Package { name: "patchelf", what: "patchelf", sign: Sign::Program("patchelf") },
];

/// What the moving picture of VS Code needs.
const FOR_PICTURE: &[Package] = &[
    Package { name: "chromium", what: "Chromium", sign: Sign::Program("chromium") },
    Package { name: "webp", what: "img2webp", sign: Sign::Program("img2webp") },
];

/// The library folders of Debian and similar systems. LLVM's folders lie below them.
const LIBRARY_FOLDERS: &[&str] = &["/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib"];

/// Makes sure that the build has its packages: installs them on Debian and Ubuntu, and says what
/// to install on other systems.
pub fn ensure() -> Result<()> {
    ensure_all(FOR_BUILD)
}

/// The same for tests that are left out where a program is missing.
pub fn ensure_for_tests() -> Result<()> {
    ensure_all(FOR_TESTS)
}

/// The same for building and testing the VS Code extension.
pub fn ensure_for_extension() -> Result<()> {
    ensure_all(FOR_EXTENSION)
}

/// The same for the stories in real editors.
pub fn ensure_for_editors() -> Result<()> {
    ensure_all(FOR_EDITORS)
}

/// The same for the moving picture of VS Code.
pub fn ensure_for_picture() -> Result<()> {
    ensure_all(FOR_PICTURE)
}

/// Makes sure that Rust's standard library for a target is there, where rustup looks after Rust.
pub fn ensure_rust_for(triple: &str) -> Result<()> {
    let rustc =
        Command::new("rustc").args(["--print", "target-libdir", "--target", triple]).output();
    let folder = String::from_utf8(rustc.context("cannot start rustc")?.stdout)?;
    if Path::new(folder.trim()).is_dir() {
        return Ok(());
    }
    eprintln!("Rust's standard library is needed: rustup target add {triple}");
    let added = Command::new("rustup").args(["target", "add", triple]).status();
    ensure!(
        added.is_ok_and(|status| status.success()),
        "Rust's standard library for {triple} is missing, and `rustup target add {triple}` fails"
    );
    Ok(())
}

fn ensure_all(packages: &[Package]) -> Result<()> {
    let mut missing: Vec<&Package> =
        packages.iter().filter(|package| !is_present(package)).collect();
    if std::env::consts::OS != "linux" {
        // Other systems have other library folders. The build itself says if one is missing.
        missing.retain(|package| !matches!(package.sign, Sign::Library(_)));
    }
    if missing.is_empty() {
        return Ok(());
    }
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    if !is_debian(&release) {
        bail!(message(&missing));
    }
    install(&missing)
}

fn message(missing: &[&Package]) -> String {
    let list: Vec<&str> = missing.iter().map(|package| package.what).collect();
    format!("missing: {}; install it with your system's package manager", list.join(", "))
}

fn install(missing: &[&Package]) -> Result<()> {
    let names: Vec<&str> = missing.iter().map(|package| package.name).collect();
    let mut update = if is_root() { vec![] } else { vec!["sudo"] };
    update.push("apt-get");
    let mut install = update.clone();
    update.push("update");
    install.extend(["install", "--yes", "--no-install-recommends"]);
    install.extend(names);
    eprintln!("System packages are needed: {}", install.join(" "));
    if std::io::stdin().is_terminal() && !agreed()? {
        bail!("not installed; run this yourself and try again: {}", install.join(" "));
    }
    for arguments in [update, install] {
        let status = Command::new(arguments[0])
            .args(&arguments[1..])
            .env("DEBIAN_FRONTEND", "noninteractive")
            .status()
            .with_context(|| format!("cannot start {}", arguments[0]))?;
        if !status.success() {
            bail!("`{}` failed ({status})", arguments.join(" "));
        }
    }
    Ok(())
}

fn agreed() -> Result<bool> {
    eprint!("Install them now? [Y/n] ");
    std::io::stderr().flush().context("cannot ask")?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).context("cannot read the answer")?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "" | "y" | "yes"))
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Debian, Ubuntu, or a system that declares itself similar to them.
fn is_debian(os_release: &str) -> bool {
    os_release
        .lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(key, _)| matches!(*key, "ID" | "ID_LIKE"))
        .flat_map(|(_, value)| value.trim_matches('"').split_whitespace())
        .any(|name| matches!(name, "debian" | "ubuntu"))
}

fn is_present(package: &Package) -> bool {
    match package.sign {
        Sign::Program(name) => std::env::var_os("PATH").is_some_and(|path| {
            std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
        }),
        Sign::Library("libclang") => {
            std::env::var_os("LIBCLANG_PATH").is_some() || has_library("libclang", ".so")
        }
        Sign::Library(name) => has_library(name, ""),
        Sign::PythonModule(name) => Command::new("python3")
            .args(["-c", &format!("import {name}")])
            .output()
            .is_ok_and(|output| output.status.success()),
    }
}

/// Whether a file `prefix…ending` is in a library folder, or one or two folders below
/// (`/usr/lib/x86_64-linux-gnu`, `/usr/lib/llvm-19/lib`). A version may follow `ending`.
fn has_library(prefix: &str, ending: &str) -> bool {
    LIBRARY_FOLDERS.iter().any(|folder| holds(Path::new(folder), prefix, ending, 2))
}

fn holds(folder: &Path, prefix: &str, ending: &str, depth: usize) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        (name.starts_with(prefix) && name.contains(ending) && !entry.path().is_dir())
            || (depth > 0
                && entry.path().is_dir()
                && holds(&entry.path(), prefix, ending, depth - 1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debian_and_similar_systems_are_recognised_by_os_release() {
        assert!(is_debian("PRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\n"));
        assert!(is_debian("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n"));
        assert!(!is_debian("ID=fedora\nID_LIKE=\"rhel\"\n"));
        assert!(!is_debian("NAME=debian\n"));
        assert!(!is_debian(""));
    }

    #[test]
    fn the_message_for_other_systems_has_the_plain_names_of_what_is_missing() {
        let missing: Vec<&Package> = FOR_BUILD.iter().take(2).collect();
        assert_eq!(
            message(&missing),
            "missing: CMake, a C++ compiler and make; install it with your system's \
             package manager"
        );
    }

    #[test]
    fn a_library_is_found_in_the_folders_below() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(holds(here, "packages", ".rs", 1));
        assert!(!holds(here, "packages", ".rs", 0));
        assert!(!holds(here, "no-such", "", 2));
    }
}
