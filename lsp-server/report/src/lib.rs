//! The report of `hone report`: what became of the offers, by adapter and by day, and of the next
//! edits. It has numbers only, and none of the user's text.

// As in `lsp-server/src/lib.rs`: nothing is printed, and a module that starts a program says so.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]
#![warn(clippy::disallowed_types)]

pub mod chart;
pub mod export;
pub mod layout;
pub mod lineage;
pub mod next_edits;
pub mod offers;
pub mod outlook;
pub mod page;
pub mod status;
pub mod table;
pub mod testing;

use crate::next_edits::NextEdits;
use crate::offers::OfferHistory;
use crate::outlook::{Outlook, OutlookBuilder};
use adapters::registry::{Entry, IMPORTED};
use completion::auto_closed::only_closes;
use feedback::event::{AdapterVersion, Outcome, Typed};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;
use std::collections::BTreeMap;

/// The standard deviations of a 95 % interval.
const Z: f64 = 1.96;

#[derive(Debug, Serialize)]
pub struct Report {
    pub hone: String,
    pub model: String,
    pub made_at: String,
    /// The first and the last day with an offer.
    pub from: Option<Date>,
    pub to: Option<Date>,
    pub all: Figures,
    /// The offers that do nothing but close brackets, which many editors do by themselves. They are
    /// in the other figures too.
    pub closing: Figures,
    /// The versions, oldest first. Base models come before their adapters.
    pub versions: Vec<Version>,
    pub days: Vec<Day>,
    pub outcomes: Vec<Count>,
    /// What became of the next edits; `None` if there were none.
    pub next_edits: Option<NextEdits>,
    /// What another eagerness would have meant.
    pub outlooks: Vec<Outlook>,
    pub lineage: Vec<Adapter>,
}

/// The figures of a set of offers.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Completions computed.
    pub requested: u64,
    /// Completions that had an offer.
    pub shown: u64,
    /// The share of the computed completions that had an offer.
    pub shown_rate: Option<f64>,
    /// Offers with a verdict of the user.
    pub judged: u64,
    /// Offers that were accepted as a whole or in part, or typed as they were offered.
    pub accepted: u64,
    pub accept: Option<Interval>,
    /// The mean share of accepted text that was left at the last check.
    pub kept: Option<f64>,
    /// Characters that were inserted and not typed.
    pub saved: u64,
    /// Those of them that were left at the last check, since what was typed is recorded.
    pub kept_chars: f64,
    /// Characters that the user typed where completions were recorded.
    pub typed_chars: u64,
    pub typed_lines: u64,
    /// `kept_chars` / (`kept_chars` + `typed_chars`)
    pub kept_share: Option<f64>,
    /// Offers that were rejected, for every hundred lines that the user typed.
    pub wrong_per_100_lines: Option<f64>,
    pub p50_ms: Option<f64>,
    pub p95_ms: Option<f64>,
}

/// A rate with its 95 % confidence interval (Wilson 1927), which also holds for few offers, unlike
/// the usual one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    pub rate: f64,
    pub low: f64,
    pub high: f64,
}

impl Interval {
    pub fn of(accepted: u64, judged: u64) -> Option<Interval> {
        if judged == 0 {
            return None;
        }
        let n = judged as f64;
        let rate = accepted as f64 / n;
        let middle = (rate + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
        let spread = rate * (1.0 - rate) / n + Z * Z / (4.0 * n * n);
        let half = Z * spread.sqrt() / (1.0 + Z * Z / n);
        Some(Interval { rate, low: (middle - half).max(0.0), high: (middle + half).min(1.0) })
    }
}

#[derive(Debug, Serialize)]
pub struct Version {
    /// `base` or `v3`, with its model's hash if there are several models.
    pub name: String,
    pub adapter: AdapterVersion,
    #[serde(flatten)]
    pub figures: Figures,
}

#[derive(Debug, Serialize)]
pub struct Day {
    pub date: Date,
    #[serde(flatten)]
    pub figures: Figures,
}

#[derive(Debug, Serialize)]
pub struct Count {
    /// The index of the outcome in [`OUTCOMES`], which also chooses its colour.
    pub index: usize,
    pub name: &'static str,
    /// Whether the user accepted (`taken`) or rejected such an offer, or gave no verdict.
    pub kind: &'static str,
    pub offers: u64,
}

/// One registered adapter.
#[derive(Debug, Clone, Serialize)]
pub struct Adapter {
    pub version: AdapterVersion,
    pub parent: AdapterVersion,
    pub made_at_ms: u64,
    /// The number of offers that it learned from.
    pub learned_from: usize,
    pub active: bool,
    pub forgotten: bool,
    pub imported: bool,
}

impl Adapter {
    pub fn of(entry: &Entry, active: AdapterVersion) -> Adapter {
        Adapter {
            version: entry.version,
            parent: entry.parent,
            made_at_ms: entry.created_at_ms,
            learned_from: entry.offers.len(),
            active: entry.version == active,
            forgotten: entry.forgotten,
            imported: entry.report.job == IMPORTED,
        }
    }
}

#[derive(Default)]
struct Tally {
    figures: Figures,
    /// The number of offers that were rejected.
    wrong: u64,
    kept: Vec<f32>,
    latencies: Vec<f32>,
}

impl Tally {
    fn add(&mut self, offer: &OfferSummary) {
        let figures = &mut self.figures;
        figures.requested += 1;
        figures.shown += u64::from(offer.utf16 > 0);
        figures.judged += u64::from(offer.judged);
        figures.accepted += u64::from(offer.accepted);
        figures.saved += offer.saved;
        figures.typed_chars += u64::from(offer.typed.chars);
        figures.typed_lines += u64::from(offer.typed.lines);
        figures.kept_chars += offer.saved as f64 * f64::from(offer.kept.unwrap_or(1.0));
        self.wrong += u64::from(offer.judged && !offer.accepted);
        self.kept.extend(offer.kept);
        self.latencies.push(offer.latency_ms);
    }

    fn figures(mut self) -> Figures {
        self.latencies.sort_by(f32::total_cmp);
        let percentile = |share: f64| {
            let rank = (share * self.latencies.len() as f64).ceil() as usize;
            self.latencies.get(rank.saturating_sub(1)).map(|&ms| f64::from(ms))
        };
        let (p50_ms, p95_ms) = (percentile(0.50), percentile(0.95));
        let figures = self.figures;
        let mean = |values: &[f32]| {
            let sum: f64 = values.iter().map(|&value| f64::from(value)).sum();
            (!values.is_empty()).then(|| sum / values.len() as f64)
        };
        Figures {
            shown_rate: (figures.requested > 0)
                .then(|| figures.shown as f64 / figures.requested as f64),
            accept: Interval::of(figures.accepted, figures.judged),
            kept: mean(&self.kept),
            kept_share: (figures.typed_chars > 0)
                .then(|| figures.kept_chars / (figures.kept_chars + figures.typed_chars as f64)),
            wrong_per_100_lines: (figures.typed_lines > 0)
                .then(|| 100.0 * self.wrong as f64 / figures.typed_lines as f64),
            p50_ms,
            p95_ms,
            ..figures
        }
    }
}

/// The figures of one offer.
struct OfferSummary {
    utf16: u32,
    outcome: Option<Outcome>,
    judged: bool,
    accepted: bool,
    saved: u64,
    kept: Option<f32>,
    typed: Typed,
    latency_ms: f32,
}

impl OfferSummary {
    fn of(history: &OfferHistory) -> OfferSummary {
        let episode = history.episode();
        let outcome = episode.as_ref().and_then(|episode| episode.outcome).map(|(o, _)| o);
        let (judged, accepted, saved) = match outcome {
            Some(Outcome::Accepted) => (true, true, history.offer_utf16()),
            Some(Outcome::PartlyAccepted { utf16 }) => (true, true, utf16),
            // The offer was right, but the user typed it.
            Some(Outcome::TypedThrough { .. }) => (true, true, 0),
            Some(Outcome::RejectedEsc | Outcome::RejectedTimeout | Outcome::RejectedEdit) => {
                (true, false, 0)
            }
            Some(Outcome::Superseded | Outcome::Unseen) | None => (false, false, 0),
        };
        let kept = episode.as_ref().and_then(|episode| episode.kept);
        OfferSummary {
            utf16: history.offer_utf16(),
            outcome,
            judged,
            accepted,
            saved: u64::from(saved),
            kept: kept.filter(|_| outcome == Some(Outcome::Accepted)),
            typed: history.completion().typed,
            latency_ms: history.completion().timing.total_ms,
        }
    }
}

/// The names and kinds of the outcomes, in the order in which they are shown.
const OUTCOMES: [(&str, &str); 10] = [
    ("accepted", "taken"),
    ("partly accepted", "taken"),
    ("typed through", "taken"),
    ("rejected: Esc", "rejected"),
    ("rejected: 10 s", "rejected"),
    ("rejected: typed on", "rejected"),
    ("left for another place", "unjudged"),
    ("gone before it was seen", "unjudged"),
    ("still open", "unjudged"),
    ("no offer", "unjudged"),
];

fn outcome_index(offer: &OfferSummary) -> usize {
    match offer.outcome {
        Some(Outcome::Accepted) => 0,
        Some(Outcome::PartlyAccepted { .. }) => 1,
        Some(Outcome::TypedThrough { .. }) => 2,
        Some(Outcome::RejectedEsc) => 3,
        Some(Outcome::RejectedTimeout) => 4,
        Some(Outcome::RejectedEdit) => 5,
        Some(Outcome::Superseded) => 6,
        Some(Outcome::Unseen) => 7,
        None if offer.utf16 > 0 => 8,
        None => 9,
    }
}

/// Builds a report from offers, one by one. Its memory grows with the days, the versions, and 4
/// bytes an offer.
pub struct ReportBuilder {
    zone: TimeZone,
    all: Tally,
    closing: Tally,
    /// By model and adapter.
    versions: BTreeMap<(String, AdapterVersion), Tally>,
    days: BTreeMap<Date, Tally>,
    outcomes: [u64; OUTCOMES.len()],
    outlook: OutlookBuilder,
}

impl ReportBuilder {
    pub fn new(zone: TimeZone) -> ReportBuilder {
        ReportBuilder {
            zone,
            all: Tally::default(),
            closing: Tally::default(),
            versions: BTreeMap::new(),
            days: BTreeMap::new(),
            outcomes: [0; OUTCOMES.len()],
            outlook: OutlookBuilder::default(),
        }
    }

    pub fn add(&mut self, history: &OfferHistory) {
        let offer = OfferSummary::of(history);
        let completion = history.completion();
        let version = (completion.model_sha256.clone(), completion.adapter);
        let at = Timestamp::from_millisecond(history.first().at_ms.try_into().unwrap_or(i64::MAX));
        let date = at.unwrap_or(Timestamp::MAX).to_zoned(self.zone.clone()).date();
        self.all.add(&offer);
        if only_closes(&completion.shown) {
            self.closing.add(&offer);
        }
        self.versions.entry(version).or_default().add(&offer);
        self.days.entry(date).or_default().add(&offer);
        self.outcomes[outcome_index(&offer)] += 1;
        self.outlook.add(completion, offer.saved);
    }

    pub fn report(
        self,
        model: &str,
        next_edits: Option<NextEdits>,
        lineage: Vec<Adapter>,
    ) -> Report {
        let models = self.versions.keys().map(|(model, _)| model);
        let several = models.clone().any(|model| Some(model) != models.clone().next());
        let version = |((sha256, adapter), tally): ((String, AdapterVersion), Tally)| {
            let name = if adapter == 0 { "base".to_owned() } else { format!("v{adapter}") };
            let of = sha256.get(..8).unwrap_or(&sha256);
            let name = if several { format!("{name} ({of})") } else { name };
            Version { name, adapter, figures: tally.figures() }
        };
        let day = |(date, tally): (Date, Tally)| Day { date, figures: tally.figures() };
        let outcomes = OUTCOMES.into_iter().zip(self.outcomes).enumerate();
        let outcomes = outcomes
            .map(|(index, ((name, kind), offers))| Count { index, name, kind, offers })
            .collect();
        let days: Vec<Day> = self.days.into_iter().map(day).collect();
        Report {
            hone: env!("CARGO_PKG_VERSION").into(),
            model: model.to_owned(),
            made_at: Timestamp::now().to_zoned(self.zone).strftime("%F %H:%M").to_string(),
            from: days.first().map(|day| day.date),
            to: days.last().map(|day| day.date),
            all: self.all.figures(),
            closing: self.closing.figures(),
            versions: self.versions.into_iter().map(version).collect(),
            days,
            outcomes,
            next_edits,
            outlooks: self.outlook.outlooks(),
            lineage,
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::offers::Offers;
    use feedback::event::{Event, EventKind, Evidence};
    use fixtures::completion;

    const DAY_MS: u64 = 86_400_000;

    /// A report of three weeks with a base model and three adapters, each a little better than the
    /// one before.
    pub fn report() -> Report {
        let mut builder = ReportBuilder::new(TimeZone::UTC);
        let mut offers = Offers::new(|history| {
            builder.add(&history);
            Ok(())
        });
        let mut seq = 0;
        let mut append = |at_ms, kind| {
            offers.event(Event { seq, at_ms, kind }).unwrap();
            seq += 1;
        };
        for number in 0..840u64 {
            let at_ms = 1_767_225_600_000 + number * DAY_MS / 40;
            let id = format!("o{number}");
            let EventKind::Completion(mut made) = completion(&id, "/secret/path.rs") else {
                unreachable!()
            };
            made.adapter = (number / 210) as u32;
            made.timing.total_ms =
                80.0 + (number * 37 % 101) as f32 + (number % 13 / 12 * 300) as f32;
            if number % 9 == 0 {
                made.shown.clear();
            } else if number % 20 == 3 {
                made.shown = "  });".into();
            }
            append(at_ms, EventKind::Completion(made));
            let outcome = match number * 61 % 97 {
                roll if roll < 24 + 6 * (number / 210) => Outcome::Accepted,
                roll if roll < 50 => Outcome::PartlyAccepted { utf16: 4 },
                roll if roll < 55 => Outcome::TypedThrough { utf16: 10 },
                roll if roll < 62 => Outcome::RejectedEsc,
                roll if roll < 70 => Outcome::RejectedTimeout,
                roll if roll < 86 => Outcome::RejectedEdit,
                roll if roll < 93 => Outcome::Superseded,
                _ => Outcome::Unseen,
            };
            append(at_ms, EventKind::Outcome { id, outcome, evidence: Evidence::Document });
        }
        offers.finish().unwrap();
        let adapter = |version, parent| Adapter {
            version,
            parent,
            made_at_ms: 1_767_225_600_000 + u64::from(version) * 5 * DAY_MS,
            learned_from: 16 * version as usize,
            active: version == 3,
            forgotten: version == 2,
            imported: false,
        };
        let lineage = vec![adapter(1, 0), adapter(2, 1), adapter(3, 1)];
        builder.report("qwen2.5-coder-0.5b", None, lineage)
    }

    #[test]
    fn an_interval_is_wide_for_few_and_never_leaves_the_range() {
        assert_eq!(Interval::of(0, 0), None);
        let one = Interval::of(1, 1).unwrap();
        assert!(one.rate == 1.0 && one.high == 1.0 && one.low < 0.25, "{one:?}");
        // The example of Newcombe (1998, table I) for Wilson's interval: 81 of 263 is
        // 0.2553..0.3662.
        let newcombe = Interval::of(81, 263).unwrap();
        assert!((newcombe.low - 0.2553).abs() < 1e-4 && (newcombe.high - 0.3662).abs() < 1e-4);
    }

    #[test]
    fn the_figures_agree_with_the_outcomes() {
        let report = report();
        let all = &report.all;
        assert_eq!((all.requested, all.shown), (840, 746));
        assert_eq!(report.closing.shown, 37, "some only close brackets");
        let counted = |kind| {
            let of_kind = report.outcomes.iter().filter(|count| count.kind == kind);
            of_kind.map(|count| count.offers).sum::<u64>()
        };
        assert_eq!(all.accepted, counted("taken"));
        assert_eq!(all.judged, counted("taken") + counted("rejected"));
        assert_eq!(report.outcomes.last().unwrap().offers, 840 - 746, "no offer");
        let names: Vec<_> = report.versions.iter().map(|version| version.name.as_str()).collect();
        assert_eq!((names, report.days.len()), (vec!["base", "v1", "v2", "v3"], 21));
        let sum =
            |of: fn(&Figures) -> u64| report.days.iter().map(|day| of(&day.figures)).sum::<u64>();
        assert_eq!((sum(|f| f.saved), sum(|f| f.judged)), (all.saved, all.judged));
        assert_eq!((all.kept_share, all.wrong_per_100_lines), (None, None), "nothing was typed");
    }

    /// Two offers of ten characters are accepted and two are rejected. Half of the accepted text is
    /// kept.
    #[test]
    fn what_is_kept_is_set_against_what_was_typed() {
        let mut tally = Tally::default();
        let offer = |accepted: bool, typed| OfferSummary {
            utf16: 10,
            outcome: None,
            judged: true,
            accepted,
            saved: if accepted { 10 } else { 0 },
            kept: accepted.then_some(0.5),
            typed,
            latency_ms: 1.0,
        };
        let typed = Typed { chars: 15, lines: 4 };
        for typed in [Typed::default(), typed] {
            tally.add(&offer(true, typed));
            tally.add(&offer(false, Typed::default()));
        }
        let figures = tally.figures();
        assert_eq!((figures.typed_chars, figures.typed_lines, figures.saved), (15, 4, 20));
        assert_eq!(figures.kept_share, Some(0.4));
        assert_eq!(figures.wrong_per_100_lines, Some(50.0));
        let sentence = super::table::headline(&figures).unwrap();
        assert!(sentence.contains("40 % are completions") && sentence.contains("50 offers were"));
    }
}
