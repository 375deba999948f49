//! The developer of a rehearsal who is drawn from people (`rehearsal: developer/person.rs`): fits
//! whether an offer is accepted, and for how long it is looked at.
//!
//! What a person wrote at a place is read from the prompts of their later offers. An offer counts
//! if that is known, and if it stood for long enough to be judged.

use super::verdicts::Verdict;
use feedback::reward::HURRIED_WEIGHT;
use serde::Serialize;
use std::collections::BTreeMap;

/// An offer that is decided sooner was hardly judged, in seconds (`feedback: reward.rs`).
const HURRIED_S: f64 = 0.7;

/// A longer look counts as one of this length, in seconds.
const LOOK_S_MAX: f64 = 60.0;

/// The end of a prompt by which its place is found in later ones, in bytes.
const TAIL_BYTES: usize = 200;

/// The length, in characters, of an offer for which the constants are.
const LENGTH: f64 = 20.0;

/// A person's own inclination has this deviation, so that those of whom little is known are like
/// the others.
const INCLINED_DEVIATION: f64 = 1.0;

/// As many looks, and as many offers, of an average person count along for each person.
const LOOKS_MORE: f64 = 5.0;
const OFFERS_MORE: f64 = 20.0;

/// Rounds of the fit, each of which moves every weight once. It has long settled then.
const ROUNDS: usize = 300;

#[derive(Debug, Serialize)]
pub struct Developer {
    /// Offers of which it is known what was written, and those of them that were accepted.
    offers: usize,
    accepted: usize,
    /// The log odds of an accept: of nothing that agrees, for the share that does, for all of it,
    /// and for the logarithm of the length.
    accept: [f64; 4],
    /// The median of a look in milliseconds, what the logarithm of the length adds to its
    /// logarithm, and the deviation of that.
    look: [f64; 3],
    /// Each person's inclination, slowness, and share of the offers that are typed over blindly.
    people: Vec<[f64; 3]>,
}

/// An offer that was judged, with what the person wrote.
struct Judged {
    person: usize,
    accepted: bool,
    features: [f64; 4],
}

impl Developer {
    pub fn fit(verdicts: &[Verdict]) -> Developer {
        let mut by_person: BTreeMap<u64, Vec<&Verdict>> = BTreeMap::new();
        for verdict in verdicts {
            by_person.entry(verdict.person).or_default().push(verdict);
        }
        let mut people: Vec<Vec<&Verdict>> = by_person.into_values().collect();
        people.iter_mut().for_each(|own| own.sort_by(|a, b| a.shown_s.total_cmp(&b.shown_s)));
        let judged: Vec<Judged> =
            people.iter().enumerate().flat_map(|(person, own)| judged(person, own)).collect();
        let (accept, inclined) = fit_accepts(&judged, people.len());
        let (look, slow) = fit_looks(&people);
        let blind = blind_shares(&people);
        let own = inclined.into_iter().zip(slow).zip(blind);
        Developer {
            offers: judged.len(),
            accepted: judged.iter().filter(|one| one.accepted).count(),
            accept,
            look,
            people: own.map(|((inclined, slow), blind)| [inclined, slow, blind]).collect(),
        }
    }
}

/// Returns how long an offer stood, in seconds.
fn look_s(verdict: &Verdict) -> f64 {
    verdict.decided_s - verdict.shown_s
}

/// A person's offers of which it is known what they wrote.
fn judged(person: usize, own: &[&Verdict]) -> Vec<Judged> {
    let one = |(index, verdict): (usize, &&Verdict)| {
        if look_s(verdict) < HURRIED_S {
            return None;
        }
        let written = written(verdict, &own[index + 1..])?;
        let same = |(offered, real): &(char, char)| offered == real;
        let agreed = verdict.offer.chars().zip(written.chars()).take_while(same).count();
        let chars = verdict.offer.chars().count();
        if agreed == written.chars().count() && agreed < chars {
            // They may have gone on with it.
            return None;
        }
        let all = f64::from(u8::from(agreed == chars));
        let length = (chars as f64 / LENGTH).ln();
        let features = [1.0, agreed as f64 / chars as f64, all, length];
        Some(Judged { person, accepted: verdict.accepted, features })
    };
    own.iter().enumerate().filter_map(one).collect()
}

/// Returns what stands behind an offer's place in a later prompt: in the first that is long enough
/// to compare, or else the longest.
fn written<'v>(verdict: &Verdict, later: &[&'v Verdict]) -> Option<&'v str> {
    let before = verdict.before.as_str();
    let from = (before.len().saturating_sub(TAIL_BYTES)..=before.len())
        .find(|at| before.is_char_boundary(*at))
        .unwrap_or(0);
    let tail = &before[from..];
    let mut longest = "";
    for later in later {
        let Some(at) = later.before.rfind(tail) else { continue };
        let rest = &later.before[at + tail.len()..];
        if rest.len() >= verdict.offer.len() {
            return Some(rest);
        }
        if rest.len() > longest.len() {
            longest = rest;
        }
    }
    Some(longest).filter(|rest| !rest.is_empty())
}

/// Fits a logistic regression with an own constant for each person, one weight at a time.
fn fit_accepts(judged: &[Judged], people: usize) -> ([f64; 4], Vec<f64>) {
    let mut weights = [0.0; 4];
    let mut inclined = vec![0.0; people];
    for _ in 0..ROUNDS {
        for at in 0..weights.len() {
            let (slope, curve) = gradient(judged, &weights, &inclined, |one| one.features[at]);
            weights[at] += slope / curve.max(f64::MIN_POSITIVE);
        }
        for person in 0..people {
            let own = |one: &Judged| f64::from(u8::from(one.person == person));
            let (slope, curve) = gradient(judged, &weights, &inclined, own);
            let drawn = INCLINED_DEVIATION.powi(-2);
            inclined[person] += (slope - drawn * inclined[person]) / (curve + drawn);
        }
    }
    (weights, inclined)
}

/// The first and the second derivative of the log-likelihood by one weight, the latter negated.
/// A little is added to it, so that no step is too wide.
fn gradient(
    judged: &[Judged],
    weights: &[f64; 4],
    inclined: &[f64],
    feature: impl Fn(&Judged) -> f64,
) -> (f64, f64) {
    let (mut slope, mut curve) = (0.0, 0.01);
    for one in judged {
        let log_odds: f64 = weights.iter().zip(one.features).map(|(w, x)| w * x).sum();
        let probability = 1.0 / (1.0 + (-log_odds - inclined[one.person]).exp());
        let value = feature(one);
        slope += (f64::from(u8::from(one.accepted)) - probability) * value;
        curve += probability * (1.0 - probability) * value * value;
    }
    (slope, curve)
}

/// Fits the logarithm of the time of a look to that of the offer's length, and each person's mean
/// distance from it.
fn fit_looks(people: &[Vec<&Verdict>]) -> ([f64; 3], Vec<f64>) {
    let point = |verdict: &&Verdict| {
        let seconds = look_s(verdict);
        if seconds < HURRIED_S {
            return None;
        }
        let length = (verdict.offer.chars().count() as f64 / LENGTH).ln();
        Some((length, (1e3 * seconds.min(LOOK_S_MAX)).ln()))
    };
    let points: Vec<Vec<(f64, f64)>> =
        people.iter().map(|own| own.iter().filter_map(point).collect()).collect();
    let all = || points.iter().flatten();
    let count = all().count().max(1) as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| all().map(of).sum::<f64>() / count;
    let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
    let spread = mean(&|point| (point.0 - x).powi(2)).max(f64::MIN_POSITIVE);
    let slope = mean(&|point| (point.0 - x) * (point.1 - y)) / spread;
    let constant = y - slope * x;
    let distance = |point: &(f64, f64)| point.1 - constant - slope * point.0;
    let deviation = mean(&|point| distance(point).powi(2)).sqrt();
    let own = points
        .iter()
        .map(|own| own.iter().map(distance).sum::<f64>() / (own.len() as f64 + LOOKS_MORE));
    ([constant.exp(), slope, deviation], own.collect())
}

/// The share of each person's offers that were rejected in a hurry and without a judgement.
fn blind_shares(people: &[Vec<&Verdict>]) -> Vec<f64> {
    let is_hurried = |verdict: &&&Verdict| !verdict.accepted && look_s(verdict) < HURRIED_S;
    let hurried: Vec<f64> =
        people.iter().map(|own| own.iter().filter(is_hurried).count() as f64).collect();
    let offers: f64 = people.iter().map(|own| own.len() as f64).sum();
    let average = hurried.iter().sum::<f64>() / offers.max(1.0);
    let unjudged = 1.0 - f64::from(HURRIED_WEIGHT);
    let shares = hurried.iter().zip(people).map(|(hurried, own)| {
        unjudged * (hurried + OFFERS_MORE * average) / (own.len() as f64 + OFFERS_MORE)
    });
    shares.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(person: u64, shown_s: f64, accepted: bool, before: &str, offer: &str) -> Verdict {
        Verdict {
            person,
            shown_s,
            decided_s: shown_s + 2.0,
            accepted,
            before: before.into(),
            offer: offer.into(),
            paused: false,
            recorded: None,
        }
    }

    /// Two people who take what agrees. The second one takes half of what does not, too.
    fn made_up() -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        for person in [0, 1] {
            let mut before = String::from("begin\n");
            for number in 0..60 {
                let is_right = number % 2 == 0;
                let accepts = is_right || (person == 1 && number % 4 == 1);
                let (offer, line) = match is_right {
                    true => (format!("row({number})"), format!("row({number})\n")),
                    false => ("else_where(1)".into(), format!("line({number}) + 12345\n")),
                };
                verdicts.push(verdict(person, f64::from(number), accepts, &before, &offer));
                before.push_str(&line);
            }
            verdicts.push(verdict(person, 99.0, false, &before, "x"));
        }
        verdicts
    }

    #[test]
    fn what_was_written_is_read_from_later_prompts() {
        let own = [
            verdict(0, 1.0, false, "a = 1\n", "print(a)"),
            verdict(0, 2.0, false, "a = 1\nb", "print(b)"),
            verdict(0, 3.0, false, "a = 1\nb = a\n", "print(b)"),
        ];
        let later: Vec<&Verdict> = own[1..].iter().collect();
        assert_eq!(written(&own[0], &later), Some("b = a\n"), "the longest");
        assert_eq!(written(&own[0], &later[..1]), Some("b"));
        assert_eq!(written(&own[0], &[]), None);
        let other = verdict(0, 4.0, false, "another file", "print(b)");
        assert_eq!(written(&own[0], &[&other]), None);
    }

    #[test]
    fn agreement_decides_and_people_differ() {
        let developer = Developer::fit(&made_up());
        assert_eq!((developer.offers, developer.accepted), (120, 75));
        let [_, share, all, _] = developer.accept;
        assert!(share + all > 3.0, "{developer:?}");
        let [[careful, ..], [eager, ..]] = developer.people[..] else { panic!() };
        assert!(eager > careful + 0.5, "{developer:?}");
    }

    #[test]
    fn looks_have_a_median_by_length_and_blind_rejects_a_share() {
        let mut verdicts = made_up();
        for (index, verdict) in verdicts.iter_mut().enumerate() {
            let chars = verdict.offer.chars().count() as f64;
            // A look of 200 ms for each character, and of the first person a few blind rejects.
            let is_blind = verdict.person == 0 && !verdict.accepted && index % 3 == 0;
            verdict.decided_s = verdict.shown_s + if is_blind { 0.3 } else { 0.2 * chars };
        }
        verdicts.retain(|verdict| verdict.offer.len() > 1);
        let developer = Developer::fit(&verdicts);
        let [median, slope, deviation] = developer.look;
        assert!((median - 4_000.0).abs() < 1.0 && (slope - 1.0).abs() < 1e-6, "{developer:?}");
        assert!(deviation < 1e-6);
        let [[.., hasty], [.., calm]] = developer.people[..] else { panic!() };
        assert!(hasty > calm && calm > 0.0, "{developer:?}");
    }
}
