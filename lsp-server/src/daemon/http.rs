//! The HTTP API of the daemon: it listens while the setting `api.enabled` is on.

use crate::app::App;
use crate::daemon::http_token;
use crate::protocol::http::HttpClients;
use anyhow::{Context, Result, anyhow};
use api::{Limits, Listening, listen};
use host::platform::process::listener_on;
use serde::{Deserialize, Serialize};
use services::health::TroubleSource;
use settings::ApiConfig;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Weak};
use tokio::sync::watch;

/// Ports that are tried to find a free one.
const PORTS_TRIED: u16 = 100;

/// What the API does.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HttpState {
    /// Where it listens.
    pub addresses: Vec<SocketAddr>,
    /// Why it does not, although it is switched on.
    pub trouble: Option<String>,
    /// The settings that this is for, once there are any.
    #[serde(skip)]
    pub settings: Option<ApiConfig>,
}

/// Follows the settings until the app is dropped or the daemon ends.
pub async fn follow(
    app: Weak<App>,
    state: watch::Sender<HttpState>,
    daemon_ends: impl Future<Output = ()>,
) {
    tokio::select! {
        () = follow_settings(app, state) => {}
        // The offers of the clients end while the log can still take that.
        () = daemon_ends => {}
    }
}

async fn follow_settings(app: Weak<App>, state: watch::Sender<HttpState>) {
    let Some(mut changes) = app.upgrade().map(|app| app.services.settings.changes()) else {
        return;
    };
    let mut listening: Option<Listening> = None;
    loop {
        let Some(app) = app.upgrade() else { return };
        let wanted = app.services.settings.current().api.clone();
        let is_new = state.borrow().settings.as_ref() != Some(&wanted);
        // Whoever switches it on again wants another try.
        if is_new || (wanted.enabled && listening.is_none()) {
            if let Some(before) = listening.take() {
                before.close().await;
            }
            let mut now = HttpState { settings: Some(wanted.clone()), ..HttpState::default() };
            match start(&app, &wanted).await {
                Ok(started) => {
                    app.services.health.clear(TroubleSource::Http);
                    now.addresses = started.as_ref().map_or(vec![], |it| it.addresses().to_vec());
                    listening = started;
                }
                Err(error) => {
                    let trouble = format!("{error:#}");
                    tracing::warn!("the HTTP API does not listen: {trouble}");
                    app.services.health.report(TroubleSource::Http, trouble.clone());
                    now.trouble = Some(trouble);
                }
            }
            state.send_replace(now);
        }
        drop(app);
        if changes.changed().await.is_err() {
            return;
        }
    }
}

async fn start(app: &Arc<App>, wanted: &ApiConfig) -> Result<Option<Listening>> {
    if !wanted.enabled {
        return Ok(None);
    }
    let token = http_token::read_or_make(&app.paths.api_token())?;
    let clients = Arc::new(HttpClients::new(app.clone()));
    let port = wanted.port;
    match listen(port, token, clients, Limits::default()).await {
        Ok(listening) => Ok(Some(listening)),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Err(taken(port)),
        Err(error) => Err(error).with_context(|| format!("port {port} cannot be used")),
    }
}

/// Names the program that has a port, as far as the system tells, and a port that is free.
fn taken(port: u16) -> anyhow::Error {
    let by = listener_on(port).unwrap_or_else(|| "another program".into());
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let advice = match (port..=u16::MAX).skip(1).take(PORTS_TRIED.into()).find(is_free) {
        Some(free) => format!("`hone api on --port {free}` takes one that is free"),
        None => "choose another with `hone api on --port PORT`".to_owned(),
    };
    anyhow!("port {port} is taken by {by}; {advice}")
}
