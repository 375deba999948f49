//! The rows of a matrix in the order in which vectors take them.

use crate::kernels::tile::{AlignedVec, TileRows};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

/// The vectors of a strip. With six rows of W, as many sums stay in the registers of AVX2.
const STRIP_VECTORS: usize = 2;

/// Rows that lie side by side: value k of all rows of a strip, then value k + 1 of all. A vector
/// then holds what belongs to as many rows, and a product needs no sum across a vector. A strip has
/// two vectors' rows. The last one may have one vector's, and zeros where rows are missing.
pub struct Strips {
    values: AlignedVec,
    count: usize,
    width: usize,
    lanes: usize,
}

impl Strips {
    /// Makes strips of `count` rows of `width` values each.
    pub fn of(rows: &[f32], count: usize, width: usize) -> Strips {
        Strips::with_lanes(rows, count, width, Arch::new().dispatch(Lanes))
    }

    fn with_lanes(rows: &[f32], count: usize, width: usize, lanes: usize) -> Strips {
        let mut values = AlignedVec::zeros(count.next_multiple_of(lanes) * width);
        let strip_values = STRIP_VECTORS * lanes * width;
        let whole = &mut values.slice_mut()[..count.next_multiple_of(lanes) * width];
        for (strip, rows) in whole.chunks_mut(strip_values).zip(rows.chunks(strip_values)) {
            let side_by_side = strip.len() / width;
            for (i, row) in rows.chunks(width).enumerate() {
                strip[i..].iter_mut().step_by(side_by_side).zip(row).for_each(|(s, x)| *s = *x);
            }
        }
        Strips { values, count, width, lanes }
    }

    /// The number of rows.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The number of values of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The number of rows with those that are missing.
    pub fn padded(&self) -> usize {
        self.count.next_multiple_of(self.lanes)
    }

    /// The number of rows of a whole strip.
    pub fn strip_rows(&self) -> usize {
        STRIP_VECTORS * self.lanes
    }

    /// `depth` values of all rows, from value `from` on. A part belongs to a strip, and each of its
    /// rows has one value of every row of the strip.
    pub fn parts(&self, from: usize, depth: usize) -> impl Iterator<Item = TileRows<'_>> {
        (0..self.count.div_ceil(self.strip_rows())).map(move |strip| self.part(strip, from, depth))
    }

    /// The part of one strip.
    #[inline(always)]
    pub fn part(&self, strip: usize, from: usize, depth: usize) -> TileRows<'_> {
        let before = strip * self.strip_rows();
        let rows = self.strip_rows().min(self.padded() - before);
        let values = &self.values.slice()[before * self.width + from * rows..][..depth * rows];
        TileRows { values, count: depth, stride: rows, depth: rows }
    }

    /// Strips of as many rows of `width` values, which are zero before `f(index, strip)` fills each
    /// strip.
    pub fn mapped(&self, width: usize, f: impl Fn(usize, &mut [f32]) + Sync) -> Strips {
        let length = self.padded() * width;
        let mut values = AlignedVec::zeros(length);
        values.slice_mut()[..length]
            .par_chunks_mut((self.strip_rows() * width).max(1))
            .enumerate()
            .for_each(|(strip, y)| f(strip, y));
        Strips { values, width, ..*self }
    }

    /// The rows one after the other.
    pub fn rows(&self) -> Vec<f32> {
        let mut rows = vec![0.0; self.count * self.width];
        let strips = rows.chunks_mut((self.strip_rows() * self.width).max(1));
        for (strip, rows) in strips.enumerate() {
            let part = self.part(strip, 0, self.width);
            for (i, row) in rows.chunks_mut(self.width).enumerate() {
                row.iter_mut().enumerate().for_each(|(k, x)| *x = part.row(k)[i]);
            }
        }
        rows
    }
}

/// The f32 values of a vector of this CPU.
struct Lanes;

impl WithSimd for Lanes {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        S::F32_LANES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_where_its_strip_has_it() {
        let (count, width) = (13, 5);
        let rows: Vec<f32> = (1..=count * width).map(|value| value as f32).collect();
        let strips = Strips::with_lanes(&rows, count, width, 4);
        assert_eq!((strips.count(), strips.padded(), strips.strip_rows()), (13, 16, 8));
        let (from, depth) = (2, 3);
        let parts: Vec<TileRows> = strips.parts(from, depth).collect();
        assert_eq!(parts.iter().map(|part| part.depth).collect::<Vec<_>>(), [8, 8]);
        for row in 0..strips.padded() {
            for k in 0..depth {
                let expected = if row < count { rows[row * width + from + k] } else { 0.0 };
                assert_eq!(parts[row / 8].row(k)[row % 8], expected, "value {k} of row {row}");
            }
        }
        assert_eq!(strips.rows(), rows);
        let last = Strips::with_lanes(&rows[..10 * width], 10, width, 4);
        assert_eq!(last.parts(0, 1).map(|part| part.depth).collect::<Vec<_>>(), [8, 4]);
    }
}
