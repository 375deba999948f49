//! A question that the user answers in the terminal.

use crate::cli::output;
use anyhow::Result;
use std::io::BufRead;

/// Asks a question, and returns true if the answer is yes. The caller makes sure that somebody can
/// answer.
pub fn confirmed(question: &str) -> Result<bool> {
    output::asked(&format!("{question} [y/N]"))?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
