//! The number of threads of a request: one for every core that no other process uses.
//!
//! The engine's threads wait for each other after every matrix, spinning. Where another process
//! holds a core, all threads wait for the one that has no core, and two threads then take several
//! times as long as one.

use std::str::FromStr;
use std::time::{Duration, Instant};

/// The shortest time over which the use of the cores is measured.
const WINDOW: Duration = Duration::from_millis(500);

/// A measurement older than this tells nothing about the present.
const STALE: Duration = Duration::from_secs(3);

/// The kernel's unit in `/proc`: `USER_HZ`, 100 on every Linux.
const TICKS_PER_S: f64 = 100.0;

pub struct Threads {
    /// The threads on a machine that does nothing else.
    most: usize,
    /// True if the number adapts; false if the user has set it.
    adapts: bool,
    now: usize,
    seen: Option<(Instant, Ticks)>,
}

/// Processor time since the machine started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    /// The ticks of all processes. Nice ones, such as the learner, give way and are left out,
    /// unless this thread is nice too.
    all: u64,
    /// The ticks of this process.
    own: u64,
}

impl Threads {
    pub fn new(most: usize, adapts: bool) -> Threads {
        Threads { most, adapts, now: most, seen: None }
    }

    /// The number of threads for a request that begins now.
    pub fn now(&mut self) -> usize {
        if self.adapts {
            self.look(Instant::now(), Ticks::read());
        }
        self.now
    }

    fn look(&mut self, at: Instant, ticks: Option<Ticks>) {
        let Some(ticks) = ticks else { return };
        let since = self.seen.map(|(seen, _)| at.duration_since(seen));
        match (since, self.seen) {
            (Some(since), _) if since < WINDOW => return,
            (Some(since), Some((_, before))) if since <= STALE => {
                let all = ticks.all.saturating_sub(before.all) as f64;
                let own = ticks.own.saturating_sub(before.own) as f64;
                let others = (all - own).max(0.0) / TICKS_PER_S / since.as_secs_f64();
                self.now = self.most.saturating_sub(others.round() as usize).max(1);
            }
            _ => self.now = self.most,
        }
        self.seen = Some((at, ticks));
    }
}

impl Ticks {
    /// `None` where there is no `/proc`. The number of threads then stays the same.
    fn read() -> Option<Ticks> {
        let thread = std::fs::read_to_string("/proc/thread-self/stat").ok()?;
        let is_nice = field::<i64>(&thread, NICENESS)? > 0;
        let process = std::fs::read_to_string("/proc/self/stat").ok()?;
        Some(Ticks {
            all: busy(&std::fs::read_to_string("/proc/stat").ok()?, is_nice)?,
            own: field::<u64>(&process, UTIME)? + field::<u64>(&process, STIME)?,
        })
    }
}

/// user + system + irq + softirq of the first line of `/proc/stat` (proc(5)), and nice if that
/// counts: `cpu user nice system idle iowait irq softirq …`.
fn busy(stat: &str, with_nice: bool) -> Option<u64> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|field| field.parse().ok()).collect();
    let nice = if with_nice { *ticks.get(1)? } else { 0 };
    let others: Option<u64> = [0, 2, 5, 6].into_iter().map(|field| ticks.get(field).copied()).sum();
    Some(others? + nice)
}

/// Fields of `/proc/self/stat`, counted from behind the name: fields 14, 15 and 19 of proc(5).
const UTIME: usize = 11;
const STIME: usize = 12;
const NICENESS: usize = 16;

/// A field of `/proc/self/stat`. The name, which stands before them all, may hold anything.
fn field<T: FromStr>(stat: &str, index: usize) -> Option<T> {
    stat.get(stat.rfind(')')? + 1..)?.split_whitespace().nth(index)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_kernel_are_parsed() {
        let cpu = "cpu  100 7 30 9000 11 2 3 0 0 0\ncpu0 1 2 3\n";
        assert_eq!((busy(cpu, false), busy(cpu, true)), (Some(135), Some(142)));
        let stat = "77 (hone (serve) S 1 2 3 4 5 6 7 8 9 10 40 2 0 0 20 -5 1";
        assert_eq!((field(stat, UTIME), field(stat, STIME)), (Some(40), Some(2)));
        assert_eq!(field(stat, NICENESS), Some(-5));
        assert_eq!((busy("intr 1", false), field::<u64>("77 hone", UTIME)), (None, None));
    }

    #[test]
    fn cores_that_other_processes_use_get_no_thread() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut threads = Threads::new(4, true);
        let mut look = |ms: u64, all: u64, own: u64| {
            threads.look(at(ms), Some(Ticks { all, own }));
            threads.now
        };
        assert_eq!(look(0, 1000, 0), 4, "nothing is measured yet");
        assert_eq!(look(1000, 1400, 380), 4, "this process used them");
        assert_eq!(look(2000, 1700, 480), 2, "two cores are taken");
        assert_eq!(look(2100, 1700, 480), 2, "too soon to tell");
        assert_eq!(look(3000, 2600, 500), 1, "never none");
        assert_eq!(look(60_000, 9000, 500), 4, "a measurement of a minute ago is stale");
    }

    #[test]
    fn a_number_that_the_user_has_set_stays() {
        let mut threads = Threads::new(3, false);
        assert_eq!((threads.now(), threads.now()), (3, 3));
    }
}
