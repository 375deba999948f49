//! The HTTP API of the daemon: it listens while the setting `api.enabled` is on.

use crate::app::App;
use crate::daemon::http_token;
use crate::protocol::http::HttpClients;
use anyhow::{Context, Result, anyhow};
use api::{Limits, Listening, Token, listen};
use host::platform::process::listener_on;
use serde::{Deserialize, Serialize};
use services::health::TroubleSource;
use settings::ApiConfig;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Weak};
use tokio::sync::{mpsc, oneshot};

/// Ports that are tried to find a free one.
const PORTS_TRIED: u16 = 100;

/// What the API does.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HttpState {
    /// Where it listens.
    pub addresses: Vec<SocketAddr>,
    /// Why it does not, or not on the port of the settings, although it is switched on.
    pub trouble: Option<String>,
}

/// Asks what the API does, once it does what the settings and the token's file say now.
pub type Question = oneshot::Sender<HttpState>;

/// Asks what the API does.
pub async fn ask(follower: &mpsc::Sender<Question>) -> Result<HttpState> {
    let (question, state) = oneshot::channel();
    // If the follower is gone, so is the question, and no state comes.
    let _ = follower.send(question).await;
    state.await.context("the HTTP API has ended by a fault of Hone's own")
}

/// Follows the settings until the app is dropped or the daemon ends.
pub async fn follow(
    app: Weak<App>,
    questions: mpsc::Receiver<Question>,
    daemon_ends: impl Future<Output = ()>,
) {
    tokio::select! {
        () = follow_settings(app, questions) => {}
        // The offers of the clients end while the log can still take that.
        () = daemon_ends => {}
    }
}

async fn follow_settings(app: Weak<App>, mut questions: mpsc::Receiver<Question>) {
    let Some(mut changes) = app.upgrade().map(|app| app.services.settings.changes()) else {
        return;
    };
    let mut open: Option<Open> = None;
    let mut state = HttpState::default();
    let mut question: Option<Question> = None;
    loop {
        let Some(app) = app.upgrade() else { return };
        let trouble = adjust(&app, &mut open).await.err().map(|error| format!("{error:#}"));
        if trouble != state.trouble {
            match &trouble {
                Some(trouble) => {
                    tracing::warn!("the HTTP API does not listen as it should: {trouble}");
                    app.services.health.report(TroubleSource::Http, trouble.clone());
                }
                None => app.services.health.clear(TroubleSource::Http),
            }
        }
        drop(app);
        let addresses = open.as_ref().map_or(vec![], |open| open.listening.addresses().to_vec());
        state = HttpState { addresses, trouble };
        if let Some(question) = question.take() {
            let _ = question.send(state.clone());
        }
        // Whoever switches it on again, or asks about it, wants another try.
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            asked = questions.recv() => match asked {
                Some(asked) => question = Some(asked),
                None => return,
            },
        }
    }
}

/// What listens, on which port and for whom.
struct Open {
    listening: Listening,
    port: u16,
    token: Token,
}

/// Has it listen as the settings and the token's file say now.
async fn adjust(app: &Arc<App>, open: &mut Option<Open>) -> Result<()> {
    let ApiConfig { enabled, port } = app.services.settings.current().api;
    let token = match enabled {
        true => http_token::read_or_make(&app.paths.api_token()).map(Some),
        false => Ok(None),
    };
    let is_of = |open: &Open| {
        let token = token.as_ref().ok().and_then(Option::as_ref);
        token.is_some_and(|token| token.as_str() == open.token.as_str())
    };
    if let Some(before) = open.take_if(|open| !is_of(open)) {
        before.listening.close().await;
    }
    let Some(token) = token? else { return Ok(()) };
    let kept = open.as_ref().map(|open| open.port);
    if kept == Some(port) {
        return Ok(());
    }
    // A port that works is left only for another that does.
    let started = start(app, port, token).await;
    let started = match kept {
        Some(kept) => started.with_context(|| format!("port {kept} is kept"))?,
        None => started?,
    };
    if let Some(before) = open.replace(started) {
        before.listening.close().await;
    }
    Ok(())
}

async fn start(app: &Arc<App>, port: u16, token: Token) -> Result<Open> {
    let clients = Arc::new(HttpClients::new(app.clone()));
    match listen(port, token.clone(), clients, Limits::default()).await {
        Ok(listening) => Ok(Open { listening, port, token }),
        Err(error) if error.kind() == ErrorKind::AddrInUse => Err(taken(port)),
        Err(error) => Err(error).with_context(|| format!("port {port} cannot be used")),
    }
}

/// Names the program that has a port, as far as the system reports it, and a port that is free.
fn taken(port: u16) -> anyhow::Error {
    let by = listener_on(port).unwrap_or_else(|| "another program".into());
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let advice = match (port..=u16::MAX).skip(1).take(PORTS_TRIED.into()).find(is_free) {
        Some(free) => format!("`hone api on --port {free}` takes one that is free"),
        None => "choose another with `hone api on --port PORT`".to_owned(),
    };
    anyhow!("port {port} is taken by {by}; {advice}")
}
