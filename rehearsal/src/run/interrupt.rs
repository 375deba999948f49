//! Ctrl-C ends a rehearsal between two steps, so that children and temporary
//! homes are cleaned up by their owners' `Drop`.

use anyhow::{Context, Result};
use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// Installs the handler; once a process.
pub fn install() -> Result<()> {
    ctrlc::set_handler(|| REQUESTED.store(true, Ordering::SeqCst))
        .context("cannot install a handler for Ctrl-C")
}

pub fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}

/// An error once Ctrl-C was pressed.
pub fn check() -> Result<(), Interrupted> {
    if requested() { Err(Interrupted) } else { Ok(()) }
}
