//! The differences between operating systems.

/// Returns memory that was freed to the operating system. glibc keeps it otherwise.
#[allow(unsafe_code)]
pub fn return_free_memory() {
    // SAFETY: takes a number, and only touches memory that nobody owns.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::malloc_trim(0)
    };
}
