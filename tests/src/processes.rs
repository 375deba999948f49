//! Processes of others: whether they live, and how they die.

use std::process::Command;

/// Sends a signal (`-9`, `-TERM`); false if there is no such process any more.
pub fn signal(signal: &str, pid: u64) -> bool {
    let pid = pid.to_string();
    let sent = Command::new("kill").args([signal, &pid]).output().expect("kill runs");
    sent.status.success()
}

pub fn is_alive(pid: u64) -> bool {
    // A daemon that ended is a zombie until its parent asks.
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().starts_with(" Z"))
}

/// Memory that is held now, in MiB.
pub fn resident_mb(pid: u64) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kb = line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse::<f64>().ok());
    kb.expect("a process says how much it holds") / 1024.0
}
