//! The names of one file. A file can be reached by links, and on some systems by other letters, so
//! that the text of a name does not tell which file it is.

use crate::addresses;
use crate::paths::without_links;
use crate::platform::files::{IGNORES_CASE, IGNORES_FORM};
use feedback::bounded_map::BoundedMap;
use icu_normalizer::ComposingNormalizerBorrowed;
use parking_lot::Mutex;
use std::borrow::Cow;
use std::path::Path;

/// The number of documents whose real names are remembered. The oldest give way.
const NAMES_MAX: usize = 4_096;

/// Returns the name of the same file without links, if it is another one than `name`. If the file
/// is not there any more, the nearest folder above it that is there is resolved. This reads the
/// disk.
pub fn real_name(name: &str) -> Option<String> {
    let path = Path::new(name);
    if addresses::is_address(name) || !path.is_absolute() {
        return None;
    }
    let real = addresses::name_of_file(&without_links(path)?).into_owned();
    (real != name).then_some(real)
}

/// Returns the form of a name that all names have which this system takes for the same.
pub fn folded(name: &str) -> Cow<'_, str> {
    fold(name, IGNORES_CASE, IGNORES_FORM)
}

fn fold(name: &str, ignores_case: bool, ignores_form: bool) -> Cow<'_, str> {
    let mut name = Cow::Borrowed(name);
    if ignores_case {
        name = Cow::Owned(name.to_lowercase());
    }
    if ignores_form {
        name = Cow::Owned(ComposingNormalizerBorrowed::new_nfc().normalize(&name).into_owned());
    }
    name
}

/// The real names of the documents of this run, each resolved once.
pub struct RealNames(Mutex<BoundedMap<String, Option<String>>>);

impl Default for RealNames {
    fn default() -> RealNames {
        RealNames(Mutex::new(BoundedMap::new(NAMES_MAX)))
    }
}

impl RealNames {
    /// Resolves a name if it is a new one. This reads the disk.
    pub fn resolve(&self, name: &str) {
        if self.0.lock().contains_key(name) {
            return;
        }
        let real = real_name(name);
        self.0.lock().insert(name.to_owned(), real);
    }

    /// Returns the real name of a document that was resolved, if it has another one.
    pub fn of(&self, name: &str) -> Option<String> {
        self.0.lock().get(name)?.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_as_the_system_does() {
        let (composed, decomposed) = ("/p/caf\u{e9}.py", "/p/cafe\u{301}.py");
        assert_eq!(fold(composed, false, false), composed);
        assert_ne!(fold(composed, true, false), fold(decomposed, true, false));
        assert_eq!(fold(composed, true, true), fold(decomposed, true, true));
        assert_eq!(fold("/P/A.py", true, true), fold("/p/a.PY", true, true));
        assert_ne!(fold("/P/A.py", false, true), fold("/p/a.py", false, true));
    }

    #[cfg(unix)]
    #[test]
    fn a_name_is_resolved_as_far_as_it_is_there_and_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink(root.join("real"), root.join("link")).unwrap();
        let name = |path: &str| root.join(path).to_string_lossy().into_owned();
        assert_eq!(real_name(&name("link/gone/a.py")), Some(name("real/gone/a.py")));
        assert_eq!(real_name(&name("link")), Some(name("real")));
        assert_eq!(real_name(&name("real/a.py")), None);
        assert_eq!(real_name("untitled:Untitled-1"), None);
        let known = RealNames::default();
        known.resolve(&name("link/a.py"));
        std::fs::remove_file(root.join("link")).unwrap();
        known.resolve(&name("link/a.py"));
        assert_eq!(known.of(&name("link/a.py")), Some(name("real/a.py")));
        assert_eq!(known.of(&name("real/a.py")), None);
    }
}
