//! A note on disk while a daemon starts and loads its model. A daemon that the system kills for
//! want of memory can say nothing; the note that it leaves can.

use super::killed::Killed;
use host::paths::Paths;
use host::platform::files;
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The largest note that is read, in bytes.
const NOTE_BYTES_MAX: u64 = 4096;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    /// The model that is loaded, once it is found.
    model: Option<String>,
    /// The number of daemons in a row before this one that left a note.
    died_before: u32,
}

impl Note {
    fn read(path: &Path) -> Option<Note> {
        let mut text = vec![];
        std::fs::File::open(path).ok()?.take(NOTE_BYTES_MAX).read_to_end(&mut text).ok()?;
        // A note that is damaged still says that somebody left it.
        Some(serde_json::from_slice(&text).unwrap_or_default())
    }
}

/// The note of this daemon. It goes when this is dropped, which a daemon that is killed does not
/// do.
pub struct LoadingNote {
    path: PathBuf,
    note: Note,
}

impl LoadingNote {
    /// Begins the note. The caller is the elected daemon.
    pub fn begin(home: &Paths) -> LoadingNote {
        let path = home.loading_note();
        let died_before = Note::read(&path).map_or(0, |note| note.died_before.saturating_add(1));
        if died_before > 0 {
            tracing::warn!("the daemon before was killed before its model was loaded");
        }
        let note = LoadingNote { path, note: Note { model: None, died_before } };
        note.write();
        note
    }

    pub fn name(&mut self, model: &str) {
        self.note.model = Some(model.to_owned());
        self.write();
    }

    /// Without the note nothing is lost but what it would say.
    fn write(&self) {
        let Ok(text) = serde_json::to_vec(&self.note) else { return };
        let file = files::private().create(true).truncate(true).write(true).open(&self.path);
        let _ = file.and_then(|mut file| file.write_all(&text));
    }
}

impl Drop for LoadingNote {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Returns what the note of a daemon says that runs no more, if it has left one.
pub fn killed(home: &Paths) -> Option<Killed> {
    let note = Note::read(&home.loading_note())?;
    Some(Killed { times: note.died_before.saturating_add(1), signal: None, model: note.model })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_daemons_that_are_killed_leave_their_notes() {
        let (_folder, home) = fixtures::home();
        drop(LoadingNote::begin(&home));
        assert_eq!(killed(&home), None);
        for times in 1..=3 {
            let mut note = LoadingNote::begin(&home);
            note.name("qwen2.5-coder-7b");
            // A daemon that is killed drops nothing.
            std::mem::forget(note);
            let model = Some("qwen2.5-coder-7b".to_owned());
            assert_eq!(killed(&home), Some(Killed { times, signal: None, model }));
        }
        drop(LoadingNote::begin(&home));
        assert_eq!(killed(&home), None, "the model was loaded");
        std::fs::write(home.loading_note(), "{").unwrap();
        assert_eq!(killed(&home).map(|killed| killed.times), Some(1));
    }
}
