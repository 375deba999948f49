//! How long a test takes: short in `cargo xtask test`, long in `cargo xtask soak`.

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

/// Random numbers by SplitMix64 (Steele, Lea and Flood 2014).
pub struct Draws(u64);

impl Draws {
    pub fn new(seed: u64) -> Draws {
        Draws(seed)
    }

    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.draw() % limit.max(1)
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }
}

/// Nearest-rank percentiles of the measured values, for the report of the long form.
pub fn percentiles(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let rank = |q: f64| match values.len() {
        0 => f64::NAN,
        n => values[((n - 1) as f64 * q).round() as usize],
    };
    format!(
        "p50 {:.2}, p95 {:.2}, max {:.2} ({} values)",
        rank(0.5),
        rank(0.95),
        rank(1.0),
        values.len()
    )
}
