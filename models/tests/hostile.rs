//! Damaged model and adapter files are read or refused, within bounded memory. These are
//! the properties of the fuzz targets in fuzz/, for machines that cannot run those.

use models::adapter::{LoraAdapter, LoraPair};
use models::gguf::Gguf;
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

const ROUNDS: u64 = 4_000;

/// The largest allocation that reading a file may make: this many times the file's length,
/// because a metadata value is larger in memory than on disk, and this much more.
const ALLOCATION_TIMES_MAX: usize = 64;
const ALLOCATION_EXTRA_BYTES: usize = 1 << 20;

/// An allocator that remembers the largest allocation.
struct Watching;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// Allocations can only be observed in a global allocator.
#[allow(unsafe_code)]
// SAFETY: every call is passed on to the system allocator unchanged.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.fetch_max(size, Ordering::Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

/// A linear congruential generator (Knuth's MMIX).
fn draw(state: &mut u64, limit: usize) -> usize {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 33) as usize % limit.max(1)
}

fn sample(path: &Path) {
    let pair = |name: &str| LoraPair {
        name: name.into(),
        rows_out: 4,
        rows_in: 3,
        a: vec![0.5; 6],
        b: vec![0.5; 8],
    };
    let adapter = LoraAdapter {
        architecture: "llama".into(),
        base_sha256: "0".repeat(64),
        rank: 2,
        shared_rank: 0,
        alpha: 4.0,
        invocation: vec![1, 2],
        pairs: vec![pair("blk.0.attn_q.weight"), pair("blk.1.attn_q.weight")],
    };
    adapter.write(path).unwrap();
}

#[test]
fn damaged_files_are_read_or_refused_within_bounded_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gguf");
    sample(&path);
    let whole = std::fs::read(&path).unwrap();
    let (mut read, mut refused) = (0, 0);
    for seed in 0..ROUNDS {
        let mut state = seed;
        let mut bytes = whole.clone();
        for _ in 0..1 + draw(&mut state, 3) {
            let at = draw(&mut state, bytes.len());
            match draw(&mut state, 5) {
                0 => bytes.truncate(at),
                // A length has eight bytes. Some of these are huge, and some overflow.
                1 | 2 if at + 8 <= bytes.len() => {
                    let lie = [u64::MAX, 1 << 63, 1 << 40, 1 << 31, 0][draw(&mut state, 5)];
                    bytes[at..at + 8].copy_from_slice(&lie.to_le_bytes());
                }
                _ if bytes.is_empty() => {}
                3 => bytes[at] ^= 1 << draw(&mut state, 8),
                _ => bytes[at] = draw(&mut state, 256) as u8,
            }
        }
        std::fs::write(&path, &bytes).unwrap();
        LARGEST.store(0, Ordering::Relaxed);
        let gguf = Gguf::open(&path).map_err(|error| error.to_string());
        let adapter = LoraAdapter::read(&path).map_err(|error| error.to_string());
        let largest = LARGEST.load(Ordering::Relaxed);
        assert!(
            largest <= bytes.len() * ALLOCATION_TIMES_MAX + ALLOCATION_EXTRA_BYTES,
            "seed {seed}: {largest} bytes"
        );
        for error in gguf.err().iter().chain(adapter.as_ref().err()) {
            assert!(error.contains("a.gguf") && !error.contains('\n'), "seed {seed}: {error}");
        }
        match adapter {
            Ok(_) => read += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(read > 0 && refused > ROUNDS / 4, "{read} read, {refused} refused");
}
