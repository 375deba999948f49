//! The files of a history that its developer's own Hone may read: none that the user's rules keep
//! out, and none that the user has removed with `hone forget`. Their Hone is asked.

use anyhow::{Context, Result, bail};
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// `hone readable`, which runs as long as this lives.
pub struct Readable {
    root: PathBuf,
    asked: RefCell<Asked>,
}

struct Asked {
    child: Child,
    paths: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Readable {
    /// `root` is the folder to which the paths of the history belong.
    pub fn start(hone: &Path, root: PathBuf) -> Result<Readable> {
        let pipes = (Stdio::piped(), Stdio::piped());
        let child = Command::new(hone).arg("readable").stdin(pipes.0).stdout(pipes.1).spawn();
        let mut child = child.with_context(|| format!("{}: cannot be run", hone.display()))?;
        let (paths, answers) = (child.stdin.take(), child.stdout.take());
        let (paths, answers) = paths.zip(answers).context("it has no pipes")?;
        let answers = BufReader::new(answers);
        Ok(Readable { root, asked: RefCell::new(Asked { child, paths, answers }) })
    }

    /// Returns true if a file may be read, which is named from the root on. One whose name is not
    /// UTF-8 cannot be asked about.
    pub fn may_read(&self, path: &Path) -> Result<bool> {
        if path.to_str().is_none() {
            return Ok(false);
        }
        let Asked { paths, answers, .. } = &mut *self.asked.borrow_mut();
        let mut answer = String::new();
        let asked = serde_json::to_string(&self.root.join(path)).map_err(anyhow::Error::from);
        asked
            .and_then(|line| Ok(writeln!(paths, "{line}")?))
            .and_then(|()| Ok(answers.read_line(&mut answer)?))
            .context("`hone readable` cannot be asked")?;
        match answer.trim_end() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => bail!("`hone readable` has ended"),
        }
    }
}

impl Drop for Readable {
    fn drop(&mut self) {
        let Asked { child, .. } = self.asked.get_mut();
        // It may have ended, which is all that is wanted.
        let _ = child.kill();
        let _ = child.wait();
    }
}

#[cfg(all(test, unix))]
pub(crate) mod tests {
    use super::*;
    use crate::developer::history::tests::Repo;
    use crate::developer::history::{Filter, History};
    use std::os::unix::fs::PermissionsExt;
    use tempfile::TempDir;

    /// Makes a history keep to a Hone that may read nothing of this name. The folder holds it.
    pub fn without(history: &mut History, name: &str) -> Result<TempDir> {
        let folder = tempfile::tempdir()?;
        let program = folder.path().join("hone");
        let script = format!(
            "#!/bin/sh\nwhile read -r path; do\n  case $path in *{name}*) echo false ;; \
             *) echo true ;; esac\ndone\n"
        );
        std::fs::write(&program, script)?;
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755))?;
        history.keep_to(Readable::start(&program, history.root())?);
        Ok(folder)
    }

    #[test]
    fn no_change_of_a_file_that_may_not_be_read_is_typed() {
        let repo = Repo::new();
        for name in ["a.py", "private/b.py"] {
            repo.write(name, "one\ntwo\nthree\n");
        }
        repo.commit("Ada", 1_000, None);
        std::fs::rename(repo.path("private/b.py"), repo.path("c.py")).unwrap();
        repo.write("c.py", "one\ntwo\nthree\nfour\n");
        repo.commit("Ada", 2_000, None);
        let mut history = History::open(&repo.path("."), &Filter::default()).unwrap();
        let paths = |history: &History| -> Vec<String> {
            history.changes().map(|change| change.unwrap().path).collect()
        };
        assert_eq!(paths(&history), ["a.py", "private/b.py", "c.py"]);
        let _hone = without(&mut history, "private").unwrap();
        assert_eq!(paths(&history), ["a.py"], "what was renamed shows what stood there before");
    }

    #[test]
    fn a_file_whose_name_is_not_utf8_may_not_be_read() {
        use std::os::unix::ffi::OsStrExt;
        let readable = Readable::start(Path::new("/bin/true"), "/p".into()).unwrap();
        let name = std::ffi::OsStr::from_bytes(b"caf\xe9.txt");
        assert!(!readable.may_read(Path::new(name)).unwrap());
    }

    #[test]
    fn a_hone_that_has_ended_allows_nothing() {
        let readable = Readable::start(Path::new("/bin/true"), "/p".into()).unwrap();
        assert!(readable.may_read(Path::new("a.py")).is_err());
    }
}
