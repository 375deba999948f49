//! What giving up unlikely lines would have cost: the offers that would not have been made.

use super::offers::Offer;
use serde::Serialize;

#[derive(Debug, Default, Serialize)]
pub struct Floor {
    /// The mean number of tokens until the end or until the line is given up.
    pub tokens: f64,
    pub accepts_cut: f64,
    pub accepted_characters_cut: f64,
    pub rejects_cut: f64,
}

impl Floor {
    /// The cost of a rule that tells from the log-prob and the number of the tokens so far whether
    /// a line is given up.
    pub fn of(offers: &[Offer], is_too_unlikely: impl Fn(f32, usize) -> bool) -> Floor {
        let mut floor = Floor::default();
        let (mut accepts, mut characters, mut rejects) = (0.0, 0.0, 0.0);
        for offer in offers {
            let end = given_up(&offer.logprobs, &is_too_unlikely);
            let is_cut = f64::from(u8::from(end.is_some()));
            floor.tokens += end.unwrap_or(offer.logprobs.len()) as f64;
            if offer.accepted {
                accepts += 1.0;
                characters += offer.characters as f64;
                floor.accepts_cut += is_cut;
                floor.accepted_characters_cut += is_cut * offer.characters as f64;
            } else {
                rejects += 1.0;
                floor.rejects_cut += is_cut;
            }
        }
        floor.tokens /= offers.len().max(1) as f64;
        floor.accepts_cut /= f64::max(accepts, 1.0);
        floor.accepted_characters_cut /= f64::max(characters, 1.0);
        floor.rejects_cut /= f64::max(rejects, 1.0);
        floor
    }
}

/// The number of tokens after which a line is given up, if it is.
fn given_up(logprobs: &[f32], is_too_unlikely: impl Fn(f32, usize) -> bool) -> Option<usize> {
    let mut sum = 0.0;
    (1..=logprobs.len()).find(|&count| {
        sum += logprobs[count - 1];
        is_too_unlikely(sum, count)
    })
}

#[cfg(test)]
mod tests {
    use super::given_up;

    #[test]
    fn a_line_is_given_up_at_its_first_token_below_the_floor() {
        let rule = |sum: f32, count: usize| sum < -0.5 * (count as f32 + 2.0);
        assert_eq!(given_up(&[-0.1, -2.5, 0.0, 0.0], rule), Some(2));
        assert_eq!(given_up(&[-0.1, -1.0, -0.9], rule), None);
        assert_eq!(given_up(&[], rule), None);
    }
}
