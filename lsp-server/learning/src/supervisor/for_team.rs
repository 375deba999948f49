//! Learning for a team: the supervisor runs a job that trains the shared part alone.

use super::{Supervisor, UpdateCause, resources};
use crate::{contribution, job};
use anyhow::{Result, bail, ensure};
use feedback::episode::Batch;
use feedback::event::OfferId;
use feedback::job::Job;
use models::team::core::Core;
use services::learner_status::LearnerState;
use std::collections::HashSet;

impl Supervisor {
    /// Learns for the team and answers the request.
    pub(super) async fn contribute(&mut self, request: contribution::Request) {
        let contribution::Request { core, contributed, answer } = request;
        let learned = self.learn_for_team(&core, &contributed).await;
        // Whoever asked may be gone.
        let _ = answer.send(learned);
    }

    async fn learn_for_team(
        &mut self,
        core: &Core,
        contributed: &HashSet<OfferId>,
    ) -> Result<contribution::Learned> {
        let services = self.services.clone();
        if let Some(reason) = services.adapters.learning_refusal() {
            bail!("{reason}");
        }
        let mut batch = services.recorder.recent(contribution::EPISODES_MAX, contributed);
        let count = batch.episodes.len();
        ensure!(
            count >= contribution::EPISODES_MIN,
            "{count} labels that no contribution has learned from are too few; it takes {}",
            contribution::EPISODES_MIN
        );
        if let Some(reason) = self.reason_to_wait().await {
            bail!("{reason}");
        }
        let update = self.job_for_team(&batch).await;
        let registry = services.adapters.serving();
        let (model, head) = (services.adapters.model().clone(), registry.head());
        let (core, values) = (core.clone(), update.adapter_out.clone());
        let id = update.id.clone();
        let prepared = host::tasks::blocking(move || {
            contribution::prepare(&registry, &model, &core, &id, values).map(|files| (files, core))
        });
        let (files, core) = prepared.await??;
        let job = job::for_team(update, &files, head);
        let report = self.train(&job, &batch, UpdateCause::Now).await?;
        let change = files.change(&report, &core)?;
        // A later contribution learns from what this one has left out.
        batch.episodes.retain(|episode| !report.left_out.contains(&episode.completion.id));
        Ok(contribution::Learned { change, batch })
    }

    /// The job of a contribution, which still lacks the adapter that it starts from.
    async fn job_for_team(&mut self, batch: &Batch) -> Job {
        let settings = self.services.settings.current();
        self.was_learning = settings.learning.enabled;
        self.status.send_modify(|status| status.state = LearnerState::Training);
        let limit_mb =
            resources().await.map_or(0, |resources| resources.learner_limit_mb(&settings.learning));
        self.job(batch, limit_mb)
    }
}
