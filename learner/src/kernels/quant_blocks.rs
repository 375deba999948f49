//! The quantised formats of ggml (ggml-common.h and ggml-quants.c of llama.cpp): they turn the
//! bytes of whole blocks into values.
//!
//! The loops are simple, so that they vectorise for the CPU that the caller has chosen with
//! `pulp::Arch`. For this every function is inlined into the caller.

use half::bf16;

/// The number of values in a super-block of a K-quant.
const SUPER_BLOCK_VALUES: usize = 256;

/// A number format of a GGUF tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    F32,
    F16,
    Bf16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q2K,
    Q3K,
    Q4K,
    Q5K,
    Q6K,
}

impl Format {
    /// The format with this type number of ggml (ggml.h).
    pub fn from_ggml(number: u32) -> Option<Format> {
        Some(match number {
            0 => Format::F32,
            1 => Format::F16,
            2 => Format::Q4_0,
            3 => Format::Q4_1,
            6 => Format::Q5_0,
            7 => Format::Q5_1,
            8 => Format::Q8_0,
            10 => Format::Q2K,
            11 => Format::Q3K,
            12 => Format::Q4K,
            13 => Format::Q5K,
            14 => Format::Q6K,
            30 => Format::Bf16,
            _ => return None,
        })
    }

    /// The number of values in a block.
    pub fn block_values(self) -> usize {
        match self {
            Format::F32 | Format::F16 | Format::Bf16 => 1,
            Format::Q4_0 | Format::Q4_1 | Format::Q5_0 | Format::Q5_1 | Format::Q8_0 => 32,
            _ => SUPER_BLOCK_VALUES,
        }
    }

    /// The number of bytes in a block.
    pub fn block_bytes(self) -> usize {
        match self {
            Format::F32 => 4,
            Format::F16 | Format::Bf16 => 2,
            Format::Q4_0 => 18,
            Format::Q4_1 => 20,
            Format::Q5_0 => 22,
            Format::Q5_1 => 24,
            Format::Q8_0 => 34,
            Format::Q2K => 84,
            Format::Q3K => 110,
            Format::Q4K => 144,
            Format::Q5K => 176,
            Format::Q6K => 210,
        }
    }

    /// The number of values that share a scale.
    pub fn group_values(self) -> usize {
        match self {
            Format::F32 | Format::F16 | Format::Bf16 => 1,
            Format::Q2K | Format::Q3K | Format::Q6K => 16,
            _ => 32,
        }
    }

    /// The number that is added to an integer of the format, so that none is negative.
    pub fn offset(self) -> i32 {
        match self {
            Format::Q4_0 => 8,
            Format::Q5_0 => 16,
            Format::Q8_0 => 128,
            Format::Q3K => 4,
            Format::Q6K => 32,
            _ => 0,
        }
    }

    /// Returns true if a group has a min next to its scale.
    pub fn has_mins(self) -> bool {
        matches!(self, Format::Q4_1 | Format::Q5_1 | Format::Q2K | Format::Q4K | Format::Q5K)
    }

    /// Fills `y` with the values of the blocks in `bytes`.
    #[inline(always)]
    pub fn dequantise(self, bytes: &[u8], y: &mut [f32]) {
        match self {
            Format::F32 => each(bytes, y, |_, b: &[u8; 4], y: &mut [f32; 1]| {
                y[0] = f32::from_le_bytes(*b);
            }),
            Format::F16 => each(bytes, y, |_, b: &[u8; 2], y: &mut [f32; 1]| y[0] = half_at(b, 0)),
            Format::Bf16 => each(bytes, y, |_, b: &[u8; 2], y: &mut [f32; 1]| {
                y[0] = bf16::from_le_bytes(*b).to_f32();
            }),
            _ => self.read(bytes, y, |q, scale, min| q as f32 * scale - min, |_, _, _| {}),
        }
    }

    /// The integers of the values, with the offset added, and the scale and the min of every
    /// group: value = scale · (integer − offset) − min.
    #[inline(always)]
    pub fn integers(self, bytes: &[u8], q: &mut [u8], scales: &mut [f32], mins: &mut [f32]) {
        let offset = self.offset();
        self.read(
            bytes,
            q,
            |q, _, _| (q + offset) as u8,
            |group, scale, min| {
                scales[group] = scale;
                mins[group] = min;
            },
        );
    }

    /// Reads blocks of integers. Each value becomes `value(integer, scale, min)`, and for each
    /// group `group(index, scale, min)` is called.
    #[inline(always)]
    fn read<Y>(
        self,
        bytes: &[u8],
        y: &mut [Y],
        value: impl Fn(i32, f32, f32) -> Y + Copy,
        mut group: impl FnMut(usize, f32, f32),
    ) {
        let groups = self.block_values() / self.group_values();
        macro_rules! blocks_of {
            ($format:ident) => {
                each(bytes, y, |index, bytes, y| {
                    let group = |g, scale, min| group(index * groups + g, scale, min);
                    $format(bytes, y, value, group);
                })
            };
        }
        match self {
            Format::F32 | Format::F16 | Format::Bf16 => {}
            Format::Q4_0 => blocks_of!(q4_0),
            Format::Q4_1 => blocks_of!(q4_1),
            Format::Q5_0 => blocks_of!(q5_0),
            Format::Q5_1 => blocks_of!(q5_1),
            Format::Q8_0 => blocks_of!(q8_0),
            Format::Q2K => blocks_of!(q2k),
            Format::Q3K => blocks_of!(q3k),
            Format::Q4K => blocks_of!(q4k),
            Format::Q5K => blocks_of!(q5k),
            Format::Q6K => blocks_of!(q6k),
        }
    }
}

/// Calls `block` for each block, with its index, its bytes and its values.
#[inline(always)]
fn each<const BYTES: usize, const VALUES: usize, Y>(
    bytes: &[u8],
    y: &mut [Y],
    mut block: impl FnMut(usize, &[u8; BYTES], &mut [Y; VALUES]),
) {
    let (bytes, y) = (bytes.as_chunks().0, y.as_chunks_mut().0);
    for (index, (bytes, y)) in bytes.iter().zip(y).enumerate() {
        block(index, bytes, y);
    }
}

/// Reads an f16 value without a branch, so that a loop over it vectorises.
#[inline(always)]
fn half_at(bytes: &[u8], at: usize) -> f32 {
    /// 2¹¹², by which the exponents of the two formats differ.
    const REBIAS: f32 = f32::from_bits(0x7780_0000);
    /// The exponent of infinity and NaN.
    const INFINITY_BITS: u32 = 0x7f80_0000;
    let bits = u32::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let (sign, rest) = ((bits & 0x8000) << 16, bits & 0x7fff);
    let finite = (f32::from_bits(rest << 13) * REBIAS).to_bits();
    let not_finite = rest << 13 | INFINITY_BITS;
    f32::from_bits(sign | if rest < 0x7c00 { finite } else { not_finite })
}

/// Reads 32 four-bit values. The low halves of the bytes are the first sixteen.
#[inline(always)]
fn nibbles<Y>(packed: &[u8], y: &mut [Y; 32], value: impl Fn(i32) -> Y) {
    for j in 0..16 {
        y[j] = value(i32::from(packed[j] & 15));
        y[j + 16] = value(i32::from(packed[j] >> 4));
    }
}

/// The same with five-bit values, whose fifth bits are in one word.
#[inline(always)]
fn five_bits<Y>(high: &[u8], packed: &[u8], y: &mut [Y; 32], value: impl Fn(i32) -> Y) {
    let high = u32::from_le_bytes([high[0], high[1], high[2], high[3]]);
    for j in 0..16 {
        let fifth = |bit: usize| (high >> bit & 1) << 4;
        y[j] = value((u32::from(packed[j] & 15) | fifth(j)) as i32);
        y[j + 16] = value((u32::from(packed[j] >> 4) | fifth(j + 16)) as i32);
    }
}

#[inline(always)]
fn q4_0<Y>(
    b: &[u8; 18],
    y: &mut [Y; 32],
    value: impl Fn(i32, f32, f32) -> Y,
    mut group: impl FnMut(usize, f32, f32),
) {
    let d = half_at(b, 0);
    group(0, d, 0.0);
    nibbles(&b[2..], y, |q| value(q - 8, d, 0.0));
}

#[inline(always)]
fn q4_1<Y>(
    b: &[u8; 20],
    y: &mut [Y; 32],
    value: impl Fn(i32, f32, f32) -> Y,
    mut group: impl FnMut(usize, f32, f32),
) {
    let (d, min) = (half_at(b, 0), -half_at(b, 2));
    group(0, d, min);
    nibbles(&b[4..], y, |q| value(q, d, min));
}

#[inline(always)]
fn q5_0<Y>(
    b: &[u8; 22],
    y: &mut [Y; 32],
    value: impl Fn(i32, f32, f32) -> Y,
    mut group: impl FnMut(usize, f32, f32),
) {
    let d = half_at(b, 0);
    group(0, d, 0.0);
    five_bits(&b[2..6], &b[6..], y, |q| value(q - 16, d, 0.0));
}

#[inline(always)]
fn q5_1<Y>(
    b: &[u8; 24],
    y: &mut [Y; 32],
    value: impl Fn(i32, f32, f32) -> Y,
    mut group: impl FnMut(usize, f32, f32),
) {
    let (d, min) = (half_at(b, 0), -half_at(b, 2));
    group(0, d, min);
    five_bits(&b[4..8], &b[8..], y, |q| value(q, d, min));
}

#[inline(always)]
fn q8_0<Y>(
    b: &[u8; 34],
    y: &mut [Y; 32],
    value: impl Fn(i32, f32, f32) -> Y,
    mut group: impl FnMut(usize, f32, f32),
) {
    let d = half_at(b, 0);
    group(0, d, 0.0);
    for i in 0..32 {
        y[i] = value(i32::from(b[2 + i] as i8), d, 0.0);
    }
}

/// Sixteen sub-blocks of 16. The block has: scales u4 | mins u4, 2-bit values, d, dmin.
#[inline(always)]
fn q2k<Y>(
    b: &[u8; 84],
    y: &mut [Y; SUPER_BLOCK_VALUES],
    value: impl Fn(i32, f32, f32) -> Y,
    mut group: impl FnMut(usize, f32, f32),
) {
    let (scales, values) = (&b[..16], &b[16..80]);
    let (d, dmin) = (half_at(b, 80), half_at(b, 82));
    for (index, y) in y.chunks_exact_mut(16).enumerate() {
        let (half, shift, side) = (index / 8, index % 8 / 2 * 2, index % 2);
        let scale = d * f32::from(scales[index] & 15);
        let min = dmin * f32::from(scales[index] >> 4);
        group(index, scale, min);
        for (y, q) in y.iter_mut().zip(&values[half * 32 + side * 16..]) {
            *y = value(i32::from(q >> shift & 3), scale, min);
        }
    }
}

/// Sixteen sub-blocks of 16. The block has: third bits, 2-bit values, 6-bit scales, d.
#[inline(always)]
fn q3k<Y>(
    b: &[u8; 110],
    y: &mut [Y; SUPER_BLOCK_VALUES],
    value: impl Fn(i32, f32, f32) -> Y,
    mut group: impl FnMut(usize, f32, f32),
) {
    let (high, values, scales, d) = (&b[..32], &b[32..96], &b[96..108], half_at(b, 108));
    for (index, y) in y.chunks_exact_mut(16).enumerate() {
        let (half, shift, side) = (index / 8, index % 8 / 2 * 2, index % 2);
        let low = if index < 8 { scales[index] & 15 } else { scales[index - 8] >> 4 };
        let top = scales[8 + index % 4] >> (2 * (index / 4)) & 3;
        let scale = d * (i32::from(low | top << 4) - 32) as f32;
        group(index, scale, 0.0);
        let bit = half * 4 + shift / 2;
        let at = side * 16;
        for ((y, q), high) in y.iter_mut().zip(&values[half * 32 + at..]).zip(&high[at..]) {
            let third = i32::from(high >> bit & 1) * 4;
            *y = value(i32::from(q >> shift & 3) + third - 4, scale, 0.0);
        }
    }
}

/// The 6-bit scale and min of sub-block `j` of 8, which are packed into twelve bytes.
#[inline(always)]
fn scale_and_min(j: usize, packed: &[u8]) -> (u8, u8) {
    if j < 4 {
        (packed[j] & 63, packed[j + 4] & 63)
    } else {
        let low = packed[j + 4];
        (low & 15 | packed[j - 4] >> 6 << 4, low >> 4 | packed[j] >> 6 << 4)
    }
}

/// Eight sub-blocks of 32. The block has: d, dmin, scales, 4-bit values.
#[inline(always)]
fn q4k<Y>(
    b: &[u8; 144],
    y: &mut [Y; SUPER_BLOCK_VALUES],
    value: impl Fn(i32, f32, f32) -> Y,
    mut group: impl FnMut(usize, f32, f32),
) {
    let (d, dmin) = (half_at(b, 0), half_at(b, 2));
    let (scales, values) = (&b[4..16], &b[16..]);
    for (index, y) in y.chunks_exact_mut(32).enumerate() {
        let (scale, min) = scale_and_min(index, scales);
        let (scale, min) = (d * f32::from(scale), dmin * f32::from(min));
        group(index, scale, min);
        let shift = index % 2 * 4;
        for (y, q) in y.iter_mut().zip(&values[index / 2 * 32..]) {
            *y = value(i32::from(q >> shift & 15), scale, min);
        }
    }
}

/// Like Q4_K, but the values have a fifth bit.
#[inline(always)]
fn q5k<Y>(
    b: &[u8; 176],
    y: &mut [Y; SUPER_BLOCK_VALUES],
    value: impl Fn(i32, f32, f32) -> Y,
    mut group: impl FnMut(usize, f32, f32),
) {
    let (d, dmin) = (half_at(b, 0), half_at(b, 2));
    let (scales, high, values) = (&b[4..16], &b[16..48], &b[48..]);
    for (index, y) in y.chunks_exact_mut(32).enumerate() {
        let (scale, min) = scale_and_min(index, scales);
        let (scale, min) = (d * f32::from(scale), dmin * f32::from(min));
        group(index, scale, min);
        let shift = index % 2 * 4;
        for ((y, q), high) in y.iter_mut().zip(&values[index / 2 * 32..]).zip(high) {
            let q = (q >> shift & 15) | (high >> index & 1) << 4;
            *y = value(i32::from(q), scale, min);
        }
    }
}

/// Sixteen sub-blocks of 16. The block has: low four bits, high two bits, scales i8, d.
#[inline(always)]
fn q6k<Y>(
    b: &[u8; 210],
    y: &mut [Y; SUPER_BLOCK_VALUES],
    value: impl Fn(i32, f32, f32) -> Y,
    mut group: impl FnMut(usize, f32, f32),
) {
    let (low, high, scales, d) = (&b[..128], &b[128..192], &b[192..208], half_at(b, 208));
    let scale = |index: usize| d * f32::from(scales[index] as i8);
    for index in 0..16 {
        group(index, scale(index), 0.0);
    }
    for half in 0..2 {
        let (low, high) = (&low[half * 64..][..64], &high[half * 32..][..32]);
        let y = &mut y[half * 128..][..128];
        let scale = |index: usize| scale(half * 8 + index);
        let value = |q, index| value(q, scale(index), 0.0);
        six_bits::<0, 0, Y>(&low[..32], high, &mut y[..32], &value);
        six_bits::<0, 2, Y>(&low[32..], high, &mut y[32..64], |q, side| value(q, 2 + side));
        six_bits::<4, 4, Y>(&low[..32], high, &mut y[64..96], |q, side| value(q, 4 + side));
        six_bits::<4, 6, Y>(&low[32..], high, &mut y[96..], |q, side| value(q, 6 + side));
    }
}

/// Reads 32 six-bit values, whose two parts are at fixed bits of their bytes.
#[inline(always)]
fn six_bits<const LOW: u8, const HIGH: u8, Y>(
    low: &[u8],
    high: &[u8],
    y: &mut [Y],
    value: impl Fn(i32, usize) -> Y,
) {
    for side in 0..2 {
        for i in side * 16..side * 16 + 16 {
            let q = low[i] >> LOW & 15 | (high[i] >> HIGH & 3) << 4;
            y[i] = value(i32::from(q) - 32, side);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::Device;
    use candle_core::quantized::{GgmlDType, ggml_file};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    #[test]
    fn every_half_is_read_exactly() {
        for bits in 0..=u16::MAX {
            let exact = half::f16::from_bits(bits).to_f32();
            let ours = half_at(&bits.to_le_bytes(), 0);
            assert!(
                ours.to_bits() == exact.to_bits() || ours.is_nan() && exact.is_nan(),
                "{bits:x}"
            );
        }
    }

    /// The values that candle reads from the same bytes are the reference.
    #[test]
    fn every_format_reads_what_candle_reads() {
        let cases = [
            (0, GgmlDType::F32),
            (1, GgmlDType::F16),
            (2, GgmlDType::Q4_0),
            (3, GgmlDType::Q4_1),
            (6, GgmlDType::Q5_0),
            (7, GgmlDType::Q5_1),
            (8, GgmlDType::Q8_0),
            (10, GgmlDType::Q2K),
            (11, GgmlDType::Q3K),
            (12, GgmlDType::Q4K),
            (13, GgmlDType::Q5K),
            (14, GgmlDType::Q6K),
            (30, GgmlDType::BF16),
        ];
        let mut random = StdRng::seed_from_u64(1);
        for (number, dtype) in cases {
            let format = Format::from_ggml(number).unwrap();
            assert_eq!(format.block_values(), dtype.block_size(), "{format:?}");
            assert_eq!(format.block_bytes(), dtype.type_size(), "{format:?}");
            let blocks = 2 * SUPER_BLOCK_VALUES / format.block_values();
            let bytes: Vec<u8> =
                (0..blocks * format.block_bytes()).map(|_| random.random()).collect();
            let shape = vec![1, 2 * SUPER_BLOCK_VALUES];
            let reference =
                ggml_file::qtensor_from_ggml(dtype, &bytes, shape, &Device::Cpu).unwrap();
            let reference = reference.dequantize(&Device::Cpu).unwrap();
            let reference: Vec<f32> = reference.flatten_all().unwrap().to_vec1().unwrap();
            let mut ours = vec![0.0; 2 * SUPER_BLOCK_VALUES];
            format.dequantise(&bytes, &mut ours);
            for (ours, reference) in ours.iter().zip(&reference) {
                // Random bytes give some scales that are infinite or NaN.
                let same = ours == reference || ours.is_nan() && reference.is_nan();
                let close = (ours - reference).abs() <= 1e-6 * reference.abs();
                assert!(same || close, "{format:?}: {ours} for {reference}");
            }
        }
    }
}
