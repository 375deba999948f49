//! The way of a candidate into the registry: its file is checked, and it serves or is on trial.

use crate::trial_runner;
use adapters::registry::{AdapterCandidate, Entry, Registry};
use anyhow::{Context, Result, ensure};
use feedback::episode::Batch;
use feedback::job::{Job, UpdateReport};
use models::adapter::LoraAdapter;
use models::file::sha256;
use models::gguf::Gguf;
use services::Services;

/// Checks the learner's adapter and makes it serve. The daemon checks in the file itself
/// whatever it can, and does not rely on the report for that.
pub async fn install(
    services: &Services,
    job: &Job,
    batch: &Batch,
    report: UpdateReport,
) -> Result<()> {
    let installed = check_and_promote(services, job, batch, report).await;
    if installed.is_err() {
        // The adapter may have learned from something that was forgotten in the meantime.
        let _ = std::fs::remove_file(&job.adapter_out);
        let _ = std::fs::remove_file(&job.optimizer_out);
    }
    installed
}

async fn check_and_promote(
    services: &Services,
    job: &Job,
    batch: &Batch,
    report: UpdateReport,
) -> Result<()> {
    let path = job.adapter_out.clone();
    let (model, expected) = (services.adapters.model().clone(), report.adapter_sha256.clone());
    let checked = path.clone();
    let found = host::tasks::blocking(move || -> Result<String> {
        let found = sha256(&checked)
            .with_context(|| format!("{}: no candidate there", checked.display()))?;
        ensure!(found == expected, "{}: not what the learner said it wrote", checked.display());
        let adapter = LoraAdapter::read(&checked)?;
        adapter.check_base(&Gguf::open(&model.path)?, &model.sha256)?;
        Ok(found)
    })
    .await??;

    let parent = job.parent.as_ref().map_or(0, |parent| parent.version);
    let mut offers = batch.offers();
    offers.retain(|offer| !report.left_out.contains(offer));
    // The same labels would be learned from for ever.
    ensure!(!offers.is_empty(), "the learner has left out all labels");
    let entry = Entry {
        version: job.candidate,
        parent,
        sha256: found,
        base_sha256: services.adapters.model().sha256.clone(),
        created_at_ms: services.clock.unix_ms(),
        labels: batch.span(),
        offers,
        history: None,
        forgotten: false,
        verdict: None,
        report,
    };
    let optimizer = Some(job.optimizer_out.clone()).filter(|path| path.exists());
    promote(services, AdapterCandidate { entry, adapter: path, optimizer }, batch).await
}

async fn promote(services: &Services, candidate: AdapterCandidate, batch: &Batch) -> Result<()> {
    let entry = &candidate.entry;
    let (parent, took_ms) = (entry.parent, entry.report.total_ms);
    let still_wanted = |registry: &Registry| {
        ensure!(
            services.recorder.is_current(batch),
            "a file was forgotten while the update learned; what is left is learned from again"
        );
        // A user who rolled back during the update does not want an adapter that grew from the
        // one rolled back.
        ensure!(
            registry.head() == parent,
            "learning continues from v{}, while the update learned from v{parent}",
            registry.head()
        );
        Ok(())
    };
    let tried = trial_runner::try_candidate(services, candidate, still_wanted).await?;
    let outcome = match tried.refusal {
        None if services.settings.current().lab.trial => "is on trial",
        None => "serves",
        Some(reason) => {
            tracing::warn!("adapter v{} is not tried: {reason}", tried.version);
            "is given up"
        }
    };
    tracing::info!("adapter v{} {outcome}; update took {took_ms} ms", tried.version);
    Ok(())
}
