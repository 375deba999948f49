//! LoRA adapters in the GGUF form of llama.cpp (`convert_lora_to_gguf.py`).
//!
//! Each adapted map W becomes W + (alpha / rank)·B·A. Tensor `NAME.lora_a` holds A with
//! ggml dims [in, rank], `NAME.lora_b` holds B with [rank, out], both as 32-bit floats.
//! `adapter.alora.invocation_tokens` holds the tokens from which on the adapter acts,
//! `hone.base.sha256` the base that it was learned on, and `hone.team.rank` how many ranks a
//! team shares, if any.

use crate::file;
use crate::gguf::{GGML_F32, Gguf, GgufError, TensorInfo};
use crate::gguf_write::{Builder, Item};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Version of the keys that are Hone's own (`hone.*`).
const FORMAT: u32 = 1;

const SHARED_RANK_KEY: &str = "hone.team.rank";

#[derive(Debug, Clone, PartialEq)]
pub struct LoraAdapter {
    /// The base's architecture, such as `qwen2`.
    pub architecture: String,
    /// SHA-256 of the base GGUF, lower-case hex.
    pub base_sha256: String,
    pub rank: usize,
    /// The number of ranks, from the first on, that are the part that a team shares
    /// ([`crate::team`]). An update of the adapter leaves them as they are.
    pub shared_rank: usize,
    /// The update is scaled by `alpha / rank`.
    pub alpha: f32,
    /// The adapter acts from the last occurrence of these tokens on. If there are none, it
    /// acts everywhere.
    pub invocation: Vec<u32>,
    pub pairs: Vec<LoraPair>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LoraPair {
    /// The base tensor, such as `blk.0.attn_q.weight`.
    pub name: String,
    pub rows_out: usize,
    pub rows_in: usize,
    /// rank × in, row-major.
    pub a: Vec<f32>,
    /// out × rank, row-major.
    pub b: Vec<f32>,
}

#[derive(Debug, thiserror::Error)]
pub enum AdapterError {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error(transparent)]
    Gguf(#[from] GgufError),
    #[error(
        "adapter {} is not usable ({what}); remove it or roll back to another version",
        path.display()
    )]
    Unusable { path: PathBuf, what: String },
    #[error(
        "the adapter does not fit the model {}: {what}; serve the base it was learned on",
        base.display()
    )]
    OtherBase { base: PathBuf, what: String },
}

impl LoraAdapter {
    /// Writes the adapter whole or not at all. Equal adapters give equal bytes. Returns
    /// the file's SHA-256, lower-case hex.
    ///
    /// # Errors
    /// The shapes of the adapter disagree, or it holds NaN or infinity, which would break
    /// every completion that it serves.
    pub fn write(&self, path: &Path) -> Result<String, AdapterError> {
        self.check().map_err(|what| AdapterError::Unusable { path: path.to_owned(), what })?;
        let mut builder = Builder::default();
        builder.string("general.type", "adapter");
        builder.string("general.architecture", &self.architecture);
        builder.string("adapter.type", "lora");
        builder.f32("adapter.lora.alpha", self.alpha);
        if !self.invocation.is_empty() {
            let tokens: Vec<_> = self.invocation.iter().copied().map(Item::U32).collect();
            builder.array("adapter.alora.invocation_tokens", &tokens);
        }
        builder.u32("hone.format", FORMAT);
        builder.string("hone.base.sha256", &self.base_sha256);
        if self.shared_rank > 0 {
            builder.u32(SHARED_RANK_KEY, self.shared_rank as u32);
        }
        let rank = self.rank as u64;
        for pair in &self.pairs {
            let (a_name, b_name) =
                (format!("{}.lora_a", pair.name), format!("{}.lora_b", pair.name));
            builder.tensor(&a_name, &[pair.rows_in as u64, rank], &pair.a);
            builder.tensor(&b_name, &[rank, pair.rows_out as u64], &pair.b);
        }
        let bytes = builder.finish();
        file::write_atomic(path, &bytes)
            .map_err(|error| AdapterError::Io { path: path.to_owned(), error })?;
        Ok(file::sha256_of(&bytes))
    }

    /// # Errors
    /// The file is truncated or damaged, is no adapter of Hone's, or holds NaN or infinity.
    pub fn read(path: &Path) -> Result<LoraAdapter, AdapterError> {
        let gguf = Gguf::open(path)?;
        let unusable = |what: String| AdapterError::Unusable { path: path.to_owned(), what };
        let text = |key: &str| {
            gguf.str(key).map(str::to_owned).ok_or_else(|| unusable(format!("no {key}")))
        };
        if text("general.type")? != "adapter" || text("adapter.type")? != "lora" {
            return Err(unusable("it is not a LoRA adapter".into()));
        }
        match gguf.u32("hone.format") {
            Some(FORMAT) => {}
            Some(other) => return Err(unusable(format!("hone.format {other}, {FORMAT} is read"))),
            None => return Err(unusable("it was not learned by Hone: no hone.format".into())),
        }
        let invocation = match gguf.array("adapter.alora.invocation_tokens") {
            None => Vec::new(),
            Some(tokens) => tokens
                .iter()
                .map(|token| token.as_u32())
                .collect::<Option<_>>()
                .ok_or_else(|| unusable("its invocation tokens are no token ids".into()))?,
        };
        let pairs = read_pairs(&gguf, &unusable)?;
        let adapter = LoraAdapter {
            architecture: text("general.architecture")?,
            base_sha256: text("hone.base.sha256")?,
            rank: pairs.first().map_or(0, |pair| pair.a.len() / pair.rows_in.max(1)),
            shared_rank: gguf.u32(SHARED_RANK_KEY).unwrap_or(0) as usize,
            alpha: gguf
                .f32("adapter.lora.alpha")
                .ok_or_else(|| unusable("no adapter.lora.alpha".into()))?,
            invocation,
            pairs,
        };
        adapter.check().map_err(unusable)?;
        Ok(adapter)
    }

    /// # Errors
    /// The adapter was learned on another base. The message names the base and what
    /// differs: checksum, architecture, or a tensor's shape.
    pub fn check_base(&self, base: &Gguf, base_sha256: &str) -> Result<(), AdapterError> {
        let other = |what| Err(AdapterError::OtherBase { base: base.path.clone(), what });
        if base.architecture() != Some(&self.architecture) {
            return other(format!("it was learned on architecture {}", self.architecture));
        }
        if base_sha256 != self.base_sha256 {
            return other(format!("it was learned on sha256 {}", self.base_sha256));
        }
        for pair in &self.pairs {
            let dims = base.tensor(&pair.name).map(|tensor| tensor.dims.as_slice());
            if dims != Some(&[pair.rows_in as u64, pair.rows_out as u64]) {
                return other(format!(
                    "no tensor {} of {}×{}",
                    pair.name, pair.rows_out, pair.rows_in
                ));
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        if self.pairs.is_empty() || self.rank == 0 {
            return Err("it adapts nothing".into());
        }
        if self.shared_rank > self.rank {
            return Err(format!("{} of its {} ranks are shared", self.shared_rank, self.rank));
        }
        if !self.alpha.is_finite() {
            return Err("alpha is not a finite number".into());
        }
        for pair in &self.pairs {
            let fits = |length: usize, rows: usize| Some(length) == rows.checked_mul(self.rank);
            if !fits(pair.a.len(), pair.rows_in) || !fits(pair.b.len(), pair.rows_out) {
                return Err(format!("{} does not have rank {}", pair.name, self.rank));
            }
            if !pair.a.iter().chain(&pair.b).all(|weight| weight.is_finite()) {
                return Err(format!("{} holds NaN or infinity", pair.name));
            }
        }
        Ok(())
    }
}

/// Reads the pairs in the file's order, so that writing them gives the same bytes.
fn read_pairs(
    gguf: &Gguf,
    unusable: &impl Fn(String) -> AdapterError,
) -> Result<Vec<LoraPair>, AdapterError> {
    let io = |error| AdapterError::Io { path: gguf.path.clone(), error };
    let mut input = File::open(&gguf.path).map_err(io)?;
    let mut bs: BTreeMap<&str, &TensorInfo> = gguf
        .tensors
        .iter()
        .filter_map(|tensor| Some((tensor.name.strip_suffix(".lora_b")?, tensor)))
        .collect();
    let mut pairs = Vec::new();
    for a in &gguf.tensors {
        let Some(name) = a.name.strip_suffix(".lora_a") else { continue };
        let b = bs.remove(name).ok_or_else(|| unusable(format!("{name} has no lora_b")))?;
        let (&[rows_in, a_rank], &[b_rank, rows_out]) = (a.dims.as_slice(), b.dims.as_slice())
        else {
            return Err(unusable(format!("{name} is not a matrix")));
        };
        if a_rank != b_rank || a.ggml_type != GGML_F32 || b.ggml_type != GGML_F32 {
            return Err(unusable(format!(
                "{name} has ranks {a_rank} and {b_rank}, or no 32-bit floats"
            )));
        }
        pairs.push(LoraPair {
            name: name.to_owned(),
            rows_out: rows_out as usize,
            rows_in: rows_in as usize,
            a: read_floats(&mut input, gguf, a).map_err(io)?,
            b: read_floats(&mut input, gguf, b).map_err(io)?,
        });
    }
    if pairs.len() * 2 != gguf.tensors.len() {
        return Err(unusable("it has tensors that belong to no LoRA pair".into()));
    }
    Ok(pairs)
}

/// [`Gguf::open`] has checked that these bytes are in the file.
fn read_floats(input: &mut File, gguf: &Gguf, tensor: &TensorInfo) -> io::Result<Vec<f32>> {
    let mut bytes = vec![0; tensor.bytes as usize];
    input.seek(SeekFrom::Start(gguf.data_offset + tensor.offset))?;
    input.read_exact(&mut bytes)?;
    let (floats, _) = bytes.as_chunks::<4>();
    Ok(floats.iter().copied().map(f32::from_le_bytes).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE_SHA: &str = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32";

    fn sample() -> LoraAdapter {
        let pair = |name: &str, rows_out, rows_in| LoraPair {
            name: name.into(),
            rows_out,
            rows_in,
            a: (0..2 * rows_in).map(|i| i as f32 * 0.25).collect(),
            b: (0..2 * rows_out).map(|i| -(i as f32)).collect(),
        };
        LoraAdapter {
            architecture: "qwen2".into(),
            base_sha256: BASE_SHA.into(),
            rank: 2,
            shared_rank: 0,
            alpha: 4.0,
            invocation: vec![151660],
            pairs: vec![pair("blk.0.attn_q.weight", 4, 3), pair("blk.0.ffn_down.weight", 3, 5)],
        }
    }

    fn base(folder: &Path, q_dims: [u64; 2]) -> Gguf {
        let mut builder = Builder::default();
        builder.string("general.architecture", "qwen2");
        builder.tensor("blk.0.attn_q.weight", &q_dims, &[0.0; 12]);
        builder.tensor("blk.0.ffn_down.weight", &[5, 3], &[0.0; 15]);
        let path = folder.join("base.gguf");
        std::fs::write(&path, builder.finish()).unwrap();
        Gguf::open(&path).unwrap()
    }

    #[test]
    fn round_trip_gives_the_same_adapter_and_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("1.gguf"), folder.path().join("2.gguf"));
        let sha = sample().write(&first).unwrap();
        assert_eq!(sha, file::sha256(&first).unwrap());
        let read = LoraAdapter::read(&first).unwrap();
        assert_eq!(read, sample());
        assert_eq!(read.write(&second).unwrap(), sha);
    }

    #[test]
    fn tensors_have_llama_cpp_names_and_shapes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.gguf");
        sample().write(&path).unwrap();
        let gguf = Gguf::open(&path).unwrap();
        assert_eq!(gguf.tensor("blk.0.attn_q.weight.lora_a").unwrap().dims, [3, 2]);
        assert_eq!(gguf.tensor("blk.0.attn_q.weight.lora_b").unwrap().dims, [2, 4]);
        assert_eq!(gguf.str("general.type"), Some("adapter"));
        assert_eq!(gguf.str("adapter.type"), Some("lora"));
        assert_eq!(gguf.f32("adapter.lora.alpha"), Some(4.0));
    }

    #[test]
    fn without_invocation_tokens_the_key_is_absent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.gguf");
        let everywhere = LoraAdapter { invocation: Vec::new(), ..sample() };
        everywhere.write(&path).unwrap();
        // llama.cpp refuses an empty list.
        let key = "adapter.alora.invocation_tokens";
        assert!(!Gguf::open(&path).unwrap().metadata.contains_key(key));
        assert_eq!(LoraAdapter::read(&path).unwrap(), everywhere);
    }

    #[test]
    fn the_shared_ranks_are_kept_and_cannot_be_more_than_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.gguf");
        let shared = LoraAdapter { shared_rank: 1, ..sample() };
        shared.write(&path).unwrap();
        assert_eq!(LoraAdapter::read(&path).unwrap(), shared);
        let more = LoraAdapter { shared_rank: 3, ..sample() };
        assert!(more.write(&path).unwrap_err().to_string().contains("3 of its 2 ranks"));
        assert_eq!(LoraAdapter::read(&path).unwrap(), shared);
    }

    #[test]
    fn a_truncated_adapter_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.gguf");
        sample().write(&path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        for cut in [0, 3, 40, bytes.len() / 2, bytes.len() - 32] {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let error = LoraAdapter::read(&path).unwrap_err().to_string();
            assert!(error.contains("a.gguf"), "{error}");
        }
    }

    #[test]
    fn an_adapter_of_a_newer_hone_is_refused_untouched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.gguf");
        sample().write(&path).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let key = b"hone.format";
        // The key is followed by the value's type, four bytes, and the value.
        let at = bytes.windows(key.len()).position(|window| window == key).unwrap() + key.len() + 4;
        assert_eq!(bytes[at..at + 4], FORMAT.to_le_bytes());
        bytes[at..at + 4].copy_from_slice(&(FORMAT + 1).to_le_bytes());
        std::fs::write(&path, &bytes).unwrap();
        let error = LoraAdapter::read(&path).unwrap_err().to_string();
        assert!(error.contains("a.gguf") && error.contains("hone.format 2"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }

    #[test]
    fn not_a_number_is_neither_written_nor_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.gguf");
        let mut broken = sample();
        broken.pairs[0].a[1] = f32::NAN;
        assert!(broken.write(&path).is_err());
        assert!(!path.exists());

        sample().write(&path).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let at = Gguf::open(&path).unwrap().data_offset as usize;
        bytes[at..at + 4].copy_from_slice(&f32::INFINITY.to_le_bytes());
        std::fs::write(&path, &bytes).unwrap();
        let error = LoraAdapter::read(&path).unwrap_err().to_string();
        assert!(error.contains("NaN or infinity"), "{error}");
    }

    #[test]
    fn an_adapter_for_another_base_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let adapter = sample();
        let fitting = base(folder.path(), [3, 4]);
        adapter.check_base(&fitting, BASE_SHA).unwrap();

        let error = adapter.check_base(&fitting, "0000").unwrap_err().to_string();
        assert!(error.contains("base.gguf") && error.contains(BASE_SHA), "{error}");
        let llama = LoraAdapter { architecture: "llama".into(), ..sample() };
        assert!(llama.check_base(&fitting, BASE_SHA).is_err());
        assert!(adapter.check_base(&base(folder.path(), [4, 3]), BASE_SHA).is_err());
    }

    #[test]
    fn a_model_is_not_an_adapter() {
        let folder = tempfile::tempdir().unwrap();
        let model = base(folder.path(), [3, 4]);
        assert!(matches!(LoraAdapter::read(&model.path), Err(AdapterError::Unusable { .. })));
    }
}
