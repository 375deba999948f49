//! Bayesian logistic regression, updated online (Laplace approximation, one rank-one step for each
//! label: Bishop, *Pattern Recognition and Machine Learning*, 4.5).

/// Variance that every weight gains at each label, because habits change.
const DRIFT: f64 = 1e-5;

/// The highest variance of a weight.
const VARIANCE_MAX: f64 = 4.0;

/// The weights: their means and their covariance.
pub struct Weights<'a, const N: usize> {
    pub mean: &'a mut [f64; N],
    pub covariance: &'a mut [[f64; N]; N],
}

/// The covariance of independent weights with these deviations.
pub fn independent<const N: usize>(deviation: &[f64; N]) -> [[f64; N]; N] {
    let mut covariance = [[0.0; N]; N];
    for (i, deviation) in deviation.iter().enumerate() {
        covariance[i][i] = deviation * deviation;
    }
    covariance
}

pub fn project<const N: usize>(covariance: &[[f64; N]; N], features: &[f64; N]) -> [f64; N] {
    std::array::from_fn(|row| dot(&covariance[row], features))
}

/// The mean and variance of the score.
pub fn score<const N: usize>(
    mean: &[f64; N],
    covariance: &[[f64; N]; N],
    features: &[f64; N],
) -> (f64, f64) {
    let projected = project(covariance, features);
    (dot(mean, features), dot(&projected, features).max(0.0))
}

/// P(yes), moderated by the uncertainty of the weights (MacKay 1992).
pub fn probability((mean, variance): (f64, f64)) -> f64 {
    logistic(mean / (1.0 + std::f64::consts::PI * variance / 8.0).sqrt())
}

/// How likely P(yes) lies above a threshold.
pub fn is_above((mean, variance): (f64, f64), threshold: f64) -> f64 {
    normal((mean - logit(threshold)) / variance.sqrt().max(1e-9))
}

/// The names of the features that speak most against a yes, at most so many. The first feature is
/// the bias, which every case has.
pub fn weighed_against<const N: usize>(
    mean: &[f64; N],
    features: &[f64; N],
    names: &[&'static str; N],
    count: usize,
) -> Vec<&'static str> {
    let mut shares: Vec<(f64, &str)> = (1..N).map(|i| (mean[i] * features[i], names[i])).collect();
    shares.sort_by(|a, b| a.0.total_cmp(&b.0));
    let against = shares.into_iter().filter(|(share, _)| *share < 0.0);
    against.take(count).map(|(_, name)| name).collect()
}

impl<const N: usize> Weights<'_, N> {
    /// Learns from one label, in [0, 1], that counts for so many.
    pub fn learn(&mut self, features: &[f64; N], label: f64, weight: f64) {
        let projected = project(self.covariance, features);
        let variance = dot(&projected, features).max(0.0);
        let expected = logistic(dot(self.mean, features));
        let information = weight * (expected * (1.0 - expected)).max(1e-3);
        let shrink = information / (1.0 + information * variance);
        for (row, left) in projected.iter().enumerate() {
            for (column, right) in projected.iter().enumerate() {
                self.covariance[row][column] -= shrink * left * right;
            }
        }
        let step = weight * (label - expected) / (1.0 + information * variance);
        for (row, gain) in projected.iter().enumerate() {
            self.mean[row] += gain * step;
            let certain = &mut self.covariance[row][row];
            *certain = (*certain + DRIFT).clamp(1e-9, VARIANCE_MAX);
        }
    }
}

fn dot<const N: usize>(a: &[f64; N], b: &[f64; N]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

pub fn logit(p: f64) -> f64 {
    (p / (1.0 - p)).ln()
}

/// The distribution function of the standard normal distribution.
fn normal(x: f64) -> f64 {
    0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
}
