//! The limits of what is read and kept, and how they relate to each other. Files come
//! from elsewhere, so the limits of a GGUF header lie far above those of any real model.

/// Bytes that are read at a time for hashing or copying. System calls take no noticeable
/// time with chunks of this size.
pub const CHUNK_BYTES: usize = 1 << 18;

/// Bytes of a GGUF header. A vocabulary of 256k tokens with its merges takes about 16 MiB.
pub const GGUF_HEADER_BYTES_MAX: u64 = 256 << 20;

/// Metadata values of a GGUF file, items of arrays included. A vocabulary of 256k tokens
/// with types, scores and merges has 1.3 million.
pub const GGUF_VALUES_MAX: u64 = 8 << 20;

/// Tensors of a GGUF file. A mixture of experts with 60 layers has under ten thousand.
pub const GGUF_TENSORS_MAX: u64 = 1 << 16;

/// Dimensions of a tensor (`GGML_MAX_DIMS`).
pub const GGUF_DIMS_MAX: u32 = 4;

/// Arrays within arrays. The format allows them, and real files have none.
pub const GGUF_ARRAY_DEPTH_MAX: u32 = 4;

/// `general.alignment`, a power of two, in bytes.
pub const GGUF_ALIGNMENT_MAX: u64 = 1 << 16;

/// The fewest missing tokens for which a prompt is looked up in the disk cache. Computing
/// fewer takes less time than reading and writing their file.
pub const CACHED_TOKENS_MIN: usize = 64;

/// Size of a disk cache. One that holds this much accepts no further file.
pub const DISK_CACHE_BYTES_MAX: u64 = 16 << 30;

// Positions within a vocabulary's bytes, which all come from the header, are u32.
const _: () = assert!(GGUF_HEADER_BYTES_MAX < u32::MAX as u64);
const _: () = assert!(GGUF_ALIGNMENT_MAX.is_power_of_two());
const _: () = assert!(CHUNK_BYTES > 0 && (CHUNK_BYTES as u64) < DISK_CACHE_BYTES_MAX);
