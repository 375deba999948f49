//! The forwarder, `hone lsp`: it carries messages between an editor and the daemon. If the daemon
//! dies, the forwarder starts another one and replays the editor's state to it.

use crate::app::startup::ServeOptions;
use crate::daemon::client::{self, Connection, Loaded, connect_or_start};
use crate::daemon::editor_state::{EditorState, Replay};
use crate::daemon::ends::Ends;
use crate::daemon::handshake::Command;
use crate::protocol::framing::{self, Frame, Frames};
use crate::protocol::initialize::early_answer;
use crate::protocol::lost::{self, Instead};
use crate::protocol::outline::Outline;
use anyhow::{Context, Result, ensure};
use host::paths::Paths;
use host::platform::connection::CLOSES_ONE_DIRECTION;
use host::platform::files;
use parking_lot::Mutex;
use report::status::Status;
use serde_json::{Value, json};
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncWriteExt, BufReader, stdin};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{sleep, timeout};

/// The number of messages that may be under way. A writer of more waits.
const QUEUE: usize = 16;

/// The pause before the next daemon is started. It grows with every daemon that ended without an
/// answer.
const RESTART_PAUSE: Duration = Duration::from_millis(200);

/// The time in which an editor must send its first message, once there is no hope for a daemon.
const FIRST_MESSAGE_LIMIT: Duration = Duration::from_secs(1);

/// `InternalError` of JSON-RPC, and `MessageType.Error` and `MessageType.Warning` of LSP.
const INTERNAL_ERROR: i32 = -32603;
const SHOWN_AS_ERROR: u8 = 1;
const SHOWN_AS_WARNING: u8 = 2;

/// The time in which a new daemon must answer the handshake.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(30);

/// What tells the daemon that the editor is gone, where a connection cannot be closed in one
/// direction.
const EXIT: &[u8] = br#"{"jsonrpc":"2.0","method":"exit"}"#;

/// The end of the connection that is gone.
#[derive(Debug, PartialEq, Eq)]
enum Gone {
    Editor,
    Daemon,
}

struct Editor {
    messages: Messages,
    answers: Sender<Vec<u8>>,
    state: Mutex<EditorState>,
    /// What the user is shown once the editor's `initialize` is answered.
    notice: Option<String>,
}

/// The editor's messages, in their order.
struct Messages {
    received: Receiver<Vec<u8>>,
    /// The next message, if somebody has looked at it.
    next: Option<Vec<u8>>,
}

impl Messages {
    /// The next message, which stays the next one. `None` if the editor's stream has ended.
    async fn peek(&mut self) -> Option<&[u8]> {
        if self.next.is_none() {
            self.next = self.received.recv().await;
        }
        self.next.as_deref()
    }

    async fn take(&mut self) -> Option<Vec<u8>> {
        match self.next.take() {
            None => self.received.recv().await,
            next => next,
        }
    }
}

pub async fn forward(home: &Paths, options: &ServeOptions) -> Result<()> {
    let (answers, to_write) = channel(QUEUE);
    let (received, messages) = channel(QUEUE);
    // Reading and writing are tasks of their own, so that a message is not cut when a daemon is
    // replaced.
    let writing = tokio::spawn(write_all(to_write));
    let reading = tokio::spawn(read_all(received, answers.clone()));
    let messages = Messages { received: messages, next: None };
    let mut editor = Editor { messages, answers, state: Mutex::default(), notice: None };
    let carried = carry_while_there_is_a_daemon(home, options, &mut editor).await;
    reading.abort();
    if let Err(error) = &carried {
        editor.tell(&format!("{error:#}")).await;
    }
    let leave = editor.state.lock().leave();
    drop(editor);
    let written = writing.await.context("the editor's stream broke")?;
    carried?;
    written.context("the editor's stream broke")?;
    leave.check()
}

/// Carries messages, and starts another daemon when one is gone, until the editor is gone.
///
/// # Errors
/// The model that was asked for is none, no daemon can be started or reached, or several in a row
/// have ended unused.
async fn carry_while_there_is_a_daemon(
    home: &Paths,
    options: &ServeOptions,
    editor: &mut Editor,
) -> Result<()> {
    options.check_model()?;
    let mut ends = Ends::default();
    loop {
        let mut connection = connect_or_start(home, options, &mut ends).await?;
        let (gone, status) = match loaded(home, editor, &mut connection).await? {
            Loaded::Yes => {
                editor.notice = other_model(home, options).await;
                if let Some(notice) = &editor.notice {
                    tracing::warn!("{notice}");
                }
                let replay = editor.state.lock().replay();
                (carry(editor, connection, replay).await, None)
            }
            Loaded::DaemonGone(status) => (Gone::Daemon, status),
        };
        if gone == Gone::Editor || editor.state.lock().leave().has_left() {
            return Ok(());
        }
        let root = home.root();
        ensure!(root.exists(), "{}: moved or removed; restart the editor", root.display());
        // A daemon that the user has asked to end removes its socket first. Then the forwarder ends
        // too.
        if !home.socket()?.exists() {
            return Ok(());
        }
        if editor.state.lock().take_served() {
            ends = Ends::default();
        } else {
            ends.add(home, status)?;
        }
        tracing::warn!("the daemon is gone; another is started");
        sleep(RESTART_PAUSE * ends.count()).await;
    }
}

/// Returns what to tell if the daemon serves another model than the one that was asked for, as one
/// does that another editor has started.
async fn other_model(home: &Paths, options: &ServeOptions) -> Option<String> {
    let asked = options.model.as_ref()?;
    let served = client::question::<Status>(home, Command::Status).await.ok()??.model;
    let real = |path: &Path| path.canonicalize().ok();
    (real(asked) != real(&served.path)).then(|| {
        format!(
            "{}: not served, because the daemon that runs serves {}; close the other editors, and \
             `hone restart` takes this one",
            asked.display(),
            served.name
        )
    })
}

impl Editor {
    /// Shows the user why nothing is completed. An editor that waits for the answer to `initialize`
    /// gets the reason with it.
    async fn tell(&mut self, reason: &str) {
        let first = match self.state.lock().has_begun() {
            true => None,
            false => Some(self.messages.peek()),
        };
        let first = match first {
            Some(first) => timeout(FIRST_MESSAGE_LIMIT, first).await.ok().flatten(),
            None => None,
        };
        let request = first.and_then(|message| serde_json::from_slice::<Value>(message).ok());
        let message = no_service(request.as_ref(), reason);
        let _ = self.answers.send(message.to_string().into_bytes()).await;
    }
}

/// The message that says why nothing is completed: the answer to the editor's first request, or
/// else one to show.
fn no_service(first: Option<&Value>, reason: &str) -> Value {
    match first.filter(|request| !request["id"].is_null()) {
        Some(request) => json!({
            "jsonrpc": "2.0",
            "id": request["id"],
            "error": { "code": INTERNAL_ERROR, "message": reason },
        }),
        None => to_show(SHOWN_AS_ERROR, reason),
    }
}

fn to_show(kind: u8, message: &str) -> Value {
    json!({
        "jsonrpc": "2.0",
        "method": "window/showMessage",
        "params": { "type": kind, "message": message },
    })
}

/// Waits until the daemon has loaded its model. An editor that begins is answered meanwhile,
/// because it may send nothing else before it has the answer.
async fn loaded(home: &Paths, editor: &mut Editor, connection: &mut Connection) -> Result<Loaded> {
    let loading = connection.loaded(home);
    tokio::pin!(loading);
    if !editor.state.lock().has_begun() {
        tokio::select! {
            biased;
            loaded = &mut loading => return loaded,
            () = answer_handshake(editor) => {}
        }
    }
    loading.await
}

/// Answers the editor's `initialize` in the daemon's place. Any other message waits for the daemon.
/// The future can be dropped without losing a message.
async fn answer_handshake(editor: &mut Editor) {
    let Some(message) = editor.messages.peek().await else { return };
    let Ok(request) = serde_json::from_slice::<Value>(message) else { return };
    let Some(answer) = early_answer(&request) else { return };
    let Ok(places) = editor.answers.reserve_many(answer.messages.len()).await else { return };
    editor.messages.next = None;
    editor.state.lock().begin(request, &answer.result);
    for (place, message) in places.zip(answer.messages) {
        place.send(message.to_string().into_bytes());
    }
}

/// Carries messages in both directions until one end is gone.
async fn carry(editor: &mut Editor, mut connection: Connection, replay: Replay) -> Gone {
    for answer in replay.to_editor {
        if editor.answers.send(answer).await.is_err() {
            return Gone::Editor;
        }
    }
    if let Some(handshake) = replay.handshake {
        let shaken = shake_hands(editor, &mut connection, &handshake);
        if !matches!(timeout(HANDSHAKE_LIMIT, shaken).await, Ok(Ok(()))) {
            return Gone::Daemon;
        }
    }
    let Connection { read, mut write, .. } = connection;
    let Editor { messages, answers, state, notice } = editor;
    let to_daemon = async {
        for message in replay.to_daemon {
            framing::write(&mut write, &message).await?;
        }
        while let Some(message) = messages.take().await {
            state.lock().from_editor(&message);
            framing::write(&mut write, &message).await?;
        }
        if CLOSES_ONE_DIRECTION {
            write.shutdown().await
        } else {
            // The daemon still has answers to send.
            framing::write(&mut write, EXIT).await
        }
    };
    let to_editor = async {
        let mut frames = Frames::new(read);
        while let Ok(Some(frame)) = frames.next().await {
            if let Frame::Body(body) = frame
                && state.lock().from_daemon(&body)
                && answers.send(body).await.is_err()
            {
                return Gone::Editor;
            }
            if let Some(notice) = notice.take_if(|_| state.lock().has_begun()) {
                let notice = to_show(SHOWN_AS_WARNING, &notice).to_string();
                let _ = answers.send(notice.into_bytes()).await;
            }
        }
        Gone::Daemon
    };
    tokio::pin!(to_daemon, to_editor);
    tokio::select! {
        sent = &mut to_daemon => {
            // Whichever end is gone, the daemon's last messages are passed on.
            let gone = to_editor.await;
            if sent.is_ok() { Gone::Editor } else { gone }
        }
        // The daemon ended after `exit`, or died.
        gone = &mut to_editor => gone,
    }
}

/// Sends the handshake and waits for its answer, because nothing else may be sent before it.
async fn shake_hands(
    editor: &Editor,
    connection: &mut Connection,
    handshake: &[u8],
) -> io::Result<()> {
    framing::write(&mut connection.write, handshake).await?;
    let mut frames = Frames::new(&mut connection.read);
    while let Some(frame) = frames.next().await? {
        let Frame::Body(body) = frame else { continue };
        if !editor.state.lock().from_daemon(&body) {
            return Ok(());
        }
        let _ = editor.answers.send(body).await;
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

/// Reads the editor's messages until its stream ends.
async fn read_all(messages: Sender<Vec<u8>>, answers: Sender<Vec<u8>>) {
    let mut frames = Frames::new(BufReader::new(stdin()));
    while let Ok(Some(frame)) = frames.next().await {
        let Instead { answer, message } = match frame {
            // The daemon answers a body that is no message.
            Frame::Body(body) => Instead { message: Some(body), answer: None },
            Frame::TooLong { bytes, outline } => lost::instead_of_too_long(bytes, &outline),
            Frame::Noise => lost::instead_of_noise(&Outline::default()),
        };
        if let Some(answer) = answer
            && answers.send(answer).await.is_err()
        {
            return;
        }
        if let Some(message) = message
            && messages.send(message).await.is_err()
        {
            return;
        }
    }
}

async fn write_all(mut answers: Receiver<Vec<u8>>) -> io::Result<()> {
    let mut output = tokio::fs::File::from_std(files::stdout()?);
    while let Some(body) = answers.recv().await {
        framing::write(&mut output, &body).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::handshake::{Welcome, write_line};
    use host::platform::connection;
    use tokio::net::UnixStream;

    /// A daemon that loads its model: the forwarder's connection, and the daemon's end of it.
    fn loading_daemon() -> (Connection, UnixStream) {
        let (ours, daemon) = UnixStream::pair().unwrap();
        let (read, write) = connection::split(ours);
        let read = BufReader::new(read);
        (Connection { read, write, is_loading: true, pid: 0, daemon: None }, daemon)
    }

    /// An editor that has sent these messages, and what it receives.
    async fn editor(messages: &[Value]) -> (Editor, Receiver<Vec<u8>>) {
        let (sent, received) = channel(QUEUE);
        for message in messages {
            sent.send(message.to_string().into_bytes()).await.unwrap();
        }
        let (answers, shown) = channel(QUEUE);
        let messages = Messages { received, next: None };
        (Editor { messages, answers, state: Mutex::default(), notice: None }, shown)
    }

    fn initialize(encodings: Value) -> Value {
        let capabilities = json!({"general": {"positionEncodings": encodings}});
        let params = json!({"processId": null, "rootUri": null, "capabilities": capabilities,
            "initializationOptions": {"didChangeStatus": true}});
        json!({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": params})
    }

    #[tokio::test]
    async fn an_editor_is_answered_while_the_daemon_loads_its_model() {
        let (_folder, home) = fixtures::home();
        let (mut connection, mut daemon) = loading_daemon();
        let (mut editor, mut shown) = editor(&[initialize(json!(["utf-8"]))]).await;
        let waiting = loaded(&home, &mut editor, &mut connection);
        let answered = async {
            let answer: Value = serde_json::from_slice(&shown.recv().await.unwrap()).unwrap();
            let status: Value = serde_json::from_slice(&shown.recv().await.unwrap()).unwrap();
            assert_eq!(status["params"]["busy"], true, "{status}");
            // The daemon is ready only after the editor has its answer.
            write_line(&mut daemon, &Welcome::yes()).await.unwrap();
            answer
        };
        let (ended, answer) = tokio::join!(waiting, answered);
        assert_eq!(ended.unwrap(), Loaded::Yes);
        assert_eq!((&answer["id"], &answer["error"]), (&json!(7), &Value::Null));
        assert_eq!(answer["result"]["capabilities"]["positionEncoding"], "utf-8");
        let replay = editor.state.lock().replay();
        let handshake: Value = serde_json::from_slice(&replay.handshake.unwrap()).unwrap();
        assert_eq!(handshake["params"], initialize(json!(["utf-8"]))["params"]);
        assert!(replay.to_daemon.is_empty(), "the editor's own request has its answer");
    }

    #[tokio::test]
    async fn a_message_that_cannot_be_answered_waits_for_the_daemon() {
        let (_folder, home) = fixtures::home();
        let status = json!({"jsonrpc": "2.0", "id": 1, "method": "hone/status"});
        let no_list = initialize(json!("utf-8"));
        for message in [status, no_list] {
            let (mut connection, mut daemon) = loading_daemon();
            let (mut editor, mut shown) = editor(std::slice::from_ref(&message)).await;
            write_line(&mut daemon, &Welcome::yes()).await.unwrap();
            let ended = loaded(&home, &mut editor, &mut connection).await;
            assert_eq!(ended.unwrap(), Loaded::Yes);
            assert!(shown.try_recv().is_err());
            let next: Value =
                serde_json::from_slice(&editor.messages.take().await.unwrap()).unwrap();
            assert_eq!(next, message);
        }
    }

    /// What is said when daemon after daemon is killed was on stderr alone, which editors hide.
    #[tokio::test]
    async fn an_editor_is_told_why_there_is_no_daemon() {
        let (mut waiting, mut shown) = editor(&[initialize(json!(["utf-8"]))]).await;
        waiting.tell("killed").await;
        let answer: Value = serde_json::from_slice(&shown.recv().await.unwrap()).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["message"]), (&json!(7), &json!("killed")));

        let (mut begun, mut shown) = editor(&[]).await;
        begun.state.lock().begin(initialize(json!([])), &json!({"capabilities": {}}));
        begun.tell("killed").await;
        let message: Value = serde_json::from_slice(&shown.recv().await.unwrap()).unwrap();
        assert_eq!(message["method"], "window/showMessage");
        assert_eq!(message["params"], json!({"type": 1, "message": "killed"}));
    }

    #[tokio::test]
    async fn a_daemon_that_cannot_load_its_model_gives_the_reason() {
        let (_folder, home) = fixtures::home();
        let (mut connection, mut daemon) = loading_daemon();
        let (mut editor, _shown) = editor(&[]).await;
        write_line(&mut daemon, &Welcome::no("m.gguf: no memory is left".into())).await.unwrap();
        let error = loaded(&home, &mut editor, &mut connection).await.unwrap_err();
        assert_eq!(error.to_string(), "m.gguf: no memory is left");

        let (mut connection, daemon) = loading_daemon();
        drop(daemon);
        let ended = loaded(&home, &mut editor, &mut connection).await;
        assert_eq!(ended.unwrap(), Loaded::DaemonGone(None));
    }
}
