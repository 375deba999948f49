//! The files of which nothing is stored: files made to hold credentials, files that the user's
//! `privacy.ignore` names, and files that git or a `.honeignore` ignores ([`files::ignored`]).
//!
//! A file's own name comes first, and the setting second, in which `!` marks what is stored all the
//! same. Every other source only adds to what is ignored.

use feedback::secrets::is_sensitive_path;
use files::ignored::{IgnoreRules, Verdict, Verdicts};
use host::addresses::{name_of_file, path_in, saved_as};
use host::paths::without_dots;
use settings::patterns::Patterns;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};

/// The longest wait for a disk. A file on one that is silent for longer counts as ignored.
const PATIENCE: Duration = Duration::from_secs(2);

/// A file that is not ignored.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Storable {
    /// Its name without links, if that is another one than events record.
    pub real_name: Option<String>,
}

/// What is known of ignored files. All sessions share it.
pub struct IgnoreFiles {
    rules: Arc<IgnoreRules>,
    verdicts: Verdicts,
}

impl Default for IgnoreFiles {
    fn default() -> IgnoreFiles {
        let rules = Arc::new(IgnoreRules::default());
        IgnoreFiles { verdicts: Verdicts::new(rules.clone()), rules }
    }
}

impl IgnoreFiles {
    /// Returns the file under its real name, or nothing if nothing of it may be stored. `path` is
    /// the name that events record, and `setting` is `privacy.ignore`. A disk that does not answer
    /// is waited for only a little.
    pub fn storable(&self, path: &str, setting: &Patterns) -> Option<Storable> {
        storable(path, setting, |file| {
            let known = self.verdicts.in_memory(file);
            known.or_else(|| leaving_others_alone(|| self.verdicts.ask(file, PATIENCE)))
        })
    }

    /// Returns true if nothing of a file may be stored. This is for a thread that may wait for the
    /// disk as long as it takes.
    pub fn is_ignored_on_disk(&self, path: &str, setting: &Patterns) -> bool {
        storable(path, setting, |file| Some(self.rules.verdict(file))).is_none()
    }

    /// Asks the disk about several files at once, so that all of them together are waited for no
    /// longer than one.
    pub fn prepare<'a>(&self, paths: impl Iterator<Item = &'a String>) {
        self.verdicts.prepare(paths.filter_map(|path| file_of(path)));
    }

    /// Returns the rules alone, for walks through folders.
    pub fn rules(&self) -> Arc<IgnoreRules> {
        self.rules.clone()
    }
}

fn storable(
    path: &str,
    setting: &Patterns,
    verdict: impl FnOnce(&Path) -> Option<Verdict>,
) -> Option<Storable> {
    if is_sensitive_path(path) || is_sensitive_path(&path_in(path)) {
        return None;
    }
    // A document that is no file of this machine is in none of its folders, so none of its rules
    // are about it.
    let Some(given) = file_of(path) else { return Some(Storable::default()) };
    // The character stands for bytes that are no text, so the file has another name, which is not
    // known. Rules may be about that one.
    let is_text = |name: &str| !name.contains(char::REPLACEMENT_CHARACTER);
    if !is_text(path) || !is_text(&given.to_string_lossy()) {
        return None;
    }
    let ignores = |file: &Path, by_rules: bool| {
        is_sensitive_path(&file.to_string_lossy())
            || is_gits_own(file)
            || setting.verdict(file).unwrap_or(by_rules)
    };
    let Verdict { is_ignored, real } = verdict(&given)?;
    // `notes.txt` may be a link to `.env`.
    let is_ignored = ignores(&given, is_ignored)
        || real.as_ref().is_some_and(|(real, by_rules)| ignores(real, *by_rules));
    let real = real.map_or(given, |(real, _)| real);
    let real_name = Some(name_of_file(&real).into_owned()).filter(|real| real != path);
    (!is_ignored).then_some(Storable { real_name })
}

/// Returns true if git keeps a file for itself: the message of a commit may hold what it changes,
/// in files that are ignored too.
fn is_gits_own(file: &Path) -> bool {
    let mut folders = file.parent().into_iter().flat_map(Path::components);
    folders.any(|part| part.as_os_str().eq_ignore_ascii_case(".git"))
}

/// The file of this machine that a name means, or as which the document will be saved.
fn file_of(path: &str) -> Option<PathBuf> {
    let path = saved_as(path).map_or(Cow::Borrowed(path), Cow::Owned);
    let path = Path::new(&*path);
    path.is_absolute().then(|| without_dots(path))
}

/// Waits for something, and lets the tasks of other connections run on another thread meanwhile.
fn leaving_others_alone<T>(wait: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(wait),
        _ => wait(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use files::ignored::User;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new(files: &[(&str, &str)]) -> Tree {
            let tree = Tree(tempfile::tempdir().unwrap());
            for (path, text) in files {
                tree.write(path, text);
            }
            tree
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn at(&self, path: &str) -> String {
            self.0.path().join(path).to_string_lossy().into_owned()
        }

        fn ignores(&self, path: &str) -> bool {
            ignored().is_ignored(&self.at(path), &Patterns::none())
        }
    }

    impl IgnoreFiles {
        fn is_ignored(&self, path: &str, setting: &Patterns) -> bool {
            self.storable(path, setting).is_none()
        }
    }

    /// The rules of a user without settings of git.
    fn ignored() -> IgnoreFiles {
        let rules = Arc::new(IgnoreRules::of(User::default()));
        IgnoreFiles { verdicts: Verdicts::new(rules.clone()), rules }
    }

    #[test]
    fn files_of_rules_are_asked() {
        let tree = Tree::new(&[(".honeignore", "*.sql\n"), ("src/.gitignore", "generated.rs\n")]);
        assert!(tree.ignores("a.sql") && tree.ignores("src/generated.rs"));
        assert!(!tree.ignores("generated.rs") && !tree.ignores("src/a.rs"));
    }

    #[test]
    fn the_setting_comes_before_the_files_but_not_before_credentials() {
        let tree = Tree::new(&[("repo/.honeignore", "lib/\n"), ("repo/.gitignore", "lib/\n")]);
        let folder = tree.at("repo");
        let lines = [format!("{folder}/src/"), "*.sql".into(), "!lib/".into(), "!.env".into()];
        let lines = Patterns::compile(&lines).unwrap();
        let ignores = |path: &str| ignored().is_ignored(&tree.at(path), &lines);
        assert!(ignores("repo/src/a.rs") && ignores("b.sql"));
        assert!(!ignores("repo/lib/a.rs") && !ignores("repo/a.rs"));
        assert!(ignores("repo/.env"), "the setting cannot allow a file with credentials");
    }

    /// `git commit --verbose` writes the changes below the message.
    #[test]
    fn files_of_git_itself_are_ignored() {
        let everything = Patterns::compile(&["!*".into()]).unwrap();
        let tree = Tree::new(&[]);
        let ignores = |path: &str| ignored().is_ignored(&tree.at(path), &everything);
        assert!(ignores("repo/.git/COMMIT_EDITMSG") && ignores("repo/.git/modules/a/config"));
        assert!(!ignores("repo/.gitignore") && !ignores("repo/.github/a.md"));
        assert!(!ignores("repo/.git"), "a file that names the folder");
    }

    #[test]
    fn links_and_dots_are_resolved() {
        let tree = Tree::new(&[("repo/.env", "A=1\n"), (".honeignore", "/private/\n")]);
        tree.write("private/a.rs", "");
        std::os::unix::fs::symlink(tree.at("repo/.env"), tree.at("repo/notes.txt")).unwrap();
        std::os::unix::fs::symlink(tree.at("private"), tree.at("repo/link")).unwrap();
        assert!(tree.ignores("repo/notes.txt") && tree.ignores("repo/link/a.rs"));
        assert!(tree.ignores("repo/link/new.rs"), "it is not there yet");
        assert!(tree.ignores("repo/src/../../private/b.rs"));
    }

    #[test]
    fn a_document_that_is_no_file_is_ignored_by_its_name_alone() {
        let everything = Patterns::compile(&["*".into()]).unwrap();
        assert!(ignored().is_ignored("untitled:.env", &everything));
        assert!(ignored().is_ignored("untitled:.kube/config", &everything));
        assert!(!ignored().is_ignored("untitled:Untitled-1", &everything));
    }

    /// The rules of a folder count for a file in it before it is saved.
    #[cfg(unix)]
    #[test]
    fn a_document_that_is_not_saved_yet_has_the_rules_of_its_place() {
        let tree = Tree::new(&[("repo/.honeignore", "private.py\n"), ("clients/a.py", "")]);
        let setting = Patterns::compile(&[format!("{}/", tree.at("clients"))]).unwrap();
        let ignored = ignored();
        for (path, is_ignored) in
            [("clients/new.py", true), ("repo/private.py", true), ("repo/new.py", false)]
        {
            let name = host::addresses::name(&format!("untitled:{}", tree.at(path)));
            assert_eq!(ignored.is_ignored(&name, &setting), is_ignored, "{path}");
            assert_eq!(ignored.is_ignored_on_disk(&name, &setting), is_ignored, "{path}");
        }
    }

    #[test]
    fn rules_of_this_machine_say_nothing_about_files_of_another() {
        let tree = Tree::new(&[(".honeignore", "*\n")]);
        let ignored = ignored();
        let everything = Patterns::compile(&["*".into()]).unwrap();
        let path = tree.at("a.py");
        assert!(ignored.is_ignored(&path, &Patterns::none()));
        for scheme in ["vscode-remote://box", "git:", "file://server", "vscode-vfs://github"] {
            let remote = |path: &str| host::addresses::name(&format!("{scheme}{path}"));
            assert!(!ignored.is_ignored(&remote(&path), &everything), "{scheme}");
            assert!(ignored.is_ignored(&remote("/home/u/%2Enpmrc"), &Patterns::none()), "{scheme}");
        }
        assert!(ignored.is_ignored("untitled:.npmrc", &Patterns::none()));
    }

    #[test]
    fn a_file_on_a_silent_disk_is_ignored() {
        assert_eq!(storable("/a.rs", &Patterns::none(), |_| None), None);
        let known = Verdict { is_ignored: false, real: None };
        let found = storable("/a.rs", &Patterns::none(), |_| Some(known));
        assert_eq!(found, Some(Storable { real_name: None }));
    }

    /// A link may lead somewhere else at the next look.
    #[test]
    fn a_file_is_named_by_where_it_lies_now() {
        for (real, name) in [
            (Some("/real/a.rs"), Some("/real/a.rs")),
            (Some("/other/a.rs"), Some("/other/a.rs")),
            (None, None),
        ] {
            let real = real.map(|real| (PathBuf::from(real), false));
            let verdict = Verdict { is_ignored: false, real };
            let found = storable("/link/a.rs", &Patterns::none(), |_| Some(verdict)).unwrap();
            assert_eq!(found.real_name.as_deref(), name);
        }
        let verdict = Verdict { is_ignored: false, real: None };
        let found = storable("/p/x/../a.rs", &Patterns::none(), |_| Some(verdict)).unwrap();
        assert_eq!(found.real_name.as_deref(), Some("/p/a.rs"));
    }

    /// The name that is recorded has another character for each byte that is no text, and no rule
    /// of git speaks about such a name.
    #[cfg(unix)]
    #[test]
    fn a_file_whose_name_is_no_text_is_ignored() {
        use std::os::unix::ffi::OsStrExt;
        let tree = Tree::new(&[]);
        let folder = tree.0.path().join(std::ffi::OsStr::from_bytes(b"priv\xe9"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join(".honeignore"), "*\n").unwrap();
        std::fs::write(tree.0.path().join(".gitignore"), b"caf\xe9.rs\n").unwrap();
        for name in ["priv%E9/a.rs", "caf%E9.rs"] {
            let address = format!("file://{}", tree.at(name));
            let path = host::addresses::name(&address);
            assert!(ignored().is_ignored(&path, &Patterns::none()), "{path}");
            assert!(ignored().is_ignored_on_disk(&path, &Patterns::none()), "{path}");
        }
        assert!(!tree.ignores("café.rs"));
    }

    #[test]
    fn several_files_are_asked_about_at_once() {
        let tree = Tree::new(&[(".honeignore", "a.rs\n")]);
        let ignored = ignored();
        let paths = [tree.at("a.rs"), tree.at("b.rs"), "untitled:c".into()];
        ignored.prepare(paths.iter());
        let verdicts = paths.map(|path| ignored.is_ignored(&path, &Patterns::none()));
        assert_eq!(verdicts, [true, false, false]);
    }
}
