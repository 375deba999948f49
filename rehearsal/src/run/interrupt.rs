//! Ctrl-C ends a rehearsal between two steps. The daemons and temporary homes are then cleaned up
//! when their owners are dropped.

use anyhow::{Context, Result};
use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// Installs the handler. A process may call this once.
pub fn install() -> Result<()> {
    ctrlc::set_handler(|| REQUESTED.store(true, Ordering::SeqCst))
        .context("cannot install a handler for Ctrl-C")
}

pub fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}

/// Returns an error once Ctrl-C was pressed.
pub fn check() -> Result<(), Interrupted> {
    if requested() { Err(Interrupted) } else { Ok(()) }
}
