//! What the first answer and the best of several are worth, by kind of place and model.

use super::record::{Outcome, Record};
use super::typing::Kind;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

/// As many answers as a request by hand has as installed.
const INSTALLED: usize = 3;

/// Resamples of a bootstrap.
const RESAMPLES: usize = 4_000;

/// A model with the places that were computed with it.
pub struct Computed {
    pub model: String,
    pub records: Vec<Record>,
}

/// Compares models at the places that all of them have. Intervals draw commits, and are of the
/// difference to the first model.
pub fn table(all: &[Computed]) -> String {
    let Some((first, others)) = all.split_first() else { return String::new() };
    let keys = |one: &Computed| one.records.iter().map(|record| record.key.clone()).collect();
    let shared = others.iter().map(keys).fold(keys(first), |shared: HashSet<String>, other| {
        shared.intersection(&other).cloned().collect()
    });
    let of = |one: &Computed| -> BTreeMap<String, Record> {
        let records = one.records.iter().filter(|record| shared.contains(&record.key));
        records.map(|record| (record.key.clone(), record.clone())).collect()
    };
    let base = of(first);
    let commits: HashSet<&str> = base.values().map(|record| &*record.commit).collect();
    let mut table = format!("{} places of {} commits\n", base.len(), commits.len());
    for one in all {
        let own = of(one);
        let _ = writeln!(table, "\n{}", one.model);
        let kinds = std::iter::once(None).chain(Kind::ALL.map(Some));
        for kind in kinds {
            let pairs = base.iter().map(|(key, before)| (before, &own[key]));
            let pairs: Vec<_> =
                pairs.filter(|pair| kind.is_none_or(|kind| pair.0.kind == kind)).collect();
            let _ = writeln!(table, "{}", row(kind, &pairs));
        }
    }
    table
}

/// The places of a kind, each as the first model and as another one has it.
fn row(kind: Option<Kind>, pairs: &[(&Record, &Record)]) -> String {
    let exact = |record: &Record| usize::from(record.outcome(0).is_exact);
    let chars = |record: &Record| record.outcome(0).right_chars;
    let of = |worth: &dyn Fn(&Record) -> usize| {
        let (low, high) = interval(pairs, worth);
        let (before, after) = sums(pairs.iter(), worth);
        format!("{after:>5} {:+5.1} % ({low:+.1} … {high:+.1})", gain(before, after))
    };
    let any = pairs.iter().filter(|(_, own)| best(own).is_exact).count();
    let name = kind.map_or("all", Kind::name);
    format!(
        "{name:<12}{:>4}  exact {:<28}  any of {INSTALLED} exact {any:>4}  right characters {}",
        pairs.len(),
        of(&exact),
        of(&chars)
    )
}

/// The best of the answers that a request by hand has as installed.
fn best(record: &Record) -> Outcome {
    let outcomes = (0..INSTALLED).map(|answer| record.outcome(answer));
    outcomes.max_by_key(|one| (one.is_exact, one.right_chars)).unwrap_or_default()
}

fn sums<'a>(
    pairs: impl Iterator<Item = &'a (&'a Record, &'a Record)>,
    worth: &dyn Fn(&Record) -> usize,
) -> (usize, usize) {
    pairs.fold((0, 0), |sum, pair| (sum.0 + worth(pair.0), sum.1 + worth(pair.1)))
}

/// By how many percent there is more.
fn gain(before: usize, after: usize) -> f64 {
    100.0 * (after as f64 / before.max(1) as f64 - 1.0)
}

/// The 95 % interval of the gain: a paired bootstrap over commits.
fn interval(pairs: &[(&Record, &Record)], worth: &dyn Fn(&Record) -> usize) -> (f64, f64) {
    let mut commits: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (before, after) in pairs {
        let sum = commits.entry(&before.commit).or_default();
        *sum = (sum.0 + worth(before), sum.1 + worth(after));
    }
    let commits: Vec<(usize, usize)> = commits.into_values().collect();
    if commits.is_empty() {
        return (0.0, 0.0);
    }
    let mut random = StdRng::seed_from_u64(1);
    let mut gains: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let drawn = (0..commits.len()).map(|_| commits[random.random_range(0..commits.len())]);
            let (before, after) = drawn.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            gain(before, after)
        })
        .collect();
    gains.sort_by(f64::total_cmp);
    (gains[RESAMPLES * 25 / 1000], gains[RESAMPLES * 975 / 1000])
}
