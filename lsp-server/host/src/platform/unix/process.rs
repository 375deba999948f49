//! Processes: how they are started, stopped, continued and ended.
#![allow(clippy::disallowed_types, reason = "it prepares commands that others make")]

use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use tokio::process::Child;
use tokio::signal::unix::{SignalKind, signal as listen};

/// The niceness of threads that work in the background.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 19;

/// The requests of the system or the user that this process end.
pub struct Termination {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Termination {
    pub fn listen() -> io::Result<Termination> {
        Ok(Termination {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    pub async fn requested(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// What Linux puts behind the path of a running program whose file was removed or replaced.
const REMOVED: &[u8] = b" (deleted)";

/// Where Linux keeps the running program, whatever became of its file.
const RUNNING: &str = "/proc/self/exe";

/// Returns the path that starts this program again. If its file was replaced since, that is the new
/// program at the same path.
pub fn own_program() -> io::Result<PathBuf> {
    std::env::current_exe().map(startable)
}

fn startable(program: PathBuf) -> PathBuf {
    if program.exists() {
        return program;
    }
    let Some(before) = program.as_os_str().as_bytes().strip_suffix(REMOVED) else { return program };
    let successor = Path::new(OsStr::from_bytes(before));
    if successor.exists() { successor.to_owned() } else { RUNNING.into() }
}

/// Returns the signal that has ended a process, if one has.
pub fn signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// Lets the program that `command` starts outlive this process. Ctrl-C in this process's terminal
/// does not reach it.
pub fn detach(command: &mut Command) {
    command.process_group(0);
}

/// Prepares a child that [`stop`] is used on. It is a process group of its own: if it is orphaned
/// while it is stopped, the kernel sends it SIGHUP and SIGCONT (POSIX, `_exit`), and it ends.
pub fn prepare_worker(command: &mut Command) {
    command.process_group(0);
}

/// What ends a worker when this process ends. Here the kernel and the end of the worker's stdin do.
pub struct EndWithParent;

impl EndWithParent {
    pub fn of(_worker: &Child) -> io::Result<EndWithParent> {
        Ok(EndWithParent)
    }
}

/// Stops a child, which has not been waited for; false if that fails.
pub fn stop(child: u32) -> bool {
    send(child, Signal::STOP)
}

/// Continues a stopped child.
pub fn resume(child: u32) -> bool {
    send(child, Signal::CONT)
}

fn send(child: u32, signal: Signal) -> bool {
    let Some(pid) = i32::try_from(child).ok().and_then(Pid::from_raw) else { return false };
    kill_process(pid, signal).is_ok()
}

/// Runs another program in the place of this one. Returns only if that fails.
pub fn replace_by(mut command: Command) -> io::Error {
    command.exec()
}

/// Makes everything else on the machine come before this thread. On macOS a priority holds for a
/// whole process, so nothing is done there.
pub fn lower_thread_priority() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, NICENESS);
}

/// Returns the name and the number of the program that listens on a TCP port of this machine, if
/// the system reports it.
#[cfg(target_os = "linux")]
pub fn listener_on(port: u16) -> Option<String> {
    /// The state of a socket that listens, as the kernel writes it.
    const LISTENS: &str = "0A";
    let ours = format!(":{port:04X}");
    let sockets = ["/proc/net/tcp", "/proc/net/tcp6"].map(std::fs::read_to_string);
    let links: Vec<String> = sockets
        .iter()
        .flatten()
        .flat_map(|table| table.lines())
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|fields| fields.len() > 9 && fields[1].ends_with(&ours) && fields[3] == LISTENS)
        .map(|fields| format!("socket:[{}]", fields[9]))
        .collect();
    let holds = |files: std::fs::ReadDir| {
        let mut links_of = files.flatten().filter_map(|file| file.path().read_link().ok());
        links_of.any(|link| links.iter().any(|of| link.as_os_str() == of.as_str()))
    };
    std::fs::read_dir("/proc").ok()?.flatten().find_map(|process| {
        let id: u32 = process.file_name().to_str()?.parse().ok()?;
        holds(std::fs::read_dir(process.path().join("fd")).ok()?).then_some(())?;
        let name = std::fs::read_to_string(process.path().join("comm")).ok()?;
        Some(format!("`{}` (process {id})", name.trim_end()))
    })
}

/// This system does not report it.
#[cfg(not(target_os = "linux"))]
pub fn listener_on(_port: u16) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_whose_file_is_gone_is_started_from_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("hone");
        let removed = folder.path().join("hone (deleted)");
        assert_eq!(startable(removed.clone()), Path::new(RUNNING), "nothing is at its path");
        std::fs::write(&program, "a newer program").unwrap();
        assert_eq!(startable(removed.clone()), program);
        std::fs::write(&removed, "a program of this name").unwrap();
        assert_eq!(startable(removed.clone()), removed);
    }
}
