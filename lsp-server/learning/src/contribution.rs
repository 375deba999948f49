//! What this machine learns for its team: a job that trains the shared part alone, on the freshest
//! labels. The result is the change of the shared part, which is not kept and serves nowhere.

use adapters::registry::Registry;
use anyhow::{Context, Result, ensure};
use feedback::episode::Batch;
use feedback::event::OfferId;
use feedback::job::UpdateReport;
use models::adapter::LoraAdapter;
use models::file::sha256_of;
use models::gguf::Gguf;
use models::team::compose::{compose, private_part};
use models::team::core::Core;
use models::team::frame::Frame;
use services::adapter_service::ServedModel;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use tokio::sync::{mpsc, oneshot};

/// The number of episodes that a contribution learns from: the freshest ones of which the team has
/// nothing yet.
pub const EPISODES_MAX: usize = 64;

/// With fewer, a contribution would tell more of single episodes than of how somebody writes.
pub const EPISODES_MIN: usize = 8;

/// What was learned for the team.
#[derive(Debug)]
pub struct Learned {
    /// The change of every number of the shared part.
    pub change: Vec<f32>,
    /// What it learned from.
    pub batch: Batch,
}

/// Asks the supervisor to learn for the team.
pub struct Request {
    /// The version of the shared part to learn from.
    pub core: Core,
    /// The offers of which the team has what was learned already.
    pub contributed: HashSet<OfferId>,
    pub answer: oneshot::Sender<Result<Learned>>,
}

/// The next request; waits for ever if none can come.
pub async fn next(requests: &mut Option<mpsc::Receiver<Request>>) -> Request {
    if let Some(requests) = requests
        && let Some(request) = requests.recv().await
    {
        return request;
    }
    std::future::pending().await
}

/// The files of a contribution's job. They are removed when this is dropped.
pub struct Files {
    /// The adapter that the job starts from, and its checksum.
    pub(super) parent: PathBuf,
    pub(super) sha256: String,
    pub(super) core: PathBuf,
    values: PathBuf,
}

impl Files {
    /// Returns what the job has changed of the shared part.
    pub fn change(&self, report: &UpdateReport, core: &Core) -> Result<Vec<f32>> {
        read_values(&self.values, report, core)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for file in [&self.parent, &self.core, &self.values] {
            // A file that is left costs space until the next start.
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Writes the adapter that the job starts from: the shared part with the private part that learning
/// continues from.
pub fn prepare(
    registry: &Registry,
    model: &ServedModel,
    core: &Core,
    id: &str,
    values: PathBuf,
) -> Result<Files> {
    let frame = Frame::of(&Gguf::open(&model.path)?, &model.sha256)?;
    let private = match registry.head() {
        0 => None,
        head => private_part(&LoraAdapter::read(&registry.adapter_file(head))?),
    };
    let (parent, _) = registry.job_files(&format!("{id}-team"));
    let core_file = parent.with_extension("core");
    let mut files = Files { parent, sha256: String::new(), core: core_file, values };
    files.sha256 = compose(&frame, core, private.as_ref())?.write(&files.parent)?;
    core.write(&frame, &files.core)?;
    Ok(files)
}

/// The change of the shared part that a job has written.
pub fn read_values(path: &Path, report: &UpdateReport, core: &Core) -> Result<Vec<f32>> {
    let name = || path.display().to_string();
    let bytes = std::fs::read(path).with_context(name)?;
    ensure!(sha256_of(&bytes) == report.adapter_sha256, "{}: not what was reported", name());
    ensure!(bytes.len() == 4 * core.numbers().len(), "{}: of another size", name());
    let values = bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    let step = models::team::core::STEP;
    let before = core.numbers().iter().map(|number| *number as f32 * step);
    let change: Vec<f32> = values.zip(before).map(|(now, before)| now - before).collect();
    ensure!(change.iter().all(|value| value.is_finite()), "{}: holds NaN or infinity", name());
    Ok(change)
}
