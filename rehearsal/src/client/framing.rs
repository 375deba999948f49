//! The wire format of LSP: a `Content-Length` header, a blank line, and JSON.

use crate::limits;
use serde_json::Value;
use std::io::{self, BufRead, Write};

/// One message as bytes ready to send.
pub fn frame(message: &Value) -> Vec<u8> {
    let body = message.to_string();
    let mut bytes = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body.as_bytes());
    bytes
}

/// Writes one message and flushes it.
pub fn write(writer: &mut impl Write, message: &Value) -> io::Result<()> {
    writer.write_all(&frame(message))?;
    writer.flush()
}

/// Reads one message. Returns `None` at a clean end of the stream.
///
/// # Errors
/// The header has no usable length, or the body is cut short or is not JSON.
pub fn read(reader: &mut impl BufRead) -> io::Result<Option<Value>> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut length = None;
    for number in 0..limits::HEADER_LINES_MAX {
        let mut line = Vec::new();
        // Written this way because the method `take` would consume the reader.
        io::Read::take(&mut *reader, limits::HEADER_LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        if line.is_empty() && number == 0 {
            return Ok(None);
        }
        if !line.ends_with(b"\n") {
            return Err(invalid("an LSP header line is cut short or too long"));
        }
        let line = line.trim_ascii();
        if line.is_empty() {
            let length = length.ok_or_else(|| invalid("an LSP header without Content-Length"))?;
            if length > limits::MESSAGE_BYTES_MAX {
                return Err(invalid("an LSP message is larger than 64 MiB"));
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            return serde_json::from_slice(&body)
                .map(Some)
                .map_err(|error| invalid(&format!("an LSP message is not JSON: {error}")));
        }
        let text = std::str::from_utf8(line).map_err(|_| invalid("an LSP header is not text"))?;
        if let Some((name, value)) = text.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length =
                Some(value.trim().parse().map_err(|_| invalid("Content-Length is not a number"))?);
        }
    }
    Err(invalid("an LSP header of more than 16 lines"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_written_is_read_back_message_by_message() {
        let mut wire = Vec::new();
        write(&mut wire, &json!({"text": "größer 🙂"})).unwrap();
        write(&mut wire, &json!({"id": 2})).unwrap();
        let mut reader = wire.as_slice();
        assert_eq!(read(&mut reader).unwrap(), Some(json!({"text": "größer 🙂"})));
        assert_eq!(read(&mut reader).unwrap(), Some(json!({"id": 2})));
        assert_eq!(read(&mut reader).unwrap(), None);
    }

    #[test]
    fn header_names_may_be_of_any_case_and_other_headers_are_skipped() {
        let mut reader = &b"content-type: x\r\ncontent-length: 2\r\n\r\n{}"[..];
        assert_eq!(read(&mut reader).unwrap(), Some(json!({})));
    }

    #[test]
    fn broken_frames_are_errors_not_hangs_or_allocations() {
        for wire in [
            "Content-Length: 99999999999\r\n\r\n",
            "Content-Length: 10\r\n\r\n{}",
            "Content-Length: -1\r\n\r\n",
            "Content-Length: 3\r\n\r\n{x}",
            "X: y\r\n\r\n",
            "Content-Length: 2",
        ] {
            assert!(read(&mut wire.as_bytes()).is_err(), "{wire:?}");
        }
    }
}
