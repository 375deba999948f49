//! `hone setup`: what an editor needs so that it shows Hone's offers, printed or written into the
//! editor's file.

mod block;
mod file;
mod jetbrains;
mod json;
mod places;
mod recipe;

pub use places::{files, stale};
pub use recipe::{Editor, Values};

use crate::cli::ToldAlready;
use crate::cli::confirm::confirmed;
use crate::cli::settings::Configured;
use crate::cli::surroundings::Surroundings;
use crate::daemon::http_token;
use anyhow::{Context, Result, bail, ensure};
use file::SettingsFile;
use host::paths::Paths;
use host::platform::files::is_private;
use recipe::Form;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct SetupArgs {
    /// The editor, or the plugin of one
    editor: Editor,
    /// The folder that JetBrains' template goes into
    folder: Option<PathBuf>,
    /// Write it into the editor's own file, or into this one. Asks first, and a copy of the file
    /// stays next to it
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    write: Option<Option<PathBuf>>,
    /// Do not ask first
    #[arg(long)]
    yes: bool,
}

/// A file that cannot be changed without a risk to what the user wrote there, and why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unsafe(String);

pub fn run(home: &Paths, args: SetupArgs) -> Result<()> {
    let SetupArgs { editor, folder, write, yes } = args;
    let around = Surroundings::of_process();
    if editor == Editor::Jetbrains {
        let folder = folder.or_else(|| write.clone().flatten());
        ensure!(
            folder.is_some() || write.is_none(),
            "`hone setup jetbrains FOLDER` names a folder"
        );
        return jetbrains::run(&around, folder.as_deref(), yes);
    }
    ensure!(folder.is_none(), "`hone setup {editor} --write FILE` names another file");
    let (values, is_on) = values(home, editor, &around)?;
    let file = match &write {
        Some(Some(file)) => Some(std::path::absolute(file)?),
        _ => places::file(editor, &around),
    };
    let form = file.as_deref().map_or(editor.form(), |file| editor.form_in(file));
    let of_checkout = match editor {
        Editor::Neovim => recipe::plugin_of_checkout(&around.program),
        _ => None,
    };
    let then = if of_checkout.is_some() { recipe::THEN_OF_CHECKOUT } else { editor.then() };
    let recipe = of_checkout.unwrap_or_else(|| values.filled(editor.recipe(form), form));
    let done = match (write, &file) {
        (None, _) => print(editor, file.as_deref(), &recipe),
        (Some(_), None) => bail!("no file of {} is here; --write FILE names one", editor.name()),
        (Some(_), Some(file)) => {
            let has_token = values.token.is_some() || !editor.asks_by_http();
            ensure!(has_token, "there is no token yet; `hone api on` makes it");
            write_into(file, editor, form, &recipe, yes)
        }
    };
    tell!("{then}");
    if editor.asks_by_http() && !is_on {
        tell!("note: the HTTP API is off; `hone api on` switches it on");
    }
    let is_on_path = || around.on_path("hone").is_some_and(|path| around.is_this(&path));
    if editor.starts_hone_by_path() && !is_on_path() {
        let this = around.program.display();
        tell!("note: it starts the first `hone` of PATH, which is not this program, {this}");
    }
    done
}

/// Returns what is filled into recipes, and whether the HTTP API is on.
fn values(home: &Paths, editor: Editor, around: &Surroundings) -> Result<(Values, bool)> {
    let api = Configured::noted(home).config.api;
    let token = match editor.asks_by_http() {
        true => http_token::read(&home.api_token())?,
        false => None,
    };
    let is_on = api.enabled && token.is_some();
    let token = token.map(|token| token.as_str().to_owned());
    Ok((Values { port: api.port, token, program: around.program.clone() }, is_on))
}

fn print(editor: Editor, file: Option<&Path>, recipe: &str) -> Result<()> {
    let (place, named) = match file {
        Some(file) => (file.display().to_string(), ""),
        None => ("the file of your settings".to_owned(), " FILE"),
    };
    let name = editor.name();
    tell!("{name}: put this into {place}, or let `hone setup {editor} --write{named}` do it");
    // It is copied, so it is not wrapped.
    emit!("{recipe}")
}

/// Puts a recipe into a file. If that is not safe, the recipe is printed.
fn write_into(path: &Path, editor: Editor, form: Form, recipe: &str, yes: bool) -> Result<()> {
    let settings = SettingsFile::read(path)?;
    let changed = match form.comment() {
        None => json::with_members(settings.text(), recipe),
        Some(_) => block::with_block(settings.text(), editor, form, recipe),
    };
    let text = match changed {
        Ok(text) => text,
        Err(Unsafe(why)) => {
            tell!("{}: {why}, so nothing was written; put this there by hand:", path.display());
            emit!("{recipe}")?;
            return Err(ToldAlready.into());
        }
    };
    if text == settings.text() {
        return say!("{} has it already", path.display());
    }
    if !yes {
        ensure!(
            std::io::stdin().is_terminal(),
            "nothing was written: this would change {}; say --yes",
            path.display()
        );
        emit!("{recipe}")?;
        let is_wanted = confirmed(&format!("Write this into {}?", path.display()))?;
        ensure!(is_wanted, "nothing was written");
    }
    let copy = settings.replace(&text)?;
    say!("{} is written", path.display())?;
    if let Some(copy) = copy {
        say!("what was there is in {}", copy.display())?;
    }
    let (is_private, how) = is_private(path).with_context(|| path.display().to_string())?;
    if editor.asks_by_http() && !is_private {
        tell!("note: others can read {} ({how}), which has the token now", path.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
