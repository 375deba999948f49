//! What commands print. A reader that has gone, such as `head`, is no error: the rest of the
//! output is dropped, and the command does its work to the end.

use super::printable;
use anyhow::{Context, Result};
use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

/// Prints a line, like `println!`, which panics when nobody reads.
macro_rules! say {
    ($($what:tt)*) => {
        $crate::cli::output::line(&mut std::io::stdout().lock(), format_args!($($what)*))
    };
}

/// Prints a line to stderr, like `eprintln!`. If that fails, there is nobody to tell.
macro_rules! tell {
    ($($what:tt)*) => {
        drop($crate::cli::output::line(&mut std::io::stderr().lock(), format_args!($($what)*)))
    };
}

/// Writes a line, without what a terminal would obey.
///
/// # Errors
/// The line cannot be written, for another reason than that nobody reads.
pub fn line(output: &mut impl Write, what: Arguments) -> Result<()> {
    let what = what.to_string();
    match writeln!(output, "{}", printable::text(&what)).and_then(|()| output.flush()) {
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
