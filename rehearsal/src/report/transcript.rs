//! A rehearsal as one line of text for each event, for people to watch.

use crate::developer::OfferOutcome;
use crate::run::{RequestEvent, RunEvent};
use console::{Style, truncate_str};
use std::time::Duration;

/// The arm that the others are compared with has no colour.
const FROZEN: &str = "frozen";
/// Columns that a line of code may take.
const CODE_COLUMNS: usize = 64;

/// The event as one coloured line. `None` for an event that is not worth one.
pub fn line(event: &RunEvent, elapsed: Duration) -> Option<String> {
    let text = match event {
        RunEvent::File { commit, path } => {
            format!(
                "{} {}",
                bold().apply_to(format!("commit {}", &commit[..commit.len().min(8)])),
                printable::name(path)
            )
        }
        RunEvent::Requested(request) => format!("{}  {}", arm(request.arm), self::request(request)),
        RunEvent::Updated { arm: name, update, labels } => format!(
            "{}  {}",
            arm(name),
            cyan().apply_to(format!(
                "↻ update {} from {labels} labels so far{}",
                update.number,
                update.ms.map_or_else(String::new, |ms| format!(", {:.1} s", ms / 1e3))
            ))
        ),
        RunEvent::Swapped { arm: name, swap } => format!(
            "{}  {}",
            arm(name),
            cyan().apply_to(format!(
                "⇄ adapter v{} is in service{}",
                swap.version,
                swap.ms.map_or_else(String::new, |ms| format!(", swapped in {ms:.1} ms"))
            ))
        ),
        RunEvent::LearnerFailed { arm: name, error } => {
            let error = printable::name(error);
            format!("{}  {}", arm(name), red().apply_to(format!("learner: {error}")))
        }
        RunEvent::Training { .. } | RunEvent::PlaceDone { .. } => return None,
    };
    Some(format!("{} {text}", dim().apply_to(format!("{:>6.1}s", elapsed.as_secs_f64()))))
}

fn request(event: &RequestEvent) -> String {
    let typed = printable::text(event.typed.trim_start());
    let offer = printable::text(event.offer.unwrap_or(""));
    let code = format!("{typed}{}", dim().apply_to(offer));
    let code = truncate_str(&code, CODE_COLUMNS, "…");
    let width = console::measure_text_width(&code);
    let pad = " ".repeat(CODE_COLUMNS.saturating_sub(width));
    let verdict = match event.outcome {
        None => dim().apply_to("· no offer".to_owned()),
        Some(OfferOutcome::Accepted { chars }) => green().apply_to(format!("✓ {chars} chars")),
        Some(OfferOutcome::Mended { chars, of }) => {
            green().apply_to(format!("✓ {chars} of {of} chars"))
        }
        Some(OfferOutcome::Undone { .. }) => red().apply_to("✗ undone".to_owned()),
        Some(OfferOutcome::TypedOn) => red().apply_to("✗ typed on".to_owned()),
        Some(OfferOutcome::Escaped) => red().apply_to("✗ Esc".to_owned()),
        Some(OfferOutcome::TimedOut) => red().apply_to("✗ 10 s".to_owned()),
    };
    format!("{code}{pad}  {verdict}  {}", dim().apply_to(format!("{:.0} ms", event.latency_ms)))
}

fn arm(name: &str) -> String {
    let style = if name == FROZEN { style().white() } else { style().magenta().bright() };
    style.apply_to(format!("{name:<8}")).to_string()
}

/// The style always writes its colours, because the transcript is a recording. The caller strips
/// them for a terminal without colours.
fn style() -> Style {
    Style::new().force_styling(true)
}

fn bold() -> Style {
    style().bold()
}

fn dim() -> Style {
    style().dim()
}

fn cyan() -> Style {
    style().cyan()
}

fn green() -> Style {
    style().green()
}

fn red() -> Style {
    style().red()
}

#[cfg(test)]
mod tests {
    use super::*;
    use console::strip_ansi_codes;

    fn asked(offer: Option<&str>, outcome: Option<OfferOutcome>) -> String {
        let event = RunEvent::Requested(RequestEvent {
            arm: "learning",
            path: "a.rs",
            line: 3,
            typed: "    let x = ",
            rest: "1;",
            offer,
            outcome,
            latency_ms: 12.4,
        });
        line(&event, Duration::from_millis(1500)).unwrap()
    }

    #[test]
    fn an_offer_is_dim_after_what_was_typed_and_its_fate_follows() {
        let accepted = asked(Some("1;"), Some(OfferOutcome::Accepted { chars: 2 }));
        assert!(accepted.contains("let x = \u{1b}[2m1;\u{1b}[0m"), "{accepted:?}");
        let plain = strip_ansi_codes(&accepted).into_owned();
        assert!(plain.starts_with("   1.5s learning  let x = 1;"), "{plain}");
        assert!(plain.ends_with("✓ 2 chars  12 ms"), "{plain}");
        assert!(strip_ansi_codes(&asked(None, None)).contains("· no offer"));
    }

    /// The commits may be a stranger's.
    #[test]
    fn code_and_names_move_no_cursor() {
        let asked = asked(Some("\u{1b}[2Jx"), None);
        assert!(asked.contains(r"\u001b[2Jx"), "{asked:?}");
        let file = RunEvent::File { commit: "c0ffee", path: "a\n\u{1b}[2J.rs" };
        let shown = line(&file, Duration::ZERO).unwrap();
        assert!(shown.ends_with(r"a\u000a\u001b[2J.rs"), "{shown:?}");
    }

    #[test]
    fn long_code_is_cut_so_that_verdicts_line_up() {
        let column = |text: &str| {
            let plain = strip_ansi_codes(text).into_owned();
            plain.chars().position(|c| c == '✗' || c == '✓')
        };
        let short = asked(Some("1;"), Some(OfferOutcome::TypedOn));
        let long = asked(Some(&"größe ".repeat(40)), Some(OfferOutcome::Escaped));
        assert_eq!(column(&short), column(&long));
    }
}
