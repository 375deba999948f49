//! Deltas: what turns one version of an adapter into the next, for sending it elsewhere.
//! A delta is exact, and smaller than the adapter.
//!
//! An update changes most weights by a little: sign, exponent and the high bits of the
//! mantissa stay. The bits of both versions are XORed, the four bytes of every float are
//! laid out in four planes (of which the first ones are then mostly zero), and deflate
//! (RFC 1951) compresses the result. The head holds the format and the checksums of the
//! values before and after, so that a delta is never applied to another adapter.

use crate::adapter::LoraAdapter;
use anyhow::{Context, Result, ensure};
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use sha2::{Digest, Sha256};
use std::io::{Read, Write};

const MAGIC: &[u8; 8] = b"HONEDLT\0";
const FORMAT: u32 = 1;
const HASH_BYTES: usize = 32;
const PLANES: usize = 4;

/// The delta that turns `previous` into `next`.
///
/// # Errors
/// The adapters do not have the same maps and the same rank.
pub fn encode(previous: &LoraAdapter, next: &LoraAdapter) -> Result<Vec<u8>> {
    ensure!(shape(previous) == shape(next), "the adapters do not have the same maps and rank");
    let (before, after) = (bits(previous), bits(next));
    let count = before.len();
    let mut planes = vec![0; count * PLANES];
    for (index, (before, after)) in before.iter().zip(&after).enumerate() {
        for (plane, byte) in (before ^ after).to_be_bytes().into_iter().enumerate() {
            planes[plane * count + index] = byte;
        }
    }
    let mut delta = Vec::new();
    delta.extend_from_slice(MAGIC);
    delta.extend_from_slice(&FORMAT.to_le_bytes());
    delta.extend_from_slice(&checksum(&before));
    delta.extend_from_slice(&checksum(&after));
    let mut encoder = DeflateEncoder::new(delta, Compression::default());
    encoder.write_all(&planes)?;
    Ok(encoder.finish()?)
}

/// Applies a delta to `previous`, and returns the next version.
///
/// # Errors
/// The delta is damaged, or was made for another adapter.
pub fn decode(previous: &LoraAdapter, delta: &[u8]) -> Result<LoraAdapter> {
    let head = MAGIC.len() + size_of::<u32>() + 2 * HASH_BYTES;
    ensure!(delta.len() > head && delta.starts_with(MAGIC), "it is not an adapter delta");
    let (head, body) = delta.split_at(head);
    let format = u32::from_le_bytes(head[8..12].try_into()?);
    ensure!(format == FORMAT, "it has format {format}, this Hone reads {FORMAT}");
    let before = bits(previous);
    ensure!(checksum(&before) == head[12..44], "it was made for another adapter");

    let before_count = before.len();
    let mut planes = Vec::new();
    // One byte more than there may be, so that too many are noticed.
    let mut decoder = DeflateDecoder::new(body).take((before.len() * PLANES) as u64 + 1);
    decoder.read_to_end(&mut planes).context("it is damaged")?;
    ensure!(planes.len() == before.len() * PLANES, "it is damaged");
    let after: Vec<u32> = before
        .iter()
        .enumerate()
        .map(|(index, before)| {
            let byte = |plane: usize| planes[plane * before_count + index];
            before ^ u32::from_be_bytes(std::array::from_fn(byte))
        })
        .collect();
    ensure!(checksum(&after) == head[44..], "it is damaged");

    let mut next = previous.clone();
    let mut values = after.into_iter().map(f32::from_bits);
    for pair in &mut next.pairs {
        for value in pair.a.iter_mut().chain(&mut pair.b) {
            *value = values.next().context("it is damaged")?;
        }
    }
    Ok(next)
}

fn shape(adapter: &LoraAdapter) -> (usize, Vec<(&str, usize, usize)>) {
    let pairs = adapter.pairs.iter();
    (adapter.rank, pairs.map(|pair| (pair.name.as_str(), pair.rows_out, pair.rows_in)).collect())
}

fn bits(adapter: &LoraAdapter) -> Vec<u32> {
    let values = adapter.pairs.iter().flat_map(|pair| pair.a.iter().chain(&pair.b));
    values.map(|value| value.to_bits()).collect()
}

fn checksum(bits: &[u32]) -> [u8; HASH_BYTES] {
    let mut hash = Sha256::new();
    bits.iter().for_each(|bits| hash.update(bits.to_le_bytes()));
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::LoraPair;

    fn adapter(values: impl Fn(usize) -> f32) -> LoraAdapter {
        let pair = LoraPair {
            name: "blk.0.attn_q.weight".into(),
            rows_out: 300,
            rows_in: 200,
            a: (0..400).map(&values).collect(),
            b: (400..1000).map(&values).collect(),
        };
        LoraAdapter {
            architecture: "qwen2".into(),
            base_sha256: "base".into(),
            rank: 2,
            shared_rank: 0,
            alpha: 4.0,
            invocation: vec![],
            pairs: vec![pair],
        }
    }

    #[test]
    fn a_small_change_is_smaller_than_the_adapter_and_exact() {
        let before = adapter(|i| ((i * 7919 % 1009) as f32 - 500.0) / 3000.0);
        let after = adapter(|i| ((i * 7919 % 1009) as f32 - 500.0) / 3000.0 * 1.001);
        let delta = encode(&before, &after).unwrap();
        assert!(delta.len() < 4 * 1000 * 9 / 10, "{} bytes", delta.len());
        assert_eq!(decode(&before, &delta).unwrap(), after);
        let nothing = encode(&before, &before).unwrap();
        assert!(nothing.len() < 150, "{} bytes for no change", nothing.len());
    }

    #[test]
    fn another_adapters_delta_and_a_damaged_one_are_refused() {
        let (before, after) = (adapter(|i| i as f32), adapter(|i| i as f32 + 0.5));
        let delta = encode(&before, &after).unwrap();
        let refused = |delta: &[u8]| decode(&before, delta).unwrap_err().to_string();
        assert!(decode(&after, &delta).unwrap_err().to_string().contains("another adapter"));
        assert!(refused(b"HONEDLT").contains("not an adapter delta"));
        let mut newer = delta.clone();
        newer[8] += 1;
        assert!(refused(&newer).contains("format 2, this Hone reads 1"), "{}", refused(&newer));
        for at in [8, 20, 50, 80, delta.len() - 1] {
            let mut flipped = delta.clone();
            flipped[at] ^= 1;
            assert!(decode(&before, &flipped).is_err(), "a bit flipped at {at}");
        }
        assert!(decode(&before, &delta[..delta.len() - 20]).is_err());
        let mut other = after;
        other.rank = 1;
        assert!(encode(&before, &other).is_err());
    }
}
