//! LSP's wire format: a `Content-Length` header, a blank line, and JSON. The reader allocates no
//! more than has arrived, whatever length was announced. Noise costs only itself and never the
//! stream.

use super::outline::{Outline, Scanner};
use models::size::Size;
use std::borrow::Cow;
use std::io;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The longest message, in bytes. It has room for a source file of 30 MB, escaped.
pub const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// The longest message that is read over. A header that announces more is noise.
const MAX_SKIPPED_BYTES: usize = u32::MAX as usize;

/// The longest header line, in bytes. A longer one is noise.
const MAX_HEADER_LINE_BYTES: u64 = 1024;

const LENGTH: &[u8] = b"content-length:";

#[derive(Debug, PartialEq)]
pub enum Frame {
    /// The JSON of a message, not yet parsed.
    Body(Vec<u8>),
    /// A message that is longer than [`MAX_MESSAGE_BYTES`]. Its bytes were read and dropped.
    TooLong { bytes: usize, outline: Outline },
    /// Bytes that are no message. They give one such frame, however long the noise lasts.
    Noise,
}

/// The messages of a stream.
pub struct Frames<R> {
    reader: R,
    /// The reader is in the middle of noise that was reported already.
    in_noise: bool,
}

enum Line {
    Blank,
    Length(usize),
    /// Another header, which is ignored.
    Other,
    Noise,
}

impl<R: AsyncBufRead + Unpin> Frames<R> {
    pub fn new(reader: R) -> Frames<R> {
        Frames { reader, in_noise: false }
    }

    /// Reads the next message. Returns `None` at the end of the stream, also if it ends within a
    /// message. The future must not be dropped before it is ready.
    pub async fn next(&mut self) -> io::Result<Option<Frame>> {
        let mut length = None;
        let mut line = vec![];
        loop {
            line.clear();
            let mut bounded = (&mut self.reader).take(MAX_HEADER_LINE_BYTES);
            if bounded.read_until(b'\n', &mut line).await? == 0 {
                return Ok(None);
            }
            match (classify(&line), length) {
                (Line::Length(bytes), _) => length = Some(bytes),
                (Line::Other, _) | (Line::Blank, None) => {}
                (Line::Blank, Some(length)) => {
                    self.in_noise = false;
                    return self.body(length).await;
                }
                (Line::Noise, _) => {
                    length = None;
                    if !std::mem::replace(&mut self.in_noise, true) {
                        return Ok(Some(Frame::Noise));
                    }
                }
            }
        }
    }

    async fn body(&mut self, length: usize) -> io::Result<Option<Frame>> {
        if length > MAX_MESSAGE_BYTES {
            return self.skip(length).await;
        }
        // The buffer grows with the bytes that arrive, not with the announced length.
        let mut body = vec![];
        (&mut self.reader).take(length as u64).read_to_end(&mut body).await?;
        Ok((body.len() == length).then_some(Frame::Body(body)))
    }

    async fn skip(&mut self, length: usize) -> io::Result<Option<Frame>> {
        let (mut scanner, mut left) = (Scanner::default(), length);
        while left > 0 {
            let arrived = self.reader.fill_buf().await?;
            if arrived.is_empty() {
                return Ok(None);
            }
            let count = arrived.len().min(left);
            scanner.push(&arrived[..count]);
            self.reader.consume(count);
            left -= count;
        }
        Ok(Some(Frame::TooLong { bytes: length, outline: scanner.outline() }))
    }
}

fn classify(line: &[u8]) -> Line {
    let lower = line.to_ascii_lowercase();
    // The header also counts behind noise, because a client that sent half a message may continue
    // with a whole one.
    if let Some(at) = lower.windows(LENGTH.len()).position(|part| part == LENGTH) {
        let value = std::str::from_utf8(lower[at + LENGTH.len()..].trim_ascii());
        return match value.ok().and_then(|value| value.parse().ok()) {
            Some(bytes) if bytes <= MAX_SKIPPED_BYTES => Line::Length(bytes),
            _ => Line::Noise,
        };
    }
    if !line.ends_with(b"\n") {
        return Line::Noise;
    }
    let line = line.trim_ascii();
    let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    match line {
        [] => Line::Blank,
        _ if name.len() < line.len() && !name.is_empty() && name.iter().all(is_name) => Line::Other,
        _ => Line::Noise,
    }
}

pub async fn write(writer: &mut (impl AsyncWrite + Unpin), body: &[u8]) -> io::Result<()> {
    let mut bytes = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    writer.write_all(&bytes).await?;
    writer.flush().await
}

/// Returns what is wrong with a message of so many bytes.
pub fn too_long(bytes: usize) -> String {
    let size = |bytes: usize| Size(bytes as u64);
    format!("has {}, and Hone reads at most {}", size(bytes), size(MAX_MESSAGE_BYTES))
}

/// A message in which every half of a character has a place that JSON allows. Clients whose texts
/// are UTF-16 may send one alone, escaped; the character for what is unknown is as long.
pub fn whole_characters(body: &[u8]) -> Cow<'_, [u8]> {
    let mut whole = Cow::Borrowed(body);
    let mut at = 0;
    while let Some(found) = body[at..].iter().position(|&byte| byte == b'\\') {
        at += found;
        match (half(body, at), half(body, at + HALF_BYTES)) {
            (Some(Half::First), Some(Half::Second)) => at += 2 * HALF_BYTES,
            (Some(_), _) => {
                whole.to_mut()[at..at + HALF_BYTES].copy_from_slice(b"\\ufffd");
                at += HALF_BYTES;
            }
            // An escaped backslash begins nothing.
            (None, _) => at = (at + 2).min(body.len()),
        }
    }
    whole
}

/// A half of a character beyond the first 65,536.
enum Half {
    First,
    Second,
}

/// The length of an escaped half, in bytes.
const HALF_BYTES: usize = 6;

/// The half that is escaped at this place.
fn half(body: &[u8], at: usize) -> Option<Half> {
    let escaped = body.get(at..at + HALF_BYTES)?.strip_prefix(b"\\u")?;
    let code = u32::from_str_radix(std::str::from_utf8(escaped).ok()?, 16).ok()?;
    match code {
        0xd800..0xdc00 => Some(Half::First),
        0xdc00..0xe000 => Some(Half::Second),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    const STREAMS: u64 = 5_000;
    /// More bytes than the few digits of these streams can announce.
    const LONGEST: usize = 100_000;

    async fn read(mut wire: &[u8]) -> Vec<Frame> {
        let mut frames = Frames::new(&mut wire);
        let mut all = vec![];
        while let Some(frame) = frames.next().await.unwrap() {
            all.push(frame);
        }
        all
    }

    fn body(text: &str) -> Frame {
        Frame::Body(text.into())
    }

    #[tokio::test]
    async fn written_messages_are_read_back_one_by_one() {
        let mut wire = vec![];
        write(&mut wire, "größer".as_bytes()).await.unwrap();
        write(&mut wire, b"{}").await.unwrap();
        assert_eq!(read(&wire).await, [body("größer"), body("{}")]);
    }

    #[tokio::test]
    async fn header_names_have_any_case_and_unknown_headers_are_skipped() {
        let wire = b"content-type: x\r\nCONTENT-LENGTH:2\r\n\r\n{}";
        assert_eq!(read(wire).await, [body("{}")]);
    }

    #[tokio::test]
    async fn the_next_message_after_noise_is_found() {
        for noise in [
            "GET / HTTP/1.1\r\n",
            "Content-Length: 99999999999999999999\r\n\r\n",
            "Content-Length: 68000000000\r\n\r\n",
            "Content-Length: -1\r\n\r\n{}",
            &"x".repeat(5_000),
            &"line\n".repeat(1_000),
        ] {
            let wire = format!("{noise}Content-Length: 2\r\n\r\n{{}}");
            assert_eq!(read(wire.as_bytes()).await, [Frame::Noise, body("{}")], "{noise:.40}");
        }
        let half = b"{\"half\":Content-Length: 2\r\n\r\n{}";
        assert_eq!(read(half).await, [body("{}")]);
    }

    #[tokio::test]
    async fn a_message_that_is_too_long_costs_only_itself() {
        let text = "x".repeat(MAX_MESSAGE_BYTES);
        let head = r#"{"method":"textDocument/didOpen","params":{"textDocument":{"uri":"x:a""#;
        let head = format!("{head},\"text\":\"");
        let length = head.len() + text.len() + 4;
        let wire = format!("Content-Length: {length}\r\n\r\n{head}{text}\"}}}}}}");
        let whole = format!("{wire}Content-Length: 2\r\n\r\n{{}}");
        let frames = read(whole.as_bytes()).await;
        let [Frame::TooLong { bytes, outline }, last] = &frames[..] else {
            panic!("there are {} frames", frames.len())
        };
        assert_eq!((*bytes, last), (length, &body("{}")));
        assert_eq!(outline.method.as_deref(), Some("textDocument/didOpen"));
        assert_eq!(outline.uri.as_deref(), Some("x:a"));
        assert_eq!(read(&wire.as_bytes()[..length]).await, [], "it ends within the message");
        assert_eq!(too_long(69_000_000), "has 66 MiB, and Hone reads at most 64 MiB");
    }

    #[test]
    fn half_a_character_becomes_an_unknown_one_of_the_same_length() {
        let read = |json: &str| {
            let whole = whole_characters(json.as_bytes()).into_owned();
            assert_eq!(whole.len(), json.len());
            serde_json::from_slice::<String>(&whole).unwrap()
        };
        assert_eq!(read(r#""a\ud83d""#), "a\u{fffd}");
        assert_eq!(read(r#""\ude00\ud83d\ud83d\ude00b""#), "\u{fffd}\u{fffd}😀b");
        assert_eq!(read(r#""\\ud83d\\\ud83d\n""#), "\\ud83d\\\u{fffd}\n");
        assert_eq!(read(r#""größer 😀 \u00e9""#), "größer 😀 é");
        for cut in ["\\", "\\u", "\\ud83", "\\u+123", "\\\\\\"] {
            assert_eq!(&*whole_characters(cut.as_bytes()), cut.as_bytes());
        }
    }

    #[tokio::test]
    async fn an_incomplete_message_is_the_end() {
        assert_eq!(read(b"Content-Length: 10\r\n\r\n{}").await, []);
        assert_eq!(read(b"Content-Length: 10\r\n").await, []);
        assert_eq!(read(b"").await, []);
    }

    /// The message after any noise is found, and no more is ever held than has arrived.
    #[tokio::test]
    async fn random_noise_never_costs_more_than_itself() {
        for seed in 0..STREAMS {
            let mut rng = StdRng::seed_from_u64(seed);
            let mut wire: Vec<u8> = vec![];
            for _ in 0..rng.random_range(0..6) {
                match rng.random_range(0..5) {
                    0 => wire.extend_from_slice(b"Content-Length: "),
                    1 => wire.push(rng.random_range(b'0'..=b'9')),
                    2 => wire.extend_from_slice(b"\r\n"),
                    3 => wire.push(rng.random()),
                    _ => wire.extend((0..rng.random_range(0..40)).map(|_| rng.random::<u8>())),
                }
            }
            let frames = read(&wire).await;
            let held: usize = frames
                .iter()
                .map(|frame| match frame {
                    Frame::Body(body) => body.len(),
                    Frame::TooLong { .. } | Frame::Noise => 0,
                })
                .sum();
            assert!(held <= wire.len(), "seed {seed}");
            // The last announced length may take this many of the following bytes.
            wire.extend(std::iter::repeat_n(b'x', LONGEST));
            wire.extend_from_slice(b"\nContent-Length: 4\r\n\r\nlast");
            let found = read(&wire).await;
            assert_eq!(found.last(), Some(&body("last")), "seed {seed}");
        }
    }
}
