//! The two calls to the operating system that the standard library lacks.
//! `unsafe` because they are C; neither touches memory of ours except the
//! zeroed struct `getrusage` fills.
#![allow(unsafe_code)]

/// Niceness of the learner: it takes what completions leave over.
#[cfg(unix)]
const NICENESS: libc::c_int = 10;

/// Lowers this process's priority. False where the system does not let it.
#[cfg(unix)]
pub fn lower_priority() -> bool {
    // 0 is the calling process.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICENESS) == 0 }
}

#[cfg(not(unix))]
pub fn lower_priority() -> bool {
    false
}

/// Largest resident memory of this process so far, in MiB; 0 where unknown.
#[cfg(unix)]
pub fn peak_memory_mb() -> u64 {
    // Linux counts in KiB, macOS in bytes.
    const UNITS_PER_MIB: u64 = if cfg!(target_os = "macos") { 1024 * 1024 } else { 1024 };
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) } != 0 {
        return 0;
    }
    u64::try_from(usage.ru_maxrss).unwrap_or(0) / UNITS_PER_MIB
}

#[cfg(not(unix))]
pub fn peak_memory_mb() -> u64 {
    0
}
