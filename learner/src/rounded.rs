//! Activations rounded to 8-bit integers exactly as ggml's CPU backend rounds
//! them (quantize_row_q8_0, _q8_1 and _q8_K of llama.cpp): with the formats of
//! single blocks of 32 a scale in half precision for each 32 values, with
//! K-quants one for each 256.

use crate::blocks::Format;
use crate::dot8::{Group, Row};
use half::f16;
use pulp::Arch;
use rayon::prelude::*;

/// The largest integer.
const LARGEST: f32 = 127.0;

/// Rows a parallel task rounds at least.
const ROWS_PER_TASK: usize = 16;

/// Rows of activations, rounded for products with matrices of one format.
pub struct Rounded {
    quads: Vec<u32>,
    groups: Vec<Group>,
    pub count: usize,
    pub width: usize,
    group: usize,
}

impl Rounded {
    /// `x` holds whole rows of whole blocks.
    pub fn of(x: &[f32], width: usize, format: Format) -> Rounded {
        let (count, group) = (x.len() / width, format.group_values());
        let mut quads = vec![0; count * width / 4];
        let mut groups = vec![Group::default(); count * width / group];
        quads
            .par_chunks_mut(width / 4)
            .zip(groups.par_chunks_mut(width / group))
            .zip(x.par_chunks(width))
            .with_min_len(ROWS_PER_TASK)
            .for_each(|((quads, groups), x)| {
                Arch::new().dispatch(|| round(x, format, quads, groups));
            });
        Rounded { quads, groups, count, width, group }
    }

    /// `depth` values of a row from `from` on. Past the end the last row is
    /// taken again; the caller drops what it computes from it.
    pub fn row(&self, row: usize, from: usize, depth: usize) -> Row<'_> {
        let first = row.min(self.count - 1) * self.width + from;
        Row {
            quads: &self.quads[first / 4..][..depth / 4],
            groups: &self.groups[first / self.group..][..depth / self.group],
        }
    }
}

/// One row.
#[inline(always)]
fn round(x: &[f32], format: Format, quads: &mut [u32], groups: &mut [Group]) {
    let (block, group) = (format.block_values(), format.group_values());
    let blocks = x
        .chunks_exact(block)
        .zip(quads.chunks_exact_mut(block / 4))
        .zip(groups.chunks_exact_mut(block / group));
    for ((x, quads), groups) in blocks {
        let largest = largest(x);
        let inverse = if largest == 0.0 { 0.0 } else { LARGEST / largest };
        let exact = largest / LARGEST;
        let scale = match (block, largest == 0.0) {
            (_, true) => 0.0,
            (32, _) => f16::from_f32(exact).to_f32(),
            _ => 1.0 / inverse,
        };
        for (x, quad) in x.as_chunks::<4>().0.iter().zip(quads.iter_mut()) {
            *quad = u32::from_le_bytes(x.map(|x| nearest(x * inverse)));
        }
        for (quads, of) in quads.chunks_exact(group / 4).zip(groups) {
            let sum = sum(quads);
            let total = if block == 32 {
                f16::from_f32(exact * sum as f32).to_f32()
            } else {
                scale * sum as f32
            };
            *of = Group { scale, start: -format.offset() * sum, total };
        }
    }
}

#[inline(always)]
fn largest(x: &[f32]) -> f32 {
    let mut lanes = [0f32; 16];
    for x in x.as_chunks::<16>().0 {
        for (lane, x) in lanes.iter_mut().zip(x) {
            *lane = lane.max(x.abs());
        }
    }
    lanes.into_iter().fold(0.0, f32::max)
}

/// The nearest integer, of two the even one, as the byte of an i8; |x| ≤ 127.
#[inline(always)]
fn nearest(x: f32) -> u8 {
    // 1.5 · 2²³: adding it leaves the integer in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    (x + ROUND).to_bits() as u8
}

#[inline(always)]
fn sum(quads: &[u32]) -> i32 {
    quads.iter().flat_map(|quad| quad.to_le_bytes()).map(|byte| i32::from(byte as i8)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dot8::Row;

    fn integers(row: Row) -> Vec<i8> {
        row.quads.iter().flat_map(|quad| quad.to_le_bytes()).map(|byte| byte as i8).collect()
    }

    #[test]
    fn the_largest_becomes_127_and_halves_go_to_even() {
        let mut x = vec![0.0; 64];
        x[..5].copy_from_slice(&[254.0, -254.0, 1.0, 3.0, -7.0]);
        let rounded = Rounded::of(&x, 64, Format::Q8_0);
        let row = rounded.row(0, 0, 64);
        assert_eq!(integers(row)[..6], [127, -127, 0, 2, -4, 0]);
        assert_eq!(row.groups[0], Group { scale: 2.0, start: 2 * 128, total: -4.0 });
        assert_eq!(row.groups[1], Group::default(), "a block of zeros");
    }

    /// One block of 256 has one scale, and a sum for each 16 or 32 values.
    #[test]
    fn k_quants_have_one_scale_for_256_values() {
        let x: Vec<f32> = (0..256).map(|i| i as f32 - 255.0).collect();
        let rounded = Rounded::of(&x, 256, Format::Q6K);
        let row = rounded.row(0, 0, 256);
        assert_eq!(row.groups.len(), 16);
        assert!(row.groups.iter().all(|group| group.scale == row.groups[0].scale));
        assert_eq!((integers(row)[0], integers(row)[255]), (-127, 0));
        assert!((row.groups[0].scale - 255.0 / 127.0).abs() < 1e-6);
    }

    #[test]
    fn no_value_moves_by_more_than_half_a_step() {
        let x: Vec<f32> = (0..512).map(|i| ((i * 37 % 101) as f32 - 50.0) / 7.0).collect();
        for format in [Format::Q5_0, Format::Q4_1, Format::Q4K, Format::Q6K] {
            let rounded = Rounded::of(&x, 256, format);
            for (index, x) in x.iter().enumerate() {
                let row = rounded.row(index / 256, 0, 256);
                let at = index % 256;
                let scale = row.groups[at / format.group_values()].scale;
                let off = (f32::from(integers(row)[at]) * scale - x).abs();
                // Half a step, and what a scale in half precision is off by.
                assert!(off <= scale * (0.5 + 127.0 / 2048.0), "{format:?}: {off}");
            }
        }
    }
}
