//! What a person wrote next at a place, as far as a recording shows.

use super::{Event, What};
use crate::developer::MIN_PREFIX_CHARS;
use std::ops::Range;

/// A place that was not touched for this long, in milliseconds, is finished.
const SETTLED_MS: u64 = 10_000;

/// A place at which nothing happens for this long, in milliseconds, is left.
const LEFT_MS: u64 = 60_000;

/// A place is followed for so many of its document's changes at most.
const CHANGES_MAX: usize = 2_000;

/// A place, and what stands there.
struct Place {
    start: usize,
    text: String,
}

/// What a change does to a place.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Inside,
    Elsewhere,
    Gone,
}

impl Place {
    fn end(&self) -> usize {
        self.start + self.text.len()
    }

    fn step(&mut self, range: Range<usize>, inserted: &str) -> Step {
        if range.start >= self.start && range.end <= self.end() {
            let inside = range.start - self.start..range.end - self.start;
            self.text.replace_range(inside, inserted);
            Step::Inside
        } else if range.end <= self.start {
            self.start = self.start - range.len() + inserted.len();
            Step::Elsewhere
        } else if range.start >= self.end() {
            Step::Elsewhere
        } else {
            Step::Gone
        }
    }
}

/// Returns what was written at a byte of a document, up to the end of so many lines. `kept` is what
/// stands there already and belongs to it. It returns `None` if nothing was written.
///
/// The place is followed until the person breaks its last line, until it was not touched for some
/// seconds, or until an edit takes it away together with what is before it.
pub fn next(
    events: &[Event],
    document: usize,
    at: usize,
    kept: &str,
    lines: usize,
) -> Option<String> {
    let mut place = Place { start: at, text: kept.to_owned() };
    let mut touched_ms = None;
    let mut changes = 0;
    let began_ms = events.first()?.at_ms;
    for event in events {
        let waits = touched_ms.map_or((began_ms, LEFT_MS), |touched| (touched, SETTLED_MS));
        if event.at_ms.saturating_sub(waits.0) >= waits.1 {
            break;
        }
        match &event.what {
            What::Changed { document: changed, replacements, .. } if *changed == document => {
                let steps: Vec<Step> = replacements
                    .iter()
                    .map(|replacement| {
                        let (range, inserted) = replacement.minimal();
                        place.step(range, inserted)
                    })
                    .collect();
                if steps.contains(&Step::Gone) {
                    break;
                }
                if steps.contains(&Step::Inside) {
                    touched_ms = Some(event.at_ms);
                }
                changes += 1;
                if changes == CHANGES_MAX || place.text.matches('\n').count() >= lines {
                    break;
                }
            }
            What::Text { document: changed, .. } | What::Closed { document: changed }
                if *changed == document =>
            {
                break;
            }
            _ => {}
        }
    }
    touched_ms?;
    let text = place.text.replace("\r\n", "\n");
    let written: Vec<&str> = text.split('\n').take(lines).collect();
    Some(written.join("\n").trim_end().to_owned()).filter(|written| !written.is_empty())
}

/// How an offer agrees with what was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Agreement {
    /// It is what was written, up to the end of the line.
    pub is_exact: bool,
    /// It is that, or a beginning of it that is worth a key.
    pub is_right: bool,
    /// Characters from its beginning that were written.
    pub chars: usize,
}

/// Compares an offer with what was written at its place.
pub fn compare(offer: &str, written: &str) -> Agreement {
    let offer = offer.replace("\r\n", "\n");
    let offer = offer.trim_end();
    let same = |(offered, real): &(char, char)| offered == real;
    let chars = offer.chars().zip(written.chars()).take_while(same).count();
    let is_exact = offer == written && !offer.is_empty();
    let is_beginning = chars == offer.chars().count() && chars >= MIN_PREFIX_CHARS;
    Agreement { is_exact, is_right: is_exact || is_beginning, chars }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::Replacement;

    /// A change of one place, as `(at_ms, from, to, text)`.
    fn change((at_ms, from, to, text): (u64, usize, usize, &str)) -> Event {
        let replacement = Replacement { range: from..to, text: text.into(), same: (0, 0) };
        let replacements = vec![replacement];
        let what = What::Changed { document: 0, replacements, reason: None };
        Event { entry: 1, at_ms, what }
    }

    /// Returns what is written at byte 10, where `kept` stands.
    fn written(kept: &str, changes: &[(u64, usize, usize, &str)]) -> Option<String> {
        let events: Vec<Event> = changes.iter().copied().map(change).collect();
        next(&events, 0, 10, kept, 1)
    }

    #[test]
    fn keys_become_a_line_with_what_is_taken_back() {
        let keys = [(0, 10, 10, "g"), (9, 11, 11, "x"), (20, 11, 12, ""), (30, 11, 11, "o()")];
        assert_eq!(written("", &keys), Some("go()".into()));
        let broken = [(0, 10, 10, "go"), (9, 12, 12, "\r\n  "), (20, 16, 16, "next")];
        assert_eq!(written("", &broken), Some("go".into()), "the next line is not asked about");
    }

    #[test]
    fn edits_above_move_the_place_and_others_do_not_touch_it() {
        let edits = [(0, 0, 0, "use a;\n"), (9, 40, 40, "x"), (20, 17, 17, "go"), (30, 2, 4, "")];
        assert_eq!(written("", &edits), Some("go".into()));
        assert_eq!(written("", &edits[..2]), None);
    }

    /// The person types over a bracket that the editor has closed, and continues behind it.
    #[test]
    fn closed_marks_that_an_offer_replaces_belong_to_the_place() {
        assert_eq!(written(")", &[(0, 10, 10, "a"), (9, 12, 12, " {")]), Some("a) {".into()));
    }

    #[test]
    fn a_place_is_left_after_a_while_and_taken_away_by_an_edit_around_it() {
        let late = [(0, 10, 10, "go"), (SETTLED_MS, 12, 12, "away")];
        assert_eq!(written("", &late), Some("go".into()));
        let first = (0, 50, 50, "x");
        assert_eq!(written("", &[first, (LEFT_MS, 10, 10, "go")]), None);
        assert_eq!(written("", &[(0, 10, 10, "go"), (9, 8, 11, "")]), Some("go".into()));
    }

    #[test]
    fn an_offer_is_right_if_it_is_the_line_or_a_worthy_beginning_of_it() {
        let compared = |offer, written| {
            let Agreement { is_exact, is_right, chars } = compare(offer, written);
            (is_exact, is_right, chars)
        };
        assert_eq!(compared("x)", "x)"), (true, true, 2));
        assert_eq!(compared("values.len", "values.len()"), (false, true, 10));
        assert_eq!(compared("values.le", "values.len()"), (false, false, 9));
        assert_eq!(compared("x) {", "x)"), (false, false, 2));
        assert_eq!(compared("a\r\nb  ", "a\nb"), (true, true, 3));
        assert_eq!(compared("", ""), (false, false, 0));
    }
}
