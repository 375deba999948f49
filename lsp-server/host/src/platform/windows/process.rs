//! Processes: how they are started, stopped, continued and ended.
#![allow(clippy::disallowed_types, reason = "it prepares commands that others make")]
#![allow(unsafe_code)]

use super::check;
use std::io;
use std::mem::zeroed;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::os::windows::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::ptr::null;
use tokio::process::Child;
use tokio::signal::windows::{CtrlBreak, CtrlC, CtrlShutdown, ctrl_break, ctrl_c, ctrl_shutdown};
use windows_sys::Win32::Foundation::{HANDLE, HANDLE_FLAG_INHERIT, NTSTATUS, SetHandleInformation};
use windows_sys::Win32::System::Console::{
    GetStdHandle, STD_ERROR_HANDLE, STD_INPUT_HANDLE, STD_OUTPUT_HANDLE,
};
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation,
    SetInformationJobObject,
};
use windows_sys::Win32::System::Threading::{
    BELOW_NORMAL_PRIORITY_CLASS, CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW, GetCurrentThread,
    OpenProcess, PROCESS_SUSPEND_RESUME, SetThreadPriority, THREAD_PRIORITY_LOWEST,
};

/// The requests of the system or the user that this process end.
pub struct Termination {
    ctrl_c: CtrlC,
    ctrl_break: CtrlBreak,
    shutdown: CtrlShutdown,
}

impl Termination {
    pub fn listen() -> io::Result<Termination> {
        Ok(Termination { ctrl_c: ctrl_c()?, ctrl_break: ctrl_break()?, shutdown: ctrl_shutdown()? })
    }

    pub async fn requested(&mut self) {
        tokio::select! {
            _ = self.ctrl_c.recv() => {}
            _ = self.ctrl_break.recv() => {}
            _ = self.shutdown.recv() => {}
        }
    }
}

/// Returns the path that starts this program again. The file of a running program stays where it
/// is.
pub fn own_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// Returns the signal that has ended a process. This system has none.
pub fn signal(_status: ExitStatus) -> Option<i32> {
    None
}

/// Lets the program that `command` starts outlive this process, without a window. Ctrl-C in this
/// process's console does not reach it.
///
/// A child inherits all handles that may be inherited. If it had those of this process's standard
/// streams, whoever reads this process's output would wait for the end of the child.
pub fn detach(command: &mut Command) {
    for stream in [STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE] {
        // SAFETY: both calls take any value, and fail where there is no such stream.
        unsafe { SetHandleInformation(GetStdHandle(stream), HANDLE_FLAG_INHERIT, 0) };
    }
    command.creation_flags(CREATE_NO_WINDOW | CREATE_NEW_PROCESS_GROUP);
}

/// Prepares a child that [`stop`] is used on.
pub fn prepare_worker(command: &mut Command) {
    command.creation_flags(CREATE_NO_WINDOW | BELOW_NORMAL_PRIORITY_CLASS);
}

/// Ends a worker when this process ends, however that happens: Windows closes the job, and a job
/// that is closed ends its processes, also those that are stopped.
pub struct EndWithParent {
    _job: OwnedHandle,
}

impl EndWithParent {
    pub fn of(worker: &Child) -> io::Result<EndWithParent> {
        let process = worker.raw_handle().ok_or(io::ErrorKind::NotFound)?;
        // SAFETY: a job without a name needs no arguments.
        let job = unsafe { CreateJobObjectW(null(), null()) };
        check(i32::from(!job.is_null()))?;
        // SAFETY: the call has opened it for us.
        let job = unsafe { OwnedHandle::from_raw_handle(job) };
        // SAFETY: the structure consists of numbers, so that zeros are a valid value.
        let mut limits: JOBOBJECT_EXTENDED_LIMIT_INFORMATION = unsafe { zeroed() };
        limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
        // SAFETY: the structure is that of this class, and outlives the call.
        check(unsafe {
            SetInformationJobObject(
                job.as_raw_handle(),
                JobObjectExtendedLimitInformation,
                (&raw const limits).cast(),
                size_of_val(&limits) as u32,
            )
        })?;
        // SAFETY: both handles are open.
        check(unsafe { AssignProcessToJobObject(job.as_raw_handle(), process) })?;
        Ok(EndWithParent { _job: job })
    }
}

#[link(name = "ntdll")]
unsafe extern "system" {
    fn NtSuspendProcess(process: HANDLE) -> NTSTATUS;
    fn NtResumeProcess(process: HANDLE) -> NTSTATUS;
}

/// Stops a child, which has not been waited for; false if that fails. Windows documents only how
/// one thread is stopped. `NtSuspendProcess` stops all of them, and also those that would start
/// meanwhile; debuggers have used it since Windows XP.
pub fn stop(child: u32) -> bool {
    // SAFETY: takes an open handle.
    with_process(child, |process| unsafe { NtSuspendProcess(process) })
}

/// Continues a stopped child.
pub fn resume(child: u32) -> bool {
    // SAFETY: takes an open handle.
    with_process(child, |process| unsafe { NtResumeProcess(process) })
}

fn with_process(child: u32, call: impl Fn(HANDLE) -> NTSTATUS) -> bool {
    // SAFETY: takes numbers.
    let process = unsafe { OpenProcess(PROCESS_SUSPEND_RESUME, 0, child) };
    if process.is_null() {
        return false;
    }
    // SAFETY: the call has opened it for us.
    let process = unsafe { OwnedHandle::from_raw_handle(process) };
    call(process.as_raw_handle()) >= 0
}

/// Runs another program, and ends this one with the other's status. Returns only if that fails.
pub fn replace_by(mut command: Command) -> io::Error {
    match command.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(error) => error,
    }
}

/// Makes everything else on the machine come before this thread.
pub fn lower_thread_priority() {
    // SAFETY: takes numbers; the thread is this one.
    unsafe { SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_LOWEST) };
}

/// Returns the name of the program that listens on a TCP port of this machine. This system does not
/// report it without a walk through its tables.
pub fn listener_on(_port: u16) -> Option<String> {
    None
}
