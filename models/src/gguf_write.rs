//! Writes GGUF files (version 3): adapters, models for tests, and headers of random models.
//!
//! The bytes depend on the calls and their order alone.

use crate::gguf::{DEFAULT_ALIGNMENT, GGML_F32, MAGIC, Value, value_type};

const VERSION: u32 = 3;

/// An item of a metadata array.
pub(crate) enum Item {
    U32(u32),
    #[cfg(test)]
    String(String),
}

/// Collects metadata and tensors; [`Builder::finish`] lays them out.
#[derive(Default)]
pub(crate) struct Builder {
    pairs: u64,
    metadata: Vec<u8>,
    tensors: u64,
    infos: Vec<u8>,
    data: Vec<u8>,
}

impl Builder {
    pub fn string(&mut self, key: &str, text: &str) {
        self.pair(key, value_type::STRING);
        put_string(&mut self.metadata, text);
    }

    pub fn u32(&mut self, key: &str, number: u32) {
        self.pair(key, value_type::U32);
        self.metadata.extend(number.to_le_bytes());
    }

    pub fn f32(&mut self, key: &str, number: f32) {
        self.pair(key, value_type::F32);
        self.metadata.extend(number.to_le_bytes());
    }

    /// All items must have the type of the first one. An empty array has the type u32.
    pub fn array(&mut self, key: &str, items: &[Item]) {
        self.pair(key, value_type::ARRAY);
        let item_type = match items.first() {
            #[cfg(test)]
            Some(Item::String(_)) => value_type::STRING,
            _ => value_type::U32,
        };
        self.metadata.extend(item_type.to_le_bytes());
        self.metadata.extend((items.len() as u64).to_le_bytes());
        for item in items {
            match item {
                Item::U32(number) => self.metadata.extend(number.to_le_bytes()),
                #[cfg(test)]
                Item::String(text) => put_string(&mut self.metadata, text),
            }
        }
    }

    /// A value as [`crate::gguf::Gguf`] has read it. An empty array gets the type u32.
    pub fn value(&mut self, key: &str, value: &Value) {
        self.pair(key, type_of(value));
        put_value(&mut self.metadata, value);
    }

    /// A tensor of 32-bit floats. `dims` are in ggml's order.
    pub fn tensor(&mut self, name: &str, dims: &[u64], weights: &[f32]) {
        debug_assert_eq!(dims.iter().product::<u64>(), weights.len() as u64);
        let bytes = weights.iter().flat_map(|weight| weight.to_le_bytes());
        self.tensor_of(name, dims, GGML_F32, bytes);
    }

    /// A tensor of any type, as its bytes.
    pub fn tensor_of(
        &mut self,
        name: &str,
        dims: &[u64],
        ggml_type: u32,
        bytes: impl IntoIterator<Item = u8>,
    ) {
        self.tensor_info(name, dims, ggml_type, self.data.len() as u64);
        self.data.extend(bytes);
        pad(&mut self.data);
    }

    /// The entry of a tensor whose data the caller writes, `offset` bytes behind the header.
    pub fn tensor_info(&mut self, name: &str, dims: &[u64], ggml_type: u32, offset: u64) {
        self.tensors += 1;
        put_string(&mut self.infos, name);
        self.infos.extend((dims.len() as u32).to_le_bytes());
        for dim in dims {
            self.infos.extend(dim.to_le_bytes());
        }
        self.infos.extend(ggml_type.to_le_bytes());
        self.infos.extend(offset.to_le_bytes());
    }

    pub fn finish(self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.tensors.to_le_bytes());
        bytes.extend(self.pairs.to_le_bytes());
        bytes.extend(self.metadata);
        bytes.extend(self.infos);
        pad(&mut bytes);
        bytes.extend(self.data);
        bytes
    }

    fn pair(&mut self, key: &str, value_type: u32) {
        self.pairs += 1;
        put_string(&mut self.metadata, key);
        self.metadata.extend(value_type.to_le_bytes());
    }
}

fn type_of(value: &Value) -> u32 {
    match value {
        Value::U8(_) => value_type::U8,
        Value::I8(_) => value_type::I8,
        Value::U16(_) => value_type::U16,
        Value::I16(_) => value_type::I16,
        Value::U32(_) => value_type::U32,
        Value::I32(_) => value_type::I32,
        Value::F32(_) => value_type::F32,
        Value::Bool(_) => value_type::BOOL,
        Value::String(_) => value_type::STRING,
        Value::U64(_) => value_type::U64,
        Value::I64(_) => value_type::I64,
        Value::F64(_) => value_type::F64,
        Value::Array(_) => value_type::ARRAY,
    }
}

fn put_value(bytes: &mut Vec<u8>, value: &Value) {
    match value {
        Value::U8(number) => bytes.extend(number.to_le_bytes()),
        Value::I8(number) => bytes.extend(number.to_le_bytes()),
        Value::U16(number) => bytes.extend(number.to_le_bytes()),
        Value::I16(number) => bytes.extend(number.to_le_bytes()),
        Value::U32(number) => bytes.extend(number.to_le_bytes()),
        Value::I32(number) => bytes.extend(number.to_le_bytes()),
        Value::F32(number) => bytes.extend(number.to_le_bytes()),
        Value::Bool(is) => bytes.push(u8::from(*is)),
        Value::String(text) => put_string(bytes, text),
        Value::U64(number) => bytes.extend(number.to_le_bytes()),
        Value::I64(number) => bytes.extend(number.to_le_bytes()),
        Value::F64(number) => bytes.extend(number.to_le_bytes()),
        Value::Array(items) => {
            bytes.extend(items.first().map_or(value_type::U32, type_of).to_le_bytes());
            bytes.extend((items.len() as u64).to_le_bytes());
            items.iter().for_each(|item| put_value(bytes, item));
        }
    }
}

fn put_string(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(DEFAULT_ALIGNMENT as usize), 0);
}
