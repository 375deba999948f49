//! Windows.
#![allow(unsafe_code)]

use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System};
use windows_sys::Win32::System::ProcessStatus::{GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
use windows_sys::Win32::System::Threading::{
    BELOW_NORMAL_PRIORITY_CLASS, GetCurrentProcess, SetPriorityClass,
};

/// Lowers this process's priority. Returns false if the system refuses.
pub fn lower_priority() -> bool {
    // SAFETY: takes numbers; the process is this one.
    unsafe { SetPriorityClass(GetCurrentProcess(), BELOW_NORMAL_PRIORITY_CLASS) != 0 }
}

/// The process that started this one.
pub fn parent() -> Option<u32> {
    let own = sysinfo::get_current_pid().ok()?;
    let mut system = System::new();
    let nothing = ProcessRefreshKind::nothing();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[own]), false, nothing);
    system.process(own)?.parent().map(|parent| parent.as_u32())
}

/// The largest resident memory of this process so far, in MiB; 0 if it is unknown.
pub fn peak_memory_mb() -> u64 {
    let mut counters = PROCESS_MEMORY_COUNTERS::default();
    let size = size_of_val(&counters) as u32;
    // SAFETY: Windows writes at most `size` bytes, which the structure has.
    let is_known = unsafe { GetProcessMemoryInfo(GetCurrentProcess(), &mut counters, size) != 0 };
    if is_known { counters.PeakWorkingSetSize as u64 >> 20 } else { 0 }
}

/// Windows has no limit that counts what a job counts: private memory without the model's file. The
/// job itself checks its memory.
pub fn limit_memory(_: u64) {}
