//! The export of the log for `hone events`: JSON lines, with code only if the user asks for it.

use anyhow::Result;
use feedback::event::{Event, EventKind};
use feedback::log::EventLog;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::sync::Arc;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};

/// The number of lines that are read ahead of a slow reader.
const READ_AHEAD: usize = 64;

/// Writes every event, and each further one when `recorded` changes, until `end`. The last line
/// that is written is whole.
pub async fn follow(
    log: &Arc<dyn EventLog>,
    mut recorded: watch::Receiver<u64>,
    from: u64,
    writer: &mut (impl AsyncWrite + Unpin),
    end: impl Future<Output = ()>,
) -> Result<()> {
    let mut next = from;
    tokio::pin!(end);
    loop {
        next = stream(log.clone(), next, writer).await?;
        tokio::select! {
            changed = recorded.changed() => changed?,
            () = &mut end => return stream(log.clone(), next, writer).await.map(drop),
        }
    }
}

/// The last line of an export, which says how it ended. Without it, some events may be missing.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportEnd {
    /// Why not all events follow one another here.
    pub failed: Option<String>,
}

/// Writes all events, one line of JSON each, and a last line that says how it ended.
pub async fn stream_all(
    log: Arc<dyn EventLog>,
    writer: &mut (impl AsyncWrite + Unpin),
) -> Result<()> {
    let streamed = stream(log, 0, writer).await;
    let end = ExportEnd { failed: streamed.err().map(|error| format!("{error:#}")) };
    let mut line = serde_json::to_vec(&end)?;
    line.push(b'\n');
    writer.write_all(&line).await?;
    Ok(writer.flush().await?)
}

/// Writes the events from this number on, one line of JSON each. Returns the number after the last.
pub async fn stream(
    log: Arc<dyn EventLog>,
    from: u64,
    writer: &mut (impl AsyncWrite + Unpin),
) -> Result<u64> {
    let (lines, mut queue) = mpsc::channel(READ_AHEAD);
    let reader = host::tasks::blocking(move || -> Result<u64> {
        let (mut failed, mut next) = (None, from);
        log.scan(from, &mut |event| match serde_json::to_vec(&event) {
            Ok(mut line) => {
                next = event.seq + 1;
                line.push(b'\n');
                // An error means that the reader is gone.
                match lines.blocking_send(line) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                }
            }
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        })?;
        failed.map_or(Ok(next), |error| Err(error.into()))
    });
    while let Some(line) = queue.recv().await {
        writer.write_all(&line).await?;
    }
    writer.flush().await?;
    reader.await?
}

/// An event without its code. Token ids are left out too, because anybody who has the vocabulary
/// can turn them into text. So are the experts that the tokens went through, which say something of
/// them.
pub fn without_code(event: &Event) -> Result<Value> {
    let mut value = serde_json::to_value(event)?;
    let Some(fields) = value.as_object_mut() else { return Ok(value) };
    if let EventKind::Replacement { tokens, .. } = &event.kind {
        fields.insert("tokens".into(), json!(tokens.len()));
    }
    if matches!(event.kind, EventKind::NextEdit(_)) {
        // The number of a rule is computed from its text, so a short text could be guessed.
        fields.remove("rule");
    }
    let EventKind::Completion(completion) = &event.kind else { return Ok(value) };
    let length = |value: &Value| match value {
        Value::Array(items) => items.len(),
        Value::String(text) => text.encode_utf16().count(),
        _ => 0,
    };
    let (prompt, shown) = (length(&fields["prompt"]), length(&fields["shown"]));
    let logprobs: Vec<Value> = fields["tokens"]
        .as_array()
        .map(|tokens| tokens.iter().map(|token| token["logprob"].clone()).collect())
        .unwrap_or_default();
    for code in ["prompt", "tokens", "healing", "shown", "experts"] {
        fields.remove(code);
    }
    if let Some(held_back) =
        completion.decision.gate.as_ref().and_then(|gate| gate.held_back.as_ref())
    {
        fields["decision"]["gate"]["held_back"] = json!(held_back.encode_utf16().count());
    }
    fields.insert("prompt_tokens".into(), json!(prompt));
    fields.insert("shown_utf16".into(), json!(shown));
    fields.insert("logprobs".into(), json!(logprobs));
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedback::event::{Completion, Decision, GateRecord, TokenRecord};
    use feedback::log::MemoryLog;
    use tokio::io::{AsyncBufReadExt, BufReader};

    #[tokio::test]
    async fn a_follower_gets_what_was_recorded_and_then_each_event_once() {
        let log: Arc<dyn EventLog> = Arc::new(MemoryLog::default());
        let (recorded, news) = watch::channel(0);
        let (read, mut write) = tokio::io::duplex(1024);
        let record = |id: &str| {
            log.append(0, EventKind::Replacement { id: id.into(), tokens: vec![] }).unwrap();
            recorded.send_modify(|count| *count += 1);
        };
        let ids = async {
            let mut lines = BufReader::new(read).lines();
            let mut ids = vec![];
            for next in ["2-1", "3-1", ""] {
                let line = lines.next_line().await.unwrap().unwrap();
                let event: Event = serde_json::from_str(&line).unwrap();
                ids.push(event.seq);
                if !next.is_empty() {
                    record(next);
                }
            }
            ids
        };
        record("0-1");
        record("1-1");
        tokio::select! {
            ended = follow(&log, news, 1, &mut write, std::future::pending()) => {
                panic!("it ended: {ended:?}")
            }
            ids = ids => assert_eq!(ids, [1, 2, 3]),
        }
    }

    #[test]
    fn no_field_of_an_event_holds_code_unless_asked_for() {
        let gate = GateRecord {
            features_version: 1,
            features: vec![1.0],
            probability: 0.5,
            propensity: 1.0,
            held_back: Some("CANARY".into()),
        };
        let completion = Completion {
            prompt: vec![987_654],
            healing: "CANARY".into(),
            tokens: vec![TokenRecord { id: 987_654, logprob: -0.5 }],
            shown: "CANARY".into(),
            decision: Decision { gate: Some(gate), ..Decision::default() },
            ..feedback::testing::completion("1-1")
        };
        let kind = EventKind::Completion(Box::new(completion));
        let event = Event { seq: 0, at_ms: 0, kind };
        let bare = without_code(&event).unwrap();
        let text = bare.to_string();
        assert!(!text.contains("CANARY") && !text.contains("987654"), "{text}");
        assert_eq!((&bare["shown_utf16"], &bare["prompt_tokens"]), (&json!(6), &json!(1)));
        assert_eq!(bare["logprobs"], json!([-0.5]));
        assert!(serde_json::to_string(&event).unwrap().contains("CANARY"));
        assert_eq!(bare["decision"]["gate"]["held_back"], json!(6));
        let kind = EventKind::Replacement { id: "1-1".into(), tokens: vec![987_654; 3] };
        assert_eq!(without_code(&Event { seq: 1, at_ms: 0, kind }).unwrap()["tokens"], json!(3));
    }
}
