//! The report as a table for a terminal.

use super::layout::{Column, Layout};
use super::next_edits::NextEdits;
use super::outlook::Outlook;
use super::{Figures, Report};

const COLUMNS: [Column; 8] = [
    Column::Text(""),
    Column::Number("accepted (95 %)"),
    Column::Number("kept"),
    Column::Number("saved"),
    Column::Number("shown"),
    Column::Number("asked"),
    Column::Number("p50 ms"),
    Column::Number("p95 ms"),
];

pub fn table(report: &Report, layout: Layout) -> String {
    let next_edits = report.next_edits.as_ref().map(NextEdits::sentence);
    let (Some(from), Some(to)) = (report.from, report.to) else {
        let nothing = "nothing is recorded yet: write some code with Hone in your editor";
        return layout.wrapped(next_edits.as_deref().unwrap_or(nothing));
    };
    let mut rows: Vec<_> =
        report.versions.iter().map(|version| row(&version.name, &version.figures)).collect();
    if report.versions.len() > 1 {
        rows.push(row("all", &report.all));
    }
    if report.closing.requested > 0 {
        rows.push(row("only brackets", &report.closing));
    }
    let outcomes = report.outcomes.iter().filter(|count| count.offers > 0);
    let outcomes: Vec<_> =
        outcomes.map(|count| format!("{} {}", count.offers, count.name)).collect();
    let mut parts = vec![format!("{}, {from} to {to}", report.model)];
    parts.extend(headline(&report.all));
    parts.push(layout.table(&COLUMNS, &rows));
    parts.push(outcomes.join(" · "));
    parts.extend(next_edits);
    parts.push(
        "saved: characters inserted instead of typed. `hone report --html` makes a page with \
         charts."
            .into(),
    );
    if !report.outlooks.is_empty() {
        parts.push(
            "With another `completion.eagerness` you would have had, against `balanced`:".into(),
        );
        let others = report.outlooks.iter().map(Outlook::sentence);
        parts.extend(others.map(|sentence| format!("  {sentence}")));
    }
    layout.wrapped(&parts.join("\n"))
}

/// Returns what the user gets, in one sentence.
pub fn headline(figures: &Figures) -> Option<String> {
    let (share, wrong) = (figures.kept_share?, figures.wrong_per_100_lines?);
    Some(format!(
        "Of what you wrote, {:.0} % are completions that you kept. {wrong:.0} offers were wrong \
         for every 100 lines that you typed.",
        100.0 * share
    ))
}

fn row(name: &str, figures: &Figures) -> Vec<String> {
    let percent =
        |share: Option<f64>| share.map_or("–".into(), |s| format!("{:.0} %", 100.0 * s));
    let ms = |ms: Option<f64>| ms.map_or("–".into(), |ms| format!("{ms:.0}"));
    let accept = figures.accept.map_or("–".into(), |accept| {
        let [rate, low, high] = [accept.rate, accept.low, accept.high].map(|share| 100.0 * share);
        format!("{rate:.0} % ({low:.0}–{high:.0}) of {}", figures.judged)
    });
    vec![
        name.to_owned(),
        accept,
        percent(figures.kept),
        figures.saved.to_string(),
        percent(figures.shown_rate),
        figures.requested.to_string(),
        ms(figures.p50_ms),
        ms(figures.p95_ms),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReportBuilder;
    use crate::next_edits::tests::{edit, fold};
    use crate::testing::{WIDTHS, assert_fits};
    use feedback::event::{NextEditKind, NextEditOutcome};

    #[test]
    fn every_version_has_a_line_with_its_interval() {
        let text = table(&crate::tests::report(), Layout::UNLIMITED);
        assert!(text.starts_with("qwen2.5-coder-0.5b, 2026-01-01 to 2026-01-21\n"), "{text}");
        assert!(text.contains("\nv3 ") && text.contains(" % ("), "{text}");
        assert!(text.contains("\nonly brackets "), "{text}");
        assert!(text.contains("no offer") && !text.contains("secret"), "{text}");
    }

    #[test]
    fn next_edits_have_a_line_if_there_were_any() {
        let mut report = crate::tests::report();
        assert!(!table(&report, Layout::UNLIMITED).contains("next edits"));
        let edits =
            || fold(vec![edit("a", NextEditKind::InsertedLines, &[NextEditOutcome::Accepted])]);
        report.next_edits = edits();
        let line = "next edits: 1 shown; 1 of 1 judged were taken (rules 1 of 1)";
        let text = table(&report, Layout::UNLIMITED);
        assert!(text.lines().any(|shown| shown == line), "{text}");
        // Completions may be switched off.
        let builder = ReportBuilder::new(jiff::tz::TimeZone::UTC);
        let alone = builder.report("m", edits(), vec![]);
        assert_eq!(table(&alone, Layout::UNLIMITED), line);
    }

    #[test]
    fn all_columns_fit_an_ordinary_terminal() {
        let report = crate::tests::report();
        for width in WIDTHS {
            let text = table(&report, Layout::of_width(width));
            assert_fits(&text, Some(width));
            assert_eq!(text.contains("by --json"), width < 80, "{text}");
        }
        assert_fits(&table(&report, Layout::UNLIMITED), None);
    }
}
