//! The report as a table for a terminal.

use super::outlook::Outlook;
use super::{Figures, Report};
use comfy_table::{CellAlignment, Table, presets};

pub fn table(report: &Report) -> String {
    let (Some(from), Some(to)) = (report.from, report.to) else {
        return "nothing is recorded yet: write some code with Hone in your editor".into();
    };
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED);
    table.set_header([
        "",
        "requested",
        "shown",
        "accept rate (95 %)",
        "kept",
        "saved",
        "p50 ms",
        "p95 ms",
    ]);
    for version in &report.versions {
        table.add_row(row(&version.name, &version.figures));
    }
    if report.versions.len() > 1 {
        table.add_row(row("all", &report.all));
    }
    if report.closing.requested > 0 {
        table.add_row(row("of these only brackets", &report.closing));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let outcomes = report.outcomes.iter().filter(|count| count.offers > 0);
    let outcomes: Vec<_> =
        outcomes.map(|count| format!("{} {}", count.offers, count.name)).collect();
    let headline = headline(&report.all).map_or(String::new(), |sentence| sentence + "\n");
    let mut text = format!(
        "{}, {from} to {to}\n{headline}{table}\n{}\nsaved: characters inserted instead of \
         typed. `hone report --html` makes a page with charts.",
        report.model,
        outcomes.join(" · ")
    );
    if !report.outlooks.is_empty() {
        let others: Vec<_> = report.outlooks.iter().map(Outlook::sentence).collect();
        text.push_str("\nWith another `completion.eagerness` you would have had, ");
        text.push_str(&format!("against `balanced`:\n  {}", others.join("\n  ")));
    }
    text
}

/// What the user gets, in one sentence.
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
        figures.requested.to_string(),
        percent(figures.shown_rate),
        accept,
        percent(figures.kept),
        figures.saved.to_string(),
        ms(figures.p50_ms),
        ms(figures.p95_ms),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_has_a_line_with_its_interval() {
        let text = table(&crate::report::tests::report());
        assert!(text.starts_with("qwen2.5-coder-0.5b, 2026-01-01 to 2026-01-21\n"), "{text}");
        assert!(text.contains("base") && text.contains("│ v3") && text.contains(" % ("), "{text}");
        assert!(text.contains("│ of these only brackets"), "{text}");
        assert!(text.contains("no offer") && !text.contains("secret"), "{text}");
    }
}
