//! Products with a matrix that stays quantised: x·Wᵀ, and its gradient dy·W.
//!
//! A task dequantises a tile of W into the cache of its core and multiplies it there with
//! every row of x. W is therefore read from memory as the few bits that it is stored in, and
//! never written. With few rows, as in a training step, reading W takes most of the time.
//! With the many rows of a prompt the arithmetic does, and the same kernels are limited by
//! the multipliers of the CPU.
//!
//! Results do not depend on the number of threads: each task has columns of the result of its
//! own, and adds in a fixed order.

use crate::kernels::int8_dot::Int8Unit;
use crate::kernels::int8_round::Int8Activations;
use crate::kernels::quant_blocks::Format;
use crate::kernels::strips::Strips;
use crate::kernels::tile::{AlignedVec, TileRows, row_sums, stride};
use crate::kernels::weight_bytes::WeightBytes;
use crate::kernels::{matrix, rows_per_task, with_values};
use candle_core::{Result, Tensor, bail};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;
use std::ops::Range;

/// The rows of W that a task of the forward product dequantises together.
const ROW_TILE: usize = 64;

/// The values of a row of W, and of x, that are multiplied together. A tile of
/// ROW_TILE · DEPTH f32 stays in the L2 cache; what one kernel call reads stays in L1.
const DEPTH: usize = 1024;

/// The columns of W that belong to a task of the backward product. They are enough to read
/// whole cache lines of a row.
const COLUMN_TILE: usize = 256;

/// The rows of W that the backward product dequantises together.
const BACK_DEPTH: usize = 128;

/// The rows of W that belong to a task of the backward product. The sums of the tasks are
/// added in the order of the rows.
const BACK_ROWS: usize = 1024;

// Tiles consist of whole blocks of every format.
const _: () = assert!(DEPTH.is_multiple_of(256) && COLUMN_TILE.is_multiple_of(256));

/// A frozen matrix, `rows × width`, as its file stores it.
#[derive(Debug)]
pub struct QuantisedMatrix {
    format: Format,
    bytes: WeightBytes,
    rows: usize,
    width: usize,
}

/// The two factors of what is added to a matrix: scale · B·A.
pub struct LowRank<'a> {
    /// `rank × width`.
    pub a: &'a Tensor,
    /// `rows × rank`.
    pub b: &'a Tensor,
    pub scale: f64,
}

impl QuantisedMatrix {
    /// # Errors
    /// A row is not a whole number of blocks, or the number of bytes is wrong.
    pub fn new(
        format: Format,
        bytes: impl Into<WeightBytes>,
        rows: usize,
        width: usize,
    ) -> Result<QuantisedMatrix> {
        let bytes = bytes.into();
        if !width.is_multiple_of(format.block_values()) {
            bail!("a row of {width} values is not a whole number of {format:?} blocks");
        }
        let expected = rows * (width / format.block_values() * format.block_bytes());
        let count = bytes.as_slice().len();
        if count != expected {
            bail!("{count} bytes for {rows} × {width} {format:?} values, not {expected}");
        }
        Ok(QuantisedMatrix { format, bytes, rows, width })
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn format(&self) -> Format {
        self.format
    }

    /// Takes the matrix out of this process's memory until it is read again.
    pub fn release(&self) {
        self.bytes.release();
    }

    /// The bytes of some columns of a row. The columns begin and end at blocks.
    #[inline(always)]
    pub fn part(&self, row: usize, columns: &Range<usize>) -> &[u8] {
        let (values, bytes) = (self.format.block_values(), self.format.block_bytes());
        let start = row * (self.width / values * bytes);
        let part = start + columns.start / values * bytes..start + columns.end / values * bytes;
        &self.bytes.as_slice()[part]
    }

    /// The values of some rows, one row after the other.
    pub fn dequantised(&self, rows: impl IntoIterator<Item = usize>) -> Vec<f32> {
        let mut all = Vec::new();
        for row in rows {
            let from = all.len();
            all.resize(from + self.width, 0.0);
            let y = &mut all[from..];
            Arch::new().dispatch(|| self.format.dequantise(self.part(row, &(0..self.width)), y));
        }
        all
    }

    /// x · Wᵀ: `n × width` → `n × rows`. If there is a `unit` and the weights are integers, x is
    /// rounded to 8 bits.
    pub fn forward(&self, unit: Option<Int8Unit>, x: &Tensor) -> Result<Tensor> {
        match self.integers(unit) {
            Some(unit) => {
                let y = vec![0.0; rows_of(x, self.width)? * self.rows];
                self.plus_rounded(unit, x, y)
            }
            None => self.product(&self.strips(x)?, None),
        }
    }

    /// x · Wᵀ + u · Bᵀ, and u = scale · x · Aᵀ, `n × rank`. The factors of the first product alone
    /// may be integers.
    pub fn forward_adapted(
        &self,
        unit: Option<Int8Unit>,
        x: &Tensor,
        pair: &LowRank,
    ) -> Result<(Tensor, Tensor)> {
        let (rank, scale) = (rows_of(pair.a, self.width)?, pair.scale as f32);
        if pair.b.dims2()? != (self.rows, rank) {
            bail!("the factors of a pair do not fit together");
        }
        if let Some(unit) = self.integers(unit) {
            let mut u = by_transpose(x, pair.a)?;
            u.iter_mut().for_each(|u| *u *= scale);
            let u = matrix(u, x.dim(0)?, rank)?;
            let y = by_transpose(&u, pair.b)?;
            return Ok((self.plus_rounded(unit, x, y)?, u));
        }
        let x = self.strips(x)?;
        let reduced = with_values(&pair.a.contiguous()?, |a| {
            let a = TileRows { values: a, count: rank, stride: self.width, depth: self.width };
            x.mapped(rank, |strip, u| {
                Arch::new().dispatch(Reduction { a, x: &x, strip, scale, u });
            })
        })?;
        let b = &pair.b.contiguous()?;
        let y = with_values(b, |b| self.product(&x, Some((b, &reduced))))??;
        Ok((y, matrix(reduced.rows(), x.count(), rank)?))
    }

    /// The unit, if the weights are integers.
    fn integers(&self, unit: Option<Int8Unit>) -> Option<Int8Unit> {
        unit.filter(|_| self.has_integers())
    }

    /// y + x · Wᵀ, where x is rounded to 8 bits.
    fn plus_rounded(&self, unit: Int8Unit, x: &Tensor, mut y: Vec<f32>) -> Result<Tensor> {
        let count = rows_of(x, self.width)?;
        with_values(&x.contiguous()?, |x| {
            let x = Int8Activations::round(x, self.width, self.format);
            self.add_int8_product(unit, &x, &mut y);
        })?;
        matrix(y, count, self.rows)
    }

    fn strips(&self, x: &Tensor) -> Result<Strips> {
        let count = rows_of(x, self.width)?;
        with_values(&x.contiguous()?, |x| Strips::of(x, count, self.width))
    }

    fn product(&self, x: &Strips, adapted: Option<(&[f32], &Strips)>) -> Result<Tensor> {
        let tiles = spans(self.rows, ROW_TILE);
        let parts = tiles
            .par_iter()
            .with_max_len(1)
            .map(|rows| {
                let (weight, rows) = (self, rows.clone());
                Arch::new().dispatch(ForwardTile { weight, x, adapted, rows })
            })
            .collect();
        assemble(vec![parts], ROW_TILE, x.count(), self.rows)
    }

    /// The gradient with respect to x, dy · W: `n × rows` → `n × width`.
    pub fn backward(&self, dy: &Tensor) -> Result<Tensor> {
        let dy = AlignedRows::of(dy, self.rows)?;
        let tiles = spans(self.width, COLUMN_TILE);
        let layers: Vec<Vec<Vec<f32>>> = spans(self.rows, BACK_ROWS)
            .par_iter()
            .map(|rows| {
                tiles
                    .par_iter()
                    .with_max_len(1)
                    .map(|columns| {
                        let (dy, columns) = (dy.rows(), columns.clone());
                        Arch::new().dispatch(BackwardTile {
                            weight: self,
                            dy,
                            rows: rows.clone(),
                            columns,
                        })
                    })
                    .collect()
            })
            .collect();
        assemble(layers, COLUMN_TILE, dy.count, self.width)
    }
}

/// Cuts 0..`end` into ranges of `length`.
fn spans(end: usize, length: usize) -> Vec<Range<usize>> {
    (0..end).step_by(length).map(|start| start..end.min(start + length)).collect()
}

/// Adds the layers in their order. A layer consists of parts that lie side by side, with
/// `tile` columns each, except that the last may have fewer.
fn assemble(layers: Vec<Vec<Vec<f32>>>, tile: usize, rows: usize, width: usize) -> Result<Tensor> {
    /// A parallel task copies at least this many rows.
    const ROWS: usize = 32;
    let mut y = vec![0.0; rows * width];
    y.par_chunks_mut(width.max(1)).enumerate().with_min_len(ROWS).for_each(|(row, y)| {
        for (index, parts) in layers.iter().enumerate() {
            for (y, part) in y.chunks_mut(tile).zip(parts) {
                let part = &part[row * y.len()..][..y.len()];
                if index == 0 {
                    y.copy_from_slice(part);
                } else {
                    y.iter_mut().zip(part).for_each(|(y, part)| *y += part);
                }
            }
        }
    });
    matrix(y, rows, width)
}

/// x · mᵀ: `n × depth` → `n × columns`, for a matrix of few rows or few columns, which is
/// transposed first. No row of the result depends on the other rows of x.
fn by_transpose(x: &Tensor, m: &Tensor) -> Result<Vec<f32>> {
    /// The rows of x that belong to a task.
    const ROWS: usize = 12;
    let (columns, depth) = m.dims2()?;
    let count = rows_of(x, depth)?;
    let stride = stride(columns);
    let mut transpose = AlignedVec::zeros(depth * stride);
    with_values(&m.contiguous()?, |m: &[f32]| {
        let rows = transpose.slice_mut()[..depth * stride].par_chunks_mut(stride);
        rows.enumerate().with_min_len(rows_per_task(columns)).for_each(|(k, row)| {
            row.iter_mut().zip(m[k..].iter().step_by(depth)).for_each(|(t, m)| *t = *m);
        });
    })?;
    let w = TileRows { values: transpose.slice(), count: depth, stride, depth: columns };
    let mut y = vec![0.0; count * columns];
    with_values(&x.contiguous()?, |x: &[f32]| {
        let tasks = y.par_chunks_mut(ROWS * columns).zip(x.par_chunks(ROWS * depth));
        tasks.for_each(|(y, x)| {
            let x = TileRows { values: x, count: x.len() / depth, stride: depth, depth };
            Arch::new().dispatch(RowSums { x, w, y });
        });
    })?;
    Ok(y)
}

/// A task that computes some rows of a product.
struct RowSums<'a> {
    x: TileRows<'a>,
    w: TileRows<'a>,
    y: &'a mut [f32],
}

impl WithSimd for RowSums<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        row_sums(simd, self.x, self.w, self.y);
    }
}

/// The number of rows of a tensor, whose width is checked.
fn rows_of(x: &Tensor, expected: usize) -> Result<usize> {
    let (rows, width) = x.dims2()?;
    if width != expected {
        bail!("a row of {width} values, {expected} were expected");
    }
    Ok(rows)
}

/// A copy of the rows of a tensor, in which each row begins at a cache line.
struct AlignedRows {
    values: AlignedVec,
    count: usize,
    stride: usize,
    width: usize,
}

impl AlignedRows {
    fn of(x: &Tensor, expected: usize) -> Result<AlignedRows> {
        let (count, width) = (rows_of(x, expected)?, expected);
        let stride = stride(width);
        let mut values = AlignedVec::zeros(count * stride);
        with_values(&x.contiguous()?, |x: &[f32]| {
            for (copy, x) in values.slice_mut().chunks_mut(stride).zip(x.chunks(width)) {
                copy[..width].copy_from_slice(x);
            }
        })?;
        Ok(AlignedRows { values, count, stride, width })
    }

    fn rows(&self) -> TileRows<'_> {
        let AlignedRows { values, count, stride, width } = self;
        TileRows { values: values.slice(), count: *count, stride: *stride, depth: *width }
    }
}

/// A task that computes some columns of x·Wᵀ: the dot products of the rows of x with some
/// rows of W.
struct ForwardTile<'a> {
    weight: &'a QuantisedMatrix,
    x: &'a Strips,
    /// B and the strips of u, whose product is added.
    adapted: Option<(&'a [f32], &'a Strips)>,
    rows: Range<usize>,
}

impl WithSimd for ForwardTile<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Vec<f32> {
        let ForwardTile { weight, x, adapted, rows } = self;
        let (width, count) = (weight.width, rows.len());
        let stride = stride(DEPTH.min(width));
        let mut tile = AlignedVec::zeros(count * stride);
        // W·xᵀ, strip after strip.
        let mut sums = vec![0.0; count * x.padded()];
        for from in (0..width).step_by(DEPTH) {
            let columns = from..width.min(from + DEPTH);
            let depth = columns.len();
            for (row, values) in rows.clone().zip(tile.slice_mut().chunks_mut(stride)) {
                weight.format.dequantise(weight.part(row, &columns), &mut values[..depth]);
            }
            let w = TileRows { values: tile.slice(), count, stride, depth };
            for (x, sums) in x.parts(from, depth).zip(sums.chunks_mut(count * x.strip_rows())) {
                row_sums(simd, w, x, sums);
            }
        }
        if let Some((b, u)) = adapted {
            let rank = u.width();
            let b = TileRows { values: &b[rows.start * rank..], count, stride: rank, depth: rank };
            for (u, sums) in u.parts(0, rank).zip(sums.chunks_mut(count * x.strip_rows())) {
                row_sums(simd, b, u, sums);
            }
        }
        let mut y = vec![0.0; x.count() * count];
        for (y, sums) in
            y.chunks_mut(x.strip_rows() * count).zip(sums.chunks(x.strip_rows() * count))
        {
            let side_by_side = sums.len() / count;
            for (j, sums) in sums.chunks(side_by_side).enumerate() {
                y[j..].iter_mut().step_by(count).zip(sums).for_each(|(y, sum)| *y = *sum);
            }
        }
        y
    }
}

/// A task that computes u for one strip of x.
struct Reduction<'a> {
    a: TileRows<'a>,
    x: &'a Strips,
    strip: usize,
    scale: f32,
    u: &'a mut [f32],
}

impl WithSimd for Reduction<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Reduction { a, x, strip, scale, u } = self;
        for from in (0..a.depth).step_by(DEPTH) {
            let depth = DEPTH.min(a.depth - from);
            row_sums(simd, a.part(from, depth), x.part(strip, from, depth), u);
        }
        u.iter_mut().for_each(|u| *u *= scale);
    }
}

/// A task that computes what some rows of W add to some columns of dy·W.
struct BackwardTile<'a> {
    weight: &'a QuantisedMatrix,
    dy: TileRows<'a>,
    rows: Range<usize>,
    columns: Range<usize>,
}

impl WithSimd for BackwardTile<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Vec<f32> {
        let BackwardTile { weight, dy, rows, columns } = self;
        let count = columns.len();
        let mut dx = vec![0.0; dy.count * count];
        let stride = stride(count);
        let mut tile = AlignedVec::zeros(BACK_DEPTH.min(rows.len()) * stride);
        for from in rows.clone().step_by(BACK_DEPTH) {
            let depth = BACK_DEPTH.min(rows.end - from);
            let values = tile.slice_mut().chunks_mut(stride);
            for (row, values) in (from..from + depth).zip(values) {
                weight.format.dequantise(weight.part(row, &columns), &mut values[..count]);
            }
            let w = TileRows { values: tile.slice(), count: depth, stride, depth: count };
            row_sums(simd, dy.part(from, depth), w, &mut dx);
        }
        dx
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::Device;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    fn random(random: &mut StdRng, rows: usize, width: usize) -> Tensor {
        let values = (0..rows * width).map(|_| random.random_range(-1f32..1.0)).collect();
        matrix(values, rows, width).unwrap()
    }

    fn largest_difference(a: &Tensor, b: &Tensor) -> f32 {
        let difference = (a - b).unwrap().abs().unwrap().flatten_all().unwrap();
        difference.max(0).unwrap().to_scalar().unwrap()
    }

    /// The sizes are odd, so that no tile is always full.
    #[test]
    fn products_equal_those_with_the_dequantised_matrix() {
        let mut rng = StdRng::seed_from_u64(1);
        for (format, rows, width) in [
            (Format::Q5_0, 70, 96),
            (Format::Q8_0, 37, 1120),
            (Format::Q4K, 300, 512),
            (Format::F16, 35, 75),
            (Format::F32, 1, 3),
        ] {
            let blocks = rows * width / format.block_values();
            let mut bytes: Vec<u8> =
                (0..blocks * format.block_bytes()).map(|_| rng.random()).collect();
            if format == Format::F32 {
                bytes = [0.5f32, -1.0, 2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
            } else {
                // Scales, and f16 values, get exponents near that of 1.0, which is 0x3c00.
                for block in bytes.chunks_mut(format.block_bytes()) {
                    block[1] = 0x28 | block[1] & 1;
                    if format == Format::Q4K {
                        block[3] = 0x28;
                    }
                }
            }
            let weight = QuantisedMatrix::new(format, bytes, rows, width).unwrap();
            let dense = matrix(weight.dequantised(0..rows), rows, width).unwrap();
            let scale = dense.abs().unwrap().max_all().unwrap().to_scalar::<f32>().unwrap();
            for n in [1, 7, 24, 71] {
                let x = random(&mut rng, n, width);
                let expected = x.matmul(&dense.t().unwrap()).unwrap();
                let off = largest_difference(&weight.forward(None, &x).unwrap(), &expected);
                assert!(off < 1e-5 * scale * width as f32, "{format:?}, {n} rows: {off}");
                let dy = random(&mut rng, n, rows);
                let expected = dy.matmul(&dense).unwrap();
                let off = largest_difference(&weight.backward(&dy).unwrap(), &expected);
                assert!(off < 1e-5 * scale * rows as f32, "{format:?}, {n} rows back: {off}");
            }
        }
    }

    /// Bytes of `Q8_0` blocks with small scales.
    fn q8_0(blocks: usize) -> Vec<u8> {
        (0..34 * blocks).map(|i| if i % 34 == 1 { 0x28 } else { i as u8 }).collect()
    }

    #[test]
    fn the_part_of_an_adapter_is_added_and_no_row_depends_on_the_others() {
        let mut rng = StdRng::seed_from_u64(3);
        let (rows, width, rank, scale) = (70, 1120, 5, 0.5);
        let bytes = q8_0(rows * width / 32);
        let weight = QuantisedMatrix::new(Format::Q8_0, bytes, rows, width).unwrap();
        let (a, b) = (random(&mut rng, rank, width), random(&mut rng, rows, rank));
        let pair = LowRank { a: &a, b: &b, scale };
        let x = random(&mut rng, 71, width);
        let reduced = x.matmul(&a.t().unwrap()).unwrap().affine(scale, 0.0).unwrap();
        let part = reduced.matmul(&b.t().unwrap()).unwrap();
        for unit in [None, Some(Int8Unit::Portable)] {
            let (y, u) = weight.forward_adapted(unit, &x, &pair).unwrap();
            assert!(largest_difference(&u, &reduced) < 1e-4);
            let expected = (weight.forward(unit, &x).unwrap() + &part).unwrap();
            assert!(largest_difference(&y, &expected) < 1e-3);
            for (from, count) in [(0, 1), (3, 20), (40, 31)] {
                let few = x.narrow(0, from, count).unwrap();
                let (own, own_u) = weight.forward_adapted(unit, &few, &pair).unwrap();
                assert_eq!(largest_difference(&own, &y.narrow(0, from, count).unwrap()), 0.0);
                assert_eq!(largest_difference(&own_u, &u.narrow(0, from, count).unwrap()), 0.0);
            }
        }
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let mut rng = StdRng::seed_from_u64(2);
        let weight = QuantisedMatrix::new(Format::Q8_0, q8_0(160 * 3), 160, 96).unwrap();
        let x = random(&mut rng, 9, 96);
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let y = weight.forward(None, &x).unwrap();
                let dx = weight.backward(&y).unwrap();
                let bits = |t: &Tensor| with_values(t, |v: &[f32]| v.to_vec()).unwrap();
                (bits(&y), bits(&dx))
            })
        };
        assert_eq!(run(1), run(3));
    }

    #[test]
    fn a_matrix_of_the_wrong_size_is_refused() {
        let refused = |format, bytes, rows, width| {
            QuantisedMatrix::new(format, vec![0; bytes], rows, width).unwrap_err().to_string()
        };
        assert!(refused(Format::Q8_0, 34, 1, 33).contains("whole number"));
        assert!(refused(Format::Q8_0, 33, 1, 32).contains("not 34"));
        let weight = QuantisedMatrix::new(Format::Q8_0, vec![0; 34], 1, 32).unwrap();
        let x = Tensor::zeros((2, 31), candle_core::DType::F32, &Device::Cpu).unwrap();
        assert!(weight.forward(None, &x).is_err());
    }
}
