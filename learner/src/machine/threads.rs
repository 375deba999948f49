//! The number of threads for a piece of work: that of the cores which other programs leave
//! idle.
//!
//! The load is measured again before every piece of work. An update that begins on an idle
//! machine makes room for a compiler that starts while it runs. The results do not depend
//! on the number of threads.

use super::platform::{CpuLoad, parent};
use parking_lot::Mutex;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate};

/// The load is measured at most once in this time.
const LOAD_CHECK_INTERVAL: Duration = Duration::from_millis(500);

const _: () =
    assert!(LOAD_CHECK_INTERVAL.as_millis() >= sysinfo::MINIMUM_CPU_UPDATE_INTERVAL.as_millis());

pub struct Threads(Mutex<ThreadsState>);

struct ThreadsState {
    cores: usize,
    count: usize,
    /// `None` if the count is fixed.
    load: Option<MachineLoad>,
    pools: HashMap<usize, Arc<ThreadPool>>,
}

struct MachineLoad {
    cpu: CpuLoad,
    /// This process and the daemon that started it. The daemon stops the learner while it
    /// computes, so that the two never need a core at the same time.
    ours: Vec<Pid>,
    checked_at: Instant,
}

impl Threads {
    /// As many threads as other programs leave cores idle, but at least one.
    pub fn adaptive() -> Threads {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let load = MachineLoad {
            cpu: CpuLoad::start(),
            ours: [Some(std::process::id()), parent()]
                .into_iter()
                .flatten()
                .map(Pid::from_u32)
                .collect(),
            checked_at: Instant::now(),
        };
        Threads::new(cores, Some(load))
    }

    pub fn fixed(count: usize) -> Threads {
        Threads::new(count.max(1), None)
    }

    fn new(cores: usize, load: Option<MachineLoad>) -> Threads {
        Threads(Mutex::new(ThreadsState { cores, count: cores, load, pools: HashMap::new() }))
    }

    /// Runs `work` in a pool of threads, and waits for it.
    ///
    /// # Errors
    /// `work` returned an error, or no thread can be started.
    pub fn run<R: Send>(
        &self,
        work: impl FnOnce() -> candle_core::Result<R> + Send,
    ) -> candle_core::Result<R> {
        let pool = self.pool().map_err(candle_core::Error::wrap)?;
        pool.install(work)
    }

    fn pool(&self) -> Result<Arc<ThreadPool>, rayon::ThreadPoolBuildError> {
        let mut state = self.0.lock();
        let state = &mut *state;
        if let Some(load) = &mut state.load
            && load.checked_at.elapsed() >= LOAD_CHECK_INTERVAL
        {
            state.count = free_cores(state.cores, load.busy_with_others(state.cores));
        }
        if let Some(pool) = state.pools.get(&state.count) {
            return Ok(pool.clone());
        }
        let pool = Arc::new(ThreadPoolBuilder::new().num_threads(state.count).build()?);
        state.pools.insert(state.count, pool.clone());
        Ok(pool)
    }
}

/// The number of threads to use when other programs keep `busy` cores busy.
fn free_cores(cores: usize, busy: f32) -> usize {
    ((cores as f32 - busy).round() as usize).clamp(1, cores)
}

impl MachineLoad {
    /// The number of cores that other processes have kept busy since the last measurement.
    fn busy_with_others(&mut self, cores: usize) -> f32 {
        self.checked_at = Instant::now();
        let all = self.cpu.busy_share() * cores as f32;
        self.cpu.system.refresh_processes_specifics(
            ProcessesToUpdate::Some(&self.ours),
            false,
            ProcessRefreshKind::nothing().with_cpu(),
        );
        let usage = |pid: &Pid| self.cpu.system.process(*pid).map_or(0.0, |own| own.cpu_usage());
        let ours = self.ours.iter().map(usage).sum::<f32>() / 100.0;
        (all - ours).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_programs_keep_their_cores_and_one_is_always_left() {
        assert_eq!(free_cores(8, 0.2), 8);
        assert_eq!(free_cores(8, 3.1), 5);
        assert_eq!(free_cores(8, 8.0), 1);
        assert_eq!(free_cores(1, 0.0), 1);
        assert_eq!(free_cores(2, 9.0), 1, "a measurement may be above the number of cores");
    }

    #[test]
    fn work_runs_in_a_pool_of_the_counted_size() {
        let threads = Threads::fixed(3);
        assert_eq!(threads.run(|| Ok(rayon::current_num_threads())).unwrap(), 3);
    }
}
