//! Processes: signals to them, their state, and programs run as another user.

use std::process::Command;

/// A user who owns nothing (`nobody`).
pub const STRANGER: &str = "65534";

/// Runs a program with its output caught. Returns whether it could and did end well.
pub fn succeeds(program: &str, args: &[&str]) -> bool {
    Command::new(program).args(args).output().is_ok_and(|output| output.status.success())
}

/// Sends a signal (`-9`, `-TERM`); false if there is no such process.
pub fn signal(signal: &str, pid: u64) -> bool {
    let pid = pid.to_string();
    let sent = Command::new("kill").args([signal, &pid]).output().expect("kill runs");
    sent.status.success()
}

pub fn is_alive(pid: u64) -> bool {
    // A process that has ended is a zombie until its parent waits for it.
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().starts_with(" Z"))
}

/// The memory that a process holds, in MiB.
pub fn resident_mb(pid: u64) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kb = line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse::<f64>().ok());
    kb.expect("VmRSS of a running process") / 1024.0
}
