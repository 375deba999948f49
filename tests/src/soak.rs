//! How long a test takes: short in `cargo xtask test`, long in `cargo xtask soak`.

use feedback::job::Distribution;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::time::{SystemTime, UNIX_EPOCH};

/// Rounds of a test that has a long form. `HONE_SOAK` is the share of the long form that is
/// run: 1 is all of it.
pub fn rounds(short: u64, long: u64) -> u64 {
    match std::env::var("HONE_SOAK").ok().and_then(|share| share.parse::<f64>().ok()) {
        Some(share) => ((long as f64 * share) as u64).max(short),
        None => short,
    }
}

/// The seed of a test's random numbers. It is printed, so that `HONE_SEED` can repeat a run.
pub fn seed() -> u64 {
    let asked = std::env::var("HONE_SEED").ok().and_then(|seed| seed.parse().ok());
    let now =
        || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64);
    let seed = asked.unwrap_or_else(|| now() & 0xffff_ffff);
    eprintln!("HONE_SEED={seed}");
    seed
}

/// The random numbers of a test.
pub struct Draws(StdRng);

impl Draws {
    pub fn new(seed: u64) -> Draws {
        Draws(StdRng::seed_from_u64(seed))
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0.random_range(0..limit.max(1))
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.0.random_range(0..items.len())]
    }
}

/// Returns the percentiles of the measured values, for the report of the long form.
pub fn percentiles(values: Vec<f64>) -> String {
    let Distribution { count, p50, p95, max, .. } =
        Distribution::of(values.into_iter().map(|value| value as f32).collect());
    format!("p50 {p50:.2}, p95 {p95:.2}, max {max:.2} ({count} values)")
}
