//! The fixed matrices A and B of the shared part. They depend on the base model alone.
//!
//! Every entry of A is +1/√in or −1/√in, and every entry of B +1/√out or −1/√out. Rows of A and
//! columns of B have length 1 and are nearly orthogonal to each other. The signs are the bits of
//! SHA-256 in counter mode over a public text, so every machine gets the same bytes.

use crate::architecture;
use crate::gguf::Gguf;
use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

/// Rows of A and columns of B, and so rows and columns of C.
pub const RANK: usize = 16;

/// The numbers of one C.
pub const CORE_NUMBERS: usize = RANK * RANK;

/// The public seed. Another seed gives other matrices, so it goes with the version of the form.
const SEED: &str = "hone team frame 1";

/// The most maps of a model. One of 126 layers with seven maps has 882.
const MAPS_MAX: usize = 8_192;

/// The maps that have a C, and the shapes of their A and B.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// SHA-256 of the base GGUF, lower-case hex.
    pub base_sha256: String,
    /// The base's architecture, such as `qwen2`.
    pub architecture: String,
    /// By layer, and within a layer in the order of [`architecture::Architecture::maps`].
    pub maps: Vec<FrameMap>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameMap {
    /// The base tensor, such as `blk.0.attn_q.weight`.
    pub name: String,
    pub rows_out: usize,
    pub rows_in: usize,
}

impl Frame {
    /// The frame of a base model.
    ///
    /// # Errors
    /// Hone does not learn on models of this architecture, or the file lacks a map.
    pub fn of(base: &Gguf, base_sha256: &str) -> Result<Frame> {
        let name = base.architecture().unwrap_or_default();
        let known = architecture::of(name).filter(|known| known.learns).with_context(|| {
            format!("a team cannot share an adapter for a model of architecture {name}")
        })?;
        let key = format!("{name}.block_count");
        let layers = base.u32(&key).with_context(|| format!("the base has no {key}"))? as usize;
        ensure!(layers.saturating_mul(known.maps.len()) <= MAPS_MAX, "the base has {key} {layers}");
        let mut maps = Vec::new();
        for layer in 0..layers {
            for (map, _) in known.maps {
                let name = format!("blk.{layer}.{map}.weight");
                let tensor = base.tensor(&name).map(|tensor| tensor.dims.as_slice());
                let Some(&[rows_in, rows_out]) = tensor else {
                    anyhow::bail!("the base has no matrix {name}")
                };
                let (rows_in, rows_out) = (rows_in as usize, rows_out as usize);
                maps.push(FrameMap { name, rows_out, rows_in });
            }
        }
        let (base_sha256, architecture) = (base_sha256.to_owned(), name.to_owned());
        Ok(Frame { base_sha256, architecture, maps })
    }

    /// Returns how many numbers all C have together.
    pub fn numbers(&self) -> usize {
        self.maps.len() * CORE_NUMBERS
    }

    /// SHA-256 of all that the frame depends on. Two members can share if theirs are equal.
    pub fn sha256(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(format!("{SEED}\n{RANK}\n{}\n", self.base_sha256));
        for map in &self.maps {
            hash.update(format!("{} {} {}\n", map.name, map.rows_out, map.rows_in));
        }
        hash.finalize().into()
    }
}

impl FrameMap {
    /// A, `RANK` × in, row-major.
    pub fn a(&self) -> Vec<f32> {
        self.signs("a", self.rows_in)
    }

    /// B, out × `RANK`, row-major.
    pub fn b(&self) -> Vec<f32> {
        self.signs("b", self.rows_out)
    }

    fn signs(&self, part: &str, length: usize) -> Vec<f32> {
        let entry = 1.0 / (length as f32).sqrt();
        let count = length * RANK;
        let mut signs = Vec::with_capacity(count);
        for block in 0..count.div_ceil(256) {
            let digest = Sha256::digest(format!("{SEED}\n{}\n{part}\n{block}", self.name));
            let bits = digest.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1));
            let left = count - signs.len();
            signs.extend(bits.take(left).map(|bit| if bit == 1 { entry } else { -entry }));
        }
        signs
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A frame of two maps.
    pub(crate) fn small() -> Frame {
        let map = |name: &str, rows_out, rows_in| FrameMap { name: name.into(), rows_out, rows_in };
        Frame {
            base_sha256: "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32".into(),
            architecture: "qwen2".into(),
            maps: vec![map("blk.0.attn_q.weight", 24, 40), map("blk.0.ffn_down.weight", 40, 64)],
        }
    }

    #[test]
    fn the_matrices_are_the_same_on_every_machine() {
        let frame = small();
        let (a, b) = (frame.maps[0].a(), frame.maps[0].b());
        assert_eq!((a.len(), b.len()), (RANK * 40, 24 * RANK));
        let signs: String = a[..16].iter().map(|v| if *v > 0.0 { '+' } else { '-' }).collect();
        // SHA-256 of "hone team frame 1\nblk.0.attn_q.weight\na\n0", low bits first.
        let digest = Sha256::digest("hone team frame 1\nblk.0.attn_q.weight\na\n0");
        let bit = |index: usize| if digest[index / 8] >> (index % 8) & 1 == 1 { '+' } else { '-' };
        assert_eq!(signs, (0..16).map(bit).collect::<String>());
        assert!(a.iter().all(|v| v.abs() == 1.0 / 40f32.sqrt()));
        assert!(b.iter().all(|v| v.abs() == 1.0 / 24f32.sqrt()));
        assert_ne!(
            a[..24 * RANK].iter().map(|v| *v > 0.0).collect::<Vec<_>>(),
            b.iter().map(|v| *v > 0.0).collect::<Vec<_>>()
        );
    }

    #[test]
    fn another_base_has_another_frame() {
        let frame = small();
        let other = Frame { base_sha256: "other".into(), ..frame.clone() };
        assert_ne!(frame.sha256(), other.sha256());
        assert_eq!(frame.numbers(), 2 * CORE_NUMBERS);
        assert_eq!(frame.sha256(), small().sha256());
    }
}
