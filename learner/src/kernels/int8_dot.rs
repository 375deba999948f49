//! Dot products of 8-bit integers with sums in registers: the innermost loop of
//! [`int8_matmul`](crate::kernels::int8_matmul).
//!
//! All variants give the same bits. A sum of integers is exact in any order, and the float
//! operations after it are the same in the same order: for each group of values,
//! sum · (scale · scale) is added with one rounding, and then −min · total. The result of a
//! prompt pass therefore does not depend on the vector unit of the CPU, but only on whether
//! it has one of these units at all.
//!
//! `unsafe` because pulp does not know the VNNI instructions: their functions may be called
//! only if the CPU has them, and their intrinsics load from and store to pointers. Each of
//! these happens in one place here, on arrays of exactly the loaded size.
#![allow(unsafe_code)]

/// The rows of x and the columns of the result that one call computes.
pub const ROWS: usize = 6;
pub const COLUMNS: usize = 32;

/// From this offset on the sum of two products of an integer of W and one of x may not fit
/// into 16 bits, in which AVX2 adds them.
#[cfg(target_arch = "x86_64")]
const WIDE_OFFSET: i32 = 128;

/// Some values of `COLUMNS` rows of W. Each of these rows gives a column of the result.
#[derive(Clone, Copy)]
pub struct Int8Panel<'a> {
    /// For every four values, the four integers of each column. The first is the lowest byte.
    pub quads: &'a [[u32; COLUMNS]],
    /// The scales of every group of values.
    pub scales: &'a [[f32; COLUMNS]],
    /// The negated mins of every group of values; empty if the format has none.
    pub mins: &'a [[f32; COLUMNS]],
    /// The number that was added to the integers.
    pub offset: i32,
}

/// The same values of `ROWS` rows of x, side by side.
#[derive(Clone, Copy)]
pub struct Int8Rows<'a> {
    pub quads: &'a [[u32; ROWS]],
    pub groups: &'a [[RowGroup; ROWS]],
}

/// The numbers of a group of values in a row of x.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RowGroup {
    pub scale: f32,
    /// −offset · (sum of the integers). The sum of products starts from it.
    pub start: i32,
    /// scale · (sum of the integers).
    pub total: f32,
}

/// The results: `y[i][j] += row i · column j`.
pub type ResultBlock = [[f32; COLUMNS]; ROWS];

/// The unit of the CPU that multiplies 8-bit integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Int8Unit {
    /// AVX-512 with VNNI.
    Vnni512,
    /// AVX2 with VNNI.
    Vnni256,
    Avx2,
    /// One product at a time. The others are tested against it.
    Portable,
}

impl Int8Unit {
    /// The fastest unit of this CPU. `None` if there is only [`Int8Unit::Portable`]: products
    /// of floats are then faster.
    pub fn fastest() -> Option<Int8Unit> {
        [Int8Unit::Vnni512, Int8Unit::Vnni256, Int8Unit::Avx2]
            .into_iter()
            .find(|unit| unit.is_available())
    }

    /// Returns true if this CPU has the unit.
    #[cfg(target_arch = "x86_64")]
    pub fn is_available(self) -> bool {
        let fma = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        match self {
            Int8Unit::Vnni512 => {
                is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni")
            }
            Int8Unit::Vnni256 => fma && is_x86_feature_detected!("avxvnni"),
            Int8Unit::Avx2 => fma,
            Int8Unit::Portable => true,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub fn is_available(self) -> bool {
        self == Int8Unit::Portable
    }

    /// y += the dot products, in groups of `4 · QUADS` values.
    ///
    /// # Panics
    /// The CPU does not have the unit, or rows and panel have different lengths.
    pub fn dots<const QUADS: usize>(self, panel: Int8Panel, rows: Int8Rows, y: &mut ResultBlock) {
        if panel.mins.is_empty() {
            self.run::<QUADS, false>(panel, rows, y);
        } else {
            self.run::<QUADS, true>(panel, rows, y);
        }
    }

    fn run<const QUADS: usize, const MINS: bool>(
        self,
        panel: Int8Panel,
        rows: Int8Rows,
        y: &mut ResultBlock,
    ) {
        let groups = panel.scales.len();
        let fits = panel.quads.len() == groups * QUADS
            && rows.quads.len() == groups * QUADS
            && rows.groups.len() == groups
            && panel.mins.len() == if MINS { groups } else { 0 };
        assert!(fits, "panel and rows have different lengths");
        #[cfg(target_arch = "x86_64")]
        if self != Int8Unit::Portable {
            assert!(self.is_available(), "the CPU has no {self:?}");
            // SAFETY: the CPU has the unit, and therefore the features of the functions.
            unsafe {
                match self {
                    Int8Unit::Vnni512 => x86::vnni512::<QUADS, MINS>(panel, rows, y),
                    Int8Unit::Vnni256 => x86::vnni256::<QUADS, MINS>(panel, rows, y),
                    _ if panel.offset < WIDE_OFFSET => x86::avx2::<QUADS, MINS>(panel, rows, y),
                    _ => x86::avx2_wide::<QUADS, MINS>(panel, rows, y),
                }
            }
            return;
        }
        portable::<QUADS, MINS>(panel, rows, y);
    }
}

fn portable<const QUADS: usize, const MINS: bool>(
    panel: Int8Panel,
    rows: Int8Rows,
    y: &mut ResultBlock,
) {
    for (i, y) in y.iter_mut().enumerate() {
        for (g, groups) in rows.groups.iter().enumerate() {
            let group = groups[i];
            let mut sums = [group.start; COLUMNS];
            for k in g * QUADS..(g + 1) * QUADS {
                let x = rows.quads[k][i].to_le_bytes();
                for (sum, w) in sums.iter_mut().zip(&panel.quads[k]) {
                    for (w, x) in w.to_le_bytes().into_iter().zip(x) {
                        *sum += i32::from(w) * i32::from(x as i8);
                    }
                }
            }
            for j in 0..COLUMNS {
                let scale = panel.scales[g][j] * group.scale;
                y[j] = (sums[j] as f32).mul_add(scale, y[j]);
                if MINS {
                    y[j] = panel.mins[g][j].mul_add(group.total, y[j]);
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{COLUMNS, Int8Panel, Int8Rows, ROWS, ResultBlock};
    use std::arch::x86_64::*;

    /// The loop over groups, for all variants. A part of the result stays in registers: `$m`
    /// rows by two vectors of `$lanes` columns.
    macro_rules! kernel {
        (
            $(#[$meta:meta])* $name:ident, $features:literal, $m:literal, $lanes:literal,
            $load:ident, $load_f32:ident, $store_f32:ident, $splat:ident, $splat_f32:ident,
            $to_f32:ident, $mul:ident, $fma:ident, $start:expr, $dot:expr
        ) => {
            $(#[$meta])*
            #[target_feature(enable = $features)]
            pub fn $name<const QUADS: usize, const MINS: bool>(
                panel: Int8Panel,
                rows: Int8Rows,
                y: &mut ResultBlock,
            ) {
                const { assert!(ROWS.is_multiple_of($m) && COLUMNS.is_multiple_of(2 * $lanes)) };
                fn part<T>(row: &[T; COLUMNS], at: usize) -> *const T {
                    row[at..at + $lanes].as_ptr()
                }
                for row in (0..ROWS).step_by($m) {
                    for at in (0..COLUMNS).step_by(2 * $lanes) {
                        let at = [at, at + $lanes];
                        let mut total = [[$splat_f32(0.0); 2]; $m];
                        for i in 0..$m {
                            for j in 0..2 {
                                // SAFETY: `part` checks that the row contains the vector.
                                total[i][j] = unsafe { $load_f32(part(&y[row + i], at[j])) };
                            }
                        }
                        let mut mins = panel.mins.iter();
                        let w = panel.quads.as_chunks::<QUADS>().0.iter().zip(panel.scales);
                        let x = rows.quads.as_chunks::<QUADS>().0.iter().zip(rows.groups);
                        for ((w, scales), (x, groups)) in w.zip(x) {
                            let mut sums = [[$splat(0); 2]; $m];
                            for i in 0..$m {
                                sums[i] = [$splat($start(groups[row + i].start)); 2];
                            }
                            for (w, x) in w.iter().zip(x) {
                                // SAFETY: as above.
                                let w = at.map(|at| unsafe { $load(part(w, at).cast()) });
                                for i in 0..$m {
                                    let x = $splat(x[row + i] as i32);
                                    for j in 0..2 {
                                        sums[i][j] = $dot(sums[i][j], w[j], x);
                                    }
                                }
                            }
                            for j in 0..2 {
                                // SAFETY: as above.
                                let scale = unsafe { $load_f32(part(scales, at[j])) };
                                for i in 0..$m {
                                    let scale = $mul(scale, $splat_f32(groups[row + i].scale));
                                    total[i][j] = $fma($to_f32(sums[i][j]), scale, total[i][j]);
                                }
                            }
                            if MINS && let Some(mins) = mins.next() {
                                for j in 0..2 {
                                    // SAFETY: as above.
                                    let min = unsafe { $load_f32(part(mins, at[j])) };
                                    for i in 0..$m {
                                        let sum = $splat_f32(groups[row + i].total);
                                        total[i][j] = $fma(min, sum, total[i][j]);
                                    }
                                }
                            }
                        }
                        for i in 0..$m {
                            for j in 0..2 {
                                let y = y[row + i][at[j]..at[j] + $lanes].as_mut_ptr();
                                // SAFETY: the slice has the length of a vector.
                                unsafe { $store_f32(y, total[i][j]) };
                            }
                        }
                    }
                }
            }
        };
    }

    /// Adds products of an unsigned and a signed byte, with sums of two of them in 16 bits.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn dot_avx2(sum: __m256i, w: __m256i, x: __m256i) -> __m256i {
        let pairs = _mm256_maddubs_epi16(w, x);
        _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
    }

    /// The same for integers up to 255. It computes (w − 128) · x as |w − 128| · ±x, so that
    /// the sum of two products fits into 16 bits.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn dot_avx2_wide(sum: __m256i, w: __m256i, x: __m256i) -> __m256i {
        let w = _mm256_xor_si256(w, _mm256_set1_epi8(-128));
        dot_avx2(sum, _mm256_abs_epi8(w), _mm256_sign_epi8(x, w))
    }

    kernel!(
        vnni512,
        "avx512f,avx512vnni",
        6,
        16,
        _mm512_loadu_si512,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_set1_epi32,
        _mm512_set1_ps,
        _mm512_cvtepi32_ps,
        _mm512_mul_ps,
        _mm512_fmadd_ps,
        |start| start,
        |s, w, x| _mm512_dpbusd_epi32(s, w, x)
    );
    kernel!(
        vnni256,
        "avx2,fma,avxvnni",
        3,
        8,
        _mm256_loadu_si256,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_set1_epi32,
        _mm256_set1_ps,
        _mm256_cvtepi32_ps,
        _mm256_mul_ps,
        _mm256_fmadd_ps,
        |start| start,
        |s, w, x| _mm256_dpbusd_avx_epi32(s, w, x)
    );
    kernel!(
        avx2,
        "avx2,fma",
        3,
        8,
        _mm256_loadu_si256,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_set1_epi32,
        _mm256_set1_ps,
        _mm256_cvtepi32_ps,
        _mm256_mul_ps,
        _mm256_fmadd_ps,
        |start| start,
        |s, w, x| dot_avx2(s, w, x)
    );
    kernel!(
        /// The products contain the offset already, so that the sums start from 0.
        avx2_wide, "avx2,fma", 3, 8, _mm256_loadu_si256, _mm256_loadu_ps,
        _mm256_storeu_ps, _mm256_set1_epi32, _mm256_set1_ps, _mm256_cvtepi32_ps,
        _mm256_mul_ps, _mm256_fmadd_ps, |_: i32| 0, |s, w, x| dot_avx2_wide(s, w, x)
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::for_each_int8_unit;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    fn every_unit_equals_the_portable_one<const QUADS: usize>(offset: i32, most: u8, mins: bool) {
        const GROUPS: usize = 5;
        let mut random = StdRng::seed_from_u64(QUADS as u64);
        let mut quad = |low: i32, high: i32| {
            // Extreme values are frequent, because they can make an accumulator overflow.
            let mut byte = || match random.random_range(0..3) {
                0 => low,
                1 => high,
                _ => random.random_range(low..=high),
            } as u8;
            u32::from_le_bytes([byte(), byte(), byte(), byte()])
        };
        let w: Vec<[u32; COLUMNS]> = (0..GROUPS * QUADS)
            .map(|_| std::array::from_fn(|_| quad(0, i32::from(most))))
            .collect();
        let x: Vec<[u32; ROWS]> =
            (0..GROUPS * QUADS).map(|_| std::array::from_fn(|_| quad(-127, 127))).collect();
        let mut random = StdRng::seed_from_u64(2);
        let mut float = || random.random_range(-1f32..1.0);
        let scales: Vec<[f32; COLUMNS]> =
            (0..GROUPS).map(|_| std::array::from_fn(|_| float())).collect();
        let minima: Vec<[f32; COLUMNS]> =
            (0..if mins { GROUPS } else { 0 }).map(|_| std::array::from_fn(|_| float())).collect();
        let groups: Vec<[RowGroup; ROWS]> = x
            .chunks(QUADS)
            .map(|quads| {
                std::array::from_fn(|i| {
                    let bytes = quads.iter().flat_map(|quads| quads[i].to_le_bytes());
                    let sum: i32 = bytes.map(|byte| i32::from(byte as i8)).sum();
                    RowGroup { scale: float(), start: -offset * sum, total: float() }
                })
            })
            .collect();
        let panel = Int8Panel { quads: &w, scales: &scales, mins: &minima, offset };
        let rows = Int8Rows { quads: &x, groups: &groups };
        let run = |unit: Int8Unit| {
            let mut y = [[0.5; COLUMNS]; ROWS];
            unit.dots::<QUADS>(panel, rows, &mut y);
            y.map(|row| row.map(f32::to_bits))
        };
        let expected = run(Int8Unit::Portable);
        for_each_int8_unit(|unit| assert_eq!(run(unit), expected, "{unit:?}"));
    }

    #[test]
    fn every_unit_gives_the_same_bits() {
        every_unit_equals_the_portable_one::<8>(128, 255, false);
        every_unit_equals_the_portable_one::<8>(16, 31, false);
        every_unit_equals_the_portable_one::<8>(0, 31, true);
        every_unit_equals_the_portable_one::<4>(32, 63, false);
    }
}
