//! The forwarder, `hone lsp`: it carries messages between an editor and the daemon. If the daemon
//! dies, the forwarder starts another one and replays the editor's state to it.

use crate::app::startup::ServeOptions;
use crate::daemon::client::{Connection, connect_or_start};
use crate::daemon::editor_state::{EditorState, Replay};
use crate::paths::Paths;
use crate::platform::connection::CLOSES_ONE_DIRECTION;
use crate::protocol::framing::{self, Frame, Frames};
use crate::protocol::lost::{self, Instead};
use crate::protocol::outline::Outline;
use anyhow::{Context, Result, bail};
use parking_lot::Mutex;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncWriteExt, BufReader, stdin, stdout};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{sleep, timeout};

/// The number of messages that may be under way. A writer of more waits.
const QUEUE: usize = 16;

/// The number of daemons in a row that may end without an answer. After that, the next would not
/// answer either.
const UNANSWERED_LIMIT: u32 = 5;

/// The pause before the next daemon is started. It grows with every daemon that ended without an
/// answer.
const RESTART_PAUSE: Duration = Duration::from_millis(200);

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
    messages: Receiver<Vec<u8>>,
    answers: Sender<Vec<u8>>,
    state: Mutex<EditorState>,
}

pub async fn forward(home: &Paths, options: &ServeOptions) -> Result<()> {
    let mut connection = connect_or_start(home, options).await?;
    let (answers, to_write) = channel(QUEUE);
    let (received, messages) = channel(QUEUE);
    // Reading and writing are tasks of their own, so that a message is not cut when a daemon is
    // replaced.
    let writing = tokio::spawn(write_all(to_write));
    let reading = tokio::spawn(read_all(received, answers.clone()));
    let mut editor = Editor { messages, answers, state: Mutex::default() };
    let mut replay = Replay::default();
    let mut unanswered = 0;
    loop {
        let gone = carry(&mut editor, connection, replay).await;
        // A daemon that ends cleanly removes its socket first. Then the user has asked it to end,
        // and the forwarder ends too.
        if gone == Gone::Editor || editor.state.lock().left() || !home.socket()?.exists() {
            break;
        }
        unanswered = if editor.state.lock().served() { 0 } else { unanswered + 1 };
        if unanswered == UNANSWERED_LIMIT {
            bail!(
                "{}: {UNANSWERED_LIMIT} daemons in a row ended without an answer; \
                 this log says why",
                home.daemon_log().display()
            );
        }
        tracing::warn!("the daemon is gone; another takes its place");
        sleep(RESTART_PAUSE * unanswered).await;
        connection = connect_or_start(home, options).await?;
        replay = editor.state.lock().replay();
    }
    reading.abort();
    drop(editor);
    writing.await.context("the editor's stream broke")?.context("the editor's stream broke")
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
    let Connection { read, mut write } = connection;
    let Editor { messages, answers, state } = editor;
    let to_daemon = async {
        for message in replay.to_daemon {
            framing::write(&mut write, &message).await?;
        }
        while let Some(message) = messages.recv().await {
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
    let mut output = stdout();
    while let Some(body) = answers.recv().await {
        framing::write(&mut output, &body).await?;
    }
    Ok(())
}
