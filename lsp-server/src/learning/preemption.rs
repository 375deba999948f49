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
pub struct LearnerPreemption(Mutex<State>);

#[derive(Default)]
struct State {
    /// A process that was not waited for yet: its number is nobody else's.
    learner: Option<u32>,
    is_busy: bool,
    stopped_at: Option<Instant>,
    stopped: Duration,
}

impl LearnerPreemption {
    /// The learner of this number works, until [`LearnerPreemption::detach`].
    pub fn attach(&self, learner: u32) {
        let mut state = self.0.lock();
        state.learner = Some(learner);
        state.update();
    }

    /// Before the learner is waited for, and when its work is done.
    pub fn detach(&self) {
        let mut state = self.0.lock();
        state.resume();
        state.learner = None;
    }

    /// The engine begins, or ends, to compute.
    pub fn set_busy(&self, is_busy: bool) {
        let mut state = self.0.lock();
        state.is_busy = is_busy;
        state.update();
    }

    /// How long learners were stopped, all together.
    pub fn stopped(&self) -> Duration {
        let state = self.0.lock();
        state.stopped + state.stopped_at.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

impl State {
    fn update(&mut self) {
        if !self.is_busy {
            self.resume();
        } else if let Some(learner) = self.learner
            && self.stopped_at.is_none()
            && signal(learner, Signal::Stop)
        {
            self.stopped_at = Some(Instant::now());
        }
    }

    fn resume(&mut self) {
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
        let preemption = LearnerPreemption::default();
        let mut learner = child();
        preemption.set_busy(true);
        preemption.attach(learner.id());
        becomes(&learner, true);
        preemption.set_busy(false);
        becomes(&learner, false);
        preemption.set_busy(true);
        becomes(&learner, true);
        preemption.detach();
        becomes(&learner, false);
        let stopped = preemption.stopped();
        assert!(stopped > Duration::ZERO);
        preemption.set_busy(false);
        preemption.set_busy(true);
        assert!(!is_stopped(&learner), "it is not ours any more");
        assert_eq!(preemption.stopped(), stopped);
        learner.kill().unwrap();
        learner.wait().unwrap();
    }
}
