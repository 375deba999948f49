//! `hone api`: the HTTP API for editors' plugins that were written for other servers.

use crate::cli::config;
use crate::cli::settings::Configured;
use crate::daemon::client;
use crate::daemon::handshake::Command;
use crate::daemon::http::HttpState;
use crate::daemon::http_token;
use anyhow::{Result, bail};
use clap::Subcommand;
use host::paths::Paths;
use serde_json::json;
use settings::ApiConfig;
use std::net::SocketAddr;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ApiArgs {
    #[command(subcommand)]
    command: Option<ApiCommand>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum ApiCommand {
    /// Answer plugins on this machine that have the token, and start the daemon
    On {
        /// The port, from 1024 on; the one of the settings if left out
        #[arg(long, value_parser = clap::value_parser!(u16).range(1024..))]
        port: Option<u16>,
    },
    /// Answer nobody any more
    Off,
    /// Show the address and the token that a plugin needs, as `hone api` alone does (scripts)
    #[command(hide = true)]
    Status {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

pub async fn run(home: &Paths, args: ApiArgs) -> Result<()> {
    match args.command.unwrap_or(ApiCommand::Status { json: args.json }) {
        ApiCommand::On { port } => on(home, port).await,
        ApiCommand::Off => {
            config::change(home, "api.enabled", Some(&false.into())).await?;
            say!("the HTTP API is off")
        }
        ApiCommand::Status { json } => status(home, json).await,
    }
}

async fn on(home: &Paths, port: Option<u16>) -> Result<()> {
    home.create()?;
    if let Some(port) = port {
        config::change(home, "api.port", Some(&port.into())).await?;
    }
    config::change(home, "api.enabled", Some(&true.into())).await?;
    client::start(home).await?;
    let state = client::question::<HttpState>(home, Command::Http).await?;
    if let Some(trouble) = state.and_then(|state| state.trouble) {
        bail!("{trouble}");
    }
    status(home, false).await?;
    say!(
        "These clients do not say which file they ask about, so ignore files do not hold for them; \
         secrets are found in the text."
    )
}

async fn status(home: &Paths, json: bool) -> Result<()> {
    let ApiConfig { enabled, port } = Configured::noted(home).config.api;
    let state = client::question::<HttpState>(home, Command::Http).await?.unwrap_or_default();
    let port = state.addresses.first().map_or(port, SocketAddr::port);
    let url = format!("http://127.0.0.1:{port}");
    // The daemon may have just made it, or refused it.
    let token = http_token::read(&home.api_token())?;
    let listening = !state.addresses.is_empty();
    if json {
        let token = token.as_ref().map(api::Token::as_str);
        let trouble = state.trouble;
        let status = json!({
            "enabled": enabled,
            "listening": listening,
            "url": url,
            "token": token,
            "trouble": trouble,
        });
        return emit!("{status}");
    }
    match (enabled, listening, state.trouble) {
        (false, _, _) => say!("the HTTP API is off; `hone api on` switches it on")?,
        (true, true, None) => say!("the HTTP API listens on {url}")?,
        (true, true, Some(trouble)) => say!("the HTTP API listens on {url}: {trouble}")?,
        (true, false, Some(trouble)) => say!("the HTTP API does not listen: {trouble}")?,
        (true, false, None) => {
            say!("the HTTP API is on, and no daemon runs; `hone api on` starts it")?;
        }
    }
    if let Some(token) = token.filter(|_| enabled) {
        // They are copied, so they are not wrapped.
        emit!("token: {}", token.as_str())?;
        emit!("for clients that can send no token: {url}/t/{}", token.as_str())?;
    }
    Ok(())
}
