//! `hone rehearse`: what would Hone have given you on your own history?

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use console::strip_ansi_codes;
use indicatif::{ProgressBar, ProgressStyle};
use rehearsal::developer::NOISE;
use rehearsal::developer::history::{Filter, History};
use rehearsal::report::adopt::{self, Keepsake};
use rehearsal::report::judge::Judge;
use rehearsal::report::{ArmName, Repo, Report};
use rehearsal::report::{chart, transcript};
use rehearsal::run::arm::{Kind, Spec};
use rehearsal::run::interrupt::{self, Interrupted};
use rehearsal::run::resume::Work;
use rehearsal::run::{self, Event, Outcome, Settings};
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tempfile::TempDir;
use time::Date;
use time::macros::format_description;

/// Exit code of a process ended by Ctrl-C, by convention.
const INTERRUPTED: u8 = 130;

/// A simulated developer types your real commits, in the order you made them,
/// into fresh daemons: what would Hone have given you?
///
/// Every added line is typed through the language server protocol. At line
/// starts and at one natural place inside a line a completion is asked for. It
/// is accepted if it is the exact rest of the line, or at least ten characters
/// of its exact beginning; a near miss is accepted and mended; else it is turned
/// down (by typing on, by Esc, or by waiting until it times out) and the truth
/// is typed.
///
/// Nothing of this touches your own Hone, unless you say --keep: the daemons live in temporary homes,
/// on a clock of their own, and are gone afterwards. The same seed gives the
/// same stream.
#[derive(Parser)]
#[command(name = "hone rehearse", bin_name = "hone rehearse", version)]
#[command(after_help = "\
Examples:
  hone rehearse                              this repository, 200 places
  hone rehearse --repo ~/src/app --author ada --since 2025-01-01 --limit 1000
  hone rehearse --live --limit 40            watch it type
  hone rehearse --arm frozen --arm gate --arm ppo --work ~/rehearsal
                                             three arms; Ctrl-C, and go on later
  hone rehearse --arm 'hot=ppo,learning.ppo.learning_rate=3e-4'
                                             PPO with another learning rate
  hone rehearse --limit 1000 --keep          start from what your history teaches
  hone rehearse --json > report.json

Arms:
  frozen         the base model throughout, every offer shown
  gate           the same, behind the gate
  ppo            learns from verdicts alone; each update serves at once
  ppo-gate       the same, behind the gate
  ppo-demo       learns from verdicts and from what was typed instead
  ppo-demo-gate  the same, behind the gate
  demo           learns from what was typed instead alone
  everything     learner, trial and gate, as installed

Columns of the table:
  asked      places at which a completion was asked for
  shown      of these, how many brought an offer
  accepted   of the offers shown
  completed  characters that came from accepted offers, of all typed
             (indentation aside)
  kept       of what was inserted by accepting, what stayed
  late       answers that came after the developer would have typed on
             (a pause of 0.3 to 3 s is drawn for every place)
  p50, p95   from request to answer, as the editor sees it
  adapter    the version that served the last request; base is the plain model

One or two arms are typed into side by side, so that their latencies compare;
more run one after the other, and take the prompts that an earlier arm has
computed, so that theirs do not. It fails when the daemon's labels are not exactly
what the developer did.")]
struct Arguments {
    /// The git repository to rehearse on; several make one report
    #[arg(long, default_value = ".", value_name = "DIR")]
    repo: Vec<PathBuf>,
    /// Only commits whose author's name or mail address contains this; one for
    /// all repositories, or one for each
    #[arg(long, value_name = "TEXT")]
    author: Vec<String>,
    /// Only commits from this day on (YYYY-MM-DD, UTC)
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    since: Option<Date>,
    /// Places at which the developer pauses, in each repository
    #[arg(long, default_value_t = 200, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    limit: u64,
    /// End an arm's stream after this many minutes, wherever it is by then
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    max_minutes: Option<u64>,
    /// What is compared with the first one: KIND, or NAME=KIND,SETTING=VALUE,…
    /// [default: frozen and everything]
    #[arg(long, value_name = "ARM")]
    arm: Vec<Spec>,
    /// How often the developer slips: misses a right offer, takes a wrong one
    #[arg(long, default_value_t = NOISE, value_name = "SHARE", value_parser = parse_share)]
    noise: f64,
    /// Keep what is done in this folder: an interrupted rehearsal goes on from
    /// there, and an arm that is done is not done again
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// Save there after this many places, at the next file
    #[arg(long, default_value_t = 100, value_name = "N", requires = "work",
          value_parser = clap::value_parser!(u64).range(1..))]
    save_every: u64,
    /// Leave the prompts' keys and values in the --work folder for arms to come:
    /// some 10 MB a place, at most 16 GiB, until you remove DIR/prompts
    #[arg(long, requires = "work")]
    keep_prompts: bool,
    /// Decides where the developer pauses and how offers are turned down
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The model to serve [default: what `hone model path` names]
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// FIM template of the model, where its vocabulary does not tell
    #[arg(long, value_name = "NAME")]
    template: Option<String>,
    /// The `hone` to run [default: the one beside this program]
    #[arg(long, value_name = "PATH")]
    hone: Option<PathBuf>,
    /// Have each offer rated from 0 to 10 by a model behind this OpenAI-compatible
    /// endpoint (http://host/v1; its key in HONE_JUDGE_KEY). This SENDS THE CODE
    /// around each offer there
    #[arg(long, value_name = "URL", requires = "judge_model")]
    judge: Option<String>,
    /// The model that judges
    #[arg(long, value_name = "NAME", requires = "judge")]
    judge_model: Option<String>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
    /// Write the JSON object to this file as well
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Draw learning curves
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write what happened, one line each, with terminal colours
    #[arg(long, value_name = "FILE")]
    transcript: Option<PathBuf>,
    /// Show the transcript while it happens, on stderr
    #[arg(long)]
    live: bool,
    /// Have your own Hone serve what this rehearsal learned, and its gate start from
    /// it, if it did better than the base: frozen, gate and ppo-gate, on one
    /// repository, with the model that you serve
    #[arg(long, conflicts_with_all = ["arm", "model"])]
    keep: bool,
    /// Keep the daemons' temporary homes (events, adapters, logs)
    #[arg(long)]
    keep_homes: bool,
}

fn parse_date(text: &str) -> Result<Date, String> {
    Date::parse(text, format_description!("[year]-[month]-[day]"))
        .map_err(|_| "not a date: write YYYY-MM-DD".to_owned())
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "not a share: write a number from 0 to 1".to_owned())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let kept = arguments.work.is_some();
    match rehearse(arguments) {
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

fn rehearse(arguments: Arguments) -> Result<()> {
    interrupt::install()?;
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
    let specs = arms(&arguments)?;
    let repositories = repositories(&arguments)?;
    // Side by side where that is what two arms are for; else each by itself.
    let groups: Vec<&[Spec]> = match specs.len() {
        1 | 2 => vec![&specs],
        _ => specs.chunks(1).collect(),
    };
    let judge =
        arguments.judge.as_ref().zip(arguments.judge_model.as_ref()).map(|(url, model)| {
            Arc::new(Judge::new(url, model, std::env::var("HONE_JUDGE_KEY").ok()))
        });
    let mut onlooker = Onlooker::new(&arguments)?;
    let mut done = Vec::new();
    for (history, repo) in repositories {
        let mut outcomes = Vec::new();
        let shelf = match groups.len() {
            1 => None,
            _ => {
                let identity = identity(&arguments, &hone, &model, &repo, &specs)?;
                Some(Shelf::new(&arguments, &identity)?)
            }
        };
        for group in &groups {
            let work = match &arguments.work {
                None => None,
                Some(parent) => {
                    let identity = identity(&arguments, &hone, &model, &repo, group)?;
                    Some(Work::new(parent, &identity)?)
                }
            };
            let settings = Settings {
                hone: hone.clone(),
                model: model.clone(),
                template: arguments.template.clone(),
                judge: judge.clone(),
                limit: arguments.limit as usize,
                seed: arguments.seed,
                noise: arguments.noise,
                time_limit: arguments.max_minutes.map(|minutes| Duration::from_secs(60 * minutes)),
                keep_homes: arguments.keep_homes || arguments.keep,
                work,
                save_places: arguments.save_every as usize,
                shelf: shelf.as_ref().map(|folder| folder.path().to_owned()),
            };
            onlooker.begin(&repo, group);
            let outcome = run::rehearse(&history, group, &settings, |event| onlooker.see(&event));
            if outcome.is_err() {
                onlooker.bar.finish_and_clear();
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
        for arm in outcome.arms.iter().filter(|_| arguments.keep_homes) {
            if let Some(home) = &arm.home {
                eprintln!("{}, {} arm: HONE_HOME={}", repo.path, arm.name, home.display());
            }
        }
        done.push((outcome.clone(), Repo { files_typed: outcome.files, ..repo }));
    }
    onlooker.finish()?;
    tell(&arguments, &specs, &done)?;
    match done.as_slice() {
        [(outcome, _)] if arguments.keep => keep(outcome, &arguments, &hone),
        _ => Ok(()),
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

/// Where the prompts are that the arms have in common: gigabytes, gone with this.
/// With `--work` they outlast an interruption: a prompt computed anew, in other
/// pieces, is rounded otherwise.
enum Shelf {
    Temporary(TempDir),
    Kept(PathBuf),
    /// By the user's wish.
    Left(PathBuf),
}

impl Shelf {
    fn new(arguments: &Arguments, identity: &str) -> Result<Shelf> {
        let Some(parent) = &arguments.work else {
            let folder = tempfile::Builder::new().prefix("prompts-").tempdir();
            return Ok(Shelf::Temporary(folder.context("cannot create a folder for the prompts")?));
        };
        Ok(match arguments.keep_prompts {
            true => Shelf::Left(parent.join("prompts")),
            false => Shelf::Kept(Work::new(parent, identity)?.prompts()),
        })
    }

    fn path(&self) -> &Path {
        match self {
            Shelf::Temporary(folder) => folder.path(),
            Shelf::Kept(folder) | Shelf::Left(folder) => folder,
        }
    }

    /// All arms are done: nobody else meets these prompts.
    fn clear(self) -> Result<()> {
        if matches!(self, Shelf::Left(_)) {
            return Ok(());
        }
        let path = self.path();
        let cleared = if path.exists() { std::fs::remove_dir_all(path) } else { Ok(()) };
        cleared.with_context(|| format!("cannot remove {}", path.display()))
    }
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

/// The arms in their order; the first is what the others are compared with.
fn arms(arguments: &Arguments) -> Result<Vec<Spec>> {
    let mut specs = arguments.arm.clone();
    if arguments.keep {
        specs.extend(adopt::ARMS.map(Spec::of));
    } else if specs.is_empty() {
        specs.push(Spec::of(Kind::Everything));
    }
    if !specs.iter().any(|spec| spec.kind == Kind::Frozen) {
        specs.insert(0, Spec::of(Kind::Frozen));
    }
    for (index, spec) in specs.iter().enumerate() {
        ensure!(
            specs[..index].iter().all(|other| other.name != spec.name),
            "two arms are called `{}`: write --arm NAME={},…",
            spec.name,
            Spec::of(spec.kind).name
        );
    }
    Ok(specs)
}

fn repositories(arguments: &Arguments) -> Result<Vec<(History, Repo)>> {
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
            since: arguments.since.map(|date| date.midnight().assume_utc().unix_timestamp()),
        };
        let history = History::open(path, &filter)?;
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

/// All that the results of these arms depend on.
fn identity(
    arguments: &Arguments,
    hone: &Path,
    model: &Path,
    repo: &Repo,
    group: &[Spec],
) -> Result<String> {
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
    fn new(arguments: &Arguments) -> Result<Onlooker> {
        let live = arguments.live;
        let bar = match live || arguments.json {
            true => ProgressBar::hidden(),
            false => ProgressBar::new(arguments.limit),
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
        Ok(Onlooker {
            begun: Instant::now(),
            bar,
            live,
            colours: std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
            transcript,
            failed: None,
        })
    }

    /// These arms are next.
    fn begin(&mut self, repo: &Repo, group: &[Spec]) {
        let arms: Vec<_> = group.iter().map(|spec| spec.name.as_str()).collect();
        let folder = Path::new(&repo.path).file_name().unwrap_or_default().to_string_lossy();
        let title = format!("{folder} {}", arms.join(" + "));
        self.bar.set_prefix(title.trim_start_matches(['.', ' ']).to_owned());
        self.bar.reset();
    }

    fn see(&mut self, event: &Event) {
        match event {
            Event::PlaceDone { places } => self.bar.set_position(*places as u64),
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
