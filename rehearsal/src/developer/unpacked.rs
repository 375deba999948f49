//! What git unpacks of a repository, looked at before it does: a few bytes on the disk may be many
//! in memory, and libgit2 has no limit of its own. The header of an object says how many.

use crate::limits;
use anyhow::{Result, ensure};
use git2::{Commit, ObjectType, Odb, Oid, Repository};
use std::cell::RefCell;
use std::collections::HashMap;

/// Finds a commit.
///
/// # Errors
/// There is none, or it takes too much memory to unpack it.
pub fn commit(repository: &Repository, id: Oid) -> Result<Commit<'_>> {
    let (bytes, _) = repository.odb()?.read_header(id)?;
    ensure!(
        bytes <= limits::COMMIT_BYTES_MAX,
        "commit {id} takes more than {} MiB when it is unpacked: name a repository without it",
        limits::COMMIT_BYTES_MAX >> 20
    );
    Ok(repository.find_commit(id)?)
}

/// The sizes of trees that were found before. Most trees of a commit are those of the one before.
#[derive(Default)]
pub struct Trees {
    found: RefCell<HashMap<Oid, Size>>,
}

/// A tree with all that lies below it, each as often as it lies there.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    entries: u64,
    /// Their paths, and the trees themselves.
    bytes: u64,
}

impl Trees {
    /// Returns true if a tree can be walked to its end in little memory and time. libgit2 walks two
    /// trees as a whole to compare them, also what they have in common, and a few trees that name
    /// each other are as many as it takes.
    pub fn can_be_walked(&self, repository: &Repository, tree: Oid) -> Result<bool> {
        let mut found = self.found.borrow_mut();
        if found.len() > limits::TREES_KNOWN_MAX {
            found.clear();
        }
        let mut walk = Walk { repository, odb: repository.odb()?, found: &mut found };
        Ok(walk.size(tree, limits::TREE_DEPTH_MAX, 0)?.is_some())
    }
}

struct Walk<'a> {
    repository: &'a Repository,
    odb: Odb<'a>,
    found: &'a mut HashMap<Oid, Size>,
}

impl Walk<'_> {
    /// Returns the size of a tree. `None` if it is too large. Those above it have `above` bytes.
    fn size(&mut self, id: Oid, depth: u32, above: u64) -> Result<Option<Size>> {
        if let Some(size) = self.found.get(&id) {
            return Ok(Some(*size));
        }
        let bytes = self.odb.read_header(id)?.0 as u64;
        let above = above.saturating_add(bytes);
        let Some(depth) = depth.checked_sub(1).filter(|_| above <= limits::TREE_PATHS_BYTES_MAX)
        else {
            return Ok(None);
        };
        let tree = self.repository.find_tree(id)?;
        let mut size = Size { entries: 0, bytes };
        for entry in &tree {
            let name = entry.name_bytes().len() as u64 + 1;
            let below = match entry.kind() {
                Some(ObjectType::Tree) => self.size(entry.id(), depth, above)?,
                _ => Some(Size::default()),
            };
            let Some(below) = below else { return Ok(None) };
            size.entries += 1 + below.entries;
            size.bytes += name * (1 + below.entries) + below.bytes;
            if size.entries > limits::TREE_ENTRIES_MAX || size.bytes > limits::TREE_PATHS_BYTES_MAX
            {
                return Ok(None);
            }
        }
        self.found.insert(id, size);
        Ok(Some(size))
    }
}
