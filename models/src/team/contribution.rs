//! The contribution of a member: the change of the shared part, clipped to a norm, with
//! noise if that is wanted, and rounded to whole numbers of [`STEP`].

use super::core::STEP;
use anyhow::{Result, ensure};

/// The limits on a member's change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The L2 norm of what is sent, before noise, is at most this.
    pub max_norm: f64,
    /// The standard deviation of the noise that is added to every value. 0 adds none.
    pub noise: f64,
}

/// The numbers that are sent, and what is kept for the next time.
#[derive(Debug, Clone, PartialEq)]
pub struct Contribution {
    pub numbers: Vec<i16>,
    /// The rest that rounding left out of each value. It is added to the next change, so that
    /// nothing is lost for good (error feedback, arXiv:1901.09847). With noise it is zero: what is
    /// kept must not depend on the noise.
    pub left: Vec<f32>,
}

/// Makes a contribution of a change. `normal` gives independent standard normal numbers.
///
/// # Errors
/// The change holds NaN or infinity, or `left` is of another size.
pub fn contribute(
    change: &[f32],
    left: &[f32],
    limits: Limits,
    mut normal: impl FnMut() -> f64,
) -> Result<Contribution> {
    ensure!(change.len() == left.len(), "what was left has another size than the change");
    let is_finite = change.iter().chain(left).all(|value| value.is_finite());
    ensure!(is_finite, "what was learned holds NaN or infinity, so nothing is sent of it");
    let whole = change.iter().zip(left).map(|(change, left)| f64::from(*change) + f64::from(*left));
    let whole: Vec<f64> = whole.collect();
    let norm = whole.iter().map(|value| value.powi(2)).sum::<f64>().sqrt();
    // Rounding may add half a step to every value, so that much is taken off the limit.
    let rounding = f64::from(STEP) / 2.0 * (whole.len() as f64).sqrt();
    let limit = (limits.max_norm - rounding).max(0.0);
    let keep = if norm > limit { limit / norm } else { 1.0 };
    let mut contribution = Contribution { numbers: vec![], left: vec![] };
    for value in whole {
        let clipped = value * keep;
        let noisy = if limits.noise > 0.0 { clipped + limits.noise * normal() } else { clipped };
        let number = (noisy / f64::from(STEP)).round();
        let number = number.clamp(-f64::from(i16::MAX), f64::from(i16::MAX)) as i16;
        contribution.numbers.push(number);
        let left =
            if limits.noise > 0.0 { 0.0 } else { clipped - f64::from(number) * f64::from(STEP) };
        contribution.left.push(left as f32);
    }
    Ok(contribution)
}

/// A standard normal number (Box and Muller) of two uniform ones, which are at least 0 and below 1.
pub fn normal(mut uniform: impl FnMut() -> f64) -> f64 {
    // The first number is never 0, of which there is no logarithm.
    let (one, other) = (1.0 - uniform(), uniform());
    (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: fn() -> f64 = || panic!("no noise was asked for");

    fn norm(numbers: &[i16]) -> f64 {
        let square = |number: &i16| (f64::from(*number) * f64::from(STEP)).powi(2);
        numbers.iter().map(square).sum::<f64>().sqrt()
    }

    #[test]
    fn the_norm_is_clipped_after_rounding_too() {
        let limits = Limits { max_norm: 0.5, noise: 0.0 };
        let change: Vec<f32> = (0..10_000).map(|i| (i % 13) as f32 - 6.0).collect();
        let sent = contribute(&change, &vec![0.0; 10_000], limits, NONE).unwrap();
        let norm = norm(&sent.numbers);
        assert!(norm <= 0.5 && norm > 0.49, "{norm}");
        // The direction stays.
        assert!(sent.numbers.iter().zip(&change).all(|(n, c)| f32::from(*n) * c >= 0.0));
    }

    #[test]
    fn a_small_change_is_rounded_by_half_a_step_at_most_and_nothing_is_lost_for_good() {
        let limits = Limits { max_norm: 1.0, noise: 0.0 };
        let change = vec![STEP * 0.3, STEP * -0.3, STEP * 7.4];
        let (mut left, mut sum) = (vec![0.0; 3], [0i32; 3]);
        for _ in 0..100 {
            let sent = contribute(&change, &left, limits, NONE).unwrap();
            assert!(sent.left.iter().all(|left| left.abs() <= STEP / 2.0 * 1.001));
            left = sent.left;
            sum.iter_mut().zip(&sent.numbers).for_each(|(sum, n)| *sum += i32::from(*n));
        }
        // Without error feedback the first two sums would be zero.
        for (sum, expected) in sum.iter().zip([30.0, -30.0, 740.0]) {
            assert!((f64::from(*sum) - expected).abs() <= 1.0, "{sum} is not {expected}");
        }
    }

    #[test]
    fn noise_is_added_and_never_carried_on() {
        let limits = Limits { max_norm: 1.0, noise: 0.01 };
        let mut draws = [1.0, -1.0, 3.0].into_iter();
        let sent = contribute(&[0.0; 3], &[0.0; 3], limits, || draws.next().unwrap()).unwrap();
        assert_eq!(sent.numbers, [328, -328, 983]);
        assert_eq!(sent.left, [0.0; 3]);
    }

    #[test]
    fn normal_numbers_have_their_mean_their_deviation_and_their_tails() {
        // All pairs of a grid, so that nothing is left to chance.
        let grid: Vec<f64> = (0..500).map(|i| (f64::from(i) + 0.5) / 500.0).collect();
        let pairs = grid.iter().flat_map(|one| grid.iter().map(move |other| [*one, *other]));
        let drawn = pairs.map(|pair| {
            let mut pair = pair.into_iter();
            normal(|| pair.next().unwrap())
        });
        let drawn: Vec<f64> = drawn.collect();
        let count = drawn.len() as f64;
        let mean = drawn.iter().sum::<f64>() / count;
        let variance = drawn.iter().map(|number| number.powi(2)).sum::<f64>() / count;
        let beyond = drawn.iter().filter(|number| number.abs() > 1.96).count() as f64 / count;
        assert!(mean.abs() < 1e-3, "{mean}");
        assert!((variance - 1.0).abs() < 0.01, "{variance}");
        assert!((beyond - 0.05).abs() < 0.002, "{beyond}");
        assert!(normal(|| 0.0).is_finite());
    }

    #[test]
    fn not_a_number_and_another_size_are_refused() {
        let limits = Limits { max_norm: 1.0, noise: 0.0 };
        for wrong in [f32::NAN, f32::INFINITY] {
            let refused = contribute(&[0.0, wrong], &[0.0; 2], limits, NONE).unwrap_err();
            assert!(refused.to_string().contains("NaN or infinity"), "{refused}");
        }
        assert!(contribute(&[0.0; 2], &[0.0; 3], limits, NONE).is_err());
    }
}
