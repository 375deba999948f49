//! A question that the user answers in the terminal.

use anyhow::Result;
use std::io::{BufRead, Write};

/// Asks a question, and returns true if the answer is yes. The caller makes sure that somebody can
/// answer.
pub fn confirmed(question: &str) -> Result<bool> {
    let mut stderr = std::io::stderr().lock();
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    drop(stderr);
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
