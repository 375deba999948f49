//! `cargo xtask picture`: the moving pictures of VS Code in the README and the book. They are
//! recorded from a real editor with the real server and the default model.

use crate::editors::{self, Tools};
use crate::files;
use crate::packages;
use crate::step::Steps;
use crate::suite;
use crate::workspace::Workspace;
use anyhow::Result;

/// The folder of the pictures in the repository.
const FOLDER: &str = "docs/book/src/pictures";

#[derive(clap::Args)]
pub struct Arguments {
    /// The picture to record; without it, all of them
    scene: Option<Scene>,
}

/// A scene of `vscode-extension/e2e/scenes`.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Scene {
    Completions,
    NextEdit,
}

impl Scene {
    const ALL: [Scene; 2] = [Scene::Completions, Scene::NextEdit];

    /// The scene's name for the script, and the picture's file.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Scene::Completions => ("completions", "vscode.webp"),
            Scene::NextEdit => ("next-edit", "vscode-next-edit.webp"),
        }
    }
}

pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    packages::ensure()?;
    packages::ensure_all(packages::PYTHON)?;
    packages::ensure_all(packages::PICTURE)?;
    let mut steps = Steps::default();
    steps.run("build", &mut workspace.cargo_build())?;
    let models = suite::fetch_models(workspace, &mut steps)?;
    let tools = Tools::install(workspace, &mut steps)?;
    editors::node_modules(workspace, &tools, &mut steps)?;

    let folder = workspace.root.join(FOLDER);
    files::make_folder(&folder)?;
    editors::install_vscode(workspace, &tools, &mut steps)?;
    let scenes = arguments.scene.map_or(Scene::ALL.to_vec(), |scene| vec![scene]);
    for (scene, file) in scenes.into_iter().map(Scene::names) {
        let mut record = editors::vscode(workspace, &tools, &models, "picture");
        record.arg(scene).arg(folder.join(file));
        steps.run(&format!("VS Code: the picture {scene}"), &mut record)?;
    }
    steps.print();
    Ok(())
}
