//! `hone config`: show and change settings. Only the file holds them, and a running daemon is
//! told to read it again.

use crate::app::startup::{NEXT_EDIT_MODEL, next_edit_manifest};
use crate::cli::settings::Configured;
use crate::daemon::client;
use crate::daemon::handshake::Command;
use anyhow::{Context, Result, bail};
use clap::Subcommand;
use host::paths::Paths;
use models::manifest::Catalogue;
use models::store::Store;
use serde_json::{Value, json};
use settings::{Changed, Config, LAB, names, node, schema, schema_for_users, unknown};

#[derive(Subcommand)]
pub enum ConfigCommand {
    /// Print settings as they are, defaults included, and the file that holds them
    Get {
        /// Such as `completion.multiline`; all settings if left out
        key: Option<String>,
        /// Include the table `[lab]`, which only experiments change
        #[arg(long, conflicts_with = "key")]
        all: bool,
        /// Print every setting's meaning, default and range instead, as JSON Schema
        #[arg(long, conflicts_with = "key")]
        schema: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Change a setting, here and in the running daemon
    Set {
        /// Such as `completion.multiline`, or `completion.languages.markdown`
        key: String,
        /// A number, `true`, `false`, a text, or JSON; the default again if left out
        #[arg(allow_hyphen_values = true)]
        value: Option<String>,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
}

/// The setting that names the model. Its values, and those of [`NEXT_EDIT_MODEL`], are the names of
/// manifests, which the schema does not know.
pub const MODEL_NAME: &str = "model.name";

pub async fn run(home: &Paths, command: ConfigCommand) -> Result<()> {
    match command {
        ConfigCommand::Get { schema: true, all, .. } => {
            let schema = if all { schema() } else { schema_for_users() };
            emit!("{}", serde_json::to_string_pretty(&schema)?)?;
        }
        ConfigCommand::Get { key: Some(key), json, .. } => get(home, &key, json)?,
        ConfigCommand::Get { key: None, all, json, .. } => get_every(home, all, json)?,
        ConfigCommand::Set { key, value, json } => set(home, &key, value.as_deref(), json).await?,
    }
    Ok(())
}

fn get(home: &Paths, key: &str, json: bool) -> Result<()> {
    let all = Configured::noted(home).config.to_json()?;
    node(&schema(), key).with_context(|| unknown(key))?;
    print(key, value_of(&all, key), json)
}

/// Prints every setting, those of `[lab]` only if `all` is set. The file stands above them as a
/// comment.
fn get_every(home: &Paths, all: bool, json: bool) -> Result<()> {
    let mut settings = Configured::noted(home).config.to_json()?;
    if let Some(tables) = settings.as_object_mut().filter(|_| !all) {
        tables.remove(LAB);
    }
    if !json {
        emit!("# {}", home.config_file().display())?;
    }
    print("", &settings, json)
}

fn print(key: &str, value: &Value, json: bool) -> Result<()> {
    if json {
        emit!("{}", serde_json::to_string_pretty(value)?)?;
    } else {
        print_below(key, value)?;
    }
    Ok(())
}

/// Prints one line for each setting, with the name that `hone config set` accepts.
fn print_below(key: &str, value: &Value) -> Result<()> {
    match value.as_object().filter(|table| !table.is_empty()) {
        None => emit!("{key} = {value}")?,
        Some(table) => {
            for (name, value) in table {
                let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                print_below(&key, value)?;
            }
        }
    }
    Ok(())
}

/// The value of a setting; null if it is not set and has no default.
fn value_of<'a>(all: &'a Value, key: &str) -> &'a Value {
    names(key).into_iter().fold(all, |table, name| &table[name])
}

async fn set(home: &Paths, key: &str, text: Option<&str>, json: bool) -> Result<()> {
    let schema = schema();
    let known = node(&schema, key);
    let value = text.map(|text| read(known, text));
    let (config, running) = change(home, key, value.as_ref()).await?;
    let all = config.to_json()?;
    let restart = running && known.is_some_and(|known| known["x-restart"] == true);
    if json {
        emit!("{}", json!({ "key": key, "value": value_of(&all, key), "restart": restart }))?;
        return Ok(());
    }
    let when = if known.is_some_and(|known| known["x-new-adapter"] == true) {
        " for the next adapter that starts from the base; one that is learned on from keeps its own"
    } else if restart {
        " from the daemon's next start on (`hone restart`)"
    } else if running {
        " from now on"
    } else {
        ""
    };
    let missing = missing_model(home, key, value_of(&all, key)).unwrap_or_default();
    say!("{key} = {}{when}{missing}", value_of(&all, key))?;
    Ok(())
}

/// What is to be done if a setting names a model that is not here.
fn missing_model(home: &Paths, key: &str, value: &Value) -> Option<String> {
    let name = value.as_str().filter(|_| [MODEL_NAME, NEXT_EDIT_MODEL].contains(&key))?;
    let (catalogue, store) = (Catalogue::usable(&home.models()).0, Store::new(home.models()));
    let is_here = store.has(catalogue.get(name).ok()?);
    (!is_here).then(|| format!("; it is not here yet; next: `hone model pull {name}`"))
}

/// Changes the file and then tells the daemon. The answer says whether a daemon runs.
///
/// # Errors
/// The value is wrong, or the file has another mistake. The value is written all the same in the
/// second case, so that several mistakes can be corrected one after the other.
pub async fn change(home: &Paths, key: &str, value: Option<&Value>) -> Result<(Config, bool)> {
    home.create()?;
    if let Some(name) = value.and_then(Value::as_str) {
        let catalogue = || Catalogue::usable(&home.models()).0;
        let checked = match key {
            MODEL_NAME => catalogue().completing(name).map(drop).map_err(Into::into),
            NEXT_EDIT_MODEL => next_edit_manifest(&catalogue(), name).map(drop),
            _ => Ok(()),
        };
        checked.with_context(|| format!("{key}: not set"))?;
    }
    let file = home.config_file();
    let Changed { config, remaining } = settings::set(&file, key, value)?;
    if let Some(problem) = remaining.first() {
        bail!(
            "{key} is written, but nothing of the file counts until another mistake in it is \
             corrected: {}",
            problem.at(&file)
        );
    }
    let running = client::ask(home, Command::Configure).await?;
    Ok((config, running))
}

/// Returns what the user typed as a value of the setting. A text needs no quotes.
fn read(known: Option<&Value>, text: &str) -> Value {
    let is_text = known.is_some_and(|known| match &known["type"] {
        Value::Array(types) => types.contains(&json!("string")),
        only => only == "string",
    });
    if is_text {
        return text.into();
    }
    // Text that is not JSON does not fit the setting's type, and the error names the setting.
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}
