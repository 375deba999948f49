//! Hands the prompts of the latest answers to the learner. The engine has computed their keys and
//! values to complete, and the learner would compute the same again: a third of an update on the
//! machine where it was measured (docs/lab/learning-notes.md).
//!
//! They lie in files, because they take 12 KiB a token with the default model. A file stays until
//! an update has learned from its offer, until something is forgotten, until newer ones need its
//! room, or until the daemon starts again. A prompt that is not there is computed by the learner.

use anyhow::{Context, Result};
use engine::worker::EngineHandle;
use host::paths::Paths;
use host::platform::files;
use models::disk_cache::DiskCache;
use models::limits::CACHED_TOKENS_MIN;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The size of all files. The batch of an update has 16 prompts, of 12 MiB each if they are long.
const BYTES_MAX: u64 = 512 << 20;

/// The size of one file. A prompt of 1,170 tokens of a 7B model needs more, and copying it would
/// keep the engine from the next key.
const PROMPT_BYTES_MAX: usize = 64 << 20;

/// The room that is left to others on the disk.
const FREE_ROOM_MIN: u64 = 1 << 30;

/// For how long no newer answer may come before a prompt is written. An answer that the user types
/// on through gets no verdict, and its prompt is not learned from.
const SETTLED: Duration = Duration::from_millis(400);

#[derive(Clone)]
pub struct HandedPrompts {
    folder: PathBuf,
    /// Changes with every answer, and when something is forgotten.
    newest: watch::Sender<u64>,
    kept: Arc<Mutex<Option<Kept>>>,
}

/// What lies in the folder.
struct Kept {
    cache: DiskCache,
    /// The oldest first.
    prompts: VecDeque<Vec<u32>>,
}

impl HandedPrompts {
    /// Begins with an empty folder. Without a folder the learner computes every prompt.
    pub fn new(paths: &Paths, base_sha256: &str) -> HandedPrompts {
        let folder = paths.prompts();
        let opened = DiskCache::handed(&folder, base_sha256).and_then(|mut cache| {
            cache.clear().map_err(|error| format!("{}: {error}", folder.display()))?;
            Ok(Kept { cache, prompts: VecDeque::new() })
        });
        let kept = opened.inspect_err(|error| tracing::warn!("{error}")).ok();
        let (newest, _) = watch::channel(0);
        HandedPrompts { folder, newest, kept: Arc::new(Mutex::new(kept)) }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Keeps what the engine holds of the prompt of the newest answer, once the user rests.
    pub fn keep(&self, engine: &EngineHandle, prompt: &[u32]) {
        if prompt.len() < CACHED_TOKENS_MIN {
            return;
        }
        self.newest.send_modify(|number| *number += 1);
        let mut newer = self.newest.subscribe();
        // It is asked at once, because the engine changes what it holds with the next request.
        let kv = engine.prompt_kv(prompt.to_vec());
        let (this, prompt) = (self.clone(), prompt.to_vec());
        tokio::spawn(async move {
            let Ok(Some(kv)) = kv.await else { return };
            tokio::select! {
                () = tokio::time::sleep(SETTLED) => {}
                _ = newer.changed() => return,
            }
            let written = tokio::task::spawn_blocking(move || this.write(prompt, &kv, &newer));
            let _ = written.await;
        });
    }

    fn write(&self, prompt: Vec<u32>, kv: &[u8], newer: &watch::Receiver<u64>) {
        let has_room = files::free_room(&self.folder).is_some_and(|free| free >= FREE_ROOM_MIN);
        if !has_room || kv.len() > PROMPT_BYTES_MAX {
            return;
        }
        let mut kept = self.kept.lock();
        // Something may have been forgotten since.
        if newer.has_changed().unwrap_or(true) {
            return;
        }
        let Some(Kept { cache, prompts }) = &mut *kept else { return };
        if cache.contains(&prompt) {
            return;
        }
        while cache.bytes() + kv.len() as u64 > BYTES_MAX
            && let Some(oldest) = prompts.pop_front()
        {
            cache.remove(&oldest);
        }
        match cache.put(&prompt, kv) {
            Ok(()) => prompts.push_back(prompt),
            Err(error) => tracing::warn!("{}: {error}", self.folder.display()),
        }
    }

    /// Deletes the files of these prompts. It touches the disk.
    pub fn remove<'a>(&self, learned: impl Iterator<Item = &'a [u32]>) {
        let mut kept = self.kept.lock();
        let Some(Kept { cache, prompts }) = &mut *kept else { return };
        for prompt in learned {
            cache.remove(prompt);
            prompts.retain(|kept| kept != prompt);
        }
    }

    /// Deletes all files, and the prompt that is about to be written. It touches the disk.
    ///
    /// # Errors
    /// A file cannot be deleted.
    pub fn forget(&self) -> Result<()> {
        self.newest.send_modify(|number| *number += 1);
        let mut kept = self.kept.lock();
        let Some(Kept { cache, prompts }) = &mut *kept else {
            return remove_prompts(&self.folder);
        };
        prompts.clear();
        cache.clear().with_context(|| cannot_delete(&self.folder))
    }
}

/// Deletes every file in the folder of prompts, whoever has written it, if no daemon keeps them.
pub fn remove_prompts(folder: &Path) -> Result<()> {
    DiskCache::clear_folder(folder).with_context(|| cannot_delete(folder))
}

fn cannot_delete(folder: &Path) -> String {
    let folder = folder.display();
    format!("{folder}: what was computed of prompts cannot be deleted; delete this folder")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(token: u32) -> Vec<u32> {
        vec![token; CACHED_TOKENS_MIN]
    }

    fn handed(folder: &tempfile::TempDir) -> HandedPrompts {
        let paths = Paths::at(folder.path().to_owned());
        paths.create().unwrap();
        HandedPrompts::new(&paths, "m")
    }

    fn write(handed: &HandedPrompts, token: u32, kv: &[u8]) {
        handed.write(prompt(token), kv, &handed.newest.subscribe());
    }

    fn learner(handed: &HandedPrompts) -> DiskCache {
        DiskCache::handed(handed.folder(), "m").unwrap()
    }

    #[test]
    fn the_learner_finds_a_prompt_until_it_was_learned_from() {
        let folder = tempfile::tempdir().unwrap();
        let handed = handed(&folder);
        write(&handed, 1, b"one");
        write(&handed, 2, b"two");
        assert_eq!(learner(&handed).get(&prompt(1)).as_deref(), Some(&b"one"[..]));
        handed.remove([&prompt(1)[..]].into_iter());
        assert!(!learner(&handed).contains(&prompt(1)));
        assert!(learner(&handed).contains(&prompt(2)));
    }

    #[test]
    fn nothing_stays_of_what_is_forgotten_or_of_an_earlier_run() {
        let folder = tempfile::tempdir().unwrap();
        let first = handed(&folder);
        let newer = first.newest.subscribe();
        write(&first, 1, b"one");
        first.forget().unwrap();
        assert!(!learner(&first).contains(&prompt(1)));
        // This one was computed before and would be written after it.
        first.write(prompt(2), b"two", &newer);
        assert!(!learner(&first).contains(&prompt(2)));
        write(&first, 3, b"three");
        assert!(!learner(&handed(&folder)).contains(&prompt(3)));
    }

    #[test]
    fn the_oldest_prompts_give_way() {
        let folder = tempfile::tempdir().unwrap();
        let handed = handed(&folder);
        let large = vec![0; PROMPT_BYTES_MAX];
        let fit = (BYTES_MAX / PROMPT_BYTES_MAX as u64) as u32;
        for token in 0..fit + 2 {
            write(&handed, token, &large);
        }
        let learner = learner(&handed);
        let there: Vec<bool> = (0..fit + 2).map(|token| learner.contains(&prompt(token))).collect();
        assert_eq!(there, (0..fit + 2).map(|token| token >= 2).collect::<Vec<_>>());
        write(&handed, 99, &vec![0; PROMPT_BYTES_MAX + 1]);
        assert!(!learner.contains(&prompt(99)), "one prompt takes too much room");
    }
}
