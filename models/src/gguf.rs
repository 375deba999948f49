//! Headers of GGUF files: metadata and the table of tensors.
//!
//! The format: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>.

mod reader;

use reader::Reader;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

pub(crate) const MAGIC: &[u8; 4] = b"GGUF";
/// Alignment of tensor data if `general.alignment` names no other, in bytes.
pub(crate) const DEFAULT_ALIGNMENT: u64 = 32;
const _: () = assert!(DEFAULT_ALIGNMENT <= crate::limits::GGUF_ALIGNMENT_MAX);

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

#[derive(Debug, thiserror::Error)]
pub enum GgufError {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{} is not a GGUF file; give the path of a .gguf model", path.display())]
    NotGguf { path: PathBuf },
    #[error(
        "{} has GGUF version {version}; versions 2 and 3 (little-endian) are read: \
         convert it again with a current llama.cpp",
        path.display()
    )]
    Version { path: PathBuf, version: u32 },
    #[error("{} is truncated ({what}); delete it and fetch it again", path.display())]
    Truncated { path: PathBuf, what: String },
    #[error("{} is damaged ({what}); delete it and fetch it again", path.display())]
    Damaged { path: PathBuf, what: String },
    #[error(
        "{}: tensor {tensor} has ggml type {ggml_type}, which this version does not know; \
         use a file in a common quantisation such as q4_k_m",
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

/// The header of a GGUF file. The file is known to hold all of its tensors.
#[derive(Debug)]
pub struct Gguf {
    pub path: PathBuf,
    pub metadata: BTreeMap<String, Value>,
    pub tensors: Vec<TensorInfo>,
    /// The place where tensor data starts, in bytes from the start of the file.
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
    /// The file cannot be read, is no GGUF file, has another version, is truncated or
    /// damaged, or holds a tensor of an unknown type. The message is one line that names
    /// the file and the fix.
    pub fn open(path: &Path) -> Result<Gguf, GgufError> {
        Reader::open(path)?.header()
    }

    pub fn str(&self, key: &str) -> Option<&str> {
        match self.metadata.get(key)? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// A whole number of any width, if it fits. Writers do not agree on the width.
    pub fn u32(&self, key: &str) -> Option<u32> {
        self.metadata.get(key)?.as_u32()
    }

    /// The same, or an array that has one number for every layer, if they are all equal.
    pub fn u32_of_layers(&self, key: &str) -> Option<u32> {
        let Some(items) = self.array(key) else { return self.u32(key) };
        let first = items.first()?.as_u32()?;
        items.iter().all(|item| item.as_u32() == Some(first)).then_some(first)
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

    /// The texts of an array of strings. `None` if any item is something else.
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
    /// The value, if it is a whole number that fits.
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
        builder.array("sizes", &[4u32, 4].map(Item::U32));
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
        assert_eq!(gguf.u32_of_layers("llama.block_count"), Some(2));
        assert_eq!(gguf.u32_of_layers("sizes"), Some(4));
        assert_eq!(gguf.u32_of_layers("types"), None, "they differ");
        assert_eq!(gguf.data_offset % DEFAULT_ALIGNMENT, 0);
        let bias = gguf.tensor("b").unwrap();
        assert_eq!((bias.dims.as_slice(), bias.offset, bias.bytes), ([3].as_slice(), 32, 12));
    }

    #[test]
    fn every_cut_is_an_error() {
        let whole = sample();
        // Only the padding behind the last tensor may be missing.
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
                // The file may be read or refused: any name or number may have changed.
                let _ = open(&damaged);
            }
        }
    }

    #[test]
    fn nested_arrays_are_read_and_their_depth_is_bounded() {
        // One metadata pair, "k", which is an array. Its item type and count follow.
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
        // The name takes 8 + 1 bytes; then follow dimension count, one dimension, the type.
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
