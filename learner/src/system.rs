//! The calls to the operating system that the standard library lacks.
//! `unsafe` because they are C; none touches memory of ours except the structs
//! that `getrusage` and `getrlimit` fill.
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

/// Memory this process may ask for beyond its stated limit before it is refused
/// any: what a limit on resident memory does not see, such as thread stacks.
#[cfg(target_os = "linux")]
const HEADROOM_MB: u64 = 512;

// Neither the sum nor its bytes overflow for any limit that can be set.
#[cfg(target_os = "linux")]
const _: () = assert!(feedback::job::MEMORY_LIMIT_MB_MAX + HEADROOM_MB <= u64::MAX >> 20);

/// The second line behind the checks of a job: past it an allocation fails and
/// the process ends with that message. 0 lifts it. Linux alone counts what it
/// needs (`RLIMIT_DATA` includes private mappings).
#[cfg(target_os = "linux")]
pub fn limit_memory(mb: u64) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    if unsafe { libc::getrlimit(libc::RLIMIT_DATA, &mut limit) } != 0 {
        return;
    }
    let wanted = match mb {
        0 => libc::RLIM_INFINITY,
        mb => mb.saturating_add(HEADROOM_MB).saturating_mul(1 << 20),
    };
    limit.rlim_cur = wanted.min(limit.rlim_max);
    unsafe { libc::setrlimit(libc::RLIMIT_DATA, &limit) };
}

#[cfg(not(target_os = "linux"))]
pub fn limit_memory(_: u64) {}

/// Resident memory of this process now, in MiB; 0 where unknown.
pub fn memory_mb() -> u64 {
    use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System};
    let Ok(own) = sysinfo::get_current_pid() else { return 0 };
    let mut system = System::new();
    let memory = ProcessRefreshKind::nothing().with_memory();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[own]), false, memory);
    system.process(own).map_or(0, |own| own.memory() >> 20)
}
