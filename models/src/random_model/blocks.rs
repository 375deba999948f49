//! Random blocks of the formats that q4_k_m uses (ggml-common.h). Integers are uniform over the
//! whole range of the format, and the scale gives the values the spread that was asked for.

use half::f16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// Every number is the spread.
    F32,
    /// Every number is random.
    RandomF32,
    Q5_0,
    Q8_0,
    Q4K,
    Q6K,
}

/// The scale of every group of a K-quant block. Any other would do as well.
const GROUP_SCALE: u8 = 32;

impl Format {
    /// Returns what q4_k_m gives a matrix, or one that gets more bits. Rows that are no whole
    /// number of super-blocks get the nearest format with small blocks.
    pub fn of_matrix(width: usize, wide: bool) -> Format {
        match (width.is_multiple_of(Format::Q4K.values()), wide) {
            (true, false) => Format::Q4K,
            (true, true) => Format::Q6K,
            (false, false) => Format::Q5_0,
            (false, true) => Format::Q8_0,
        }
    }

    pub fn ggml_type(self) -> u32 {
        match self {
            Format::F32 | Format::RandomF32 => 0,
            Format::Q5_0 => 6,
            Format::Q8_0 => 8,
            Format::Q4K => 12,
            Format::Q6K => 14,
        }
    }

    /// The values of a block.
    pub fn values(self) -> usize {
        match self {
            Format::F32 | Format::RandomF32 => 1,
            Format::Q5_0 | Format::Q8_0 => 32,
            Format::Q4K | Format::Q6K => 256,
        }
    }

    /// The bytes of a block.
    pub fn bytes(self) -> usize {
        match self {
            Format::F32 | Format::RandomF32 => 4,
            Format::Q5_0 => 22,
            Format::Q8_0 => 34,
            Format::Q4K => 144,
            Format::Q6K => 210,
        }
    }

    /// Appends a block whose values have this standard deviation and the mean 0. A block of f32 is
    /// `spread` itself.
    pub fn put(self, spread: f32, random: &mut Random, bytes: &mut Vec<u8>) {
        // The standard deviation of an integer that is uniform over `count` numbers.
        let deviation = |count: f32| ((count * count - 1.0) / 12.0).sqrt();
        let number = |value: f32| f16::from_f32(value).to_le_bytes();
        match self {
            Format::F32 => bytes.extend(spread.to_le_bytes()),
            Format::RandomF32 => {
                bytes.extend((3f32.sqrt() * spread * random.number()).to_le_bytes());
            }
            Format::Q5_0 => {
                bytes.extend(number(spread / deviation(32.0)));
                random.fill(4 + 16, bytes);
            }
            Format::Q8_0 => {
                bytes.extend(number(spread / deviation(256.0)));
                random.fill(32, bytes);
            }
            Format::Q4K => {
                // value = d · scale · q − dmin · min, with q in 0..16 and its mean at 7.5.
                let d = spread / deviation(16.0) / f32::from(GROUP_SCALE);
                bytes.extend(number(d));
                bytes.extend(number(7.5 * d));
                // Eight scales and eight mins of six bits: the upper two bits of the last four
                // of each lie above the first four.
                let first = GROUP_SCALE | (GROUP_SCALE >> 4) << 6;
                bytes.extend([first; 8]);
                bytes.extend([(GROUP_SCALE & 15) | (GROUP_SCALE & 15) << 4; 4]);
                random.fill(128, bytes);
            }
            Format::Q6K => {
                random.fill(128 + 64, bytes);
                bytes.extend([GROUP_SCALE; 16]);
                bytes.extend(number(spread / deviation(64.0) / f32::from(GROUP_SCALE)));
            }
        }
    }
}

/// SplitMix64: fast, and good enough for weights that mean nothing.
pub(super) struct Random(u64);

impl Random {
    /// Streams of one seed do not depend on each other.
    pub fn new(seed: u64, stream: u64) -> Random {
        let mut random = Random(seed);
        Random(random.next() ^ stream.wrapping_mul(0xd134_2543_de82_ef95))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in [-1, 1).
    pub fn number(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    /// Appends random bytes.
    fn fill(&mut self, count: usize, bytes: &mut Vec<u8>) {
        let end = bytes.len() + count;
        while bytes.len() < end {
            bytes.extend(self.next().to_le_bytes());
        }
        bytes.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_the_size_of_its_format() {
        for format in
            [Format::F32, Format::RandomF32, Format::Q5_0, Format::Q8_0, Format::Q4K, Format::Q6K]
        {
            let mut bytes = vec![];
            format.put(0.5, &mut Random::new(1, 1), &mut bytes);
            assert_eq!(bytes.len(), format.bytes(), "{format:?}");
        }
    }
}
