//! What a client says of an offer counts on whichever connection it comes.

use super::*;
use feedback::event::Outcome;

/// Returns what the log says of the offers: their events in order, without their ids and
/// completions.
fn recorded(daemon: &TestDaemon) -> Vec<Value> {
    daemon.log.flush().unwrap();
    let mut events = vec![];
    let reading = daemon.log.scan(0, &mut |event| {
        if !matches!(event.kind, EventKind::Completion(_)) {
            let mut event = serde_json::to_value(&event.kind).unwrap();
            event.as_object_mut().unwrap().remove("id");
            events.push(event);
        }
        ControlFlow::Continue(())
    });
    reading.unwrap();
    events
}

/// An editor that has an offer, and the id of the offer.
async fn offered(daemon: &TestDaemon) -> (Editor, String) {
    let mut editor = Editor::over(daemon.connect()).await;
    editor.open("file:///project/a.rs", TEXT).await;
    let answer = complete(&mut editor, "file:///project/a.rs").await;
    let id = &answer["result"]["items"][0]["command"]["arguments"][0];
    (editor, id.as_str().unwrap().to_owned())
}

/// Waits until the messages before this were handled.
async fn settle(editor: &mut Editor) {
    let (id, status) = editor.request("hone/status", Value::Null);
    editor.send(&status).await;
    editor.until(|message| message["id"] == id && message["method"].is_null()).await;
}

/// The parameters of a message about an offer.
fn params(method: &str, id: &str) -> Value {
    match method {
        "workspace/executeCommand" => json!({"command": "hone.accept", "arguments": [id]}),
        "notifyRejected" => json!({"uuids": [id]}),
        "hone/didReject" => json!({"id": id, "reason": "esc"}),
        method if method.starts_with("notify") => json!({"uuid": id}),
        _ => part(id, 2),
    }
}

fn part(id: &str, accepted_length: u32) -> Value {
    json!({"item": {"command": {"arguments": [id]}}, "acceptedLength": accepted_length})
}

/// Sends a message about an offer, and waits until it was handled.
async fn tell(editor: &mut Editor, method: &str, params: Value) {
    if method.starts_with("notify") || method.starts_with("workspace/") {
        let (_, request) = editor.request(method, params);
        editor.send(&request).await;
        assert_eq!(editor.answer().await["error"], Value::Null, "{method}");
    } else {
        editor.send(&editor.notification(method, params)).await;
    }
    settle(editor).await;
}

/// The log after these messages about an offer. They come from the editor that has the offer, or
/// from another one.
async fn told(by_other: bool, methods: &[&str]) -> Vec<Value> {
    let daemon = daemon().await;
    let (mut own, id) = offered(&daemon).await;
    let mut other = Editor::over(daemon.connect()).await;
    for method in methods {
        let editor = if by_other { &mut other } else { &mut own };
        tell(editor, method, params(method, &id)).await;
    }
    // Whatever is left open ends here.
    own.send(&own.change("file:///project/a.rs", CURSOR, "q")).await;
    settle(&mut own).await;
    recorded(&daemon)
}

#[tokio::test]
async fn every_report_counts_from_another_connection_as_from_the_offers_own() {
    let shown = "textDocument/didShowCompletion";
    for methods in [
        &["workspace/executeCommand"][..],
        &[shown, "workspace/executeCommand"],
        &["notifyAccepted"],
        &[shown],
        &["notifyShown"],
        &["textDocument/didPartiallyAcceptCompletion"],
        &[shown, "hone/didReject"],
        &["notifyShown", "notifyRejected"],
    ] {
        let own = told(false, methods).await;
        assert!(!own.is_empty(), "{methods:?}");
        assert_eq!(told(true, methods).await, own, "{methods:?}");
    }
}

#[tokio::test]
async fn an_acceptance_counts_after_the_connection_of_its_offer_has_ended() {
    for method in ["workspace/executeCommand", "notifyAccepted"] {
        let daemon = daemon().await;
        let (own, id) = offered(&daemon).await;
        drop(own);
        fixtures::eventually("the connection ends", || !recorded(&daemon).is_empty()).await;
        let mut other = Editor::over(daemon.connect()).await;
        let params = json!({"command": "hone.accept", "arguments": [id], "uuid": id});
        let (_, request) = other.request(method, params);
        for _ in 0..2 {
            other.send(&request).await;
            assert_eq!(other.answer().await["error"], Value::Null);
        }
        let last = recorded(&daemon).pop().unwrap();
        assert_eq!(last["outcome"], json!(Outcome::Accepted), "{last}");
        assert_eq!(recorded(&daemon).len(), 2, "it is recorded once");
    }
}

/// A daemon that has an offer in its log whose connection is gone, and the id of the offer. The
/// connection has ended, or else was that of another daemon, which was killed.
async fn offered_before(has_ended: bool) -> (TestDaemon, String) {
    let daemon = daemon().await;
    let (own, id) = offered(&daemon).await;
    if has_ended {
        drop(own);
        fixtures::eventually("the connection ends", || !recorded(&daemon).is_empty()).await;
        return (daemon, id);
    }
    let successor = self::daemon().await;
    let reading = daemon.log.scan(0, &mut |event| {
        successor.app.services.recorder.record(vec![event.kind]);
        ControlFlow::Continue(())
    });
    reading.unwrap();
    (successor, id)
}

/// The end of a connection was taken for a verdict, and what its editor said of the offer later was
/// dropped. So was every part but the first that was accepted after a daemon was killed.
#[tokio::test]
async fn reports_count_after_the_connection_of_their_offer() {
    const PART: &str = "textDocument/didPartiallyAcceptCompletion";
    for has_ended in [true, false] {
        let is_rejected = json!({"event": "outcome", "outcome": {"kind": "rejected_esc"},
            "evidence": "client_notice"});
        for methods in [&["hone/didReject"][..], &["notifyRejected"], &["notifyRejected", PART]] {
            let (daemon, id) = offered_before(has_ended).await;
            let mut other = Editor::over(daemon.connect()).await;
            for method in methods {
                tell(&mut other, method, params(method, &id)).await;
            }
            let log = recorded(&daemon);
            assert_eq!(log.last(), Some(&is_rejected), "{methods:?}");
            assert_eq!(log.len(), 1 + usize::from(has_ended), "{methods:?}");
        }

        let (daemon, id) = offered_before(has_ended).await;
        let mut other = Editor::over(daemon.connect()).await;
        tell(&mut other, "notifyRejected", json!({"uuids": [id, "of-the-same-answer"]})).await;
        assert_eq!(recorded(&daemon).last(), Some(&is_rejected), "several were to choose from");

        let (daemon, id) = offered_before(has_ended).await;
        let mut other = Editor::over(daemon.connect()).await;
        for (length, utf16) in [(2, 2), (5, 5), (4, 5)] {
            tell(&mut other, PART, part(&id, length)).await;
            let outcome = &recorded(&daemon).pop().unwrap()["outcome"];
            assert_eq!(outcome, &json!({"kind": "partly_accepted", "utf16": utf16}));
        }
        assert_eq!(daemon.app.services.recorder.counts().partly_accepted, 1);
        tell(&mut other, "hone/didReject", params("hone/didReject", &id)).await;
        let outcome = &recorded(&daemon).pop().unwrap()["outcome"];
        assert_eq!(outcome["kind"], "partly_accepted", "what was left of it was dismissed");
    }
}

#[tokio::test]
async fn the_acceptance_of_an_unknown_offer_is_an_error() {
    let daemon = daemon().await;
    let mut editor = Editor::over(daemon.connect()).await;
    for method in ["workspace/executeCommand", "notifyAccepted"] {
        let params = json!({"command": "hone.accept", "arguments": ["none"], "uuid": "none"});
        let (_, request) = editor.request(method, params);
        editor.send(&request).await;
        let message = editor.answer().await["error"]["message"].clone();
        assert!(message.as_str().unwrap().starts_with("not recorded: "), "{message}");
    }
}
