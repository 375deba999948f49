//! The next edit in a file that is not open. Only its place is told: the editor opens the file, and
//! asks again from there.

use super::Asked;
use super::finder::Finder;
use super::scan::Scan;
use crate::services::reason::Reason;
use crate::services::settings::Current;
use crate::session::Session;
use crate::session::request::Trigger;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long files are listed and read, while the user who pressed the key waits.
const TIME_MAX: Duration = Duration::from_millis(500);

/// The folders around a file in which a repository is looked for.
const FOLDERS_MAX: usize = 32;

impl Session {
    /// Where the user could go on in the open folder, if they asked for it by the key. This reads
    /// files.
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
        let (path, open) = {
            let state = self.state.lock();
            let open = state.documents.values().map(|document| document.path.clone());
            (state.documents.get(&asked.uri)?.path.clone(), open.collect::<HashSet<String>>())
        };
        let document = Path::new(&path);
        let root = self.folder_around(document)?;
        let language = &documents.first()?.language;
        let until = Instant::now() + TIME_MAX;
        let scan = Scan { root: &root, document, language, until };
        let files = scan.files(&self.services.access).filter(|(name, _)| {
            !open.contains(name)
                && config.completes(name, language)
                && !self.is_private(name, language, config)
        });
        let (path, line) = finder.find_unopened(&documents, files)?;
        Some(Reason::InAnotherFile { path, line: line as u32 + 1 })
    }

    /// The innermost open folder around a file. Without one it is the file's repository, because
    /// some editors open no folders.
    fn folder_around(&self, file: &Path) -> Option<PathBuf> {
        let roots = self.roots.lock();
        let around = roots.iter().filter(|root| file.starts_with(root));
        let innermost = around.max_by_key(|root| root.components().count()).cloned();
        drop(roots);
        innermost.or_else(|| repository(file).filter(|_| file.is_absolute()))
    }
}

fn repository(file: &Path) -> Option<PathBuf> {
    let above = file.ancestors().skip(1).take(FOLDERS_MAX);
    above.into_iter().find(|folder| folder.join(".git").exists()).map(Path::to_owned)
}
