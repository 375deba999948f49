//! Reads the header of a GGUF file. No length in it is believed: a count must fit into the
//! bytes that are left, and into the limits, before anything is allocated for it.

use super::{DEFAULT_ALIGNMENT, GGML_F32, Gguf, GgufError, MAGIC, TensorInfo, Value, value_type};
use crate::file::open_plain;
use crate::limits::{
    GGUF_ALIGNMENT_MAX, GGUF_ARRAY_DEPTH_MAX, GGUF_DIMS_MAX, GGUF_HEADER_BYTES_MAX,
    GGUF_TENSORS_MAX, GGUF_VALUES_MAX,
};
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// The smallest encoding of one metadata pair: empty key, type, one byte.
const PAIR_BYTES_MIN: u64 = 8 + 4 + 1;
/// The smallest encoding of one tensor: empty name, dimension count, type, offset.
const TENSOR_BYTES_MIN: u64 = 8 + 4 + 4 + 8;

// As many of both as may be fit into a header, so multiplying them never overflows.
const _: () = assert!(GGUF_VALUES_MAX * PAIR_BYTES_MIN <= GGUF_HEADER_BYTES_MAX);
const _: () = assert!(GGUF_TENSORS_MAX * TENSOR_BYTES_MIN <= GGUF_HEADER_BYTES_MAX);

/// (ggml type, weights in a block, bytes of a block), from the block structures of
/// ggml-common.h.
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

/// The bytes of a tensor. `None` if the type is unknown, if a row is not made of whole
/// blocks, or if the number overflows.
fn tensor_bytes(ggml_type: u32, dims: &[u64]) -> Option<u64> {
    let &(_, weights, bytes) = BLOCKS.iter().find(|block| block.0 == ggml_type)?;
    let row = *dims.first()?;
    if row % weights != 0 {
        return None;
    }
    let blocks = dims[1..].iter().try_fold(row / weights, |count, &dim| count.checked_mul(dim))?;
    blocks.checked_mul(bytes)
}

/// Counts the bytes that it has read, to compare every length with the bytes that are left.
pub struct Reader<'a> {
    path: &'a Path,
    input: BufReader<File>,
    position: u64,
    file_bytes: u64,
    values_left: u64,
}

impl<'a> Reader<'a> {
    pub fn open(path: &'a Path) -> Result<Reader<'a>, GgufError> {
        let io = |error| GgufError::Io { path: path.to_owned(), error };
        let file = open_plain(path).map_err(io)?;
        let file_bytes = file.metadata().map_err(io)?.len();
        let input = BufReader::new(file);
        Ok(Reader { path, input, position: 0, file_bytes, values_left: GGUF_VALUES_MAX })
    }

    /// Reads the whole header, and checks that the file holds every tensor.
    pub fn header(&mut self) -> Result<Gguf, GgufError> {
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
        let metadata = self.metadata(pair_count)?;
        let alignment = match metadata.get("general.alignment") {
            None => DEFAULT_ALIGNMENT,
            Some(value) => value.as_u32().unwrap_or(0).into(),
        };
        if !alignment.is_power_of_two() || alignment > GGUF_ALIGNMENT_MAX {
            return Err(self.damaged("general.alignment is no power of two".into()));
        }
        let tensors = self.tensors(tensor_count, alignment)?;
        let data_offset = self.position.next_multiple_of(alignment);
        for tensor in &tensors {
            self.check_is_there(tensor, data_offset)?;
        }
        Ok(Gguf { path, metadata, tensors, data_offset })
    }

    fn metadata(&mut self, count: u64) -> Result<BTreeMap<String, Value>, GgufError> {
        self.check_count(count, PAIR_BYTES_MIN, GGUF_VALUES_MAX, "metadata pairs")?;
        let mut metadata = BTreeMap::new();
        for _ in 0..count {
            let key = self.string()?;
            let value_type = self.u32()?;
            let value = self.value(value_type, 0)?;
            if metadata.insert(key.clone(), value).is_some() {
                return Err(self.damaged(format!("metadata key {key:?} occurs twice")));
            }
        }
        Ok(metadata)
    }

    fn tensors(&mut self, count: u64, alignment: u64) -> Result<Vec<TensorInfo>, GgufError> {
        self.check_count(count, TENSOR_BYTES_MIN, GGUF_TENSORS_MAX, "tensors")?;
        let mut names = HashSet::new();
        let mut tensors = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let tensor = self.tensor(alignment)?;
            if !names.insert(tensor.name.clone()) {
                return Err(self.damaged(format!("tensor {:?} occurs twice", tensor.name)));
            }
            tensors.push(tensor);
        }
        Ok(tensors)
    }

    fn check_is_there(&self, tensor: &TensorInfo, data_offset: u64) -> Result<(), GgufError> {
        let end = data_offset
            .checked_add(tensor.offset)
            .and_then(|start| start.checked_add(tensor.bytes))
            .ok_or_else(|| {
                self.damaged(format!("the end of tensor {:?} overflows", tensor.name))
            })?;
        if end > self.file_bytes {
            return Err(self.truncated(format!(
                "tensor {} ends at byte {end}, the file at {}",
                tensor.name, self.file_bytes
            )));
        }
        Ok(())
    }

    fn tensor(&mut self, alignment: u64) -> Result<TensorInfo, GgufError> {
        let name = self.string()?;
        let dim_count = self.u32()?;
        if dim_count == 0 || dim_count > GGUF_DIMS_MAX {
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
                if depth == GGUF_ARRAY_DEPTH_MAX {
                    return Err(self.damaged("arrays nested too deep".into()));
                }
                let item_type = self.u32()?;
                let count = self.u64()?;
                // An item takes at least one byte.
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
        self.check_count(length, 1, GGUF_HEADER_BYTES_MAX, "characters of a text")?;
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
            return Err(
                self.truncated(format!("the header does not end before byte {}", self.file_bytes))
            );
        }
        if wanted > GGUF_HEADER_BYTES_MAX.saturating_sub(self.position) {
            return Err(self.damaged("a header larger than any model has".into()));
        }
        self.input
            .read_exact(bytes)
            .map_err(|error| GgufError::Io { path: self.path.to_owned(), error })?;
        self.position += wanted;
        Ok(())
    }

    /// Refuses a count before anything is allocated for it.
    fn check_count(
        &self,
        count: u64,
        bytes_min: u64,
        count_max: u64,
        what: &str,
    ) -> Result<(), GgufError> {
        if count > count_max {
            return Err(self.damaged(format!("{count} {what}")));
        }
        // The product cannot overflow: see the assertions above.
        if count * bytes_min > self.file_bytes - self.position {
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
