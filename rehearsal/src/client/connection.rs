//! A blocking JSON-RPC connection. One thread reads, one writes, and the callers wait.

use super::framing;
use crate::limits;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The reason why a request has no result.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    #[error("{method}: the server answered error {code}: {message}")]
    Server { method: String, code: i64, message: String },
    #[error("{method}: the server closed the connection{}", reason(.cause))]
    Closed { method: String, cause: Option<String> },
    #[error("{method}: no answer within {} ms", .after.as_millis())]
    Timeout { method: String, after: Duration },
    #[error("{method}: the answer is not what the protocol promises: {what}")]
    Protocol { method: String, what: String },
}

impl RequestError {
    /// The JSON-RPC error code, if the server sent one.
    pub fn code(&self) -> Option<i64> {
        match self {
            RequestError::Server { code, .. } => Some(*code),
            _ => None,
        }
    }
}

fn reason(cause: &Option<String>) -> String {
    cause.as_ref().map_or_else(String::new, |cause| format!(" ({cause})"))
}

/// A notification from the server.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    pub method: String,
    pub params: Value,
}

/// A request that is not answered yet. Pass it to [`Connection::wait`].
#[derive(Debug)]
pub struct Pending {
    pub id: i64,
    method: String,
    answer: Receiver<Value>,
}

#[derive(Default)]
struct Inbox {
    waiting: HashMap<i64, SyncSender<Value>>,
    notifications: VecDeque<Notification>,
    /// Set once the peer is gone. Holds the read error, if there was one.
    closed: Option<Option<String>>,
}

#[derive(Default)]
struct Shared {
    inbox: Mutex<Inbox>,
    changed: Condvar,
}

impl Shared {
    /// Ignores poisoning: a panic in another thread must not hide the answer that explains it.
    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub struct Connection {
    outbox: SyncSender<Value>,
    shared: Arc<Shared>,
    next_id: AtomicI64,
}

impl Connection {
    pub fn new(
        reader: impl Read + Send + 'static,
        mut writer: impl Write + Send + 'static,
    ) -> Connection {
        let shared = Arc::new(Shared::default());
        let (outbox, messages) = sync_channel::<Value>(limits::OUTBOX_MESSAGES_MAX);
        let replies = outbox.clone();
        let inbox = Arc::clone(&shared);
        std::thread::spawn(move || read_all(BufReader::new(reader), &inbox, &replies));
        // Writing has a thread of its own. If the peer stops reading, the caller then runs into a
        // timeout and not into a deadlock with the reading thread.
        std::thread::spawn(move || {
            for message in messages {
                if framing::write(&mut writer, &message).is_err() {
                    return;
                }
            }
        });
        Connection { outbox, shared, next_id: AtomicI64::new(1) }
    }

    pub fn request(
        &self,
        method: &str,
        params: Value,
        limit: Duration,
    ) -> Result<Value, RequestError> {
        self.wait(self.request_async(method, params)?, limit)
    }

    pub fn request_async(&self, method: &str, params: Value) -> Result<Pending, RequestError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = sync_channel(1);
        {
            let mut inbox = self.shared.lock();
            if let Some(cause) = inbox.closed.clone() {
                return Err(RequestError::Closed { method: method.to_owned(), cause });
            }
            inbox.waiting.insert(id, sender);
        }
        let mut message = json!({"jsonrpc": "2.0", "id": id, "method": method});
        set_params(&mut message, params);
        let sent = self.outbox.send(message);
        if sent.is_err() {
            self.shared.lock().waiting.remove(&id);
            return Err(self.closed(method));
        }
        Ok(Pending { id, method: method.to_owned(), answer })
    }

    /// Waits for the answer of one request.
    pub fn wait(&self, pending: Pending, limit: Duration) -> Result<Value, RequestError> {
        let Pending { id, method, answer } = pending;
        let mut answer = match answer.recv_timeout(limit) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => {
                self.shared.lock().waiting.remove(&id);
                return Err(RequestError::Timeout { method, after: limit });
            }
            Err(RecvTimeoutError::Disconnected) => return Err(self.closed(&method)),
        };
        let error = &answer["error"];
        if error.is_object() {
            return Err(RequestError::Server {
                method,
                code: error["code"].as_i64().unwrap_or(0),
                message: error["message"].as_str().unwrap_or("").to_owned(),
            });
        }
        Ok(answer["result"].take())
    }

    pub fn notify(&self, method: &str, params: Value) -> Result<(), RequestError> {
        let mut message = json!({"jsonrpc": "2.0", "method": method});
        set_params(&mut message, params);
        self.outbox.send(message).map_err(|_| self.closed(method))
    }

    /// Takes every notification that is kept so far, oldest first.
    pub fn take_notifications(&self) -> Vec<Notification> {
        self.shared.lock().notifications.drain(..).collect()
    }

    /// Waits for the next notification of this name and takes it. Other notifications stay. Returns
    /// `None` if it does not come in time.
    pub fn wait_notification(&self, method: &str, limit: Duration) -> Option<Notification> {
        let deadline = Instant::now() + limit;
        let mut inbox = self.shared.lock();
        loop {
            let found = inbox.notifications.iter().position(|kept| kept.method == method);
            if let Some(index) = found {
                return inbox.notifications.remove(index);
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            if inbox.closed.is_some() {
                return None;
            }
            inbox = match self.shared.changed.wait_timeout(inbox, left) {
                Ok((inbox, _)) => inbox,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    fn closed(&self, method: &str) -> RequestError {
        let cause = self.shared.lock().closed.clone().flatten();
        RequestError::Closed { method: method.to_owned(), cause }
    }
}

/// JSON-RPC has no null parameters: a method without parameters has no such field.
fn set_params(message: &mut Value, params: Value) {
    if !params.is_null() {
        message["params"] = params;
    }
}

fn read_all(mut reader: impl BufRead, shared: &Shared, replies: &SyncSender<Value>) {
    let end = loop {
        match framing::read(&mut reader) {
            Ok(Some(message)) => receive(message, shared, replies),
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        }
    };
    let mut inbox = shared.lock();
    inbox.closed = Some(end);
    // Dropping the senders wakes every waiting request.
    inbox.waiting.clear();
    shared.changed.notify_all();
}

fn receive(message: Value, shared: &Shared, replies: &SyncSender<Value>) {
    let Some(method) = message["method"].as_str().map(str::to_owned) else {
        let waiting = message["id"].as_i64().and_then(|id| shared.lock().waiting.remove(&id));
        if let Some(waiting) = waiting {
            // If the caller gave up in this moment, nobody waits for the answer.
            let _ = waiting.try_send(message);
        }
        return;
    };
    if let Some(id) = message.get("id") {
        // The server registers capabilities and creates progress tokens; `null` is the right
        // answer to all of these. If the outbox is full, the peer does not read anyway.
        let _ = replies.try_send(json!({"jsonrpc": "2.0", "id": id, "result": null}));
        return;
    }
    let mut inbox = shared.lock();
    if inbox.notifications.len() == limits::NOTIFICATIONS_MAX {
        inbox.notifications.pop_front();
    }
    inbox.notifications.push_back(Notification { method, params: message["params"].clone() });
    shared.changed.notify_all();
}
