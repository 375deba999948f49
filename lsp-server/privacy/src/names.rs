//! The names of one file. A file can be reached by links, and on some systems by other letters, so
//! that the text of a name does not say which file it is.

use feedback::bounded_map::BoundedMap;
use host::addresses;
use host::paths::without_links;
use host::platform::files::{IGNORES_CASE, IGNORES_FORM};
use icu_normalizer::ComposingNormalizerBorrowed;
use parking_lot::Mutex;
use std::borrow::Cow;
use std::path::Path;

/// The number of documents whose real names are remembered. The oldest give way.
const NAMES_MAX: usize = 4_096;

/// Returns the name of the same file without links, if it is another one than `name`. If the file
/// is not there any more, the nearest folder above it that is there is resolved. This reads the
/// disk. A document that is not saved yet has the name as which it will be.
pub fn real_name(name: &str) -> Option<String> {
    let saved = addresses::saved_as(name);
    let path = Path::new(saved.as_deref().unwrap_or(name));
    if saved.is_none() && addresses::is_address(name) || !path.is_absolute() {
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

/// The real names of the documents of this run, each as it was when the document was asked about
/// last. A link may lead somewhere else since then.
pub struct RealNames(Mutex<BoundedMap<String, Option<String>>>);

impl Default for RealNames {
    fn default() -> RealNames {
        RealNames(Mutex::new(BoundedMap::new(NAMES_MAX)))
    }
}

impl RealNames {
    /// Notes the real name of a document, if it has another one.
    pub fn note(&self, name: &str, real: Option<String>) {
        self.0.lock().insert(name.to_owned(), real);
    }

    /// Returns the real name of a document that was noted, if it has another one.
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
    fn a_name_is_resolved_as_far_as_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink(root.join("real"), root.join("link")).unwrap();
        let name = |path: &str| root.join(path).to_string_lossy().into_owned();
        assert_eq!(real_name(&name("link/gone/a.py")), Some(name("real/gone/a.py")));
        assert_eq!(real_name(&name("link")), Some(name("real")));
        assert_eq!(real_name(&name("real/a.py")), None);
        assert_eq!(real_name("untitled:Untitled-1"), None);
        let unsaved = addresses::name(&format!("untitled:{}", name("link/new.py")));
        assert_eq!(real_name(&unsaved), Some(name("real/new.py")));
    }

    #[test]
    fn the_real_name_is_the_one_that_was_noted_last() {
        let known = RealNames::default();
        for real in [Some("/real/a.py".to_owned()), Some("/other/a.py".to_owned()), None] {
            known.note("/link/a.py", real.clone());
            assert_eq!(known.of("/link/a.py"), real);
        }
        assert_eq!(known.of("/real/a.py"), None);
    }
}
