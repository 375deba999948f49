//! `hone pause`, `hone resume`: in the running daemon and for the ones to come.

use crate::cli::config;
use crate::home::Home;
use anyhow::Result;

pub async fn set(home: &Home, enabled: bool) -> Result<()> {
    config::change(home, "learning.enabled", Some(&enabled.into())).await?;
    println!(
        "{}",
        match enabled {
            true => "learning goes on",
            false => "learning is paused; what you take and reject is still recorded",
        }
    );
    Ok(())
}
