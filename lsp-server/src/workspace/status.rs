//! What `hone status` shows of each folder.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderStatus {
    pub folder: PathBuf,
    pub state: FolderState,
    /// The files that are indexed.
    pub files: usize,
    /// The files that were listed.
    pub listed: usize,
    /// The files that are left out: ignored, forgotten, near a secret, too long, or no text.
    pub left_out: usize,
    pub chunks: usize,
    pub text_bytes: usize,
    /// The memory of both indexes beside the texts.
    pub index_bytes: usize,
    /// The duration of the last whole build.
    pub build_ms: Option<u64>,
    /// The limit because of which files are missing.
    pub limit: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FolderState {
    /// The build is about to begin.
    #[default]
    Waiting,
    Building,
    Ready,
    /// The disk does not answer.
    Stalled,
    /// The folder does not exist any more.
    Gone,
    /// The folder is the user's home or the root of the file system, and no workspace.
    Refused,
}

impl FolderStatus {
    pub fn line(&self) -> String {
        let folder = self.folder.display();
        let state = match self.state {
            FolderState::Waiting => "waiting",
            FolderState::Building => "being indexed",
            FolderState::Ready => "indexed",
            FolderState::Stalled => "the disk does not answer",
            FolderState::Gone => return format!("{folder}: does not exist any more"),
            FolderState::Refused => {
                return format!("{folder}: not indexed; open a project in it instead");
            }
        };
        let megabytes = (self.text_bytes + self.index_bytes) as f64 / 1e6;
        let left_out = match self.left_out {
            0 => String::new(),
            files => format!(", {files} left out"),
        };
        let limit = self.limit.as_ref().map(|limit| format!("; {limit}")).unwrap_or_default();
        format!(
            "{folder}: {state}, {} of {} file(s){left_out}, {} chunks, {megabytes:.0} MB{limit}",
            self.files, self.listed, self.chunks
        )
    }
}
