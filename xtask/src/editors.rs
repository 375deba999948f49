//! The editors' side of `cargo xtask test`: the extension's own checks, and a
//! user's stories in two real Neovims and a real VS Code on the real server.

use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::Result;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What needs no editor.
pub fn check(workspace: &Workspace, tools: &Tools, steps: &mut Steps) -> Result<()> {
    let extension = workspace.root.join("vscode-extension");

    node_modules(workspace, tools, steps)?;
    for (name, script) in [("types", "check"), ("tests", "test"), ("package", "package")] {
        let mut npm = tools.command("npm");
        npm.args(["run", "--silent", script]);
        steps.run(&format!("VS Code: {name}"), npm.current_dir(&extension))?;
    }
    Ok(())
}

/// The Node packages of the extension, at locked versions.
pub fn node_modules(workspace: &Workspace, tools: &Tools, steps: &mut Steps) -> Result<()> {
    let mut install = tools.command("npm");
    install
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"])
        .current_dir(workspace.root.join("vscode-extension"));
    steps.run("VS Code: packages", &mut install)
}

/// The extension's settings are those that the server just built has.
pub fn settings(workspace: &Workspace, tools: &Tools, steps: &mut Steps) -> Result<()> {
    let mut npm = tools.command("npm");
    npm.args(["run", "--silent", "settings", "--", "--check"])
        .env("HONE_BIN", workspace.target.join("release"));
    steps.run("VS Code: settings", npm.current_dir(workspace.root.join("vscode-extension")))
}

/// Real editors; after [`check`], which installs what drives VS Code.
pub fn stories(
    workspace: &Workspace,
    tools: &Tools,
    steps: &mut Steps,
    models: &Path,
) -> Result<()> {
    let binaries = workspace.target.join("release");
    let tests = workspace.root.join("neovim/tests");

    let newer = workspace.target.join("neovim-0.12");
    let mut install = tools.command("sh");
    install.arg(tests.join("install-0.12.sh")).arg(&newer);
    steps.run("Neovim 0.12: an editor", &mut install)?;
    for (version, nvim) in [("0.11", tools.bin.join("nvim")), ("0.12", newer.join("nvim"))] {
        let mut neovim = tools.command("sh");
        neovim.arg(tests.join("run.sh")).arg(nvim).arg(&binaries).arg(models);
        steps.run(&format!("Neovim {version}: stories"), &mut neovim)?;
    }

    let mut stories = vscode(workspace, tools, steps, models, "e2e")?;
    steps.run("VS Code: stories", &mut stories)
}

/// A script of the extension that drives a real VS Code, which this installs.
pub fn vscode(
    workspace: &Workspace,
    tools: &Tools,
    steps: &mut Steps,
    models: &Path,
    script: &str,
) -> Result<Command> {
    let extension = workspace.root.join("vscode-extension");
    let code_server = workspace.target.join("code-server");
    let mut install = tools.command("bash");
    install.arg(extension.join("e2e/install.sh")).arg(&code_server);
    steps.run("VS Code: an editor", &mut install)?;
    let mut npm = tools.command("npm");
    npm.args(["run", "--silent", script, "--"])
        .current_dir(extension)
        .env("CODE_SERVER", &code_server)
        .env("HONE_BIN", workspace.target.join("release"))
        .env("HONE_TEST_MODELS", models);
    Ok(npm)
}

/// Node and Neovim 0.11 at pinned versions, whatever the system has.
pub struct Tools {
    bin: PathBuf,
}

impl Tools {
    pub fn install(workspace: &Workspace, steps: &mut Steps) -> Result<Tools> {
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
    pub fn command(&self, program: &str) -> Command {
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
