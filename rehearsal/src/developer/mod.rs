//! The simulated developer: what they do with an offer, given what they really wrote. Everything
//! that is chance is drawn before anyone has answered, so that every arm meets the same developer.
//! There are two of them. The one who is drawn from people is in [`person`]. For the exact one:
//!
//! - A **right** offer is the exact rest of the line, or at least [`MIN_PREFIX_CHARS`] characters
//!   of its exact beginning. It is accepted.
//! - A **near** offer is not right, but has at least [`MIN_NEAR_CHARS`] characters and a similarity
//!   of at least [`NEAR`] to the rest of the line (normalised Damerau-Levenshtein similarity). It
//!   is accepted, and what differs is fixed.
//! - Any other offer is **wrong**. It is rejected.
//!
//! `noise` is how often the developer slips. That share of the offers they would accept is not
//! accepted: half of it is rejected by Escape, and half is typed by hand while the offer stands
//! there. A quarter of `noise` is the share of wrong offers that are accepted and undone at once.

pub mod disturbance;
mod git_files;
pub mod history;
pub mod language;
pub mod pairs;
pub mod person;
pub mod plan;
pub mod readable;
pub mod repository;
mod unpacked;
pub mod written;

use crate::limits;
use person::Judging;
use rand::Rng;
use serde::{Deserialize, Serialize};
use strsim::normalized_damerau_levenshtein;

/// An offer that is only the beginning of the rest of the line is worth a key press from this
/// length on.
pub const MIN_PREFIX_CHARS: usize = 10;
/// A shorter offer is not worth fixing.
pub const MIN_NEAR_CHARS: usize = 15;
/// From this similarity on, fixing is less work than typing.
pub const NEAR: f64 = 0.85;
/// An editor does not show a shorter offer unless the user asks for it by hand, which the developer
/// never does. Typing it is as fast as reading it.
pub const MIN_OFFER_CHARS: usize = 4;
/// The noise of a rehearsal by default.
pub const NOISE: f64 = 0.05;

// Fixing costs more than a key press, so the offer must be longer to be worth it.
const _: () = assert!(MIN_PREFIX_CHARS < MIN_NEAR_CHARS);

/// Share of rejects by Escape. What neither share covers is rejected by typing on.
const ESCAPE_SHARE: f64 = 0.10;
/// Share of rejects by waiting until the offer times out.
const WAIT_SHARE: f64 = 0.10;
/// How long a developer waits at a place before typing on: between these two, evenly distributed on
/// a logarithmic scale.
const PAUSE_MS: (f64, f64) = (300.0, 3_000.0);

/// What the developer types in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Editor {
    /// It closes brackets and quotes by itself, as VS Code does, and shows no offer of
    /// fewer than four characters; nobody asks at a line that only closes brackets
    Vscode,
    /// It closes nothing and shows every offer
    Plain,
}

/// Who types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Developer {
    /// Accepts exactly what agrees with the commit
    Exact,
    /// Accepts by the habits of people, and looks for as long as they do; another one of
    /// them types each commit
    Person,
}

/// How the developer meets an offer.
#[derive(Debug, Clone, Copy)]
pub enum Manner {
    Exact { noise: f64 },
    Person(Judging),
}

impl Manner {
    /// Returns how long the offer stands before the developer does something.
    pub fn look_ms(self, offered: &str) -> u64 {
        match self {
            Manner::Exact { .. } => limits::LOOK_MS,
            Manner::Person(judging) => judging.look_ms(offered),
        }
    }

    /// Returns what the developer does with the text `offered`, where `rest` is what they really
    /// wrote.
    pub fn decide(self, offered: &str, rest: &str, draw: PlaceDraws) -> Action {
        match self {
            Manner::Exact { noise } => decide(offered, rest, draw, noise),
            Manner::Person(judging) => judging.decide(offered, rest, draw),
        }
    }
}

/// The way in which an unwanted offer is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectBy {
    /// By typing the next character.
    TypingOn,
    Escape,
    /// By doing nothing until the offer times out.
    Waiting,
}

/// What is drawn for one place of the stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlaceDraws {
    pub reject_by: RejectBy,
    /// Evenly distributed in 0..1. The developer slips where it is small.
    pub slip: f64,
    /// An answer that takes longer comes too late.
    pub pause_ms: f64,
}

impl PlaceDraws {
    pub fn draw(rng: &mut impl Rng) -> PlaceDraws {
        let draw: f64 = rng.random();
        let reject_by = if draw < ESCAPE_SHARE {
            RejectBy::Escape
        } else if draw < ESCAPE_SHARE + WAIT_SHARE {
            RejectBy::Waiting
        } else {
            RejectBy::TypingOn
        };
        let (shortest, longest) = PAUSE_MS;
        let pause_ms = shortest * (longest / shortest).powf(rng.random());
        PlaceDraws { reject_by, slip: rng.random(), pause_ms }
    }
}

/// What the developer does with an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Accept,
    /// Accept it, then replace what is between its first `head` and last `tail` bytes, which are
    /// right.
    Mend {
        head: usize,
        tail: usize,
    },
    /// Accept it, see that it is wrong, and undo it.
    Undo,
    Reject(RejectBy),
}

/// The outcome of an offer that was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum OfferOutcome {
    /// Accepted: this many characters.
    Accepted {
        chars: usize,
    },
    /// Accepted and fixed: `chars` of its `of` characters stayed.
    Mended {
        chars: usize,
        of: usize,
    },
    /// Accepted and undone.
    Undone {
        of: usize,
    },
    TypedOn,
    Escaped,
    TimedOut,
}

impl OfferOutcome {
    pub fn is_accepted(self) -> bool {
        matches!(
            self,
            OfferOutcome::Accepted { .. }
                | OfferOutcome::Mended { .. }
                | OfferOutcome::Undone { .. }
        )
    }

    /// Characters that did not have to be typed.
    pub fn completed(self) -> usize {
        match self {
            OfferOutcome::Accepted { chars } | OfferOutcome::Mended { chars, .. } => chars,
            OfferOutcome::Undone { .. }
            | OfferOutcome::TypedOn
            | OfferOutcome::Escaped
            | OfferOutcome::TimedOut => 0,
        }
    }

    /// Characters that were inserted by accepting.
    pub fn inserted(self) -> usize {
        match self {
            OfferOutcome::Accepted { chars } => chars,
            OfferOutcome::Mended { of, .. } | OfferOutcome::Undone { of } => of,
            OfferOutcome::TypedOn | OfferOutcome::Escaped | OfferOutcome::TimedOut => 0,
        }
    }
}

/// Returns what the exact developer does with the text `offered`, where `rest` is what they really
/// wrote.
fn decide(offered: &str, rest: &str, draw: PlaceDraws, noise: f64) -> Action {
    let wanted = if is_right(offered, rest) {
        Some(Action::Accept)
    } else if is_near(offered, rest) {
        let (head, tail) = common_ends(offered, rest);
        Some(Action::Mend { head, tail })
    } else {
        None
    };
    match wanted {
        Some(_) if draw.slip < noise / 2.0 => Action::Reject(RejectBy::Escape),
        Some(_) if draw.slip < noise => Action::Reject(RejectBy::TypingOn),
        Some(action) => action,
        None if !offered.is_empty() && draw.slip < noise / 4.0 => Action::Undo,
        None => Action::Reject(draw.reject_by),
    }
}

/// Returns true if an offer is the rest of the line, or enough of its beginning.
pub fn is_right(offered: &str, rest: &str) -> bool {
    !offered.is_empty()
        && (offered == rest
            || (rest.starts_with(offered) && offered.chars().count() >= MIN_PREFIX_CHARS))
}

fn is_near(offered: &str, rest: &str) -> bool {
    offered.chars().count() >= MIN_NEAR_CHARS
        && normalized_damerau_levenshtein(offered, rest) >= NEAR
}

/// Bytes at both ends that two texts share, without overlap.
pub(crate) fn common_ends(a: &str, b: &str) -> (usize, usize) {
    let same = |(x, y): &(char, char)| x == y;
    let head: usize = a.chars().zip(b.chars()).take_while(same).map(|(c, _)| c.len_utf8()).sum();
    let (a, b) = (&a[head..], &b[head..]);
    let back = a.chars().rev().zip(b.chars().rev());
    let tail = back.take_while(same).map(|(c, _)| c.len_utf8()).sum();
    (head, tail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    const CALM: PlaceDraws =
        PlaceDraws { reject_by: RejectBy::Waiting, slip: 0.9, pause_ms: 500.0 };

    fn action(offered: &str, rest: &str) -> Action {
        decide(offered, rest, CALM, NOISE)
    }

    #[test]
    fn the_rest_of_the_line_or_ten_characters_of_it_are_right() {
        assert_eq!(action("x)", "x)"), Action::Accept);
        assert_eq!(action("values.len", "values.len()"), Action::Accept);
        assert_eq!(action("values.le", "values.len()"), Action::Reject(RejectBy::Waiting));
        assert_eq!(action("", ""), Action::Reject(RejectBy::Waiting));
        assert_eq!(action("x) {", "x)"), Action::Reject(RejectBy::Waiting), "more than the line");
    }

    #[test]
    fn what_is_nearly_right_is_fixed_between_its_right_ends() {
        let (offered, rest) = ("compute_total(größe, items)", "compute_total(breiten, items)");
        assert_eq!(action(offered, rest), Action::Reject(RejectBy::Waiting), "too much to fix");
        let (offered, rest) = ("compute_total(größe, items)", "compute_total(größen, items)");
        let Action::Mend { head, tail } = action(offered, rest) else { panic!("near enough") };
        assert_eq!(
            (&rest[..head], &rest[rest.len() - tail..]),
            ("compute_total(größe", ", items)")
        );
        assert_eq!(
            action("total(a, b)", "total(a, c)"),
            Action::Reject(RejectBy::Waiting),
            "too short"
        );
        assert_eq!(common_ends("aa", "aaa"), (2, 0));
    }

    #[test]
    fn slips_are_as_frequent_as_the_noise_says() {
        let mut rng = StdRng::seed_from_u64(1);
        let draws: Vec<PlaceDraws> = (0..20_000).map(|_| PlaceDraws::draw(&mut rng)).collect();
        let share = |offered: &str, noise: f64, wanted: &dyn Fn(Action) -> bool| {
            let actions = draws.iter().map(|draw| decide(offered, "right", *draw, noise));
            actions.filter(|action| wanted(*action)).count() as f64 / draws.len() as f64
        };
        let near = |share: f64, expected: f64| (share - expected).abs() < 0.01;
        assert!(near(share("right", 0.2, &|action| action == Action::Accept), 0.8));
        assert!(near(
            share("right", 0.2, &|action| action == Action::Reject(RejectBy::TypingOn)),
            0.1
        ));
        assert!(near(share("wrong", 0.2, &|action| action == Action::Undo), 0.05));
        assert_eq!(share("right", 0.0, &|action| action == Action::Accept), 1.0);
        assert_eq!(share("wrong", 0.0, &|action| action == Action::Undo), 0.0);
        assert!(near(
            share("wrong", 0.0, &|action| action == Action::Reject(RejectBy::Escape)),
            0.1
        ));
        assert!(draws.iter().all(|draw| (300.0..=3_000.0).contains(&draw.pause_ms)));
    }
}
