//! A daemon with an engine that the test chooses and a real log, and editors that are connected to
//! it. Only the model is missing between a keystroke's message and its answer.

use crate::app::App;
use crate::protocol::framing::{self, Frame, Frames};
use crate::protocol::handlers;
use completion::document::Position;
use engine::Engine;
use feedback::clock::SystemClock;
use feedback::event::EventKind;
use feedback::log::EventLog;
use feedback::sled_log::SledLog;
use serde_json::{Value, json};
use settings::Config;
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream as Socket;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

pub struct TestDaemon {
    pub app: Arc<App>,
    pub log: Arc<SledLog>,
    /// It holds the log, so it is dropped last.
    _folder: TempDir,
}

impl TestDaemon {
    /// Starts a daemon without a gate, so that every answer of the engine is an offer.
    pub async fn start<E: Engine + Send + 'static>(engine: E) -> TestDaemon {
        TestDaemon::start_as(engine, |_| ()).await
    }

    /// The same with other settings.
    pub async fn start_as<E: Engine + Send + 'static>(
        engine: E,
        set: impl FnOnce(&mut Config),
    ) -> TestDaemon {
        let (folder, home) = fixtures::home();
        let mut config = Config::default();
        config.gate.enabled = false;
        // The intended wait before a completion is no cost of the server.
        config.lab.adaptive_debounce = false;
        config.learning.enabled = false;
        set(&mut config);
        let log = Arc::new(SledLog::open(&home.event_log()).unwrap());
        let clock = Arc::new(SystemClock::default());
        let app = super::app::start(&home, config, engine, clock, log.clone()).await;
        TestDaemon { app, log, _folder: folder }
    }

    /// Connects an editor. Returns its end of the connection. The other end is served in the same
    /// way as the daemon's socket. The socket belongs to no runtime yet.
    pub fn connect(&self) -> Socket {
        let (ours, theirs) = Socket::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        theirs.set_nonblocking(true).unwrap();
        let (learn, _) = tokio::sync::mpsc::channel(1);
        let (app, stream) = (self.app.clone(), UnixStream::from_std(ours).unwrap());
        tokio::spawn(async move {
            let (read, mut write) = stream.into_split();
            let never = std::future::pending();
            handlers::serve(app, learn, BufReader::new(read), &mut write, never).await;
        });
        theirs
    }

    /// The number of completions in the log.
    pub fn completions_on_disk(&self) -> usize {
        self.log.flush().unwrap();
        let mut count = 0;
        let counting = self.log.scan(0, &mut |event| {
            count += usize::from(matches!(event.kind, EventKind::Completion(_)));
            ControlFlow::Continue(())
        });
        counting.unwrap();
        count
    }
}

/// An editor at one end of a connection.
pub struct Editor {
    frames: Frames<BufReader<OwnedReadHalf>>,
    write: OwnedWriteHalf,
    sent: u64,
}

/// A message, ready to be written.
pub struct Message(Vec<u8>);

impl Message {
    /// JSON-RPC allows no null parameters, so a message without parameters lacks the field.
    fn of(mut message: Value) -> Message {
        if message["params"].is_null() {
            message.as_object_mut().map(|fields| fields.remove("params"));
        }
        Message(message.to_string().into_bytes())
    }
}

impl Editor {
    /// Connects and does the handshake.
    pub async fn over(socket: Socket) -> Editor {
        Editor::with(socket, json!({})).await.0
    }

    /// The same with these capabilities of a client. Returns those of the server too.
    pub async fn with(socket: Socket, capabilities: Value) -> (Editor, Value) {
        Editor::begun(socket, json!({"capabilities": capabilities})).await
    }

    /// The same with these parameters of `initialize`.
    pub async fn begun(socket: Socket, params: Value) -> (Editor, Value) {
        let (read, write) = UnixStream::from_std(socket).unwrap().into_split();
        let mut editor = Editor { frames: Frames::new(BufReader::new(read)), write, sent: 0 };
        let (id, hello) = editor.request("initialize", params);
        editor.send(&hello).await;
        let answer = editor.answer().await;
        assert_eq!(answer["id"], id);
        editor.send(&editor.notification("initialized", json!({}))).await;
        (editor, answer["result"]["capabilities"].clone())
    }

    pub fn notification(&self, method: &str, params: Value) -> Message {
        Message::of(json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    pub fn request(&mut self, method: &str, params: Value) -> (u64, Message) {
        self.sent += 1;
        let message =
            json!({"jsonrpc": "2.0", "id": self.sent, "method": method, "params": params});
        (self.sent, Message::of(message))
    }

    pub async fn open(&mut self, uri: &str, text: &str) {
        let document = json!({"uri": uri, "languageId": "rust", "version": 0, "text": text});
        let open = self.notification("textDocument/didOpen", json!({"textDocument": document}));
        self.send(&open).await;
    }

    /// An insertion.
    pub fn change(&self, uri: &str, at: Position, text: &str) -> Message {
        let at = lsp_position(at);
        let change = json!({"range": {"start": at, "end": at}, "text": text});
        let document = json!({"uri": uri, "version": self.sent});
        let params = json!({"textDocument": document, "contentChanges": [change]});
        self.notification("textDocument/didChange", params)
    }

    pub fn completion(&mut self, uri: &str, at: Position) -> (u64, Message) {
        let params = json!({
            "textDocument": {"uri": uri}, "position": lsp_position(at),
            "context": {"triggerKind": 2},
        });
        self.request("textDocument/inlineCompletion", params)
    }

    pub async fn send(&mut self, message: &Message) {
        framing::write(&mut self.write, &message.0).await.unwrap();
    }

    /// Sends bytes that need not be a message.
    pub async fn send_raw(&mut self, body: &[u8]) {
        framing::write(&mut self.write, body).await.unwrap();
    }

    /// The next answer; notifications are skipped.
    pub async fn answer(&mut self) -> Value {
        self.until(|message| message["method"].is_null()).await
    }

    /// The next message of the server that is meant; others are skipped.
    pub async fn until(&mut self, is_meant: impl Fn(&Value) -> bool) -> Value {
        loop {
            let Some(Frame::Body(body)) = self.frames.next().await.unwrap() else {
                panic!("the connection ended, or brought noise");
            };
            let message: Value = serde_json::from_slice(&body).unwrap();
            if is_meant(&message) {
                return message;
            }
        }
    }
}

fn lsp_position(at: Position) -> Value {
    json!({"line": at.line, "character": at.column})
}
