//! Commands run one after the other, each with a name and a time.

use anyhow::{Context, Result, bail};
use std::process::Command;
use std::time::{Duration, Instant};

#[derive(Default)]
pub struct Steps {
    done: Vec<(String, Duration)>,
}

impl Steps {
    /// Runs the command with the terminal as its own; an error names the step.
    pub fn run(&mut self, name: &str, command: &mut Command) -> Result<()> {
        eprintln!("── {name}");
        let begun = Instant::now();
        let status = command
            .status()
            .with_context(|| format!("{name}: cannot start {:?}", command.get_program()))?;
        self.done.push((name.to_owned(), begun.elapsed()));
        if !status.success() {
            self.print();
            bail!("step `{name}` failed ({status})");
        }
        Ok(())
    }

    /// Runs a step of this program's own.
    pub fn check(&mut self, name: &str, step: impl FnOnce() -> Result<()>) -> Result<()> {
        eprintln!("── {name}");
        let begun = Instant::now();
        let result = step();
        self.done.push((name.to_owned(), begun.elapsed()));
        result.inspect_err(|_| self.print()).with_context(|| format!("step `{name}` failed"))
    }

    /// How long each step took.
    pub fn print(&self) {
        let width = self.done.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        for (name, time) in &self.done {
            eprintln!("{name:<width$}  {:>7.1} s", time.as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Steps;
    use std::process::Command;

    #[test]
    fn a_failing_step_is_named_and_kept_in_the_times() {
        let cargo = || Command::new(env!("CARGO"));
        let mut steps = Steps::default();
        steps.run("fine", cargo().arg("--version")).unwrap();
        let error = steps.run("broken", cargo().arg("no-such-command")).unwrap_err();
        assert!(error.to_string().contains("`broken`"), "{error}");
        assert_eq!(steps.done.len(), 2);
        let error = steps.run("absent", &mut Command::new("/no/such/program")).unwrap_err();
        assert!(error.to_string().contains("/no/such/program"), "{error}");
    }
}
