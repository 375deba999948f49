//! `hone-learner`: the process that turns labelled episodes into LoRA adapters.

use anyhow::Context;
use clap::{Parser, Subcommand};
use feedback::job::LearnerLine;
use learner::job::lines;
use learner::job::trainer::{PromptFolders, Trainer};
use learner::machine::platform;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

/// Turns labelled episodes into a LoRA adapter.
///
/// The Hone daemon starts it as a child process. It reads jobs from stdin and writes
/// answers to stdout, each a JSON object on a line of its own:
///
///   {"line":"ready",…}      once, when it can take jobs
///   {"line":"progress",…}   how far a job is
///   {"line":"done",…}       the report; adapter and optimizer state are on disk
///   {"line":"failed",…}     the reason; no file is left behind
///   {"line":"cancelled",…}  a line {"cancel":"<job id>"} asked for it; no file is left behind
///
/// A job names a base model (GGUF), a parent adapter, the episodes to learn from and
/// where to write. The same job gives the same bytes. The base model stays in memory
/// between jobs. The process ends when stdin ends.
///
/// It lowers its own priority, because completions go first. Messages for people go to
/// stderr and never contain code.
#[derive(Parser)]
#[command(name = "hone-learner", version, verbatim_doc_comment)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Share the keys and values of prompts with other learners through this folder
    #[arg(long, value_name = "DIR", hide = true)]
    prompt_cache: Option<PathBuf>,
    /// Take the keys and values of prompts from this folder, which the daemon fills
    #[arg(long, value_name = "DIR", hide = true)]
    handed_prompts: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the job in a file and prints its report, for debugging.
    ///
    /// The file contains the same JSON object as a line on stdin, on one or more lines:
    ///
    ///   hone-learner run job.json
    #[command(verbatim_doc_comment)]
    Run {
        /// The job, as JSON.
        #[arg(value_name = "JOB.json")]
        job: PathBuf,
    },
}

fn main() -> ExitCode {
    feedback::panics::report_places_only();
    let arguments = Arguments::parse();
    if !platform::lower_priority() {
        eprintln!("hone-learner: cannot lower the priority; completions may become slower");
    }
    let result = match arguments.command {
        None => lines::serve(
            io::stdin(),
            io::stdout(),
            Trainer::with_prompts(PromptFolders {
                shared: arguments.prompt_cache,
                handed: arguments.handed_prompts,
            }),
        )
        .context("cannot serve jobs")
        .map(|()| ExitCode::SUCCESS),
        Some(Command::Run { job }) => run(&job),
    };
    result.unwrap_or_else(|error| {
        eprintln!("hone-learner: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(path: &std::path::Path) -> anyhow::Result<ExitCode> {
    let text =
        std::fs::read(path).with_context(|| format!("cannot read the job {}", path.display()))?;
    let mut out = io::stdout().lock();
    let mut print = |line: &LearnerLine| -> anyhow::Result<()> {
        serde_json::to_writer(&mut out, line)?;
        writeln!(out)?;
        Ok(())
    };
    let answer = match lines::parse(&text) {
        Err(failed) => failed,
        Ok(job) => {
            let mut unprinted = Ok(());
            let answer = lines::run(&mut Trainer::default(), &job, &mut |progress| {
                if unprinted.is_ok() {
                    unprinted = print(&LearnerLine::Progress(progress));
                }
                ControlFlow::Continue(())
            });
            unprinted?;
            answer
        }
    };
    print(&answer)?;
    let done = matches!(answer, LearnerLine::Done(_));
    Ok(if done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
