//! How far a pull has come.

use indicatif::{HumanBytes, ProgressBar, ProgressStyle};

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

/// `491.40 MB` and the like, for notes.
pub(crate) fn human(bytes: u64) -> String {
    HumanBytes(bytes).to_string()
}
