//! Where a repository keeps its files. In a worktree and in a submodule `.git` is a file that names
//! a folder, and what all worktrees share lies in another one that `commondir` names.

use crate::limits::POINTER_BYTES_MAX;
use crate::plain::{self, Links};
use crate::platform;
use bstr::BString;
use std::path::{Path, PathBuf};

/// The shortest name of a commit: a SHA-1 in hexadecimal digits.
const SHA1_DIGITS: usize = 40;

/// The folders of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    pub root: PathBuf,
    /// The folder that is this worktree's alone.
    pub own: PathBuf,
    /// The folder that all worktrees share.
    pub shared: PathBuf,
    /// True if git would take it for a repository. Otherwise git looks for one further up.
    pub is_sound: bool,
}

impl Places {
    /// Looks for a repository with this root.
    pub fn at(root: &Path) -> Option<Places> {
        let git = root.join(".git");
        let found = git.symlink_metadata().ok()?.file_type();
        let own = if found.is_file() {
            named(&git, root, b"gitdir:")?
        } else if found.is_symlink() {
            let target = root.join(std::fs::read_link(&git).ok()?);
            let target = Some(target).filter(|target| !platform::is_remote(target))?;
            match target.canonicalize().ok().filter(|file| file.is_file()) {
                // Git reads what such a file names from the folder in which the link lies.
                Some(file) => named(&file, root, b"gitdir:")?,
                None => target,
            }
        } else if found.is_dir() {
            git
        } else {
            return None;
        };
        let shared = named(&own.join("commondir"), &own, b"").unwrap_or_else(|| own.clone());
        let is_sound = is_head(&own.join("HEAD"))
            && ["objects", "refs"].iter().all(|name| shared.join(name).is_dir());
        Some(Places { root: root.to_owned(), own, shared, is_sound })
    }

    /// Returns the name of the branch that is checked out.
    pub fn branch(&self) -> Option<BString> {
        let (head, _) =
            plain::read(&self.own.join("HEAD"), Links::Follow, POINTER_BYTES_MAX).ok()?;
        let branch = head.strip_prefix(b"ref:")?.trim_ascii();
        branch.strip_prefix(b"refs/heads/").map(BString::from)
    }
}

/// Returns true if git takes a file for the `HEAD` of a repository: a link to something in `refs`,
/// the name of such a thing, or the name of a commit.
fn is_head(file: &Path) -> bool {
    if let Ok(target) = std::fs::read_link(file) {
        return platform::bytes_of(target.as_os_str()).starts_with(b"refs/");
    }
    let Ok((head, _)) = plain::read(file, Links::Refuse, POINTER_BYTES_MAX) else { return false };
    match head.strip_prefix(b"ref:") {
        Some(name) => name.trim_ascii_start().starts_with(b"refs/"),
        None => head.get(..SHA1_DIGITS).is_some_and(|name| name.iter().all(u8::is_ascii_hexdigit)),
    }
}

/// Returns the folder that a file names behind a mark. It is no folder of another machine.
fn named(file: &Path, from: &Path, mark: &[u8]) -> Option<PathBuf> {
    let (content, _) = plain::read(file, Links::Refuse, POINTER_BYTES_MAX).ok()?;
    let name = content.strip_prefix(mark)?.trim_ascii();
    let path = from.join(platform::path_of(name).filter(|name| !name.as_os_str().is_empty())?);
    (!platform::is_remote(&path)).then_some(path)
}
