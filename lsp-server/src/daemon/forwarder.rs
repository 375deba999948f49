//! `hone lsp`: carries messages between an editor and the daemon. A daemon that
//! dies is started again and told what the editor had told the one before.

use crate::app::startup::ServeOptions;
use crate::daemon::client::{Connection, connect_or_start};
use crate::daemon::editor_state::{EditorState, Replay};
use crate::paths::Home;
use crate::protocol::framing::{self, Frame, Frames};
use anyhow::{Context, Result, bail};
use parking_lot::Mutex;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncWriteExt, BufReader, stdin, stdout};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{sleep, timeout};

/// Messages on their way; whoever writes more waits.
const QUEUE: usize = 16;

/// Daemons that end one after the other, none of which answered anything: the
/// next would not either.
const FRUITLESS_LIMIT: u32 = 5;

/// Wait before the next daemon, longer after each that was of no use.
const FRUITLESS_PAUSE: Duration = Duration::from_millis(200);

/// Time a new daemon gets to answer the handshake.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(30);

/// Which end of the connection is gone.
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

pub async fn forward(home: &Home, options: &ServeOptions) -> Result<()> {
    let mut connection = connect_or_start(home, options).await?;
    let (answers, to_write) = channel(QUEUE);
    let (received, messages) = channel(QUEUE);
    // Tasks of their own: a message must not be cut when a daemon is exchanged.
    let writing = tokio::spawn(write_all(to_write));
    let reading = tokio::spawn(read_all(received, answers.clone()));
    let mut editor = Editor { messages, answers, state: Mutex::default() };
    let mut replay = Replay::default();
    let mut fruitless = 0;
    loop {
        let gone = carry(&mut editor, connection, replay).await;
        // One that ends as it should removes its socket first: then it was asked to,
        // and so do we, or asking would be in vain.
        if gone == Gone::Editor || editor.state.lock().left() || !home.socket()?.exists() {
            break;
        }
        fruitless = if editor.state.lock().served() { 0 } else { fruitless + 1 };
        if fruitless == FRUITLESS_LIMIT {
            bail!(
                "{}: {FRUITLESS_LIMIT} daemons in a row ended without an answer; this log says why",
                home.daemon_log().display()
            );
        }
        tracing::warn!("the daemon is gone; another takes its place");
        sleep(FRUITLESS_PAUSE * fruitless).await;
        connection = connect_or_start(home, options).await?;
        replay = editor.state.lock().replay();
    }
    reading.abort();
    drop(editor);
    writing.await.context("the editor's stream broke")?.context("the editor's stream broke")
}

/// Carries messages either way until one end is gone.
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
            state.lock().editor_says(&message);
            framing::write(&mut write, &message).await?;
        }
        write.shutdown().await
    };
    let to_editor = async {
        let mut frames = Frames::new(read);
        while let Ok(Some(frame)) = frames.next().await {
            if let Frame::Body(body) = frame
                && state.lock().daemon_says(&body)
                && answers.send(body).await.is_err()
            {
                return Gone::Editor;
            }
        }
        Gone::Daemon
    };
    tokio::pin!(to_daemon, to_editor);
    tokio::select! {
        told = &mut to_daemon => {
            // Whichever has gone: the daemon still says what it had to say.
            let gone = to_editor.await;
            if told.is_ok() { Gone::Editor } else { gone }
        }
        // After `exit`, or because the daemon died.
        gone = &mut to_editor => gone,
    }
}

/// Nothing else may be said to a daemon before it has answered the handshake.
async fn shake_hands(
    editor: &Editor,
    connection: &mut Connection,
    handshake: &[u8],
) -> io::Result<()> {
    framing::write(&mut connection.write, handshake).await?;
    let mut frames = Frames::new(&mut connection.read);
    while let Some(frame) = frames.next().await? {
        let Frame::Body(body) = frame else { continue };
        if !editor.state.lock().daemon_says(&body) {
            return Ok(());
        }
        let _ = editor.answers.send(body).await;
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

/// Reads what the editor says until it says no more.
async fn read_all(messages: Sender<Vec<u8>>, answers: Sender<Vec<u8>>) {
    let mut frames = Frames::new(BufReader::new(stdin()));
    while let Ok(Some(frame)) = frames.next().await {
        let passed_on = match frame {
            Frame::Body(body) => messages.send(body).await,
            Frame::Noise => answers.send(framing::complaint()).await,
        };
        if passed_on.is_err() {
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
