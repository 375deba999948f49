//! The report as one page. It has no script, needs no network, and holds none of the user's text.

use super::next_edits::NextEdits;
use super::table::headline;
use super::{Report, chart, lineage};
use anyhow::{Context, Result};
use minijinja::{Environment, context};

const PAGE: &str = include_str!("page.html");

pub fn page(report: &Report) -> Result<String> {
    let mut templates = Environment::new();
    templates.add_filter("percent", |share: f64| format!("{:.0}", 100.0 * share));
    templates.add_filter("ms", |ms: f64| format!("{ms:.0}"));
    templates.add_filter("thousands", thousands);
    templates.add_template("page.html", PAGE)?;
    let offers: u64 = report.outcomes.iter().map(|count| count.offers).sum();
    let top = report.versions.iter().filter_map(|version| version.figures.accept);
    let top = top.map(|accept| accept.high).fold(0.1, f64::max);
    let page = templates.get_template("page.html")?.render(context! {
        report,
        headline => headline(&report.all),
        offers,
        next_edits => report.next_edits.as_ref().map(NextEdits::sentence),
        top,
        lineage => lineage::draw(&report.lineage),
        by_version => chart::accept_by_version(report)?,
        rates => chart::rates(report)?,
        saved => chart::saved(report)?,
        latency => chart::latency(report)?,
    });
    page.context("the report's page cannot be written")
}

/// Writes 12345 as `12 345`, with a space that does not break.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap_or_default())
        .collect();
    groups.join("\u{202f}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReportBuilder;
    use crate::next_edits::tests::{edit, fold};
    use crate::tests::report;
    use feedback::event::NextEditKind;

    #[test]
    fn the_page_stands_alone_and_holds_no_path_and_no_code() {
        let page = page(&report()).unwrap();
        for absent in ["secret", "path.rs", "0123456789", "<script", "src=", "@import", "url("] {
            assert!(!page.contains(absent), "{absent}");
        }
        let links = page.matches("://").count();
        assert_eq!(links, page.matches("http://www.w3.org/2000/svg").count(), "no link leads out");
        for present in ["prefers-color-scheme: dark", "v3", "qwen2.5-coder-0.5b", "serves now"] {
            assert!(page.contains(present), "{present}");
        }
        // This writes the page for a person to look at, and for the pictures in the docs.
        if let Some(path) = std::env::var_os("HONE_REPORT_PAGE") {
            std::fs::write(path, page).unwrap();
        }
    }

    #[test]
    fn the_page_begins_with_the_headline_and_leaves_out_what_nobody_judged() {
        let mut report = report();
        report.all.kept_share = Some(0.3);
        report.all.wrong_per_100_lines = Some(12.0);
        let all = page(&report).unwrap();
        assert!(all.contains("30 % are completions that you kept. 12 offers were wrong"), "{all}");
        assert!(all.contains(" judged: "), "{all}");
        report.all.accept = None;
        assert!(!page(&report).unwrap().contains(" judged: "));
        assert!(!all.contains("next edits"), "there were none");
        report.next_edits = fold(vec![edit("a", NextEditKind::Rename, &[])]);
        assert!(page(&report).unwrap().contains("next edits: 1 shown"));
    }

    #[test]
    fn an_empty_log_makes_a_page_too() {
        let empty = ReportBuilder::new(jiff::tz::TimeZone::UTC).report("<model>", None, vec![]);
        let page = page(&empty).unwrap();
        assert!(
            page.contains("&lt;model&gt;") && page.contains("Nothing is recorded yet"),
            "{page}"
        );
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(
            [5, 1234, 1_234_567].map(thousands),
            ["5", "1\u{202f}234", "1\u{202f}234\u{202f}567"]
        );
    }
}
