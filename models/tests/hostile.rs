//! Model and adapter files come from elsewhere: no length in them is believed.
//! The same properties as in fuzz/, for machines without it.

use models::adapter::{LoraAdapter, LoraPair};
use models::gguf::Gguf;
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

const ROUNDS: u64 = 4_000;

/// What reading a file may ask for at once, in times its length and beside that: a
/// metadata value is larger in memory than on disk.
const MOST_TIMES: usize = 64;
const MOST_BESIDE: usize = 1 << 20;

/// Remembers the largest piece of memory that anybody asked for.
struct Watching;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// Counting what is asked for is possible at this place alone.
#[allow(unsafe_code)]
// SAFETY: every call is the system allocator's, unchanged.
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
                // Lengths are eight bytes: huge ones, and ones that overflow.
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
        assert!(largest <= bytes.len() * MOST_TIMES + MOST_BESIDE, "seed {seed}: {largest} bytes");
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
