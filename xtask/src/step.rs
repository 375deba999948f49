//! Commands that are run one after the other, each with a name and a time, and other sequences that
//! run at the same time.

use crate::files;
use anyhow::{Context, Result, anyhow, bail};
use std::fmt::Write;
use std::fs::{self, File};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// The number of lines of a failed step's output that are shown when it fails.
const LAST_LINES: usize = 120;

/// The number of those lines that are shown again at the very end.
const LAST_LINES_AGAIN: usize = 30;

/// A sequence of steps. Sequences made by [`Steps::concurrent`] share their times and failures. A
/// failure ends only what depends on it, so that one run shows everything that is wrong.
#[derive(Default)]
pub struct Steps {
    done: Arc<Mutex<Vec<Done>>>,
    /// The folder for what steps print. Without one they print on the terminal.
    logs: Option<PathBuf>,
    is_concurrent: bool,
}

struct Done {
    name: String,
    time: Duration,
    is_concurrent: bool,
    /// The reason why it failed.
    failure: Option<String>,
}

impl Steps {
    /// Runs a sequence, and prints the time of each step, also if one has failed.
    pub fn with_times(sequence: impl FnOnce(&mut Steps) -> Result<()>) -> Result<()> {
        let mut steps = Steps::default();
        let result = sequence(&mut steps);
        steps.print();
        result
    }

    /// Returns a sequence whose steps write what they print into files of a folder, which is
    /// emptied. One line is printed about a step that passed.
    pub fn with_logs(folder: &Path) -> Result<Steps> {
        files::make_empty_folder(folder)?;
        Ok(Steps { logs: Some(folder.to_owned()), ..Steps::default() })
    }

    /// Returns a sequence for another thread, which runs at the same time as this one.
    pub fn concurrent(&self) -> Steps {
        Steps { done: self.done.clone(), logs: self.logs.clone(), is_concurrent: true }
    }

    /// Runs the command. An error names the step.
    pub fn run(&mut self, name: &str, command: &mut Command) -> Result<()> {
        // Somebody who watches sees the progress of what takes long.
        let is_watched = !self.is_concurrent && std::io::stderr().is_terminal();
        match self.log(name) {
            Some(log) if !is_watched => self.timed(name, || run_into(&log, command)),
            _ => self.show(name, command),
        }
    }

    /// Runs the command with the terminal as its own.
    pub fn show(&mut self, name: &str, command: &mut Command) -> Result<()> {
        self.timed(name, || match started(command.status(), command)? {
            status if status.success() => Ok(()),
            status => bail!("{status}"),
        })
    }

    /// Runs a step of this program's own.
    pub fn check(&mut self, name: &str, step: impl FnOnce() -> Result<()>) -> Result<()> {
        self.timed(name, step)
    }

    /// Returns the file for what a step prints.
    fn log(&self, name: &str) -> Option<PathBuf> {
        let plain = |c: char| if c.is_alphanumeric() || c == '.' { c } else { '-' };
        let name: String = name.chars().map(plain).collect();
        self.logs.as_ref().map(|folder| folder.join(format!("{name}.log")))
    }

    fn timed(&mut self, name: &str, step: impl FnOnce() -> Result<()>) -> Result<()> {
        eprintln!("── {name}");
        let begun = Instant::now();
        let result = step();
        let time = begun.elapsed();
        let failure = result.as_ref().err().map(|error| format!("{error:#}"));
        if self.logs.is_some() {
            let seconds = time.as_secs_f64();
            match &failure {
                None => eprintln!("   {name}: passed in {seconds:.1} s"),
                Some(why) => eprintln!("   {name}: FAILED after {seconds:.1} s: {why}"),
            }
        }
        let done = Done { name: name.into(), time, is_concurrent: self.is_concurrent, failure };
        self.all().push(done);
        result.with_context(|| format!("step `{name}` failed"))
    }

    fn all(&self) -> MutexGuard<'_, Vec<Done>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints how long each step took, in the order in which they ended.
    pub fn print(&self) {
        let done = self.all();
        let width = done.iter().map(|step| step.name.chars().count()).max().unwrap_or(0);
        for Done { name, time, is_concurrent, failure } in done.iter() {
            let concurrent = if *is_concurrent { "  at the same time as others" } else { "" };
            let failed = if failure.is_some() { "  FAILED" } else { "" };
            eprintln!("{name:<width$}  {:>7.1} s{concurrent}{failed}", time.as_secs_f64());
        }
    }

    /// Returns the names of the failed steps, and a text that says why they failed.
    pub fn failures(&self) -> (Vec<String>, String) {
        let (mut names, mut text) = (vec![], String::new());
        for Done { name, failure, .. } in self.all().iter() {
            let Some(why) = failure else { continue };
            let _ = writeln!(text, "FAILED {name}: {}", last_lines(why, LAST_LINES_AGAIN));
            names.push(name.clone());
        }
        (names, text)
    }
}

/// Returns the first failure of sequences that do not depend on each other.
pub fn all(results: impl IntoIterator<Item = Result<()>>) -> Result<()> {
    results.into_iter().fold(Ok(()), Result::and)
}

/// Waits for a sequence that runs in another thread.
pub fn join<T>(thread: ScopedJoinHandle<Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err(anyhow!("a thread panicked")))
}

/// Returns the last lines of a text.
fn last_lines(text: &str, count: usize) -> &str {
    let text = text.trim_end();
    let begin = text.rmatch_indices('\n').nth(count - 1).map_or(0, |(at, _)| at + 1);
    &text[begin..]
}

fn started(status: std::io::Result<ExitStatus>, command: &Command) -> Result<ExitStatus> {
    status.with_context(|| format!("cannot start {}", command.get_program().display()))
}

/// Runs the command with a file for its output; an error has the end of it.
fn run_into(log: &Path, command: &mut Command) -> Result<()> {
    // A file and no pipe, because what the command leaves running would keep a pipe open.
    let output = File::create(log).with_context(|| log.display().to_string())?;
    let errors = output.try_clone().with_context(|| log.display().to_string())?;
    let status = command.stdin(Stdio::null()).stdout(output).stderr(errors).status();
    let status = started(status, command)?;
    if status.success() {
        return Ok(());
    }
    let bytes = fs::read(log).with_context(|| log.display().to_string())?;
    let text = String::from_utf8_lossy(&bytes);
    bail!("{status}; the end of {}:\n{}", log.display(), last_lines(&text, LAST_LINES))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cargo(argument: &str) -> Command {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.arg(argument);
        cargo
    }

    fn names(steps: &Steps) -> Vec<String> {
        steps.all().iter().map(|done| done.name.clone()).collect()
    }

    #[test]
    fn a_failing_step_is_named_and_kept_in_the_times() {
        let mut steps = Steps::default();
        steps.run("fine", &mut cargo("--version")).unwrap();
        let error = steps.run("broken", &mut cargo("no-such-command")).unwrap_err();
        assert!(error.to_string().contains("`broken`"), "{error}");
        assert_eq!(names(&steps), ["fine", "broken"]);
        let error = steps.run("absent", &mut Command::new("/no/such/program")).unwrap_err();
        assert!(format!("{error:#}").contains("/no/such/program"), "{error:#}");
    }

    #[test]
    fn the_output_of_a_step_is_kept_and_that_of_a_failed_one_is_shown_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("logs");
        let mut steps = Steps::with_logs(&logs).unwrap().concurrent();
        steps.run("a: fine", &mut cargo("--version")).unwrap();
        steps.run("broken", &mut cargo("no-such-command")).unwrap_err();
        assert!(fs::read_to_string(logs.join("a--fine.log")).unwrap().starts_with("cargo "));
        let (names, text) = steps.failures();
        assert_eq!(names, ["broken"]);
        assert!(text.contains("FAILED broken: "), "{text}");
        assert!(text.contains("no such command: `no-such-command`"), "{text}");
        // The next run begins with an empty folder.
        drop(Steps::with_logs(&logs).unwrap());
        assert_eq!(fs::read_dir(&logs).unwrap().count(), 0);
    }

    #[test]
    fn a_failure_does_not_stop_other_sequences_and_all_are_listed() {
        let mut steps = Steps::default();
        let mut concurrent = steps.concurrent();
        let results = [
            concurrent.run("broken", &mut cargo("no-such-command")),
            steps.run("fine", &mut cargo("--version")),
            steps.check("other", || bail!("a reason")),
        ];
        assert!(all(results).unwrap_err().to_string().contains("`broken`"));
        assert_eq!(names(&steps), ["broken", "fine", "other"]);
        let (names, text) = steps.failures();
        assert_eq!(names, ["broken", "other"]);
        assert!(text.contains("FAILED other: a reason\n"), "{text}");
    }

    #[test]
    fn the_last_lines_of_a_long_text_are_kept_whole() {
        assert_eq!(last_lines("", LAST_LINES), "");
        assert_eq!(last_lines("one\ntwo\n", LAST_LINES), "one\ntwo");
        assert_eq!(last_lines("one\ntwo\nthree\n", 2), "two\nthree");
    }

    /// A server that a step leaves behind holds the step's output open.
    #[test]
    fn a_step_ends_though_what_it_started_continues() {
        let folder = tempfile::tempdir().unwrap();
        let mut steps = Steps::with_logs(&folder.path().join("logs")).unwrap().concurrent();
        let mut leaves = Command::new("sh");
        let number = folder.path().join("number");
        leaves.args(["-c", "sleep 600 & echo $! > \"$0\""]).arg(&number);
        steps.run("leaves a process", &mut leaves).unwrap();
        let number = fs::read_to_string(number).unwrap();
        let mut kill = Command::new("kill");
        assert!(kill.arg(number.trim()).status().unwrap().success(), "it still runs");
    }
}
