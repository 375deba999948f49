//! The change from one version of the shared part to another. The first version comes from all
//! zeros, so that a whole version is a delta too.
//!
//! The differences of the numbers are small. Each is written so that small ones, positive or
//! negative, have leading zeros (zigzag); their four bytes are laid out in four planes, and
//! deflate (RFC 1951) compresses the result. A delta is exact. Its head holds the checksums of
//! the versions before and after:
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `HONETMD\0` |
//! | 4 | format, u32, little-endian |
//! | 32 | checksum of the version before, [`Core::sha256`] |
//! | 32 | checksum of the version after |
//! | rest | deflate of the planes, the highest byte first |

use super::core::Core;
use super::frame::Frame;
use anyhow::{Context, Result, ensure};
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use std::io::{Read, Write};

const MAGIC: &[u8; 8] = b"HONETMD\0";
const FORMAT: u32 = 1;
const HEAD_BYTES: usize = MAGIC.len() + 4 + 32 + 32;
const PLANES: usize = 4;

/// The delta that turns `before` into `after`.
pub fn encode(frame: &Frame, before: &Core, after: &Core) -> Result<Vec<u8>> {
    let count = frame.numbers();
    let mut planes = vec![0; count * PLANES];
    for (index, (before, after)) in before.numbers().iter().zip(after.numbers()).enumerate() {
        let difference = after.wrapping_sub(*before);
        let zigzag = (difference << 1 ^ difference >> 31) as u32;
        for (plane, byte) in zigzag.to_be_bytes().into_iter().enumerate() {
            planes[plane * count + index] = byte;
        }
    }
    let mut delta = Vec::new();
    delta.extend_from_slice(MAGIC);
    delta.extend_from_slice(&FORMAT.to_le_bytes());
    delta.extend_from_slice(&before.sha256(frame));
    delta.extend_from_slice(&after.sha256(frame));
    let mut encoder = DeflateEncoder::new(delta, Compression::default());
    encoder.write_all(&planes)?;
    Ok(encoder.finish()?)
}

/// Applies a delta to `before`; the result is version `version`.
///
/// # Errors
/// The delta is damaged, or was made for another version or another base model.
pub fn decode(frame: &Frame, before: &Core, delta: &[u8], version: u64) -> Result<Core> {
    ensure!(delta.len() > HEAD_BYTES && delta.starts_with(MAGIC), "it is not a team's delta");
    let (head, body) = delta.split_at(HEAD_BYTES);
    let format = u32::from_le_bytes(head[8..12].try_into()?);
    ensure!(format == FORMAT, "it has format {format}, this Hone reads {FORMAT}");
    ensure!(head[12..44] == before.sha256(frame), "it was made for another version or model");
    let count = frame.numbers();
    let mut planes = Vec::new();
    // One byte more than there may be, so that too many are noticed.
    let mut decoder = DeflateDecoder::new(body).take((count * PLANES) as u64 + 1);
    decoder.read_to_end(&mut planes).context("it is damaged")?;
    ensure!(planes.len() == count * PLANES, "it is damaged");
    let after = before.numbers().iter().enumerate().map(|(index, before)| {
        let byte = |plane: usize| planes[plane * count + index];
        let zigzag = u32::from_be_bytes(std::array::from_fn(byte));
        before.wrapping_add((zigzag >> 1) as i32 ^ -((zigzag & 1) as i32))
    });
    let after = Core::new(frame, version, after.collect())?;
    ensure!(head[44..] == after.sha256(frame), "it is damaged");
    Ok(after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team::frame::tests::small;

    fn core(frame: &Frame, version: u64, number: impl Fn(i32) -> i32) -> Core {
        let numbers = (0..frame.numbers() as i32).map(number).collect();
        Core::new(frame, version, numbers).unwrap()
    }

    #[test]
    fn a_chain_and_the_whole_give_the_same_version() {
        let frame = small();
        let versions = [
            Core::zero(&frame),
            core(&frame, 1, |i| i % 7 - 3),
            core(&frame, 2, |i| i % 7 - 3 + i % 2),
            core(&frame, 3, |i| if i == 5 { -4_000_000 } else { 4_000_000 }),
        ];
        let mut held = versions[0].clone();
        for pair in versions.windows(2) {
            let delta = encode(&frame, &pair[0], &pair[1]).unwrap();
            held = decode(&frame, &held, &delta, pair[1].version).unwrap();
            assert_eq!(held, pair[1]);
        }
        let whole = encode(&frame, &versions[0], &versions[3]).unwrap();
        assert_eq!(decode(&frame, &versions[0], &whole, 3).unwrap(), held);
        let small = encode(&frame, &versions[1], &versions[2]).unwrap();
        assert!(small.len() < 4 * frame.numbers() / 10, "{} bytes", small.len());
    }

    #[test]
    fn a_damaged_delta_and_that_of_another_version_or_model_are_refused() {
        let frame = small();
        let (before, after) = (core(&frame, 1, |i| i % 9), core(&frame, 2, |i| i % 9 + i % 4));
        let delta = encode(&frame, &before, &after).unwrap();
        assert!(decode(&frame, &after, &delta, 2).is_err());
        let other = Frame { base_sha256: "other".into(), ..frame.clone() };
        let error = decode(&other, &before, &delta, 2).unwrap_err().to_string();
        assert!(error.contains("another version or model"), "{error}");
        for at in [0, 8, 20, 60, 80, delta.len() - 1] {
            let mut damaged = delta.clone();
            damaged[at] ^= 1;
            assert!(decode(&frame, &before, &damaged, 2).is_err(), "a bit flipped at {at}");
        }
        for length in [0, 10, HEAD_BYTES, delta.len() - 3] {
            assert!(decode(&frame, &before, &delta[..length], 2).is_err(), "{length} bytes");
        }
    }
}
