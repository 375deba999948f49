//! The editors' side of `cargo xtask test`: the extension's own checks, and with
//! `--editors` a user's stories in a real Neovim and a real VS Code on the real
//! server.

use crate::packages;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::Result;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What needs no editor.
pub fn check(workspace: &Workspace, steps: &mut Steps) -> Result<()> {
    packages::ensure_for_extension()?;
    let tools = Tools::install(workspace, steps)?;
    let extension = workspace.root.join("vscode-extension");

    let mut install = tools.command("npm");
    install.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]);
    steps.run("VS Code: packages", install.current_dir(&extension))?;
    for (name, script) in [("types", "check"), ("tests", "test"), ("package", "package")] {
        let mut npm = tools.command("npm");
        npm.args(["run", "--silent", script]);
        steps.run(&format!("VS Code: {name}"), npm.current_dir(&extension))?;
    }
    Ok(())
}

/// Real editors; after [`check`].
pub fn stories(workspace: &Workspace, steps: &mut Steps, models: &Path) -> Result<()> {
    packages::ensure_for_editors()?;
    let tools = Tools::install(workspace, steps)?;
    let extension = workspace.root.join("vscode-extension");

    let mut neovim = tools.command("sh");
    neovim
        .arg(workspace.root.join("neovim/tests/run.sh"))
        .arg(tools.bin.join("nvim"))
        .arg(workspace.target.join("release"))
        .arg(models);
    steps.run("Neovim: stories", &mut neovim)?;

    let code_server = workspace.target.join("code-server");
    let mut install = tools.command("bash");
    install.arg(extension.join("e2e/install.sh")).arg(&code_server);
    steps.run("VS Code: an editor", &mut install)?;
    let mut stories = tools.command("npm");
    stories
        .args(["run", "--silent", "e2e"])
        .env("CODE_SERVER", &code_server)
        .env("HONE_BIN", workspace.target.join("release"))
        .env("HONE_TEST_MODELS", models);
    steps.run("VS Code: stories", stories.current_dir(&extension))
}

/// Node and Neovim at pinned versions, whatever the system has.
struct Tools {
    bin: PathBuf,
}

impl Tools {
    fn install(workspace: &Workspace, steps: &mut Steps) -> Result<Tools> {
        let venv = workspace.target.join("editors-venv");
        let tools = Tools { bin: venv.join("bin") };
        if !tools.bin.join("python").exists() {
            let mut create = Command::new("python3");
            steps.run("editors: a place for tools", create.args(["-m", "venv"]).arg(&venv))?;
        }
        let mut install = Command::new(tools.bin.join("python"));
        install
            .args(["-m", "pip", "install", "--quiet", "--requirement"])
            .arg(workspace.root.join("xtask/editors.txt"));
        steps.run("editors: Node, Neovim", &mut install)?;
        Ok(tools)
    }

    /// A program that finds these tools first.
    fn command(&self, program: &str) -> Command {
        let own = self.bin.join(program);
        let mut command = if own.exists() { Command::new(own) } else { Command::new(program) };
        command.env("PATH", self.path());
        command
    }

    fn path(&self) -> OsString {
        let system = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(self.bin.clone()).chain(std::env::split_paths(&system));
        // Only a name with a separator in it cannot be joined.
        std::env::join_paths(all).unwrap_or(system)
    }
}
