//! The cache of the hub's own tools, in which a model's file may lie already.

use std::env;
use std::fs;
use std::path::PathBuf;

/// The revision whose file is looked for. Models are pinned by their checksum, so another one is of
/// no use.
const REVISION: &str = "main";

pub struct HubCache {
    folder: PathBuf,
}

impl HubCache {
    pub fn new(folder: PathBuf) -> HubCache {
        HubCache { folder }
    }

    /// Returns the cache below HF_HOME, or below the user's home.
    pub fn from_env() -> Option<HubCache> {
        let home = env::var_os("HF_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(env::home_dir()?.join(".cache/huggingface")))?;
        Some(HubCache::new(home.join("hub")))
    }

    /// Returns the path of a repository's file, if the cache has it.
    pub fn file(&self, repo: &str, name: &str) -> Option<PathBuf> {
        let repo = self.folder.join(format!("models--{}", repo.replace('/', "--")));
        let commit = fs::read_to_string(repo.join("refs").join(REVISION)).ok()?;
        let path = repo.join("snapshots").join(commit).join(name);
        path.exists().then_some(path)
    }
}
