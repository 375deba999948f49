//! The event log, for commands that read it while no daemon runs.

use feedback::log::{EventLog, LogError};
use feedback::sled_log::SledLog;
use host::paths::Paths;

/// Opens the log. A damaged one gives way to a new one, and stderr says so.
pub fn open(home: &Paths) -> Result<SledLog, LogError> {
    let log = SledLog::open(&home.event_log())?;
    if let Some(damage) = log.damage() {
        tell!("note: {damage}");
    }
    Ok(log)
}
