//! The number of threads of a request: one for every core that no other process uses.
//!
//! The engine's threads wait for each other after every matrix, spinning. Where another process
//! holds a core, all threads wait for the one that has no core, and two threads then take several
//! times as long as one.
//!
//! What other processes use is known before a request. Nice ones are not counted, because within a
//! session they give way. Those of other sessions need not: Linux shares the cores among sessions
//! first (`sched_autogroup` in sched(7)). That shows only while a request is computed, as processor
//! time that its threads did not get.

use crate::platform::processor_time;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// The shortest time over which the use of the cores is measured.
const WINDOW: Duration = Duration::from_millis(500);

/// A measurement older than this says nothing about the present.
const STALE: Duration = Duration::from_secs(3);

/// The kernel's unit in `/proc`: `USER_HZ`, 100 on every Linux.
const TICKS_PER_S: f64 = 100.0;

/// The shortest computing time that is judged.
const JUDGED: Duration = Duration::from_millis(100);

/// The cores that threads may lack. What one thread computes alone is in it.
const LACKED: f64 = 0.5;

/// The time after which a number of threads that had too little is tried again.
const RETRY: Duration = Duration::from_secs(10);

pub struct Threads {
    /// The threads on a machine that does nothing else.
    most: usize,
    /// True if the number adapts; false if the user has set it.
    adapts: bool,
    /// The cores that are free by what other processes use.
    free: usize,
    seen: Option<(Instant, Ticks)>,
    /// The cores that the threads had when they had too few, and when that was.
    had: Option<(usize, Instant)>,
    /// What was computed since the last judgement.
    work: Work,
}

/// The time that computing took, and the processor time that this process had meanwhile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    pub time: Duration,
    pub processor: Duration,
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
        Threads { most, adapts, free: most, seen: None, had: None, work: Work::default() }
    }

    /// The number of threads for a request that begins now.
    pub fn now(&mut self) -> usize {
        if self.adapts {
            self.begin(Instant::now(), Ticks::read());
        }
        self.number()
    }

    /// Looks at a request that begins. What was computed on another number of threads says nothing
    /// about this one.
    fn begin(&mut self, now: Instant, ticks: Option<Ticks>) {
        let before = self.number();
        self.look(now, ticks);
        self.retry(now);
        if self.number() != before {
            self.work = Work::default();
        }
    }

    /// Forgets how few cores there were, once that is long ago.
    fn retry(&mut self, now: Instant) {
        self.had = self.had.filter(|(_, since)| now.duration_since(*since) < RETRY);
    }

    fn number(&self) -> usize {
        self.had.map_or(self.free, |(had, _)| had.min(self.free))
    }

    /// Notes what a part of a request took on the present number of threads. Returns the number for
    /// the rest of it.
    pub fn computed(&mut self, work: Work, at: Instant) -> usize {
        let threads = self.number();
        self.work.time += work.time;
        self.work.processor += work.processor;
        if self.work.time < JUDGED {
            return threads;
        }
        let Work { time, processor } = std::mem::take(&mut self.work);
        let cores = processor.as_secs_f64() / time.as_secs_f64();
        if self.adapts && cores + LACKED < threads as f64 {
            self.had = Some(((cores as usize).max(1), at));
        }
        self.number()
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
                self.free = self.most.saturating_sub(others.round() as usize).max(1);
            }
            _ => self.free = self.most,
        }
        self.seen = Some((at, ticks));
    }
}

impl Work {
    /// Measures what a function computes. `None` where the system does not report the processor
    /// time of a process.
    pub fn of<T>(compute: impl FnOnce() -> T) -> (T, Option<Work>) {
        let (begun, before) = (Instant::now(), processor_time());
        let computed = compute();
        let work = before.zip(processor_time()).map(|(before, after)| Work {
            time: begun.elapsed(),
            processor: after.saturating_sub(before),
        });
        (computed, work)
    }
}

impl Ticks {
    /// `None` where there is no `/proc`. What is free then stays the same.
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
            threads.number()
        };
        assert_eq!(look(0, 1000, 0), 4, "nothing is measured yet");
        assert_eq!(look(1000, 1400, 380), 4, "this process used them");
        assert_eq!(look(2000, 1700, 480), 2, "two cores are taken");
        assert_eq!(look(2100, 1700, 480), 2, "too soon to tell");
        assert_eq!(look(3000, 2600, 500), 1, "never none");
        assert_eq!(look(60_000, 9000, 500), 4, "a measurement of a minute ago is stale");
    }

    #[test]
    fn threads_that_had_no_core_are_left_out_for_a_while() {
        let start = Instant::now();
        let ms = Duration::from_millis;
        let mut threads = Threads::new(4, true);
        let mut compute = |time: u64, processor: u64| {
            threads.computed(Work { time: ms(time), processor: ms(processor) }, start)
        };
        assert_eq!(compute(200, 720), 4, "a part of it is computed by one thread alone");
        assert_eq!(compute(60, 60), 4, "too short to tell");
        assert_eq!(compute(60, 240), 2, "of both times together");
        assert_eq!(compute(200, 390), 2);
        assert_eq!(compute(200, 90), 1, "never none");
        assert_eq!(compute(200, 90), 1);
        assert_eq!(compute(90, 90), 1, "too short to tell");
        threads.begin(start + RETRY - ms(1), None);
        assert_eq!(threads.number(), 1);
        threads.begin(start + RETRY, None);
        assert_eq!(threads.number(), 4, "they may be free again");
        let work = Work { time: ms(25), processor: ms(100) };
        assert_eq!(threads.computed(work, start + RETRY), 4, "one thread's time is left out");
        let work = Work { time: ms(80), processor: ms(320) };
        assert_eq!(threads.computed(work, start + RETRY), 4);
    }

    #[test]
    fn a_number_that_the_user_has_set_stays() {
        let mut threads = Threads::new(3, false);
        assert_eq!((threads.now(), threads.now()), (3, 3));
        let (time, processor) = (Duration::from_secs(1), Duration::from_millis(500));
        assert_eq!(threads.computed(Work { time, processor }, Instant::now()), 3);
    }

    #[test]
    fn the_processor_time_of_what_is_computed_is_measured() {
        let (sum, work) = Work::of(|| (0..5_000_000_u64).fold(0, |sum, n| sum ^ (n * n)));
        assert_ne!(sum, 0);
        // Windows does not report it.
        assert!(work.is_none_or(|work| !work.processor.is_zero()), "{work:?}");
    }
}
