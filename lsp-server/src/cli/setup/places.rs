//! The files in which editors look for their settings.

use super::file::FILE_BYTES;
use super::recipe::{Editor, Form, Values};
use crate::cli::surroundings::Surroundings;
use std::path::PathBuf;

/// An editor's file that asks Hone in a way that does not work any more.
#[derive(Debug, PartialEq, Eq)]
pub struct Stale {
    pub editor: Editor,
    pub file: PathBuf,
}

/// The file that a recipe goes into: the first one that is there, or else the usual one. `None` if
/// nothing tells which one it should be.
pub fn file(editor: Editor, around: &Surroundings) -> Option<PathBuf> {
    let files = candidates(editor, around);
    let there = files.iter().find(|file| file.symlink_metadata().is_ok()).cloned();
    // A plugin's editor is not known by the plugin alone.
    let usual = files.into_iter().next().filter(|_| editor != Editor::LlamaVim);
    there.or(usual)
}

fn candidates(editor: Editor, around: &Surroundings) -> Vec<PathBuf> {
    let nvim = around.config.join(&around.nvim);
    let home = |file: &str| around.home.join(file);
    match editor {
        Editor::Vscode => vec![around.electron.join("Code/User/settings.json")],
        // Neovim reads each file of these two folders by itself.
        Editor::Neovim => vec![nvim.join("plugin/hone.lua")],
        Editor::Minuet => vec![nvim.join("after/plugin/hone-minuet.lua")],
        Editor::Zed => {
            let is_windows = std::env::consts::OS == "windows";
            let mac = (std::env::consts::OS == "macos").then(|| home(".config/zed"));
            let folder =
                if is_windows { around.electron.join("Zed") } else { around.config.join("zed") };
            vec![mac.unwrap_or(folder).join("settings.json")]
        }
        Editor::Emacs => {
            let config = around.config.join("emacs/init.el");
            vec![home(".emacs.d/init.el"), config, home(".emacs")]
        }
        Editor::LlamaVim => {
            let config = [nvim.join("init.lua"), nvim.join("init.vim")];
            config.into_iter().chain([home(".vimrc"), home(".vim/vimrc")]).collect()
        }
        Editor::Jetbrains => vec![],
    }
}

const BY_HTTP: [Editor; 3] = [Editor::Zed, Editor::LlamaVim, Editor::Minuet];

/// The files of editors that ask by HTTP.
pub fn files(around: &Surroundings) -> impl Iterator<Item = (Editor, PathBuf)> {
    BY_HTTP
        .into_iter()
        .flat_map(|editor| candidates(editor, around).into_iter().map(move |file| (editor, file)))
}

/// The files that have Hone's recipe with another address or another token than the user's own.
pub fn stale(around: &Surroundings, values: &Values) -> Vec<Stale> {
    let found = files(around).filter(|(editor, file)| {
        let text = models::file::read_plain(file, FILE_BYTES).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let form = editor.form_in(file);
        let is_ours = match form {
            Form::Json => text.contains("/t/") && text.contains("open_ai_compatible_api"),
            _ => super::block::is_in(&text, *editor),
        };
        let own = values.filled(editor.recipe(form), form);
        is_ours && !key_lines(&own).all(|line| text.contains(line))
    });
    found.map(|(editor, file)| Stale { editor, file }).collect()
}

/// The quoted texts of a recipe that are addresses or tokens.
fn key_lines(recipe: &str) -> impl Iterator<Item = &str> {
    let quoted = recipe.split(['"', '\'']);
    quoted.filter(|text| text.starts_with("http://") || is_token(text))
}

fn is_token(text: &str) -> bool {
    text.len() > 20 && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
