//! `hone config`: show and change settings. The file is their only owner; a
//! running daemon is told to read it again.

use crate::config::{self, Config, node, schema};
use crate::daemon::client;
use crate::daemon::handshake::Command;
use crate::paths::Home;
use anyhow::{Context, Result};
use clap::Subcommand;
use models::manifest::Catalogue;
use serde_json::{Value, json};

#[derive(Subcommand)]
pub enum ConfigCommand {
    /// Print where the settings are
    Path,
    /// Print every setting's meaning, default and range, as JSON Schema
    Schema {
        /// JSON; the only format there is
        #[arg(long)]
        json: bool,
    },
    /// Print settings as they are, defaults included
    Get {
        /// Such as `completion.max_tokens`; all settings if left out
        key: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Change a setting, here and in the running daemon
    Set {
        /// Such as `completion.max_tokens`, or `completion.languages.markdown`
        key: String,
        /// A number, `true`, `false`, a text, or JSON; the default again if left out
        #[arg(allow_hyphen_values = true)]
        value: Option<String>,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
}

/// The setting whose values are the names of manifests: the schema cannot tell them.
pub const MODEL_NAME: &str = "model.name";

pub async fn run(home: &Home, command: ConfigCommand) -> Result<()> {
    match command {
        ConfigCommand::Path => println!("{}", home.config_file().display()),
        ConfigCommand::Schema { json: _ } => {
            println!("{}", serde_json::to_string_pretty(&schema())?);
        }
        ConfigCommand::Get { key, json } => get(home, key.as_deref(), json)?,
        ConfigCommand::Set { key, value, json } => set(home, &key, value.as_deref(), json).await?,
    }
    Ok(())
}

fn get(home: &Home, key: Option<&str>, json: bool) -> Result<()> {
    let all = Config::load(&home.config_file())?.to_json()?;
    let value = match key {
        None => &all,
        Some(key) => {
            node(&schema(), key)
                .with_context(|| format!("{key}: no such setting; `hone config get` lists them"))?;
            value_of(&all, key)
        }
    };
    if json {
        println!("{}", serde_json::to_string_pretty(value)?);
    } else {
        print_below(key.unwrap_or_default(), value);
    }
    Ok(())
}

/// One line a setting, by the name that `hone config set` takes.
fn print_below(key: &str, value: &Value) {
    match value.as_object().filter(|table| !table.is_empty()) {
        None => println!("{key} = {value}"),
        Some(table) => {
            for (name, value) in table {
                let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                print_below(&key, value);
            }
        }
    }
}

/// Null for what is not set and has no default.
fn value_of<'a>(all: &'a Value, key: &str) -> &'a Value {
    key.split('.').fold(all, |table, name| &table[name])
}

async fn set(home: &Home, key: &str, text: Option<&str>, json: bool) -> Result<()> {
    let schema = schema();
    let known = node(&schema, key);
    let value = text.map(|text| read(known, text));
    let (config, running) = change(home, key, value.as_ref()).await?;
    let all = config.to_json()?;
    let restart = running && known.is_some_and(|known| known["x-restart"] == true);
    if json {
        println!("{}", json!({ "key": key, "value": value_of(&all, key), "restart": restart }));
        return Ok(());
    }
    let when = if known.is_some_and(|known| known["x-new-adapter"] == true) {
        " for the next adapter that starts from the base; one that is learned on from keeps its own"
    } else if restart {
        " from the daemon's next start on (`hone stop` ends it)"
    } else if running {
        " from now on"
    } else {
        ""
    };
    println!("{key} = {}{when}", value_of(&all, key));
    Ok(())
}

/// Changes the file, then tells the daemon; answers whether one runs.
pub async fn change(home: &Home, key: &str, value: Option<&Value>) -> Result<(Config, bool)> {
    home.create()?;
    if key == MODEL_NAME
        && let Some(name) = value.and_then(Value::as_str)
    {
        let catalogue = Catalogue::load(&home.models())?;
        catalogue.get(name).with_context(|| format!("{key}: not set"))?;
    }
    let config = config::set(&home.config_file(), key, value)?;
    let running = client::ask(home, Command::Configure).await?;
    Ok((config, running))
}

/// What the user typed, as the setting takes it: a text needs no quotes.
fn read(known: Option<&Value>, text: &str) -> Value {
    let is_text = known.is_some_and(|known| match &known["type"] {
        Value::Array(types) => types.contains(&json!("string")),
        only => only == "string",
    });
    if is_text {
        return text.into();
    }
    // What is no JSON is refused by the setting's type, which names it.
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}
