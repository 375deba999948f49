//! The NVIDIA card, as nvidia-smi reports it.

use serde::Serialize;
use std::process::Command;

#[derive(Debug, Clone, Serialize)]
pub struct Card {
    pub name: String,
    pub driver: String,
    pub memory_mib: u64,
}

impl Card {
    /// The first card; `None` if there is none, or no driver.
    pub fn find() -> Option<Card> {
        let line = ask("--query-gpu=name,driver_version,memory.total")?;
        let mut fields = line.lines().next()?.split(", ");
        Some(Card {
            name: fields.next()?.to_owned(),
            driver: fields.next()?.to_owned(),
            memory_mib: fields.next()?.trim().parse().ok()?,
        })
    }
}

/// The memory of the first card that is in use, by whatever process, in MiB.
pub fn used_mib() -> Option<u64> {
    ask("--query-gpu=memory.used")?.lines().next()?.trim().parse().ok()
}

fn ask(query: &str) -> Option<String> {
    let arguments = [query, "--format=csv,noheader,nounits"];
    let output = Command::new("nvidia-smi").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
