//! What the build needs from the system: the tools that compile llama.cpp.

use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::Command;

/// How the presence of a package shows.
enum Sign {
    /// A program on the PATH.
    Program(&'static str),
    /// A file whose name begins like this in a library folder.
    Library(&'static str),
    /// A module that Python 3 finds.
    PythonModule(&'static str),
}

struct Package {
    /// Its name on Debian and Ubuntu.
    name: &'static str,
    /// What it is, for other systems.
    what: &'static str,
    sign: Sign,
}

const PACKAGES: &[Package] = &[
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

/// Node and Neovim come from a Python package index, at pinned versions.
const FOR_EXTENSION: &[Package] = &[Package {
    name: "python3-venv",
    what: "Python 3 with venv and pip",
    sign: Sign::PythonModule("ensurepip"),
}];

/// What real editors need beside that.
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

/// Library folders of Debian and its kin; LLVM keeps its own beside them.
const LIBRARY_FOLDERS: &[&str] = &["/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib"];

/// Makes sure that what the build needs is there: installs it on Debian and
/// Ubuntu, says what to install elsewhere.
pub fn ensure() -> Result<()> {
    ensure_all(PACKAGES)
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

fn ensure_all(packages: &[Package]) -> Result<()> {
    let mut missing: Vec<&Package> =
        packages.iter().filter(|package| !is_present(package)).collect();
    if !cfg!(target_os = "linux") {
        // Library folders differ; the build says it by itself if one is missing.
        missing.retain(|package| !matches!(package.sign, Sign::Library(_)));
    }
    if missing.is_empty() {
        return Ok(());
    }
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    if !is_debian(&release) {
        bail!(tell(&missing));
    }
    install(&missing)
}

fn tell(missing: &[&Package]) -> String {
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

/// Debian, Ubuntu or one that says it is like them.
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

/// A file `prefix…ending` in a library folder, or one or two folders below it
/// (`/usr/lib/x86_64-linux-gnu`, `/usr/lib/llvm-19/lib`). `ending` may be
/// followed by a version.
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
    fn debian_and_its_kin_are_known_by_os_release() {
        assert!(is_debian("PRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\n"));
        assert!(is_debian("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n"));
        assert!(!is_debian("ID=fedora\nID_LIKE=\"rhel\"\n"));
        assert!(!is_debian("NAME=debian\n"));
        assert!(!is_debian(""));
    }

    #[test]
    fn other_systems_are_told_what_is_missing_by_its_plain_name() {
        let missing: Vec<&Package> = PACKAGES.iter().take(2).collect();
        assert_eq!(
            tell(&missing),
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
