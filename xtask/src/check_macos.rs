//! `cargo xtask check-macos`: checks on Linux that the Rust code still compiles for macOS.
//!
//! Rust's compiler reads all of it and generates no code. C code is not compiled, because Apple's
//! headers come with its own compiler alone: a program that does nothing takes that compiler's
//! place. llama.cpp's functions are those that were found for this machine.

use crate::files;
use crate::packages;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

const TARGET: &str = "aarch64-apple-darwin";

/// The program that build scripts call instead of a compiler and an archiver.
const DOES_NOTHING: &str = "true";

/// The file of llama.cpp's functions, which its build script writes.
const BINDINGS: &str = "bindings.rs";

pub fn run(workspace: &Workspace) -> Result<()> {
    packages::ensure()?;
    Steps::with_times(|steps| check(workspace, steps))
}

fn check(workspace: &Workspace, steps: &mut Steps) -> Result<()> {
    packages::ensure_rust_for(TARGET)?;
    steps.run("build", &mut workspace.cargo_build())?;
    let folder = workspace.target.join("check-macos");
    files::make_folder(&folder)?;
    let found = bindings(&workspace.target.join("release/build"))?;
    fs::copy(&found, folder.join(BINDINGS)).with_context(|| found.display().to_string())?;
    // Instead of llama.cpp's build script, which would compile it.
    let config = folder.join("config.toml");
    let script = format!("[target.{TARGET}.llama.rustc-env]\nOUT_DIR = {folder:?}\n");
    fs::write(&config, script).with_context(|| config.display().to_string())?;

    let mut cargo = workspace.cargo();
    cargo.args(["check", "--release", "--workspace", "--all-targets"]);
    cargo.args(["--target", TARGET, "--config"]).arg(&config);
    cargo.env("RUSTFLAGS", "-D warnings");
    let variables = TARGET.replace('-', "_");
    for tool in ["CC", "CXX", "AR"] {
        cargo.env(format!("{tool}_{variables}"), DOES_NOTHING);
    }
    steps.run("check for macOS", &mut cargo)
}

/// The newest bindings that a build of this machine has made.
fn bindings(build: &Path) -> Result<PathBuf> {
    let mut found = vec![];
    for folder in files::list(build)? {
        let file = folder.join("out").join(BINDINGS);
        if files::name(&folder).starts_with("llama-cpp-sys-2-") && file.is_file() {
            found.push((fs::metadata(&file)?.modified()?, file));
        }
    }
    let newest = found.into_iter().max().map(|(_, file)| file);
    newest.with_context(|| format!("{}: llama.cpp was not built", build.display()))
}
