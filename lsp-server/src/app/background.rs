//! The periodic tasks, which run a few times a second, and the one that follows the settings.

use crate::app::App;
use crate::app::retention::Retention;
use services::checkpoint;
use services::log_recovery::LogRecovery;
use session::Session;
use std::sync::Weak;
use std::time::{Duration, Instant};

/// The time after which a rule that was set holds for offers that are on screen.
const RULES_EVERY: Duration = Duration::from_secs(2);

/// Runs until the app is dropped.
pub async fn tick(app: Weak<App>) {
    let Some(activity) = app.upgrade().map(|app| app.services.activity.clone()) else { return };
    let (mut retention, mut recovery) = (Retention::default(), LogRecovery::default());
    let mut rules_at = None;
    loop {
        activity.next_tick().await;
        let Some(app) = app.upgrade() else { return };
        app.tick();
        // Ignore files change without a word.
        if rules_at.is_none_or(|at: Instant| at.elapsed() >= RULES_EVERY) {
            rules_at = Some(Instant::now());
            app.sessions.all().iter().for_each(Session::follow_rules_aside);
        }
        retention.tick(&app);
        checkpoint::tick(&app.services);
        recovery.tick(&app.services);
    }
}

/// Passes every change of the setting `privacy.ignore` on to what reads files by itself, until the
/// app is dropped.
pub async fn follow_settings(app: Weak<App>) {
    let Some((mut changes, mut known)) = app.upgrade().map(|app| {
        let settings = &app.services.settings;
        (settings.changes(), settings.current())
    }) else {
        return;
    };
    while changes.changed().await.is_ok() {
        let Some(app) = app.upgrade() else { return };
        let settings = app.services.settings.current();
        if settings.privacy.ignore != known.privacy.ignore {
            app.services.access.use_ignored(settings.not_stored.clone());
            app.sessions.all().iter().for_each(Session::follow_rules_aside);
        }
        known = settings;
    }
}
