//! When what was read of the log is written down anew: on a thread of its own, from
//! the log alone, so that nobody waits for it and no lock is held.

use crate::app::Daemon;
use crate::services::derived_state::{Reading, Terms};
use feedback::checkpoint::Checkpoint;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Events after which it is done again: what a start has to read at the most, about
/// a fifth of a second, and as much work each time.
pub const EVERY_EVENTS: u64 = 5_000;

#[derive(Default)]
pub struct Snapshots {
    /// Log position at which it is due.
    due: AtomicU64,
    under_way: AtomicBool,
    /// Said already: a full disk is full at every try.
    trouble: Mutex<Option<String>>,
}

impl Snapshots {
    /// Nobody holds a second reading at this moment.
    #[cfg(test)]
    pub fn is_idle(&self) -> bool {
        !self.under_way.load(Ordering::Relaxed)
    }

    /// What was read is written down up to here, or is about to be.
    pub fn after(&self, next_seq: u64) {
        self.due.store(next_seq.saturating_add(EVERY_EVENTS), Ordering::Relaxed);
    }
}

/// Cheap to call often.
pub fn tick(daemon: &Arc<Daemon>) {
    let (snapshots, next_seq) = (&daemon.snapshots, daemon.next_seq());
    if next_seq < snapshots.due.load(Ordering::Relaxed)
        || snapshots.under_way.swap(true, Ordering::Relaxed)
    {
        return;
    }
    snapshots.after(next_seq);
    let daemon = daemon.clone();
    tokio::task::spawn_blocking(move || {
        let terms = Terms::of(&daemon.registry.lock(), &daemon.model.sha256);
        let kept = Reading::keep(&*daemon.event_log(), &terms);
        tell(&daemon, kept.err().map(|error| format!("{error:#}")));
        daemon.snapshots.under_way.store(false, Ordering::Relaxed);
    });
}

/// Writes down what was just read.
pub fn keep(daemon: &Arc<Daemon>, checkpoint: Checkpoint) {
    daemon.snapshots.after(checkpoint.next_seq);
    let daemon = daemon.clone();
    tokio::task::spawn_blocking(move || {
        let kept = daemon.event_log().save_checkpoint(&checkpoint);
        tell(&daemon, kept.err().map(|error| error.to_string()));
    });
}

/// It costs the next start some time, and nobody else anything.
fn tell(daemon: &Daemon, trouble: Option<String>) {
    let mut said = daemon.snapshots.trouble.lock();
    if let Some(reason) = trouble.as_ref().filter(|reason| said.as_ref() != Some(reason)) {
        tracing::warn!("the next start will take longer: {reason}");
    }
    *said = trouble;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::ServedModel;
    use crate::config::Config;
    use crate::paths::Home;
    use crate::privacy::forget_scope::Scope;
    use crate::report::offers::tests::completion;
    use engine::scripted::ScriptedEngine;
    use engine::worker::EngineHandle;
    use feedback::clock::ManualClock;
    use feedback::log::EventLog;
    use feedback::sled_log::SledLog;
    use std::path::Path;
    use std::time::Duration;

    const CANARY: &str = "/project/canary7391.rs";

    async fn daemon(home: &Home) -> Arc<Daemon> {
        let model = ServedModel {
            name: "scripted".into(),
            architecture: "none".into(),
            path: "none.gguf".into(),
            sha256: "base".into(),
        };
        let engine = || {
            let takes = Duration::ZERO;
            Ok(ScriptedEngine { answers: &["x"], learned: None, takes })
        };
        let engine = EngineHandle::start(engine, |_| ()).unwrap();
        let log = Arc::new(SledLog::open(&home.event_log()).unwrap());
        let clock = Arc::new(ManualClock::starting_at(0));
        Daemon::start(home, Config::default(), model, engine, clock, log).await.unwrap()
    }

    /// Waits for what is done on another thread.
    async fn kept(daemon: &Daemon) -> u64 {
        loop {
            if let Some(checkpoint) = daemon.event_log().checkpoint().unwrap() {
                return checkpoint.next_seq;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn is_below(folder: &Path, text: &str) -> bool {
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).any(|path| match path
            .is_dir()
        {
            true => is_below(&path, text),
            false => {
                let bytes = std::fs::read(&path).unwrap_or_default();
                bytes.windows(text.len()).any(|window| window == text.as_bytes())
            }
        })
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn it_is_written_down_by_itself_and_what_is_forgotten_is_gone_from_it() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().into());
        home.create().unwrap();
        let first = daemon(&home).await;
        for number in 0..EVERY_EVENTS {
            let path = if number % 7 == 0 { CANARY } else { "/project/kept.rs" };
            first.record(vec![completion(&format!("o{number}"), path)]);
        }
        assert_eq!(kept(&first).await, EVERY_EVENTS);
        let checkpoint = first.event_log().checkpoint().unwrap().unwrap();
        let content = String::from_utf8(checkpoint.content).unwrap();
        assert!(content.contains(CANARY), "or this test tells nothing");

        let names = vec![CANARY.to_owned()];
        first.forget(Scope::File { names }).await.unwrap();
        assert!(!is_below(folder.path(), CANARY));
        assert_eq!(first.counts().total, EVERY_EVENTS - EVERY_EVENTS.div_ceil(7));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_next_daemon_knows_what_the_last_one_did() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().into());
        home.create().unwrap();
        {
            let log = SledLog::open(&home.event_log()).unwrap();
            for number in 0..EVERY_EVENTS + 10 {
                log.append(number, completion(&format!("o{number}"), "/project/a.rs")).unwrap();
            }
            log.flush().unwrap();
        }
        let first = daemon(&home).await;
        assert_eq!(kept(&first).await, EVERY_EVENTS + 10, "all of it was read at the start");
        first.record(vec![completion("late", "/project/a.rs")]);
        first.flush().await.unwrap();
        let counts = first.counts();
        drop(first);
        let second = daemon(&home).await;
        assert_eq!(second.counts(), counts);
        assert_eq!(second.next_seq(), EVERY_EVENTS + 11);
    }
}
