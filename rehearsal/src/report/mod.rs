//! The report: one JSON object for programs, and a summary and tables for people.

pub mod adopt;
pub mod chart;
pub mod stats;
mod summary;
mod table;
pub mod transcript;

use crate::developer::disturbance::Disturbance;
use crate::developer::{Developer, Editor};
use crate::report::stats::{ArmPair, ArmSummary, Comparison, OfferCounts, QUARTERS};
use crate::run::arm::ArmKind;
use crate::run::ledger::{LabelCheck, LabelCounts};
use crate::run::record::{Learned, Swap, Update};
use crate::run::{ArmResult, RunResult, StreamEnd};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;

/// Version of the JSON form.
pub const REPORT_FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RehearsalReport {
    pub format: u32,
    /// Version of the `hone` that served.
    pub version: String,
    #[serde(flatten)]
    pub conditions: Conditions,
    pub model: ReportedModel,
    pub arms: Vec<ArmHeader>,
    pub rehearsals: Vec<Rehearsal>,
    /// Every other arm compared with the first, over all repositories together.
    pub pooled: Vec<ArmComparison>,
}

/// Who typed, and under which conditions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Conditions {
    pub seed: u64,
    pub developer: Developer,
    /// The number of times that the exact developer slips.
    pub noise: f64,
    /// What happened in addition to the developer's typing.
    pub disturbances: Vec<Disturbance>,
    pub editor: Editor,
    /// True if the daemons could read a working tree.
    pub tree: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportedModel {
    pub name: Option<String>,
    pub sha256: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmHeader {
    pub name: String,
    pub kind: ArmKind,
    /// Its `config.toml`.
    pub config: String,
}

/// One repository.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rehearsal {
    pub repo: Repo,
    /// Places of the stream that were reached.
    pub places: usize,
    pub ended_by: StreamEnd,
    pub elapsed_s: f64,
    pub arms: Vec<ArmReport>,
    pub commits: Vec<CommitReport>,
    pub compared: Vec<ArmComparison>,
}

/// One commit as the arms met it. It shows from which commits a gain comes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CommitReport {
    /// Hex.
    pub commit: String,
    /// In the order of the arms. An arm that did not get this far is missing.
    pub arms: Vec<OfferCounts>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Repo {
    pub path: String,
    pub head: String,
    pub author: Option<String>,
    pub since: Option<String>,
    /// Commits that passed the filter. The stream may have ended before it reached them all.
    pub commits: usize,
    pub files_typed: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmReport {
    pub name: String,
    pub quarters: Vec<ArmSummary>,
    pub total: ArmSummary,
    pub updates: Vec<Update>,
    pub swaps: Vec<Swap>,
    pub learned: Learned,
    pub learner_errors: Vec<String>,
    pub labels: Labels,
    /// How many requests ended for each reason, by its name in the protocol.
    pub reasons: BTreeMap<String, u64>,
    /// Requests that ended without a reason.
    pub unexplained: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Labels {
    /// The labels as `hone status` counts them.
    pub daemon: LabelCounts,
    /// What the typist did.
    pub typist: LabelCounts,
    /// The way in which the two differ, offer by offer.
    #[serde(flatten)]
    pub check: LabelCheck,
    /// Every count in which the two differ, as one line each.
    pub disagreements: Vec<String>,
}

/// An arm compared with the first one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmComparison {
    pub name: String,
    pub quarters: Vec<Comparison>,
    pub total: Comparison,
}

impl Rehearsal {
    fn new(result: &RunResult, repo: Repo, seed: u64) -> Rehearsal {
        let arm = |arm: &ArmResult| {
            let record = &arm.record;
            // The record of an older rehearsal that was saved when it was done has no sum.
            let withheld = record.withheld.max(arm.status.withheld);
            let quarter = |part| stats::summary(record, &stats::quarter(result.places, part));
            ArmReport {
                name: arm.name.clone(),
                quarters: (0..QUARTERS).map(quarter).collect(),
                total: stats::summary(record, &ALL),
                updates: record.updates.clone(),
                swaps: record.swaps.clone(),
                learned: arm.learned.clone(),
                learner_errors: record.learner_errors.clone(),
                reasons: record.reasons.clone(),
                unexplained: record.unexplained,
                labels: Labels {
                    daemon: arm.status.episodes,
                    typist: record.typist,
                    check: record.labels,
                    disagreements: record.typist.disagreements(&arm.status.episodes, withheld),
                },
            }
        };
        Rehearsal {
            repo,
            places: result.places,
            ended_by: result.ended_by,
            elapsed_s: result.elapsed.as_secs_f64(),
            arms: result.arms.iter().map(arm).collect(),
            commits: commits(result),
            compared: compared(&[result], seed),
        }
    }
}

const ALL: Range<usize> = 0..usize::MAX;

fn commits(result: &RunResult) -> Vec<CommitReport> {
    let mut all: Vec<CommitReport> = Vec::new();
    for arm in &result.arms {
        for (at, (commit, counts)) in
            stats::by_commit(&arm.record, &result.commits).into_iter().enumerate()
        {
            if at == all.len() {
                all.push(CommitReport { commit: commit.to_owned(), arms: Vec::new() });
            }
            all[at].arms.push(counts);
        }
    }
    all
}

fn compared(results: &[&RunResult], seed: u64) -> Vec<ArmComparison> {
    let arms = results.iter().map(|result| result.arms.len()).min().unwrap_or(0);
    (1..arms)
        .map(|arm| {
            let over = |places: &dyn Fn(&RunResult) -> Range<usize>| {
                let pair = |result: &&RunResult| {
                    let records = [0, arm].map(|arm| &result.arms[arm].record);
                    ArmPair::new(records, &result.commits, &places(result))
                };
                stats::compare(&results.iter().map(pair).collect::<Vec<_>>(), seed)
            };
            ArmComparison {
                name: results[0].arms[arm].name.clone(),
                quarters: (0..QUARTERS)
                    .map(|part| over(&|result| stats::quarter(result.places, part)))
                    .collect(),
                total: over(&|_| ALL),
            }
        })
        .collect()
}

impl RehearsalReport {
    pub fn new(
        done: &[(RunResult, Repo)],
        arms: Vec<ArmHeader>,
        conditions: Conditions,
    ) -> RehearsalReport {
        let seed = conditions.seed;
        let status = done.first().and_then(|(result, _)| result.arms.first()).map(|a| &a.status);
        let results: Vec<&RunResult> = done.iter().map(|(result, _)| result).collect();
        RehearsalReport {
            format: REPORT_FORMAT,
            version: status.map(|status| status.version.clone()).unwrap_or_default(),
            conditions,
            model: ReportedModel {
                name: status.and_then(|status| status.model.name.clone()),
                sha256: status.map(|status| status.model.sha256.clone()).unwrap_or_default(),
            },
            arms,
            rehearsals: done
                .iter()
                .map(|(result, repo)| Rehearsal::new(result, repo.clone(), seed))
                .collect(),
            pooled: compared(&results, seed),
        }
    }

    /// The requests without a reason, the labels that nobody gave, and every count in which daemon
    /// and typist differ, with the names of repository and arm. A formatter, or a bracket that is
    /// typed over, may cost an offer its label, so the counts need not agree then.
    pub fn disagreements(&self) -> Vec<String> {
        let Conditions { disturbances, editor, .. } = &self.conditions;
        let counts_agree = disturbances.is_empty() && *editor == Editor::Plain;
        let mut all = Vec::new();
        for rehearsal in &self.rehearsals {
            for arm in &rehearsal.arms {
                let Labels { check, disagreements, .. } = &arm.labels;
                let not_given = (check.not_given > 0)
                    .then(|| format!("{} labels were not given by the developer", check.not_given));
                let unexplained = (arm.unexplained > 0)
                    .then(|| format!("{} requests ended without a reason", arm.unexplained));
                let counts = disagreements.iter().filter(|_| counts_agree).cloned();
                all.extend(
                    unexplained
                        .into_iter()
                        .chain(not_given)
                        .chain(counts)
                        .map(|line| format!("{}, {} arm: {line}", rehearsal.repo.path, arm.name)),
                );
            }
        }
        all
    }

    /// The report for people: the tables if they are asked for, and then the summary.
    pub fn render(&self, with_tables: bool) -> String {
        let summary = summary::text(self);
        if with_tables {
            format!("{}\n{summary}", table::text(self))
        } else {
            format!("{summary}\nEvery number by quarter: --table. All of them as JSON: --json.\n")
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::report::stats::tests::line;
    use crate::run::record::{ArmRecord, ReferenceScores};
    use crate::run::status::{
        DaemonStatus, LearnerState, LearnerStatus, ServedAdapter, ServedModel,
    };
    use std::time::Duration;

    pub fn run_result() -> RunResult {
        let arm = |name: &str, accepts: bool| {
            let accepted = if accepts { 10 } else { 0 };
            let counts = LabelCounts {
                total: 40,
                accepted,
                rejected_edit: 40 - accepted,
                ..LabelCounts::default()
            };
            ArmResult {
                name: name.to_owned(),
                record: ArmRecord {
                    lines: (0..40).map(|n| line(n, accepts && n % 4 == 0, 20.0)).collect(),
                    updates: vec![Update { place: 16, number: 1, ms: Some(1500.0) }],
                    swaps: vec![Swap { place: 20, version: 1, ms: Some(4.0) }],
                    typist: counts,
                    ..ArmRecord::default()
                },
                status: DaemonStatus {
                    withheld: 0,
                    version: "0.1.0".to_owned(),
                    model: ServedModel { name: None, sha256: "aa".to_owned() },
                    adapter: ServedAdapter { active: Some(1), swaps: 1, last_swap_ms: Some(4.0) },
                    episodes: counts,
                    learner: LearnerStatus {
                        state: LearnerState::Idle,
                        updates: 1,
                        last_update_ms: Some(1500.0),
                        last_error: None,
                    },
                },
                learned: Learned {
                    kl_base: Some(0.02),
                    references: vec![ReferenceScores { tokens: 9, base: -2.0, parent: -1.5 }],
                },
                home: None,
            }
        };
        RunResult {
            arms: vec![arm("frozen", true), arm("ppo", true), arm("mute", false)],
            places: 40,
            files: 8,
            commits: (0..8).map(|commit| commit.to_string()).collect(),
            ended_by: StreamEnd::Limit,
            elapsed: Duration::from_secs(60),
        }
    }

    pub fn repo() -> Repo {
        Repo {
            path: ".".to_owned(),
            head: "ab".repeat(20),
            author: None,
            since: None,
            commits: 5,
            files_typed: 8,
        }
    }

    fn of(results: Vec<RunResult>) -> RehearsalReport {
        let done: Vec<_> = results.into_iter().map(|result| (result, repo())).collect();
        let name = |name: &str| ArmHeader {
            name: name.to_owned(),
            kind: ArmKind::Frozen,
            config: String::new(),
        };
        RehearsalReport::new(&done, ["frozen", "ppo", "mute"].map(name).into(), conditions())
    }

    pub fn conditions() -> Conditions {
        Conditions {
            seed: 7,
            developer: Developer::Exact,
            noise: 0.0,
            disturbances: vec![Disturbance::Formatter],
            editor: Editor::Vscode,
            tree: true,
        }
    }

    /// Scripts may rely on these fields. Removing one is a breaking change.
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
        paths(&serde_json::to_value(of(vec![run_result()])).unwrap(), "", &mut fields);
        let summary = [
            "accept_rate",
            "accepted",
            "adapter_version",
            "asked",
            "cancel_rate",
            "completed_chars",
            "completed_ratio",
            "doubled",
            "kept_rate",
            "latency_p50_ms",
            "latency_p95_ms",
            "lines",
            "rating",
            "shown",
            "shown_rate",
            "typed_chars",
            "wrong_per_100_lines",
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
            ".arms[].config",
            ".arms[].kind",
            ".arms[].name",
            ".developer",
            ".disturbances[]",
            ".editor",
            ".format",
            ".model.name",
            ".model.sha256",
            ".noise",
            ".pooled[].name",
            ".rehearsals[].arms[].labels.missed",
            ".rehearsals[].arms[].labels.not_given",
            ".rehearsals[].arms[].learned.kl_base",
            ".rehearsals[].arms[].learned.references[].base",
            ".rehearsals[].arms[].learned.references[].parent",
            ".rehearsals[].arms[].learned.references[].tokens",
            ".rehearsals[].arms[].name",
            ".rehearsals[].arms[].swaps[].ms",
            ".rehearsals[].arms[].swaps[].place",
            ".rehearsals[].arms[].swaps[].version",
            ".rehearsals[].arms[].updates[].ms",
            ".rehearsals[].arms[].updates[].number",
            ".rehearsals[].arms[].unexplained",
            ".rehearsals[].arms[].updates[].place",
            ".rehearsals[].commits[].arms[].accepted",
            ".rehearsals[].commits[].arms[].completed_chars",
            ".rehearsals[].commits[].arms[].shown",
            ".rehearsals[].commits[].arms[].typed_chars",
            ".rehearsals[].commits[].commit",
            ".rehearsals[].compared[].name",
            ".rehearsals[].elapsed_s",
            ".rehearsals[].ended_by",
            ".rehearsals[].places",
            ".rehearsals[].repo.author",
            ".rehearsals[].repo.commits",
            ".rehearsals[].repo.files_typed",
            ".rehearsals[].repo.head",
            ".rehearsals[].repo.path",
            ".rehearsals[].repo.since",
            ".seed",
            ".tree",
            ".version",
        ]
        .map(str::to_owned)
        .into();
        for part in ["quarters[]", "total"] {
            expected
                .extend(summary.iter().map(|field| format!(".rehearsals[].arms[].{part}.{field}")));
        }
        for side in ["daemon", "typist"] {
            let field = |field: &&str| format!(".rehearsals[].arms[].labels.{side}.{field}");
            expected.extend(counts.iter().map(field));
        }
        for at in [".pooled[]", ".rehearsals[].compared[]"] {
            // A quarter of this stream has too few commits for an interval.
            let total = ["interval.high", "interval.low"].as_slice();
            for (over, interval) in [("quarters[]", ["interval"].as_slice()), ("total", total)] {
                for what in ["accept_rate", "completed_chars", "completed_ratio", "shown"] {
                    let field = |field: &&str| format!("{at}.{over}.{what}.{field}");
                    expected.extend(["from", "relative", "to"].iter().chain(interval).map(field));
                }
            }
        }
        fields.sort();
        expected.sort();
        assert_eq!(fields, expected);
    }

    fn rows(text: &str) -> Vec<String> {
        let cells = |line: &str| {
            let cells = line.split(['│', '┆']).map(str::trim);
            cells.filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join(" ")
        };
        text.lines().map(cells).collect()
    }

    #[test]
    fn the_tables_show_quarters_arms_and_differences() {
        let text = of(vec![run_result()]).render(true);
        let rows = rows(&text);
        let has = |row: &str| assert!(rows.iter().any(|r| r == row), "{row}\n{text}");
        has("1 frozen 10 100.0 % 30.0 % 30.0 % 100.0 % 100.0 % 20 20 v1");
        has("all frozen 40 100.0 % 25.0 % 25.0 % 100.0 % 100.0 % 20 20 v1");
        has("mute 40 100.0 % 0.0 % 0.0 % – 100.0 % 20 20 v1");
        // A quarter has two commits, which are too few for an interval.
        has("ppo last quarter +0.0 % +0.0 % +0.0 %");
        has("all +0.0 % (+0.0 … +0.0) +0.0 % (+0.0 … +0.0) +0.0 % (+0.0 … +0.0)");
        has("all -100.0 % (-100.0 … -100.0) +0.0 % (+0.0 … +0.0) -100.0 % (-100.0 … -100.0)");
        assert!(text.contains("40 labels · 1 updates (mean 1.5 s) · 1 swaps (mean 4.0 ms)"));
        assert!(text.contains("KL to base 0.020"), "{text}");
        assert!(!text.contains("repositories together"));
    }

    #[test]
    fn several_repositories_have_a_table_each_and_are_compared_together() {
        let text = of(vec![run_result(), run_result()]).render(true);
        assert!(text.contains("Compared with frozen, 2 repositories together"), "{text}");
    }

    /// The typist and the log count over the whole rehearsal, and a daemon from its start on.
    #[test]
    fn offers_that_an_earlier_daemon_withheld_are_no_disagreement() {
        let mut result = run_result();
        let arm = &mut result.arms[0];
        (arm.status.episodes.total, arm.status.episodes.accepted) = (36, 6);
        (arm.record.withheld, arm.status.withheld) = (4, 1);
        let disagreements = |result: &RunResult| {
            let report = of(vec![result.clone()]);
            report.rehearsals[0].arms[0].labels.disagreements.clone()
        };
        assert_eq!(disagreements(&result), Vec::<String>::new());
        result.arms[0].record.withheld = 3;
        let counts = [
            "total: the typist counts 40, the daemon 36",
            "accepted: the typist counts 10, the daemon 6",
        ];
        assert_eq!(disagreements(&result), counts);
    }

    #[test]
    fn a_wrong_label_is_named_with_its_repository_and_arm() {
        let mut result = run_result();
        assert!(of(vec![result.clone()]).disagreements().is_empty());
        result.arms[1].status.episodes.accepted = 9;
        result.arms[2].record.labels.not_given = 2;
        let mut report = of(vec![result]);
        let not_given = "., mute arm: 2 labels were not given by the developer";
        assert_eq!(report.disagreements(), [not_given], "a formatter may cost labels");
        report.conditions.disturbances.clear();
        assert_eq!(report.disagreements(), [not_given], "so may a bracket that is typed over");
        report.conditions.editor = Editor::Plain;
        let counts = "., ppo arm: accepted: the typist counts 10, the daemon 9";
        assert_eq!(report.disagreements(), [counts, not_given]);
        report.rehearsals[0].arms[0].unexplained = 1;
        let unexplained = "., frozen arm: 1 requests ended without a reason";
        assert_eq!(report.disagreements(), [unexplained, counts, not_given]);
    }
}
