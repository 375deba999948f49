//! A request that is asked of the engine: the wait before it, and which adapter answers. The
//! session's lock is free meanwhile.

use super::SessionError;
use crate::request::PendingRequest;
use engine::{EngineError, Generated};
use feedback::event::AdapterVersion;
use services::Services;
use services::health::TroubleSource;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Waits for the user's next key, if one is likely soon.
pub async fn debounce(services: &Services, pending: &PendingRequest) -> Result<(), SessionError> {
    if pending.wait.is_zero() {
        return Ok(());
    }
    // Whatever the next key is, most of the prompt will be the same.
    services.engine.warm(pending.request.prompt.clone());
    tokio::time::sleep(pending.wait).await;
    if pending.abort.load(Ordering::Relaxed) {
        return Err(SessionError::Superseded);
    }
    Ok(())
}

/// Asks the engine, and notes how long that took and what it was asked in the end.
pub async fn ask(
    services: &Services,
    pending: &mut PendingRequest,
) -> Result<Generated, EngineError> {
    let started = Instant::now();
    // The model for next edits may have begun during the wait for a key.
    let _goes_first = services.next_edit_model.as_ref().map(|model| model.give_way());
    let answer = answer(services, pending).await;
    pending.took = started.elapsed();
    if answer.as_ref().is_ok_and(|generated| generated.without_context) {
        pending.request.prompt.context = None;
    }
    answer
}

/// Returns the engine's answer. If the adapter cannot answer, the one that serves does, or else the
/// model alone, outside of any trial. An adapter may be missing after the model was loaded again
/// with too little memory for both.
async fn answer(
    services: &Services,
    pending: &mut PendingRequest,
) -> Result<Generated, EngineError> {
    let Services { engine, adapters, health, .. } = services;
    let ask =
        |pending: &PendingRequest| engine.generate(pending.request.clone(), pending.abort.clone());
    let answer = ask(pending).await;
    let version = pending.request.adapter;
    let error = match answer {
        Err(error @ (EngineError::NotLoaded(_) | EngineError::NotFinite(_))) if version > 0 => {
            error
        }
        answer => {
            if answer.is_ok() && version > 0 {
                health
                    .clear_if(TroubleSource::Answers, |reason| reason.starts_with(&about(version)));
            }
            return answer;
        }
    };
    let serving = adapters.serving().active();
    let instead = if serving == version { 0 } else { serving };
    let trouble = missing(version, instead, pending.arm.is_some());
    if health.report(TroubleSource::Answers, trouble.clone()) {
        tracing::warn!("{trouble}: {error}");
    }
    (pending.request.adapter, pending.arm) = (instead, None);
    match ask(pending).await {
        Err(EngineError::NotLoaded(_) | EngineError::NotFinite(_)) if instead > 0 => {
            pending.request.adapter = 0;
            ask(pending).await
        }
        answer => answer,
    }
}

/// Returns how a trouble with this adapter begins.
fn about(version: AdapterVersion) -> String {
    format!("adapter v{version} cannot answer")
}

/// Returns the notice shown when another adapter answers instead of one that cannot. Nobody is told
/// to choose the candidate of a trial, because that would end its trial.
fn missing(version: AdapterVersion, instead: AdapterVersion, on_trial: bool) -> String {
    let about = about(version);
    match instead {
        0 if on_trial => format!("{about}, so the model does; its trial waits meanwhile"),
        0 => format!(
            "{about}, so the model completes alone; `hone adapter use {version}` tries it again, \
             and `hone adapter rollback` goes back to the one before"
        ),
        instead => format!("{about}, so v{instead} does"),
    }
}
