//! The tables of a rehearsal: every number by quarter of the stream, and every arm against the
//! first one.

use crate::report::stats::{QUARTERS, RelativeChange, mean};
use crate::report::{ArmComparison, ArmReport, Rehearsal, RehearsalReport};
use comfy_table::{Cell, CellAlignment, Table, presets};
use std::fmt::Write;

/// With more arms than this, a repository's table leaves the first quarters out.
const ARMS_BY_QUARTER: usize = 3;

pub fn text(report: &RehearsalReport) -> String {
    let mut out = String::new();
    for rehearsal in &report.rehearsals {
        if report.rehearsals.len() > 1 {
            let _ = writeln!(out, "{}", rehearsal.repo.path);
        }
        let _ = writeln!(out, "{}", by_quarter(rehearsal));
        let width = rehearsal.arms.iter().map(|arm| arm.name.chars().count()).max();
        let width = width.unwrap_or_default() + 2;
        for arm in &rehearsal.arms {
            let _ = writeln!(out, "{:<width$}{}", arm.name, learning(arm));
        }
        out.push('\n');
    }
    let first = report.arms.first().map_or("", |arm| &arm.name);
    let together = match report.rehearsals.len() {
        1 => String::new(),
        count => format!(", {count} repositories together"),
    };
    let _ = writeln!(
        out,
        "Compared with {first}{together} (95 % intervals, paired by commit):\n{}",
        against(&report.pooled)
    );
    out
}

fn learning(arm: &ArmReport) -> String {
    let swap_ms: Vec<f64> = arm.swaps.iter().filter_map(|swap| swap.ms).collect();
    let update_ms: Vec<f64> = arm.updates.iter().filter_map(|update| update.ms).collect();
    format!(
        "{} labels · {} updates{} · {} swaps{}{} · {} requests without a reason",
        arm.labels.daemon.total - arm.labels.daemon.unlabelled,
        arm.updates.len(),
        mean(&update_ms).map_or_else(String::new, |ms| format!(" (mean {:.1} s)", ms / 1e3)),
        arm.swaps.len(),
        mean(&swap_ms).map_or_else(String::new, |ms| format!(" (mean {ms:.1} ms)")),
        arm.learned,
        arm.unexplained,
    )
}

fn by_quarter(rehearsal: &Rehearsal) -> Table {
    let is_rated = rehearsal.arms.iter().any(|arm| arm.total.rating.is_some());
    let mut table = Table::new();
    let mut header = vec![
        "quarter",
        "arm",
        "asked",
        "shown",
        "accepted",
        "completed",
        "kept",
        "late",
        "p50 ms",
        "p95 ms",
        "adapter",
    ];
    header.extend(is_rated.then_some("rated"));
    table.load_preset(presets::UTF8_FULL_CONDENSED).set_header(header);
    let first = if rehearsal.arms.len() > ARMS_BY_QUARTER { QUARTERS - 1 } else { 0 };
    for quarter in first..=QUARTERS {
        let name = if quarter < QUARTERS { (quarter + 1).to_string() } else { "all".into() };
        for (index, arm) in rehearsal.arms.iter().enumerate() {
            let summary = arm.quarters.get(quarter).unwrap_or(&arm.total);
            let name = if index == 0 { name.as_str() } else { "" };
            let mut row = vec![Cell::new(name), Cell::new(&arm.name)];
            row.extend(
                [
                    summary.asked.to_string(),
                    percent(summary.shown_rate),
                    percent(summary.accept_rate),
                    percent(summary.completed_ratio),
                    percent(summary.kept_rate),
                    percent(summary.cancel_rate),
                    number(summary.latency_p50_ms),
                    number(summary.latency_p95_ms),
                    version(summary.adapter_version),
                ]
                .map(right),
            );
            let rating = summary.rating.map_or_else(|| "–".to_owned(), |r| format!("{r:.1}"));
            row.extend(is_rated.then(|| right(rating)));
            table.add_row(row);
        }
    }
    table
}

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

fn against(compared: &[ArmComparison]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED).set_header([
        "arm",
        "over",
        "accept rate",
        "offers shown",
        "completed characters",
    ]);
    for arm in compared {
        let last = arm.quarters.last().map(|last| ("last quarter", last));
        for (index, (over, comparison)) in last.into_iter().chain([("all", &arm.total)]).enumerate()
        {
            let name = if index == 0 { arm.name.as_str() } else { "" };
            let numbers = [&comparison.accept_rate, &comparison.shown, &comparison.completed_ratio];
            let mut row = vec![Cell::new(name), Cell::new(over)];
            row.extend(numbers.map(|n| right(change(n))));
            table.add_row(row);
        }
    }
    table
}

fn change(change: &Option<RelativeChange>) -> String {
    change.as_ref().map_or_else(
        || "–".to_owned(),
        |c| {
            let within = c.interval.map(|interval| {
                format!(" ({:+.1} … {:+.1})", 100.0 * interval.low, 100.0 * interval.high)
            });
            format!("{:+.1} %{}", 100.0 * c.relative, within.unwrap_or_default())
        },
    )
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
