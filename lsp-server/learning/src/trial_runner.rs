//! Runs trials: begins them, scores references with their arms, and ends them.

use crate::holdout_check;
use adapters::registry::{AdapterCandidate, Registry};
use anyhow::Result;
use engine::{EngineError, ScorePrompt, ScoreRequest};
use feedback::event::{AdapterVersion, EventKind};
use policy::references::Reference;
use policy::trial::{Arms, End, Verdict};
use services::Services;
use services::health::TroubleSource;
use std::sync::Weak;
use std::time::Duration;

/// The longest time between two looks at a trial.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The same while no trial runs. Whatever begins one is recorded, which ends the wait.
const RESTING_INTERVAL: Duration = Duration::from_secs(300);

/// Decides trials, and scores references while the engine is idle. It runs until the services are
/// dropped.
pub async fn run(services: Weak<Services>) {
    loop {
        let Some(running) = services.upgrade() else { return };
        decide(&running).await;
        if compare_one(&running).await {
            continue;
        }
        let is_trial = running.recorder.learned_state(|state| state.trial.is_some());
        let interval = if is_trial { CHECK_INTERVAL } else { RESTING_INTERVAL };
        let news = running.recorder.trial_news();
        drop(running);
        let _ = tokio::time::timeout(interval, news.notified()).await;
    }
}

/// A candidate that was registered.
#[derive(Debug)]
pub struct Tried {
    pub version: AdapterVersion,
    /// Why the holdout check refused it, if it did.
    pub refusal: Option<String>,
}

/// Starts a trial of a candidate, unless the holdout check refuses it. The reason of a refusal is
/// registered with the candidate. Without trials the candidate serves once it has passed the check.
pub async fn try_candidate(
    services: &Services,
    mut candidate: AdapterCandidate,
    still_wanted: impl FnOnce(&Registry) -> Result<()>,
) -> Result<Tried> {
    let change = services.adapters.change().await;
    candidate.take_number(change.registry());
    let (version, kl) = (candidate.entry.version, candidate.entry.report.kl_base);
    change.load(version, candidate.adapter.clone()).await?;
    let own = services.recorder.learned_state(|state| state.references.held_out());
    let head = change.registry().head();
    let refusal = holdout_check::refusal(&services.engine, version, head, kl, own).await?;
    still_wanted(change.registry())?;
    match &refusal {
        Some(reason) => {
            let end = End::Dropped;
            candidate.entry.verdict = Some(Verdict { end, reason: reason.clone(), offers: 0 });
            change.commit(move |registry| registry.refuse(&candidate)).await?;
        }
        None if services.settings.current().lab.trial => {
            change.start_trial(candidate).await?;
        }
        None => {
            let file = candidate.adapter.clone();
            change.swap(version, file, move |registry| registry.promote(&candidate)).await?;
        }
    }
    Ok(Tried { version, refusal })
}

/// Ends the trial if there is enough evidence.
async fn decide(services: &Services) {
    if services.recorder.trial_verdict().is_none() {
        return;
    }
    let change = services.adapters.change().await;
    // The verdict is asked for again, because the user may have chosen an adapter or forgotten
    // events in the meantime.
    let Some(verdict) = services.recorder.trial_verdict() else { return };
    let concluding = verdict.clone();
    match change.commit(move |registry| registry.conclude(concluding)).await {
        Ok(_) => {
            services.health.clear(TroubleSource::Trial);
            services.health.clear(TroubleSource::Answers);
            tracing::info!("the trial ended, {:?}: {}", verdict.end, verdict.reason);
        }
        Err(error) => {
            let reason = format!("{error:#}");
            // The change is tried again every second, but the error is logged only once.
            if services.health.report(TroubleSource::Trial, reason.clone()) {
                tracing::error!("{reason}");
            }
        }
    }
}

/// Scores the next reference with both arms, if one waits and a trial runs.
async fn compare_one(services: &Services) -> bool {
    let Some((text, arms, generation)) = services.recorder.next_comparison() else { return false };
    match compare(services, text, arms).await {
        Ok(compared) => services.recorder.record_derived(compared, generation),
        // The candidate may have been replaced in the meantime, or the reference may be too long.
        Err(error) => tracing::debug!("not compared: {error}"),
    }
    true
}

async fn compare(
    services: &Services,
    text: Reference,
    arms: Arms,
) -> Result<EventKind, EngineError> {
    let adapters = vec![arms.candidate, arms.incumbent];
    let request = ScoreRequest {
        prompt: ScorePrompt::Tokens {
            prompt: text.served.prompt.clone(),
            adapter_from: text.served.adapter_from,
        },
        healing: text.served.healing.clone(),
        tokens: text.tokens,
        adapters: adapters.clone(),
    };
    let tokens = request.tokens.len() as u32;
    let scored = services.engine.score(request).await?;
    let scores: Vec<_> = adapters.into_iter().zip(scored.scores).collect();
    let logprobs = scores.iter().map(|(version, score)| (*version, score.logprob));
    let greedy = scores.iter().filter(|(_, score)| score.is_greedy);
    Ok(EventKind::Compared {
        id: text.id,
        tokens,
        logprobs: logprobs.collect(),
        greedy: greedy.map(|(version, _)| *version).collect(),
    })
}
