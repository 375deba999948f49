//! Where in a line the developer pauses for a completion. This is drawn before anyone has answered,
//! so that every arm meets the same developer.

use crate::developer::pairs::only_closes;
use crate::developer::{Editor, PlaceDraws};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A shorter line is typed without a pause inside it.
const MIN_INSIDE_CHARS: usize = 6;
/// A pause inside a line leaves at least this much of it.
const MIN_LEFT_CHARS: usize = 3;
/// Texts after which people pause to see what comes.
const PAUSES: &[&str] = &["(", ".", "= ", ", ", ": ", "::"];

/// 2^64 divided by the golden ratio. It puts the seeds of neighbouring lines far apart.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Debug, Clone, PartialEq)]
pub struct LinePlan {
    /// Bytes of the indentation, which the editor inserts.
    pub indent: usize,
    /// The place where to ask for a completion, as rising byte offsets in the line. The first one
    /// is the end of the indentation.
    pub places: Vec<(usize, PlaceDraws)>,
}

/// The random numbers of a line of the stream. Each line has its own, so that a stream can be
/// continued at any line.
pub fn draws(seed: u64, line: u64) -> StdRng {
    StdRng::seed_from_u64(seed ^ line.wrapping_mul(SPREAD))
}

/// Plans one line, given without its ending. A blank line has no places. Neither has a line that
/// only closes brackets, where the editor closes them.
pub fn of_line(line: &str, editor: Editor, rng: &mut StdRng) -> LinePlan {
    let indent = line.len() - line.trim_start().len();
    if indent == line.len() || (editor == Editor::Vscode && only_closes(line)) {
        return LinePlan { indent, places: Vec::new() };
    }
    let mut places = vec![(indent, PlaceDraws::draw(rng))];
    if let Some(inside) = inside_point(line, indent, rng) {
        places.push((inside, PlaceDraws::draw(rng)));
    }
    LinePlan { indent, places }
}

/// One natural place to pause: after punctuation if there is some, else between two words.
fn inside_point(line: &str, indent: usize, rng: &mut StdRng) -> Option<usize> {
    if line[indent..].chars().count() < MIN_INSIDE_CHARS {
        return None;
    }
    let room = |at: &usize| line[*at..].chars().count() >= MIN_LEFT_CHARS;
    let offsets = || line.char_indices().map(|(at, _)| at).filter(|at| *at > indent).filter(room);
    let after_pause = |at: &usize| PAUSES.iter().any(|pause| line[..*at].ends_with(pause));
    let word_start = |at: &usize| {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        line[*at..].starts_with(is_word) && !line[..*at].ends_with(is_word)
    };
    let mut places: Vec<usize> = offsets().filter(after_pause).collect();
    if places.is_empty() {
        places = offsets().filter(word_start).collect();
    }
    match places.len() {
        0 => None,
        count => Some(places[rng.random_range(0..count)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inside(text: &str, seed: u64) -> Option<&str> {
        let plan = of_line(text, Editor::Vscode, &mut StdRng::seed_from_u64(seed));
        plan.places.get(1).map(|(at, _)| &text[*at..])
    }

    #[test]
    fn the_first_point_follows_the_indentation_and_blank_lines_have_none() {
        let mut rng = StdRng::seed_from_u64(1);
        let plan = of_line("\t  x = 1", Editor::Vscode, &mut rng);
        assert_eq!((plan.indent, plan.places[0].0), (3, 3));
        let mut of_line = |line| of_line(line, Editor::Vscode, &mut rng);
        assert_eq!(of_line("   "), LinePlan { indent: 3, places: Vec::new() });
        assert_eq!(of_line("  })"), LinePlan { indent: 2, places: Vec::new() });
        assert_eq!(of_line("}?").places.len(), 1);
    }

    #[test]
    fn without_an_editor_that_closes_brackets_they_are_asked_for() {
        let mut rng = StdRng::seed_from_u64(1);
        assert_eq!(of_line("}", Editor::Plain, &mut rng).places.len(), 1);
    }

    #[test]
    fn pauses_inside_a_line_are_natural_places() {
        for seed in 0..50 {
            let rest = inside("    total = sum(values, start)", seed).unwrap();
            assert!(["sum(values, start)", "values, start)", "start)"].contains(&rest), "{rest}");
            assert_eq!(inside("return größe", seed), Some("größe"));
            assert_eq!(inside("} else", seed), Some("else"));
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_plan() {
        let draw = |seed| {
            let mut rng = StdRng::seed_from_u64(seed);
            let mut of_line = || of_line("call(one, two)", Editor::Vscode, &mut rng);
            (0..1000).map(|_| of_line()).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }
}
