//! A git repository for a rehearsal.

use std::path::Path;
use std::process::{Command, Stdio};

/// Runs git as Ada, whatever the settings of this machine's user are.
pub fn git(repo: &Path, arguments: &[&str]) {
    let done = Command::new("git")
        .current_dir(repo)
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
        .args(["-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdout(Stdio::null())
        .status();
    assert!(done.expect("git runs").success(), "git {arguments:?}");
}
