//! Compares labels with what the person did.

use super::play::{Accept, Labelled, Played, Taken};
use feedback::event::Outcome;
use serde::Serialize;
use std::collections::BTreeMap;

/// How right the labels are.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Score {
    /// Accepts of offers, and those of them whose label says so.
    pub accepts: usize,
    pub right: usize,
    pub share: Option<f64>,
    /// Accepts of a part, which are among them.
    pub parts: usize,
    pub parts_right: usize,
    /// Accepts with another label: the entry, and the label.
    pub wrong: Vec<(usize, String)>,
    /// Offers that nobody took, with a label that says so: the entry at which they came.
    pub invented: Vec<(usize, String)>,
    /// Accepts that were undone at once, those of them that are known, and others that are not.
    pub undone: usize,
    pub undone_right: usize,
    pub undone_invented: usize,
    /// The labels of all offers.
    pub labels: BTreeMap<String, usize>,
}

impl Score {
    pub fn of(played: &Played) -> Score {
        let mut score = Score::default();
        for accept in &played.accepts {
            let labelled = &played.offers[&accept.offer];
            let is_right = is_right(accept, labelled);
            let is_part = matches!(accept.taken, Taken::Part { .. });
            score.accepts += 1;
            score.right += usize::from(is_right);
            score.parts += usize::from(is_part);
            score.parts_right += usize::from(is_part && is_right);
            if !is_right {
                score.wrong.push((accept.entry, label(labelled)));
            }
            score.undone += usize::from(accept.is_undone);
            score.undone_right += usize::from(accept.is_undone && labelled.is_undone);
        }
        score.share = (score.accepts > 0).then(|| score.right as f64 / score.accepts as f64);
        let taken = played.taken();
        for (id, labelled) in &played.offers {
            let is_accept = matches!(
                labelled.outcome,
                Some((Outcome::Accepted | Outcome::PartlyAccepted { .. }, _))
            );
            if is_accept && !taken.contains(id) {
                score.invented.push((labelled.entry, label(labelled)));
            }
            *score.labels.entry(label(labelled)).or_default() += 1;
            let was_undone =
                played.accepts.iter().any(|accept| accept.offer == *id && accept.is_undone);
            score.undone_invented += usize::from(labelled.is_undone && !was_undone);
        }
        score
    }
}

/// Returns whether a label says what was taken. Who takes a part and types the rest has typed it
/// all. A part need not be told from typing, because both earn the same.
fn is_right(accept: &Accept, labelled: &Labelled) -> bool {
    let Some((outcome, _)) = labelled.outcome else { return false };
    match (accept.taken, outcome) {
        (_, Outcome::Accepted) => true,
        (Taken::Part { utf16 }, Outcome::PartlyAccepted { utf16: labelled }) => labelled >= utf16,
        (Taken::Part { utf16 }, Outcome::TypedThrough { utf16: labelled }) => labelled >= utf16,
        _ => false,
    }
}

fn label(labelled: &Labelled) -> String {
    let outcome = labelled.outcome.map(|(outcome, _)| serde_json::json!(outcome));
    let kind = outcome.as_ref().and_then(|outcome| outcome["kind"].as_str());
    kind.unwrap_or("none").to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::play::Play;
    use super::*;
    use rehearsal::recording::reader;

    const MADE_UP: &str = include_str!("made-up.json");

    /// Of five offers, the first is accepted and undone, a word is taken of the second, the third
    /// is what an entry of the suggestion list puts in, the fourth is typed over, and the last is
    /// an edit of another place.
    #[test]
    fn the_labels_of_a_made_up_session_are_right() {
        let recording = reader::read("made-up.json", MADE_UP.as_bytes()).unwrap();
        assert_eq!(recording.fault, None);
        for reports in [false, true] {
            let played = Play::of(&recording, reports);
            let score = Score::of(&played);
            // Of a short part that is left, the document says no more than of one that is typed.
            let told = usize::from(reports);
            let counts = (score.accepts, score.right, score.parts, score.parts_right);
            assert_eq!(counts, (2, 1 + told, 1, told), "{score:?}");
            assert_eq!((score.undone, score.undone_right, score.undone_invented), (1, 1, 0));
            assert_eq!(score.labels["typed_through"], 1, "{score:?}");
            assert_eq!(score.labels["rejected_edit"], 2 - told, "{score:?}");
            assert_eq!((score.invented.len(), played.edits_taken.len()), (0, 1));
        }
    }
}
