//! Rates, percentiles and the paired difference of the arms.

use crate::record::{ARMS, Asked, LineRecord};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::Serialize;

/// Parts the stream is cut into.
pub const QUARTERS: usize = 4;
/// Resamples of the bootstrap.
const RESAMPLES: usize = 2000;
/// Share of the bootstrap left out on each side: a 95 % interval.
const TAIL: f64 = 0.025;

/// One arm over one stretch of the stream. Rates are `None` where there is
/// nothing to divide by.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    pub asked: usize,
    pub shown: usize,
    pub accepted: usize,
    /// shown / asked
    pub shown_rate: Option<f64>,
    /// accepted / shown
    pub accept_rate: Option<f64>,
    pub typed_chars: usize,
    pub accepted_chars: usize,
    /// accepted characters / all characters of the typed lines, indentation aside
    pub completed_ratio: Option<f64>,
    pub latency_p50_ms: Option<f64>,
    pub latency_p95_ms: Option<f64>,
    /// The adapter version that served the stretch's last request; 0 is the base.
    pub adapter_version: u64,
}

/// The lines cut into four stretches of about as many points each; a line is
/// never cut.
pub fn quarters(lines: &[LineRecord]) -> [&[LineRecord]; QUARTERS] {
    let total: usize = lines.iter().map(|line| line.points.len()).sum();
    let mut ends = [lines.len(); QUARTERS];
    let mut points = 0;
    let mut quarter = 0;
    for (index, line) in lines.iter().enumerate() {
        while quarter + 1 < QUARTERS && points * QUARTERS >= total * (quarter + 1) && points > 0 {
            ends[quarter] = index;
            quarter += 1;
        }
        points += line.points.len();
    }
    std::array::from_fn(|q| {
        let start = if q == 0 { 0 } else { ends[q - 1] };
        &lines[start..ends[q]]
    })
}

pub fn summary(lines: &[LineRecord], arm: usize) -> Summary {
    let asked: Vec<Asked> = asked(lines, arm).collect();
    let shown = asked.iter().filter(|asked| asked.fate.is_some()).count();
    let accepted = asked.iter().filter(|asked| asked.accepted()).count();
    let typed_chars = lines.iter().map(|line| line.chars).sum();
    let accepted_chars = lines.iter().map(|line| line.accepted_chars[arm]).sum();
    let mut latencies: Vec<f64> = asked.iter().map(|asked| asked.latency_ms).collect();
    latencies.sort_by(f64::total_cmp);
    Summary {
        asked: asked.len(),
        shown,
        accepted,
        shown_rate: ratio(shown, asked.len()),
        accept_rate: ratio(accepted, shown),
        typed_chars,
        accepted_chars,
        completed_ratio: ratio(accepted_chars, typed_chars),
        latency_p50_ms: percentile(&latencies, 0.50),
        latency_p95_ms: percentile(&latencies, 0.95),
        adapter_version: asked.last().map_or(0, |asked| asked.version),
    }
}

fn asked(lines: &[LineRecord], arm: usize) -> impl Iterator<Item = Asked> + '_ {
    lines.iter().flat_map(|line| &line.points).filter_map(move |point| point.asked[arm])
}

fn ratio(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Nearest-rank percentile of values in rising order.
fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// Second arm minus first, with a 95 % interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    pub difference: f64,
    pub low: f64,
    pub high: f64,
    pub resamples: usize,
}

/// The difference of the accept rates, by a bootstrap that draws whole lines
/// with both arms in them: the arms meet the same text (paired), and what
/// happens twice on one line is not independent. `None` while an arm has shown
/// nothing.
pub fn accept_rate_difference(lines: &[LineRecord], seed: u64) -> Option<Difference> {
    let counts: Vec<[(usize, usize); ARMS]> = lines
        .iter()
        .map(|line| {
            std::array::from_fn(|arm| {
                let line = std::slice::from_ref(line);
                let shown = asked(line, arm).filter(|asked| asked.fate.is_some()).count();
                (asked(line, arm).filter(Asked::accepted).count(), shown)
            })
        })
        .collect();
    let difference = rate_difference(counts.iter())?;
    let mut rng = StdRng::seed_from_u64(seed);
    let mut draws: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            rate_difference(counts.iter().map(|_| &counts[rng.random_range(0..counts.len())]))
        })
        .collect();
    draws.sort_by(f64::total_cmp);
    Some(Difference {
        difference,
        low: percentile(&draws, TAIL)?,
        high: percentile(&draws, 1.0 - TAIL)?,
        resamples: draws.len(),
    })
}

fn rate_difference<'a>(lines: impl Iterator<Item = &'a [(usize, usize); ARMS]>) -> Option<f64> {
    let mut sums = [(0, 0); ARMS];
    for line in lines {
        for (sum, (accepted, shown)) in sums.iter_mut().zip(line) {
            sum.0 += accepted;
            sum.1 += shown;
        }
    }
    Some(ratio(sums[1].0, sums[1].1)? - ratio(sums[0].0, sums[0].1)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::PointRecord;
    use crate::typist::Fate;

    fn asked_with(fate: Option<Fate>, latency_ms: f64, version: u64) -> Option<Asked> {
        Some(Asked { latency_ms, version, fate })
    }

    /// Ten characters; each arm accepts all of them or types on.
    fn line(accepts: [bool; ARMS], latency_ms: f64) -> LineRecord {
        let fate = |yes| if yes { Fate::Accepted { chars: 10 } } else { Fate::TypedOn };
        LineRecord {
            chars: 10,
            accepted_chars: accepts.map(|yes| if yes { 10 } else { 0 }),
            points: vec![PointRecord {
                asked: accepts.map(|yes| asked_with(Some(fate(yes)), latency_ms, 1)).to_owned(),
            }],
        }
    }

    #[test]
    fn a_summary_divides_what_it_says() {
        let mut lines: Vec<_> = (1..=20).map(|ms| line([ms <= 5, false], ms as f64)).collect();
        lines.push(LineRecord {
            chars: 50,
            points: vec![PointRecord { asked: [asked_with(None, 100.0, 3), None] }],
            ..LineRecord::default()
        });
        let summary = summary(&lines, 0);
        assert_eq!((summary.asked, summary.shown, summary.accepted), (21, 20, 5));
        assert_eq!(summary.accept_rate, Some(0.25));
        assert_eq!(summary.completed_ratio, Some(0.2));
        assert_eq!((summary.latency_p50_ms, summary.latency_p95_ms), (Some(11.0), Some(20.0)));
        assert_eq!(summary.adapter_version, 3);
        assert_eq!(super::summary(&[], 0).accept_rate, None);
    }

    #[test]
    fn quarters_cover_the_stream_in_even_parts_without_cutting_a_line() {
        let lines: Vec<_> = (0..103).map(|n| line([n % 2 == 0; 2], 1.0)).collect();
        let parts = quarters(&lines);
        assert_eq!(parts.iter().map(|part| part.len()).sum::<usize>(), 103);
        assert!(parts.iter().all(|part| (25..=26).contains(&part.len())));
        assert_eq!(quarters(&[]).map(<[_]>::len), [0; 4]);
        assert_eq!(quarters(&lines[..1]).map(<[_]>::len).iter().sum::<usize>(), 1);
        assert_eq!(quarters(&lines[..4]).map(<[_]>::len), [1; 4]);
    }

    #[test]
    fn the_interval_holds_a_clear_difference_away_from_zero() {
        let lines: Vec<_> = (0..200).map(|n| line([n % 4 == 0, n % 2 == 0], 1.0)).collect();
        let difference = accept_rate_difference(&lines, 1).unwrap();
        assert!((difference.difference - 0.25).abs() < 1e-9);
        assert!(difference.low > 0.15 && difference.high < 0.35, "{difference:?}");
        assert_eq!(accept_rate_difference(&lines, 1).unwrap(), difference);
    }

    #[test]
    fn equal_arms_differ_by_nothing_and_empty_ones_have_no_difference() {
        let lines: Vec<_> = (0..50).map(|n| line([n % 3 == 0; 2], 1.0)).collect();
        let difference = accept_rate_difference(&lines, 1).unwrap();
        assert_eq!((difference.low, difference.high), (0.0, 0.0), "paired by line");
        assert_eq!(accept_rate_difference(&[], 1), None);
    }
}
