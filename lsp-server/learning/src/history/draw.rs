//! Draws texts of a history. The program `hone-rehearse` reads the repository, because this one
//! links no git.
#![allow(clippy::disallowed_types, reason = "it starts hone-rehearse, from its own folder")]

use crate::history::texts::Written;
use anyhow::{Context, Result, bail, ensure};
use completion::prompt::Window;
use host::addresses::name_of_file;
use privacy::Nearby;
use privacy::access::Access;
use ropey::Rope;
use serde::Deserialize;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

/// So many of the newest commits are drawn from.
pub const COMMITS: usize = 1_000;
/// The texts that are drawn.
pub const TEXTS_MAX: usize = 256;
/// With fewer texts, there would be too few to learn from or to check on.
pub const TEXTS_MIN: usize = 64;
/// The texts of one commit. With few, no large commit speaks for its author.
const TEXTS_OF_COMMIT: usize = 2;
/// One of so many texts, the newest ones, is for the check.
const CHECK_SHARE: usize = 4;

/// The longest time for which a repository is read. A stranger's may hold what has no end.
const READING_TIME_MAX: Duration = Duration::from_secs(20 * 60);

/// What is drawn from.
pub struct Draw<'a> {
    /// The program `hone-rehearse`.
    pub program: &'a Path,
    pub folder: &'a Path,
    pub author: Option<&'a str>,
    /// The newest commit in hex, if it is not the one that is checked out.
    pub head: Option<&'a str>,
}

/// The texts of a history.
pub struct Drawn {
    /// The newest commit, in hex.
    pub head: String,
    /// The folder of the repository.
    pub root: PathBuf,
    /// What is learned from.
    pub older: Vec<Written>,
    /// What the check is made on.
    pub newest: Vec<Written>,
}

#[derive(Deserialize)]
struct Header {
    head: String,
    root: PathBuf,
}

impl Draw<'_> {
    /// Draws texts, without those that privacy keeps out and those that the user has forgotten.
    pub fn draw(&self, access: &Access) -> Result<Drawn> {
        let mut command = Command::new(self.program);
        command.arg("texts").arg("--repo").arg(self.folder);
        command.arg("--commits").arg(COMMITS.to_string());
        command.arg("--hunks").arg(TEXTS_MAX.to_string());
        command.arg("--per-commit").arg(TEXTS_OF_COMMIT.to_string());
        // The value stands in the same word, because it may begin with a dash.
        command.args(self.author.map(|author| format!("--author={author}")));
        command.args(self.head.map(|head| format!("--head={head}")));
        let output = output_within(command, READING_TIME_MAX)
            .with_context(|| format!("{}: cannot be run", self.program.display()))?;
        let output = output.with_context(|| {
            format!(
                "{}: its history was not read within {} minutes; remove what is no plain file from \
                 its .git",
                self.folder.display(),
                READING_TIME_MAX.as_secs() / 60
            )
        })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().rev().find(|line| !line.trim().is_empty());
            bail!("{}", last.unwrap_or("it ended").trim_start_matches("Error: "));
        }
        drawn(&output.stdout, access)
    }
}

/// Returns what a program prints, or nothing if it takes longer, which ends it.
fn output_within(mut command: Command, limit: Duration) -> io::Result<Option<Output>> {
    let pipes = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn()?;
    let said = read_aside(child.stdout.take());
    let complained = read_aside(child.stderr.take());
    let Ok(stdout) = said.recv_timeout(limit) else {
        child.kill()?;
        child.wait()?;
        return Ok(None);
    };
    let status = child.wait()?;
    let stderr = complained.recv().unwrap_or(Ok(vec![]))?;
    Ok(Some(Output { status, stdout: stdout?, stderr }))
}

/// Reads a pipe to its end on another thread.
fn read_aside(pipe: Option<impl Read + Send + 'static>) -> Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let mut bytes = vec![];
        let read = pipe.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut bytes));
        // Nobody listens after the limit.
        let _ = sender.send(read.map(|_| bytes));
    });
    receiver
}

fn drawn(output: &[u8], access: &Access) -> Result<Drawn> {
    let unreadable = "the programs `hone` and `hone-rehearse` are of different releases";
    let mut lines = output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let header = lines.next().context(unreadable)?;
    let Header { head, root } = serde_json::from_slice(header).context(unreadable)?;
    let texts = lines.map(|line| serde_json::from_slice(line).context(unreadable));
    let mut texts: Vec<Written> = texts.collect::<Result<_>>()?;
    let all = texts.len();
    texts.retain(|text| may_learn(text, &root, access));
    let (left, kept_out) = (texts.len(), all - texts.len());
    ensure!(
        left >= TEXTS_MIN,
        "{}: {left} changes of its last {COMMITS} commits can be learned from ({kept_out} are \
         kept private); it takes {TEXTS_MIN}",
        root.display()
    );
    let newest = texts.split_off(left - left / CHECK_SHARE);
    Ok(Drawn { head, root, older: texts, newest })
}

/// Returns whether the daemon might store this text, if it was typed today.
fn may_learn(text: &Written, root: &Path, access: &Access) -> bool {
    let path = root.join(&text.path);
    let document = Rope::from_str(&text.text);
    let cursor = text.cursor.min(document.len_chars());
    let window = Window { prefix_chars: 0, suffix_chars: 0 };
    access.may_read(&name_of_file(&path), &text.language)
        && !Nearby::of(&document, cursor, window).holds_secret_with(&text.written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use privacy::forget_scope::Scope;
    use settings::patterns::Patterns;
    use std::sync::Arc;

    fn output(root: &Path, texts: usize) -> Vec<u8> {
        let mut lines = vec![serde_json::json!({ "head": "c0ffee", "root": root }).to_string()];
        for number in 0..texts {
            let written = match number {
                3 => "key = \"AKIAQ3EGTZ5JX7NPLW2D\"\n".to_owned(),
                number => format!("call({number})\n"),
            };
            let text = serde_json::json!({
                "commit": "c0ffee",
                "path": format!("src/{number}.py"),
                "language": "python",
                "text": "import a\n\n",
                "cursor": 9,
                "written": written,
            });
            lines.push(text.to_string());
        }
        lines.join("\n").into_bytes()
    }

    #[test]
    fn the_newest_quarter_is_for_the_check_and_what_is_private_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("repository");
        std::fs::create_dir_all(root.join(".git")).unwrap();
        std::fs::write(root.join(".honeignore"), "src/5.py\n").unwrap();
        let access = Access::new(Arc::default(), folder.path().join("forgotten"), Patterns::none());
        let name = name_of_file(&root.join("src/7.py")).into_owned();
        access.forgotten.add(&Scope::File { names: vec![name] }).unwrap();
        let found = drawn(&output(&root, 83), &access).unwrap();
        assert_eq!((found.head.as_str(), &found.root), ("c0ffee", &root));
        assert_eq!((found.older.len(), found.newest.len()), (60, 20));
        let paths: Vec<&str> = found.older.iter().map(|text| text.path.as_str()).collect();
        for private in ["src/3.py", "src/5.py", "src/7.py"] {
            assert!(!paths.contains(&private), "{private}");
        }
        assert_eq!(found.newest[19].path, "src/82.py");
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_does_not_end_is_ended() {
        let program = |script: &str| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", script]);
            command
        };
        let silent = output_within(program("exec sleep 1000"), Duration::ZERO).unwrap();
        assert!(silent.is_none());
        let long = Duration::from_secs(60);
        let said = output_within(program("echo a; echo b >&2; exit 3"), long).unwrap().unwrap();
        assert_eq!((&*said.stdout, &*said.stderr), (&b"a\n"[..], &b"b\n"[..]));
        assert_eq!(said.status.code(), Some(3));
    }

    #[test]
    fn too_few_texts_and_another_release_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let access = Access::new(Arc::default(), folder.path().join("forgotten"), Patterns::none());
        let refused = |output: &[u8]| match drawn(output, &access) {
            Ok(_) => panic!("it was drawn"),
            Err(error) => format!("{error:#}"),
        };
        let few = refused(&output(folder.path(), 40));
        assert!(few.contains("39 changes") && few.contains("it takes 64"), "{few}");
        assert!(refused(b"hello\n").contains("different releases"));
    }
}
