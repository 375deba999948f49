//! Checks and values for tests, also of other crates. They belong to no feature:
//! `feedback/src/testing.rs` says why.

use crate::offers::{OfferHistory, Offers};
use feedback::event::EventKind;
use feedback::testing::numbered;
use textwrap::core::display_width;

/// The widths in which everything is looked at.
pub const WIDTHS: [usize; 4] = [40, 60, 80, 120];

/// Fails if a line is longer than the width although words could wrap, or ends with blanks.
pub fn assert_fits(text: &str, width: Option<usize>) {
    for line in text.lines() {
        assert_eq!(line, line.trim_end(), "no line ends with blanks:\n{text}");
        let words = line.split_whitespace().count();
        let fits = width.is_none_or(|width| display_width(line) <= width);
        assert!(fits || words == 1, "{} columns of {width:?}: {line}\n{text}", line.len());
    }
}

/// Groups events that are ten milliseconds apart.
pub fn group(events: Vec<EventKind>, mut each: impl FnMut(OfferHistory)) {
    let mut offers = Offers::new(|history| {
        each(history);
        Ok(())
    });
    for event in numbered(events) {
        offers.event(event).unwrap();
    }
    offers.finish().unwrap();
}
