//! The arguments of `hone rehearse`, and the arms and repositories that they name.

use crate::cli::texts::TextsArguments;
use crate::developer::disturbance::Disturbance;
use crate::developer::history::{Filter, History, parse_day};
use crate::developer::readable::Readable;
use crate::developer::{Developer, Editor, NOISE};
use crate::limits;
use crate::report::Repo;
use crate::report::adopt;
use crate::run::arm::{ArmKind, ArmSpec};
use anyhow::{Result, ensure};
use clap::{Parser, Subcommand, ValueEnum};
use jiff::civil::Date;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Types your real commits into fresh daemons and says what Hone would have given you
///
/// A simulated developer types every added line through the language server
/// protocol, commit by commit in the order you made them. It works in a temporary
/// copy of the tree that you began each commit from. At the start of each
/// line and at one natural place inside it, the developer pauses for a
/// completion. An offer is accepted if it is the exact rest of the line, or at
/// least ten characters of its exact beginning. A near miss is accepted and
/// corrected. Any other offer is rejected: by typing on, by Esc, or by waiting
/// until it times out. Then the real text is typed.
///
/// Your own Hone stays as it is unless you say --adopt. The daemons live in
/// temporary homes with a clock of their own and are removed afterwards. The
/// same seed gives the same stream.
#[derive(Parser)]
#[command(name = "hone rehearse", bin_name = "hone rehearse", version)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
#[command(after_help = "\
Examples:
  hone rehearse                              this repository, 200 places
  hone rehearse --repo ~/src/app --author ada --since 2025-01-01 --limit 1000
  hone rehearse --live --limit 40            watch it type
  hone rehearse --arm frozen --arm gate --arm ppo --work ~/rehearsal
                                             three arms; stop with Ctrl-C, continue later
  hone rehearse --arm 'hot=ppo,lab.ppo.learning_rate=3e-4'
                                             PPO with another learning rate
  hone rehearse --limit 1000 --adopt         start from what your history teaches
  hone rehearse --next-edits --limit 500     what next edits would have done for you
  hone rehearse --recording day.json --limit 2000
                                             a recorded session, against what was written next
  hone rehearse --json > report.json

Arms:
  frozen         the base model to the end; every offer is shown
  gate           the same, behind the gate
  ppo            learns from accepts and rejects; each update that passes the holdout check serves
  ppo-gate       the same, behind the gate
  ppo-demo       learns from accepts and rejects, and from what was typed instead
  ppo-demo-gate  the same, behind the gate
  demo           learns only from what was typed instead
  everything     learner, trial and gate, as installed

Columns of --table:
  asked      places at which a completion was asked for
  shown      share of these that brought an offer
  accepted   share of the offers shown
  completed  characters that came from accepted offers, of all that were typed
             (without indentation)
  kept       share of the inserted characters that stayed
  late       answers that came after the developer would have typed on
             (a pause of 0.3 to 3 s is drawn for every place)
  p50, p95   time from request to answer, as the editor sees it
  adapter    the version that served the last request; base is the plain model

One or two arms run side by side, so that their latencies compare. More arms, and
two with --keep-prompts, run one after the other and reuse the prompts that an
earlier arm has computed, so that their latencies do not compare. The command
fails if the daemon has labels that the developer did not give.")]
pub struct Arguments {
    #[command(subcommand)]
    pub part: Option<Part>,
    /// The git repository to rehearse on; several make one report
    #[arg(long, default_value = ".", value_name = "DIR")]
    pub repo: Vec<PathBuf>,
    /// Only commits whose author's name or mail address contains this text; give
    /// one for all repositories, or one for each
    #[arg(long, value_name = "TEXT")]
    pub author: Vec<String>,
    /// Only commits from this day on (YYYY-MM-DD, UTC)
    #[arg(long, value_name = "DATE", value_parser = parse_day)]
    pub since: Option<Date>,
    /// Places at which the developer pauses, in each repository [default: 200]; with
    /// --recording the entries of its log [default: all]
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=limits::PLACES_MAX))]
    pub limit: Option<u64>,
    /// Places in one commit at most; the rest of that commit is not typed. A short
    /// stream then spans many commits, and an interval needs many
    #[arg(long, hide_short_help = true, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=limits::PLACES_MAX))]
    pub per_commit: Option<u64>,
    /// End an arm's stream after this many minutes, wherever it is by then
    #[arg(long, hide_short_help = true, value_name = "M",
          value_parser = clap::value_parser!(u64).range(1..=limits::MINUTES_MAX))]
    pub max_minutes: Option<u64>,
    /// An arm, which is compared with the first one: KIND, or
    /// NAME=KIND,SETTING=VALUE,… [default: frozen and everything]
    #[arg(long, value_name = "ARM")]
    pub arm: Vec<ArmSpec>,
    /// Who types
    #[arg(long, hide_short_help = true, value_enum, default_value_t = Developer::Exact)]
    pub developer: Developer,
    /// How often the exact developer slips, misses a right offer or accepts a wrong one
    /// (a share), and what else happens in the file: formatter, auto-import,
    /// second-cursor, typo [default: 0.05]
    #[arg(long, hide_short_help = true, value_name = "NOISE,…", value_delimiter = ',')]
    pub noise: Vec<Noise>,
    /// What the developer types in
    #[arg(long, hide_short_help = true, value_enum, default_value_t = Editor::Vscode)]
    pub editor: Editor,
    /// Let the daemons see nothing but the files that are open, as rehearsals did
    /// before there was a working tree
    #[arg(long, hide_short_help = true)]
    pub no_tree: bool,
    /// Save the rehearsal in this folder: an interrupted one continues from there,
    /// and an arm that is done is not done again
    #[arg(long, value_name = "DIR")]
    pub work: Option<PathBuf>,
    /// Save after this many places, at the end of the file
    #[arg(long, hide_short_help = true, default_value_t = 100, value_name = "N", requires = "work",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub save_every: u64,
    /// Run this program after every --every places, at the end of the file, and wait for it. It
    /// finds the daemon's home in HONE_HOME, and may ask and change the daemon as a user may
    #[arg(long, hide_short_help = true, value_name = "PROGRAM", requires = "every")]
    pub run: Option<PathBuf>,
    /// After how many places --run is run
    #[arg(long, hide_short_help = true, value_name = "N", requires = "run",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub every: Option<u64>,
    /// Leave the computed prompts in the --work folder for later arms: some 10 MB
    /// for each place, at most 16 GiB, until you remove DIR/prompts. Two arms then
    /// share them and run one after the other
    #[arg(long, hide_short_help = true, requires = "work")]
    pub keep_prompts: bool,
    /// Decides where the developer pauses and how offers are rejected
    #[arg(long, hide_short_help = true, default_value_t = 1)]
    pub seed: u64,
    /// The model to serve [default: the configured one]
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,
    /// FIM template of the model, where its vocabulary does not tell
    #[arg(long, hide_short_help = true, value_name = "NAME")]
    pub template: Option<String>,
    /// The `hone` to run [default: the one next to this program]
    #[arg(long, hide_short_help = true, value_name = "PATH")]
    pub hone: Option<PathBuf>,
    /// Have each offer rated from 0 to 10 by a model behind this OpenAI-compatible
    /// endpoint (http://host/v1; its key in HONE_JUDGE_KEY). This SENDS THE CODE
    /// around each offer there
    #[arg(long, hide_short_help = true, value_name = "URL", requires = "judge_model")]
    pub judge: Option<String>,
    /// The model that judges
    #[arg(long, hide_short_help = true, value_name = "NAME", requires = "judge")]
    pub judge_model: Option<String>,
    /// Print every number by quarter of the stream before the summary
    #[arg(long, conflicts_with = "json")]
    pub table: bool,
    /// Print one JSON object instead of the summary
    #[arg(long)]
    pub json: bool,
    /// Write the JSON object to this file as well
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Draw learning curves into this file
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write what happened to this file, one line for each event, with terminal colours
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    pub transcript: Option<PathBuf>,
    /// Print the transcript to stderr while it happens
    #[arg(long)]
    pub live: bool,
    /// Say how far it is for programs, in the place of the bar: one JSON object a line on
    /// stdout, {"arm", "number", "of_arms", "places", "of_places"}, and then the summary
    #[arg(long, hide_short_help = true, conflicts_with_all = ["json", "live"])]
    pub progress: bool,
    /// Adopt what was learned if it did better than the base model: your own Hone
    /// serves the adapter, and its gate starts from the verdicts. Runs frozen, gate
    /// and ppo-gate on one repository with the model that you serve
    #[arg(long, conflicts_with_all = ["arm", "model"])]
    pub adopt: bool,
    /// Make the commits as edits, and ask for the next edit after each: how many of the
    /// changed places does it do? No completion is asked for, and --limit counts the
    /// steps done by hand. The arm is `gate` unless --arm names others
    #[arg(long, conflicts_with_all = ["noise", "no_tree", "work", "judge", "table",
                                      "report", "svg", "transcript", "live", "progress", "adopt",
                                      "run"])]
    pub next_edits: bool,
    /// Play a recorded session of a person (workspaceRecording@1.0), key by key with its
    /// pauses, and compare each offer with what they wrote next. Nobody takes the offers.
    /// The arm is `gate` unless --arm names others
    #[arg(long, hide_short_help = true, value_name = "FILE",
          conflicts_with_all = ["repo", "author", "developer", "since", "per_commit",
                                "max_minutes", "noise", "editor", "no_tree", "work", "run",
                                "seed", "judge", "table", "report", "svg", "transcript",
                                "live", "progress", "adopt", "next_edits"])]
    pub recording: Option<PathBuf>,
    /// Only so many seconds of the recording, from its beginning
    #[arg(long, hide_short_help = true, value_name = "S", requires = "recording")]
    pub seconds: Option<u64>,
    /// With --recording, count every answer as taking so many milliseconds. What is shown then
    /// does not depend on this machine [default: what it takes]
    #[arg(long, hide_short_help = true, value_name = "MS", requires = "recording")]
    pub latency: Option<u64>,
    /// Wait for Enter at the end: the terminal of an editor closes with its program
    #[arg(long, hide = true)]
    pub wait: bool,
    /// Keep the daemons' temporary homes (events, adapters, logs)
    #[arg(long, hide_short_help = true)]
    pub keep_homes: bool,
}

/// One value of `--noise`.
/// What only `hone` itself runs.
#[derive(Debug, Subcommand)]
pub enum Part {
    /// Print what the authors of a repository wrote, as JSON lines
    #[command(hide = true)]
    Texts(TextsArguments),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Noise {
    /// The share of the places at which the developer slips.
    Slips(f64),
    Disturbance(Disturbance),
}

impl FromStr for Noise {
    type Err = String;

    fn from_str(text: &str) -> Result<Noise, String> {
        let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
        let known = || {
            let names =
                Disturbance::value_variants().iter().filter_map(ValueEnum::to_possible_value);
            names.map(|name| name.get_name().to_owned()).collect::<Vec<_>>().join(", ")
        };
        match (share, Disturbance::from_str(text, false)) {
            (Some(share), _) => Ok(Noise::Slips(share)),
            (None, Ok(disturbance)) => Ok(Noise::Disturbance(disturbance)),
            (None, Err(_)) => {
                Err(format!("neither a share, a number from 0 to 1, nor one of {}", known()))
            }
        }
    }
}

/// Places at which the developer pauses, unless it is said.
const PLACES: u64 = 200;

impl Arguments {
    /// The places at which the developer pauses.
    pub fn places(&self) -> u64 {
        self.limit.unwrap_or(PLACES)
    }

    /// Returns how often the developer slips. The last share of `--noise` counts.
    pub fn slips(&self) -> f64 {
        let share = |noise: &Noise| match noise {
            Noise::Slips(share) => Some(*share),
            Noise::Disturbance(_) => None,
        };
        self.noise.iter().rev().find_map(share).unwrap_or(NOISE)
    }

    /// Returns what happens in addition to the developer's typing, each once and in one order.
    pub fn disturbances(&self) -> Vec<Disturbance> {
        let is_on = |one: &Disturbance| self.noise.contains(&Noise::Disturbance(*one));
        Disturbance::value_variants().iter().copied().filter(is_on).collect()
    }
}

/// The arms in their order. The others are compared with the first one.
pub fn arms(arguments: &Arguments) -> Result<Vec<ArmSpec>> {
    let mut specs = arguments.arm.clone();
    if arguments.adopt {
        specs.extend(adopt::ARMS.map(ArmSpec::of));
    } else if specs.is_empty() {
        specs.push(ArmSpec::of(ArmKind::Everything));
    }
    if !specs.iter().any(|spec| spec.kind == ArmKind::Frozen) {
        specs.insert(0, ArmSpec::of(ArmKind::Frozen));
    }
    for (index, spec) in specs.iter().enumerate() {
        ensure!(
            specs[..index].iter().all(|other| other.name != spec.name),
            "two arms are called `{}`: write --arm NAME={},…",
            spec.name,
            ArmSpec::of(spec.kind).name
        );
    }
    Ok(specs)
}

/// Opens the repositories, without the files that the user's own Hone, the program `hone`, may not
/// read.
pub fn repositories(arguments: &Arguments, hone: &Path) -> Result<Vec<(History, Repo)>> {
    let (repos, authors) = (&arguments.repo, &arguments.author);
    ensure!(
        authors.len() <= 1 || authors.len() == repos.len(),
        "{} authors for {} repositories: give one for all, or one for each",
        authors.len(),
        repos.len()
    );
    let open = |(index, path): (usize, &PathBuf)| {
        let author = authors.get(index).or(authors.first()).cloned();
        let filter = Filter {
            author: author.clone(),
            since: arguments.since.map(Filter::first_second).transpose()?,
            head: None,
        };
        let mut history = History::open(path, &filter)?;
        history.keep_to(Readable::start(hone, history.root())?);
        let repo = Repo {
            path: path.display().to_string(),
            head: history.head(),
            author,
            since: arguments.since.map(|date| date.to_string()),
            commits: history.len(),
            files_typed: 0,
        };
        Ok((history, repo))
    };
    repos.iter().enumerate().map(open).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_help_shows_twelve_options() {
        let options = |flag: &str| {
            let Err(help) = Arguments::try_parse_from(["hone rehearse", flag]) else {
                panic!("{flag} shows no help")
            };
            let help = help.to_string();
            let lines = help.lines().filter(|line| line.starts_with("      --"));
            lines.count()
        };
        assert_eq!(options("-h"), 12);
        assert!(options("--help") > 30);
    }

    #[test]
    fn noise_is_a_share_and_names() {
        let parse = |noise: &[&str]| {
            let words = ["hone rehearse"].iter().chain(noise);
            Arguments::try_parse_from(words).map(|all| (all.slips(), all.disturbances()))
        };
        assert_eq!(parse(&[]).unwrap(), (NOISE, vec![]));
        assert_eq!(parse(&["--noise", "0.2"]).unwrap(), (0.2, vec![]));
        let both = vec![Disturbance::Formatter, Disturbance::SecondCursor];
        let named = ["--noise", "second-cursor,formatter,0"];
        assert_eq!(parse(&named).unwrap(), (0.0, both));
        for wrong in ["1.5", "loud", ""] {
            let error = parse(&["--noise", wrong]).unwrap_err().to_string();
            assert!(error.contains("formatter, auto-import, second-cursor, typo"), "{error}");
        }
    }

    #[test]
    fn what_is_adopted_comes_from_arms_of_its_own() {
        let arguments = ["hone rehearse", "--adopt", "--arm", "ppo"];
        assert!(Arguments::try_parse_from(arguments).is_err());
        let arguments = Arguments::try_parse_from(["hone rehearse", "--adopt"]).unwrap();
        let names: Vec<_> = arms(&arguments).unwrap().into_iter().map(|arm| arm.name).collect();
        assert_eq!(names, ["frozen", "gate", "ppo-gate"]);
    }
}
