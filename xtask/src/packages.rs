//! The packages that the build and the tests need from the system.

use crate::files;
use Sign::{Library, Program, PythonModule};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::Command;

/// Packages by their names on Debian and Ubuntu, what they are for other systems, and how one can
/// see that they are installed.
pub type Packages = &'static [(&'static str, &'static str, Sign)];

pub enum Sign {
    /// A program on the PATH.
    Program(&'static str),
    /// A file in a library folder whose name begins like this.
    Library(&'static str),
    /// A module of Python 3.
    PythonModule(&'static str),
}

/// Tools that compile llama.cpp.
const BUILD: Packages = &[
    ("cmake", "CMake", Program("cmake")),
    ("build-essential", "a C++ compiler and make", Program("c++")),
    ("clang", "Clang", Program("clang")),
    ("libclang-dev", "libclang", Library(LIBCLANG)),
    ("libgomp1", "the OpenMP runtime", Library("libgomp.so.1")),
];

/// Programs that tests of other users, full disks and closed networks run.
pub const TESTS: Packages = &[
    ("e2fsprogs", "mkfs.ext4", Program("mkfs.ext4")),
    ("perl-base", "Perl", Program("perl")),
    ("util-linux", "setpriv", Program("setpriv")),
    ("mount", "mount", Program("mount")),
];

/// Node, Neovim and other tools come from a Python package index, in pinned versions.
pub const PYTHON: Packages =
    &[("python3-venv", "Python 3 with venv and pip", PythonModule("ensurepip"))];

/// Programs that real editors need, besides what comes from that index.
pub const EDITORS: Packages = &[
    ("tmux", "tmux", Program("tmux")),
    ("chromium", "Chromium", Program("chromium")),
    ("patchelf", "patchelf", Program("patchelf")),
];

/// Programs that make the moving picture of VS Code.
pub const PICTURE: Packages =
    &[("chromium", "Chromium", Program("chromium")), ("webp", "img2webp", Program("img2webp"))];

/// The library folders of Debian and similar systems. LLVM's folders lie below them.
const LIBRARY_FOLDERS: &[&str] = &["/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib"];

/// It may also lie where a variable says.
const LIBCLANG: &str = "libclang";
const LIBCLANG_VARIABLE: &str = "LIBCLANG_PATH";

/// Makes sure that the build has its packages.
pub fn ensure() -> Result<()> {
    ensure_all(BUILD)
}

/// Makes sure that packages are there: installs them on Debian and Ubuntu, and says what to install
/// on other systems.
pub fn ensure_all(packages: Packages) -> Result<()> {
    // Other systems have other library folders. The build itself says if a library is missing.
    let is_known = |sign: &Sign| std::env::consts::OS == "linux" || !matches!(sign, Library(_));
    let missing = packages.iter().filter(|(_, _, sign)| is_known(sign) && !is_present(sign));
    let (names, what): (Vec<_>, Vec<_>) = missing.map(|(name, what, _)| (*name, *what)).unzip();
    if names.is_empty() {
        return Ok(());
    }
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    ensure!(
        is_debian(&release),
        "missing: {}; install it with your system's package manager",
        what.join(", ")
    );
    install(&names)
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

fn install(names: &[&str]) -> Result<()> {
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

fn is_present(sign: &Sign) -> bool {
    match sign {
        Program(name) => std::env::var_os("PATH").is_some_and(|path| {
            std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
        }),
        Library(name) => {
            (*name == LIBCLANG && std::env::var_os(LIBCLANG_VARIABLE).is_some())
                || LIBRARY_FOLDERS.iter().any(|folder| holds(Path::new(folder), name, 2))
        }
        PythonModule(name) => Command::new("python3")
            .args(["-c", &format!("import {name}")])
            .output()
            .is_ok_and(|output| output.status.success()),
    }
}

/// Returns true if a library whose name begins with `name` lies in a folder, or at most `depth`
/// folders below (`/usr/lib/x86_64-linux-gnu`, `/usr/lib/llvm-19/lib`).
fn holds(folder: &Path, name: &str, depth: usize) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().map(|entry| entry.path()).any(|path| {
        let own = files::name(&path);
        if path.is_dir() {
            depth > 0 && holds(&path, name, depth - 1)
        } else {
            own.starts_with(name) && own.contains(".so")
        }
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
    fn a_library_is_found_in_the_folders_below() {
        let folder = tempfile::TempDir::new().unwrap();
        let below = folder.path().join("llvm-19");
        fs::create_dir(&below).unwrap();
        fs::write(below.join("libclang-19.so.1"), "").unwrap();
        assert!(holds(folder.path(), "libclang", 1));
        assert!(!holds(folder.path(), "libclang", 0));
        assert!(!holds(folder.path(), "libgomp.so.1", 2));
    }
}
