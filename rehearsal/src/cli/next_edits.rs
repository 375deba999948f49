//! `hone rehearse --next-edits`: runs the rehearsal of next edits on each repository.

use super::arguments::Arguments;
use super::observer::Observer;
use super::{Setup, arguments};
use crate::next_edits;
use crate::next_edits::figures::table;
use anyhow::{Context, Result, ensure};
use std::io::Write;

pub fn rehearse(arguments: &Arguments) -> Result<()> {
    let setup = Setup::new(arguments)?;
    let mut observer = Observer::new(arguments)?;
    let mut all = Vec::new();
    for (history, repo) in arguments::repositories(arguments)? {
        let settings = setup.settings(&repo, &[], None)?;
        observer.begin(&repo, &[], (1, 1));
        let figures = next_edits::rehearse(&history, &settings, |event| observer.see(&event));
        if figures.is_err() {
            observer.clear();
        }
        let mut figures = figures?;
        ensure!(
            figures.commits > 0,
            "nothing to edit: the chosen commits of {} change no code",
            repo.path
        );
        (figures.repo, figures.author) = (repo.path, repo.author);
        all.push(figures);
    }
    observer.finish()?;
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&all).context("cannot write the report")? + "\n",
        false => table(&all),
    };
    std::io::stdout().lock().write_all(text.as_bytes()).context("cannot print the report")
}
