//! The HTTP API: whether it listens, whether its token is the user's alone, and whether editors
//! that `hone setup` has set up still have the address and the token.

use super::{ANSWER_LIMIT, Check, Patient};
use crate::cli::setup::{self, Values};
use crate::daemon::client;
use crate::daemon::handshake::Command;
use crate::daemon::http::HttpState;
use crate::daemon::http_token;
use host::platform::process::listener_on;
use std::net::{Ipv4Addr, TcpStream};

const NAME: &str = "HTTP API";

pub async fn api(patient: &Patient<'_>) -> Vec<Check> {
    let api = &patient.configured.config.api;
    let listening = match api.enabled {
        true => listening(patient, api.port).await,
        false => Check::good(NAME, "off"),
    };
    // A daemon that was asked does not use a token that is refused here.
    let token = match http_token::read(&patient.home.api_token()) {
        Ok(token) => token.map(|token| token.as_str().to_owned()),
        Err(error) => {
            let error = format!("{error:#}");
            let (found, fix) = error.rsplit_once("; ").unwrap_or((&error, "remove the file"));
            return vec![Check::wrong(NAME, found, fix)];
        }
    };
    let values = Values { port: api.port, token, program: patient.around.program.clone() };
    let stale = setup::stale(&patient.around, &values).into_iter();
    let mut checks = vec![listening];
    checks.extend(stale.map(|stale| {
        let found = format!(
            "{}: {} has another address or token than the API",
            stale.editor.name(),
            stale.file.display()
        );
        Check::wrong(NAME, found, format!("`hone setup {} --write` corrects it", stale.editor))
    }));
    checks
}

async fn listening(patient: &Patient<'_>, port: u16) -> Check {
    let asked = client::question::<HttpState>(patient.home, Command::Http);
    // The check of the daemon reports one that does not answer.
    let state = match tokio::time::timeout(ANSWER_LIMIT, asked).await {
        Ok(Ok(state)) => state,
        _ => return Check::note(NAME, "on, and the daemon does not answer", "see `daemon` above"),
    };
    let address = format!("http://127.0.0.1:{port}");
    match state {
        None if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() => {
            let by = listener_on(port).unwrap_or_else(|| "another program".into());
            let found = format!("on, and port {port} is taken by {by}");
            Check::wrong(NAME, found, "end that program, or `hone api on --port PORT`")
        }
        None => Check::note(
            NAME,
            format!("on for {address}, and no daemon runs"),
            "an editor with Hone or `hone api on` starts it",
        ),
        Some(HttpState { trouble: Some(trouble), .. }) => {
            let (found, fix) = trouble.rsplit_once("; ").unwrap_or((&trouble, "`hone api on`"));
            Check::wrong(NAME, found, fix)
        }
        Some(state) if state.addresses.is_empty() => {
            Check::wrong(NAME, "on, and it does not listen", "`hone api on` tries again")
        }
        Some(_) => Check::good(NAME, format!("listens on {address}, its token private to you")),
    }
}
