//! The status line that editors show. It is computed from what the services publish, and sent to
//! every connection when it changes.

use feedback::event::AdapterVersion;
use report::status::StatusLine;
use services::Services;
use services::learner_status::{LearnerState, LearnerStatus};
use services::snooze::Until;
use settings::Config;
use std::sync::Weak;
use std::time::Duration;
use tokio::sync::watch;

/// The current status line.
pub fn line(services: &Services, learner: &LearnerStatus) -> StatusLine {
    if learner.state == LearnerState::Training {
        return StatusLine { busy: true, kind: "Normal".into(), message: "learning".into() };
    }
    if let Some(failure) = &learner.failure {
        let message = format!("learning failed: {failure}");
        return StatusLine { busy: false, kind: "Warning".into(), message };
    }
    let (model, adapter) = (&services.adapters.model().name, services.adapters.serving().active());
    let snoozed = services.snoozes.everything_until();
    ready(model, adapter, &services.settings.current(), snoozed)
}

/// The line while nothing is wrong or under way. It names what serves and what is paused.
fn ready(
    model: &str,
    adapter: AdapterVersion,
    config: &Config,
    snoozed: Option<Until>,
) -> StatusLine {
    let mut message = model.to_owned();
    if adapter > 0 {
        message.push_str(&format!(", adapter v{adapter}"));
    }
    message.push_str(match (config.completion.enabled, config.learning.enabled) {
        (true, true) => "",
        (true, false) => ", learning paused",
        (false, true) => ", completions paused",
        (false, false) => ", completions and learning paused",
    });
    // What is paused for good is said already.
    if let Some(until) = snoozed.filter(|_| config.completion.enabled) {
        message.push_str(&format!(", completions paused {}", until.sentence()));
    }
    StatusLine { busy: false, kind: "Normal".into(), message }
}

/// Keeps the line up to date until the services or its readers are gone.
pub async fn follow(
    services: Weak<Services>,
    mut learner: watch::Receiver<LearnerStatus>,
    lines: watch::Sender<StatusLine>,
) {
    let Some((mut settings, mut adapters, snoozes)) = services.upgrade().map(|services| {
        let snoozes = services.snoozes.clone();
        (services.settings.changes(), services.adapters.changes(), snoozes)
    }) else {
        return;
    };
    let mut snoozed = snoozes.changes();
    loop {
        // A snooze that ends by itself changes the line too.
        let snooze_ends = snoozes.ends_in().unwrap_or(Duration::MAX);
        let changed = tokio::select! {
            changed = learner.changed() => changed,
            changed = settings.changed() => changed,
            changed = adapters.changed() => changed,
            changed = snoozed.changed() => changed,
            () = tokio::time::sleep(snooze_ends) => Ok(()),
            () = lines.closed() => return,
        };
        let Some(services) = services.upgrade().filter(|_| changed.is_ok()) else { return };
        let line = line(&services, &learner.borrow());
        lines.send_if_modified(|shown| {
            let is_new = *shown != line;
            *shown = line;
            is_new
        });
    }
}
