//! The guard between a client's stream and the protocol's transport. The transport trusts every
//! announced length, and ends the connection at the first message that it cannot read.

use super::lost::{self, Instead};
use super::outline::Outline;
use crate::protocol::framing::{self, Frame, Frames};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::from_str;
use std::borrow::Cow;
use std::fmt::{self, Formatter};
use tokio::io::{AsyncRead, AsyncWrite, BufReader, DuplexStream, duplex};
use tokio::sync::mpsc::{Sender, channel};
use tower_lsp::jsonrpc::{Id, Request, Response};

/// The number of bytes between the guard and the transport. A writer of more waits.
const PIPE_BYTES: usize = 64 * 1024;

/// The number of answers that may be on their way to the client.
const QUEUE: usize = 16;

/// Passes the complete and readable messages of a client to `serve`, and answers the others itself.
pub async fn guard<F: Future<Output = ()>>(
    read: impl AsyncRead + Unpin,
    write: impl AsyncWrite,
    serve: impl FnOnce(DuplexStream, DuplexStream) -> F,
) {
    let (to_serve, checked) = duplex(PIPE_BYTES);
    let (served, from_serve) = duplex(PIPE_BYTES);
    let (answers, mut to_write) = channel::<Vec<u8>>(QUEUE);
    let inward = check(BufReader::new(read), checked, answers.clone());
    let outward = async move {
        let mut frames = Frames::new(BufReader::new(from_serve));
        while let Ok(Some(Frame::Body(body))) = frames.next().await {
            if answers.send(body).await.is_err() {
                return;
            }
        }
    };
    let writing = async move {
        tokio::pin!(write);
        while let Some(body) = to_write.recv().await {
            if framing::write(&mut write, &body).await.is_err() {
                return;
            }
        }
    };
    let serving = serve(to_serve, served);
    let both_inward = async move {
        tokio::select! {
            // After `exit`, further messages of the client are ignored.
            () = serving => {}
            () = async { inward.await; std::future::pending().await } => {}
        }
    };
    tokio::join!(both_inward, outward, writing);
}

async fn check(
    read: BufReader<impl AsyncRead + Unpin>,
    mut checked: DuplexStream,
    answers: Sender<Vec<u8>>,
) {
    let mut frames = Frames::new(read);
    while let Ok(Some(frame)) = frames.next().await {
        let Instead { answer, message } = match frame {
            Frame::Body(body) => readable(body),
            Frame::TooLong { bytes, outline } => lost::instead_of_too_long(bytes, &outline),
            Frame::Noise => lost::instead_of_noise(&Outline::default()),
        };
        if let Some(answer) = answer
            && answers.send(answer).await.is_err()
        {
            return;
        }
        if let Some(message) = message
            && framing::write(&mut checked, &message).await.is_err()
        {
            return;
        }
    }
}

/// Returns the message as the transport can read it, or what replaces it.
fn readable(body: Vec<u8>) -> Instead {
    let repaired = match message_in(&body) {
        Some(Cow::Borrowed(_)) => None,
        Some(Cow::Owned(whole)) => Some(whole),
        None => return lost::instead_of_noise(&Outline::of(&body)),
    };
    Instead { message: Some(repaired.unwrap_or(body)), answer: None }
}

/// Returns the message as the transport can read it, or nothing if the body is none.
pub fn message_in(body: &[u8]) -> Option<Cow<'_, [u8]>> {
    if is_message(body) {
        return Some(Cow::Borrowed(body));
    }
    let whole = framing::whole_characters(body);
    is_message(&whole).then_some(whole)
}

/// Exactly what the transport accepts as a message. It ends the connection at anything else.
#[derive(Deserialize)]
#[serde(untagged)]
enum Message {
    Response(#[allow(dead_code)] Response),
    Request(#[allow(dead_code)] Request),
}

fn is_message(body: &[u8]) -> bool {
    let is_read = |text: &str| is_plain_request(text) || from_str::<Message>(text).is_ok();
    std::str::from_utf8(body).is_ok_and(is_read)
}

/// A request as nearly all are written. Reading it copies nothing, which a message at every key
/// would have to wait for. Whatever it accepts is a [`Message`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainRequest<'a> {
    jsonrpc: &'a str,
    #[serde(rename = "method")]
    _method: &'a str,
    #[serde(rename = "params")]
    _params: Option<AnyValue>,
    #[serde(rename = "id")]
    _id: Option<Id>,
}

fn is_plain_request(text: &str) -> bool {
    from_str::<PlainRequest>(text).is_ok_and(|request| request.jsonrpc == "2.0")
}

/// A value that is read and not kept. In contrast to [`serde::de::IgnoredAny`] it refuses what no
/// reader could keep, such as numbers out of range and values in too many others.
struct AnyValue;

impl<'de> Deserialize<'de> for AnyValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AnyValue, D::Error> {
        deserializer.deserialize_any(AnyVisitor)
    }
}

struct AnyVisitor;

impl<'de> Visitor<'de> for AnyVisitor {
    type Value = AnyValue;

    fn expecting(&self, formatter: &mut Formatter) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<AnyValue, E> {
        Ok(AnyValue)
    }

    fn visit_bool<E>(self, _: bool) -> Result<AnyValue, E> {
        Ok(AnyValue)
    }

    fn visit_i64<E>(self, _: i64) -> Result<AnyValue, E> {
        Ok(AnyValue)
    }

    fn visit_u64<E>(self, _: u64) -> Result<AnyValue, E> {
        Ok(AnyValue)
    }

    fn visit_f64<E>(self, _: f64) -> Result<AnyValue, E> {
        Ok(AnyValue)
    }

    fn visit_str<E>(self, _: &str) -> Result<AnyValue, E> {
        Ok(AnyValue)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<AnyValue, A::Error> {
        while values.next_element::<AnyValue>()?.is_some() {}
        Ok(AnyValue)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<AnyValue, A::Error> {
        while fields.next_entry::<AnyValue, AnyValue>()?.is_some() {}
        Ok(AnyValue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// Guards a transport that repeats what it gets. Returns what the transport and the client got.
    async fn through(wire: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let (mut heard, mut answers) = (vec![], vec![]);
        guard(wire, &mut answers, |mut read, mut write| {
            let heard = &mut heard;
            async move {
                read.read_to_end(heard).await.unwrap();
                framing::write(&mut write, b"{}").await.unwrap();
                write.shutdown().await.unwrap();
            }
        })
        .await;
        (heard, answers)
    }

    fn frame(body: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{body}", body.len())
    }

    #[tokio::test]
    async fn only_messages_reach_the_transport_and_others_are_answered() {
        let good = [
            r#"{"jsonrpc":"2.0","id":1,"method":"hone/status"}"#,
            r#"{"jsonrpc":"2.0","method":"exit","params":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
        ];
        let bad =
            ["{", "[]", "7", r#"{"jsonrpc":"1.0","method":"x"}"#, r#"{"jsonrpc":"2.0","id":[]}"#];
        let wire: String = bad.iter().chain(&good).map(|body| frame(body)).collect();
        let (heard, answers) = through(wire.as_bytes()).await;
        assert_eq!(String::from_utf8(heard).unwrap(), good.map(frame).concat());
        let answers = String::from_utf8(answers).unwrap();
        assert_eq!(answers.matches("-32700").count(), bad.len(), "{answers}");
        assert!(answers.ends_with(&frame("{}")), "{answers}");
    }

    #[test]
    fn a_plain_request_is_a_message() {
        let plain = |params: &str| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":"a","method":"x","params":{params}}}"#);
            let is_plain = is_plain_request(&text);
            assert!(!is_plain || from_str::<Message>(&text).is_ok(), "{text}");
            is_plain
        };
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        for good in [r#"{"a":[1,-2,3.5,true,null,"\u00e4\n"]}"#, "null", "[]", "7", &nested(100)] {
            assert!(plain(good), "{good}");
        }
        for bad in ["1e999", "[1,]", r#""\ud800""#, r#"{"a":}"#, "{1:2}", "", &nested(200)] {
            assert!(!plain(bad), "{bad}");
        }
        for other in [
            r#"{"jsonrpc":"1.0","method":"x"}"#,
            r#"{"jsonrpc":"2.0","method":"x","id":[]}"#,
            r#"{"jsonrpc":"2.0","method":"x","method":"y"}"#,
            r#"{"jsonrpc":"2.0","method":"x"} 7"#,
        ] {
            assert!(!is_plain_request(other) && !is_message(other.as_bytes()), "{other}");
        }
    }

    /// The transport would take it for the beginning of a message, and wait for the rest.
    #[tokio::test]
    async fn a_message_that_is_not_text_is_answered() {
        let (heard, answers) = through(b"Content-Length: 2\r\n\r\n\xff\xff").await;
        assert!(heard.is_empty() && String::from_utf8(answers).unwrap().contains("-32700"));
    }
}
