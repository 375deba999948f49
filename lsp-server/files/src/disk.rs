//! Waits for the disk only for so long. A disk that does not answer (a network drive, a device that
//! sleeps) keeps the thread that asked it, which is left behind, and nobody else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// Threads that may wait for the disk.
#[derive(Debug)]
pub struct Disk {
    waiting: Arc<AtomicUsize>,
    /// The most threads at a time. Beyond that the disk counts as one that does not answer.
    threads_max: usize,
}

/// Gives a thread's place back, however it ends.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Disk {
    pub fn new(threads_max: usize) -> Disk {
        Disk { waiting: Arc::default(), threads_max }
    }

    /// Returns what `ask` returns, or nothing if that takes longer.
    pub fn ask<T: Send + 'static>(
        &self,
        limit: Duration,
        ask: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = mpsc::sync_channel(1);
        // Nobody listens after the limit.
        self.start(move || drop(sender.send(ask())))?;
        receiver.recv_timeout(limit).ok()
    }

    /// Returns one after the other what `find` hands over, until the time is over. `find` is told
    /// by the result of each call whether anybody still wants more.
    pub fn find<T: Send + 'static>(
        &self,
        until: Instant,
        ahead_max: usize,
        find: impl FnOnce(&mut dyn FnMut(T) -> bool) + Send + 'static,
    ) -> Found<T> {
        let (sender, receiver) = mpsc::sync_channel(ahead_max);
        let started = self.start(move || find(&mut |found| sender.send(found).is_ok()));
        Found { receiver: started.map(|()| receiver), until }
    }

    /// Runs this on another thread. Returns nothing if too many wait for the disk already.
    pub fn start(&self, run: impl FnOnce() + Send + 'static) -> Option<()> {
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let place = Place(self.waiting.clone());
        if before >= self.threads_max {
            return None;
        }
        let thread = std::thread::Builder::new().name("hone-disk".into());
        let run = move || {
            let _place = place;
            run();
        };
        thread.spawn(run).map(drop).ok()
    }
}

/// What is found on the disk until the time is over.
#[derive(Debug)]
pub struct Found<T> {
    receiver: Option<Receiver<T>>,
    until: Instant,
}

impl<T> Iterator for Found<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let left = self.until.saturating_duration_since(Instant::now());
        self.receiver.as_ref()?.recv_timeout(left).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_disk_that_does_not_answer_keeps_nobody_but_its_own_thread() {
        let disk = Disk::new(2);
        let (answer, answers) = mpsc::channel::<()>();
        assert_eq!(disk.ask(Duration::ZERO, move || answers.recv()), None);
        assert_eq!(disk.ask(LONG, || 1), Some(1), "another thread asks meanwhile");
        drop(answer);
    }

    #[test]
    fn there_are_not_more_threads_than_the_limit() {
        let disk = Disk::new(1);
        let (answer, answers) = mpsc::channel::<()>();
        assert_eq!(disk.ask(Duration::ZERO, move || answers.recv()), None);
        assert_eq!(disk.ask(LONG, || 1), None, "the only thread still waits");
        drop(answer);
        // It ends soon after; each attempt that comes too early returns at once.
        while disk.ask(LONG, || 1).is_none() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_is_found_comes_until_the_time_is_over() {
        let disk = Disk::new(1);
        let (proceed, wait) = mpsc::channel::<()>();
        let (ended, end) = mpsc::channel();
        let mut found = disk.find(Instant::now() + LONG, 0, move |hand_over| {
            let wanted = (hand_over(1), hand_over(2));
            let _ = wait.recv();
            ended.send((wanted, hand_over(3))).unwrap();
        });
        assert_eq!((found.next(), found.next()), (Some(1), Some(2)));
        found.until = Instant::now();
        assert_eq!(found.next(), None);
        drop(found);
        drop(proceed);
        assert_eq!(end.recv(), Ok(((true, true), false)), "nobody wants the third");
    }
}
