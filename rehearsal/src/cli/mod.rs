//! The command line of `hone rehearse`: reads the arguments, runs the rehearsal, prints the report.

mod arguments;
mod next_edits;
mod observer;
mod prompt_cache;
mod recording;
mod texts;

use crate::developer::Developer;
use crate::developer::history::History;
use crate::developer::repository::sentence;
use crate::report::adopt::{Adoption, Basis};
use crate::report::chart;
use crate::report::{ArmHeader, Conditions, RehearsalReport, Repo};
use crate::run::arm::ArmSpec;
use crate::run::interrupt::{self, Interrupted};
use crate::run::judge::Judge;
use crate::run::resume::WorkFolder;
use crate::run::{self, RunResult, RunSettings, Visit};
use anyhow::{Context, Result, anyhow, bail, ensure};
use arguments::{Arguments, Part};
use clap::Parser;
use observer::Observer;
use prompt_cache::PromptCache;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Exit code of a process ended by Ctrl-C, by convention.
const INTERRUPTED: u8 = 130;

pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let code = exit_code(&arguments);
    if arguments.wait && !interrupt::requested() {
        wait_for_enter();
    }
    code
}

/// Waits until the report was read. A terminal that is gone does not wait.
fn wait_for_enter() {
    eprintln!("Press Enter to close this terminal.");
    let _ = std::io::stdin().read_line(&mut String::new());
}

fn exit_code(arguments: &Arguments) -> ExitCode {
    let is_saved = arguments.work.is_some();
    match rehearse(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<Interrupted>() || interrupt::requested() => {
            eprintln!("interrupted; the daemons and their temporary homes are gone");
            if is_saved {
                eprintln!("the same command continues from what is saved");
            }
            ExitCode::from(INTERRUPTED)
        }
        Err(error) => {
            eprintln!("Error: {}", printable::name(&sentence(&error)));
            ExitCode::FAILURE
        }
    }
}

fn rehearse(arguments: &Arguments) -> Result<()> {
    if let Some(Part::Texts(texts)) = &arguments.part {
        return texts::print(texts);
    }
    interrupt::install()?;
    if arguments.next_edits {
        return next_edits::rehearse(arguments);
    }
    if let Some(file) = &arguments.recording {
        return recording::play(arguments, file);
    }
    for path in [&arguments.report, &arguments.svg].into_iter().flatten() {
        check_writable(path)?;
    }
    let setup = Setup::new(arguments)?;
    let repositories = arguments::repositories(arguments, &setup.hone)?;
    let mut observer = Observer::new(arguments)?;
    let (mut done, mut roots) = (Vec::new(), Vec::new());
    for (history, repo) in repositories {
        let result = setup.rehearse_on(&history, &repo, &mut observer)?;
        for arm in result.arms.iter().filter(|_| arguments.keep_homes) {
            if let Some(home) = &arm.home {
                eprintln!("{}, {} arm: HONE_HOME={}", repo.path, arm.name, home.display());
            }
        }
        let repo = Repo { files_typed: result.files, ..repo };
        done.push((result, repo));
        roots.push(history.root());
    }
    observer.finish()?;
    let report = report_on(arguments, &setup.specs, &done)?;
    let json = serde_json::to_string_pretty(&report).context("cannot write the report as JSON")?;
    let printed = print_report(arguments, &report, &json);
    let written = write_files(arguments, &json, &done);
    printed?;
    check_agreement(&report)?;
    // What was learned is adopted whether or not the files could be written.
    if let ([(result, _)], [root], Some(basis)) = (&done[..], &roots[..], &setup.basis) {
        adopt(result, arguments, &setup.hone, basis, root)?;
    }
    written
}

/// Checks that a file can be written, before hours are spent on what goes there.
fn check_writable(path: &Path) -> Result<()> {
    let checked = match path.metadata() {
        Ok(there) if there.is_file() => OpenOptions::new().append(true).open(path).map(drop),
        Ok(there) if there.is_dir() => Err(ErrorKind::IsADirectory.into()),
        // A pipe may not be opened twice.
        Ok(_) => Ok(()),
        Err(_) => File::create_new(path).and_then(|_| std::fs::remove_file(path)),
    };
    checked.map_err(|error| {
        let path = path.display();
        anyhow!("{path}: cannot be written: {error}; name a file in a folder that you can write to")
    })
}

/// The arguments, and the files on this machine that they name.
struct Setup<'a> {
    arguments: &'a Arguments,
    hone: PathBuf,
    model: PathBuf,
    template: Option<String>,
    specs: Vec<ArmSpec>,
    judge: Option<Arc<Judge>>,
    /// What serves in the user's own Hone, if something may be adopted there.
    basis: Option<Basis>,
}

impl<'a> Setup<'a> {
    fn new(arguments: &'a Arguments) -> Result<Setup<'a>> {
        ensure!(
            !arguments.adopt || arguments.repo.len() == 1,
            "--adopt rehearses on one repository: what it adopts was learned there"
        );
        let hone = match &arguments.hone {
            Some(path) => path.clone(),
            None => hone_in_folder()?,
        };
        let model = match &arguments.model {
            Some(path) if path.is_file() => path.clone(),
            Some(path) => bail!("{}: no such model file", path.display()),
            None => run::default_model(&hone)?,
        };
        let template = arguments.template.clone();
        let template = match arguments.model {
            None => template.or_else(|| run::default_template(&hone)),
            Some(_) => template,
        };
        let specs = arguments::arms(arguments)?;
        let judge = arguments.judge.as_ref().zip(arguments.judge_model.as_ref());
        let judge = judge.map(|(url, model)| {
            Arc::new(Judge::new(url, model, std::env::var("HONE_JUDGE_KEY").ok()))
        });
        let basis = arguments.adopt.then(|| Basis::now(&hone)).transpose()?;
        Ok(Setup { arguments, hone, model, template, specs, judge, basis })
    }

    /// One or two arms run side by side, so that their latencies compare. More arms run one after
    /// the other, and so do two that share their prompts.
    fn groups(&self) -> Vec<&[ArmSpec]> {
        match self.specs.len() {
            1 | 2 if !self.arguments.keep_prompts => vec![&self.specs],
            _ => self.specs.chunks(1).collect(),
        }
    }

    fn rehearse_on(
        &self,
        history: &History,
        repo: &Repo,
        observer: &mut Observer,
    ) -> Result<RunResult> {
        let groups = self.groups();
        let prompt_cache = match groups.len() {
            1 if !self.arguments.keep_prompts => None,
            _ => Some(PromptCache::new(self.arguments, &self.identity(repo, &self.specs)?)?),
        };
        let (mut results, count) = (Vec::new(), groups.len());
        for (index, group) in groups.into_iter().enumerate() {
            let settings = self.settings(repo, group, prompt_cache.as_ref())?;
            observer.begin(repo, group, (index + 1, count));
            let result = run::rehearse(history, group, &settings, |event| observer.see(&event));
            if result.is_err() {
                observer.clear();
            }
            results.push(result?);
        }
        if let Some(prompt_cache) = prompt_cache {
            prompt_cache.clear()?;
        }
        let result = joined(results)?;
        ensure!(
            result.places > 0,
            "nothing to type: the chosen commits of {} add no code",
            repo.path
        );
        Ok(result)
    }

    fn settings(
        &self,
        repo: &Repo,
        group: &[ArmSpec],
        prompt_cache: Option<&PromptCache>,
    ) -> Result<RunSettings> {
        let arguments = self.arguments;
        let work = match &arguments.work {
            None => None,
            Some(parent) => Some(WorkFolder::new(parent, &self.identity(repo, group)?)?),
        };
        Ok(RunSettings {
            hone: self.hone.clone(),
            model: self.model.clone(),
            template: self.template.clone(),
            judge: self.judge.clone(),
            limit: arguments.places() as usize,
            per_commit: arguments.per_commit.map(|places| places as usize),
            seed: arguments.seed,
            developer: arguments.developer,
            noise: arguments.slips(),
            disturbances: arguments.disturbances(),
            editor: arguments.editor,
            tree: !arguments.no_tree,
            time_limit: arguments.max_minutes.map(|minutes| Duration::from_secs(60 * minutes)),
            keep_homes: arguments.keep_homes || arguments.adopt,
            work,
            save_places: arguments.save_every as usize,
            visit: arguments
                .run
                .clone()
                .zip(arguments.every)
                .map(|(program, places)| Visit { program, places: places as usize }),
            prompt_cache: prompt_cache.map(|folder| folder.path().to_owned()),
        })
    }

    /// Everything that the results of these arms depend on.
    fn identity(&self, repo: &Repo, group: &[ArmSpec]) -> Result<String> {
        let Setup { arguments, hone, model, .. } = self;
        let learner = hone.with_file_name(format!("hone-learner{}", std::env::consts::EXE_SUFFIX));
        let mut parts = vec![
            format!("{:?} {:?} {:?}", repo.head, repo.author, repo.since),
            format!("{} {} {:?}", arguments.places(), arguments.seed, arguments.noise),
            format!("{:?} {:?} {:?}", self.template, arguments.judge, arguments.judge_model),
            format!("{:?} {}", arguments.max_minutes, arguments.save_every),
        ];
        // What was forgotten since may have been learned from.
        parts.extend(self.basis.as_ref().map(|basis| format!("generation {}", basis.generation)));
        for file in [hone, &learner, model] {
            let metadata = std::fs::metadata(file)
                .with_context(|| format!("cannot read the size and time of {}", file.display()))?;
            let modified = metadata.modified().ok();
            let since = modified.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
            parts.push(format!("{} {since:?}", metadata.len()));
        }
        parts.push(format!("{:?} {}", arguments.editor, !arguments.no_tree));
        // What was saved before there was a choice is the exact developer's.
        if arguments.developer != Developer::Exact {
            parts.push(format!("{:?}", arguments.developer));
        }
        parts.extend(arguments.per_commit.map(|places| format!("{places} places a commit")));
        parts.extend(arguments.run.as_ref().map(|run| format!("{run:?} {:?}", arguments.every)));
        for spec in group {
            parts.push(format!("{} {}", spec.name, spec.config()?));
        }
        Ok(parts.join("\n"))
    }
}

fn adopt(
    result: &RunResult,
    arguments: &Arguments,
    hone: &Path,
    basis: &Basis,
    history: &Path,
) -> Result<()> {
    let message = Adoption::of(result, arguments.seed)
        .and_then(|adoption| adoption.hand_over(hone, basis, history));
    if !arguments.keep_homes {
        for home in result.arms.iter().filter_map(|arm| arm.home.as_ref()) {
            // The homes are temporary: the system clears what cannot be removed here.
            let _ = std::fs::remove_dir_all(home);
        }
    }
    println!("{}", message.context("nothing is adopted")?);
    Ok(())
}

fn report_on(
    arguments: &Arguments,
    specs: &[ArmSpec],
    done: &[(RunResult, Repo)],
) -> Result<RehearsalReport> {
    let arms = specs.iter().map(|spec| {
        Ok(ArmHeader { name: spec.name.clone(), kind: spec.kind, config: spec.config()? })
    });
    let arms = arms.collect::<Result<_>>()?;
    let conditions = Conditions {
        seed: arguments.seed,
        developer: arguments.developer,
        noise: arguments.slips(),
        disturbances: arguments.disturbances(),
        editor: arguments.editor,
        tree: !arguments.no_tree,
    };
    Ok(RehearsalReport::new(done, arms, conditions))
}

fn print_report(arguments: &Arguments, report: &RehearsalReport, json: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let text = if arguments.json { format!("{json}\n") } else { report.render(arguments.table) };
    out.write_all(text.as_bytes()).context("cannot print the report")
}

fn write_files(arguments: &Arguments, json: &str, done: &[(RunResult, Repo)]) -> Result<()> {
    if let Some(path) = &arguments.report {
        std::fs::write(path, json).with_context(|| format!("cannot write {}", path.display()))?;
    }
    match &arguments.svg {
        Some(path) => {
            chart::write(&done.iter().map(|(result, _)| result).collect::<Vec<_>>(), path)
        }
        None => Ok(()),
    }
}

fn check_agreement(report: &RehearsalReport) -> Result<()> {
    let disagreements = report.disagreements();
    if !disagreements.is_empty() {
        bail!(
            "the daemon's record differs from what the typist saw and did:\n  {}",
            disagreements.join("\n  ")
        );
    }
    Ok(())
}

/// Joins the results of arms that ran one after the other.
fn joined(results: Vec<RunResult>) -> Result<RunResult> {
    let mut results = results.into_iter();
    let mut all = results.next().context("there is no arm")?;
    for result in results {
        // If an arm ran out of time, all arms are compared as far as that one got.
        if result.places < all.places {
            (all.places, all.files, all.commits, all.ended_by) =
                (result.places, result.files, result.commits, result.ended_by);
        }
        all.elapsed += result.elapsed;
        all.arms.extend(result.arms);
    }
    Ok(all)
}

/// The program `hone` in the folder of this program.
fn hone_in_folder() -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program's own path")?;
    let path = own.with_file_name(format!("hone{}", std::env::consts::EXE_SUFFIX));
    if !path.is_file() {
        bail!("there is no {}: build it, or pass --hone PATH", path.display());
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A report that could not be written was reported after hours, and instead of the summary.
    #[test]
    fn a_file_that_cannot_be_written_is_told_before_anything_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        check_writable(&path("new.json")).unwrap();
        assert!(!path("new.json").exists(), "nothing is left");
        std::fs::write(path("old.json"), "old").unwrap();
        check_writable(&path("old.json")).unwrap();
        assert_eq!(std::fs::read_to_string(path("old.json")).unwrap(), "old");
        for wrong in [folder.path().to_owned(), path("none/x.json"), path("old.json/x.json")] {
            let error = check_writable(&wrong).unwrap_err().to_string();
            assert!(error.starts_with(&*wrong.to_string_lossy()), "{error}");
            assert!(error.contains("; name a file in a folder"), "{error}");
        }
    }
}
