//! The evaluation of next edits. Without arguments it is a test: it scores the cases of this folder
//! and fails if any figure is worse than the baseline. `--cases PATH` prints the figures of other
//! cases, which `mine.py` makes, and with `--show` also each case that is not useful.

mod case;
mod score;

use case::{Case, Moment};
use score::{Outcome, Tallies, Tally, outcome};
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Runners of tests ask for a list first, and then for those that are ignored, of which there
    // are none.
    if arguments.iter().any(|argument| argument == "--list") {
        if !arguments.iter().any(|argument| argument == "--ignored") {
            println!("the_baseline_holds: test");
        }
        return ExitCode::SUCCESS;
    }
    // Whatever else a filter of tests may say is not for this program.
    let path = arguments.iter().skip_while(|argument| *argument != "--cases").nth(1);
    let done = match path {
        Some(path) => report(path.as_ref(), arguments.iter().any(|argument| argument == "--show")),
        None => check(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Holds the cases of this folder to the baseline.
fn check() -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("evaluation");
    let figures = csv(&score(&folder.join("cases.jsonl"), |_, _| ())?);
    let baseline = std::fs::read_to_string(folder.join("baseline.csv"))?;
    let (now, then) = (rows(&figures)?, rows(&baseline)?);
    if now.keys().ne(then.keys()) {
        return Err(format!("the cases changed; the new figures are\n{figures}").into());
    }
    for (sort, is) in &now {
        let was = then[sort];
        if is.cases != was.cases || is.useful < was.useful || is.wrong > was.wrong {
            return Err(format!("{sort:?} was {was:?} and is {is:?}").into());
        }
    }
    if now != then {
        return Err(format!("better than baseline.csv, which must rise to\n{figures}").into());
    }
    println!("next edits: {} rows of the baseline hold", now.len());
    Ok(())
}

fn report(path: &Path, shows: bool) -> Result<()> {
    let tallies = score(path, |moment, outcome| {
        let is_silent = moment.case.sort != "edit";
        if shows && (outcome == Outcome::Wrong || (outcome == Outcome::Harmless && !is_silent)) {
            show(moment, outcome);
        }
    })?;
    println!("{}", csv(&tallies));
    for sort in ["edit", "hard", "easy", "single", "first"] {
        let mut sum = Tally::default();
        for (_, tally) in tallies.iter().filter(|((_, of), _)| of == sort) {
            sum.cases += tally.cases;
            sum.useful += tally.useful;
            sum.wrong += tally.wrong;
        }
        let share = |count: usize| 100.0 * count as f32 / sum.cases.max(1) as f32;
        let (useful, wrong) = (share(sum.useful), share(sum.wrong));
        println!("{sort}: {} cases, useful {useful:.1} %, wrong {wrong:.1} %", sum.cases);
    }
    Ok(())
}

fn score(path: &Path, each: impl Fn(&Moment, Outcome)) -> Result<Tallies> {
    let mut tallies = Tallies::new();
    for line in std::fs::read_to_string(path)?.lines() {
        let case: Case = serde_json::from_str(line)?;
        let Some(moment) = case.play() else { continue };
        let outcome = outcome(&moment);
        each(&moment, outcome);
        let tally = tallies.entry((case.repository.clone(), case.sort.clone())).or_default();
        tally.cases += 1;
        tally.useful += usize::from(outcome == Outcome::Useful);
        tally.wrong += usize::from(outcome == Outcome::Wrong);
    }
    Ok(tallies)
}

fn show(moment: &Moment, outcome: Outcome) {
    let case = moment.case;
    println!("== {outcome:?} {} {} {}", case.sort, case.repository, case.commit);
    for (sign, lines) in case.last_steps() {
        println!("  {sign} {lines}");
    }
    match &moment.shown {
        Some(edit) => println!(
            "  shown {:?} x{} {}:{} {:?} -> {:?}",
            edit.kind, edit.support, edit.file, edit.line, edit.old, edit.new
        ),
        None => moment.left.iter().take(3).for_each(|(at, step)| {
            println!("  left {}:{at} {:?} -> {:?}", step.0, step.2, step.3);
        }),
    }
}

const HEAD: &str = "repository,sort,cases,useful,wrong";

fn csv(tallies: &Tallies) -> String {
    let rows = tallies.iter().map(|((repository, sort), tally)| {
        format!("{repository},{sort},{},{},{}\n", tally.cases, tally.useful, tally.wrong)
    });
    format!("{HEAD}\n{}", rows.collect::<String>())
}

fn rows(csv: &str) -> Result<Tallies> {
    let mut tallies = Tallies::new();
    for line in csv.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [repository, sort, cases, useful, wrong] = fields[..] else {
            return Err(format!("{line:?} is no row of {HEAD}").into());
        };
        let tally = Tally { cases: cases.parse()?, useful: useful.parse()?, wrong: wrong.parse()? };
        tallies.insert((repository.to_owned(), sort.to_owned()), tally);
    }
    Ok(tallies)
}
