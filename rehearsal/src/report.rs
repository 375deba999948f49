//! The report: one JSON object, and the same as a table for people.

use crate::ledger::LabelCounts;
use crate::record::{LineRecord, Swap, Update};
use crate::run::{End, Outcome};
use crate::stats::{self, Difference, Summary};
use comfy_table::{Cell, CellAlignment, Table, presets};
use serde::Serialize;
use std::fmt::Write;

/// Version of the JSON form.
pub const REPORT_FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    pub format: u32,
    /// Version of the `hone` that was rehearsed with.
    pub version: String,
    pub seed: u64,
    pub model: Model,
    pub repo: Repo,
    /// Places in the stream at which at least one arm asked.
    pub points: usize,
    pub ended_by: End,
    pub elapsed_s: f64,
    pub arms: Vec<ArmReport>,
    pub comparison: Comparison,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Model {
    pub name: Option<String>,
    pub sha256: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Repo {
    pub path: String,
    pub head: String,
    pub author: Option<String>,
    pub since: Option<String>,
    /// Commits that passed the filter; the limit may have ended the stream before them.
    pub commits: usize,
    pub files_typed: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmReport {
    pub name: &'static str,
    pub quarters: Vec<Summary>,
    pub total: Summary,
    pub updates: Vec<Update>,
    pub swaps: Vec<Swap>,
    pub learner_errors: Vec<String>,
    pub labels: Labels,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Labels {
    /// As `hone status` counts them.
    pub daemon: LabelCounts,
    /// As the typist did.
    pub typist: LabelCounts,
    /// Every count in which the two differ, as one line each.
    pub disagreements: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Second arm minus first, over the whole stream.
    pub accept_rate: Option<Difference>,
}

impl Report {
    pub fn new(outcome: &Outcome, seed: u64, repo: Repo) -> Report {
        let lines = &outcome.lines;
        let arms: Vec<ArmReport> = outcome
            .arms
            .iter()
            .enumerate()
            .map(|(index, arm)| ArmReport {
                name: arm.kind.name(),
                quarters: stats::quarters(lines)
                    .iter()
                    .map(|part| stats::summary(part, index))
                    .collect(),
                total: stats::summary(lines, index),
                updates: arm.updates.clone(),
                swaps: arm.swaps.clone(),
                learner_errors: arm.learner_errors.clone(),
                labels: Labels {
                    daemon: arm.status.episodes,
                    typist: arm.typist,
                    disagreements: arm
                        .typist
                        .disagreements(&arm.status.episodes, arm.status.withheld),
                },
            })
            .collect();
        let status = outcome.arms.first().map(|arm| &arm.status);
        Report {
            format: REPORT_FORMAT,
            version: status.map(|status| status.version.clone()).unwrap_or_default(),
            seed,
            model: Model {
                name: status.and_then(|status| status.model.name.clone()),
                sha256: status.map(|status| status.model.sha256.clone()).unwrap_or_default(),
            },
            repo,
            points: points(lines),
            ended_by: outcome.ended_by,
            elapsed_s: outcome.elapsed.as_secs_f64(),
            arms,
            comparison: Comparison { accept_rate: stats::accept_rate_difference(lines, seed) },
        }
    }

    /// Every disagreement of daemon and typist, with the arm's name.
    pub fn disagreements(&self) -> Vec<String> {
        self.arms
            .iter()
            .flat_map(|arm| {
                arm.labels.disagreements.iter().map(move |line| format!("{} arm: {line}", arm.name))
            })
            .collect()
    }

    /// The table and the lines under it.
    pub fn render(&self) -> String {
        let mut out = format!("{}\n", self.table());
        for arm in &self.arms {
            let swap_ms: Vec<f64> = arm.swaps.iter().filter_map(|swap| swap.ms).collect();
            // Writing to a String cannot fail.
            let _ = writeln!(
                out,
                "{:<9} {} labels · {} updates{} · {} swaps{}",
                arm.name,
                arm.labels.daemon.total - arm.labels.daemon.unlabelled,
                arm.updates.len(),
                mean(&arm.updates.iter().filter_map(|u| u.ms).collect::<Vec<_>>())
                    .map_or_else(String::new, |ms| format!(" (mean {:.1} s)", ms / 1e3)),
                arm.swaps.len(),
                mean(&swap_ms).map_or_else(String::new, |ms| format!(" (mean {ms:.1} ms)")),
            );
            for error in &arm.learner_errors {
                let _ = writeln!(out, "{:<9} learner: {error}", arm.name);
            }
        }
        match &self.comparison.accept_rate {
            Some(d) => {
                let _ = writeln!(
                    out,
                    "accept rate, {} − frozen: {:+.1} points (95 % interval {:+.1} … {:+.1}, \
                     paired by line)",
                    self.arms.last().map_or("arm", |arm| arm.name),
                    100.0 * d.difference,
                    100.0 * d.low,
                    100.0 * d.high
                );
            }
            None => out.push_str("accept rate: an arm showed nothing\n"),
        }
        out
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_FULL_CONDENSED).set_header([
            "quarter",
            "arm",
            "asked",
            "shown",
            "accepted",
            "completed",
            "p50 ms",
            "p95 ms",
            "adapter",
        ]);
        let quarters = self.arms.first().map_or(0, |arm| arm.quarters.len());
        for quarter in 0..=quarters {
            let name = if quarter < quarters { (quarter + 1).to_string() } else { "all".into() };
            for (index, arm) in self.arms.iter().enumerate() {
                let summary = arm.quarters.get(quarter).unwrap_or(&arm.total);
                let name = if index == 0 { name.as_str() } else { "" };
                let mut row = vec![Cell::new(name), Cell::new(arm.name)];
                row.extend(
                    [
                        summary.asked.to_string(),
                        percent(summary.shown_rate),
                        percent(summary.accept_rate),
                        percent(summary.completed_ratio),
                        number(summary.latency_p50_ms),
                        number(summary.latency_p95_ms),
                        version(summary.adapter_version),
                    ]
                    .map(|text| Cell::new(text).set_alignment(CellAlignment::Right)),
                );
                table.add_row(row);
            }
        }
        table
    }
}

fn points(lines: &[LineRecord]) -> usize {
    lines.iter().map(|line| line.points.len()).sum()
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn percent(rate: Option<f64>) -> String {
    rate.map_or_else(|| "–".to_owned(), |rate| format!("{:.1} %", 100.0 * rate))
}

fn number(ms: Option<f64>) -> String {
    ms.map_or_else(|| "–".to_owned(), |ms| format!("{ms:.0}"))
}

fn version(version: u64) -> String {
    if version == 0 { "base".to_owned() } else { format!("v{version}") }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::arm::Kind;
    use crate::record::{Asked, PointRecord};
    use crate::run::ArmOutcome;
    use crate::status::{Adapter, Learner, LearnerState, Status};
    use crate::typist::Fate;
    use std::time::Duration;

    pub fn outcome() -> Outcome {
        let asked = |fate, version| Some(Asked { latency_ms: 20.0, version, fate });
        let lines = (0..40)
            .map(|n| {
                let fate =
                    Some(if n % 4 == 0 { Fate::Accepted { chars: 5 } } else { Fate::TypedOn });
                LineRecord {
                    chars: 10,
                    accepted_chars: if n % 4 == 0 { [0, 5] } else { [0, 0] },
                    points: vec![PointRecord {
                        asked: [asked(Some(Fate::TypedOn), 0), asked(fate, n / 20)],
                    }],
                }
            })
            .collect();
        let arm = |kind, accepted| {
            let counts = LabelCounts {
                total: 40,
                accepted,
                rejected_edit: 40 - accepted,
                ..LabelCounts::default()
            };
            ArmOutcome {
                kind,
                updates: vec![Update { at_point: 16, number: 1, ms: Some(1500.0) }],
                swaps: vec![Swap { at_point: 20, version: 1, ms: Some(4.0) }],
                learner_errors: Vec::new(),
                typist: counts,
                status: Status {
                    withheld: 0,
                    version: "0.1.0".to_owned(),
                    model: crate::status::Model { name: None, sha256: "aa".to_owned() },
                    adapter: Adapter { active: Some(1), swaps: 1, last_swap_ms: Some(4.0) },
                    episodes: counts,
                    learner: Learner {
                        state: LearnerState::Idle,
                        updates: 1,
                        last_update_ms: Some(1500.0),
                        last_error: None,
                    },
                },
                home: None,
            }
        };
        Outcome {
            lines,
            arms: vec![arm(Kind::Frozen, 0), arm(Kind::Learning, 10)],
            files: 3,
            ended_by: End::Limit,
            elapsed: Duration::from_secs(60),
        }
    }

    pub fn report() -> Report {
        let repo = Repo {
            path: ".".to_owned(),
            head: "ab".repeat(20),
            author: None,
            since: None,
            commits: 5,
            files_typed: 3,
        };
        Report::new(&outcome(), 7, repo)
    }

    /// The fields scripts may rely on; a removed one is a breaking change.
    #[test]
    fn the_json_form_keeps_its_fields() {
        fn paths(value: &serde_json::Value, at: &str, out: &mut Vec<String>) {
            match value {
                serde_json::Value::Object(object) => {
                    for (key, value) in object {
                        paths(value, &format!("{at}.{key}"), out);
                    }
                }
                serde_json::Value::Array(list) => {
                    if let Some(first) = list.first() {
                        paths(first, &format!("{at}[]"), out);
                    }
                }
                _ => out.push(at.to_owned()),
            }
        }
        let mut fields = Vec::new();
        paths(&serde_json::to_value(report()).unwrap(), "", &mut fields);
        fields.retain(|field| !field.starts_with(".arms[].total."));
        let summary = [
            "accept_rate",
            "accepted",
            "accepted_chars",
            "adapter_version",
            "asked",
            "completed_ratio",
            "latency_p50_ms",
            "latency_p95_ms",
            "shown",
            "shown_rate",
            "typed_chars",
        ];
        let counts = [
            "accepted",
            "partly_accepted",
            "rejected_edit",
            "rejected_esc",
            "rejected_timeout",
            "superseded",
            "total",
            "typed_through",
            "unlabelled",
            "unseen",
        ];
        let mut expected: Vec<String> = [
            ".arms[].name",
            ".arms[].swaps[].at_point",
            ".arms[].swaps[].ms",
            ".arms[].swaps[].version",
            ".arms[].updates[].at_point",
            ".arms[].updates[].ms",
            ".arms[].updates[].number",
            ".comparison.accept_rate.difference",
            ".comparison.accept_rate.high",
            ".comparison.accept_rate.low",
            ".comparison.accept_rate.resamples",
            ".elapsed_s",
            ".ended_by",
            ".format",
            ".model.name",
            ".model.sha256",
            ".points",
            ".repo.author",
            ".repo.commits",
            ".repo.files_typed",
            ".repo.head",
            ".repo.path",
            ".repo.since",
            ".seed",
            ".version",
        ]
        .map(str::to_owned)
        .into();
        expected.extend(summary.iter().map(|field| format!(".arms[].quarters[].{field}")));
        for side in ["daemon", "typist"] {
            expected.extend(counts.iter().map(|field| format!(".arms[].labels.{side}.{field}")));
        }
        fields.sort();
        expected.sort();
        assert_eq!(fields, expected);
    }

    #[test]
    fn the_table_tells_quarters_arms_swaps_and_the_difference() {
        let text = report().render();
        let row = |arm: &str, nth: usize| {
            let line = text.lines().filter(|line| line.contains(arm)).nth(nth).unwrap();
            let cells = line.split(['│', '┆']).map(str::trim);
            cells.filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(row("frozen", 0), "1 frozen 10 100.0 % 0.0 % 0.0 % 20 20 base");
        assert_eq!(row("learning", 4), "learning 40 100.0 % 25.0 % 12.5 % 20 20 v1");
        assert!(text.contains("1 updates (mean 1.5 s) · 1 swaps (mean 4.0 ms)"), "{text}");
        assert!(text.contains("+25.0 points"), "{text}");
    }

    #[test]
    fn a_wrong_label_is_named_with_its_arm() {
        let mut outcome = outcome();
        assert!(report().disagreements().is_empty());
        outcome.arms[1].status.episodes.accepted = 9;
        let report = Report { ..Report::new(&outcome, 7, report().repo) };
        assert_eq!(
            report.disagreements(),
            ["learning arm: accepted: the typist counts 10, the daemon 9"]
        );
    }
}
