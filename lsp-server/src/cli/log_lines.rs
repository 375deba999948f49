//! Lines of the log, each warning once. What is wrong with a file is found at each look at it,
//! which may be every few seconds for months.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing_subscriber::fmt::MakeWriter;

/// The number of warnings that are remembered. The oldest give way.
const REMEMBERED_MAX: usize = 64;

/// The time after which a warning is written again.
const REPEATED_AFTER: Duration = Duration::from_secs(60 * 60);

/// Writes lines to stderr, but for warnings and errors that were written a moment ago.
#[derive(Clone, Default)]
pub struct LogLines(Arc<Mutex<Remembered>>);

#[derive(Default)]
struct Remembered(VecDeque<(u64, Instant)>);

impl Remembered {
    /// Returns true if a line is to be written, which is remembered then.
    fn is_new(&mut self, line: &[u8], now: Instant) -> bool {
        let Some(warning) = warning(line) else { return true };
        let mut hasher = DefaultHasher::new();
        warning.hash(&mut hasher);
        let hash = hasher.finish();
        self.0.retain(|(_, at)| now.duration_since(*at) < REPEATED_AFTER);
        if self.0.iter().any(|(known, _)| *known == hash) {
            return false;
        }
        if self.0.len() == REMEMBERED_MAX {
            self.0.pop_front();
        }
        self.0.push_back((hash, now));
        true
    }
}

/// Returns a line without its time, if it is a warning or an error.
fn warning(line: &[u8]) -> Option<&[u8]> {
    let time = line.iter().position(|byte| *byte == b' ')?;
    let rest = line[time..].trim_ascii_start();
    [&b"WARN "[..], b"ERROR "].iter().any(|level| rest.starts_with(level)).then_some(rest)
}

/// Writes one line. The layer hands a whole line to a writer of its own.
pub struct LogLine(Arc<Mutex<Remembered>>);

impl Write for LogLine {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.0.lock().is_new(line, Instant::now()) {
            let text = String::from_utf8_lossy(line);
            // A name in it may have line breaks of its own.
            writeln!(io::stderr(), "{}", printable::name(text.trim_end_matches('\n')))?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

impl MakeWriter<'_> for LogLines {
    type Writer = LogLine;

    fn make_writer(&self) -> LogLine {
        LogLine(self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_not_repeated_for_a_while() {
        let (mut remembered, now) = (Remembered::default(), Instant::now());
        let mut is_new = |line: &str, seconds: u64| {
            remembered.is_new(line.as_bytes(), now + Duration::from_secs(seconds))
        };
        assert!(is_new("2026-01-01T00:00:00Z  WARN /p/.gitignore: too long\n", 0));
        assert!(!is_new("2026-01-01T00:00:02Z  WARN /p/.gitignore: too long\n", 2));
        assert!(is_new("2026-01-01T00:00:02Z  WARN /q/.gitignore: too long\n", 2));
        assert!(!is_new("2026-01-01T00:00:04Z  WARN /p/.gitignore: too long\n", 4));
        assert!(is_new("2026-01-01T01:00:00Z  WARN /p/.gitignore: too long\n", 3600));
        for _ in 0..2 {
            assert!(is_new("2026-01-01T00:00:05Z  INFO v3 serves\n", 5), "it happened twice");
        }
        for number in 0..REMEMBERED_MAX {
            is_new(&format!("2026-01-01T01:00:01Z ERROR {number}\n"), 3601);
        }
        assert!(is_new("2026-01-01T01:00:02Z  WARN /p/.gitignore: too long\n", 3602));
    }
}
