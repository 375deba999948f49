//! What the measurements have in common that `cargo xtask bench` runs.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The model that is measured if none is named.
pub const MODEL: &str = "qwen2.5-coder-0.5b";

/// Returns the `hone` that was built with this program.
pub fn hone() -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program's own path")?;
    Ok(own.with_file_name("hone"))
}

/// Downloads a model if it is missing, and returns its file.
pub fn model(name: &str) -> Result<PathBuf> {
    let mut pull = Command::new(hone()?);
    let output = pull.args(["model", "pull", name]).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot start {pull:?}"))?;
    ensure!(output.status.success(), "`hone model pull {name}` failed ({})", output.status);
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}

/// Downloads a model if it is missing, and returns the folder that it lies in.
pub fn models(model: &str) -> Result<PathBuf> {
    Ok(self::model(model)?.with_file_name(""))
}

/// Returns the folder in which a measurement keeps what takes long: `target/bench/NAME`.
pub fn folder(name: &str) -> Result<PathBuf> {
    let hone = hone()?;
    let target = hone.ancestors().nth(2).context("this program lies in no target folder")?;
    let folder = target.join("bench").join(name);
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    Ok(folder)
}

/// Prints what was measured, as JSON or as a table.
pub fn print(measured: &Value, as_json: bool, table: fn(&Value) -> String) -> Result<()> {
    if as_json {
        println!("{}", serde_json::to_string_pretty(measured)?);
    } else {
        println!("{}", table(measured));
    }
    Ok(())
}
