//! How long a line takes with a model, for those who choose one and have measured none here.
//!
//! Without a GPU, every token reads the whole model from memory once, so its time grows with the
//! file. The speed of the default model on two cores is measured (docs/lab/serving-results.md), and
//! the others follow from their sizes. `hone doctor` says how fast this machine answers.

/// Tokens a second, and the bytes of the model that they were measured with.
const MEASURED_TOKENS_PER_S: f64 = 24.7;
const MEASURED_BYTES: f64 = 491_400_064.0;

/// Tokens of a line of code.
const LINE_TOKENS: f64 = 10.0;

/// The milliseconds that a line is expected to take on two cores.
pub fn line_ms(model_bytes: u64) -> u64 {
    let of_measured = LINE_TOKENS / MEASURED_TOKENS_PER_S * 1000.0;
    (of_measured * model_bytes as f64 / MEASURED_BYTES).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_takes_as_long_as_was_measured_and_longer_with_a_larger_model() {
        assert_eq!(line_ms(491_400_064), 405);
        assert_eq!(line_ms(2 * 491_400_064), 810);
        assert_eq!(line_ms(0), 0);
    }
}
