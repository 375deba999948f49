//! x·Wᵀ with x rounded to 8-bit integers, as llama.cpp's CPU backend computes
//! it: for a prompt pass alone, whose result is a constant of the adapter. What
//! has a gradient is multiplied in f32 (`product.rs`).
//!
//! A task unpacks the integers of a panel of W once, laid so that a vector holds
//! four values of many columns, and multiplies it with every row of x.
//! A row's result depends neither on the other rows nor on the number of threads.

use crate::blocks::Format;
use crate::dot8::{Block, COLUMNS, Group, Panel, ROWS, Unit};
use crate::product::Quantised;
use crate::rounded::Rounded;
use pulp::Arch;
use rayon::prelude::*;
use std::ops::Range;

/// Columns of the result a task owns.
const TILE: usize = 2 * COLUMNS;

/// Values of a row of W unpacked together: a panel of COLUMNS · DEPTH bytes
/// stays in the L1 or L2 cache.
const DEPTH: usize = 1024;

const _: () = assert!(DEPTH.is_multiple_of(256));
const _: () = assert!(size_of::<Group>() <= 16, "groups of 16 values cost as much as the values");

impl Quantised {
    /// Whether [`Quantised::add_rounded`] can: the weights are integers.
    pub fn has_integers(&self) -> bool {
        self.format().block_values() > 1
    }

    /// y += x · Wᵀ: `n × width` → `n × rows`.
    pub fn add_rounded(&self, unit: Unit, x: &Rounded, y: &mut [f32]) {
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

    /// Some columns of the result, from `first` on.
    fn tile<const QUADS: usize>(
        &self,
        unit: Unit,
        x: &Rounded,
        first: usize,
        y: &mut [&mut [f32]],
    ) {
        let mut panel = Unpacked::new(self.format(), DEPTH.min(self.width()));
        let width = y.first().map_or(0, |y| y.len());
        for from in (0..self.width()).step_by(DEPTH) {
            let columns = from..self.width().min(from + DEPTH);
            let depth = columns.len();
            for at in (0..width).step_by(COLUMNS) {
                let here = COLUMNS.min(width - at);
                Arch::new().dispatch(|| panel.fill(self, first + at..first + at + here, &columns));
                for (block, y) in y.chunks_mut(ROWS).enumerate() {
                    let rows = std::array::from_fn(|i| x.row(block * ROWS + i, from, depth));
                    let mut sums: Block = [[0.0; COLUMNS]; ROWS];
                    for (sums, y) in sums.iter_mut().zip(y.iter()) {
                        sums[..here].copy_from_slice(&y[at..at + here]);
                    }
                    unit.dots::<QUADS>(panel.part(depth), rows, &mut sums);
                    for (sums, y) in sums.iter().zip(y) {
                        y[at..at + here].copy_from_slice(&sums[..here]);
                    }
                }
            }
        }
    }
}

/// A panel of W.
struct Unpacked {
    format: Format,
    quads: Vec<[u32; COLUMNS]>,
    scales: Vec<[f32; COLUMNS]>,
    mins: Vec<[f32; COLUMNS]>,
    /// Of one row of W.
    bytes: Vec<u8>,
    scale: Vec<f32>,
    min: Vec<f32>,
}

impl Unpacked {
    fn new(format: Format, depth: usize) -> Unpacked {
        let groups = depth / format.group_values();
        Unpacked {
            format,
            quads: vec![[0; COLUMNS]; depth / 4],
            scales: vec![[0.0; COLUMNS]; groups],
            mins: vec![[0.0; COLUMNS]; groups],
            bytes: vec![0; depth],
            scale: vec![0.0; groups],
            min: vec![0.0; groups],
        }
    }

    /// Unpacks `columns` of some rows of W. What a panel has beyond `rows` is
    /// from before, or zero; nobody reads what comes of it.
    #[inline(always)]
    fn fill(&mut self, weight: &Quantised, rows: Range<usize>, columns: &Range<usize>) {
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

    fn part(&self, depth: usize) -> Panel<'_> {
        let groups = depth / self.format.group_values();
        Panel {
            quads: &self.quads[..depth / 4],
            scales: &self.scales[..groups],
            mins: if self.format.has_mins() { &self.mins[..groups] } else { &[] },
            offset: self.format.offset(),
        }
    }
}
