//! A fuzzer that plays an editor: random edits by several cursors, formatters, undo, save and
//! reload, documents of one name, requests at positions that are not there, and a user who types
//! along, accepts and rejects. After every step it checks that the server's text is the editor's,
//! that every range lies within the text, that an accepted offer closes nothing twice, and that no
//! verdict is recorded that the user did not give.

mod answers;
mod asks;
mod buffer;
mod closers;
mod hand;
mod lsp_text;
mod screen;
mod steps;
mod story;
mod tools;

use rand::SeedableRng;
use rand::rngs::StdRng;
use steps::{Habits, Step};
use story::{Story, Tally};

/// Steps of all stories in a test run.
const STEPS: u64 = 40_000;

/// Steps in the long form, which takes hours.
const STEPS_LONG: u64 = 50_000_000;

/// Steps of one story. Each has an app and a session of its own.
const STORY_STEPS: u64 = 400;

/// The most stories that are played to find a short one.
const SHORTENING_PLAYS: usize = 300;

fn variable<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

fn all_steps() -> u64 {
    match variable::<f64>("HONE_SOAK") {
        Some(share) => ((STEPS_LONG as f64 * share) as u64).max(STEPS),
        None => STEPS,
    }
}

const PANIC: &str = "a panic";

/// What a story ends with: how often what happened, or what was found.
type Played = Result<Tally, Finding>;

struct Finding {
    what: String,
    trace: Vec<String>,
}

impl Finding {
    /// What does not change from story to story.
    fn kind(&self) -> &str {
        if self.what.starts_with(PANIC) {
            return PANIC;
        }
        let what = self.what.split(": ").nth(1).unwrap_or_default();
        what.split('{').next().unwrap_or_default()
    }
}

/// Plays a story to its end or to what is found.
async fn play(habits: Habits, steps: Vec<Step>) -> Played {
    // A panic of the server's is a finding too.
    let played = tokio::spawn(async move {
        let mut story = Story::begin(habits).await;
        for (number, step) in steps.into_iter().enumerate() {
            if let Err(found) = story.step(step).await {
                return Err(Finding {
                    what: format!("step {number}: {found}"),
                    trace: story.trace,
                });
            }
        }
        match story.end() {
            Ok(()) => Ok(story.tally),
            Err(found) => Err(Finding { what: format!("the end: {found}"), trace: story.trace }),
        }
    });
    let panicked = |error| Finding { what: format!("{PANIC}: {error}"), trace: vec![] };
    played.await.unwrap_or_else(|error| Err(panicked(error)))
}

fn story_of(seed: u64) -> (Habits, Vec<Step>) {
    let mut rng = StdRng::seed_from_u64(seed);
    let habits = Habits::draw(&mut rng);
    (habits, (0..STORY_STEPS).map(|_| Step::draw(&mut rng)).collect())
}

/// A shorter story in which the same is found: steps are left out, many at a time first.
async fn shortened(
    habits: Habits,
    mut steps: Vec<Step>,
    mut found: Finding,
) -> (Vec<Step>, Finding) {
    let (mut length, mut plays) = (steps.len().div_ceil(2), 0);
    while length > 0 {
        let mut start = 0;
        while start < steps.len() && plays < SHORTENING_PLAYS {
            plays += 1;
            let mut fewer = steps.clone();
            fewer.drain(start..(start + length).min(steps.len()));
            match play(habits, fewer.clone()).await {
                Err(same) if same.kind() == found.kind() => (steps, found) = (fewer, same),
                _ => start += length,
            }
        }
        length /= 2;
    }
    (steps, found)
}

/// What somebody needs who looks for the reason.
async fn report(seed: u64, habits: Habits, steps: Vec<Step>, found: Finding) -> String {
    let first = found.what.clone();
    // It is told at once, in case somebody does not wait.
    eprintln!("HONE_SEED={seed}: {first}");
    let (steps, found) = shortened(habits, steps, found).await;
    let steps: Vec<_> = steps.iter().map(|step| format!("{step:?}")).collect();
    format!(
        "HONE_SEED={seed}: {first}\nin {} steps: {}\n{habits:?}\n{}\n{}",
        steps.len(),
        found.what,
        steps.join("\n"),
        found.trace.join("\n")
    )
}

#[tokio::test]
async fn soak_a_played_editor_and_the_server_agree() {
    let seed = variable("HONE_SEED").unwrap_or_else(|| match variable::<f64>("HONE_SOAK") {
        Some(_) => rand::random::<u32>().into(),
        None => 0,
    });
    eprintln!("HONE_SEED={seed}");
    let mut tally = Tally::new();
    for number in 0..all_steps() / STORY_STEPS {
        let (habits, steps) = story_of(seed + number);
        match play(habits, steps.clone()).await {
            Ok(counts) => counts.into_iter().for_each(|(what, count)| {
                *tally.entry(what).or_default() += count;
            }),
            Err(found) => panic!("{}", report(seed + number, habits, steps, found).await),
        }
    }
    eprintln!("{tally:#?}");
    for outcome in [
        "Accepted",
        "PartlyAccepted",
        "TypedThrough",
        "RejectedEsc",
        "RejectedTimeout",
        "RejectedEdit",
        "Superseded",
        "Unseen",
        "AcceptInPair",
    ] {
        assert!(tally.contains_key(outcome), "no story has {outcome}");
    }
}
