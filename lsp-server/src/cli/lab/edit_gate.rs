//! `hone lab edit-gate`: what the model's log-ratio adds to the gate for next edits, by the logs of
//! homes in which next edits were scored.

use crate::paths::Paths;
use anyhow::Result;
use comfy_table::{Table, presets};
use feedback::event::{Event, EventKind, OfferId};
use feedback::log::EventLog;
use feedback::sled_log::SledLog;
use policy::next_edit::EditGate;
use policy::next_edit::features::{self, Features, PRIOR};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// The first of the model's features, which are the last ones.
const LOG_RATIO: usize = features::FEATURES - 2;

/// Where a fit of the log-ratio's weight begins: it may be anything.
const OPEN_WEIGHT: (f64, f64) = (0.0, 1.0);

/// Deviation that the fitted weight gets, because users differ.
const DEVIATION: f64 = 0.4;

#[derive(Debug, clap::Args)]
pub struct EditGateArgs {
    /// Homes whose logs are replayed. Each is judged by a gate whose weight of the log-ratio is
    /// fitted to the other homes
    #[arg(required = true, value_name = "HOME")]
    homes: Vec<PathBuf>,
}

/// A next edit as a gate saw it before it learned what became of it.
#[derive(Clone, Copy)]
struct Judged {
    probability: f64,
    was_right: bool,
}

pub fn run(args: &EditGateArgs) -> Result<()> {
    let homes = args.homes.iter().map(|home| next_edits(home)).collect::<Result<Vec<_>>>()?;
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header([
        "home",
        "next edits",
        "right",
        "AUC without",
        "with",
        "Brier without",
        "with",
    ]);
    let (mut without, mut with) = (vec![], vec![]);
    for (index, events) in homes.iter().enumerate() {
        let others = homes.iter().enumerate().filter(|(other, _)| *other != index);
        let weight = fit(others.map(|(_, events)| events));
        let one = replay(&mut EditGate::default(), events, false);
        let mut gate = EditGate::with_prior(&prior(weight, DEVIATION));
        let other = replay(&mut gate, events, true);
        table.add_row(row(&args.homes[index].display().to_string(), &one, &other));
        without.extend(one);
        with.extend(other);
    }
    table.add_row(row("all", &without, &with));
    say!("{table}\nthe log-ratio's weight, fitted to all: {:.2}", fit(homes.iter()))
}

fn next_edits(home: &Path) -> Result<Vec<Event>> {
    let log = SledLog::open(&Paths::at(home.to_owned()).event_log())?;
    let mut events = vec![];
    log.scan(0, &mut |event| {
        if matches!(event.kind, EventKind::NextEdit(_) | EventKind::NextEditOutcome { .. }) {
            events.push(event);
        }
        ControlFlow::Continue(())
    })?;
    Ok(events)
}

fn prior(mean: f64, deviation: f64) -> [(f64, f64); features::FEATURES] {
    let mut prior = PRIOR;
    prior[LOG_RATIO] = (mean, deviation);
    prior
}

/// The log-ratio's weight after all of these events.
fn fit<'a>(homes: impl Iterator<Item = &'a Vec<Event>>) -> f64 {
    let mut gate = EditGate::with_prior(&prior(OPEN_WEIGHT.0, OPEN_WEIGHT.1));
    homes.for_each(|events| drop(replay(&mut gate, events, true)));
    gate.weights()[LOG_RATIO]
}

/// Has a gate judge each next edit before it learns what became of it.
fn replay(gate: &mut EditGate, events: &[Event], is_scored: bool) -> Vec<Judged> {
    let mut open: HashMap<OfferId, Features> = HashMap::new();
    let mut judged = vec![];
    for event in events {
        let mut event = event.clone();
        match &mut event.kind {
            EventKind::NextEdit(edit) => {
                let log_ratio = edit.log_ratio.filter(|_| is_scored);
                let record = edit.gate.as_mut().filter(|_| !edit.invoked);
                let seen = record.as_ref().and_then(|record| features::recorded(record));
                if let (Some(record), Some(mut seen)) = (record, seen) {
                    seen[LOG_RATIO..].copy_from_slice(&features::of_log_ratio(log_ratio));
                    record.features_version = features::FEATURES_VERSION;
                    record.features = seen.iter().map(|&value| value as f32).collect();
                    open.insert(edit.id.clone(), seen);
                }
            }
            EventKind::NextEditOutcome { id, outcome, .. } => {
                if let Some(was_right) = outcome.is_right()
                    && let Some(seen) = open.remove(id)
                {
                    let probability = f64::from(gate.judge_features(&seen, 0.5).probability);
                    judged.push(Judged { probability, was_right });
                }
            }
            _ => {}
        }
        gate.apply(&event);
    }
    judged
}

fn row(name: &str, without: &[Judged], with: &[Judged]) -> [String; 7] {
    let right = without.iter().filter(|one| one.was_right).count();
    let number = |value: Option<f64>| value.map_or("–".into(), |value| format!("{value:.3}"));
    [
        name.to_owned(),
        without.len().to_string(),
        right.to_string(),
        number(auc(without)),
        number(auc(with)),
        number(brier(without)),
        number(brier(with)),
    ]
}

/// How often a right next edit is judged likelier than a wrong one.
fn auc(judged: &[Judged]) -> Option<f64> {
    let (right, wrong): (Vec<Judged>, Vec<Judged>) = judged.iter().partition(|one| one.was_right);
    let won = |a: f64, b: f64| if a == b { 0.5 } else { f64::from(u8::from(a > b)) };
    let pairs =
        right.iter().flat_map(|a| wrong.iter().map(move |b| (a.probability, b.probability)));
    let count = right.len() * wrong.len();
    (count > 0).then(|| pairs.map(|(a, b)| won(a, b)).sum::<f64>() / count as f64)
}

/// The mean squared error of the probabilities.
fn brier(judged: &[Judged]) -> Option<f64> {
    let error = |one: &Judged| (one.probability - f64::from(u8::from(one.was_right))).powi(2);
    let sum: f64 = judged.iter().map(error).sum();
    (!judged.is_empty()).then(|| sum / judged.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_judge_that_separates_all_has_an_area_of_one() {
        let judged = |probability, was_right| Judged { probability, was_right };
        let all = [judged(0.9, true), judged(0.8, true), judged(0.3, false)];
        assert_eq!(auc(&all), Some(1.0));
        assert_eq!(auc(&all[..2]), None, "nothing is wrong");
        assert_eq!(auc(&[judged(0.5, true), judged(0.5, false)]), Some(0.5));
        assert_eq!(brier(&[judged(0.5, true), judged(0.0, false)]), Some(0.125));
    }
}
