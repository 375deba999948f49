//! Completions go first: while the engine computes one, the learner's process
//! is stopped.
//!
//! Being nice is not enough. The engine's threads wait for each other, so one
//! that has lost its core to the learner holds up all; and the learner's
//! products evict the engine's weights from the caches they share. SIGSTOP takes
//! effect within microseconds and needs nothing of the learner. One that is
//! orphaned while it is stopped gets SIGHUP and SIGCONT from the kernel, being a
//! process group of its own (POSIX, `_exit`), and ends.

use parking_lot::Mutex;
use std::time::{Duration, Instant};

#[derive(Default)]
pub struct Leash(Mutex<State>);

#[derive(Default)]
struct State {
    /// A process that was not waited for yet: its number is nobody else's.
    learner: Option<u32>,
    computing: bool,
    stopped_at: Option<Instant>,
    stopped: Duration,
}

impl Leash {
    /// The learner of this number works, until [`Leash::let_go`].
    pub fn take(&self, learner: u32) {
        let mut state = self.0.lock();
        state.learner = Some(learner);
        state.act();
    }

    /// Before the learner is waited for, and when its work is done.
    pub fn let_go(&self) {
        let mut state = self.0.lock();
        state.go_on();
        state.learner = None;
    }

    /// The engine begins, or ends, to compute.
    pub fn computing(&self, yes: bool) {
        let mut state = self.0.lock();
        state.computing = yes;
        state.act();
    }

    /// How long learners were stopped, all together.
    pub fn stopped(&self) -> Duration {
        let state = self.0.lock();
        state.stopped + state.stopped_at.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

impl State {
    fn act(&mut self) {
        if !self.computing {
            self.go_on();
        } else if let Some(learner) = self.learner
            && self.stopped_at.is_none()
            && signal(learner, Signal::Stop)
        {
            self.stopped_at = Some(Instant::now());
        }
    }

    fn go_on(&mut self) {
        if let (Some(since), Some(learner)) = (self.stopped_at.take(), self.learner) {
            self.stopped += since.elapsed();
            signal(learner, Signal::Continue);
        }
    }
}

enum Signal {
    Stop,
    Continue,
}

/// False where it cannot be sent: the learner then runs on, at its low priority.
#[cfg(unix)]
fn signal(process: u32, signal: Signal) -> bool {
    use rustix::process::{Pid, Signal as Posix, kill_process};
    let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) else { return false };
    let posix = match signal {
        Signal::Stop => Posix::STOP,
        Signal::Continue => Posix::CONT,
    };
    kill_process(pid, posix).is_ok()
}

#[cfg(not(unix))]
fn signal(_: u32, _: Signal) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn child() -> Child {
        Command::new("sleep").arg("60").spawn().unwrap()
    }

    /// The state letter of /proc: S sleeps, T is stopped.
    fn is_stopped(child: &Child) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        stat.rsplit(") ").next().unwrap().starts_with('T')
    }

    fn becomes(child: &Child, stopped: bool) {
        let limit = Instant::now() + Duration::from_secs(10);
        while is_stopped(child) != stopped {
            assert!(Instant::now() < limit, "stopped is still {}", !stopped);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn the_learner_stands_still_exactly_while_the_engine_computes() {
        let leash = Leash::default();
        let mut learner = child();
        leash.computing(true);
        leash.take(learner.id());
        becomes(&learner, true);
        leash.computing(false);
        becomes(&learner, false);
        leash.computing(true);
        becomes(&learner, true);
        leash.let_go();
        becomes(&learner, false);
        let stopped = leash.stopped();
        assert!(stopped > Duration::ZERO);
        leash.computing(false);
        leash.computing(true);
        assert!(!is_stopped(&learner), "it is not ours any more");
        assert_eq!(leash.stopped(), stopped);
        learner.kill().unwrap();
        learner.wait().unwrap();
    }
}
