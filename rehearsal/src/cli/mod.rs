//! `hone rehearse`: what would Hone have given you on your own history?

mod arguments;
mod onlooker;
mod shelf;

use crate::developer::history::History;
use crate::report::adopt::Keepsake;
use crate::report::chart;
use crate::report::judge::Judge;
use crate::report::{ArmName, Repo, Report};
use crate::run::arm::Spec;
use crate::run::interrupt::{self, Interrupted};
use crate::run::resume::Work;
use crate::run::{self, Outcome, Settings};
use anyhow::{Context, Result, bail, ensure};
use arguments::Arguments;
use clap::Parser;
use onlooker::Onlooker;
use shelf::Shelf;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Exit code of a process ended by Ctrl-C, by convention.
const INTERRUPTED: u8 = 130;

pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let kept = arguments.work.is_some();
    match rehearse(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<Interrupted>() || interrupt::requested() => {
            eprintln!("interrupted; the daemons and their temporary homes are gone");
            if kept {
                eprintln!("the same command goes on from what is saved");
            }
            ExitCode::from(INTERRUPTED)
        }
        Err(error) => {
            eprintln!("Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn rehearse(arguments: &Arguments) -> Result<()> {
    interrupt::install()?;
    let plan = Plan::new(arguments)?;
    let repositories = arguments::repositories(arguments)?;
    let mut onlooker = Onlooker::new(arguments)?;
    let mut done = Vec::new();
    for (history, repo) in repositories {
        let outcome = plan.rehearse_on(&history, &repo, &mut onlooker)?;
        for arm in outcome.arms.iter().filter(|_| arguments.keep_homes) {
            if let Some(home) = &arm.home {
                eprintln!("{}, {} arm: HONE_HOME={}", repo.path, arm.name, home.display());
            }
        }
        let repo = Repo { files_typed: outcome.files, ..repo };
        done.push((outcome, repo));
    }
    onlooker.finish()?;
    tell(arguments, &plan.specs, &done)?;
    match done.as_slice() {
        [(outcome, _)] if arguments.keep => keep(outcome, arguments, &plan.hone),
        _ => Ok(()),
    }
}

/// The arguments with what they name found on this machine.
struct Plan<'a> {
    arguments: &'a Arguments,
    hone: PathBuf,
    model: PathBuf,
    specs: Vec<Spec>,
    judge: Option<Arc<Judge>>,
}

impl<'a> Plan<'a> {
    fn new(arguments: &'a Arguments) -> Result<Plan<'a>> {
        ensure!(
            !arguments.keep || arguments.repo.len() == 1,
            "--keep rehearses on one repository: what it keeps learned there"
        );
        let hone = match &arguments.hone {
            Some(path) => path.clone(),
            None => sibling()?,
        };
        let model = match &arguments.model {
            Some(path) if path.is_file() => path.clone(),
            Some(path) => bail!("{}: no such model file", path.display()),
            None => run::default_model(&hone)?,
        };
        let specs = arguments::arms(arguments)?;
        let judge = arguments.judge.as_ref().zip(arguments.judge_model.as_ref());
        let judge = judge.map(|(url, model)| {
            Arc::new(Judge::new(url, model, std::env::var("HONE_JUDGE_KEY").ok()))
        });
        Ok(Plan { arguments, hone, model, specs, judge })
    }

    /// One or two arms run side by side, so that they compare; more, one by one.
    fn groups(&self) -> Vec<&[Spec]> {
        match self.specs.len() {
            1 | 2 => vec![&self.specs],
            _ => self.specs.chunks(1).collect(),
        }
    }

    fn rehearse_on(
        &self,
        history: &History,
        repo: &Repo,
        onlooker: &mut Onlooker,
    ) -> Result<Outcome> {
        let groups = self.groups();
        let shelf = match groups.len() {
            1 => None,
            _ => Some(Shelf::new(self.arguments, &self.identity(repo, &self.specs)?)?),
        };
        let mut outcomes = Vec::new();
        for group in groups {
            let settings = self.settings(repo, group, shelf.as_ref())?;
            onlooker.begin(repo, group);
            let outcome = run::rehearse(history, group, &settings, |event| onlooker.see(&event));
            if outcome.is_err() {
                onlooker.clear();
            }
            outcomes.push(outcome?);
        }
        if let Some(shelf) = shelf {
            shelf.clear()?;
        }
        let outcome = together(outcomes)?;
        ensure!(
            outcome.places > 0,
            "nothing to type: the chosen commits of {} add no code",
            repo.path
        );
        Ok(outcome)
    }

    fn settings(&self, repo: &Repo, group: &[Spec], shelf: Option<&Shelf>) -> Result<Settings> {
        let arguments = self.arguments;
        let work = match &arguments.work {
            None => None,
            Some(parent) => Some(Work::new(parent, &self.identity(repo, group)?)?),
        };
        Ok(Settings {
            hone: self.hone.clone(),
            model: self.model.clone(),
            template: arguments.template.clone(),
            judge: self.judge.clone(),
            limit: arguments.limit as usize,
            seed: arguments.seed,
            noise: arguments.noise,
            time_limit: arguments.max_minutes.map(|minutes| Duration::from_secs(60 * minutes)),
            keep_homes: arguments.keep_homes || arguments.keep,
            work,
            save_places: arguments.save_every as usize,
            shelf: shelf.map(|folder| folder.path().to_owned()),
        })
    }

    /// All that the results of these arms depend on.
    fn identity(&self, repo: &Repo, group: &[Spec]) -> Result<String> {
        let Plan { arguments, hone, model, .. } = self;
        let learner = hone.with_file_name(format!("hone-learner{}", std::env::consts::EXE_SUFFIX));
        let mut parts = vec![
            format!("{:?} {:?} {:?}", repo.head, repo.author, repo.since),
            format!("{} {} {}", arguments.limit, arguments.seed, arguments.noise),
            format!("{:?} {:?} {:?}", arguments.template, arguments.judge, arguments.judge_model),
            format!("{:?} {}", arguments.max_minutes, arguments.save_every),
        ];
        for file in [hone, &learner, model] {
            let metadata = std::fs::metadata(file)
                .with_context(|| format!("cannot look at {}", file.display()))?;
            let modified = metadata.modified().ok();
            let since = modified.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
            parts.push(format!("{} {since:?}", metadata.len()));
        }
        for spec in group {
            parts.push(format!("{} {}", spec.name, spec.config()?));
        }
        Ok(parts.join("\n"))
    }
}

fn keep(outcome: &Outcome, arguments: &Arguments, hone: &Path) -> Result<()> {
    let handed = Keepsake::of(outcome, arguments.seed).and_then(|kept| kept.hand_over(hone));
    if !arguments.keep_homes {
        for home in outcome.arms.iter().filter_map(|arm| arm.home.as_ref()) {
            // Temporary ones: what cannot be removed is the system's to clear.
            let _ = std::fs::remove_dir_all(home);
        }
    }
    println!("{}", handed.context("nothing is kept")?);
    Ok(())
}

fn tell(arguments: &Arguments, specs: &[Spec], done: &[(Outcome, Repo)]) -> Result<()> {
    let arms = specs.iter().map(|spec| {
        Ok(ArmName { name: spec.name.clone(), kind: spec.kind, config: spec.config()? })
    });
    let arms = arms.collect::<Result<_>>()?;
    let report = Report::new(done, arms, arguments.seed, arguments.noise);
    if let Some(path) = &arguments.svg {
        chart::write(&done.iter().map(|(outcome, _)| outcome).collect::<Vec<_>>(), path)?;
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

/// Arms that ran one after the other, as one outcome.
fn together(outcomes: Vec<Outcome>) -> Result<Outcome> {
    let mut outcomes = outcomes.into_iter();
    let mut all = outcomes.next().context("there is no arm")?;
    for outcome in outcomes {
        // An arm that ran out of time is compared as far as it got.
        if outcome.places < all.places {
            (all.places, all.files, all.commits, all.ended_by) =
                (outcome.places, outcome.files, outcome.commits, outcome.ended_by);
        }
        all.elapsed += outcome.elapsed;
        all.arms.extend(outcome.arms);
    }
    Ok(all)
}

fn sibling() -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program's own path")?;
    let path = own.with_file_name(format!("hone{}", std::env::consts::EXE_SUFFIX));
    if !path.is_file() {
        bail!("there is no {}: build it, or pass --hone PATH", path.display());
    }
    Ok(path)
}
