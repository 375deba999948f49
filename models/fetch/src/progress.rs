//! Shows how far a pull has come.

use crate::limits::{PROGRESS_LINES_MAX, PROGRESS_STEP_BYTES};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use models::size::Size;
use serde::Serialize;
use std::fmt;
use std::io::Write;

/// A pull reports to it what it does. There is one transfer at a time.
pub trait PullProgress {
    /// A transfer begins. `total` is its length in bytes, or 0 if the server does not say.
    fn start(&mut self, total: u64);
    /// So many more bytes are there. Bytes that an earlier run left count too.
    fn advance(&mut self, bytes: u64);
    /// The transfer has ended, successfully or not.
    fn finish(&mut self);
    /// A line for the user to read.
    fn note(&mut self, text: &str);
}

/// Shows nothing.
impl PullProgress for () {
    fn start(&mut self, _total: u64) {}
    fn advance(&mut self, _bytes: u64) {}
    fn finish(&mut self) {}
    fn note(&mut self, _text: &str) {}
}

/// Writes notes to stderr, and shows a progress bar there if stderr is a terminal.
#[derive(Default)]
pub struct TerminalProgress {
    bar: Option<ProgressBar>,
}

impl PullProgress for TerminalProgress {
    fn start(&mut self, total: u64) {
        let bar = ProgressBar::new(total);
        let template = "{bar:32} {come} of {size}  {bytes_per_sec}  {eta} left";
        // The template is a constant. If it had a typo, the default bar would be shown.
        if let Ok(style) = ProgressStyle::with_template(template) {
            let come = |state: &ProgressState, to: &mut dyn fmt::Write| {
                let _ = write!(to, "{}", Size(state.pos()));
            };
            let size = |state: &ProgressState, to: &mut dyn fmt::Write| {
                let _ = write!(to, "{}", Size(state.len().unwrap_or(0)));
            };
            bar.set_style(style.with_key("come", come).with_key("size", size));
        }
        self.bar = Some(bar);
    }

    fn advance(&mut self, bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.inc(bytes);
        }
    }

    fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn note(&mut self, text: &str) {
        // If nobody reads the notes any more, the pull continues, and its file is kept.
        let write = || drop(writeln!(std::io::stderr(), "{text}"));
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}

/// Writes JSON lines for a program that shows a bar of its own. A line holds `bytes` and
/// `total`, which is 0 if the server does not say it, or a `note`.
pub struct JsonProgress<W: Write> {
    output: W,
    bytes: u64,
    /// `bytes` in the last line.
    written: u64,
    total: u64,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ProgressLine<'a> {
    Bytes { bytes: u64, total: u64 },
    Note { note: &'a str },
}

impl<W: Write> JsonProgress<W> {
    pub fn new(output: W) -> Self {
        JsonProgress { output, bytes: 0, written: 0, total: 0 }
    }

    /// If nobody reads the lines any more, the pull continues, and its file is kept.
    fn write(&mut self, line: &ProgressLine) {
        let _ = serde_json::to_writer(&mut self.output, line);
        let _ = self.output.write_all(b"\n");
        let _ = self.output.flush();
    }

    fn write_bytes(&mut self) {
        self.written = self.bytes;
        self.write(&ProgressLine::Bytes { bytes: self.bytes, total: self.total });
    }
}

impl<W: Write> PullProgress for JsonProgress<W> {
    fn start(&mut self, total: u64) {
        (self.bytes, self.total) = (0, total);
        self.write_bytes();
    }

    fn advance(&mut self, bytes: u64) {
        self.bytes += bytes;
        let step = match self.total {
            0 => PROGRESS_STEP_BYTES,
            total => total.div_ceil(PROGRESS_LINES_MAX),
        };
        if self.bytes - self.written >= step {
            self.write_bytes();
        }
    }

    fn finish(&mut self) {
        if self.bytes > self.written {
            self.write_bytes();
        }
    }

    fn note(&mut self, text: &str) {
        self.write(&ProgressLine::Note { note: text });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(work: impl FnOnce(&mut JsonProgress<&mut Vec<u8>>)) -> Vec<String> {
        let mut output = vec![];
        work(&mut JsonProgress::new(&mut output));
        String::from_utf8(output).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_transfer_takes_a_bounded_number_of_lines() {
        let lines = written(|progress| {
            progress.note("from the mirror");
            progress.start(1_000_003);
            (0..1_000_003).for_each(|_| progress.advance(1));
            progress.finish();
        });
        assert_eq!(lines[0], r#"{"note":"from the mirror"}"#);
        assert_eq!(lines[1], r#"{"bytes":0,"total":1000003}"#);
        assert_eq!(lines.last().unwrap(), r#"{"bytes":1000003,"total":1000003}"#);
        assert!(lines.len() as u64 <= PROGRESS_LINES_MAX + 3, "{}", lines.len());
    }

    #[test]
    fn bytes_of_an_earlier_run_count_and_a_new_transfer_starts_over() {
        let lines = written(|progress| {
            progress.start(100);
            progress.advance(60);
            progress.finish();
            progress.start(0);
            progress.advance(PROGRESS_STEP_BYTES - 1);
            progress.finish();
        });
        let unknown = format!("{{\"bytes\":{},\"total\":0}}", PROGRESS_STEP_BYTES - 1);
        let expected = [
            r#"{"bytes":0,"total":100}"#,
            r#"{"bytes":60,"total":100}"#,
            r#"{"bytes":0,"total":0}"#,
            &unknown,
        ];
        assert_eq!(lines, expected);
    }
}
