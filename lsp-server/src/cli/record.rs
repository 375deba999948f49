//! `hone record`: an editor writes what happens in it to stdin, entry by entry, and at the end the
//! session lies in the home as a recording (docs/book/src/evaluation/recordings.md).
//!
//! Nothing is written before the end. So a document that is ignored or ever held a secret is left
//! out of the file as a whole, and an entry reaches the disk only once all of it is known.

mod session;

use crate::cli::readable;
use crate::cli::settings::Configured;
use anyhow::{Context, Result, ensure};
use host::addresses;
use host::paths::Paths;
use host::platform::files;
use serde_json::json;
use session::Session;
use std::io::{BufRead, Read, Write};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// What is read of a session at most. The rest of it is not recorded.
const BYTES_MAX: u64 = 64 << 20;

/// Reads a session and writes it. Prints where, and what was left out.
pub fn run(home: &Paths) -> Result<()> {
    let access = readable::access(home, &Configured::read(home).config)?;
    let may_record = |address: &str, language: &str| {
        access.may_read(&addresses::name(&addresses::normal(address)), language)
    };
    let mut session = Session::new(may_record);
    for line in std::io::stdin().lock().take(BYTES_MAX).lines() {
        let Ok(line) = line else { break };
        session.take(&line);
    }
    let (log, left_out) = session.finish();
    ensure!(
        !log.is_empty(),
        "nothing was recorded: nothing happened in a file that may be recorded"
    );
    let path = write(home, &log)?;
    emit!("{}", json!({ "path": path, "entries": log.len(), "left_out": left_out }))
}

fn write(home: &Paths, log: &[String]) -> Result<PathBuf> {
    home.create()?;
    let folder = home.recordings();
    files::make_private_folder(&folder).with_context(|| folder.display().to_string())?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let path = folder.join(format!("session-{}.json", now.as_millis()));
    let written = || {
        let mut file = files::private().write(true).create_new(true).open(&path)?;
        file.write_all(format!("{{\"log\": [\n{}\n]}}\n", log.join(",\n")).as_bytes())?;
        file.sync_all()
    };
    written().with_context(|| format!("{}: cannot be written", path.display()))?;
    Ok(path)
}
