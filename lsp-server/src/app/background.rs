//! The periodic tasks, which run a few times a second.

use crate::app::App;
use crate::app::retention::Retention;
use crate::services::checkpoint;
use crate::services::log_recovery::LogRecovery;
use std::sync::Weak;
use std::time::Duration;

/// The interval at which open offers are checked for their timeout.
const TICK: Duration = Duration::from_millis(250);

/// Runs until the app is dropped.
pub async fn tick(app: Weak<App>) {
    let mut interval = tokio::time::interval(TICK);
    let (mut retention, mut recovery) = (Retention::default(), LogRecovery::default());
    loop {
        interval.tick().await;
        let Some(app) = app.upgrade() else { return };
        app.tick();
        retention.tick(&app);
        checkpoint::tick(&app.services);
        recovery.tick(&app.services);
    }
}
