//! Reads the user's own file, and changes one key at a time. Everything else in the file stays
//! as the user wrote it.

use super::renamed::old_name;
use super::{Config, current_name, node, schema};
use anyhow::{Context, Result, bail, ensure};
use models::file::write_atomic;
use serde_json::Value as Json;
use std::io::ErrorKind;
use std::path::Path;
use toml_edit::{Array, DocumentMut, InlineTable, Item, TableLike, Value};

/// Reads the file. A file that does not exist counts as empty.
pub fn read(path: &Path) -> Result<String> {
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        read => read.with_context(|| path.display().to_string()),
    }
}

/// Sets one key, or with `None` gives it its default back. An old name stands for the new
/// one, and leaves the file. Nothing is written that would not load, so a mistake in the file
/// is left alone unless this corrects it.
pub fn set(path: &Path, key: &str, value: Option<&Json>) -> Result<Config> {
    let schema = schema();
    let key = &*current_name(key);
    let known = node(&schema, key).with_context(|| format!("{key}: {UNKNOWN}"))?;
    ensure!(known.get("properties").is_none(), "{key}: is a table; name a setting in it");
    let mut document: DocumentMut =
        read(path)?.parse().with_context(|| path.display().to_string())?;
    if let Some(old) = old_name(key) {
        remove(document.as_table_mut(), &old);
    }
    let (tables, name) = key.rsplit_once('.').with_context(|| format!("{key}: {UNKNOWN}"))?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for part in tables.split('.') {
        table = table
            .entry(part)
            .or_insert_with(toml_edit::table)
            .as_table_like_mut()
            .with_context(|| format!("{key}: `{part}` is no table"))?;
    }
    match value {
        None => {
            table.remove(name);
        }
        Some(value) => put(table, name, to_toml(value)?),
    }
    let text = document.to_string();
    let config = match Config::parse(&text) {
        Ok(config) => config,
        Err(error) => {
            // If the file had a mistake before, that is the one to tell.
            Config::load(path)?;
            return Err(error.context(format!("{key}: not set")));
        }
    };
    write_atomic(path, text.as_bytes())
        .with_context(|| format!("{}: cannot be written", path.display()))?;
    Ok(config)
}

const UNKNOWN: &str = "no such setting; `hone config get` lists them";

/// Removes a key, if it is there.
fn remove(table: &mut dyn TableLike, key: &str) {
    match key.split_once('.') {
        None => {
            table.remove(key);
        }
        Some((name, rest)) => {
            if let Some(below) = table.get_mut(name).and_then(Item::as_table_like_mut) {
                remove(below, rest);
            }
        }
    }
}

/// Replaces a value where it stands, and keeps the comment behind it.
fn put(table: &mut dyn TableLike, name: &str, mut value: Value) {
    match table.get_mut(name).and_then(Item::as_value_mut) {
        Some(old) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        None => {
            table.insert(name, Item::Value(value));
        }
    }
}

fn to_toml(value: &Json) -> Result<Value> {
    Ok(match value {
        Json::Bool(value) => (*value).into(),
        Json::String(text) => text.as_str().into(),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            (None, Some(fraction)) => fraction.into(),
            (None, None) => bail!("{number}: too large a number"),
        },
        Json::Array(items) => Value::Array(items.iter().map(to_toml).collect::<Result<Array>>()?),
        Json::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| Ok((name, to_toml(value)?)));
            Value::InlineTable(fields.collect::<Result<InlineTable>>()?)
        }
        Json::Null => bail!("null: to give a setting its default back, leave the value out"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn folder() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        (folder, path)
    }

    #[test]
    fn setting_a_key_keeps_what_the_user_wrote() {
        let (_folder, path) = folder();
        assert!(!set(&path, "learning.enabled", Some(&json!(false))).unwrap().learning.enabled);
        let mine = "# mine\n[learning]\nbatch_episodes = 3 # few\n";
        std::fs::write(&path, mine).unwrap();
        set(&path, "learning.enabled", Some(&json!(false))).unwrap();
        set(&path, "learning.batch_episodes", Some(&json!(4))).unwrap();
        set(&path, "completion.languages.c++", Some(&json!(false))).unwrap();
        let config = set(&path, "model.name", Some(&json!("smollm2-135m"))).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(&mine.replace('3', "4")), "{text}");
        assert_eq!(Config::load(&path).unwrap(), config);
        assert_eq!((config.learning.batch_episodes, config.learning.enabled), (4, false));
        assert!(!config.completion.is_on("c++"));
        assert_eq!(config.model.name.as_deref(), Some("smollm2-135m"));
    }

    #[test]
    fn a_key_without_a_value_goes_back_to_its_default() {
        let (_folder, path) = folder();
        std::fs::write(&path, "completion.max_tokens = 8\nlearning.enabled = false\n").unwrap();
        let config = set(&path, "completion.max_tokens", None).unwrap();
        assert_eq!((config.completion.max_tokens, config.learning.enabled), (32, false));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "learning.enabled = false\n");
    }

    #[test]
    fn a_table_written_on_one_line_stays_on_it() {
        let (_folder, path) = folder();
        std::fs::write(&path, "completion = { max_tokens = 8 }\n").unwrap();
        set(&path, "completion.languages.rust", Some(&json!(false))).unwrap();
        let config = set(&path, "completion.max_tokens", Some(&json!(9))).unwrap();
        assert!(config.completion.max_tokens == 9 && !config.completion.is_on("rust"));
        assert!(std::fs::read_to_string(&path).unwrap().starts_with("completion = {"));
    }

    #[test]
    fn what_would_not_load_is_not_written() {
        let (_folder, path) = folder();
        let refused = |key: &str, value: Json| {
            let error = format!("{:#}", set(&path, key, Some(&value)).unwrap_err());
            assert!(!path.exists(), "{key}");
            error
        };
        let error = refused("completion.max_tokens", json!(0));
        assert_eq!(
            error,
            "completion.max_tokens: not set: completion.max_tokens must be from 1 to 128, \
             such as 32"
        );
        assert!(refused("completion.max_tokens", json!("many")).contains("invalid type"));
        assert!(refused("completion.max_token", json!(1)).contains("no such setting"));
        assert!(refused("completion", json!(1)).contains("is a table"));
        assert!(refused("lab", json!(1)).contains("is a table"));
        assert!(refused("lab.ppo.epochs.x", json!(1)).contains("no such setting"));
    }

    #[test]
    fn an_old_name_is_set_under_the_new_one_and_leaves_the_file() {
        let (_folder, path) = folder();
        let before = "[learning.ppo]\nepochs = 3\nclip_low = 0.1\n";
        for key in ["learning.ppo.epochs", "lab.ppo.epochs"] {
            std::fs::write(&path, before).unwrap();
            let config = set(&path, key, Some(&json!(5))).unwrap();
            assert_eq!((config.lab.ppo.epochs, config.lab.ppo.clip_low), (5, 0.1));
            assert_eq!(Config::load(&path).unwrap(), config);
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.contains("[lab.ppo]\nepochs = 5") && !text.contains('3'), "{text}");
            let config = set(&path, key, None).unwrap();
            assert_eq!((config.lab.ppo.epochs, config.lab.ppo.clip_low), (2, 0.1));
            std::fs::write(&path, before).unwrap();
            assert_eq!(set(&path, key, None).unwrap().lab.ppo.epochs, 2, "its default");
        }
    }

    #[test]
    fn a_file_with_a_mistake_in_it_is_not_written_over() {
        let (_folder, path) = folder();
        std::fs::write(&path, "[learning]\nenabld = true\n").unwrap();
        let error =
            format!("{:#}", set(&path, "learning.enabled", Some(&json!(false))).unwrap_err());
        assert!(error.contains("config.toml") && error.contains("`enabld`"), "{error}");
        assert!(std::fs::read_to_string(&path).unwrap().contains("enabld"));
    }

    /// `hone config set` refused to touch a file that would not load, so a value that one
    /// release had accepted and the next did not could only be corrected in an editor.
    #[test]
    fn setting_the_key_that_is_wrong_corrects_the_file() {
        let (_folder, path) = folder();
        std::fs::write(&path, "daemon.idle_exit_s = 0\ncompletion.max_tokens = 8\n").unwrap();
        let error = set(&path, "completion.max_tokens", Some(&json!(9))).unwrap_err();
        assert!(format!("{error:#}").contains("daemon.idle_exit_s must be"), "{error:#}");
        let config = set(&path, "daemon.idle_exit_s", Some(&json!(60))).unwrap();
        assert_eq!((config.daemon.idle_exit_s, config.completion.max_tokens), (60, 8));
        std::fs::write(&path, "daemon.idle_exit_s = \"soon\"\n").unwrap();
        assert_eq!(set(&path, "daemon.idle_exit_s", None).unwrap().daemon.idle_exit_s, 600);
    }
}
