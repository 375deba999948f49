//! Preemption of the learner: its process is stopped while the engine computes a completion.
//!
//! A low priority is not enough. The engine's threads wait for each other, so a thread that has
//! lost its core to the learner delays them all, and the learner's matrix products evict the
//! engine's weights from the shared caches. A stop by the system (`platform::process`) takes effect
//! within microseconds and needs no cooperation. A learner that is orphaned while it is stopped
//! ends.

use host::platform::process;
use parking_lot::Mutex;
use std::time::{Duration, Instant};

#[derive(Default)]
pub struct LearnerPreemption(Mutex<State>);

#[derive(Default)]
struct State {
    /// The process id of the learner, which has not been waited for. So the id belongs to no other
    /// process.
    learner: Option<u32>,
    /// The engines that compute.
    busy: usize,
    stopped_at: Option<Instant>,
    stopped: Duration,
}

impl LearnerPreemption {
    /// The learner with this process id works until [`LearnerPreemption::detach`].
    pub fn attach(&self, learner: u32) {
        let mut state = self.0.lock();
        state.learner = Some(learner);
        state.update();
    }

    /// Lets the learner run freely. It must be called before the learner is waited for, and when
    /// its job is done.
    pub fn detach(&self) {
        let mut state = self.0.lock();
        state.resume();
        state.learner = None;
    }

    /// Notes that an engine begins or ends to compute.
    pub fn set_busy(&self, is_busy: bool) {
        let mut state = self.0.lock();
        state.busy = if is_busy { state.busy + 1 } else { state.busy.saturating_sub(1) };
        state.update();
    }

    /// The total time for which learners were stopped.
    pub fn stopped(&self) -> Duration {
        let state = self.0.lock();
        state.stopped + state.stopped_at.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

impl State {
    fn update(&mut self) {
        if self.busy == 0 {
            self.resume();
        } else if let Some(learner) = self.learner
            && self.stopped_at.is_none()
            // Otherwise the learner runs on at its low priority.
            && process::stop(learner)
        {
            self.stopped_at = Some(Instant::now());
        }
    }

    fn resume(&mut self) {
        if let (Some(since), Some(learner)) = (self.stopped_at.take(), self.learner) {
            self.stopped += since.elapsed();
            process::resume(learner);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::disallowed_types, reason = "the processes are the test's own")]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn child() -> Child {
        Command::new("sleep").arg("60").spawn().unwrap()
    }

    /// Returns whether the state letter in /proc is T (stopped).
    fn is_stopped(child: &Child) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        stat.rsplit(") ").next().unwrap().starts_with('T')
    }

    fn wait_until(child: &Child, stopped: bool) {
        let limit = Instant::now() + Duration::from_secs(60);
        while is_stopped(child) != stopped {
            assert!(Instant::now() < limit, "stopped is still {}", !stopped);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn the_learner_is_stopped_exactly_while_the_engine_computes() {
        let preemption = LearnerPreemption::default();
        let mut learner = child();
        preemption.set_busy(true);
        preemption.attach(learner.id());
        wait_until(&learner, true);
        preemption.set_busy(false);
        wait_until(&learner, false);
        preemption.set_busy(true);
        wait_until(&learner, true);
        preemption.detach();
        wait_until(&learner, false);
        let stopped = preemption.stopped();
        assert!(stopped > Duration::ZERO);
        preemption.set_busy(false);
        preemption.set_busy(true);
        assert!(!is_stopped(&learner), "a detached learner is not stopped");
        assert_eq!(preemption.stopped(), stopped);
        learner.kill().unwrap();
        learner.wait().unwrap();
    }
}
