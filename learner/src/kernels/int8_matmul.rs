//! x·Wᵀ with x rounded to 8-bit integers, as the CPU backend of llama.cpp computes it.
//!
//! Prompt passes and the forward passes of tails use it for the frozen matrices. The gradient is
//! that of the product in f32 ([`matmul`](crate::kernels::matmul)).
//!
//! A task unpacks the integers of a panel of W once and multiplies them with every row of x.
//! In the panel a vector has four values of each of many columns. The result for a row depends
//! neither on the other rows nor on the number of threads.

use crate::kernels::int8_dot::{COLUMNS, Int8Panel, Int8Unit, ROWS, ResultBlock};
use crate::kernels::int8_round::Int8Activations;
use crate::kernels::matmul::QuantisedMatrix;
use crate::kernels::quant_blocks::Format;
use pulp::Arch;
use rayon::prelude::*;
use std::ops::Range;

/// The columns of the result that belong to a task.
const TILE: usize = 2 * COLUMNS;

/// The values of a row of W that are unpacked together. A panel of COLUMNS · DEPTH bytes stays
/// in the L1 or L2 cache.
const DEPTH: usize = 1024;

// A panel consists of whole blocks of every format.
const _: () = assert!(DEPTH.is_multiple_of(256));

impl QuantisedMatrix {
    /// Returns true if the weights are integers, which [`QuantisedMatrix::add_int8_product`] needs.
    pub fn has_integers(&self) -> bool {
        self.format().block_values() > 1
    }

    /// y += x · Wᵀ: `n × width` → `n × rows`.
    pub fn add_int8_product(&self, unit: Int8Unit, x: &Int8Activations, y: &mut [f32]) {
        let mut tiles: Vec<Vec<&mut [f32]>> = Vec::new();
        tiles.resize_with(self.rows().div_ceil(TILE), || Vec::with_capacity(x.count));
        for row in y.chunks_mut(self.rows()) {
            for (tile, part) in tiles.iter_mut().zip(row.chunks_mut(TILE)) {
                tile.push(part);
            }
        }
        let groups = |y: &mut [&mut [f32]], first| match self.format().group_values() {
            16 => self.tile::<4>(unit, x, first, y),
            _ => self.tile::<8>(unit, x, first, y),
        };
        tiles
            .par_iter_mut()
            .with_max_len(1)
            .enumerate()
            .for_each(|(index, y)| groups(y, index * TILE));
    }

    /// Computes some columns of the result, from `first` on.
    fn tile<const QUADS: usize>(
        &self,
        unit: Int8Unit,
        x: &Int8Activations,
        first: usize,
        y: &mut [&mut [f32]],
    ) {
        let mut panel = UnpackedPanel::new(self.format(), DEPTH.min(self.width()));
        let width = y.first().map_or(0, |y| y.len());
        for from in (0..self.width()).step_by(DEPTH) {
            let columns = from..self.width().min(from + DEPTH);
            let depth = columns.len();
            for at in (0..width).step_by(COLUMNS) {
                let here = COLUMNS.min(width - at);
                Arch::new().dispatch(|| panel.fill(self, first + at..first + at + here, &columns));
                let panel = panel.part(depth);
                for (block, y) in y.chunks_mut(ROWS).enumerate() {
                    let mut sums: ResultBlock = [[0.0; COLUMNS]; ROWS];
                    for (sums, y) in sums.iter_mut().zip(y.iter()) {
                        load(sums, &y[at..at + here]);
                    }
                    unit.dots::<QUADS>(panel, x.rows(block, from, depth), &mut sums);
                    for (sums, y) in sums.iter().zip(y) {
                        store(sums, &mut y[at..at + here]);
                    }
                }
            }
        }
    }
}

/// A copy whose length is known at compile time needs no function call.
#[inline(always)]
fn load(sums: &mut [f32; COLUMNS], y: &[f32]) {
    match y.first_chunk() {
        Some(y) => *sums = *y,
        None => sums[..y.len()].copy_from_slice(y),
    }
}

/// The reverse of [`load`].
#[inline(always)]
fn store(sums: &[f32; COLUMNS], y: &mut [f32]) {
    match y.first_chunk_mut() {
        Some(y) => *y = *sums,
        None => y.copy_from_slice(&sums[..y.len()]),
    }
}

/// The memory of a panel of W.
struct UnpackedPanel {
    format: Format,
    quads: Vec<[u32; COLUMNS]>,
    scales: Vec<[f32; COLUMNS]>,
    mins: Vec<[f32; COLUMNS]>,
    /// The integers, scales and mins of one row of W.
    bytes: Vec<u8>,
    scale: Vec<f32>,
    min: Vec<f32>,
}

impl UnpackedPanel {
    fn new(format: Format, depth: usize) -> UnpackedPanel {
        let groups = depth / format.group_values();
        UnpackedPanel {
            format,
            quads: vec![[0; COLUMNS]; depth / 4],
            scales: vec![[0.0; COLUMNS]; groups],
            mins: vec![[0.0; COLUMNS]; groups],
            bytes: vec![0; depth],
            scale: vec![0.0; groups],
            min: vec![0.0; groups],
        }
    }

    /// Unpacks some columns of some rows of W. If there are fewer rows than the panel has
    /// room for, the rest keeps old values. The caller ignores what they give.
    #[inline(always)]
    fn fill(&mut self, weight: &QuantisedMatrix, rows: Range<usize>, columns: &Range<usize>) {
        let depth = columns.len();
        let bytes = &mut self.bytes[..depth];
        for (j, row) in rows.enumerate() {
            let part = weight.part(row, columns);
            self.format.integers(part, bytes, &mut self.scale, &mut self.min);
            for (quads, bytes) in self.quads.iter_mut().zip(bytes.as_chunks().0) {
                quads[j] = u32::from_le_bytes(*bytes);
            }
            for (scales, scale) in self.scales.iter_mut().zip(&self.scale) {
                scales[j] = *scale;
            }
            for (mins, min) in self.mins.iter_mut().zip(&self.min) {
                mins[j] = -min;
            }
        }
    }

    fn part(&self, depth: usize) -> Int8Panel<'_> {
        let groups = depth / self.format.group_values();
        Int8Panel {
            quads: &self.quads[..depth / 4],
            scales: &self.scales[..groups],
            mins: if self.format.has_mins() { &self.mins[..groups] } else { &[] },
            offset: self.format.offset(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{matrix, values};
    use crate::testing::for_each_int8_unit;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    const FORMATS: [Format; 10] = [
        Format::Q4_0,
        Format::Q4_1,
        Format::Q5_0,
        Format::Q5_1,
        Format::Q8_0,
        Format::Q2K,
        Format::Q3K,
        Format::Q4K,
        Format::Q5K,
        Format::Q6K,
    ];

    /// A matrix of random integers with scales of some hundredths.
    fn random_weight(
        random: &mut StdRng,
        format: Format,
        rows: usize,
        width: usize,
    ) -> QuantisedMatrix {
        let size = format.block_bytes();
        let blocks = rows * width / format.block_values();
        let mut bytes: Vec<u8> = (0..blocks * size).map(|_| random.random()).collect();
        // The positions in a block of the bytes with the exponents of its f16 values.
        let high: &[usize] = match format {
            Format::Q4_1 | Format::Q5_1 | Format::Q4K | Format::Q5K => &[1, 3],
            Format::Q2K => &[81, 83],
            Format::Q3K => &[109],
            Format::Q6K => &[209],
            _ => &[1],
        };
        for block in bytes.chunks_mut(size) {
            high.iter().for_each(|at| block[*at] = 0x28);
        }
        QuantisedMatrix::new(format, bytes, rows, width).unwrap()
    }

    fn random_values(random: &mut StdRng, count: usize) -> Vec<f32> {
        (0..count).map(|_| random.random_range(-1f32..1.0)).collect()
    }

    fn product(weight: &QuantisedMatrix, unit: Int8Unit, x: &[f32]) -> Vec<f32> {
        let mut y = vec![0.5; x.len() / weight.width() * weight.rows()];
        weight.add_int8_product(
            unit,
            &Int8Activations::round(x, weight.width(), weight.format()),
            &mut y,
        );
        y
    }

    /// The sizes fill neither a panel nor a block of rows nor a depth. The bound is the largest
    /// effect that the rounding of x can have: half a step for each value, and the rounding
    /// of its scale to half precision.
    #[test]
    fn the_two_products_differ_only_by_the_rounding_of_x() {
        let mut random = StdRng::seed_from_u64(1);
        for format in FORMATS {
            let (rows, width) = (70, if format.block_values() == 32 { 1120 } else { 1280 });
            let weight = random_weight(&mut random, format, rows, width);
            let w = weight.dequantised(0..rows);
            let x = random_values(&mut random, 7 * width);
            let exact = weight.forward(None, &matrix(x.clone(), 7, width).unwrap()).unwrap();
            let exact = values::<f32>(&exact).unwrap();
            let ours = product(&weight, Int8Unit::Portable, &x);
            let step = 1.0 / 127.0;
            for (index, (ours, exact)) in ours.iter().zip(&exact).enumerate() {
                let w = &w[index % rows * width..][..width];
                let most: f32 = w.iter().map(|w| w.abs() * step * (0.5 + 127.0 / 1024.0)).sum();
                // In a sum of many values most of the rounding cancels, so that a tenth of
                // the bound is enough.
                let off = (ours - 0.5 - exact).abs();
                assert!(
                    off < 0.1 * most,
                    "{format:?} at {index}: {ours} for {exact}, {off} of {most}"
                );
            }
        }
    }

    #[test]
    fn neither_unit_nor_threads_nor_other_rows_change_a_bit() {
        let mut random = StdRng::seed_from_u64(2);
        for format in FORMATS {
            let weight = random_weight(&mut random, format, 75, 512);
            let x = random_values(&mut random, 8 * 512);
            let expected = product(&weight, Int8Unit::Portable, &x);
            for_each_int8_unit(|unit| {
                for threads in [1, 3] {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                    let ours = pool.unwrap().install(|| product(&weight, unit, &x));
                    assert!(ours == expected, "{format:?}, {unit:?}, {threads} threads");
                }
            });
            let alone = product(&weight, Int8Unit::Portable, &x[3 * 512..4 * 512]);
            assert!(alone == expected[3 * 75..4 * 75], "{format:?}: a row among others");
        }
    }
}
