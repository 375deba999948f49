//! The two number types of the model: `f32` in production, and `f64` in tests that compare
//! the hand-written gradients with central differences.

use candle_core::{DType, WithDType};

pub trait Float: WithDType {
    /// The type in which the keys and values of prompts are kept: f16 as in llama.cpp, or
    /// full precision where gradients are checked.
    const KV: DType;

    /// The values if they are f32, for the kernels that exist for f32 only.
    fn as_f32(values: &[Self]) -> Option<&[f32]>;
    fn as_f32_mut(values: &mut [Self]) -> Option<&mut [f32]>;

    fn exp(self) -> Self;
    fn ln(self) -> Self;
    fn sqrt(self) -> Self;
}

impl Float for f32 {
    const KV: DType = DType::F16;

    fn as_f32(values: &[f32]) -> Option<&[f32]> {
        Some(values)
    }
    fn as_f32_mut(values: &mut [f32]) -> Option<&mut [f32]> {
        Some(values)
    }

    /// The exponential without a branch, so that loops over it vectorise. The one of the
    /// standard library is a function call for each element.
    ///
    /// The relative error is below 3e-7 on [-87, 87]. Other inputs are clamped to this range:
    /// their exponential is 0 or overflows for every use here.
    #[inline(always)]
    fn exp(self) -> f32 {
        // 1.5 · 2²³. Adding and subtracting it rounds to the nearest integer.
        const ROUND: f32 = 12_582_912.0;
        // ln 2 in two parts, so that x − n·ln 2 loses no bit.
        const LN2_HIGH: f32 = 0.693_145_75;
        const LN2_LOW: f32 = 1.428_606_8e-6;
        let x = self.clamp(-87.0, 87.0);
        let n = x * std::f32::consts::LOG2_E + ROUND - ROUND;
        let f = x - n * LN2_HIGH - n * LN2_LOW;
        let series = 1.0
            + f * (1.0
                + f * (0.5
                    + f * (1.0 / 6.0 + f * (1.0 / 24.0 + f * (1.0 / 120.0 + f * (1.0 / 720.0))))));
        series * f32::from_bits(((n as i32 + 127) << 23) as u32)
    }
    fn ln(self) -> f32 {
        f32::ln(self)
    }
    fn sqrt(self) -> f32 {
        f32::sqrt(self)
    }
}

impl Float for f64 {
    const KV: DType = DType::F64;

    fn as_f32(_: &[f64]) -> Option<&[f32]> {
        None
    }
    fn as_f32_mut(_: &mut [f64]) -> Option<&mut [f32]> {
        None
    }

    fn exp(self) -> f64 {
        f64::exp(self)
    }
    fn ln(self) -> f64 {
        f64::ln(self)
    }
    fn sqrt(self) -> f64 {
        f64::sqrt(self)
    }
}

#[cfg(test)]
mod tests {
    use super::Float;

    #[test]
    fn the_fast_exponential_stays_within_its_stated_error() {
        for step in -8700..=8700 {
            let x = step as f32 / 100.0;
            let exact = f64::from(x).exp();
            let error = (f64::from(Float::exp(x)) - exact).abs() / exact;
            assert!(error < 3e-7, "exp({x}): relative error {error:e}");
        }
    }
}
