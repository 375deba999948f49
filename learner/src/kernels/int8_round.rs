//! Rounds activations to 8-bit integers, exactly as the CPU backend of ggml does
//! (quantize_row_q8_0, _q8_1 and _q8_K of llama.cpp).
//!
//! For Q4_0 to Q8_0 there is a scale in half precision for each 32 values. For K-quants there
//! is a scale for each 256 values.

use crate::kernels::int8_dot::{Int8Rows, ROWS, RowGroup};
use crate::kernels::quant_blocks::Format;
use half::f16;
use pulp::Arch;
use rayon::prelude::*;

/// The largest integer.
const LARGEST: f32 = 127.0;

/// The number of values in the longest block.
const LONGEST_BLOCK: usize = 256;

/// A parallel task rounds at least this many blocks of rows.
const BLOCKS_PER_TASK: usize = 4;

/// Rows of activations, rounded for products with matrices of one format. `ROWS` rows lie side
/// by side in a block; missing rows of the last block are zero.
pub struct Int8Activations {
    quads: Vec<[u32; ROWS]>,
    groups: Vec<[RowGroup; ROWS]>,
    pub count: usize,
    pub width: usize,
    group: usize,
}

impl Int8Activations {
    /// Rounds `x`, which consists of whole rows.
    pub fn round(x: &[f32], width: usize, format: Format) -> Int8Activations {
        let (count, group) = (x.len() / width, format.group_values());
        let blocks = count.div_ceil(ROWS);
        let mut quads = vec![[0; ROWS]; blocks * width / 4];
        let mut groups = vec![[RowGroup::default(); ROWS]; blocks * width / group];
        quads
            .par_chunks_mut(width / 4)
            .zip(groups.par_chunks_mut(width / group))
            .zip(x.par_chunks(ROWS * width))
            .with_min_len(BLOCKS_PER_TASK)
            .for_each(|((quads, groups), x)| {
                Arch::new().dispatch(|| {
                    for (i, x) in x.chunks_exact(width).enumerate() {
                        round_row(x, format, i, quads, groups);
                    }
                });
            });
        Int8Activations { quads, groups, count, width, group }
    }

    /// `depth` values, from `from` on, of a block of rows.
    pub fn rows(&self, block: usize, from: usize, depth: usize) -> Int8Rows<'_> {
        let first = block * self.width + from;
        Int8Rows {
            quads: &self.quads[first / 4..][..depth / 4],
            groups: &self.groups[first / self.group..][..depth / self.group],
        }
    }
}

/// Rounds one row, which is the `i`-th of its block.
#[inline(always)]
fn round_row(
    x: &[f32],
    format: Format,
    i: usize,
    quads: &mut [[u32; ROWS]],
    groups: &mut [[RowGroup; ROWS]],
) {
    let (block, group) = (format.block_values(), format.group_values());
    let blocks = x
        .chunks_exact(block)
        .zip(quads.chunks_exact_mut(block / 4))
        .zip(groups.chunks_exact_mut(block / group));
    for ((x, quads), groups) in blocks {
        let largest = largest(x);
        let inverse = if largest == 0.0 { 0.0 } else { LARGEST / largest };
        let exact = largest / LARGEST;
        let scale = if largest == 0.0 {
            0.0
        } else if block == 32 {
            f16::from_f32(exact).to_f32()
        } else {
            1.0 / inverse
        };
        // With the bytes in an array of their own, each of the three loops vectorises.
        let mut bytes = [0; LONGEST_BLOCK];
        for (byte, x) in bytes.iter_mut().zip(x) {
            *byte = nearest(x * inverse);
        }
        for (quads, bytes) in quads.iter_mut().zip(bytes.as_chunks().0) {
            quads[i] = u32::from_le_bytes(*bytes);
        }
        for (bytes, of) in bytes.chunks_exact(group).zip(groups) {
            let sum: i32 = bytes.iter().map(|byte| i32::from(*byte as i8)).sum();
            let total = if block == 32 {
                f16::from_f32(exact * sum as f32).to_f32()
            } else {
                scale * sum as f32
            };
            of[i] = RowGroup { scale, start: -format.offset() * sum, total };
        }
    }
}

/// The largest absolute value, or NaN if there is one, so that the product is none either. As
/// integers, the bits of absolute values have the same order, and those of NaN are above all.
#[inline(always)]
fn largest(x: &[f32]) -> f32 {
    let mut lanes = [0u32; 16];
    for x in x.as_chunks::<16>().0 {
        for (lane, x) in lanes.iter_mut().zip(x) {
            *lane = (*lane).max(x.abs().to_bits());
        }
    }
    f32::from_bits(lanes.into_iter().fold(0, u32::max))
}

/// The nearest integer, or the even one of two, as the byte of an i8. |x| is at most 127.
#[inline(always)]
fn nearest(x: f32) -> u8 {
    // 1.5 · 2²³. After adding it the integer is in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    (x + ROUND).to_bits() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The integers and the groups of the i-th row.
    fn row(rows: Int8Rows, i: usize) -> (Vec<i8>, Vec<RowGroup>) {
        let bytes = rows.quads.iter().flat_map(|quads| quads[i].to_le_bytes());
        let groups = rows.groups.iter().map(|groups| groups[i]).collect();
        (bytes.map(|byte| byte as i8).collect(), groups)
    }

    #[test]
    fn the_largest_value_becomes_127_and_halves_are_rounded_to_even() {
        let mut x = vec![0.0; 64];
        x[..5].copy_from_slice(&[254.0, -254.0, 1.0, 3.0, -7.0]);
        let rounded = Int8Activations::round(&x, 64, Format::Q8_0);
        let (integers, groups) = row(rounded.rows(0, 0, 64), 0);
        assert_eq!(integers[..6], [127, -127, 0, 2, -4, 0]);
        assert_eq!(groups[0], RowGroup { scale: 2.0, start: 2 * 128, total: -4.0 });
        assert_eq!(groups[1], RowGroup::default(), "a block of zeros");
    }

    #[test]
    fn no_number_is_none_either_once_it_is_rounded() {
        for (format, bad) in [(Format::Q8_0, f32::NAN), (Format::Q6K, f32::INFINITY)] {
            let mut x = vec![1.0; 256];
            x[40] = bad;
            let rounded = Int8Activations::round(&x, 256, format);
            let (integers, groups) = row(rounded.rows(0, 0, 256), 0);
            let at = 40 / format.group_values();
            let values = integers.iter().map(|q| f32::from(*q) * groups[at].scale);
            assert!(values.sum::<f32>().is_nan() && groups[at].total.is_nan(), "{format:?}, {bad}");
        }
    }

    /// A block of 256 has one scale, and a sum for each 16 or 32 values.
    #[test]
    fn k_quants_have_one_scale_for_256_values() {
        let x: Vec<f32> = (0..256).map(|i| i as f32 - 255.0).collect();
        let rounded = Int8Activations::round(&x, 256, Format::Q6K);
        let (integers, groups) = row(rounded.rows(0, 0, 256), 0);
        assert_eq!(groups.len(), 16);
        assert!(groups.iter().all(|group| group.scale == groups[0].scale));
        assert_eq!((integers[0], integers[255]), (-127, 0));
        assert!((groups[0].scale - 255.0 / 127.0).abs() < 1e-6);
    }

    #[test]
    fn no_value_moves_by_more_than_half_a_step() {
        let x: Vec<f32> = (0..512).map(|i| ((i * 37 % 101) as f32 - 50.0) / 7.0).collect();
        for format in [Format::Q5_0, Format::Q4_1, Format::Q4K, Format::Q6K] {
            let rounded = Int8Activations::round(&x, 256, format);
            for (index, x) in x.iter().enumerate() {
                let (integers, groups) = row(rounded.rows(0, 0, 256), index / 256);
                let at = index % 256;
                let scale = groups[at / format.group_values()].scale;
                let off = (f32::from(integers[at]) * scale - x).abs();
                // Half a step, and the rounding of the scale to half precision.
                assert!(off <= scale * (0.5 + 127.0 / 2048.0), "{format:?}: {off}");
            }
        }
    }
}
