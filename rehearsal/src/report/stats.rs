//! Rates and percentiles of an arm, and how it compares with another arm over the same text.

use crate::limits::{self, COMMITS_MIN};
use crate::run::record::{ArmRecord, LineRecord, RequestRecord};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::Serialize;
use std::ops::{AddAssign, Range};

/// Parts into which the stream is cut.
pub const QUARTERS: usize = 4;

/// One arm over one stretch of the stream. A rate is `None` where there is nothing to divide by.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmSummary {
    pub asked: usize,
    pub shown: usize,
    pub accepted: usize,
    /// shown / asked
    pub shown_rate: Option<f64>,
    /// accepted / shown
    pub accept_rate: Option<f64>,
    pub lines: usize,
    /// Offers that were shown and not accepted, for every hundred lines.
    pub wrong_per_100_lines: Option<f64>,
    pub typed_chars: usize,
    pub completed_chars: usize,
    /// completed characters / all characters of the typed lines, without indentation
    pub completed_ratio: Option<f64>,
    /// Share of the inserted characters that stayed.
    pub kept_rate: Option<f64>,
    /// Share of the answers that came after the developer would have typed on.
    pub cancel_rate: Option<f64>,
    /// Accepted offers that closed a bracket or quote which the editor had closed already.
    pub doubled: usize,
    /// Mean of the judge's ratings, 0 to 10.
    pub rating: Option<f64>,
    pub latency_p50_ms: Option<f64>,
    pub latency_p95_ms: Option<f64>,
    /// The adapter version that served the last request of the stretch; 0 is the base model.
    pub adapter_version: u64,
}

/// The places of a quarter of a stream.
pub fn quarter(places: usize, quarter: usize) -> Range<usize> {
    let bound = |quarter: usize| places * quarter / QUARTERS;
    let end = if quarter + 1 == QUARTERS { usize::MAX } else { bound(quarter + 1) };
    bound(quarter)..end
}

/// An arm over the lines that begin at these places of the stream.
pub fn summary(record: &ArmRecord, places: &Range<usize>) -> ArmSummary {
    let lines = || lines(record, places);
    let asked: Vec<RequestRecord> = lines().flat_map(|line| &line.requests).copied().collect();
    let counts = lines().fold(OfferCounts::default(), |mut counts, line| {
        counts += OfferCounts::of(line);
        counts
    });
    let inserted: usize =
        asked.iter().filter_map(|a| a.outcome).map(|outcome| outcome.inserted()).sum();
    let late = asked.iter().filter(|request| request.late).count();
    let mut latencies: Vec<f64> = asked.iter().map(|request| request.latency_ms).collect();
    latencies.sort_by(f64::total_cmp);
    let lines = lines().count();
    ArmSummary {
        asked: asked.len(),
        shown: counts.shown,
        accepted: counts.accepted,
        shown_rate: ratio(counts.shown, asked.len()),
        accept_rate: ratio(counts.accepted, counts.shown),
        lines,
        wrong_per_100_lines: ratio(100 * (counts.shown - counts.accepted), lines),
        typed_chars: counts.typed_chars,
        completed_chars: counts.completed_chars,
        completed_ratio: ratio(counts.completed_chars, counts.typed_chars),
        kept_rate: ratio(counts.completed_chars, inserted),
        cancel_rate: ratio(late, asked.len()),
        doubled: asked.iter().filter(|request| request.doubled).count(),
        rating: mean(&asked.iter().filter_map(|request| request.rating).collect::<Vec<_>>()),
        latency_p50_ms: percentile(&latencies, 0.50),
        latency_p95_ms: percentile(&latencies, 0.95),
        adapter_version: asked.last().map_or(0, |request| request.version),
    }
}

fn lines<'a>(
    record: &'a ArmRecord,
    places: &'a Range<usize>,
) -> impl Iterator<Item = &'a LineRecord> {
    record.lines.iter().filter(|line| places.contains(&line.place))
}

fn ratio(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the nearest-rank percentile of values in rising order, or `None` without values.
pub fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// The counts from which comparisons are computed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct OfferCounts {
    pub shown: usize,
    pub accepted: usize,
    pub completed_chars: usize,
    pub typed_chars: usize,
}

impl OfferCounts {
    fn of(line: &LineRecord) -> OfferCounts {
        OfferCounts {
            shown: line.requests.iter().filter(|request| request.outcome.is_some()).count(),
            accepted: line.requests.iter().filter(|request| request.is_accepted()).count(),
            completed_chars: line.completed(),
            typed_chars: line.chars,
        }
    }
}

impl AddAssign for OfferCounts {
    fn add_assign(&mut self, other: OfferCounts) {
        self.shown += other.shown;
        self.accepted += other.accepted;
        self.completed_chars += other.completed_chars;
        self.typed_chars += other.typed_chars;
    }
}

/// An arm commit by commit, in the order of the stream. `commits` holds the commit of each file
/// change; a line names its file change by index.
pub fn by_commit<'a>(record: &ArmRecord, commits: &'a [String]) -> Vec<(&'a str, OfferCounts)> {
    let mut all: Vec<(&str, OfferCounts)> = Vec::new();
    for line in &record.lines {
        let commit = commits[line.file].as_str();
        if all.last().is_none_or(|(last, _)| *last != commit) {
            all.push((commit, OfferCounts::default()));
        }
        if let Some((_, counts)) = all.last_mut() {
            *counts += OfferCounts::of(line);
        }
    }
    all
}

/// A number of one arm compared with the same number of another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RelativeChange {
    pub from: f64,
    pub to: f64,
    /// to / from − 1
    pub relative: f64,
    /// The 95 % interval of `relative`. `None` with fewer than [`COMMITS_MIN`] commits.
    pub interval: Option<Interval>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

/// One arm compared with another over the same text. A change is `None` where there is nothing to
/// divide by.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    pub accept_rate: Option<RelativeChange>,
    /// Offers shown.
    pub shown: Option<RelativeChange>,
    pub completed_chars: Option<RelativeChange>,
    /// Changes like `completed_chars`, because both arms typed the same text.
    pub completed_ratio: Option<RelativeChange>,
}

/// The two arms of one repository, commit by commit.
#[derive(Debug, Clone, Default)]
pub struct ArmPair {
    commits: Vec<[OfferCounts; 2]>,
}

impl ArmPair {
    /// Pairs the lines that begin at these places and that both arms have reached. `commit_of`
    /// holds the commit of each file change.
    pub fn new(
        [from, to]: [&ArmRecord; 2],
        commit_of: &[String],
        places: &Range<usize>,
    ) -> ArmPair {
        let mut commits: Vec<[OfferCounts; 2]> = Vec::new();
        let mut last = None;
        for (a, b) in lines(from, places).zip(lines(to, places)) {
            let commit = &commit_of[a.file];
            if last.replace(commit) != Some(commit) {
                commits.push([OfferCounts::default(); 2]);
            }
            if let Some(counts) = commits.last_mut() {
                counts[0] += OfferCounts::of(a);
                counts[1] += OfferCounts::of(b);
            }
        }
        ArmPair { commits }
    }
}

/// Compares two arms over all repositories together. The intervals come from a bootstrap.
///
/// - It draws whole commits, because what happens within a commit is not independent: a refactoring
///   changes a hundred call sites in the same way.
/// - A drawn commit brings both arms, because they meet the same text (a paired comparison).
/// - It draws from the commits of all repositories at once. Drawn within each repository, one that
///   has a single large commit would seem to have no variance.
pub fn compare(pairs: &[ArmPair], seed: u64) -> Comparison {
    let commits: Vec<&[OfferCounts; 2]> = pairs.iter().flat_map(|pair| &pair.commits).collect();
    let sum = |draw: &mut dyn FnMut(usize) -> usize| {
        (0..commits.len()).fold([OfferCounts::default(); 2], |mut sums, index| {
            let commit = commits[draw(index)];
            sums[0] += commit[0];
            sums[1] += commit[1];
            sums
        })
    };
    let sums = sum(&mut |index| index);
    let mut rng = StdRng::seed_from_u64(seed);
    let resamples = if commits.len() < COMMITS_MIN { 0 } else { limits::RESAMPLES };
    let draws: Vec<[OfferCounts; 2]> =
        (0..resamples).map(|_| sum(&mut |_| rng.random_range(0..commits.len()))).collect();
    let change = |value: &dyn Fn(&OfferCounts) -> Option<f64>| -> Option<RelativeChange> {
        let relative = |[from, to]: &[OfferCounts; 2]| {
            let from = value(from).filter(|from| *from > 0.0)?;
            Some(value(to)? / from - 1.0)
        };
        let mut drawn: Vec<f64> = draws.iter().filter_map(relative).collect();
        drawn.sort_by(f64::total_cmp);
        let at = |share: f64| percentile(&drawn, share);
        let interval = at(limits::TAIL_SHARE)
            .zip(at(1.0 - limits::TAIL_SHARE))
            .map(|(low, high)| Interval { low, high });
        Some(RelativeChange {
            from: value(&sums[0])?,
            to: value(&sums[1])?,
            relative: relative(&sums)?,
            interval,
        })
    };
    Comparison {
        accept_rate: change(&|counts| ratio(counts.accepted, counts.shown)),
        shown: change(&|counts| Some(counts.shown as f64)),
        completed_chars: change(&|counts| Some(counts.completed_chars as f64)),
        completed_ratio: change(&|counts| ratio(counts.completed_chars, counts.typed_chars)),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::developer::OfferOutcome;

    /// A line of ten characters with one offer on it, which is accepted or not.
    pub fn line(index: usize, accepted: bool, latency_ms: f64) -> LineRecord {
        let outcome =
            if accepted { OfferOutcome::Accepted { chars: 10 } } else { OfferOutcome::TypedOn };
        let late = latency_ms > 15.0;
        let asked = RequestRecord {
            place: index,
            latency_ms,
            late,
            version: 1,
            outcome: Some(outcome),
            rating: None,
            doubled: false,
        };
        LineRecord { file: index / 5, place: index, chars: 10, requests: vec![asked] }
    }

    fn record(lines: usize, accepted: impl Fn(usize) -> bool) -> ArmRecord {
        let lines = (0..lines).map(|index| line(index, accepted(index), 1.0)).collect();
        ArmRecord { lines, ..ArmRecord::default() }
    }

    const ALL: Range<usize> = 0..usize::MAX;

    /// Every file change is a commit of its own.
    fn pair(from: &ArmRecord, to: &ArmRecord, places: &Range<usize>) -> ArmPair {
        let commits: Vec<_> = (0..80).map(|file| file.to_string()).collect();
        ArmPair::new([from, to], &commits, places)
    }

    #[test]
    fn the_rates_of_a_summary_are_its_counts_divided() {
        let mut lines: Vec<_> = (1..=20).map(|ms| line(ms, ms <= 5, ms as f64)).collect();
        lines[4].requests[0].outcome = Some(OfferOutcome::Mended { chars: 8, of: 12 });
        (lines[0].requests[0].rating, lines[1].requests[0].rating) = (Some(4.0), Some(8.0));
        let no_offer = RequestRecord {
            place: 21,
            latency_ms: 100.0,
            late: true,
            version: 3,
            outcome: None,
            rating: None,
            doubled: false,
        };
        lines.push(LineRecord { file: 9, place: 21, chars: 50, requests: vec![no_offer] });
        let summary = summary(&ArmRecord { lines, ..ArmRecord::default() }, &ALL);
        assert_eq!((summary.asked, summary.shown, summary.accepted), (21, 20, 5));
        assert_eq!(summary.accept_rate, Some(0.25));
        assert_eq!((summary.lines, summary.wrong_per_100_lines), (21, Some(1500.0 / 21.0)));
        assert_eq!(summary.completed_ratio, Some(48.0 / 250.0));
        assert_eq!(summary.kept_rate, Some(48.0 / 52.0));
        assert_eq!(summary.cancel_rate, Some(6.0 / 21.0));
        assert_eq!(summary.rating, Some(6.0));
        assert_eq!((summary.latency_p50_ms, summary.latency_p95_ms), (Some(11.0), Some(20.0)));
        assert_eq!(summary.adapter_version, 3);
        assert_eq!(super::summary(&ArmRecord::default(), &ALL).accept_rate, None);
    }

    #[test]
    fn quarters_cover_the_stream_in_even_parts() {
        let record = record(103, |_| true);
        let parts = (0..QUARTERS).map(|part| lines(&record, &quarter(103, part)).count());
        assert_eq!(parts.collect::<Vec<_>>(), [25, 26, 26, 26]);
        assert!(quarter(103, 3).contains(&500), "the last line's places belong to it");
    }

    #[test]
    fn the_interval_holds_a_clear_difference_away_from_zero() {
        let (from, to) = (record(400, |n| n % 4 == 0), record(400, |n| n % 2 == 0));
        let pairs = [pair(&from, &to, &ALL), pair(&from, &to, &(0..200))];
        let comparison = compare(&pairs, 1);
        let rate = comparison.accept_rate.clone().unwrap();
        assert!((rate.relative - 1.0).abs() < 1e-9 && rate.from == 0.25, "{rate:?}");
        let interval = rate.interval.unwrap();
        assert!(interval.low > 0.7 && interval.high < 1.4, "{rate:?}");
        assert_eq!(comparison.shown.clone().unwrap().relative, 0.0);
        assert_eq!(compare(&pairs, 1), comparison, "the seed decides");
    }

    #[test]
    fn equal_arms_differ_by_nothing_and_empty_ones_are_not_compared() {
        let one = record(50, |n| n % 3 == 0);
        let rate = compare(&[pair(&one, &one, &ALL)], 1).accept_rate.unwrap();
        assert_eq!(rate.interval, Some(Interval { low: 0.0, high: 0.0 }), "paired");
        assert_eq!(compare(&[ArmPair::default()], 1).accept_rate, None);
    }

    /// Five lines are one file change and one commit.
    #[test]
    fn a_few_commits_have_no_interval_and_each_repository_adds_its_own() {
        let of = |from: usize, lines: usize| {
            let (base, learned) = (record(from, |n| n % 4 == 0), record(from, |n| n % 2 == 0));
            pair(&base, &learned, &(0..lines))
        };
        let rate = |pairs: &[ArmPair]| compare(pairs, 1).accept_rate.unwrap();
        assert!(rate(&[of(400, 5 * COMMITS_MIN - 5)]).interval.is_none());
        assert!(rate(&[of(400, 5 * COMMITS_MIN)]).interval.is_some());

        // Eight repositories have one commit each, and the arm learned in one of them. That is no
        // certainty.
        let same = record(5, |n| n % 2 == 0);
        let mut pairs = vec![pair(&same, &same, &ALL); COMMITS_MIN - 1];
        pairs.push(of(5, 5));
        let interval = rate(&pairs).interval.unwrap();
        assert!(interval.low < interval.high, "{interval:?}");
    }

    #[test]
    fn an_arm_that_got_less_far_is_compared_as_far_as_it_got() {
        let pair = pair(&record(100, |_| true), &record(50, |_| true), &ALL);
        let comparison = compare(&[pair], 1);
        assert_eq!(comparison.shown.unwrap().relative, 0.0);
    }

    /// Forty files that are independent would tell much. Forty files of one refactoring tell
    /// nothing.
    #[test]
    fn a_commit_is_drawn_as_a_whole() {
        let (from, to) = (record(200, |n| n % 4 == 0), record(200, |n| n % 2 == 0));
        let interval = |commits: &[String]| {
            compare(&[ArmPair::new([&from, &to], commits, &ALL)], 1).accept_rate.unwrap().interval
        };
        let one = vec!["one".to_owned(); 40];
        assert!(interval(&one).is_none());
        let all = by_commit(&to, &one);
        let counts =
            OfferCounts { shown: 200, accepted: 100, completed_chars: 1000, typed_chars: 2000 };
        assert_eq!(all, [("one", counts)]);
        // Four files a commit.
        let ten: Vec<_> = (0..40).map(|file| (file / 4).to_string()).collect();
        assert!(interval(&ten).is_some());
        assert_eq!(by_commit(&to, &ten).len(), 10);
    }
}
