//! cargo with Zig's C compiler, which has the C libraries of other systems and of older ones.

use super::target::Target;
use crate::editors::Tools;
use crate::packages;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::{Result, ensure};
use std::path::Path;
use std::process::Command;

/// The target as cargo-zigbuild calls it, with a version of glibc; none where this machine's own
/// compiler builds for it.
pub fn triple(target: Target, glibc: Option<&str>) -> Result<Option<String>> {
    let triple = target.triple();
    if let Some(glibc) = glibc {
        ensure!(target.debian().is_some(), "--glibc is for Linux with glibc, and not {target:?}");
        return Ok(Some(format!("{triple}.{glibc}")));
    }
    let is_other = target != Target::host()?;
    // Apple's frameworks come with its own compiler alone.
    Ok((is_other && !target.is_macos()).then(|| triple.to_owned()))
}

/// A command of cargo-zigbuild's, `zigbuild` or `check`, for a target by its name for it. Installs
/// what is missing.
pub fn cargo(
    workspace: &Workspace,
    command: &str,
    triple: &str,
    cargo_target: &Path,
    steps: &mut Steps,
) -> Result<Command> {
    let (rust, _glibc) = triple.split_once('.').unwrap_or((triple, ""));
    packages::ensure_rust_for(rust)?;
    // Zig comes from Python's package index too.
    packages::ensure_all(packages::PYTHON)?;
    let tools = Tools::install(workspace, steps)?;
    tools.pip(workspace, "xtask/zig.txt", "zig", steps)?;
    let mut cargo = tools.command("cargo-zigbuild");
    // Zig names its headers relative to the folder that it is started in, if that holds them, and
    // build scripts run elsewhere. This folder does not hold them.
    cargo.current_dir(cargo_target).arg(command);
    cargo.arg("--manifest-path").arg(workspace.root.join("Cargo.toml"));
    cargo.args(["--target", triple]).env("CARGO_TARGET_DIR", cargo_target);
    Ok(cargo)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machine_is_built_for_by_zig_and_this_one_by_its_own_compiler() {
        let host = Target::host().unwrap();
        assert_eq!(triple(host, None).unwrap(), None);
        let old = triple(Target::LinuxArm64, Some("2.28")).unwrap();
        assert_eq!(old.as_deref(), Some("aarch64-unknown-linux-gnu.2.28"));
        assert!(triple(Target::AlpineX64, Some("2.28")).is_err());
        let mac = [Target::DarwinArm64, Target::DarwinX64];
        assert!(mac.iter().all(|target| triple(*target, None).unwrap().is_none()));
    }
}
