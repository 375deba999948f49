//! Commands that are run one after the other, each with a name and a time, and a second
//! sequence beside them.

use anyhow::{Context, Result, bail};
use std::fmt;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many lines of a failed step's output its error repeats.
const LAST_LINES: usize = 120;

/// A sequence of steps. Sequences made by [`Steps::beside`] share their times, and none of
/// them begins another step after one has failed.
#[derive(Default)]
pub struct Steps {
    done: Arc<Mutex<Vec<Done>>>,
    has_failed: Arc<AtomicBool>,
    /// Its steps have no terminal of their own: what they print is printed when they end.
    is_beside: bool,
}

struct Done {
    name: String,
    time: Duration,
    is_beside: bool,
}

/// Why a step was not begun. The failure of another sequence is the one to tell.
#[derive(Debug)]
pub struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "stopped, because a step beside it failed")
    }
}

impl std::error::Error for Stopped {}

impl Steps {
    /// Runs a sequence, and prints the time of each step, also if one has failed.
    pub fn with_times(sequence: impl FnOnce(&mut Steps) -> Result<()>) -> Result<()> {
        let mut steps = Steps::default();
        let result = sequence(&mut steps);
        steps.print();
        result
    }

    /// A sequence for another thread, which runs beside this one.
    pub fn beside(&self) -> Steps {
        Steps { done: self.done.clone(), has_failed: self.has_failed.clone(), is_beside: true }
    }

    /// Runs the command with the terminal as its own; an error names the step.
    pub fn run(&mut self, name: &str, command: &mut Command) -> Result<()> {
        let program = command.get_program().to_string_lossy().into_owned();
        self.timed(name, |is_beside| {
            let ran = if is_beside {
                run_quietly(name, command)
            } else {
                command.status().map(|status| (status, String::new()))
            };
            let (status, output) = ran.with_context(|| format!("cannot start {program}"))?;
            if status.success() {
                return Ok(());
            }
            // Where a log is cut, its end is what is left of it.
            match last_lines(&output) {
                "" => bail!("{status}"),
                end => bail!("{status}\nThe end of what it printed:\n{end}"),
            }
        })
    }

    /// Runs a step of this program's own.
    pub fn check(&mut self, name: &str, step: impl FnOnce() -> Result<()>) -> Result<()> {
        self.timed(name, |_| step())
    }

    fn timed(&mut self, name: &str, step: impl FnOnce(bool) -> Result<()>) -> Result<()> {
        if self.has_failed.load(Ordering::SeqCst) {
            bail!(Stopped);
        }
        if !self.is_beside {
            eprintln!("── {name}");
        }
        let begun = Instant::now();
        let result = step(self.is_beside);
        let done = Done { name: name.into(), time: begun.elapsed(), is_beside: self.is_beside };
        self.done.lock().unwrap_or_else(PoisonError::into_inner).push(done);
        result
            .inspect_err(|_| self.has_failed.store(true, Ordering::SeqCst))
            .with_context(|| format!("step `{name}` failed"))
    }

    /// How long each step took, in the order in which they ended.
    pub fn print(&self) {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let width = done.iter().map(|step| step.name.chars().count()).max().unwrap_or(0);
        for Done { name, time, is_beside } in done.iter() {
            let beside = if *is_beside { "  beside the others" } else { "" };
            eprintln!("{name:<width$}  {:>7.1} s{beside}", time.as_secs_f64());
        }
    }
}

/// The first failure of two sequences, with what it was.
pub fn both(one: Result<()>, other: Result<()>) -> Result<()> {
    match (one, other) {
        (Err(one), Err(other)) if one.is::<Stopped>() => Err(other),
        (one, other) => one.and(other),
    }
}

/// The last [`LAST_LINES`] lines of a text.
fn last_lines(text: &str) -> &str {
    let text = text.trim_end();
    let begin = text.rmatch_indices('\n').nth(LAST_LINES - 1).map_or(0, |(at, _)| at + 1);
    &text[begin..]
}

/// Runs the command, prints in one piece what it has printed, and answers that.
fn run_quietly(name: &str, command: &mut Command) -> std::io::Result<(ExitStatus, String)> {
    // A file and no pipe: what the command leaves running would keep a pipe open.
    let path = output_file();
    let mut output = File::options().read(true).write(true).create_new(true).open(&path)?;
    fs::remove_file(&path)?;
    let begun = Instant::now();
    let status = command
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output.try_clone()?)
        .status()?;
    let mut bytes = vec![];
    output.rewind()?;
    output.read_to_end(&mut bytes)?;
    let (time, text) = (begun.elapsed().as_secs_f64(), String::from_utf8_lossy(&bytes));
    eprint!("── {name} (beside the others, {time:.1} s)\n{text}");
    Ok((status, text.into_owned()))
}

fn output_file() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("hone-xtask-{}-{count}.log", std::process::id()))
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
        steps.done.lock().unwrap().iter().map(|done| done.name.clone()).collect()
    }

    #[test]
    fn a_failing_step_is_named_and_kept_in_the_times() {
        let mut steps = Steps::default();
        steps.run("fine", &mut cargo("--version")).unwrap();
        let error = steps.run("broken", &mut cargo("no-such-command")).unwrap_err();
        assert!(error.to_string().contains("`broken`"), "{error}");
        assert_eq!(names(&steps), ["fine", "broken"]);
        let mut steps = Steps::default();
        let error = Steps::default().beside().run("broken", &mut cargo("no-such-command"));
        let error = format!("{:#}", error.unwrap_err());
        assert!(error.contains("no such command: `no-such-command`"), "{error}");
        let error = steps.run("absent", &mut Command::new("/no/such/program")).unwrap_err();
        assert!(format!("{error:#}").contains("/no/such/program"), "{error:#}");
    }

    #[test]
    fn a_failure_stops_the_steps_beside_it_and_is_the_one_that_is_told() {
        let mut steps = Steps::default();
        let mut beside = steps.beside();
        beside.run("quiet", &mut cargo("--version")).unwrap();
        let failed = beside.run("broken", &mut cargo("no-such-command"));
        let stopped = steps.run("never begun", &mut cargo("--version"));
        assert!(stopped.as_ref().unwrap_err().is::<Stopped>());
        assert_eq!(names(&steps), ["quiet", "broken"]);
        let told = both(stopped, failed).unwrap_err();
        assert!(told.to_string().contains("`broken`"), "{told}");
    }

    #[test]
    fn the_last_lines_of_a_long_text_are_kept_whole() {
        assert_eq!(last_lines(""), "");
        assert_eq!(last_lines("one\ntwo\n"), "one\ntwo");
        let long: String = (0..LAST_LINES + 2).map(|at| format!("line {at}\n")).collect();
        let last = last_lines(&long);
        assert!(last.starts_with("line 2\n"), "{last}");
        assert_eq!(last.lines().count(), LAST_LINES);
    }

    /// A server that a step leaves behind holds the step's output open.
    #[test]
    fn a_step_ends_though_what_it_started_goes_on() {
        let mut beside = Steps::default().beside();
        let mut leaves = Command::new("sh");
        let folder = tempfile::tempdir().unwrap();
        let number = folder.path().join("number");
        leaves.args(["-c", "sleep 600 & echo $! > \"$0\""]).arg(&number);
        beside.run("leaves a process", &mut leaves).unwrap();
        let number = std::fs::read_to_string(number).unwrap();
        let mut kill = Command::new("kill");
        assert!(kill.arg(number.trim()).status().unwrap().success(), "it still runs");
    }
}
