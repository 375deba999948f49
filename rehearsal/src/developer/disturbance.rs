//! What happens in a document in addition to the developer's typing: a formatter runs on save,
//! another tool puts an import in, a second cursor edits elsewhere. None of it says anything about
//! an offer, so no label may come of it.
//!
//! It is drawn for each place from random numbers of its own, so that the developer does the same
//! with it and without it.

use rand::Rng;
use rand::rngs::StdRng;
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Disturbance {
    /// The file is formatted while the offer stands: indentation, trailing blanks, a final newline
    Formatter,
    /// After some accepts, another tool puts an import at the top of the file
    AutoImport,
    /// A second cursor edits elsewhere in the file
    SecondCursor,
    /// The developer types a bracket and takes it back
    Typo,
}

/// The share of the places at which each of them happens.
const SHARE: f64 = 0.4;

/// What happens at one place.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Disturbed {
    pub format: Option<Format>,
    pub import: Option<Import>,
    /// The place where the second cursor is: 0 is the beginning of the file, 1 its end.
    pub second_cursor: Option<f64>,
    pub typo: bool,
}

/// The way in which a formatter runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// It sends the whole file instead of what changes.
    pub whole_file: bool,
    /// It trims the line of the cursor too, if that is blank.
    pub own_line: bool,
    /// Afterwards the developer leaves blanks at the end of the line for the next run.
    pub leaves_blanks: bool,
}

/// When the import is put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Import {
    AtOnce,
    /// While the next offer stands.
    Late,
}

impl Disturbed {
    pub fn draw(switched_on: &[Disturbance], rng: &mut StdRng) -> Disturbed {
        let mut disturbed = Disturbed::default();
        for disturbance in switched_on {
            if !rng.random_bool(SHARE) {
                continue;
            }
            match disturbance {
                Disturbance::Formatter => {
                    let (whole_file, own_line) = (rng.random(), rng.random());
                    let leaves_blanks = rng.random();
                    disturbed.format = Some(Format { whole_file, own_line, leaves_blanks });
                }
                Disturbance::AutoImport => {
                    let late = rng.random();
                    disturbed.import = Some(if late { Import::Late } else { Import::AtOnce });
                }
                Disturbance::SecondCursor => disturbed.second_cursor = Some(rng.random()),
                Disturbance::Typo => disturbed.typo = true,
            }
        }
        disturbed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;
    use rand::SeedableRng;

    #[test]
    fn only_what_is_switched_on_happens_and_everything_does_at_some_place() {
        let mut rng = StdRng::seed_from_u64(3);
        assert_eq!(Disturbed::draw(&[], &mut rng), Disturbed::default());
        let draws: Vec<_> =
            (0..1000).map(|_| Disturbed::draw(Disturbance::value_variants(), &mut rng)).collect();
        let share = |happens: &dyn Fn(&Disturbed) -> bool| {
            draws.iter().filter(|drawn| happens(drawn)).count() as f64 / draws.len() as f64
        };
        let near = |share: f64| (share - SHARE).abs() < 0.06;
        assert!(near(share(&|drawn| drawn.format.is_some())));
        assert!(near(share(&|drawn| drawn.second_cursor.is_some())));
        assert!(near(share(&|drawn| drawn.typo)));
        assert!(near(2.0 * share(&|drawn| drawn.import == Some(Import::Late))));
        assert!(share(&|drawn| *drawn == Disturbed::default()) > 0.05);
    }
}
