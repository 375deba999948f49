//! The memory of this process.

/// The resident memory of this process now, in MiB; 0 if it is unknown.
pub fn memory_mb() -> u64 {
    use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System};
    let Ok(own) = sysinfo::get_current_pid() else { return 0 };
    let mut system = System::new();
    let memory = ProcessRefreshKind::nothing().with_memory();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[own]), false, memory);
    system.process(own).map_or(0, |own| own.memory() >> 20)
}
