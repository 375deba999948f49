//! The periodic tasks, which run a few times a second.

use crate::app::App;
use crate::app::retention::Retention;
use crate::services::Services;
use crate::services::checkpoint;
use crate::services::log_recovery::LogRecovery;
use std::sync::Weak;

/// Runs until the app is dropped.
pub async fn tick(app: Weak<App>) {
    let Some(activity) = app.upgrade().map(|app| app.services.activity.clone()) else { return };
    let (mut retention, mut recovery) = (Retention::default(), LogRecovery::default());
    loop {
        activity.next_tick().await;
        let Some(app) = app.upgrade() else { return };
        app.tick();
        retention.tick(&app);
        checkpoint::tick(&app.services);
        recovery.tick(&app.services);
    }
}

/// Tells the workspaces of every change of the setting `privacy.ignore`, until the services are
/// dropped.
pub async fn follow_ignored(services: Weak<Services>) {
    let Some((mut changes, mut known)) = services.upgrade().map(|services| {
        let settings = &services.settings;
        (settings.changes(), settings.current().privacy.ignore.clone())
    }) else {
        return;
    };
    while changes.changed().await.is_ok() {
        let Some(services) = services.upgrade() else { return };
        let settings = services.settings.current();
        if settings.privacy.ignore != known {
            known.clone_from(&settings.privacy.ignore);
            services.workspaces.use_ignored(settings.not_stored.clone());
        }
    }
}
