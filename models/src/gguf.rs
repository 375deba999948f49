//! A bounded reader of GGUF headers: metadata and the table of tensors.
//!
//! The file is data from somewhere else, so no length in it is believed: a count
//! must fit into the bytes that are left, and into limits far above any real
//! model, before anything is allocated for it.
//! Format: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

pub(crate) const MAGIC: &[u8; 4] = b"GGUF";
/// Alignment of tensor data where `general.alignment` does not say otherwise, in bytes.
pub(crate) const DEFAULT_ALIGNMENT: u64 = 32;

/// Header bytes a model may have; vocabularies of 256k tokens with their merges take about 16 MiB.
const MAX_HEADER_BYTES: u64 = 256 << 20;
/// Metadata values in one file, array items included; 256k tokens with types, scores and merges make 1.3 million.
const MAX_VALUES: u64 = 8 << 20;
/// Tensors in one file; a 60-layer mixture of experts has under ten thousand.
const MAX_TENSORS: u64 = 1 << 16;
/// Dimensions of a tensor (`GGML_MAX_DIMS`).
const MAX_DIMS: u32 = 4;
/// Arrays within arrays; real files have none, the format allows them.
const MAX_ARRAY_DEPTH: u32 = 4;
/// `general.alignment` is a power of two up to this, in bytes.
const MAX_ALIGNMENT: u64 = 1 << 16;

/// The smallest encoding of one metadata pair: empty key, type, one byte.
const MIN_PAIR_BYTES: u64 = 8 + 4 + 1;
/// The smallest encoding of one tensor: empty name, dimension count, type, offset.
const MIN_TENSOR_BYTES: u64 = 8 + 4 + 4 + 8;

/// Numbers of the metadata value types.
pub(crate) mod value_type {
    pub const U8: u32 = 0;
    pub const I8: u32 = 1;
    pub const U16: u32 = 2;
    pub const I16: u32 = 3;
    pub const U32: u32 = 4;
    pub const I32: u32 = 5;
    pub const F32: u32 = 6;
    pub const BOOL: u32 = 7;
    pub const STRING: u32 = 8;
    pub const ARRAY: u32 = 9;
    pub const U64: u32 = 10;
    pub const I64: u32 = 11;
    pub const F64: u32 = 12;
}

/// ggml's number for 32-bit floats.
pub const GGML_F32: u32 = 0;

/// (ggml type, weights a block, bytes a block), from the block structures of ggml-common.h.
const BLOCKS: &[(u32, u64, u64)] = &[
    (GGML_F32, 1, 4),
    (1, 1, 2),      // F16
    (2, 32, 18),    // Q4_0
    (3, 32, 20),    // Q4_1
    (6, 32, 22),    // Q5_0
    (7, 32, 24),    // Q5_1
    (8, 32, 34),    // Q8_0
    (9, 32, 36),    // Q8_1
    (10, 256, 84),  // Q2_K
    (11, 256, 110), // Q3_K
    (12, 256, 144), // Q4_K
    (13, 256, 176), // Q5_K
    (14, 256, 210), // Q6_K
    (15, 256, 292), // Q8_K
    (16, 256, 66),  // IQ2_XXS
    (17, 256, 74),  // IQ2_XS
    (18, 256, 98),  // IQ3_XXS
    (19, 256, 50),  // IQ1_S
    (20, 32, 18),   // IQ4_NL
    (21, 256, 110), // IQ3_S
    (22, 256, 82),  // IQ2_S
    (23, 256, 136), // IQ4_XS
    (24, 1, 1),     // I8
    (25, 1, 2),     // I16
    (26, 1, 4),     // I32
    (27, 1, 8),     // I64
    (28, 1, 8),     // F64
    (29, 256, 56),  // IQ1_M
    (30, 1, 2),     // BF16
    (34, 256, 54),  // TQ1_0
    (35, 256, 66),  // TQ2_0
    (39, 32, 17),   // MXFP4
];

#[derive(Debug, thiserror::Error)]
pub enum GgufError {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{} is not a GGUF file; give the path of a .gguf model", path.display())]
    NotGguf { path: PathBuf },
    #[error(
        "{} has GGUF version {version}; versions 2 and 3 (little-endian) are read: convert it again with a current llama.cpp",
        path.display()
    )]
    Version { path: PathBuf, version: u32 },
    #[error("{} is truncated ({what}); delete it and fetch it again", path.display())]
    Truncated { path: PathBuf, what: String },
    #[error("{} is damaged ({what}); delete it and fetch it again", path.display())]
    Damaged { path: PathBuf, what: String },
    #[error(
        "{}: tensor {tensor} has ggml type {ggml_type}, which this version does not know; use a file in a common quantisation such as q4_k_m",
        path.display()
    )]
    UnknownType { path: PathBuf, tensor: String, ggml_type: u32 },
}

/// A metadata value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    String(String),
    U64(u64),
    I64(i64),
    F64(f64),
    Array(Vec<Value>),
}

/// The header of a GGUF file whose tensors are known to be all there.
#[derive(Debug)]
pub struct Gguf {
    pub path: PathBuf,
    pub metadata: BTreeMap<String, Value>,
    pub tensors: Vec<TensorInfo>,
    /// Where tensor data starts, in bytes from the start of the file.
    pub data_offset: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TensorInfo {
    pub name: String,
    /// In ggml's order: `dims[0]` is the length of a contiguous row.
    pub dims: Vec<u64>,
    pub ggml_type: u32,
    /// In bytes from [`Gguf::data_offset`].
    pub offset: u64,
    pub bytes: u64,
}

impl Gguf {
    /// Reads the header and checks that the file holds every tensor.
    ///
    /// # Errors
    /// One line that names the file and the fix: unreadable, not GGUF, another
    /// version, truncated, damaged, or a tensor of an unknown type.
    pub fn open(path: &Path) -> Result<Gguf, GgufError> {
        let io = |error| GgufError::Io { path: path.to_owned(), error };
        let file = File::open(path).map_err(io)?;
        let file_bytes = file.metadata().map_err(io)?.len();
        let mut reader = Reader {
            path,
            input: BufReader::new(file),
            position: 0,
            file_bytes,
            values_left: MAX_VALUES,
        };
        reader.header()
    }

    pub fn str(&self, key: &str) -> Option<&str> {
        match self.metadata.get(key)? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// Any whole number that fits: writers do not agree on the width.
    pub fn u32(&self, key: &str) -> Option<u32> {
        self.metadata.get(key)?.as_u32()
    }

    pub fn f32(&self, key: &str) -> Option<f32> {
        match self.metadata.get(key)? {
            Value::F32(number) => Some(*number),
            Value::F64(number) => Some(*number as f32),
            _ => None,
        }
    }

    pub fn array(&self, key: &str) -> Option<&[Value]> {
        match self.metadata.get(key)? {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The texts of an array of strings; `None` if any item is something else.
    pub fn strings(&self, key: &str) -> Option<impl Iterator<Item = &str>> {
        let items = self.array(key)?;
        items.iter().all(|item| matches!(item, Value::String(_))).then(|| {
            items.iter().filter_map(|item| match item {
                Value::String(text) => Some(text.as_str()),
                _ => None,
            })
        })
    }

    /// `general.architecture`, such as `qwen2`.
    pub fn architecture(&self) -> Option<&str> {
        self.str("general.architecture")
    }

    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }
}

impl Value {
    /// The value where it is a whole number that fits.
    pub fn as_u32(&self) -> Option<u32> {
        match *self {
            Value::U8(number) => Some(number.into()),
            Value::U16(number) => Some(number.into()),
            Value::U32(number) => Some(number),
            Value::U64(number) => number.try_into().ok(),
            Value::I8(number) => number.try_into().ok(),
            Value::I16(number) => number.try_into().ok(),
            Value::I32(number) => number.try_into().ok(),
            Value::I64(number) => number.try_into().ok(),
            _ => None,
        }
    }
}

/// Bytes of a tensor; `None` where the type is unknown, rows are no whole blocks, or it overflows.
fn tensor_bytes(ggml_type: u32, dims: &[u64]) -> Option<u64> {
    let &(_, weights, bytes) = BLOCKS.iter().find(|block| block.0 == ggml_type)?;
    let row = *dims.first()?;
    if row % weights != 0 {
        return None;
    }
    let blocks = dims[1..].iter().try_fold(row / weights, |count, &dim| count.checked_mul(dim))?;
    blocks.checked_mul(bytes)
}

/// Counts what it has read, so that every length can be held against what is left.
struct Reader<'a> {
    path: &'a Path,
    input: BufReader<File>,
    position: u64,
    file_bytes: u64,
    values_left: u64,
}

impl Reader<'_> {
    fn header(&mut self) -> Result<Gguf, GgufError> {
        let path = self.path.to_owned();
        if self.file_bytes < MAGIC.len() as u64 || &self.bytes::<4>()? != MAGIC {
            return Err(GgufError::NotGguf { path });
        }
        let version = self.u32()?;
        if !(2..=3).contains(&version) {
            return Err(GgufError::Version { path, version });
        }
        let tensor_count = self.u64()?;
        let pair_count = self.u64()?;
        self.check_count(pair_count, MIN_PAIR_BYTES, MAX_VALUES, "metadata pairs")?;
        let mut metadata = BTreeMap::new();
        for _ in 0..pair_count {
            let key = self.string()?;
            let value_type = self.u32()?;
            let value = self.value(value_type, 0)?;
            if metadata.insert(key.clone(), value).is_some() {
                return Err(self.damaged(format!("metadata key {key:?} occurs twice")));
            }
        }
        let alignment = match metadata.get("general.alignment") {
            None => DEFAULT_ALIGNMENT,
            Some(value) => value.as_u32().unwrap_or(0).into(),
        };
        if !alignment.is_power_of_two() || alignment > MAX_ALIGNMENT {
            return Err(self.damaged("general.alignment is no power of two".into()));
        }

        self.check_count(tensor_count, MIN_TENSOR_BYTES, MAX_TENSORS, "tensors")?;
        let mut names = HashSet::new();
        let mut tensors = Vec::with_capacity(tensor_count as usize);
        for _ in 0..tensor_count {
            let tensor = self.tensor(alignment)?;
            if !names.insert(tensor.name.clone()) {
                return Err(self.damaged(format!("tensor {:?} occurs twice", tensor.name)));
            }
            tensors.push(tensor);
        }

        let data_offset = self.position.next_multiple_of(alignment);
        for tensor in &tensors {
            let end = data_offset
                .checked_add(tensor.offset)
                .and_then(|start| start.checked_add(tensor.bytes))
                .ok_or_else(|| self.damaged(format!("tensor {:?} ends nowhere", tensor.name)))?;
            if end > self.file_bytes {
                return Err(self.truncated(format!(
                    "tensor {} ends at byte {end}, the file at {}",
                    tensor.name, self.file_bytes
                )));
            }
        }
        Ok(Gguf { path, metadata, tensors, data_offset })
    }

    fn tensor(&mut self, alignment: u64) -> Result<TensorInfo, GgufError> {
        let name = self.string()?;
        let dim_count = self.u32()?;
        if dim_count == 0 || dim_count > MAX_DIMS {
            return Err(self.damaged(format!("tensor {name:?} has {dim_count} dimensions")));
        }
        let mut dims = Vec::with_capacity(dim_count as usize);
        for _ in 0..dim_count {
            dims.push(self.u64()?);
        }
        let ggml_type = self.u32()?;
        let offset = self.u64()?;
        if !BLOCKS.iter().any(|block| block.0 == ggml_type) {
            let path = self.path.to_owned();
            return Err(GgufError::UnknownType { path, tensor: name, ggml_type });
        }
        if offset % alignment != 0 {
            return Err(self.damaged(format!("tensor {name:?} is not aligned")));
        }
        match tensor_bytes(ggml_type, &dims) {
            Some(bytes) => Ok(TensorInfo { name, dims, ggml_type, offset, bytes }),
            None => Err(self.damaged(format!("tensor {name:?} has an impossible shape"))),
        }
    }

    fn value(&mut self, value_type: u32, depth: u32) -> Result<Value, GgufError> {
        use self::value_type as t;
        if self.values_left == 0 {
            return Err(self.damaged("more metadata than any model has".into()));
        }
        self.values_left -= 1;
        Ok(match value_type {
            t::U8 => Value::U8(u8::from_le_bytes(self.bytes()?)),
            t::I8 => Value::I8(i8::from_le_bytes(self.bytes()?)),
            t::U16 => Value::U16(u16::from_le_bytes(self.bytes()?)),
            t::I16 => Value::I16(i16::from_le_bytes(self.bytes()?)),
            t::U32 => Value::U32(self.u32()?),
            t::I32 => Value::I32(i32::from_le_bytes(self.bytes()?)),
            t::F32 => Value::F32(f32::from_le_bytes(self.bytes()?)),
            t::BOOL => match self.bytes::<1>()? {
                [0] => Value::Bool(false),
                [1] => Value::Bool(true),
                [other] => return Err(self.damaged(format!("a boolean of {other}"))),
            },
            t::STRING => Value::String(self.string()?),
            t::U64 => Value::U64(self.u64()?),
            t::I64 => Value::I64(i64::from_le_bytes(self.bytes()?)),
            t::F64 => Value::F64(f64::from_le_bytes(self.bytes()?)),
            t::ARRAY => {
                if depth == MAX_ARRAY_DEPTH {
                    return Err(self.damaged("arrays nested too deep".into()));
                }
                let item_type = self.u32()?;
                let count = self.u64()?;
                // One byte is the least any item takes.
                self.check_count(count, 1, self.values_left, "array items")?;
                let mut items = Vec::new();
                for _ in 0..count {
                    items.push(self.value(item_type, depth + 1)?);
                }
                Value::Array(items)
            }
            other => return Err(self.damaged(format!("metadata type {other}"))),
        })
    }

    fn string(&mut self) -> Result<String, GgufError> {
        let length = self.u64()?;
        self.check_count(length, 1, MAX_HEADER_BYTES, "characters of a text")?;
        let mut bytes = vec![0; length as usize];
        self.fill(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| self.damaged("a text that is not UTF-8".into()))
    }

    fn u32(&mut self) -> Result<u32, GgufError> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, GgufError> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], GgufError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), GgufError> {
        let wanted = bytes.len() as u64;
        if wanted > self.file_bytes - self.position {
            return Err(self.truncated(format!("the header does not end by {}", self.file_bytes)));
        }
        if wanted > MAX_HEADER_BYTES.saturating_sub(self.position) {
            return Err(self.damaged("a header larger than any model has".into()));
        }
        self.input
            .read_exact(bytes)
            .map_err(|error| GgufError::Io { path: self.path.to_owned(), error })?;
        self.position += wanted;
        Ok(())
    }

    /// Refuses a count before anything is allocated for it.
    fn check_count(&self, count: u64, min: u64, most: u64, what: &str) -> Result<(), GgufError> {
        if count > most {
            return Err(self.damaged(format!("{count} {what}")));
        }
        // `count ≤ most` and all `min` are small, so the product cannot overflow.
        if count * min > self.file_bytes - self.position {
            return Err(self.truncated(format!("{count} {what} do not fit into the file")));
        }
        Ok(())
    }

    fn damaged(&self, what: String) -> GgufError {
        GgufError::Damaged { path: self.path.to_owned(), what }
    }

    fn truncated(&self, what: String) -> GgufError {
        GgufError::Truncated { path: self.path.to_owned(), what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gguf_write::{Builder, Item};

    fn sample() -> Vec<u8> {
        let mut builder = Builder::default();
        builder.string("general.architecture", "llama");
        builder.u32("llama.block_count", 2);
        builder.f32("llama.scale", 0.5);
        builder.array("tokens", &["a".into(), "Ġb".into()].map(Item::String));
        builder.array("types", &[1u32, 3].map(Item::U32));
        builder.tensor("w", &[4, 2], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        builder.tensor("b", &[3], &[1.0, 2.0, 3.0]);
        builder.finish()
    }

    fn open(bytes: &[u8]) -> Result<Gguf, GgufError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.gguf");
        std::fs::write(&path, bytes).unwrap();
        Gguf::open(&path)
    }

    #[test]
    fn reads_metadata_and_tensors() {
        let gguf = open(&sample()).unwrap();
        assert_eq!(gguf.architecture(), Some("llama"));
        assert_eq!(gguf.u32("llama.block_count"), Some(2));
        assert_eq!(gguf.f32("llama.scale"), Some(0.5));
        assert_eq!(gguf.strings("tokens").unwrap().collect::<Vec<_>>(), ["a", "Ġb"]);
        assert!(gguf.strings("types").is_none());
        assert_eq!(gguf.data_offset % DEFAULT_ALIGNMENT, 0);
        let bias = gguf.tensor("b").unwrap();
        assert_eq!((bias.dims.as_slice(), bias.offset, bias.bytes), ([3].as_slice(), 32, 12));
    }

    #[test]
    fn every_cut_is_an_error() {
        let whole = sample();
        // The last tensor's padding is the only part that may be missing.
        let needed = whole.len() - (DEFAULT_ALIGNMENT as usize - 12);
        for cut in 0..needed {
            let error = open(&whole[..cut]).expect_err("a cut file was accepted");
            let expected = matches!(error, GgufError::NotGguf { .. } | GgufError::Truncated { .. });
            assert!(expected, "cut at {cut}: {error}");
        }
        assert!(open(&whole[..needed]).is_ok());
    }

    #[test]
    fn no_flipped_byte_panics_or_allocates_without_bound() {
        let whole = sample();
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                // Any answer will do: names and numbers may change meaning.
                let _ = open(&damaged);
            }
        }
    }

    #[test]
    fn nested_arrays_are_read_and_their_depth_is_bounded() {
        // One metadata pair, "k", which is an array; its item type and count follow.
        let mut start = b"GGUF".to_vec();
        start.extend(3u32.to_le_bytes());
        start.extend(0u64.to_le_bytes());
        start.extend(1u64.to_le_bytes());
        start.extend(1u64.to_le_bytes());
        start.push(b'k');
        start.extend(value_type::ARRAY.to_le_bytes());

        let mut two = start.clone();
        two.extend(value_type::ARRAY.to_le_bytes());
        two.extend(1u64.to_le_bytes());
        two.extend(value_type::U8.to_le_bytes());
        two.extend(1u64.to_le_bytes());
        two.push(7);
        let gguf = open(&two).unwrap();
        assert_eq!(gguf.metadata["k"], Value::Array(vec![Value::Array(vec![Value::U8(7)])]));

        let mut deep = start;
        for _ in 0..100 {
            deep.extend(value_type::ARRAY.to_le_bytes());
            deep.extend(1u64.to_le_bytes());
        }
        assert!(matches!(open(&deep), Err(GgufError::Damaged { .. })));
    }

    #[test]
    fn an_unknown_tensor_type_is_named() {
        let mut bytes = sample();
        let name = bytes.windows(9).position(|w| w == b"\x01\0\0\0\0\0\0\0b").unwrap();
        // name (8 + 1), dimension count, one dimension, then the type.
        let at = name + 9 + 4 + 8;
        bytes[at..at + 4].copy_from_slice(&77u32.to_le_bytes());
        let error = open(&bytes).unwrap_err().to_string();
        assert!(error.contains("tensor b") && error.contains("77"), "{error}");
    }

    #[test]
    fn other_files_and_versions_are_told_apart() {
        assert!(matches!(open(b"PK\x03\x04...."), Err(GgufError::NotGguf { .. })));
        let mut bytes = sample();
        bytes[4] = 9;
        assert!(matches!(open(&bytes), Err(GgufError::Version { version: 9, .. })));
    }
}
