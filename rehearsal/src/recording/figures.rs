//! What is counted while a recording is played, and how it is printed.

use super::written::Agreement;
use crate::run::ledger::LabelCounts;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use std::collections::BTreeMap;

/// Why the play ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlayEnd {
    #[default]
    Recording,
    /// The part that was asked for is over.
    Limit,
    Interrupted,
}

/// The figures of one arm.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PlayFigures {
    pub arm: String,
    /// Entries that were played, and those that could be.
    pub entries: usize,
    pub of_entries: usize,
    /// How long the played part was, by the recording's clock.
    pub seconds: f64,
    pub ended_by: PlayEnd,
    /// Characters that the person put into the documents, in any way.
    pub characters_put_in: usize,
    /// Offers of the recording's own tool that the person took, and their characters.
    pub taken_of_other_tool: usize,
    pub characters_of_other_tool: usize,
    pub asked: usize,
    /// The person did something else before the answer came.
    pub late: usize,
    /// Answers that did not fit the text at the caret.
    pub stale: usize,
    pub shown: usize,
    /// What was written next is this offer, or begins with ten characters or more that are all of
    /// it.
    pub right: usize,
    /// What was written next is exactly this offer.
    pub exact: usize,
    /// Characters of all offers shown, those of them that were written, and those of right offers.
    pub characters_shown: usize,
    pub characters_written: usize,
    pub characters_right: usize,
    /// Offers that another one replaced within half a second.
    pub flicker: usize,
    pub seconds_on_screen: f64,
    pub seconds_right_on_screen: f64,
    /// Why the requests ended as they did.
    pub reasons: BTreeMap<String, u64>,
    pub p50_ms: Option<f64>,
    pub p95_ms: Option<f64>,
    /// What the daemon made of the offers, from the document alone.
    pub labels: LabelCounts,
    #[serde(skip)]
    pub latencies_ms: Vec<f64>,
}

impl PlayFigures {
    /// An offer came on the screen.
    pub fn show(&mut self, offer: &str, agreement: Agreement) {
        let chars = offer.trim_end().chars().count();
        self.shown += 1;
        self.right += usize::from(agreement.is_right);
        self.exact += usize::from(agreement.is_exact);
        self.characters_shown += chars;
        self.characters_written += agreement.chars;
        self.characters_right += if agreement.is_right { agreement.chars } else { 0 };
    }

    /// The figures with those that need all of the answers.
    pub fn finished(mut self) -> PlayFigures {
        self.latencies_ms.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let rank = (share * self.latencies_ms.len() as f64).ceil() as usize;
            self.latencies_ms.get(rank.saturating_sub(1)).copied()
        };
        (self.p50_ms, self.p95_ms) = (at(0.5), at(0.95));
        self
    }
}

/// The name of a row, and what it says of an arm.
type Row = (&'static str, fn(&PlayFigures) -> String);

/// The figures of all arms, one column each.
pub fn table(arms: &[PlayFigures]) -> String {
    let Some(first) = arms.first() else { return String::new() };
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED);
    table.set_header([""].into_iter().chain(arms.iter().map(|one| one.arm.as_str())));
    let rows: [Row; 12] = [
        ("asked", |one| one.asked.to_string()),
        ("answered too late", |one| count(one.late, one.asked)),
        ("offers shown", |one| one.shown.to_string()),
        ("right", |one| count(one.right, one.shown)),
        ("exactly what was written", |one| count(one.exact, one.shown)),
        ("characters shown", |one| one.characters_shown.to_string()),
        ("of these written next", |one| count(one.characters_written, one.characters_shown)),
        ("in right offers", |one| count(one.characters_right, one.characters_shown)),
        ("flicker", |one| count(one.flicker, one.shown)),
        ("stale", |one| one.stale.to_string()),
        ("on screen", |one| {
            let share = 100.0 * one.seconds_right_on_screen / one.seconds_on_screen.max(1e-9);
            format!("{:.0} s, {share:.0} % right", one.seconds_on_screen)
        }),
        ("p50, p95", |one| match (one.p50_ms, one.p95_ms) {
            (Some(p50), Some(p95)) => format!("{p50:.0}, {p95:.0} ms"),
            _ => "–".into(),
        }),
    ];
    for (name, of) in rows {
        table.add_row([name.to_owned()].into_iter().chain(arms.iter().map(of)));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text = format!(
        "{} of {} entries, {}{}: {} characters were put in,\n{} of them by {} offers of the \
         recording's own tool that were taken.\n{table}\n",
        first.entries,
        first.of_entries,
        duration(first.seconds),
        match first.ended_by {
            PlayEnd::Interrupted => ", interrupted",
            PlayEnd::Limit | PlayEnd::Recording => "",
        },
        first.characters_put_in,
        first.characters_of_other_tool,
        first.taken_of_other_tool,
    );
    for one in arms {
        text.push_str(&silence(one, arms.len() > 1));
    }
    text.push_str(
        "right: the offer is what was written next up to the end of its lines, or ten or\nmore \
         characters of its beginning. flicker: another offer came within 0.5 s.\n",
    );
    text
}

/// Returns why nothing was shown, the most frequent reasons first.
fn silence(figures: &PlayFigures, is_named: bool) -> String {
    let mut reasons: Vec<(&String, &u64)> =
        figures.reasons.iter().filter(|(name, _)| *name != "shown").collect();
    reasons.sort_by(|a, b| b.1.cmp(a.1));
    let name = if is_named { format!("{}, ", figures.arm) } else { String::new() };
    let list: Vec<String> =
        reasons.into_iter().take(4).map(|(name, count)| format!("{name} {count}")).collect();
    match list.is_empty() {
        true => String::new(),
        false => format!("{name}other answers: {}\n", list.join(", ")),
    }
}

fn count(part: usize, of: usize) -> String {
    match of {
        0 => part.to_string(),
        _ => format!("{part} ({:.0} %)", 100.0 * part as f64 / of as f64),
    }
}

fn duration(seconds: f64) -> String {
    if seconds < 120.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_are_counted_with_their_characters() {
        let mut figures = PlayFigures::default();
        figures.show("x)", Agreement { is_exact: true, is_right: true, chars: 2 });
        figures.show("values.map  ", Agreement { chars: 4, ..Agreement::default() });
        figures.latencies_ms = vec![30.0, 10.0, 20.0];
        let figures = figures.finished();
        assert_eq!((figures.shown, figures.right, figures.exact), (2, 1, 1));
        let characters =
            (figures.characters_shown, figures.characters_written, figures.characters_right);
        assert_eq!(characters, (12, 6, 2));
        assert_eq!((figures.p50_ms, figures.p95_ms), (Some(20.0), Some(30.0)));
    }

    #[test]
    fn the_table_fits_into_eighty_columns() {
        let figures = PlayFigures {
            arm: "gate".into(),
            entries: 14_341,
            of_entries: 14_341,
            seconds: 5_500.0,
            asked: 3_033,
            shown: 1_000,
            right: 250,
            seconds_on_screen: 1_234.0,
            reasons: [("held_back", 900), ("shown", 5)].map(|(n, c)| (n.to_owned(), c)).into(),
            ..PlayFigures::default()
        };
        let text = table(&[figures.clone(), figures]);
        assert!(text.contains("250 (25 %)") && text.contains("92 min"), "{text}");
        assert!(text.contains("gate, other answers: held_back 900\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
