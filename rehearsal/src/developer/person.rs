//! A developer who is drawn from people: what 14 people did with 700 offers of another tool
//! (docs/lab/people.md). Each commit is typed by one of them, so that the intervals of a report
//! have the spread between people in them.
//!
//! The person looks at an offer for a time that depends on its length, and now and then types on
//! without a look. What they look at they accept by a probability that depends on how much of it is
//! what they want to write, on its length, and on who they are. What differs they correct at once.
//! Their text is fixed, as that of the exact developer: nobody is led to write something else.

use super::plan::draws;
use super::{Action, PlaceDraws, RejectBy, common_ends};
use crate::limits;
use rand::Rng;
use rand::rngs::StdRng;
use std::f64::consts::TAU;

/// What one person differs in.
#[derive(Debug, PartialEq)]
pub struct Person {
    /// Added to the log odds of an accept.
    inclined: f64,
    /// Added to the logarithm of the time of a look.
    slow: f64,
    /// The share of the offers that they type over without a look.
    blind: f64,
}

const fn person(inclined: f64, slow: f64, blind: f64) -> Person {
    Person { inclined, slow, blind }
}

/// The people (`cargo xtask bench people --verdicts FILE --developer`).
pub const PEOPLE: [Person; 14] = [
    person(0.29, 0.11, 0.114),
    person(-0.13, -0.35, 0.042),
    person(-0.23, 0.10, 0.044),
    person(0.56, 0.29, 0.043),
    person(-0.18, -0.15, 0.052),
    person(0.25, -0.27, 0.060),
    person(0.27, 0.14, 0.075),
    person(-0.30, 0.62, 0.026),
    person(-0.02, -0.57, 0.146),
    person(0.85, -0.16, 0.040),
    person(-0.07, 0.54, 0.060),
    person(0.33, -0.07, 0.033),
    person(-0.50, 0.24, 0.027),
    person(-1.12, 0.28, 0.027),
];

/// The log odds of an accept: of an offer of [`LENGTH_CHARS`] of which nothing is wanted, and what
/// is added if all of it is, in proportion and beyond that, and for each natural logarithm of its
/// length.
const NOTHING: f64 = -4.25;
const SHARE: f64 = 5.91;
const ALL: f64 = 0.62;
const LENGTH: f64 = 1.23;
const LENGTH_CHARS: f64 = 20.0;

/// The median time of a look at an offer of [`LENGTH_CHARS`], in milliseconds, what is added to its
/// logarithm for each logarithm of the length, and the deviation of that.
const LOOK_MS: f64 = 3_890.0;
const LOOK_LENGTH: f64 = 0.076;
const LOOK_DEVIATION: f64 = 1.10;

/// A look is no shorter, or it was none, and nobody looks for longer.
const LOOK_MS_RANGE: (f64, f64) = (700.0, 60_000.0);

/// How long an offer stands that is typed over without a look, in milliseconds.
const BLIND_MS: (f64, f64) = (150.0, 650.0);

/// Keeps the random numbers of people apart from those of lines.
const OF_PEOPLE: u64 = 0x7065_6f70_6c65;

impl Person {
    /// Returns who types this commit.
    pub fn of(seed: u64, commit: &str) -> &'static Person {
        let number = commit
            .bytes()
            .fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
        &PEOPLE[draws(seed ^ OF_PEOPLE, number).random_range(0..PEOPLE.len())]
    }

    /// The probability that they accept an offer where this is wanted.
    fn accepts(&self, offered: &str, wanted: &str) -> f64 {
        let (agreed, chars) = agreement(offered, wanted);
        if chars == 0 {
            return 0.0;
        }
        let share = agreed as f64 / chars as f64;
        let all = if agreed == chars { ALL } else { 0.0 };
        let length = (chars as f64 / LENGTH_CHARS).ln();
        sigmoid(NOTHING + SHARE * share + all + LENGTH * length + self.inclined)
    }
}

/// What is drawn for a person at one place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PersonDraws {
    /// Evenly distributed in 0..1, as the next two.
    blind: f64,
    hurry: f64,
    accept: f64,
    /// Normally distributed.
    look: f64,
}

impl PersonDraws {
    /// The random numbers of a place of the stream.
    pub fn at(seed: u64, place: u64) -> PersonDraws {
        PersonDraws::draw(&mut draws(seed ^ OF_PEOPLE, !place))
    }

    fn draw(rng: &mut StdRng) -> PersonDraws {
        let (blind, hurry, accept) = (rng.random(), rng.random(), rng.random());
        // By Box and Muller. The first number is never 0.
        let (radius, angle): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
        let look = (-2.0 * radius.ln()).sqrt() * (TAU * angle).cos();
        PersonDraws { blind, hurry, accept, look }
    }
}

/// A person in front of an offer.
#[derive(Debug, Clone, Copy)]
pub struct Judging {
    pub person: &'static Person,
    pub draws: PersonDraws,
}

impl Judging {
    fn is_blind(self) -> bool {
        self.draws.blind < self.person.blind
    }

    /// Returns how long the offer stands before they do something.
    pub fn look_ms(self, offered: &str) -> u64 {
        if self.is_blind() {
            let (least, most) = BLIND_MS;
            return (least + (most - least) * self.draws.hurry) as u64;
        }
        let length = (offered.chars().count().max(1) as f64 / LENGTH_CHARS).ln();
        let logarithm = LOOK_LENGTH * length + self.person.slow + LOOK_DEVIATION * self.draws.look;
        let (least, most) = LOOK_MS_RANGE;
        (LOOK_MS * logarithm.exp()).clamp(least, most) as u64
    }

    /// Returns what they do with an offer where `rest` is what they write. `draw` says how they
    /// reject.
    pub fn decide(self, offered: &str, rest: &str, draw: PlaceDraws) -> Action {
        if self.is_blind() {
            return Action::Reject(RejectBy::TypingOn);
        }
        if self.draws.accept < self.person.accepts(offered, rest) {
            if rest.starts_with(offered) {
                return Action::Accept;
            }
            return match common_ends(offered, rest) {
                (0, 0) => Action::Undo,
                (head, tail) => Action::Mend { head, tail },
            };
        }
        // The offer stood there for so long that it counts as rejected, whatever follows.
        if self.look_ms(offered) >= limits::OFFER_TIMEOUT_MS {
            return Action::Reject(RejectBy::Waiting);
        }
        match draw.reject_by {
            RejectBy::Escape => Action::Reject(RejectBy::Escape),
            RejectBy::TypingOn | RejectBy::Waiting => Action::Reject(RejectBy::TypingOn),
        }
    }
}

/// The characters from the beginning of an offer that are wanted, and its length.
fn agreement(offered: &str, wanted: &str) -> (usize, usize) {
    let same = |(offered, wanted): &(char, char)| offered == wanted;
    let agreed = offered.chars().zip(wanted.chars()).take_while(same).count();
    (agreed, offered.chars().count())
}

fn sigmoid(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The place draws reject by waiting, which a person never draws.
    const DRAW: PlaceDraws =
        PlaceDraws { reject_by: RejectBy::Waiting, slip: 0.0, pause_ms: 500.0 };

    fn all_draws() -> Vec<PersonDraws> {
        (0..4_000).map(|place| PersonDraws::at(1, place)).collect()
    }

    /// The share of the places at which a person does this with an offer.
    fn share(person: &'static Person, offer: &str, rest: &str, is: fn(Action) -> bool) -> f64 {
        let draws = all_draws();
        let actions =
            draws.iter().map(|&draws| Judging { person, draws }.decide(offer, rest, DRAW));
        actions.filter(|action| is(*action)).count() as f64 / draws.len() as f64
    }

    fn is_accept(action: Action) -> bool {
        !matches!(action, Action::Reject(_))
    }

    #[test]
    fn what_agrees_and_is_long_is_accepted_more_often() {
        let accepts = |offer: &str, rest: &str| share(&PEOPLE[0], offer, rest, is_accept);
        let wanted = "total = compute(items, start)";
        let [nothing, half, all] =
            ["x = 1 if y else none_of_it()", "total = compute(values, end)", wanted]
                .map(|offer| accepts(offer, wanted));
        assert!(
            nothing < 0.06 && nothing < half && half < all && all > 0.7,
            "{nothing} {half} {all}"
        );
        assert!(accepts("))", "))") < accepts("))))))))", "))))))))"), "long ones are worth a key");
        let expected = (1.0 - PEOPLE[0].blind) * PEOPLE[0].accepts(wanted, wanted);
        assert!((all - expected).abs() < 0.02, "{all} {expected}");
    }

    #[test]
    fn people_differ() {
        let wanted = "total = compute(items)";
        let rates = PEOPLE.each_ref().map(|person| person.accepts("total = compute(all)", wanted));
        let most = rates.iter().copied().fold(0.0, f64::max);
        let least = rates.iter().copied().fold(1.0, f64::min);
        assert!(most - least > 0.3, "{rates:?}");
    }

    #[test]
    fn some_offers_are_typed_over_without_a_look_and_the_others_take_time() {
        let person = &PEOPLE[8];
        let looks = |offer: &str| -> Vec<u64> {
            let draws = all_draws();
            draws.iter().map(|&draws| Judging { person, draws }.look_ms(offer)).collect()
        };
        let offer = "x".repeat(20);
        let fast = looks(&offer).iter().filter(|ms| **ms < 700).count() as f64 / 4_000.0;
        assert!((fast - person.blind).abs() < 0.02, "{fast}");
        let median = |offer: &str| {
            let mut all = looks(offer);
            all.retain(|ms| *ms >= 700);
            all.sort_unstable();
            all[all.len() / 2] as f64
        };
        let expected = LOOK_MS * person.slow.exp();
        assert!((median(&offer) / expected - 1.0).abs() < 0.15, "{} {expected}", median(&offer));
        assert!(median(&"x".repeat(200)) > median(&offer));
        assert!(looks(&offer).iter().all(|ms| (150..=60_000).contains(ms)));
    }

    #[test]
    fn what_differs_is_corrected_and_what_is_all_wrong_is_undone() {
        let calm = PersonDraws { blind: 0.99, hurry: 0.0, accept: 0.0, look: -1.0 };
        let decide =
            |offered, rest| Judging { person: &PEOPLE[0], draws: calm }.decide(offered, rest, DRAW);
        assert_eq!(decide("f(a)", "f(a);"), Action::Accept);
        assert_eq!(decide("f(a)", "f(b)"), Action::Mend { head: 2, tail: 1 });
        assert_eq!(decide("abc", "xyz"), Action::Undo);
        assert_eq!(decide("", "xyz"), Action::Reject(RejectBy::TypingOn));
    }

    #[test]
    fn an_offer_that_stands_for_long_is_rejected_by_the_clock() {
        let draws = PersonDraws { blind: 0.99, hurry: 0.0, accept: 0.999, look: 3.0 };
        let judging = Judging { person: &PEOPLE[0], draws };
        assert!(judging.look_ms("abc") >= limits::OFFER_TIMEOUT_MS);
        assert_eq!(judging.decide("abc", "xyz", DRAW), Action::Reject(RejectBy::Waiting));
        let soon = Judging { draws: PersonDraws { look: -1.0, ..draws }, ..judging };
        assert_eq!(soon.decide("abc", "xyz", DRAW), Action::Reject(RejectBy::TypingOn));
    }

    #[test]
    fn the_same_seed_draws_the_same_people_and_all_of_them_type() {
        let commits: Vec<String> = (0..400).map(|number| format!("c{number}")).collect();
        let people = |seed| -> Vec<&Person> {
            commits.iter().map(|commit| Person::of(seed, commit)).collect()
        };
        assert_eq!(people(1), people(1));
        assert_ne!(people(1), people(2));
        assert!(PEOPLE.iter().all(|person| people(1).contains(&person)));
        assert_eq!(PersonDraws::at(1, 5), PersonDraws::at(1, 5));
        assert_ne!(PersonDraws::at(1, 5), PersonDraws::at(1, 6));
    }
}
