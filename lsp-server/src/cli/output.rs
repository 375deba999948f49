//! What commands print. A reader that has gone, such as `head`, is no error: the rest of the
//! output is dropped, and the command does its work to the end.

use anyhow::{Context, Result};
use console::Term;
use report::layout::Layout;
use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

/// Prints lines for a person, like `println!`, which panics when nobody reads. In a terminal its
/// words wrap.
macro_rules! say {
    ($($what:tt)*) => {
        $crate::cli::output::said(&format!($($what)*))
    };
}

/// Prints lines for a person to stderr, like `eprintln!`. If that fails, there is nobody to tell.
macro_rules! tell {
    ($($what:tt)*) => {
        $crate::cli::output::told(&format!($($what)*))
    };
}

/// Prints a line for a program, or one to copy, as it is.
macro_rules! emit {
    ($($what:tt)*) => {
        $crate::cli::output::line(&mut std::io::stdout().lock(), format_args!($($what)*))
    };
}

/// The environment variable that states the width where the output is no terminal, as it states it
/// to clap. Neovim sets it for what it shows in a window.
const COLUMNS: &str = "COLUMNS";

/// Returns how a screen of this command is laid out.
pub fn layout() -> Layout {
    match of_terminal(&Term::stdout()) {
        Layout::UNLIMITED => {
            let columns = std::env::var(COLUMNS).ok().and_then(|columns| columns.parse().ok());
            columns.map_or(Layout::UNLIMITED, Layout::of_width)
        }
        terminal => terminal,
    }
}

fn of_terminal(term: &Term) -> Layout {
    let size = term.size_checked().filter(|(_, columns)| *columns > 0);
    size.map_or(Layout::UNLIMITED, |(_, columns)| Layout::of_width(columns.into()))
}

/// # Errors
/// See [`line`].
pub fn said(text: &str) -> Result<()> {
    let text = of_terminal(&Term::stdout()).wrapped(text);
    line(&mut std::io::stdout().lock(), format_args!("{text}"))
}

pub fn told(text: &str) {
    let text = of_terminal(&Term::stderr()).wrapped(text);
    drop(line(&mut std::io::stderr().lock(), format_args!("{text}")));
}

/// Prints a question to stderr. The answer stands behind it, on the same line.
///
/// # Errors
/// It cannot be printed, so nobody can answer.
pub fn asked(question: &str) -> Result<()> {
    let text = of_terminal(&Term::stderr()).wrapped(question);
    let mut stderr = std::io::stderr().lock();
    write!(stderr, "{} ", printable::styled(&text))?;
    Ok(stderr.flush()?)
}

/// Writes a line, without what a terminal would obey.
///
/// # Errors
/// The line cannot be written, for another reason than that nobody reads.
pub fn line(output: &mut impl Write, what: Arguments) -> Result<()> {
    let what = what.to_string();
    match writeln!(output, "{}", printable::styled(&what)).and_then(|()| output.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("the output cannot be written"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Failing(ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_name_changes_nothing_on_the_terminal() {
        let mut written = vec![];
        line(&mut written, format_args!("{}", "a\u{1b}[2J.py:1  shown\nmore")).unwrap();
        assert_eq!(written, b"a\\u001b[2J.py:1  shown\nmore\n");
    }

    #[test]
    fn only_a_reader_that_has_gone_is_no_error() {
        assert!(line(&mut Failing(ErrorKind::BrokenPipe), format_args!("a")).is_ok());
        let error = line(&mut Failing(ErrorKind::StorageFull), format_args!("a")).unwrap_err();
        assert!(error.to_string().contains("cannot be written"), "{error:#}");
    }
}
