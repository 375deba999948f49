//! Flushes the log a moment after something was appended. While nothing is appended, its thread
//! sleeps, so that an idle daemon does not wake for it.

use crate::limits::LOG_FLUSH_INTERVAL;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

pub struct Flusher {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    need: Mutex<Need>,
    changed: Condvar,
}

#[derive(Default, PartialEq)]
enum Need {
    #[default]
    Nothing,
    Flush,
    End,
}

impl Flusher {
    /// Starts a thread that calls `flush`.
    pub fn start(flush: impl Fn() + Send + 'static) -> io::Result<Flusher> {
        let shared = Arc::new(Shared::default());
        let of_thread = shared.clone();
        let thread = std::thread::Builder::new()
            .name("hone-log".into())
            .spawn(move || of_thread.run(&flush))?;
        Ok(Flusher { shared, thread: Some(thread) })
    }

    /// Something was appended. It is flushed within [`LOG_FLUSH_INTERVAL`].
    pub fn need(&self) {
        let mut need = self.shared.need.lock();
        if *need == Need::Nothing {
            *need = Need::Flush;
            self.shared.changed.notify_one();
        }
    }
}

impl Shared {
    fn run(&self, flush: &impl Fn()) {
        let mut need = self.need.lock();
        loop {
            self.changed.wait_while(&mut need, |need| *need == Need::Nothing);
            // What is appended meanwhile is flushed together.
            self.changed.wait_while_for(&mut need, |need| *need != Need::End, LOG_FLUSH_INTERVAL);
            if *need == Need::End {
                return;
            }
            *need = Need::Nothing;
            MutexGuard::unlocked(&mut need, flush);
        }
    }
}

impl Drop for Flusher {
    /// Waits for a flush under way. Whoever closes the store flushes what is left.
    fn drop(&mut self) {
        *self.shared.need.lock() = Need::End;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    #[test]
    fn what_is_appended_is_flushed_once_and_again_after_the_next_append() {
        let (flushed, flushes) = sync_channel(8);
        let flusher = Flusher::start(move || flushed.send(()).unwrap()).unwrap();
        assert!(flushes.try_recv().is_err(), "nothing was appended");
        for _ in 0..2 {
            (0..5).for_each(|_| flusher.need());
            flushes.recv().unwrap();
        }
        drop(flusher);
        assert!(flushes.recv().is_err(), "it has ended, and five appends were one flush");
    }
}
