//! `hone rehearse --next-edits`: runs the rehearsal of next edits on each repository.

use super::arguments::Arguments;
use super::observer::Observer;
use super::{Setup, arguments};
use crate::next_edits;
use crate::next_edits::figures::tables;
use anyhow::{Context, Result, ensure};
use std::io::Write;

pub fn rehearse(arguments: &Arguments) -> Result<()> {
    let setup = Setup::new(arguments)?;
    let mut observer = Observer::new(arguments)?;
    let arms = match arguments.arm.is_empty() {
        true => vec![next_edits::default_arm()],
        false => arguments.arm.clone(),
    };
    let mut all = vec![Vec::new(); arms.len()];
    for (history, repo) in arguments::repositories(arguments, &setup.hone)? {
        let settings = setup.settings(&repo, &[], None)?;
        for (at, arm) in arms.iter().enumerate() {
            observer.begin(&repo, &[], (at + 1, arms.len()));
            let figures =
                next_edits::rehearse(&history, arm, &settings, |event| observer.see(&event));
            if figures.is_err() {
                observer.clear();
            }
            let mut figures = figures?;
            ensure!(
                figures.commits > 0,
                "nothing to edit: the chosen commits of {} change no code",
                repo.path
            );
            if let Some(home) = &figures.home {
                eprintln!("{}, {} arm: HONE_HOME={}", repo.path, arm.name, home.display());
            }
            figures.repo.clone_from(&repo.path);
            figures.author.clone_from(&repo.author);
            all[at].push(figures);
        }
    }
    observer.finish()?;
    let text = match arguments.json {
        true => {
            let all = all.concat();
            serde_json::to_string_pretty(&all).context("cannot write the report")? + "\n"
        }
        false => tables(&all),
    };
    std::io::stdout().lock().write_all(text.as_bytes()).context("cannot print the report")
}
