//! The end of a rehearsal in plain words: a line of facts for each arm, and three sentences for
//! each arm that is compared with the first one.
//!
//! A sentence never claims more than the numbers hold. Each difference comes with its interval, or
//! with the reason why there is none, and the last sentence says which differences may be chance.

use crate::developer::Developer;
use crate::limits::{ACCEPTED_MIN, COMMITS_MIN, SHOWN_MIN};
use crate::report::stats::{Interval, RelativeChange};
use crate::report::{ArmComparison, ArmReport, RehearsalReport};
use crate::run::StreamEnd;
use crate::run::arm::ArmKind;
use crate::run::ledger::LabelCheck;
use printable::count;
use std::fmt::Write;

/// Columns of a line of the summary.
const COLUMNS: usize = 96;

pub fn text(report: &RehearsalReport) -> String {
    let mut out = paragraph(&stream(report));
    out.push('\n');
    let width = report.arms.iter().map(|arm| arm.name.chars().count()).max().unwrap_or_default();
    let totals: Vec<ArmTotals> =
        (0..report.arms.len()).map(|arm| ArmTotals::of(report, arm)).collect();
    for (arm, totals) in report.arms.iter().zip(&totals) {
        let label = format!("{:<width$}  ", arm.name);
        out.push_str(&hanging(&label, &totals.facts(arm.kind)));
        if !report.conditions.disturbances.is_empty() || totals.labels != LabelCheck::default() {
            let told = format!(
                "{} that the developer did not give, {} that the daemon missed",
                count(totals.labels.not_given as usize, "label"),
                totals.labels.missed
            );
            out.push_str(&hanging(&format!("{:<width$}  ", ""), &told));
        }
        for error in &totals.learner_errors {
            out.push_str(&hanging(
                &format!("{:<width$}  ", ""),
                &format!("an update failed: {error}"),
            ));
        }
    }
    for (index, comparison) in report.pooled.iter().enumerate() {
        out.push('\n');
        if report.pooled.len() > 1 {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{} compared with {}:", comparison.name, report.arms[0].name);
        }
        let contrast = Contrast::new(report, &totals, index + 1, comparison);
        for sentence in contrast.sentences() {
            out.push_str(&paragraph(&sentence));
        }
    }
    out
}

/// Returns what was typed, and what ended it.
fn stream(report: &RehearsalReport) -> String {
    let places: usize = report.rehearsals.iter().map(|rehearsal| rehearsal.places).sum();
    let elapsed_s: f64 = report.rehearsals.iter().map(|rehearsal| rehearsal.elapsed_s).sum();
    let of = match report.rehearsals.as_slice() {
        [one] if one.repo.path == "." => "this repository".to_owned(),
        [one] => one.repo.path.clone(),
        several => format!("{} repositories", several.len()),
    };
    let ended_early = report.rehearsals.iter().any(|one| one.ended_by == StreamEnd::Time);
    format!(
        "Typed {} of {of} and paused at {}, in {:.1} minutes.{}{}",
        count(commits(report), "commit"),
        count(places, "place"),
        elapsed_s / 60.0,
        match report.conditions.developer {
            Developer::Exact => "",
            Developer::Person => " The developer was drawn from people, anew for each commit.",
        },
        if ended_early { " The time limit ended it." } else { "" },
    )
}

/// Commits that every arm met.
fn commits(report: &RehearsalReport) -> usize {
    let met = |arms: usize| arms == report.arms.len();
    let all = report.rehearsals.iter().flat_map(|rehearsal| &rehearsal.commits);
    all.filter(|commit| met(commit.arms.len())).count()
}

/// One arm over all repositories.
#[derive(Debug, Default)]
struct ArmTotals {
    shown: usize,
    accepted: usize,
    completed_chars: usize,
    typed_chars: usize,
    lines: usize,
    updates: usize,
    /// Offers that were accepted or rejected.
    judged: u64,
    learner_errors: Vec<String>,
    labels: LabelCheck,
    /// Accepted offers that closed marks twice.
    doubled: usize,
    /// What can only be told of a single repository: median latency, rating and adapter.
    single: Option<Single>,
}

#[derive(Debug)]
struct Single {
    latency_p50_ms: Option<f64>,
    rating: Option<f64>,
    adapter_version: u64,
}

impl ArmTotals {
    fn of(report: &RehearsalReport, arm: usize) -> ArmTotals {
        let mut totals = ArmTotals::default();
        for rehearsal in &report.rehearsals {
            totals.add(&rehearsal.arms[arm]);
        }
        if let [only] = report.rehearsals.as_slice() {
            let total = &only.arms[arm].total;
            totals.single = Some(Single {
                latency_p50_ms: total.latency_p50_ms,
                rating: total.rating,
                adapter_version: total.adapter_version,
            });
        }
        totals
    }

    fn add(&mut self, arm: &ArmReport) {
        self.shown += arm.total.shown;
        self.accepted += arm.total.accepted;
        self.completed_chars += arm.total.completed_chars;
        self.typed_chars += arm.total.typed_chars;
        self.lines += arm.total.lines;
        self.updates += arm.updates.len();
        self.judged += arm.labels.daemon.judged();
        self.labels += arm.labels.check;
        self.doubled += arm.total.doubled;
        self.learner_errors.extend_from_slice(&arm.learner_errors);
    }

    fn accept_rate(&self) -> Option<f64> {
        (self.shown > 0).then(|| self.accepted as f64 / self.shown as f64)
    }

    fn completed_ratio(&self) -> f64 {
        self.completed_chars as f64 / self.typed_chars.max(1) as f64
    }

    /// One line: offers, characters, latency, and what serves in the end.
    fn facts(&self, kind: ArmKind) -> String {
        let mut facts = vec![format!("{} shown", count(self.shown, "offer"))];
        if let Some(rate) = self.accept_rate() {
            facts.push(format!("{} accepted ({})", self.accepted, percent(rate)));
        }
        facts.push(format!("{} of the characters completed", percent(self.completed_ratio())));
        if self.shown > 0 && self.lines > 0 {
            let wrong = 100.0 * (self.shown - self.accepted) as f64 / self.lines as f64;
            facts.push(format!("{wrong:.0} wrong offers per 100 lines"));
        }
        let single = self.single.as_ref();
        if let Some(ms) = single.and_then(|single| single.latency_p50_ms) {
            facts.push(format!("median answer {ms:.0} ms"));
        }
        if let Some(rating) = single.and_then(|single| single.rating) {
            facts.push(format!("rated {rating:.1} of 10"));
        }
        facts.extend(single.and_then(|single| self.serving(kind, single.adapter_version)));
        if self.doubled > 0 {
            facts.push(format!("{} closed twice", count(self.doubled, "bracket or quote")));
        }
        facts.join(", ")
    }

    /// Which adapter serves in the end, where there were updates.
    fn serving(&self, kind: ArmKind, version: u64) -> Option<String> {
        match (version, kind) {
            _ if self.updates == 0 => None,
            (0, ArmKind::Everything) => Some("no adapter has won its trial yet".to_owned()),
            (0, _) => Some("the base model serves".to_owned()),
            (version, _) => Some(format!("adapter v{version} serves")),
        }
    }
}

/// One arm compared with the first.
struct Contrast<'a> {
    from: &'a ArmTotals,
    to: &'a ArmTotals,
    kind: ArmKind,
    words: Words,
    comparison: &'a ArmComparison,
    commits: usize,
}

/// The way in which the two arms are called in a sentence.
struct Words {
    /// Such as "without learning".
    without: String,
    /// Such as "with it", after `without`.
    with: String,
    /// Such as "With learning", at the beginning of a sentence.
    opening: String,
}

impl Words {
    fn of(from: (&str, ArmKind), to: (&str, ArmKind)) -> Words {
        let named = |what: &str| Words {
            without: format!("without {what}"),
            with: "with it".to_owned(),
            opening: format!("With {what}"),
        };
        match (from.1, to.1) {
            (ArmKind::Frozen, ArmKind::Gate) => named("the gate"),
            (ArmKind::Frozen, kind) if kind.learns() => named("learning"),
            _ => Words {
                without: format!("in the arm `{}`", from.0),
                with: format!("in the arm `{}`", to.0),
                opening: format!("In the arm `{}`", to.0),
            },
        }
    }
}

/// Whether a difference may be chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chance {
    Gain,
    Loss,
    /// There is no difference at all.
    Same,
    /// The interval includes zero.
    MayBe,
    /// There is too little data to say so.
    TooFew,
}

impl Chance {
    fn of(change: Option<&RelativeChange>, is_enough: bool) -> Chance {
        match change.and_then(|change| change.interval) {
            Some(interval) if is_enough => {
                if interval.low > 0.0 {
                    Chance::Gain
                } else if interval.high < 0.0 {
                    Chance::Loss
                } else if interval.low == 0.0 && interval.high == 0.0 {
                    Chance::Same
                } else {
                    Chance::MayBe
                }
            }
            _ => Chance::TooFew,
        }
    }

    fn clause(self, what: &str) -> String {
        match self {
            Chance::Gain => format!("the gain in {what} is larger than chance"),
            Chance::Loss => format!("the loss in {what} is larger than chance"),
            Chance::Same => format!("there is no difference in {what}"),
            Chance::MayBe => format!("the difference in {what} is not larger than chance"),
            Chance::TooFew => format!("there is too little data to judge {what}"),
        }
    }
}

impl<'a> Contrast<'a> {
    fn new(
        report: &RehearsalReport,
        totals: &'a [ArmTotals],
        arm: usize,
        comparison: &'a ArmComparison,
    ) -> Contrast<'a> {
        let named = |arm: usize| (report.arms[arm].name.as_str(), report.arms[arm].kind);
        Contrast {
            from: &totals[0],
            to: &totals[arm],
            kind: report.arms[arm].kind,
            words: Words::of(named(0), named(arm)),
            comparison,
            commits: commits(report),
        }
    }

    fn sentences(&self) -> Vec<String> {
        if self.from.shown + self.to.shown == 0 {
            let nothing = "No offer was shown in either arm, so there is nothing to compare.";
            return vec![nothing.to_owned(), format!("{}.", self.learned())];
        }
        let verdict = format!("{}; {}.", self.learned(), self.chance());
        vec![self.accepted(), self.completed(), verdict]
    }

    /// The first sentence: how many of the offers were accepted.
    fn accepted(&self) -> String {
        let Words { without, with, .. } = &self.words;
        let change = self.comparison.total.accept_rate.as_ref();
        let from = change.map(|change| change.from).or(self.from.accept_rate());
        let to = change.map(|change| change.to).or(self.to.accept_rate());
        match (from, to) {
            (Some(from), Some(to)) => format!(
                "Of the offers that were shown, {} were accepted {without} and {} {with}{}.",
                percent(from),
                percent(to),
                change.map_or_else(String::new, |change| match change.relative {
                    0.0 => format!(": no difference{}", within(change, self.has_rates())),
                    relative => format!(
                        ", which is {}{}",
                        amount(relative, "more", "less"),
                        within(change, self.has_rates())
                    ),
                })
            ),
            (Some(from), None) => format!(
                "Of the offers that were shown, {} were accepted {without}; {with} none was shown.",
                percent(from)
            ),
            (None, to) => format!(
                "No offer was shown {without}; of those shown {with}, {} were accepted.",
                percent(to.unwrap_or_default())
            ),
        }
    }

    /// The second sentence: how many offers there were, and how much they completed.
    fn completed(&self) -> String {
        let Words { without, opening, .. } = &self.words;
        let shown = match self.comparison.total.shown.as_ref() {
            Some(change) if change.relative == 0.0 => "as many offers".to_owned(),
            Some(change) => format!(
                "{} offers{}",
                amount(change.relative, "more", "fewer"),
                interval_text(change.interval, "more", "fewer")
            ),
            None => format!("{} instead of {}", count(self.to.shown, "offer"), self.from.shown),
        };
        let change = self.comparison.total.completed_ratio.as_ref();
        let from = change.map_or(self.from.completed_ratio(), |change| change.from);
        let to = change.map_or(self.to.completed_ratio(), |change| change.to);
        let difference = match change {
            Some(change) if change.relative == 0.0 => {
                format!(", just as {without}{}", within(change, self.has_base()))
            }
            Some(change) => format!(
                " instead of {}, which is {}{}",
                percent(from),
                amount(change.relative, "more", "less"),
                within(change, self.has_base())
            ),
            None => format!(" instead of {}", percent(from)),
        };
        format!(
            "{opening}, Hone showed {shown} and completed {} of the characters{difference}.",
            percent(to)
        )
    }

    /// The beginning of the third sentence: what the arm learned from.
    fn learned(&self) -> String {
        let judged = count(self.to.judged as usize, "judged offer");
        match self.kind {
            ArmKind::Frozen => format!("The arm `{}` does not learn", self.comparison.name),
            ArmKind::Gate => format!("The gate learned from {judged}"),
            _ => format!("Hone made {} from {judged}", count(self.to.updates, "update")),
        }
    }

    /// Returns true if enough offers were accepted in the first arm to divide by.
    fn has_base(&self) -> bool {
        self.from.accepted >= ACCEPTED_MIN
    }

    /// Returns true if enough offers were shown to judge the accept rate.
    fn has_rates(&self) -> bool {
        self.has_base() && self.to.shown >= SHOWN_MIN
    }

    /// The end of the third sentence: which differences may be chance.
    fn chance(&self) -> String {
        let total = &self.comparison.total;
        let accepted = Chance::of(total.accept_rate.as_ref(), self.has_rates());
        let completed = Chance::of(total.completed_ratio.as_ref(), self.has_base());
        match (accepted, completed) {
            (Chance::TooFew, Chance::TooFew) => self.too_few(),
            (Chance::Same, Chance::Same) => "the arms do not differ".to_owned(),
            (Chance::Gain, Chance::Gain) => "both gains are larger than chance".to_owned(),
            (Chance::Loss, Chance::Loss) => "both losses are larger than chance".to_owned(),
            (Chance::MayBe, Chance::MayBe) => "neither difference is larger than chance".to_owned(),
            (accepted, completed) => {
                let joint = if accepted == Chance::Gain || completed == Chance::Gain {
                    "but"
                } else {
                    "and"
                };
                let accepted = accepted.clause("the accept rate");
                format!("{accepted}, {joint} {}", completed.clause("completed characters"))
            }
        }
    }

    fn too_few(&self) -> String {
        let because = if self.commits < COMMITS_MIN {
            format!(
                "{} {} too few: it takes {COMMITS_MIN}",
                count(self.commits, "commit"),
                are(self.commits)
            )
        } else {
            let accepted = self.from.accepted;
            format!(
                "{} {} {} too few: it takes {ACCEPTED_MIN}",
                count(accepted, "accepted offer"),
                self.words.without,
                are(accepted)
            )
        };
        format!("whether a difference is larger than chance cannot be said, because {because}")
    }
}

/// The interval of a change that is measured by accepted offers, or why there is none.
fn within(change: &RelativeChange, is_enough: bool) -> String {
    if change.interval.is_some() && !is_enough {
        " (too few offers for an interval)".to_owned()
    } else {
        interval_text(change.interval, "more", "less")
    }
}

/// " (95 % interval: …)", or that there is none.
fn interval_text(interval: Option<Interval>, more: &str, less: &str) -> String {
    let Some(Interval { low, high }) = interval else {
        return " (too few commits for an interval)".to_owned();
    };
    let text = if low == 0.0 && high == 0.0 {
        return String::new();
    } else if low >= 0.0 {
        format!("{} to {} % {more}", number(low), number(high))
    } else if high <= 0.0 {
        format!("{} to {} % {less}", number(-high), number(-low))
    } else {
        format!("from {} % {less} to {} % {more}", number(-low), number(high))
    };
    format!(" (95 % interval: {text})")
}

/// "23 % more" or "7 % fewer".
fn amount(relative: f64, more: &str, less: &str) -> String {
    let word = if relative > 0.0 { more } else { less };
    format!("{} % {word}", number(relative.abs()))
}

/// A share in percent. Small ones have a decimal.
fn number(share: f64) -> String {
    let percent = 100.0 * share;
    if percent.abs() < 9.95 { format!("{percent:.1}") } else { format!("{percent:.0}") }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn are(number: usize) -> &'static str {
    if number == 1 { "is" } else { "are" }
}

/// The text in lines of at most [`COLUMNS`] columns.
fn paragraph(text: &str) -> String {
    hanging("", text)
}

/// A label and the text behind it, in lines of at most [`COLUMNS`] columns. The lines after the
/// first are indented by the label's width. A number stays next to its percent sign.
fn hanging(label: &str, text: &str) -> String {
    const GLUE: &str = "\u{a0}%";
    let indent = label.chars().count();
    let mut out = label.to_owned();
    let mut column = indent;
    for word in text.replace(" %", GLUE).split(' ') {
        let width = word.chars().count();
        if column > indent && column + 1 + width > COLUMNS {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else if column > indent {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out.push('\n');
    out.replace(GLUE, " %")
}

#[cfg(test)]
mod tests;
