//! Linux and macOS.

#[cfg(target_os = "linux")]
use crate::limits::MEMORY_HEADROOM_MB;

use memmap2::{Mmap, UncheckedAdvice};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use sysinfo::{CpuRefreshKind, RefreshKind, System};

/// The learner's niceness. Completions are served with niceness 0 and come first.
const NICENESS: i32 = 10;

/// Lowers this process's priority. Returns false if the system refuses.
pub fn lower_priority() -> bool {
    rustix::process::setpriority_process(None, NICENESS).is_ok()
}

/// The process that started this one.
pub fn parent() -> Option<u32> {
    Some(std::os::unix::process::parent_id())
}

/// Fills `bytes` from a place in a file, whoever else reads it at the same time.
///
/// # Errors
/// The file ends before, or cannot be read.
pub fn read_exact_at(file: &File, bytes: &mut [u8], from: u64) -> io::Result<()> {
    file.read_exact_at(bytes, from)
}

/// Takes pages of a mapped file out of this process until they are read again. They stay in the
/// page cache.
#[allow(unsafe_code)]
pub fn release_pages(file: &Mmap, bytes: Range<usize>) {
    // SAFETY: the mapping is read-only and of a file, so that the pages come back as they were.
    let released =
        unsafe { file.unchecked_advise_range(UncheckedAdvice::DontNeed, bytes.start, bytes.len()) };
    // It saves memory and nothing depends on it.
    let _ = released;
}

/// Returns memory that was freed to the system. glibc keeps it otherwise.
#[allow(unsafe_code)]
pub fn return_free_memory() {
    // SAFETY: takes a number, and only touches memory that nobody owns.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::malloc_trim(0)
    };
}

/// The load of the cores.
pub struct CpuLoad {
    pub system: System,
}

impl CpuLoad {
    pub fn start() -> CpuLoad {
        let cpu = RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing().with_cpu_usage());
        CpuLoad { system: System::new_with_specifics(cpu) }
    }

    /// The share of all cores' time that was used since the last call.
    pub fn busy_share(&mut self) -> f32 {
        self.system.refresh_cpu_usage();
        self.system.global_cpu_usage() / 100.0
    }
}

/// The largest resident memory of this process so far, in MiB; 0 if it is unknown.
///
/// `unsafe` because rustix has no `getrusage`.
#[allow(unsafe_code)]
pub fn peak_memory_mb() -> u64 {
    // Linux counts in KiB, macOS in bytes.
    const UNITS_PER_MIB: u64 = if cfg!(target_os = "macos") { 1024 * 1024 } else { 1024 };
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `rusage` consists of integers, so that zeros are a valid value. The call
    // writes to nothing else.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    u64::try_from(usage.ru_maxrss).unwrap_or(0) / UNITS_PER_MIB
}

/// Makes the system refuse this process memory beyond `limit_mb` and
/// [`MEMORY_HEADROOM_MB`]; 0 lifts the limit. An allocation beyond it fails and ends the
/// process. This is the second line of defence: a job checks its memory itself.
///
/// Only Linux counts what is needed here: `RLIMIT_DATA` includes private mappings.
#[cfg(target_os = "linux")]
pub fn limit_memory(limit_mb: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Data).maximum;
    let wanted = limit_mb.saturating_add(MEMORY_HEADROOM_MB).saturating_mul(1 << 20);
    let current = if limit_mb == 0 {
        maximum
    } else {
        Some(maximum.map_or(wanted, |maximum| wanted.min(maximum)))
    };
    // The checks of the job hold without it.
    let _ = setrlimit(Resource::Data, Rlimit { current, maximum });
}

#[cfg(not(target_os = "linux"))]
pub fn limit_memory(_: u64) {}
