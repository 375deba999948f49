//! `hone readable`: which files may be read although nobody opened them. `hone-rehearse` asks,
//! because it knows none of the rules.

use crate::cli::settings::Configured;
use anyhow::{Context, Result};
use host::addresses::name_of_file;
use host::paths::Paths;
use privacy::access::Access;
use settings::Config;
use settings::patterns::Patterns;
use std::io::BufRead;
use std::path::PathBuf;
use std::sync::Arc;

/// Answers a line of JSON, the path of a file, with a line: `true` or `false`.
pub fn run(home: &Paths) -> Result<()> {
    let access = access(home, &Configured::read(home).config)?;
    for line in std::io::stdin().lock().lines() {
        let path: PathBuf = serde_json::from_str(&line?).context("a line is no path")?;
        emit!("{}", access.may_read(&name_of_file(&path), ""))?;
    }
    Ok(())
}

/// Returns the rules of this user.
///
/// # Errors
/// Some of them cannot be read.
pub fn access(home: &Paths, config: &Config) -> Result<Access> {
    let ignored = Patterns::compile(&config.privacy.ignore).context("privacy.ignore")?;
    let access = Access::new(Arc::default(), home.forgotten(), ignored);
    access.forgotten.check()?;
    Ok(access)
}
