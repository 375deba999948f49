//! Tries choices among the candidates of places that were computed before.

mod fit;
mod lines;
mod names;
mod shown;

use super::record::Record;
use super::typing::Kind;
use crate::lines::first_line;
use crate::places::features::{
    Candidate, FEATURES, Features, NAMES, Surroundings, features, line_logprob,
};
use completion::syntax;
use fit::{Sample, fit, score};
use lines::{Outcome, compared, outcome};
use std::collections::BTreeSet;
use std::fmt::Write;

/// As many candidates as a request by hand has as installed.
const INSTALLED: usize = 3;

/// Lines above the cursor that count as close by, in characters.
const NEAR_CHARS: usize = 1_500;

/// Chooses a candidate of a place.
type Choice<'a> = &'a dyn Fn(&Tried) -> usize;

/// A place with what each of its candidates would be worth.
struct Tried<'a> {
    record: &'a Record,
    candidates: Vec<&'a super::record::Candidate>,
    outcomes: Vec<Outcome>,
    features: Vec<Features>,
    lines: Vec<f64>,
    means: Vec<f64>,
}

impl<'a> Tried<'a> {
    /// The place with its first `count` candidates. Those that show nothing are left out, as they
    /// are by hand.
    fn new(record: &'a Record, count: usize) -> Tried<'a> {
        let all = record.candidates.iter().take(count);
        let shown: Vec<_> = all.filter(|one| !one.shown.trim().is_empty()).collect();
        let logprobs: Vec<Vec<f32>> = shown.iter().map(|one| new_logprobs(one)).collect();
        let candidates: Vec<Candidate> = shown
            .iter()
            .zip(&logprobs)
            .map(|(one, logprobs)| {
                let text = first_line(&one.shown);
                let unknown = || one.names.iter().filter(|name| names::is_unknown(name));
                Candidate {
                    text,
                    logprobs,
                    ends: one.stop.is_policy_choice(),
                    unknown_names: unknown().count(),
                    unknown_members: unknown().filter(|name| name.is_member).count(),
                    errors: errors(record, text),
                }
            })
            .collect();
        let before = &record.before;
        let from = before.char_indices().rev().nth(NEAR_CHARS).map_or(0, |(at, _)| at);
        let around = Surroundings {
            line_before: record.line_before(),
            above: record.above(),
            below: record.below(),
            near: &before[from..],
        };
        let mean = |one: &Candidate| line_logprob(one) / one.logprobs.len().max(1) as f64;
        Tried {
            record,
            candidates: shown.clone(),
            outcomes: candidates.iter().map(|one| outcome(one.text, record)).collect(),
            features: features(&candidates, &around),
            lines: candidates.iter().map(line_logprob).collect(),
            means: candidates.iter().map(mean).collect(),
        }
    }

    fn samples(&self) -> impl Iterator<Item = Sample> {
        self.features.iter().zip(&self.outcomes).map(|(features, one)| (*features, one.is_exact))
    }

    /// Returns what a candidate is worth; nothing where no candidate shows anything.
    fn outcome(&self, index: usize) -> Outcome {
        self.outcomes.get(index).copied().unwrap_or_default()
    }

    fn best(&self, worth: impl Fn(usize) -> f64) -> usize {
        // The first of those that are worth the same.
        let order = (0..self.outcomes.len()).rev();
        order.max_by(|a, b| worth(*a).total_cmp(&worth(*b))).unwrap_or_default()
    }
}

/// The log-probs of the tokens that are new to the user, up to the end of the first line.
fn new_logprobs(one: &super::record::Candidate) -> Vec<f32> {
    one.tokens.iter().skip(one.healed).map(|(_, _, visible)| visible.min(0.0)).collect()
}

fn errors(record: &Record, line: &str) -> usize {
    let text = format!("{}{line}\n{}", record.before, record.after);
    syntax::errors(&record.language, &text).unwrap_or_default()
}

/// Returns what the choices give, as text.
pub fn report(records: &[Record], tuning: &[String]) -> String {
    let mut report = String::new();
    for count in [INSTALLED, usize::MAX] {
        let title = if count == INSTALLED { "three candidates" } else { "all candidates" };
        let tried: Vec<Tried> = records.iter().map(|record| Tried::new(record, count)).collect();
        let is_tuning = |one: &&Tried| tuning.contains(&one.record.repository);
        let (tuned, test): (Vec<&Tried>, Vec<&Tried>) = tried.iter().partition(is_tuning);
        let _ = writeln!(report, "# {title}\n");
        // Each tuning repository is judged by weights of the others.
        let by_others = |one: &Tried| {
            let others =
                tuned.iter().filter(|other| other.record.repository != one.record.repository);
            fit(&others.flat_map(|other| other.samples()).collect::<Vec<_>>())
        };
        let repositories: BTreeSet<&str> =
            tuned.iter().map(|one| one.record.repository.as_str()).collect();
        let of_each: Vec<(&str, Features)> = repositories
            .into_iter()
            .filter_map(|name| {
                let one = tuned.iter().find(|one| one.record.repository == name)?;
                Some((name, by_others(one)))
            })
            .collect();
        let left_out = |one: &Tried| {
            let known = of_each.iter().find(|(name, _)| *name == one.record.repository);
            known.map_or([0.0; FEATURES], |(_, weights)| *weights)
        };
        report.push_str(&table("tuning, each by weights of the others", &tuned, &left_out));
        let weights = fit(&tuned.iter().flat_map(|one| one.samples()).collect::<Vec<_>>());
        report.push_str(&table("test, by weights of the tuning places", &test, &|_| weights));
        for (name, weight) in NAMES.iter().zip(weights) {
            let _ = writeln!(report, "    {weight:>6.2}  {name}");
        }
        report.push('\n');
    }
    let of =
        |tuned: bool| records.iter().filter(move |one| tuning.contains(&one.repository) == tuned);
    report.push_str(&names::table("tuning", of(true)));
    report.push_str(&names::table("test", of(false)));
    report
}

fn table(title: &str, places: &[&Tried], weights: &dyn Fn(&Tried) -> Features) -> String {
    if places.is_empty() {
        return String::new();
    }
    let commits: BTreeSet<&str> = places.iter().map(|one| one.record.commit.as_str()).collect();
    let mut table = format!("## {title}: {} places of {} commits\n\n", places.len(), commits.len());
    let learned = |one: &Tried| {
        let weights = weights(one);
        one.best(|index| score(&weights, &one.features[index]))
    };
    let choices: [(&str, Choice); 5] = [
        ("first answer", &|one| one.best(|index| -(index as f64))),
        ("log-prob with the line's end", &|one| one.best(|index| one.lines[index])),
        ("mean log-prob", &|one| one.best(|index| one.means[index])),
        ("learned", &learned),
        ("any right", &|one| {
            let worth = |index: usize| {
                let Outcome { is_exact, right_chars } = one.outcomes[index];
                f64::from(u8::from(is_exact)) * 1e6 + right_chars as f64
            };
            one.best(worth)
        }),
    ];
    let first: Vec<Outcome> = places.iter().map(|one| one.outcome(0)).collect();
    for (name, choice) in choices {
        let chosen: Vec<Outcome> = places.iter().map(|one| one.outcome(choice(one))).collect();
        let pairs: Vec<(&str, Outcome, Outcome)> = places
            .iter()
            .zip(first.iter().zip(&chosen))
            .map(|(one, (first, chosen))| (one.record.commit.as_str(), *first, *chosen))
            .collect();
        let _ = writeln!(table, "{name:<30}{}", compared(&pairs));
        if name == "learned" || name == "first answer" || name == "any right" {
            for kind in Kind::ALL {
                let of_kind = places.iter().zip(&chosen).filter(|(one, _)| one.record.kind == kind);
                let (count, exact) = of_kind.fold((0, 0), |(count, exact), (_, chosen)| {
                    (count + 1, exact + usize::from(chosen.is_exact))
                });
                let _ = writeln!(table, "    {exact:>4} of {count:>4} {kind:?}");
            }
        }
    }
    table.push_str(&shown::table(places, &learned));
    table
}
