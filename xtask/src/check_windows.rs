//! `cargo xtask check-windows`: whether the programs still compile for Windows. Nothing is linked
//! or run.

use crate::dist::target::Target;
use crate::dist::zig;
use crate::files;
use crate::packages;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::Result;

pub fn run(workspace: &Workspace) -> Result<()> {
    packages::ensure()?;
    Steps::with_times(|steps| check(workspace, steps))
}

fn check(workspace: &Workspace, steps: &mut Steps) -> Result<()> {
    let mut cargo = match zig::triple(Target::Win32X64, None)? {
        Some(triple) => {
            // The folder and the flags of `cargo xtask dist`, which compiles llama.cpp too.
            let folder = workspace.target.join("dist");
            files::make_folder(&folder)?;
            let mut cargo = zig::cargo(workspace, "check", &triple, &folder, steps)?;
            cargo.env("RUSTFLAGS", crate::dist::build::flags(Target::Win32X64));
            cargo
        }
        None => {
            let mut cargo = workspace.cargo();
            cargo.arg("check");
            cargo
        }
    };
    // Tests, examples and the lab may be for Unix alone, but for the example that
    // `cargo xtask dist` runs.
    cargo.args(["--release", "--workspace", "--exclude", "lab"]);
    cargo.args(["--lib", "--bins", "--no-default-features"]);
    cargo.args(["--example", "smoke"]);
    steps.run("check for Windows", &mut cargo)
}
