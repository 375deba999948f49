//! What a person sees while a rehearsal runs.

use super::arguments::Arguments;
use crate::report::{Repo, transcript};
use crate::run::RunEvent;
use crate::run::arm::ArmSpec;
use anyhow::{Context, Result};
use console::strip_ansi_codes;
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Shows events as they happen: as a progress bar or a live transcript on stderr, and in the
/// transcript file.
pub struct Observer {
    begun: Instant,
    bar: ProgressBar,
    live: bool,
    /// For programs: the arms that are typed now, and how many groups of them there are.
    progress: Option<Group>,
    limit: u64,
    colours: bool,
    transcript: Option<(PathBuf, BufWriter<File>)>,
    failed: Option<std::io::Error>,
}

/// Arms that run side by side.
#[derive(Default)]
struct Group {
    arms: String,
    number: usize,
    of: usize,
}

impl Observer {
    pub fn new(arguments: &Arguments) -> Result<Observer> {
        let live = arguments.live;
        let bar = if live || arguments.json || arguments.progress {
            ProgressBar::hidden()
        } else {
            ProgressBar::new(arguments.places())
        };
        bar.set_style(
            ProgressStyle::with_template(
                "{prefix} {bar:30} {pos}/{len} places · {elapsed} · {msg}",
            )
            .context("the progress bar's template is wrong")?,
        );
        let transcript = match &arguments.transcript {
            None => None,
            Some(path) => {
                let file = File::create(path)
                    .with_context(|| format!("cannot write {}", path.display()))?;
                Some((path.clone(), BufWriter::new(file)))
            }
        };
        Ok(Observer {
            begun: Instant::now(),
            bar,
            live,
            progress: arguments.progress.then(Group::default),
            limit: arguments.places(),
            colours: std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
            transcript,
            failed: None,
        })
    }

    /// Shows which arms come next: a group, its number from 1 on, and of how many.
    pub fn begin(&mut self, repo: &Repo, group: &[ArmSpec], (number, of): (usize, usize)) {
        let arms: Vec<_> = group.iter().map(|spec| spec.name.as_str()).collect();
        let folder = Path::new(&repo.path).file_name().unwrap_or_default().to_string_lossy();
        let title = format!("{folder} {}", arms.join(" + "));
        self.bar.set_prefix(printable::name(title.trim_start_matches(['.', ' '])).into_owned());
        self.bar.reset();
        if self.progress.is_some() {
            self.progress = Some(Group { arms: arms.join(" + "), number, of });
            self.tell_progress(0);
        }
    }

    fn tell_progress(&self, places: usize) {
        let Some(Group { arms, number, of }) = &self.progress else { return };
        let line = serde_json::json!({
            "arm": arms, "number": number, "of_arms": of,
            "places": places, "of_places": self.limit,
        });
        // Whoever reads it may have gone, which ends nothing.
        let _ = writeln!(std::io::stdout(), "{line}");
    }

    /// Removes the bar, so that an error stands alone.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    pub fn see(&mut self, event: &RunEvent) {
        match event {
            RunEvent::PlaceDone { places } => {
                self.bar.set_position(*places as u64);
                self.tell_progress(*places);
            }
            RunEvent::File { path, .. } => {
                self.bar.set_message(printable::name(path).into_owned());
            }
            RunEvent::Training { elapsed, .. } => {
                self.bar.set_message(format!("learning, {:.1} s", elapsed.as_secs_f64()));
            }
            _ => {}
        }
        let Some(line) = transcript::line(event, self.begun.elapsed()) else { return };
        if self.live {
            let plain = strip_ansi_codes(&line);
            eprintln!("{}", if self.colours { line.as_str() } else { plain.as_ref() });
        }
        if let Some((_, file)) = &mut self.transcript
            && let Err(error) = writeln!(file, "{line}")
        {
            self.failed.get_or_insert(error);
        }
    }

    pub fn finish(mut self) -> Result<()> {
        self.bar.finish_and_clear();
        let Some((path, mut file)) = self.transcript.take() else { return Ok(()) };
        let written = self.failed.take().map_or_else(|| file.flush(), Err);
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}
