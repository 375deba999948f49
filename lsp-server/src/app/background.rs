//! What happens by itself, a few times a second.

use crate::app::App;
use crate::app::retention::Retention;
use crate::services::checkpoint;
use crate::services::log_recovery::LogRecovery;
use std::sync::Weak;
use std::time::Duration;

/// How often open offers are looked at for their timeout.
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
