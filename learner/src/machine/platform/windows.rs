//! Windows.
#![allow(unsafe_code)]

use memmap2::Mmap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::windows::fs::FileExt;
use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System};
use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::System::ProcessStatus::{GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
use windows_sys::Win32::System::Threading::{
    BELOW_NORMAL_PRIORITY_CLASS, GetCurrentProcess, GetSystemTimes, SetPriorityClass,
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

/// Fills `bytes` from a place in a file, whoever else reads it at the same time.
///
/// # Errors
/// The file ends before, or cannot be read.
pub fn read_exact_at(file: &File, bytes: &mut [u8], from: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match file.seek_read(&mut bytes[done..], from + done as u64)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => done += read,
        }
    }
    Ok(())
}

/// Windows has no such call for a part of a mapped file. It takes the pages back when memory runs
/// short.
pub fn release_pages(_: &Mmap, _: Range<usize>) {}

/// Windows gets freed memory back without being asked.
pub fn return_free_memory() {}

/// The load of the cores. sysinfo asks the performance counters for that, which a user can switch
/// off, and panics without them.
pub struct CpuLoad {
    pub system: System,
    before: CpuTimes,
}

/// The time of all cores since the system started, in units of 100 ns.
#[derive(Clone, Copy)]
struct CpuTimes {
    idle: u64,
    all: u64,
}

impl CpuTimes {
    /// Zeros if the system does not report them.
    fn now() -> CpuTimes {
        let [mut idle, mut kernel, mut user] = [FILETIME::default(); 3];
        // SAFETY: Windows writes to the three structures alone.
        unsafe { GetSystemTimes(&mut idle, &mut kernel, &mut user) };
        let ticks =
            |time: FILETIME| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
        // The time of the kernel includes the idle time.
        CpuTimes { idle: ticks(idle), all: ticks(kernel) + ticks(user) }
    }
}

impl CpuLoad {
    pub fn start() -> CpuLoad {
        CpuLoad { system: System::new(), before: CpuTimes::now() }
    }

    /// The share of all cores' time that was used since the last call.
    pub fn busy_share(&mut self) -> f32 {
        let now = CpuTimes::now();
        let idle = now.idle.saturating_sub(self.before.idle);
        let all = now.all.saturating_sub(self.before.all);
        self.before = now;
        if all == 0 { 0.0 } else { all.saturating_sub(idle) as f32 / all as f32 }
    }
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
