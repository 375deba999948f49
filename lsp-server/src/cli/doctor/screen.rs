//! The doctor's findings as one screen for a person.

use super::{Check, Report, State};
use console::style;
use report::layout::Layout;

pub fn screen(report: &Report, layout: Layout) -> String {
    let mut before = "";
    let fields: Vec<_> = report
        .checks
        .iter()
        .map(|check| {
            let name = if check.name == before { "" } else { check.name };
            before = check.name;
            field(check, name)
        })
        .collect();
    let fields = layout.fields(fields.iter().map(|(name, text)| (name.as_str(), text)));
    let sum = layout.wrapped(&sum(report));
    format!("Hone {} on {}\n\n{fields}\n\n{sum}", report.hone, report.system)
}

fn field(check: &Check, name: &str) -> (String, String) {
    let mark = match check.state {
        State::Good => style("✓").green(),
        State::Note => style("!").yellow(),
        State::Wrong => style("✗").red(),
    };
    let fix = check.fix.as_ref().map_or(String::new(), |fix| format!("\n→ {fix}"));
    let name = if name.is_empty() { style(name) } else { style(name).bold() };
    (format!("{mark} {name}").trim_end().to_owned(), format!("{}{fix}", check.found))
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
    use report::testing::{WIDTHS, assert_fits};

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
        let text = screen(&report, Layout::UNLIMITED);
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        assert_eq!(lines[0], "Hone 0.1.0 on linux x86_64");
        assert!(lines[2].starts_with("✓") && lines[2].contains("~/bin/hone"), "{text}");
        assert!(lines[3].starts_with("✗") && lines[3].contains("model"), "{text}");
        assert_eq!(lines[4], "→ fetch it");
        assert!(!lines[5].contains("model"), "a name stands once: {text}");
        assert!(lines[7].starts_with('!'), "{text}");
        let last = "2 things are wrong, and 1 thing is worth a look. ";
        assert!(lines.last().unwrap().starts_with(last), "{text}");
        for width in WIDTHS {
            assert_fits(&screen(&report, Layout::of_width(width)), Some(width));
        }
    }
}
