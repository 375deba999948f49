//! How far a pull has come.

use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use serde::Serialize;
use std::io::Write;

/// Lines a transfer may take: a bar needs no more.
const LINES_PER_TRANSFER: u64 = 200;

/// Bytes between two lines where the server does not say how many there are.
const UNKNOWN_STEP_BYTES: u64 = 4 * 1024 * 1024;

/// Told by a pull what it does; one transfer at a time.
pub trait Progress {
    /// A transfer begins; `total` is in bytes, 0 where the server does not say.
    fn start(&mut self, total: u64);
    /// This many more bytes are there, those kept from an earlier run included.
    fn advance(&mut self, bytes: u64);
    /// The transfer ended, well or not.
    fn finish(&mut self);
    /// One line for the user.
    fn note(&mut self, text: &str);
}

/// Says nothing.
impl Progress for () {
    fn start(&mut self, _total: u64) {}
    fn advance(&mut self, _bytes: u64) {}
    fn finish(&mut self) {}
    fn note(&mut self, _text: &str) {}
}

/// Notes and a bar on stderr; the bar only where stderr is a terminal.
#[derive(Default)]
pub struct TerminalProgress {
    bar: Option<ProgressBar>,
}

impl Progress for TerminalProgress {
    fn start(&mut self, total: u64) {
        let bar = ProgressBar::new(total);
        let template = "{bar:32} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left";
        // The template is a constant; the default bar is a fine answer to a typo in it.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
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
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }
}

/// JSON lines for a program that shows a bar of its own: `bytes` of `total`
/// (0 where the server does not say), and notes.
pub struct JsonProgress<W: Write> {
    output: W,
    bytes: u64,
    told: u64,
    total: u64,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Line<'a> {
    Bytes { bytes: u64, total: u64 },
    Note { note: &'a str },
}

impl<W: Write> JsonProgress<W> {
    pub fn new(output: W) -> Self {
        JsonProgress { output, bytes: 0, told: 0, total: 0 }
    }

    /// A reader that has gone does not end a pull: what came is kept for the next.
    fn say(&mut self, line: &Line) {
        let _ = serde_json::to_writer(&mut self.output, line);
        let _ = self.output.write_all(b"\n");
        let _ = self.output.flush();
    }

    fn say_bytes(&mut self) {
        self.told = self.bytes;
        self.say(&Line::Bytes { bytes: self.bytes, total: self.total });
    }
}

impl<W: Write> Progress for JsonProgress<W> {
    fn start(&mut self, total: u64) {
        (self.bytes, self.total) = (0, total);
        self.say_bytes();
    }

    fn advance(&mut self, bytes: u64) {
        self.bytes += bytes;
        let step = match self.total {
            0 => UNKNOWN_STEP_BYTES,
            total => total.div_ceil(LINES_PER_TRANSFER),
        };
        if self.bytes - self.told >= step {
            self.say_bytes();
        }
    }

    fn finish(&mut self) {
        if self.bytes > self.told {
            self.say_bytes();
        }
    }

    fn note(&mut self, text: &str) {
        self.say(&Line::Note { note: text });
    }
}

/// `491.40 MB` and the like, for notes.
pub(crate) fn human(bytes: u64) -> String {
    HumanBytes(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(work: impl FnOnce(&mut JsonProgress<&mut Vec<u8>>)) -> Vec<String> {
        let mut output = vec![];
        work(&mut JsonProgress::new(&mut output));
        String::from_utf8(output).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_transfer_is_told_from_nothing_to_all_in_a_bounded_number_of_lines() {
        let told = lines(|progress| {
            progress.note("from the mirror");
            progress.start(1_000_003);
            (0..1_000_003).for_each(|_| progress.advance(1));
            progress.finish();
        });
        assert_eq!(told[0], r#"{"note":"from the mirror"}"#);
        assert_eq!(told[1], r#"{"bytes":0,"total":1000003}"#);
        assert_eq!(told.last().unwrap(), r#"{"bytes":1000003,"total":1000003}"#);
        assert!(told.len() as u64 <= LINES_PER_TRANSFER + 3, "{}", told.len());
    }

    #[test]
    fn what_an_earlier_run_left_counts_and_a_new_transfer_starts_over() {
        let told = lines(|progress| {
            progress.start(100);
            progress.advance(60);
            progress.finish();
            progress.start(0);
            progress.advance(UNKNOWN_STEP_BYTES - 1);
            progress.finish();
        });
        let unknown = format!("{{\"bytes\":{},\"total\":0}}", UNKNOWN_STEP_BYTES - 1);
        let expected = [
            r#"{"bytes":0,"total":100}"#,
            r#"{"bytes":60,"total":100}"#,
            r#"{"bytes":0,"total":0}"#,
            &unknown,
        ];
        assert_eq!(told, expected);
    }
}
