//! Sums of exponentials over a whole vocabulary. It is computed for every token that is said, and
//! by `f64::exp` it takes a millisecond: on a GPU a good part of the token.

/// Values that are computed side by side, so that the compiler uses vector instructions.
const LANES: usize = 16;

/// Below this difference to the largest value an exponential is 10⁻³⁸, and is counted as that.
const LOWEST: f32 = -87.0;

/// Σ exp((value − highest) / temperature), where no value is larger than `highest`. The relative
/// error is below 10⁻⁶.
pub fn exp_sum(values: &[f32], highest: f32, temperature: f32) -> f64 {
    let scale = 1.0 / temperature;
    let mut sum = 0.0;
    // Partial sums are short, so that f32 does not lose small values.
    for part in values.chunks(64 * LANES) {
        let mut lanes = [0f32; LANES];
        let (lines, rest) = part.as_chunks::<LANES>();
        for line in lines {
            for (lane, value) in lanes.iter_mut().zip(line) {
                *lane += exp((value - highest) * scale);
            }
        }
        sum += lanes.iter().map(|lane| f64::from(*lane)).sum::<f64>();
        sum += rest.iter().map(|value| f64::from(exp((value - highest) * scale))).sum::<f64>();
    }
    sum
}

/// exp(x) for x ≤ 0: 2ⁿ · 2ʳ with a whole number n and r in [−½, ½]. A polynomial gives 2ʳ, and the
/// exponent of the float gets n.
fn exp(x: f32) -> f32 {
    /// Adding and subtracting this number rounds to a whole number: 1.5 · 2²³.
    const ROUND: f32 = 12_582_912.0;
    /// ln(2)ᵏ / k!, the Taylor series of 2ʳ.
    const SERIES: [f32; 7] = [
        1.0,
        std::f32::consts::LN_2,
        0.240_226_5,
        0.055_504_11,
        0.009_618_129,
        0.001_333_355_8,
        0.000_154_035_3,
    ];
    let power = x.max(LOWEST) * std::f32::consts::LOG2_E;
    let whole = (power + ROUND) - ROUND;
    let rest = power - whole;
    let series = SERIES.iter().rev().fold(0.0, |sum, term| sum * rest + term);
    f32::from_bits(series.to_bits().wrapping_add(((whole as i32) << 23) as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_that_of_f64() {
        for (count, temperature) in [(1, 1.0), (15, 1.0), (151_936, 1.0), (151_936, 0.3)] {
            let values: Vec<f32> =
                (0..count).map(|i| 12.0 - ((i * 7919) % 4001) as f32 * 0.01).collect();
            let highest = values.iter().copied().fold(f32::MIN, f32::max);
            let exact: f64 = values
                .iter()
                .map(|value| (f64::from(value - highest) / f64::from(temperature)).exp())
                .sum();
            let sum = exp_sum(&values, highest, temperature);
            assert!((sum / exact - 1.0).abs() < 1e-6, "{count}: {sum} for {exact}");
        }
    }

    #[test]
    fn values_far_below_the_highest_count_for_nothing() {
        let values = [3.0, f32::NEG_INFINITY, -1e30, 3.0];
        let sum = exp_sum(&values, 3.0, 1.0);
        assert!((sum - 2.0).abs() < 1e-6, "{sum}");
    }
}
