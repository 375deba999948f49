//! Measures what the HTTP API adds to a key over LSP, for `cargo xtask bench overhead`. An editor
//! and a plugin type the same text, key by key in turns, on an engine that answers at once. The
//! plugin opens a connection for each request, as one that starts curl does. The test asserts that
//! both get the same answers, but not how fast.

use crate::protocol::http::HttpClients;
use crate::testing::daemon::{Editor, TestDaemon};
use crate::testing::row;
use api::{Limits, Listening, Token, listen};
use completion::document::Position;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const KEYS: usize = 400;

/// The lines around the typed ones, which are those that llama.vim sends.
const LINES_ABOVE: u32 = 256;
const LINES_BELOW: u32 = 64;

struct Plugin {
    address: SocketAddr,
    token: Token,
}

impl Plugin {
    /// The text of the answer to a request.
    async fn ask(&self, before: &str, after: &str) -> String {
        let (above, line) = before.rsplit_once('\n').expect("a line");
        let body = json!({
            "input_prefix": format!("{above}\n"), "prompt": line, "input_suffix": after,
            "n_predict": 128, "response_fields": ["content"],
        });
        let body = body.to_string();
        let request = format!(
            "POST /infill HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.address,
            self.token.as_str(),
            body.len()
        );
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let body = answer.split_once("\r\n\r\n").expect("a body").1;
        let body: Value = serde_json::from_str(body).expect(body);
        body["content"].as_str().expect("an answer").to_owned()
    }
}

async fn plugin(daemon: &TestDaemon) -> (Plugin, Listening) {
    let token = [7; 32];
    let clients = Arc::new(HttpClients::new(daemon.app.clone()));
    let listening =
        listen(0, Token::from_bytes(token), clients, Limits::default()).await.expect("a port");
    let address = listening.addresses()[0];
    (Plugin { address, token: Token::from_bytes(token) }, listening)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement: `cargo xtask bench overhead`"]
async fn bench_api_against_lsp() {
    let daemon = TestDaemon::start(fixtures::engine(&["call(x);"])).await;
    let (plugin, _listening) = plugin(&daemon).await;
    let mut editor = Editor::over(daemon.connect()).await;
    let line = |i| format!("fn number_{i}() -> u32 {{ {i} }}\n");
    let above: String = (0..LINES_ABOVE).map(line).collect();
    let below: String = (0..LINES_BELOW).map(line).collect();
    let (uri, mut before, after) = ("file:///a.rs", format!("{above}    "), format!("\n{below}"));
    editor.open(uri, &format!("{before}{after}")).await;
    let mut at = Position { line: LINES_ABOVE, column: 4 };
    let (mut by_lsp, mut by_http) = (vec![], vec![]);
    let keys =
        (0..).flat_map(|line| format!("let v_{line} = 1;\n    ").chars().collect::<Vec<_>>());
    for key in keys.take(KEYS) {
        before.push(key);
        let change = editor.change(uri, at, &key.to_string());
        at = match key {
            '\n' => Position { line: at.line + 1, column: 0 },
            _ => Position { column: at.column + 1, ..at },
        };
        let (_, request) = editor.completion(uri, at);
        let began = Instant::now();
        editor.send(&change).await;
        editor.send(&request).await;
        let answer = editor.answer().await;
        by_lsp.push(began.elapsed());
        let began = Instant::now();
        let text = plugin.ask(&before, &after).await;
        by_http.push(began.elapsed());
        let offered = answer["result"]["items"][0]["insertText"].as_str().unwrap_or_default();
        assert_eq!(text, offered, "{before}");
    }
    let longer: Vec<Duration> =
        by_http.iter().zip(&by_lsp).map(|(h, l)| h.saturating_sub(*l)).collect();
    let report = json!({"lsp": row(&by_lsp), "http": row(&by_http), "added": row(&longer)});
    // The line break separates the report from the output of the test runner.
    println!("\n{report}");
}
