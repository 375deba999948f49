//! The shared part's numbers: the square C of every map, as whole multiples of [`STEP`].
//!
//! A file of them is little-endian:
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `HONECOR\0` |
//! | 4 | format, u32 |
//! | 32 | SHA-256 of the frame |
//! | 8 | version, u64 |
//! | for each number | i32 |
//! | 32 | SHA-256 of all bytes before it |

use super::frame::{CORE_NUMBERS, Frame};
use crate::file;
use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};
use std::path::Path;

/// The value that one unit of a number stands for: 2⁻¹⁵.
pub const STEP: f32 = 1.0 / 32_768.0;

/// The largest number. Up to it, a multiple of [`STEP`] is exact as a 32-bit float.
pub const NUMBER_MAX: i32 = 1 << 22;

const MAGIC: &[u8; 8] = b"HONECOR\0";
const FORMAT: u32 = 1;
const HASH_BYTES: usize = 32;
const HEAD_BYTES: usize = MAGIC.len() + 4 + HASH_BYTES + 8;

/// One version of the shared part. Version 0 changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Core {
    pub version: u64,
    numbers: Vec<i32>,
}

impl Core {
    /// Version 0.
    pub fn zero(frame: &Frame) -> Core {
        Core { version: 0, numbers: vec![0; frame.numbers()] }
    }

    /// # Errors
    /// There are too many or too few numbers for the frame, or one is too large.
    pub fn new(frame: &Frame, version: u64, numbers: Vec<i32>) -> Result<Core> {
        ensure!(
            numbers.len() == frame.numbers(),
            "it has {} numbers, the model has room for {}",
            numbers.len(),
            frame.numbers()
        );
        let largest = numbers.iter().map(|number| number.unsigned_abs()).max().unwrap_or(0);
        ensure!(largest <= NUMBER_MAX as u32, "a number is {largest}, {NUMBER_MAX} is the limit");
        Ok(Core { version, numbers })
    }

    pub fn numbers(&self) -> &[i32] {
        &self.numbers
    }

    /// C of a map, row-major.
    pub fn values(&self, map: usize) -> Vec<f32> {
        let numbers = &self.numbers[map * CORE_NUMBERS..(map + 1) * CORE_NUMBERS];
        numbers.iter().map(|number| *number as f32 * STEP).collect()
    }

    /// The L2 norm of all values.
    pub fn norm(&self) -> f64 {
        let square = |number: &i32| (f64::from(*number) * f64::from(STEP)).powi(2);
        self.numbers.iter().map(square).sum::<f64>().sqrt()
    }

    /// SHA-256 over the frame and the numbers: what the version is known by.
    pub fn sha256(&self, frame: &Frame) -> [u8; HASH_BYTES] {
        let mut hash = Sha256::new();
        hash.update(frame.sha256());
        self.numbers.iter().for_each(|number| hash.update(number.to_le_bytes()));
        hash.finalize().into()
    }

    /// Writes the file whole or not at all.
    pub fn write(&self, frame: &Frame, path: &Path) -> Result<()> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + 4 * self.numbers.len() + HASH_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        bytes.extend_from_slice(&frame.sha256());
        bytes.extend_from_slice(&self.version.to_le_bytes());
        self.numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
        let hash = Sha256::digest(&bytes);
        bytes.extend_from_slice(&hash);
        file::write_atomic(path, &bytes)
            .with_context(|| format!("{}: cannot be written", path.display()))
    }

    /// # Errors
    /// The file is damaged, or belongs to another base model.
    pub fn read(frame: &Frame, path: &Path) -> Result<Core> {
        let bytes_max = HEAD_BYTES + 4 * frame.numbers() + HASH_BYTES;
        let bytes = file::read_plain(path, bytes_max as u64)
            .with_context(|| format!("{}: cannot be read", path.display()))?;
        Core::from_bytes(frame, &bytes).with_context(|| {
            format!("{}: not usable; remove it to receive the whole again", path.display())
        })
    }

    fn from_bytes(frame: &Frame, bytes: &[u8]) -> Result<Core> {
        let body = bytes.split_last_chunk::<HASH_BYTES>().filter(|(body, hash)| {
            body.len() >= HEAD_BYTES
                && body.starts_with(MAGIC)
                && Sha256::digest(body).as_slice() == hash.as_slice()
        });
        let (body, _) = body.context("it is damaged, or no shared part of a team's adapter")?;
        let (head, numbers) = body.split_at(HEAD_BYTES);
        let format = u32::from_le_bytes(head[8..12].try_into()?);
        ensure!(format == FORMAT, "it has format {format}, this Hone reads {FORMAT}");
        ensure!(head[12..44] == frame.sha256(), "it belongs to another base model");
        let version = u64::from_le_bytes(head[44..52].try_into()?);
        ensure!(numbers.len() == 4 * frame.numbers(), "it has another size than the base model");
        let numbers = numbers.as_chunks::<4>().0.iter().map(|bytes| i32::from_le_bytes(*bytes));
        Core::new(frame, version, numbers.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team::frame::tests::small;

    #[test]
    fn a_file_gives_the_same_numbers_and_a_damaged_one_is_refused() {
        let (frame, folder) = (small(), tempfile::tempdir().unwrap());
        let path = folder.path().join("core.bin");
        let numbers = (0..frame.numbers() as i32).map(|i| i * 37 % 1001 - 500).collect();
        let core = Core::new(&frame, 7, numbers).unwrap();
        core.write(&frame, &path).unwrap();
        assert_eq!(Core::read(&frame, &path).unwrap(), core);
        let bytes = std::fs::read(&path).unwrap();
        for at in [0, 9, 20, 45, 60, bytes.len() - 1] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(Core::from_bytes(&frame, &damaged).is_err(), "byte {at}");
        }
        for length in [0, 31, 40, bytes.len() - 4] {
            assert!(Core::from_bytes(&frame, &bytes[..length]).is_err(), "{length} bytes");
        }
        let other = Frame { base_sha256: "other".into(), ..frame };
        let error = format!("{:#}", Core::read(&other, &path).unwrap_err());
        assert!(error.contains("core.bin") && error.contains("another base model"), "{error}");
    }

    #[test]
    fn wrong_sizes_and_numbers_that_are_too_large_are_refused() {
        let frame = small();
        assert!(Core::new(&frame, 1, vec![0; frame.numbers() - 1]).is_err());
        let mut numbers = vec![0; frame.numbers()];
        numbers[3] = i32::MIN;
        assert!(Core::new(&frame, 1, numbers).is_err());
        assert_eq!((NUMBER_MAX as f32 * STEP) as f64, f64::from(NUMBER_MAX) / 32_768.0);
    }

    #[test]
    fn the_norm_is_that_of_the_values() {
        let frame = small();
        let mut numbers = vec![0; frame.numbers()];
        (numbers[0], numbers[300]) = (3 << 15, -4 << 15);
        let core = Core::new(&frame, 1, numbers).unwrap();
        assert_eq!(core.norm(), 5.0);
        assert_eq!(core.values(0)[0], 3.0);
        assert_eq!(core.values(1)[300 - CORE_NUMBERS], -4.0);
    }
}
