//! The simulated developer's mind: what becomes of an offer, given what they
//! really wrote. Everything that is chance is drawn before anyone has answered,
//! so that every arm meets the same developer.
//!
//! - **Right**: the exact rest of the line, or at least [`MIN_PREFIX_CHARS`]
//!   characters of its exact beginning. Taken.
//! - **Near**: not right, but of at least [`MIN_NEAR_CHARS`] characters and
//!   [`NEAR`] like the rest of the line (normalised Damerau-Levenshtein
//!   similarity). Taken, and what differs is mended.
//! - **Wrong**: anything else. Turned down.
//!
//! `noise` is how often the developer slips. Of what they would take, a share of
//! `noise` is not taken: half of it is escaped, half typed by hand with the offer
//! before their eyes. Of what is wrong, a quarter of `noise` is taken and undone
//! at once.

pub mod document;
pub mod history;
pub mod language;
pub mod plan;
pub mod typist;

use rand::Rng;
use serde::{Deserialize, Serialize};
use strsim::normalized_damerau_levenshtein;

/// An offer that is only the beginning of the rest of the line is worth a key
/// press from this length on, in characters.
pub const MIN_PREFIX_CHARS: usize = 10;
/// Mending is worth it for no shorter offer, in characters.
pub const MIN_NEAR_CHARS: usize = 15;
/// Similarity from which on mending is less work than typing.
pub const NEAR: f64 = 0.85;
/// The noise of a rehearsal unless told otherwise.
pub const NOISE: f64 = 0.05;

/// Share of rejects by Escape. The rest of the two shares types on.
const ESCAPE_SHARE: f64 = 0.10;
/// Share of rejects by looking at the offer until it times out.
const WAIT_SHARE: f64 = 0.10;
/// How long a developer waits at a place before typing on: between these, even
/// on a logarithmic scale, in milliseconds.
const PAUSE_MS: (f64, f64) = (300.0, 3_000.0);

/// How an unwanted offer is turned down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Temper {
    /// By typing the next character.
    TypeOn,
    Escape,
    /// By doing nothing until the offer times out.
    Wait,
}

/// What is drawn for one place of the stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mood {
    pub temper: Temper,
    /// Even in 0..1; small ones are slips.
    pub slip: f64,
    /// A later answer comes too late.
    pub pause_ms: f64,
}

impl Mood {
    pub fn draw(rng: &mut impl Rng) -> Mood {
        let draw: f64 = rng.random();
        let temper = if draw < ESCAPE_SHARE {
            Temper::Escape
        } else if draw < ESCAPE_SHARE + WAIT_SHARE {
            Temper::Wait
        } else {
            Temper::TypeOn
        };
        let (shortest, longest) = PAUSE_MS;
        let pause_ms = shortest * (longest / shortest).powf(rng.random());
        Mood { temper, slip: rng.random(), pause_ms }
    }
}

/// What the developer does with an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    Take,
    /// Take it, then replace what is between its first `head` and last `tail`
    /// bytes, which are right.
    Mend {
        head: usize,
        tail: usize,
    },
    /// Take it, see that it is wrong, undo.
    Undo,
    TurnDown(Temper),
}

/// What became of an offer that was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "fate")]
pub enum Fate {
    /// Taken: this many characters.
    Accepted {
        chars: usize,
    },
    /// Taken and mended: this many of its characters stayed.
    Mended {
        chars: usize,
        of: usize,
    },
    /// Taken and undone.
    Undone {
        of: usize,
    },
    TypedOn,
    Escaped,
    TimedOut,
}

impl Fate {
    pub fn is_accepted(self) -> bool {
        matches!(self, Fate::Accepted { .. } | Fate::Mended { .. } | Fate::Undone { .. })
    }

    /// Characters that did not have to be typed.
    pub fn completed(self) -> usize {
        match self {
            Fate::Accepted { chars } | Fate::Mended { chars, .. } => chars,
            Fate::Undone { .. } | Fate::TypedOn | Fate::Escaped | Fate::TimedOut => 0,
        }
    }

    /// Characters that were inserted by accepting.
    pub fn inserted(self) -> usize {
        match self {
            Fate::Accepted { chars } => chars,
            Fate::Mended { of, .. } | Fate::Undone { of } => of,
            Fate::TypedOn | Fate::Escaped | Fate::TimedOut => 0,
        }
    }
}

/// `offered` where `rest` is what stands there in the end.
pub fn decide(offered: &str, rest: &str, mood: Mood, noise: f64) -> Deed {
    let wanted = if is_right(offered, rest) {
        Some(Deed::Take)
    } else if is_near(offered, rest) {
        let (head, tail) = common_ends(offered, rest);
        Some(Deed::Mend { head, tail })
    } else {
        None
    };
    match wanted {
        Some(_) if mood.slip < noise / 2.0 => Deed::TurnDown(Temper::Escape),
        Some(_) if mood.slip < noise => Deed::TurnDown(Temper::TypeOn),
        Some(deed) => deed,
        None if !offered.is_empty() && mood.slip < noise / 4.0 => Deed::Undo,
        None => Deed::TurnDown(mood.temper),
    }
}

fn is_right(offered: &str, rest: &str) -> bool {
    !offered.is_empty()
        && (offered == rest
            || (rest.starts_with(offered) && offered.chars().count() >= MIN_PREFIX_CHARS))
}

fn is_near(offered: &str, rest: &str) -> bool {
    offered.chars().count() >= MIN_NEAR_CHARS
        && normalized_damerau_levenshtein(offered, rest) >= NEAR
}

/// Bytes at both ends that two texts share, without overlap.
fn common_ends(a: &str, b: &str) -> (usize, usize) {
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

    const CALM: Mood = Mood { temper: Temper::Wait, slip: 0.9, pause_ms: 500.0 };

    fn deed(offered: &str, rest: &str) -> Deed {
        decide(offered, rest, CALM, NOISE)
    }

    #[test]
    fn the_rest_of_the_line_or_ten_characters_of_it_are_right() {
        assert_eq!(deed("x)", "x)"), Deed::Take);
        assert_eq!(deed("values.len", "values.len()"), Deed::Take);
        assert_eq!(deed("values.le", "values.len()"), Deed::TurnDown(Temper::Wait));
        assert_eq!(deed("", ""), Deed::TurnDown(Temper::Wait));
        assert_eq!(deed("x) {", "x)"), Deed::TurnDown(Temper::Wait), "more than the line");
    }

    #[test]
    fn what_is_nearly_right_is_mended_between_its_right_ends() {
        let (offered, rest) = ("compute_total(größe, items)", "compute_total(breiten, items)");
        assert_eq!(deed(offered, rest), Deed::TurnDown(Temper::Wait), "too much to mend");
        let (offered, rest) = ("compute_total(größe, items)", "compute_total(größen, items)");
        let Deed::Mend { head, tail } = deed(offered, rest) else { panic!("near enough") };
        assert_eq!(
            (&rest[..head], &rest[rest.len() - tail..]),
            ("compute_total(größe", ", items)")
        );
        assert_eq!(deed("total(a, b)", "total(a, c)"), Deed::TurnDown(Temper::Wait), "too short");
        assert_eq!(common_ends("aa", "aaa"), (2, 0));
    }

    #[test]
    fn slips_are_as_frequent_as_the_noise_says() {
        let mut rng = StdRng::seed_from_u64(1);
        let moods: Vec<Mood> = (0..20_000).map(|_| Mood::draw(&mut rng)).collect();
        let share = |offered: &str, noise: f64, wanted: &dyn Fn(Deed) -> bool| {
            let deeds = moods.iter().map(|mood| decide(offered, "right", *mood, noise));
            deeds.filter(|deed| wanted(*deed)).count() as f64 / moods.len() as f64
        };
        let near = |share: f64, expected: f64| (share - expected).abs() < 0.01;
        assert!(near(share("right", 0.2, &|deed| deed == Deed::Take), 0.8));
        assert!(near(share("right", 0.2, &|deed| deed == Deed::TurnDown(Temper::TypeOn)), 0.1));
        assert!(near(share("wrong", 0.2, &|deed| deed == Deed::Undo), 0.05));
        assert_eq!(share("right", 0.0, &|deed| deed == Deed::Take), 1.0);
        assert_eq!(share("wrong", 0.0, &|deed| deed == Deed::Undo), 0.0);
        assert!(near(share("wrong", 0.0, &|deed| deed == Deed::TurnDown(Temper::Escape)), 0.1));
        assert!(moods.iter().all(|mood| (300.0..=3_000.0).contains(&mood.pause_ms)));
    }
}
