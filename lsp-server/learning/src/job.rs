//! The jobs of the learner: updates, contributions to a team, and rounds on a history.

use crate::contribution;
use adapters::history::HistoryFiles;
use feedback::episode::{Batch, Episode};
use feedback::event::AdapterVersion;
use feedback::job::{Base, Hyper, JOB_FORMAT, Job, Parent, Train};
use services::Services;

/// Returns the job of an update that learns from a batch. `run` tells the jobs of this daemon from
/// those of every other one.
pub fn update(services: &Services, batch: &Batch, run: &str, memory_limit_mb: u64) -> Job {
    let registry = services.adapters.serving();
    let (model, settings) = (services.adapters.model(), services.settings.current());
    let candidate = registry.next_version();
    let id = format!("v{candidate}-{run}");
    let (adapter_out, optimizer_out) = registry.job_files(&id);
    Job {
        format: JOB_FORMAT,
        id,
        base: Base { path: model.path.clone(), sha256: model.sha256.clone() },
        parent: registry.parent(),
        train: Train::Private,
        candidate,
        adapter_out,
        optimizer_out,
        seed: u64::from(candidate),
        hyper: settings.lab.ppo.clone(),
        episodes: services.recorder.to_learn(batch.episodes.clone()),
        memory_limit_mb,
    }
}

/// Returns the job of an update as one that trains the shared part alone. It starts from the
/// adapter in `files`, whose private part is that of version `head`.
pub fn for_team(update: Job, files: &contribution::Files, head: AdapterVersion) -> Job {
    Job {
        parent: Some(Parent {
            version: head,
            path: files.parent.clone(),
            sha256: files.sha256.clone(),
            optimizer: None,
        }),
        train: Train::Shared { core: files.core.clone() },
        ..update
    }
}

/// What all rounds on a history have in common.
pub struct Rounds {
    pub files: HistoryFiles,
    pub base: Base,
    pub hyper: Hyper,
    pub memory_limit_mb: u64,
}

impl Rounds {
    /// Returns the job of a round. It starts from the adapter in the file `round.gguf`, which has
    /// this checksum, and writes `round.values`.
    pub fn job(&self, round: u64, parent_sha256: String, texts: &[Episode]) -> Job {
        let path = self.files.path("round.gguf");
        Job {
            format: JOB_FORMAT,
            id: format!("history-{round}"),
            base: self.base.clone(),
            parent: Some(Parent { version: 0, path, sha256: parent_sha256, optimizer: None }),
            train: Train::Shared { core: self.files.learned().core_file() },
            candidate: 1,
            adapter_out: self.files.path("round.values"),
            optimizer_out: self.files.path("round.optimizer"),
            seed: round,
            hyper: self.hyper.clone(),
            episodes: texts.to_vec(),
            memory_limit_mb: self.memory_limit_mb,
        }
    }
}
