//! A prior of the gate fitted to people: a logistic regression of their verdicts on the gate's
//! features, drawn towards that of rehearsals where people say nothing.
//!
//! Both views are fitted together, each with half of the weight and a level of its own. The level
//! of the result is that of the prior before, because the offers are another model's. So are the
//! deviations of its weights: they say how far users differ, which one session each does not tell.
//! How far the fit may go is chosen by leaving people out.

use super::figures::Figures;
use super::offers::Offer;
use super::play::{ANY_THRESHOLD, Judged, play};
use policy::gate::Gate;
use policy::gate::features::{FEATURES, Features};
use policy::gate::prior::Prior;
use policy::regression::logistic;

/// How far a weight may go from the prior of rehearsals, as a deviation.
const FREEDOMS: [f64; 3] = [0.25, 0.5, 1.0];

/// Steps of the fit. Each goes by a bound of the curvature (Böhning and Lindsay 1988), so it never
/// overshoots, as Newton's do from a prior that is far off.
const STEPS: usize = 100;

/// The largest curvature of the logistic loss.
const CURVATURE_MAX: f64 = 0.25;

/// Mean and deviation of each weight as rehearsals of fd, httpx, got and fzf gave them: 169
/// verdicts of a simulated developer (docs/lab/gate-and-trial.md). Hone shipped this prior before
/// it had people's verdicts, and it is what a fit to people is drawn towards.
const REHEARSED: [(f64, f64); FEATURES] = [
    (-0.08, 0.34),
    (1.68, 0.31),
    (-0.01, 0.35),
    (0.01, 0.36),
    (0.13, 0.35),
    (-0.10, 0.30),
    (-0.05, 0.34),
    (-0.16, 0.32),
    (-0.08, 0.34),
    (0.00, 0.36),
    (0.07, 0.33),
    (-0.05, 0.34),
    (-0.02, 0.36),
    (-0.05, 0.36),
    (0.03, 0.32),
    (0.00, 0.36),
    (-0.04, 0.36),
    (0.00, 0.33),
    (0.14, 0.34),
    (0.00, 0.36),
    (0.00, 0.36),
];

/// How far the bias is looked for, and how often the interval is halved.
const FARTHEST: f64 = 10.0;
const HALVINGS: usize = 30;

/// One more weight than features: the level of the recorded view against that of the served one.
const WEIGHTS: usize = FEATURES + 1;

/// The prior that a fit is drawn towards.
pub fn rehearsed() -> Prior {
    let (mean, deviation) = (REHEARSED.map(|weight| weight.0), REHEARSED.map(|weight| weight.1));
    Prior { mean, deviation }
}

/// A person's offers in both views.
pub struct Person {
    pub id: u64,
    pub views: [Vec<Offer>; 2],
}

/// A verdict with the features that the gate has seen.
struct Sample {
    features: [f64; WEIGHTS],
    accepted: f64,
    /// A verdict that is seen in two views counts half in each.
    weight: f64,
}

impl Person {
    /// The people of two views of the same verdicts.
    pub fn all(served: Vec<Offer>, recorded: Vec<Offer>) -> Vec<Person> {
        let mut people: Vec<Person> = vec![];
        for (view, offers) in [served, recorded].into_iter().enumerate() {
            for offer in offers {
                let known = people.iter().position(|person| person.id == offer.person);
                let at = known.unwrap_or_else(|| {
                    people.push(Person { id: offer.person, views: [vec![], vec![]] });
                    people.len() - 1
                });
                people[at].views[view].push(offer);
            }
        }
        people
    }

    fn samples(&self) -> Vec<Sample> {
        let views = self.views.iter().filter(|offers| !offers.is_empty()).count();
        let weight = 1.0 / views.max(1) as f64;
        let of = |(view, offers): (usize, &Vec<Offer>)| {
            let mut recent = Gate::default();
            let sample = |offer: &Offer| {
                let seen: Features = offer.features(recent.recent());
                recent.learn(&offer.label(None));
                let mut features = [0.0; WEIGHTS];
                features[..FEATURES].copy_from_slice(&seen);
                features[FEATURES] = view as f64;
                Sample { features, accepted: f64::from(u8::from(offer.accepted)), weight }
            };
            offers.iter().map(sample).collect::<Vec<_>>()
        };
        self.views.iter().enumerate().flat_map(of).collect()
    }
}

/// The prior fitted to people.
pub fn fit(people: &[&Person], towards: &Prior, freedom: f64) -> Prior {
    let samples: Vec<Sample> = people.iter().flat_map(|person| person.samples()).collect();
    let centre: [f64; WEIGHTS] =
        std::array::from_fn(|i| towards.mean.get(i).copied().unwrap_or(0.0));
    let precision = freedom.powi(-2);
    let mut curvature = [[0.0; WEIGHTS]; WEIGHTS];
    (0..WEIGHTS).for_each(|i| curvature[i][i] = precision);
    for Sample { features, weight, .. } in &samples {
        for (row, feature) in curvature.iter_mut().zip(features) {
            for (entry, other) in row.iter_mut().zip(features) {
                *entry += weight * CURVATURE_MAX * feature * other;
            }
        }
    }
    let mut weights = centre;
    for _ in 0..STEPS {
        let mut gradient: [f64; WEIGHTS] =
            std::array::from_fn(|i| precision * (weights[i] - centre[i]));
        for Sample { features, accepted, weight } in &samples {
            let error = logistic(dot(&weights, features)) - accepted;
            for (sum, feature) in gradient.iter_mut().zip(features) {
                *sum += weight * error * feature;
            }
        }
        let step = solve(curvature, gradient);
        (0..WEIGHTS).for_each(|i| weights[i] -= step[i]);
    }
    let fitted = Prior { mean: std::array::from_fn(|i| weights[i]), ..towards.clone() };
    if samples.is_empty() { fitted } else { with_level_of(fitted, towards, &samples) }
}

/// The prior with the bias at which the recorded offers are judged as likely, on average, as by
/// `before`. Their log-probs stand to those offers as Hone's stand to its own, and how often people
/// accept what Hone offers is not known from another model's offers.
fn with_level_of(mut prior: Prior, before: &Prior, samples: &[Sample]) -> Prior {
    let recorded = samples.iter().filter(|sample| sample.features[FEATURES] > 0.0);
    let offers: Vec<Features> =
        recorded.map(|sample| std::array::from_fn(|i| sample.features[i])).collect();
    let level = |prior: &Prior| {
        let gate = Gate::with_prior(prior);
        let probability = |offer| f64::from(gate.judge(offer, ANY_THRESHOLD).probability);
        offers.iter().map(probability).sum::<f64>()
    };
    let wanted = level(before);
    let (mut low, mut high) = (prior.mean[0] - FARTHEST, prior.mean[0] + FARTHEST);
    for _ in 0..HALVINGS {
        prior.mean[0] = f64::midpoint(low, high);
        *(if level(&prior) < wanted { &mut low } else { &mut high }) = prior.mean[0];
    }
    prior
}

/// Judges each person's offers under a prior that was fitted to the others; the judgements of each
/// view.
pub fn left_out(people: &[Person], towards: &Prior, freedom: f64) -> [Vec<Judged>; 2] {
    let mut judged = [vec![], vec![]];
    for person in people {
        let others: Vec<&Person> = people.iter().filter(|other| other.id != person.id).collect();
        let prior = fit(&others, towards, freedom);
        for (judged, offers) in judged.iter_mut().zip(&person.views) {
            judged.extend(play(offers, &prior));
        }
    }
    judged
}

/// The freedom with which people who were left out are predicted with the least squared error.
pub fn choose(people: &[Person], towards: &Prior) -> f64 {
    let error = |freedom: f64| -> f64 {
        left_out(people, towards, freedom).iter().map(|judged| Figures::of(judged).brier).sum()
    };
    let tried = FREEDOMS.map(|freedom| (error(freedom), freedom));
    tried.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).expect("there are several").1
}

fn dot(a: &[f64; WEIGHTS], b: &[f64; WEIGHTS]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Solves `matrix · x = right` for a positive definite matrix, by elimination.
fn solve(mut matrix: [[f64; WEIGHTS]; WEIGHTS], mut right: [f64; WEIGHTS]) -> [f64; WEIGHTS] {
    for pivot in 0..WEIGHTS {
        let (row, own) = (matrix[pivot], right[pivot]);
        for (below, value) in matrix.iter_mut().zip(&mut right).skip(pivot + 1) {
            let factor = below[pivot] / row[pivot];
            for (entry, above) in below.iter_mut().zip(row).skip(pivot) {
                *entry -= factor * above;
            }
            *value -= factor * own;
        }
    }
    for pivot in (0..WEIGHTS).rev() {
        let known: f64 = (pivot + 1..WEIGHTS).map(|j| matrix[pivot][j] * right[j]).sum();
        right[pivot] = (right[pivot] - known) / matrix[pivot][pivot];
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::people::scores::Scores;
    use crate::people::verdicts::{Read, Recorded, Verdict};

    const FREEDOM: f64 = 1.0;

    /// People who accept what is longer than ten characters, whatever the model says of it.
    fn people() -> Vec<Person> {
        let verdict = |number: u64| {
            let is_long = number.is_multiple_of(3);
            let mean = if number.is_multiple_of(2) { -0.2 } else { -1.0 };
            Verdict {
                person: number / 30,
                shown_s: number as f64,
                decided_s: number as f64 + 1.0,
                accepted: is_long,
                before: format!("a{number} = "),
                offer: if is_long { "a_long_call(with, arguments)" } else { "b()" }.into(),
                paused: false,
                recorded: Some(Recorded { mean, tokens: 4 }),
            }
        };
        let verdicts: Vec<Verdict> = (0..120).map(verdict).collect();
        let folder = tempfile::tempdir().unwrap();
        let mut scores = Scores::open(&folder.path().join("scores"), "model").unwrap();
        for verdict in &verdicts {
            scores.keep(verdict, vec![verdict.recorded.unwrap().mean; 4]).unwrap();
        }
        let of = |view| crate::people::offers::offers(&verdicts, view, Some(&scores));
        Person::all(
            of(crate::people::offers::View::Served),
            of(crate::people::offers::View::Recorded),
        )
    }

    #[test]
    fn a_fit_finds_what_people_go_by_and_predicts_others() {
        let people = people();
        let all: Vec<&Person> = people.iter().collect();
        let fitted = fit(&all, &rehearsed(), FREEDOM);
        let length = policy::gate::features::NAMES.iter().position(|name| *name == "length");
        assert!(
            fitted.mean[length.unwrap()] > rehearsed().mean[length.unwrap()] + 0.5,
            "{fitted:?}"
        );
        let [served, recorded] = left_out(&people, &rehearsed(), FREEDOM).map(|j| Figures::of(&j));
        assert!(served.auc > 0.95 && recorded.auc > 0.95, "{served:?}");
        assert_eq!(served.offers, 120);
    }

    /// The served model finds many offers so unlikely that the shipped prior is sure of nothing but
    /// rejects. Newton's steps from there went ever farther off.
    #[test]
    fn a_fit_does_not_overshoot_from_a_prior_that_is_far_off() {
        let people = people();
        let all: Vec<&Person> = people.iter().collect();
        let mut far = rehearsed();
        far.mean[1] = 12.0;
        let fitted = fit(&all, &far, FREEDOM);
        assert!(fitted.mean.iter().all(|mean| mean.abs() < 20.0), "{fitted:?}");
        let judged = people.iter().flat_map(|person| play(&person.views[0], &fitted));
        assert!(Figures::of(&judged.collect::<Vec<_>>()).auc > 0.95);
    }

    #[test]
    fn no_people_leave_the_prior_as_it_is() {
        let fitted = fit(&[], &rehearsed(), FREEDOM);
        for (fitted, shipped) in fitted.mean.into_iter().zip(rehearsed().mean) {
            assert!((fitted - shipped).abs() < 1e-9);
        }
        assert_eq!(fitted.deviation, rehearsed().deviation);
    }

    #[test]
    fn a_fitted_prior_keeps_the_level() {
        let people = people();
        let all: Vec<&Person> = people.iter().collect();
        let samples: Vec<Sample> = people.iter().flat_map(Person::samples).collect();
        let recorded = samples.iter().filter(|sample| sample.features[FEATURES] > 0.0);
        let offers: Vec<Features> =
            recorded.map(|sample| std::array::from_fn(|i| sample.features[i])).collect();
        let level = |prior: &Prior| {
            let gate = Gate::with_prior(prior);
            let probability = |offer| gate.judge(offer, ANY_THRESHOLD).probability;
            offers.iter().map(probability).sum::<f32>() / offers.len() as f32
        };
        let (fitted, before) = (level(&fit(&all, &rehearsed(), FREEDOM)), level(&rehearsed()));
        assert!((fitted - before).abs() < 1e-3, "{fitted} {before}");
    }

    #[test]
    fn made_up_verdicts_are_scored_and_played() {
        let read = Read::json_lines("v", include_str!("made-up.jsonl"));
        let folder = tempfile::tempdir().unwrap();
        let mut scores = Scores::open(&folder.path().join("scores"), "model").unwrap();
        for verdict in &read.verdicts {
            assert_eq!(scores.get(verdict), None);
            scores.keep(verdict, vec![-0.3, -0.2]).unwrap();
        }
        let again = Scores::open(&folder.path().join("scores"), "model").unwrap();
        let offers = |view| crate::people::offers::offers(&read.verdicts, view, Some(&again));
        let played = play(&offers(crate::people::offers::View::Served), &rehearsed());
        let figures = Figures::of(&played);
        assert_eq!((figures.offers, figures.accept_rate), (6, 0.5));
        let recorded = crate::people::offers::View::Recorded;
        assert_eq!(offers(recorded).len(), 6, "others stand in for what is missing");
        assert_eq!(crate::people::offers::offers(&read.verdicts, recorded, None).len(), 6);
        let other = Scores::open(&folder.path().join("scores"), "another model").unwrap();
        assert_eq!(other.get(&read.verdicts[0]), None);
    }
}
