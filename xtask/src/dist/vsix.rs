//! The VS Code extension with the programs in it. `vscode-extension/scripts/package.mjs` makes it;
//! here the programs are laid out for it.

use super::contents::{Contents, LIBRARIES, NOTICES, Release};
use crate::editors::{self, Tools};
use crate::files;
use crate::packages;
use crate::platform;
use crate::step::Steps;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// For Open VSX, whose editors grant the proposed interface, and for the Marketplace, which
/// refuses extensions that declare one.
const KINDS: [(&str, &[&str]); 2] = [("Open VSX", &[]), ("Marketplace", &["--marketplace"])];

pub fn make(
    workspace: &Workspace,
    release: &Release,
    contents: &Contents,
    out: &Path,
    steps: &mut Steps,
) -> Result<()> {
    packages::ensure_all(packages::PYTHON)?;
    let target = release.target.name();
    let staged = workspace.target.join("dist/vsix").join(&target);
    files::make_empty_folder(&staged)?;
    lay_out(contents, &staged)?;
    let tools = Tools::install(workspace, steps)?;
    editors::node_modules(workspace, &tools, steps)?;
    for (kind, options) in KINDS {
        let mut npm = tools.command("npm");
        npm.current_dir(workspace.root.join("vscode-extension"))
            .args(["run", "--silent", "package", "--", "--target", &target])
            .arg("--programs")
            .arg(&staged)
            .arg("--out")
            .arg(out)
            .args(options);
        steps.run(&format!("VS Code: package for {kind}"), &mut npm)?;
    }
    Ok(())
}

fn lay_out(contents: &Contents, folder: &Path) -> Result<()> {
    let notices = contents.licences.iter().filter(|file| file.name == NOTICES);
    let places = [
        ("bin", contents.programs.iter().collect::<Vec<_>>(), 0o755),
        (LIBRARIES, contents.libraries.iter().collect(), 0o644),
        (".", notices.collect(), 0o644),
    ];
    for (place, all, mode) in places {
        let folder = folder.join(place);
        files::make_folder(&folder)?;
        for file in all {
            let path = folder.join(&file.name);
            fs::write(&path, &file.bytes).with_context(|| path.display().to_string())?;
            // The packager copies the mode of each file, where files have one.
            platform::set_mode(&path, mode).with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}
