//! The differences between operating systems.

use std::time::Duration;

/// Returns memory that was freed to the operating system. glibc keeps it otherwise.
#[allow(unsafe_code)]
pub fn return_free_memory() {
    // SAFETY: takes a number, and only touches memory that nobody owns.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::malloc_trim(0)
    };
}

/// Returns the processor time of all threads of this process so far. `None` where the system does
/// not report it.
#[allow(unsafe_code)]
pub fn processor_time() -> Option<Duration> {
    #[cfg(unix)]
    {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: it writes the time into a place that outlives the call.
        let code = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
        (code == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }
    #[cfg(not(unix))]
    None
}
