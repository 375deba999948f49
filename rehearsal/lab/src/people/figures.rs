//! What the judgements of a gate are worth.

use super::play::Judged;
use serde::Serialize;
use settings::Eagerness;

/// The share of the offers that the figures about shown offers are at: what is likeliest is shown.
const SHOWN: f64 = 0.45;

/// Bins by predicted probability.
const BINS: usize = 5;

#[derive(Debug, Clone, Serialize)]
pub struct Figures {
    pub offers: usize,
    /// The share of all offers that was accepted.
    pub accept_rate: f64,
    /// The probability that an accepted offer is judged likelier than a rejected one.
    pub auc: f64,
    /// The mean squared error of the probabilities.
    pub brier: f64,
    /// The mean squared error of the accept rate as the probability of every offer.
    pub brier_of_base_rate: f64,
    pub accept_rate_at_45: f64,
    pub accepts_kept_at_45: f64,
    pub accepted_characters_kept_at_45: f64,
    pub calibration: Vec<Bin>,
    pub eagerness: Vec<Level>,
}

/// What an eagerness shows.
#[derive(Debug, Clone, Serialize)]
pub struct Level {
    pub eagerness: Eagerness,
    pub threshold: f64,
    /// The share of all offers.
    pub shown: f64,
    pub accept_rate: f64,
    pub accepts_kept: f64,
    pub accepted_characters_kept: f64,
}

/// The offers with probabilities from one fifth to the next.
#[derive(Debug, Clone, Serialize)]
pub struct Bin {
    pub offers: usize,
    pub predicted: f64,
    pub accepted: f64,
}

impl Figures {
    pub fn of(judged: &[Judged]) -> Figures {
        let count = judged.len().max(1) as f64;
        let accepts = judged.iter().filter(|one| one.accepted).count() as f64;
        let rate = accepts / count;
        let error = |one: &Judged| (one.probability - f64::from(u8::from(one.accepted))).powi(2);
        let mut likeliest: Vec<&Judged> = judged.iter().collect();
        likeliest.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        likeliest.truncate((judged.len() as f64 * SHOWN).round() as usize);
        let at_45 = Kept::of(&likeliest, judged);
        Figures {
            offers: judged.len(),
            accept_rate: rate,
            auc: auc(judged),
            brier: judged.iter().map(error).sum::<f64>() / count,
            brier_of_base_rate: rate * (1.0 - rate),
            accept_rate_at_45: at_45.accept_rate,
            accepts_kept_at_45: at_45.accepts,
            accepted_characters_kept_at_45: at_45.characters,
            calibration: calibration(judged),
            eagerness: Eagerness::ALL.map(|eagerness| level(judged, eagerness)).to_vec(),
        }
    }
}

/// What is left where only some offers are shown.
struct Kept {
    accept_rate: f64,
    accepts: f64,
    characters: f64,
}

impl Kept {
    fn of(shown: &[&Judged], all: &[Judged]) -> Kept {
        let accepts = |one: &Judged| f64::from(u8::from(one.accepted));
        let characters = |one: &Judged| accepts(one) * one.characters as f64;
        let [mut shown_accepts, mut shown_characters] = [0.0; 2];
        for one in shown {
            shown_accepts += accepts(one);
            shown_characters += characters(one);
        }
        Kept {
            accept_rate: shown_accepts / shown.len().max(1) as f64,
            accepts: shown_accepts / all.iter().map(accepts).sum::<f64>().max(1.0),
            characters: shown_characters / all.iter().map(characters).sum::<f64>().max(1.0),
        }
    }
}

fn level(judged: &[Judged], eagerness: Eagerness) -> Level {
    let threshold = eagerness.gate_threshold();
    let shown: Vec<&Judged> = judged.iter().filter(|one| one.probability >= threshold).collect();
    let kept = Kept::of(&shown, judged);
    Level {
        eagerness,
        threshold,
        shown: shown.len() as f64 / judged.len().max(1) as f64,
        accept_rate: kept.accept_rate,
        accepts_kept: kept.accepts,
        accepted_characters_kept: kept.characters,
    }
}

/// The area under the ROC curve. Pairs that are judged alike count half.
fn auc(judged: &[Judged]) -> f64 {
    let of = |accepted| judged.iter().filter(move |one| one.accepted == accepted);
    let pairs = of(true).count() * of(false).count();
    let won: f64 = of(true)
        .flat_map(|yes| of(false).map(move |no| yes.probability.total_cmp(&no.probability)))
        .map(|order| match order {
            std::cmp::Ordering::Greater => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Less => 0.0,
        })
        .sum();
    if pairs == 0 { 0.5 } else { won / pairs as f64 }
}

fn calibration(judged: &[Judged]) -> Vec<Bin> {
    let bin = |one: &Judged| ((one.probability * BINS as f64) as usize).min(BINS - 1);
    let bins = (0..BINS).map(|index| {
        let within: Vec<&Judged> = judged.iter().filter(|one| bin(one) == index).collect();
        let mean = |value: &dyn Fn(&Judged) -> f64| {
            within.iter().map(|one| value(one)).sum::<f64>() / within.len().max(1) as f64
        };
        Bin {
            offers: within.len(),
            predicted: mean(&|one| one.probability),
            accepted: mean(&|one| f64::from(u8::from(one.accepted))),
        }
    });
    bins.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(offers: &[(f64, bool, usize)]) -> Vec<Judged> {
        let one =
            |&(probability, accepted, characters)| Judged { probability, accepted, characters };
        offers.iter().map(one).collect()
    }

    #[test]
    fn what_is_likeliest_is_shown() {
        let figures = Figures::of(&judged(&[
            (0.9, true, 30),
            (0.8, false, 5),
            (0.7, true, 10),
            (0.1, true, 60),
        ]));
        assert_eq!(figures.accept_rate_at_45, 0.5, "of the two likeliest");
        assert_eq!(figures.accepts_kept_at_45, 1.0 / 3.0);
        assert_eq!(figures.accepted_characters_kept_at_45, 0.3);
        assert_eq!(figures.auc, 1.0 / 3.0);
        let shown = figures.eagerness.iter().map(|level| (level.shown, level.accepts_kept));
        assert_eq!(shown.collect::<Vec<_>>(), [(0.75, 2.0 / 3.0); 3], "above 0.4 and above 0.12");
    }

    #[test]
    fn probabilities_that_are_alike_tell_nothing() {
        let figures = Figures::of(&judged(&[(0.5, true, 1), (0.5, false, 1)]));
        assert_eq!((figures.auc, figures.brier), (0.5, 0.25));
        assert_eq!(figures.calibration[2].offers, 2);
        assert_eq!(figures.calibration[2].accepted, 0.5);
    }

    #[test]
    fn no_offers_give_finite_figures() {
        let figures = Figures::of(&[]);
        assert_eq!((figures.auc, figures.brier, figures.accepts_kept_at_45), (0.5, 0.0, 0.0));
    }
}
