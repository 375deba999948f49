//! The editors' part of `cargo xtask test`: the checks of the VS Code extension, and a user's
//! stories in two real Neovims and a real VS Code on the real server.

use crate::step::{self, Steps};
use crate::workspace::Workspace;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

/// The checks that need neither an editor nor a program of ours.
pub fn check(workspace: &Workspace, tools: &Tools, steps: &mut Steps) -> Result<()> {
    let extension = workspace.root.join("vscode-extension");

    node_modules(workspace, tools, steps)?;
    for (name, script) in [("types", "check"), ("package", "package")] {
        let mut npm = tools.command("npm");
        npm.args(["run", "--silent", script]);
        steps.run(&format!("VS Code: {name}"), npm.current_dir(&extension))?;
    }
    Ok(())
}

/// Installs the Node packages of the extension, at locked versions.
pub fn node_modules(workspace: &Workspace, tools: &Tools, steps: &mut Steps) -> Result<()> {
    let mut install = tools.command("npm");
    install
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"])
        .current_dir(workspace.root.join("vscode-extension"));
    steps.run("VS Code: packages", &mut install)
}

/// Runs the extension's tests, and checks that it has the settings of the server that was built.
pub fn test(workspace: &Workspace, tools: &Tools, steps: &mut Steps) -> Result<()> {
    let mut npm = |name: &str, script: &[&str]| {
        let mut npm = tools.command("npm");
        npm.args(["run", "--silent"])
            .args(script)
            .env("HONE_BIN", workspace.target.join("release"))
            .current_dir(workspace.root.join("vscode-extension"));
        steps.run(&format!("VS Code: {name}"), &mut npm)
    };
    step::all([npm("tests", &["test"]), npm("settings", &["settings", "--", "--check"])])
}

/// Fetches the editors that the system does not have in the wanted version.
pub fn install(workspace: &Workspace, tools: &Tools, steps: &mut Steps) -> Result<()> {
    let mut neovim = tools.command("sh");
    neovim.arg(workspace.root.join("neovim/tests/install-0.12.sh")).arg(newer_neovim(workspace));
    steps.run("Neovim 0.12: an editor", &mut neovim)?;
    install_vscode(workspace, tools, steps)
}

/// Fetches the VS Code that runs in a browser.
pub fn install_vscode(workspace: &Workspace, tools: &Tools, steps: &mut Steps) -> Result<()> {
    let mut install = tools.command("bash");
    install.arg(workspace.root.join("vscode-extension/e2e/install.sh"));
    steps.run("VS Code: an editor", install.arg(code_server(workspace)))
}

fn newer_neovim(workspace: &Workspace) -> PathBuf {
    workspace.target.join("neovim-0.12")
}

fn code_server(workspace: &Workspace) -> PathBuf {
    workspace.target.join("code-server")
}

/// Runs a user's stories in real editors. [`check`] has installed the packages that drive VS
/// Code, and [`install`] the editors. The Neovims play one after the other and VS Code at the same
/// time: most of the time an editor waits for keys and answers.
pub fn stories(
    workspace: &Workspace,
    tools: &Tools,
    steps: &mut Steps,
    models: &Path,
) -> Result<()> {
    let mut concurrent = steps.concurrent();
    thread::scope(|scope| {
        let in_neovim =
            scope.spawn(move || neovim_stories(workspace, tools, &mut concurrent, models));
        let mut vscode = vscode(workspace, tools, models, "e2e");
        step::all([steps.run("VS Code: stories", &mut vscode), step::join(in_neovim)])
    })
}

/// Makes the packages for npm of the programs that were built, and completes a line with them.
pub fn npm(workspace: &Workspace, tools: &Tools, steps: &mut Steps, models: &Path) -> Result<()> {
    let release = workspace.target.join("release");
    let packages = workspace.target.join(concat!("dist/npm-", env!("CARGO_PKG_VERSION")));
    // The build replaced the program that runs this.
    let mut dist = Command::new(workspace.binary("xtask"));
    dist.args(["dist", "--only", "npm", "--programs"]).arg(&release).arg("--out").arg(&packages);
    steps.run("npm: packages", &mut dist)?;
    let mut test = tools.command("node");
    test.arg(workspace.root.join("xtask/packaging/npm/test.mjs")).arg(&packages).arg(models);
    steps.run("npm: installed", &mut test)
}

fn neovim_stories(
    workspace: &Workspace,
    tools: &Tools,
    steps: &mut Steps,
    models: &Path,
) -> Result<()> {
    let binaries = workspace.target.join("release");
    let run = workspace.root.join("neovim/tests/run.sh");
    let newer = newer_neovim(workspace).join("nvim");
    let played = [("0.11", tools.bin.join("nvim")), ("0.12", newer)].map(|(version, nvim)| {
        let mut neovim = tools.command("sh");
        neovim.arg(&run).arg(nvim).arg(&binaries).arg(models);
        steps.run(&format!("Neovim {version}: stories"), &mut neovim)
    });
    step::all(played)
}

/// A script of the extension that drives a real VS Code, which [`install`] has fetched.
pub fn vscode(workspace: &Workspace, tools: &Tools, models: &Path, script: &str) -> Command {
    let mut npm = tools.command("npm");
    npm.args(["run", "--silent", script, "--"])
        .current_dir(workspace.root.join("vscode-extension"))
        .env("CODE_SERVER", code_server(workspace))
        .env("HONE_BIN", workspace.target.join("release"))
        .env("HONE_TEST_MODELS", models);
    npm
}

/// Programs in pinned versions, such as Node and Neovim 0.11, independent of the system's.
pub struct Tools {
    bin: PathBuf,
}

impl Tools {
    pub fn install(workspace: &Workspace, steps: &mut Steps) -> Result<Tools> {
        let tools = Tools::in_folder(workspace, "editors-venv", steps)?;
        tools.pip(workspace, "xtask/editors.txt", "tools: Node, Neovim", steps)?;
        Ok(tools)
    }

    /// A virtual environment of Python in the target folder, for programs in pinned versions.
    pub fn in_folder(workspace: &Workspace, name: &str, steps: &mut Steps) -> Result<Tools> {
        let venv = workspace.target.join(name);
        let tools = Tools { bin: venv.join("bin") };
        if !tools.program("python").exists() {
            let mut create = Command::new("python3");
            steps.run(&format!("{name}: Python"), create.args(["-m", "venv"]).arg(&venv))?;
        }
        Ok(tools)
    }

    /// Installs what a file of requirements names, in the pinned versions.
    pub fn pip(
        &self,
        workspace: &Workspace,
        requirements: &str,
        name: &str,
        steps: &mut Steps,
    ) -> Result<()> {
        let mut install = self.command("python");
        install
            .args(["-m", "pip", "install", "--quiet", "--requirement"])
            .arg(workspace.root.join(requirements));
        steps.run(name, &mut install)
    }

    /// Returns the path of a program that was installed.
    pub fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    /// A command whose PATH begins with these tools.
    pub fn command(&self, program: &str) -> Command {
        let own = self.program(program);
        let mut command = if own.exists() { Command::new(own) } else { Command::new(program) };
        let system = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(self.bin.clone()).chain(std::env::split_paths(&system));
        // Joining fails only for a name that holds a separator.
        command.env("PATH", std::env::join_paths(all).unwrap_or(system));
        command
    }
}
