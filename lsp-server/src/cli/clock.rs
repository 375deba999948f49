//! `hone advance-clock`, for tests of what an editor shows after a while.

use crate::daemon::client;
use crate::daemon::handshake::Command;
use anyhow::{Result, ensure};
use host::paths::Paths;

pub async fn advance(home: &Paths, ms: u64) -> Result<()> {
    let moved = client::ask(home, Command::AdvanceClock { ms }).await?;
    ensure!(moved, "no daemon runs");
    Ok(())
}
