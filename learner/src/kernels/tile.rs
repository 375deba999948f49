//! Products of small f32 matrices that are in the cache of a core. A block of the result stays
//! in registers.

use pulp::Simd;

/// The f32 values of a cache line, and of the widest vector. A load that crosses cache lines
/// takes twice the time.
pub const LINE: usize = 16;

/// The distance from one row to the next, in values. It is a whole number of cache lines, and
/// never a power of two: that would put all rows into the same few sets of the cache.
pub fn stride(width: usize) -> usize {
    let lines = width.next_multiple_of(LINE);
    if lines.is_multiple_of(4 * LINE) { lines + LINE } else { lines }
}

/// Values that begin at a cache line.
pub struct AlignedVec {
    values: Vec<f32>,
    start: usize,
}

impl AlignedVec {
    pub fn zeros(length: usize) -> AlignedVec {
        let values = vec![0.0; length + LINE];
        let start = values.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE);
        AlignedVec { values, start }
    }

    #[inline(always)]
    pub fn slice(&self) -> &[f32] {
        &self.values[self.start..]
    }

    #[inline(always)]
    pub fn slice_mut(&mut self) -> &mut [f32] {
        &mut self.values[self.start..]
    }
}

/// `count` rows of `depth` values each, `stride` apart.
#[derive(Clone, Copy)]
pub struct TileRows<'a> {
    pub values: &'a [f32],
    pub count: usize,
    pub stride: usize,
    pub depth: usize,
}

impl<'a> TileRows<'a> {
    #[inline(always)]
    pub fn row(self, index: usize) -> &'a [f32] {
        &self.values[index * self.stride..][..self.depth]
    }

    /// N rows from `from` on. Past the end the last row is repeated; the caller ignores what
    /// it gives.
    #[inline(always)]
    pub fn block<const N: usize>(self, from: usize) -> [&'a [f32]; N] {
        let mut rows = [self.row(from); N];
        for (k, row) in rows.iter_mut().enumerate().skip(1) {
            *row = self.row((from + k).min(self.count - 1));
        }
        rows
    }

    /// The rows with only `depth` columns, from `from` on.
    #[inline(always)]
    pub fn part(self, from: usize, depth: usize) -> TileRows<'a> {
        TileRows { values: &self.values[from..], depth, ..self }
    }
}

/// y += x · w by sums of the rows of w, with as many sums as the registers hold.
#[inline(always)]
pub fn row_sums<S: Simd>(simd: S, x: TileRows, w: TileRows, y: &mut [f32]) {
    let mut done = 0;
    if S::REGISTER_COUNT >= 32 {
        done = sums::<S, 6, 4>(simd, x, w, y, done);
    }
    done = sums::<S, 6, 2>(simd, x, w, y, done);
    done = sums::<S, 6, 1>(simd, x, w, y, done);
    let count = w.depth;
    if done == count {
        return;
    }
    // The last columns do not fill a vector. F32, F16 and BF16 matrices can have any width.
    for (i, y) in y.chunks_exact_mut(count).enumerate() {
        for (k, x) in x.row(i).iter().enumerate() {
            y[done..].iter_mut().zip(&w.row(k)[done..]).for_each(|(y, w)| *y += x * w);
        }
    }
}

/// `y[i] += Σₖ x[i][k] · w[k]` for the columns from `from` on that fill N vectors, with M rows by
/// N vectors of the result in registers. Returns the first column that is left.
#[inline(always)]
fn sums<S: Simd, const M: usize, const N: usize>(
    simd: S,
    x: TileRows,
    w: TileRows,
    y: &mut [f32],
    from: usize,
) -> usize {
    let (n, count) = (x.count, w.depth);
    let span = N * S::F32_LANES;
    let whole = from + (count - from) / span * span;
    for column in (from..whole).step_by(span) {
        for i in (0..n).step_by(M) {
            let xs = x.block::<M>(i);
            let mut sums = [[simd.splat_f32s(0.0); N]; M];
            #[allow(clippy::needless_range_loop, reason = "k counts rows of w and columns of x")]
            for k in 0..w.count {
                let w = S::as_simd_f32s(&w.row(k)[column..column + span]).0;
                for i in 0..M {
                    let x = simd.splat_f32s(xs[i][k]);
                    for j in 0..N {
                        sums[i][j] = simd.mul_add_e_f32s(x, w[j], sums[i][j]);
                    }
                }
            }
            for (k, sums) in sums.iter().enumerate().take(n - i) {
                let y = &mut y[(i + k) * count + column..][..span];
                let y = S::as_mut_simd_f32s(y).0;
                y.iter_mut().zip(sums).for_each(|(y, sum)| *y = simd.add_f32s(*y, *sum));
            }
        }
    }
    whole
}
