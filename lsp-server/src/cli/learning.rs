//! `hone pause`, `hone resume`: in the running daemon and for the ones to come.

use crate::client;
use crate::config::{self, Config};
use crate::home::Home;
use crate::wire::Purpose;
use anyhow::Result;

pub async fn set(home: &Home, enabled: bool) -> Result<()> {
    home.create()?;
    let path = home.config_file();
    // A file with a mistake in it is not written over.
    Config::load(&path)?;
    config::set(&path, "learning", "enabled", enabled)?;
    client::ask(home, Purpose::Learning { enabled }).await?;
    println!(
        "{}",
        match enabled {
            true => "learning goes on",
            false => "learning is paused; what you take and reject is still recorded",
        }
    );
    Ok(())
}
