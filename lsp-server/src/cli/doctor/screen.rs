//! The doctor's findings as one screen for a person.

use super::{Check, Report, State};
use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table, presets};

pub fn screen(report: &Report) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    let mut before = "";
    for check in &report.checks {
        let name = if check.name == before { "" } else { check.name };
        before = check.name;
        for row in rows(check, name) {
            table.add_row(row);
        }
    }
    let table = table.trim_fmt();
    format!("Hone {} on {}\n\n{table}\n\n{}", report.hone, report.system, sum(report))
}

fn rows(check: &Check, name: &str) -> Vec<Vec<Cell>> {
    let (mark, color) = match check.state {
        State::Good => ("✓", Color::Green),
        State::Note => ("!", Color::Yellow),
        State::Wrong => ("✗", Color::Red),
    };
    let mark = Cell::new(mark).fg(color);
    let name = Cell::new(name).add_attribute(Attribute::Bold);
    let mut rows = vec![vec![mark, name, Cell::new(&check.found)]];
    if let Some(fix) = &check.fix {
        rows.push(vec![Cell::new(""), Cell::new(""), Cell::new(format!("→ {fix}"))]);
    }
    rows
}

fn sum(report: &Report) -> String {
    let (wrong, notes) = (report.count(State::Wrong), report.count(State::Note));
    let things = |count: usize| match count {
        1 => "1 thing is".to_owned(),
        count => format!("{count} things are"),
    };
    let found = match (wrong, notes) {
        (0, 0) => "Everything is in order.".to_owned(),
        (0, notes) => format!("Nothing is wrong, and {} worth a look.", things(notes)),
        (wrong, 0) => format!("{} wrong.", things(wrong)),
        (wrong, notes) => {
            format!("{} wrong, and {} worth a look.", things(wrong), things(notes))
        }
    };
    format!("{found} The text above holds no code, and can be pasted into a report.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_stands_below_what_was_found() {
        let report = Report {
            hone: "0.1.0",
            system: "linux x86_64".into(),
            ok: false,
            checks: vec![
                Check::good("program", "~/bin/hone"),
                Check::wrong("model", "it is missing", "fetch it"),
                Check::wrong("model", "it is damaged", "fetch it again"),
                Check::note("editor", "none", "install one"),
            ],
        };
        let text = screen(&report);
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        assert_eq!(lines[0], "Hone 0.1.0 on linux x86_64");
        assert!(lines[2].starts_with("✓") && lines[2].contains("~/bin/hone"), "{text}");
        assert!(lines[3].starts_with("✗") && lines[3].contains("model"), "{text}");
        assert_eq!(lines[4], "→ fetch it");
        assert!(!lines[5].contains("model"), "a name stands once: {text}");
        assert!(lines[7].starts_with('!'), "{text}");
        let last = "2 things are wrong, and 1 thing is worth a look. ";
        assert!(lines.last().unwrap().starts_with(last), "{text}");
    }
}
