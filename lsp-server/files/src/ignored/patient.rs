//! Answers about files within a time, whatever the disk does, and without a look at it if it was
//! asked a moment ago.

use super::IgnoreRules;
use crate::disk::Disk;
use crate::folder::real;
use crate::limits::{ASKING_THREADS_MAX, FRESH, THREADS_OF_ONE_MAX, VERDICTS_MAX};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What is known of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub is_ignored: bool,
    /// Where the file really lies, if a link leads to it, and if it is ignored there.
    pub real: Option<(PathBuf, bool)>,
}

/// The verdicts that were asked for. All who ask share them.
pub struct Verdicts {
    rules: Arc<IgnoreRules>,
    disk: Disk,
    asked: Arc<Asked>,
}

#[derive(Default)]
struct Asked {
    slots: Mutex<HashMap<PathBuf, Slot>>,
    changed: Condvar,
}

enum Slot {
    /// The disk is being asked since then.
    Asked(Instant),
    Known(Instant, Verdict),
}

impl Verdicts {
    pub fn new(rules: Arc<IgnoreRules>) -> Verdicts {
        Verdicts { rules, disk: Disk::new(ASKING_THREADS_MAX), asked: Arc::default() }
    }

    /// Returns what was found out about a file a moment ago. No disk is asked.
    pub fn in_memory(&self, file: &Path) -> Option<Verdict> {
        fresh(&self.asked.slots.lock(), file)
    }

    /// Returns what is known of a file whose path is absolute and has no `..`, or nothing if the
    /// disk does not answer in this time. While it is still silent, nobody waits for it again.
    pub fn ask(&self, file: &Path, limit: Duration) -> Option<Verdict> {
        let began = Instant::now();
        let mut slots = self.asked.slots.lock();
        loop {
            if let Some(verdict) = fresh(&slots, file) {
                return Some(verdict);
            }
            let since = match slots.get(file) {
                Some(Slot::Asked(since)) => *since,
                _ => {
                    self.start(&mut slots, vec![file.to_owned()])?;
                    continue;
                }
            };
            let left = limit.checked_sub(since.elapsed().max(began.elapsed()))?;
            self.asked.changed.wait_for(&mut slots, left);
        }
    }

    /// Asks the disk about several files at the same time, if it was not asked a moment ago. Who
    /// asks about them afterwards waits for all of them together.
    pub fn prepare(&self, files: impl Iterator<Item = PathBuf>) {
        let mut slots = self.asked.slots.lock();
        let is_new = |file: &PathBuf| {
            fresh(&slots, file).is_none() && !matches!(slots.get(file), Some(Slot::Asked(_)))
        };
        let files: Vec<PathBuf> = files.filter(is_new).take(VERDICTS_MAX).collect();
        self.start(&mut slots, files);
    }

    /// Asks the disk on other threads. Returns nothing if too many wait for it already.
    fn start(
        &self,
        slots: &mut MutexGuard<HashMap<PathBuf, Slot>>,
        files: Vec<PathBuf>,
    ) -> Option<()> {
        if slots.len() >= VERDICTS_MAX {
            slots.retain(|_, slot| matches!(slot, Slot::Asked(_)));
        }
        let now = Instant::now();
        let threads = files.len().min(THREADS_OF_ONE_MAX);
        let all = Arc::new(files);
        let next = Arc::new(AtomicUsize::new(0));
        let start_one = || {
            let (rules, asked) = (self.rules.clone(), self.asked.clone());
            let (all, next) = (all.clone(), next.clone());
            self.disk.start(move || {
                while let Some(file) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let verdict = rules.verdict(file);
                    let known = Slot::Known(Instant::now(), verdict);
                    asked.slots.lock().insert(file.clone(), known);
                    asked.changed.notify_all();
                }
            })
        };
        let started = (0..threads).filter_map(|_| start_one()).count();
        // No thread gets further than the lock before this.
        let asked = all.iter().filter(|_| started > 0);
        slots.extend(asked.map(|file| (file.clone(), Slot::Asked(now))));
        (started > 0).then_some(())
    }
}

fn fresh(slots: &HashMap<PathBuf, Slot>, file: &Path) -> Option<Verdict> {
    match slots.get(file) {
        Some(Slot::Known(at, verdict)) if at.elapsed() < FRESH => Some(verdict.clone()),
        _ => None,
    }
}

impl IgnoreRules {
    /// Returns what is known of a file, and of the place to which links lead.
    pub fn verdict(&self, file: &Path) -> Verdict {
        let real = real(file).filter(|real| real != file);
        let real = real.map(|real| {
            let is_ignored = self.is_ignored(&real);
            (real, is_ignored)
        });
        Verdict { is_ignored: self.is_ignored(file), real }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ignored::User;
    use std::fs;

    const LONG: Duration = Duration::from_secs(60);

    fn verdicts() -> Verdicts {
        Verdicts::new(Arc::new(IgnoreRules::of(User::default())))
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_is_not_there_yet_lies_where_the_link_of_its_folder_leads() {
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("private/sub")).unwrap();
        fs::write(root.join(".honeignore"), "/private/\n").unwrap();
        std::os::unix::fs::symlink(root.join("private"), root.join("link")).unwrap();
        let verdict = verdicts().ask(&root.join("link/sub/new.rs"), LONG).unwrap();
        let real = root.join("private/sub/new.rs");
        assert_eq!(verdict, Verdict { is_ignored: false, real: Some((real, true)) });
        let verdict = verdicts().ask(&root.join("link"), LONG).unwrap();
        let (real, _) = verdict.real.unwrap();
        assert_eq!(real.as_os_str(), root.join("private").as_os_str(), "without a slash");
    }

    /// Whoever asks while the disk is silent has no verdict, at once, and others are not kept.
    #[test]
    fn nobody_waits_for_a_disk_that_is_silent() {
        let tree = tempfile::tempdir().unwrap();
        let verdicts = verdicts();
        let silent = tree.path().join("silent");
        verdicts.asked.slots.lock().insert(silent.clone(), Slot::Asked(Instant::now()));
        assert_eq!(verdicts.ask(&silent, Duration::ZERO), None);
        assert!(verdicts.ask(&tree.path().join("other"), LONG).is_some());
        assert_eq!(verdicts.in_memory(&silent), None);
        let verdict = Verdict { is_ignored: false, real: None };
        let known = Slot::Known(Instant::now(), verdict.clone());
        verdicts.asked.slots.lock().insert(silent.clone(), known);
        assert_eq!(verdicts.ask(&silent, Duration::ZERO), Some(verdict), "it has answered");
    }

    #[test]
    fn all_who_ask_at_the_same_time_get_the_answer() {
        let tree = tempfile::tempdir().unwrap();
        let (verdicts, file) = (verdicts(), tree.path().join("a"));
        std::thread::scope(|scope| {
            let asking: Vec<_> =
                (0..4).map(|_| scope.spawn(|| verdicts.ask(&file, LONG))).collect();
            for one in asking {
                assert!(one.join().unwrap().is_some());
            }
        });
    }
}
