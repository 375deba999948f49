//! The hash of a term. It is the same on every machine and in every run.

/// FNV-1a's start and factor for 64 bits.
const START: u64 = 0xcbf2_9ce4_8422_2325;
const FACTOR: u64 = 0x0000_0100_0000_01b3;

/// Hashes some bytes. All 64 bits are well mixed, so any of them can be used alone.
pub fn hash(bytes: &[u8]) -> u64 {
    let hash =
        bytes.iter().fold(START, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(FACTOR));
    mix(hash)
}

/// The last step of MurmurHash3. FNV-1a alone leaves the upper bits of short texts alike.
fn mix(mut hash: u64) -> u64 {
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}
