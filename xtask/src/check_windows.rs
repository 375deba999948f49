//! `cargo xtask check-windows`: whether the programs still compile for Windows. Nothing is linked
//! or run.

use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::{Context, Result, ensure};
use std::process::Command;

/// The target of a machine that is not a Windows one. Its C++ compiler comes from Debian.
const TARGET: &str = "x86_64-pc-windows-gnu";

const COMPILER: &str = "x86_64-w64-mingw32-g++";

pub fn run(workspace: &Workspace) -> Result<()> {
    let mut cargo = workspace.cargo();
    // Tests and examples may be for Unix alone.
    cargo.args(["check", "--release", "--workspace", "--lib", "--bins", "--no-default-features"]);
    if std::env::consts::OS != "windows" {
        ensure_target()?;
        cargo.args(["--target", TARGET]);
        // The kernels of this machine's own CPU say nothing about Windows.
        cargo.env("RUSTFLAGS", "-C target-cpu=x86-64-v2");
    }
    let mut steps = Steps::default();
    let result = steps.run("check for Windows", &mut cargo);
    steps.print();
    result
}

fn ensure_target() -> Result<()> {
    let rustc =
        Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    let rustc = rustc.context("cannot start rustc")?;
    let folder = String::from_utf8(rustc.stdout)?;
    ensure!(
        std::path::Path::new(folder.trim()).is_dir(),
        "Rust's standard library for {TARGET} is missing: `rustup target add {TARGET}`"
    );
    let compiler = Command::new(COMPILER).arg("--version").output();
    ensure!(
        compiler.is_ok_and(|output| output.status.success()),
        "{COMPILER} is missing: `apt-get install g++-mingw-w64-x86-64-posix`"
    );
    Ok(())
}
