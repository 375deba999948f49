//! The next edit in a file that is not open. Only its place is reported: the editor opens the file,
//! and asks again from there.

use super::Asked;
use super::finder::Finder;
use super::scan::Scan;
use crate::Session;
use crate::request::Trigger;
use services::reason::Reason;
use services::settings::Current;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long files are listed and read, while the user who pressed the key waits.
const TIME_MAX: Duration = Duration::from_millis(500);

impl Session {
    /// Where the user could continue in the open folder, if they asked for it by the key. This
    /// reads files.
    pub(super) fn look_further(
        &self,
        asked: &Asked,
        finder: &mut Finder,
        config: &Current,
    ) -> Option<Reason> {
        if asked.trigger != Trigger::Invoked {
            return None;
        }
        let (documents, _) = self.searched(asked, config);
        let (path, open) = self.read(|state| {
            let open = state.documents.values().map(|document| document.path.clone());
            (state.path_of(&asked.uri), open.collect::<HashSet<String>>())
        });
        let path = path?;
        let language = &documents.first()?.language;
        let scan = Scan {
            root: self.open_folder_around(Path::new(&path)),
            document: PathBuf::from(path),
            language: language.clone(),
            until: Instant::now() + TIME_MAX,
        };
        let files = scan.files(&self.disk, self.services.access.clone());
        let files =
            files.filter(|(name, _)| !open.contains(name) && config.completes(name, language));
        let (path, line) = finder.find_unopened(&documents, files)?;
        Some(Reason::InAnotherFile { path, line: line as u32 + 1 })
    }
}
