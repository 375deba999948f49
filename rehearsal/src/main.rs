//! `hone rehearse`: what would Hone have given you on your own history?

use anyhow::{Context, Result, bail};
use clap::Parser;
use console::strip_ansi_codes;
use indicatif::{ProgressBar, ProgressStyle};
use rehearsal::arm::Kind;
use rehearsal::history::{Filter, History};
use rehearsal::interrupt::{self, Interrupted};
use rehearsal::report::{Repo, Report};
use rehearsal::run::{self, Event, Settings};
use rehearsal::{chart, transcript};
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use time::Date;
use time::macros::format_description;

/// Exit code of a process ended by Ctrl-C, by convention.
const INTERRUPTED: u8 = 130;

/// A simulated developer types your real commits, in the order you made them,
/// into two fresh daemons: one that stays frozen, one that learns.
///
/// Every added line is typed through the language server protocol. At line
/// starts and at one natural place inside a line a completion is asked for. It
/// is accepted if it is the exact rest of the line, or at least ten characters
/// of its exact beginning; else it is turned down (by typing on, by Esc, or by
/// waiting until it times out) and the truth is typed.
///
/// Nothing of this touches your own Hone: both daemons live in temporary homes,
/// on a clock of their own, and are gone afterwards. The same seed gives the
/// same stream.
#[derive(Parser)]
#[command(name = "hone rehearse", bin_name = "hone rehearse", version)]
#[command(after_help = "\
Examples:
  hone rehearse                              this repository, 200 places
  hone rehearse --repo ~/src/app --author ada --since 2025-01-01 --limit 1000
  hone rehearse --live --limit 40            watch it type
  hone rehearse --json > report.json

Columns of the table:
  asked      places at which a completion was asked for
  shown      of these, how many brought an offer
  accepted   of the offers shown
  completed  characters that came from accepted offers, of all typed
             (indentation aside)
  p50, p95   from request to answer, as the editor sees it
  adapter    the version that served the last request; base is the plain model

It fails when the daemon's labels are not exactly what the developer did.")]
struct Arguments {
    /// The git repository to rehearse on
    #[arg(long, default_value = ".", value_name = "DIR")]
    repo: PathBuf,
    /// Only commits whose author's name or mail address contains this
    #[arg(long, value_name = "TEXT")]
    author: Option<String>,
    /// Only commits from this day on (YYYY-MM-DD, UTC)
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    since: Option<Date>,
    /// Stop after asking at this many places
    #[arg(long, default_value_t = 200, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    limit: u64,
    /// Stop after this many minutes, wherever the stream is by then
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    max_minutes: Option<u64>,
    /// What is compared with the frozen base model
    #[arg(long, value_enum, default_value = "learning", value_name = "ARM")]
    arm: Kind,
    /// Decides where the developer pauses and how offers are turned down
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The model to serve [default: what `hone model path` names]
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// The `hone` to run [default: the one beside this program]
    #[arg(long, value_name = "PATH")]
    hone: Option<PathBuf>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
    /// Write the JSON object to this file as well
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Draw the accept rates of both arms
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write what happened, one line each, with terminal colours
    #[arg(long, value_name = "FILE")]
    transcript: Option<PathBuf>,
    /// Show the transcript while it happens, on stderr
    #[arg(long)]
    live: bool,
    /// Keep both daemons' temporary homes (events, adapters, logs)
    #[arg(long)]
    keep_homes: bool,
}

fn parse_date(text: &str) -> Result<Date, String> {
    Date::parse(text, format_description!("[year]-[month]-[day]"))
        .map_err(|_| "not a date: write YYYY-MM-DD".to_owned())
}

fn main() -> ExitCode {
    match rehearse(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<Interrupted>() || interrupt::requested() => {
            eprintln!("interrupted; the daemons and their temporary homes are gone");
            ExitCode::from(INTERRUPTED)
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn rehearse(arguments: Arguments) -> Result<()> {
    interrupt::install()?;
    let hone = match arguments.hone {
        Some(path) => path,
        None => sibling()?,
    };
    let model = match arguments.model {
        Some(path) if path.is_file() => path,
        Some(path) => bail!("{}: no such model file", path.display()),
        None => run::default_model(&hone)?,
    };
    let filter = Filter {
        author: arguments.author.clone(),
        since: arguments.since.map(|date| date.midnight().assume_utc().unix_timestamp()),
    };
    let history = History::open(&arguments.repo, &filter)?;
    let settings = Settings {
        hone,
        model,
        against: arguments.arm,
        limit: arguments.limit as usize,
        seed: arguments.seed,
        time_limit: arguments.max_minutes.map(|minutes| Duration::from_secs(60 * minutes)),
        keep_homes: arguments.keep_homes,
    };

    let mut onlooker = Onlooker::new(
        arguments.limit,
        arguments.live,
        arguments.json,
        arguments.transcript.as_deref(),
    )?;
    let outcome = run::rehearse(&history, &settings, |event| onlooker.see(&event));
    onlooker.finish()?;
    let outcome = outcome?;
    for arm in &outcome.arms {
        if let Some(home) = &arm.home {
            eprintln!("{} arm: HONE_HOME={}", arm.kind.name(), home.display());
        }
    }
    if outcome.lines.is_empty() {
        bail!("nothing to type: the chosen commits of {} add no code", arguments.repo.display());
    }

    let report = Report::new(
        &outcome,
        arguments.seed,
        Repo {
            path: arguments.repo.display().to_string(),
            head: history.head(),
            author: arguments.author,
            since: arguments.since.map(|date| date.to_string()),
            commits: history.len(),
            files_typed: outcome.files,
        },
    );
    if let Some(path) = &arguments.svg {
        chart::write(&outcome, path)?;
    }
    let json = serde_json::to_string_pretty(&report).context("cannot write the report as JSON")?;
    if let Some(path) = &arguments.report {
        std::fs::write(path, &json).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut out = std::io::stdout().lock();
    let text = if arguments.json { json + "\n" } else { report.render() };
    out.write_all(text.as_bytes()).context("cannot print the report")?;

    let disagreements = report.disagreements();
    if !disagreements.is_empty() {
        bail!("the daemon's labels are not what the typist did:\n  {}", disagreements.join("\n  "));
    }
    Ok(())
}

fn sibling() -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program's own path")?;
    let path = own.with_file_name(format!("hone{}", std::env::consts::EXE_SUFFIX));
    if !path.is_file() {
        bail!("there is no {}: build it, or pass --hone PATH", path.display());
    }
    Ok(path)
}

/// Shows events to whoever watches: a progress bar or the live transcript on
/// stderr, and the transcript file.
struct Onlooker {
    begun: Instant,
    bar: ProgressBar,
    live: bool,
    colours: bool,
    transcript: Option<(PathBuf, BufWriter<File>)>,
    failed: Option<std::io::Error>,
}

impl Onlooker {
    fn new(limit: u64, live: bool, quiet: bool, transcript: Option<&Path>) -> Result<Onlooker> {
        let bar = if live || quiet { ProgressBar::hidden() } else { ProgressBar::new(limit) };
        bar.set_style(
            ProgressStyle::with_template("{bar:30} {pos}/{len} places · {elapsed} · {msg}")
                .context("the progress bar's template is wrong")?,
        );
        let transcript = match transcript {
            None => None,
            Some(path) => {
                let file = File::create(path)
                    .with_context(|| format!("cannot write {}", path.display()))?;
                Some((path.to_owned(), BufWriter::new(file)))
            }
        };
        Ok(Onlooker {
            begun: Instant::now(),
            bar,
            live,
            colours: std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
            transcript,
            failed: None,
        })
    }

    fn see(&mut self, event: &Event) {
        match event {
            Event::PointDone { points } => self.bar.set_position(*points as u64),
            Event::File { path, .. } => self.bar.set_message((*path).to_owned()),
            Event::Training { elapsed, .. } => {
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

    fn finish(mut self) -> Result<()> {
        self.bar.finish_and_clear();
        let Some((path, mut file)) = self.transcript.take() else { return Ok(()) };
        let written = self.failed.take().map_or_else(|| file.flush(), Err);
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}
