//! `hone rehearse --recording`: plays a recorded session into each arm, one after the other.

use super::Setup;
use super::arguments::Arguments;
use crate::next_edits::default_arm;
use crate::recording::figures::{PlayEnd, PlayFigures, table};
use crate::recording::play::{self, Part};
use crate::recording::reader;
use crate::report::Repo;
use crate::run::interrupt::Interrupted;
use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::io::Write;
use std::path::Path;

#[derive(Serialize)]
struct Report<'a> {
    recording: String,
    /// Why the rest of the file was not read.
    fault: Option<&'a str>,
    arms: &'a [PlayFigures],
}

pub fn play(arguments: &Arguments, file: &Path) -> Result<()> {
    let recording = reader::file(file)?;
    if let Some(fault) = &recording.fault {
        eprintln!("{}", printable::name(fault));
    }
    let setup = Setup::new(arguments)?;
    let name = file.display().to_string();
    let settings = setup.settings(&unnamed(&name), &[], None)?;
    let part = Part {
        entries: arguments.limit.map(|limit| limit as usize),
        seconds: arguments.seconds,
        latency_ms: arguments.latency,
    };
    let arms = match arguments.arm.is_empty() {
        true => vec![default_arm()],
        false => arguments.arm.clone(),
    };
    let last = recording.events.last().map_or(0, |event| event.entry);
    let mut done = Vec::new();
    for arm in &arms {
        let bar = bar(arguments, &arm.name, part.entries.map_or(last, |most| most.min(last)))?;
        let observe = |entry| bar.set_position(entry as u64);
        let figures = play::play(&recording, arm, &settings, part, observe);
        bar.finish_and_clear();
        done.push(figures?);
        if is_interrupted(&done) {
            break;
        }
    }
    let fault = recording.fault.as_deref();
    let text = match arguments.json {
        true => {
            let report = Report { recording: name, fault, arms: &done };
            serde_json::to_string_pretty(&report).context("cannot write the report")? + "\n"
        }
        false => table(&done),
    };
    std::io::stdout().lock().write_all(text.as_bytes()).context("cannot print the report")?;
    match fault {
        _ if is_interrupted(&done) => Err(Interrupted.into()),
        // It may be far above the report by now.
        Some(fault) => bail!("{fault}"),
        None => Ok(()),
    }
}

fn is_interrupted(done: &[PlayFigures]) -> bool {
    done.iter().any(|figures| figures.ended_by == PlayEnd::Interrupted)
}

fn bar(arguments: &Arguments, arm: &str, entries: usize) -> Result<ProgressBar> {
    let bar = match arguments.json {
        true => ProgressBar::hidden(),
        false => ProgressBar::new(entries as u64),
    };
    let template = "{prefix} {bar:30} {pos}/{len} entries · {elapsed}";
    bar.set_style(
        ProgressStyle::with_template(template).context("the progress bar's template is wrong")?,
    );
    bar.set_prefix(printable::name(arm).into_owned());
    Ok(bar)
}

/// A recording has no repository.
fn unnamed(path: &str) -> Repo {
    Repo {
        path: path.to_owned(),
        head: String::new(),
        author: None,
        since: None,
        commits: 0,
        files_typed: 0,
    }
}
