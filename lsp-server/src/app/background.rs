//! The periodic tasks, which run a few times a second.

use crate::app::App;
use crate::app::retention::Retention;
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
