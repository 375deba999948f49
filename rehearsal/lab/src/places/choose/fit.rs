//! Weights of a logistic regression, drawn towards zero.

use crate::places::features::{FEATURES, Features};
use policy::regression::logistic;

/// Steps of the fit. Each goes by a bound of the curvature (Böhning and Lindsay 1988).
const STEPS: usize = 300;

/// The largest curvature of the logistic loss.
const CURVATURE_MAX: f64 = 0.25;

/// How far a weight may go from zero, as a deviation.
const FREEDOM: f64 = 0.7;

/// The bias may go where it has to.
const FREEDOM_OF_BIAS: f64 = 10.0;

/// A candidate's features, and whether it is right.
pub type Sample = (Features, bool);

pub fn fit(samples: &[Sample]) -> Features {
    let precision: Features = std::array::from_fn(|i| {
        let freedom = if i == 0 { FREEDOM_OF_BIAS } else { FREEDOM };
        1.0 / (freedom * freedom)
    });
    let mut curvature = [[0.0; FEATURES]; FEATURES];
    (0..FEATURES).for_each(|i| curvature[i][i] = precision[i]);
    for (features, _) in samples {
        for (row, feature) in curvature.iter_mut().zip(features) {
            for (entry, other) in row.iter_mut().zip(features) {
                *entry += CURVATURE_MAX * feature * other;
            }
        }
    }
    let mut weights = [0.0; FEATURES];
    for _ in 0..STEPS {
        let mut gradient: Features = std::array::from_fn(|i| precision[i] * weights[i]);
        for (features, is_right) in samples {
            let error = logistic(score(&weights, features)) - f64::from(u8::from(*is_right));
            gradient.iter_mut().zip(features).for_each(|(sum, value)| *sum += error * value);
        }
        let step = solve(curvature, gradient);
        (0..FEATURES).for_each(|i| weights[i] -= step[i]);
    }
    weights
}

pub fn score(weights: &Features, features: &Features) -> f64 {
    weights.iter().zip(features).map(|(weight, value)| weight * value).sum()
}

/// Solves `matrix · x = right` for a positive definite matrix, by elimination.
fn solve(mut matrix: [Features; FEATURES], mut right: Features) -> Features {
    for pivot in 0..FEATURES {
        let (row, own) = (matrix[pivot], right[pivot]);
        for (below, value) in matrix.iter_mut().zip(&mut right).skip(pivot + 1) {
            let factor = below[pivot] / row[pivot];
            for (entry, above) in below.iter_mut().zip(row).skip(pivot) {
                *entry -= factor * above;
            }
            *value -= factor * own;
        }
    }
    for pivot in (0..FEATURES).rev() {
        let known: f64 = (pivot + 1..FEATURES).map(|j| matrix[pivot][j] * right[j]).sum();
        right[pivot] = (right[pivot] - known) / matrix[pivot][pivot];
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_right_from_wrong_gets_a_weight() {
        let sample = |number: usize| {
            let mut features = [0.0; FEATURES];
            features[0] = 1.0;
            features[1] = f64::from(u8::from(number.is_multiple_of(3)));
            features[2] = f64::from(u8::from(number.is_multiple_of(2)));
            (features, number.is_multiple_of(3))
        };
        let weights = fit(&(0..300).map(sample).collect::<Vec<_>>());
        assert!(weights[1] > 2.0 && weights[2].abs() < 0.1, "{weights:?}");
    }
}
