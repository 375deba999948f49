//! The command line.
#![allow(clippy::disallowed_types, reason = "it starts hone-rehearse, from its own folder")]

#[macro_use]
mod output;

mod adapter;
mod api;
mod clock;
mod config;
mod confirm;
mod doctor;
mod event_log;
mod events;
mod forget;
mod gate;
pub mod gate_log;
mod help;
mod inspect;
mod learn;
mod log_lines;
mod model;
mod pause;
mod readable;
mod record;
mod report;
mod settings;
mod setup;
mod surroundings;
mod team;
mod transport;
mod verdicts;
mod why;

use crate::app::startup::{self, ServeOptions};
use crate::cli::log_lines::LogLines;
use crate::daemon::client::{self, Restart};
use crate::daemon::election::{ALREADY_RUNNING, AlreadyRunning};
use crate::daemon::forwarder::forward;
use crate::daemon::server;
use crate::protocol::handlers;
use anyhow::{Context, Result, bail};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use engine::leave;
use host::paths::Paths;
use host::platform::process::replace_by;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::prelude::*;

/// Code completion that sharpens itself on your Tab key, on your own machine.
///
/// What you accept and reject is recorded on this machine only, and a background learner turns it
/// into a small adapter of your own on top of the model. Code never leaves the machine.
///
/// First steps:
///   hone model pull     fetches the default model, 469 MiB
///   hone doctor         says what else is missing, such as the editor's plugin
///   hone status         shows what was offered, accepted and learned
#[derive(Parser)]
#[command(name = "hone", version, verbatim_doc_comment)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Speak LSP on stdin and stdout: what an editor starts
    ///
    /// Forwards to the one daemon of this user, starting it if there is none, so that several
    /// windows and editors share one model in memory.
    Lsp {
        /// Serve in this process, without a daemon
        #[arg(long)]
        in_process: bool,
        #[command(flatten)]
        transport: transport::TransportOptions,
        #[command(flatten)]
        options: ServeOptions,
    },
    /// Run the daemon in the foreground
    ///
    /// Editors start it by themselves. This is for service managers, and for
    /// watching it. It listens on a private Unix socket, and never on a network.
    Serve {
        #[command(flatten)]
        options: ServeOptions,
    },
    /// Show the daemon, the model, what became of the offers and what was learned
    Status {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show why the last completions and next edits ended as they did
    ///
    ///   hone why                   the last requests, in whatever file
    ///   hone why src/main.rs       those in this file
    ///   hone why src/main.rs:12    those on this line of it
    ///
    /// They are kept in the daemon's memory only, without any code.
    #[command(verbatim_doc_comment)]
    Why(why::WhyArgs),
    /// Look for what is wrong, and say what to do about it
    ///
    /// Program, files, settings, daemon, model, GPU, the editors on this machine and the last
    /// failures. What it prints can be pasted into a public report. It ends with status 1 if
    /// something is wrong.
    Doctor(doctor::DoctorArgs),
    /// Print what was recorded, in order, as JSON lines
    ///
    /// With --verdicts, every judged offer is a line: what was offered, by which adapter,
    /// what became of it, how that is known, when, and the reward that it earned. To look
    /// at it in a table, for example:
    ///
    ///   hone events --verdicts | jq -r '[.outcome.kind, .reward] | @tsv'
    #[command(verbatim_doc_comment)]
    Events {
        /// Print every judged offer instead of the events
        #[arg(long)]
        verdicts: bool,
        /// There is no other format. Callers say it all the same
        #[arg(long, hide = true)]
        json: bool,
        /// Include code: prompts, offered text and token ids
        #[arg(long)]
        with_code: bool,
        /// Then print each event as it is recorded, until you end this
        #[arg(long, conflicts_with = "verdicts")]
        follow: bool,
    },
    /// Show what makes the gate show an offer or hold it back, and how right it was
    Gate(gate::GateArgs),
    /// Show how often offers were accepted, adapter by adapter, with what confidence
    ///
    ///   hone report              a table
    ///   hone report --html       a page with charts, hone-report.html
    ///
    /// The page shows accept rate, characters saved, latency, and the descent of the adapters. It
    /// holds no code and no file names, and needs no network.
    #[command(verbatim_doc_comment)]
    Report(report::ReportArgs),
    /// Learn now from the labels that wait, however few, or from the history of a repository
    ///
    ///   hone learn               the labels that wait
    ///   hone learn --history     the last commits of the repository in this folder
    ///
    /// A history takes less than half an hour on two cores. What it teaches serves if it completes
    /// more of its newest changes, which it does not learn, than what serves now. If it is
    /// interrupted, the same command continues from there.
    #[command(verbatim_doc_comment)]
    Learn(learn::LearnArgs),
    /// Stop learning, or completing, until `hone resume`
    ///
    ///   hone pause                           learning
    ///   hone pause completions               suggestions as you type, in every editor
    ///   hone pause completions --for 30m     the same for a while
    ///
    /// While learning is paused, completions continue, and what you accept and reject is recorded.
    /// While completions are paused, those that you invoke are still answered.
    #[command(verbatim_doc_comment)]
    Pause(pause::PauseArgs),
    /// Take up again what `hone pause` stopped: learning, or completions
    Resume(pause::ResumeArgs),
    /// Show what was learned, and go back to an earlier adapter
    ///
    /// Alone, it lists what was learned, oldest first. An adapter is a small set of weights (LoRA)
    /// on top of the model. Every update makes a new one from the one before; the last few are
    /// kept, so that you can go back.
    Adapter(adapter::AdapterArgs),
    /// Share a part of what is learned with a team, never code
    ///
    /// Alone, it shows what was contributed and received, and what privacy was spent.
    Team(team::TeamArgs),
    /// Answer plugins that speak the HTTP of OpenAI, llama.cpp or Ollama
    ///
    ///   hone api on     on 127.0.0.1 and ::1 alone, for whoever has the token
    ///   hone api        the address and the token
    ///   hone api off
    #[command(verbatim_doc_comment)]
    Api(api::ApiArgs),
    /// Print what an editor needs to show Hone's offers, or write it into the editor's file
    ///
    ///   hone setup zed              prints it, with your address and token in it
    ///   hone setup zed --write      writes it, after you agree; a copy of the file stays
    ///   hone setup jetbrains DIR    makes the folder that LSP4IJ takes as a template
    #[command(verbatim_doc_comment)]
    Setup(setup::SetupArgs),
    /// Forget a file, a folder, the last hours, or everything
    ///
    /// What was offered there goes, what became of it, and every adapter that learned from it.
    /// Nothing of it is left on disk; learning continues from the last adapter that never saw it.
    /// Asks first. This cannot be undone.
    ///
    ///   hone forget --file src/secret.rs
    ///   hone forget --folder ~/clients/acme
    ///   hone forget --since 2h
    ///   hone forget --since 2026-01-31
    ///   hone forget --all
    #[command(verbatim_doc_comment)]
    Forget(forget::ForgetArgs),
    /// Show and change settings
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// End the daemon cleanly; an open editor, or the next one, starts it again
    Stop,
    /// End the daemon, and have the open editors start it anew
    ///
    /// The new one is this program, and takes the settings as they are now. What the editors have
    /// open is kept. If the HTTP API is on, the new one is started without an editor.
    Restart,
    /// Print what completes the names of commands and options in a shell
    ///
    ///   hone completions bash > ~/.local/share/bash-completion/completions/hone
    ///   hone completions zsh > ~/.zfunc/_hone
    ///   hone completions fish > ~/.config/fish/completions/hone.fish
    #[command(verbatim_doc_comment)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// List, fetch and choose models
    #[command(subcommand)]
    Model(model::ModelCommand),
    /// Move the daemon's clock ahead, if it runs with HONE_CLOCK=movable (tests)
    #[command(hide = true)]
    AdvanceClock {
        /// Milliseconds
        ms: u64,
    },
    /// Say of each path on stdin whether Hone may read the file unasked (`hone rehearse`)
    #[command(hide = true)]
    Readable,
    /// Write the session that an editor sends on stdin as a recording (Hone: Record This Session)
    #[command(hide = true)]
    Record,
    /// Measure what Hone would give you, on your own git history
    ///
    /// A simulated developer types your real commits into a temporary daemon,
    /// accepts what matches and rejects the rest; `hone rehearse --help` says more.
    #[command(disable_help_flag = true)]
    Rehearse {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<std::ffi::OsString>,
    },
}

pub fn main() -> ! {
    ::feedback::panics::report_places_only();
    let matches = help::laid_out(Cli::command()).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let quiet = !matches!(cli.command, Command::Serve { .. });
    let level = std::env::var("HONE_LOG").ok().and_then(|level| level.parse().ok());
    let default = if quiet { LevelFilter::WARN } else { LevelFilter::INFO };
    // Only our own crates may log, because the LSP transport's lines hold whole documents.
    let level = level.unwrap_or(default);
    let ours = Targets::new().with_targets(OUR_CRATES.map(|name| (name, level)));
    let lines = tracing_subscriber::fmt::layer()
        .with_target(false)
        .with_writer(LogLines::default())
        .with_ansi(false)
        // The layer would report a stderr that is gone or full to stderr, and panic.
        .log_internal_errors(false);
    tracing_subscriber::registry().with(lines.with_filter(ours)).init();
    let status = match run(cli.command) {
        Ok(()) => 0,
        Err(error) if error.is::<ToldAlready>() => 1,
        Err(error) => {
            tell!("Error: {}", one_line(&error));
            if error.is::<AlreadyRunning>() { ALREADY_RUNNING } else { 1 }
        }
    };
    leave(status)
}

/// Fails a command that has told what is wrong.
#[derive(Debug, thiserror::Error)]
#[error("what is wrong was told")]
struct ToldAlready;

/// An error and its causes on one line; editors show no more than that.
fn one_line(error: &anyhow::Error) -> String {
    format!("{error:#}").lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

fn run(command: Command) -> Result<()> {
    if let Command::Rehearse { args } = command {
        let program = startup::sibling("hone-rehearse")?;
        let mut command = std::process::Command::new(&program);
        command.args(args);
        let error = replace_by(command);
        return Err(error).with_context(|| format!("{}: cannot be run", program.display()));
    }
    if let Command::Completions { shell } = command {
        return completions(shell);
    }
    let home = Paths::from_env()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(RUNTIME_THREADS)
        .enable_all()
        .build()?;
    let result = runtime.block_on(run_async(home, command));
    // A blocked read of stdin would keep the runtime, and with it us, alive.
    runtime.shutdown_background();
    result
}

fn completions(shell: Shell) -> Result<()> {
    let mut script = vec![];
    clap_complete::generate(shell, &mut Cli::command(), "hone", &mut script);
    emit!("{}", String::from_utf8_lossy(&script).trim_end())
}

/// The crates whose log lines are written.
const OUR_CRATES: [&str; 8] =
    ["hone", "adapters", "engine", "files", "learning", "privacy", "services", "session"];

/// Threads for messages and files; inference has its own.
const RUNTIME_THREADS: usize = 2;

async fn run_async(home: Paths, command: Command) -> Result<()> {
    match command {
        Command::Lsp { in_process: false, transport, options } => {
            transport.check()?;
            forward(&home, &options).await
        }
        Command::Lsp { in_process: true, transport, options } => {
            transport.check()?;
            let (app, learn) = startup::start(home, &options).await?;
            let (stdin, stdout) = (tokio::io::stdin(), tokio::io::stdout());
            let parts = app.services.parts.clone();
            tokio::select! {
                leave = handlers::serve(app, learn, stdin, stdout, std::future::pending()) => {
                    leave.check()
                }
                part = parts.vital_one_died() => bail!("{part} has ended by a fault of Hone's own"),
            }
        }
        Command::Serve { options } => server::run(home, &options).await,
        Command::Status { json } => inspect::status(&home, json).await,
        Command::Why(args) => why::why(&home, args).await,
        Command::Doctor(args) => doctor::run(&home, args).await,
        Command::Events { with_code, verdicts: true, .. } => {
            verdicts::print(&home, with_code).await
        }
        Command::Events { with_code, follow: true, .. } => events::follow(&home, with_code).await,
        Command::Events { with_code, .. } => events::events(&home, with_code).await,
        Command::AdvanceClock { ms } => clock::advance(&home, ms).await,
        Command::Readable => readable::run(&home),
        Command::Record => record::run(&home),
        Command::Gate(args) => gate::gate(&home, args).await,
        Command::Report(args) => report::run(&home, args).await,
        Command::Learn(args) => learn::run(&home, args).await,
        Command::Pause(args) => pause::pause(&home, args).await,
        Command::Resume(args) => pause::resume(&home, args).await,
        Command::Adapter(args) => adapter::run(&home, args).await,
        Command::Team(args) => team::run(&home, args).await,
        Command::Api(args) => api::run(&home, args).await,
        Command::Setup(args) => setup::run(&home, args),
        Command::Forget(args) => forget::run(&home, args).await,
        Command::Config(command) => config::run(&home, command).await,
        Command::Stop => {
            let ended = client::stop(&home).await?;
            say!("{}", if ended.is_some() { "stopped" } else { "no daemon was running" })?;
            // `:Hone stop` shows stdout alone, and its Neovim starts none.
            if ended.is_some_and(|ended| ended.has_editors) {
                tell!("an open editor starts it again, unless you close it");
            }
            Ok(())
        }
        Command::Restart => {
            if let Some(trouble) = inspect::restart_trouble(&home).await {
                bail!("not restarted: {trouble}");
            }
            let said = match client::restart(&home).await? {
                Restart::Done => "the daemon was started again",
                Restart::LeftToEditors => {
                    "the daemon has ended; the open editors start it again at once"
                }
                Restart::LeftToNextEditor => {
                    "the daemon has ended; the next editor starts it again"
                }
                Restart::NoneRan => "no daemon was running",
            };
            say!("{said}")
        }
        Command::Model(command) => model::run(&home, command).await,
        // `run` handles them before it builds the runtime.
        Command::Rehearse { .. } | Command::Completions { .. } => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// The warnings of a crate that is not among them are lost.
    #[test]
    fn every_crate_of_ours_that_logs_is_heard() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let crates = root.read_dir().unwrap().flatten().map(|entry| entry.path());
        let mut logging: Vec<String> = crates
            .chain([root.to_owned(), root.join("../feedback"), root.join("../models")])
            .filter_map(|folder| std::fs::read_to_string(folder.join("Cargo.toml")).ok())
            .filter(|manifest| manifest.lines().any(|line| line.starts_with("tracing.")))
            .map(|manifest| {
                let named = manifest.lines().find_map(|line| line.strip_prefix("name = "));
                named.unwrap().trim_matches('"').replace('-', "_")
            })
            .collect();
        logging.sort();
        let mut heard = OUR_CRATES;
        heard.sort();
        assert_eq!(logging, heard);
    }

    /// The filter also hears a crate whose name only begins like one of these.
    #[test]
    fn no_crate_of_others_is_heard() {
        let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock");
        let lock = std::fs::read_to_string(lock).unwrap();
        for package in lock.split("[[package]]").filter(|text| text.contains("\nsource = ")) {
            let name = package.lines().find_map(|line| line.strip_prefix("name = ")).unwrap();
            let name = name.trim_matches('"').replace('-', "_");
            assert!(!OUR_CRATES.iter().any(|ours| name.starts_with(ours)), "{name}");
        }
    }
}
