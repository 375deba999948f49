//! What a connection brings and leaves behind.

use super::*;
use std::cell::RefCell;
use tokio::runtime::Handle;

/// The number of connections that come and go.
const CONNECTIONS: usize = 50;

/// The methods of what a client was sent until it was answered.
async fn notified(params: Value) -> Vec<String> {
    let daemon = daemon().await;
    let (mut editor, _) = Editor::begun(daemon.connect(), params).await;
    // A line would be sent right behind `initialized`, before the second answer.
    let methods = RefCell::new(vec![]);
    for _ in 0..2 {
        let (id, status) = editor.request("hone/status", Value::Null);
        editor.send(&status).await;
        let is_answer = |message: &Value| {
            methods.borrow_mut().extend(message["method"].as_str().map(str::to_owned));
            message["id"] == id && message["method"].is_null()
        };
        editor.until(is_answer).await;
    }
    methods.into_inner()
}

/// Clients warn of notifications that they do not know.
#[tokio::test]
async fn only_clients_that_announce_the_status_line_are_sent_it() {
    for params in [
        json!({"capabilities": {}}),
        json!({"capabilities": {}, "initializationOptions": {}}),
        json!({"capabilities": {}, "initializationOptions": null}),
        json!({"capabilities": {}, "initializationOptions": {"didChangeStatus": false}}),
        json!({"capabilities": {}, "clientInfo": {"name": "emacs"}}),
    ] {
        assert_eq!(notified(params.clone()).await, Vec::<String>::new(), "{params}");
    }
    for options in [json!({"didChangeStatus": true}), json!({"editorPluginInfo": {"name": "x"}})] {
        let daemon = daemon().await;
        let params = json!({"capabilities": {}, "initializationOptions": options});
        let (mut editor, _) = Editor::begun(daemon.connect(), params).await;
        editor.until(|message| message["method"] == "didChangeStatus").await;
    }
}

/// A task that sent status lines stayed behind for each of them.
#[tokio::test]
async fn connections_leave_no_task_behind() {
    let daemon = daemon().await;
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    for _ in 0..CONNECTIONS {
        let params =
            json!({"capabilities": {}, "initializationOptions": {"didChangeStatus": true}});
        Editor::begun(daemon.connect(), params).await;
    }
    // The first connection starts what all of them share.
    fixtures::eventually("their tasks end", || tasks() < before + CONNECTIONS / 2).await;
}
