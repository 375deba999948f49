//! Reads the user's own file, and changes one key at a time. Everything else in the file stays
//! as the user wrote it.

use super::{Config, Problem, check, expected, names, node, schema};
use anyhow::{Context, Result, anyhow, bail};
use host::paths::{MAKE_WRITABLE, lock};
use models::file::{with_suffix, write_atomic};
use serde_json::Value as Json;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml_edit::{Array, DocumentMut, InlineTable, Item, TableLike, Value};

/// The longest wait for another process that changes a setting, which takes milliseconds.
const LOCK_LIMIT: Duration = Duration::from_secs(10);

/// Reads the file. A file that does not exist counts as empty.
pub fn read(path: &Path) -> Result<String, Problem> {
    std::fs::read_to_string(path).or_else(|error| match error.kind() {
        ErrorKind::NotFound => Ok(String::new()),
        ErrorKind::InvalidData => {
            Err(Problem::of_file("it is no text in UTF-8; write it anew, or remove it".into()))
        }
        _ => Err(Problem::of_file(format!("it cannot be read: {error}; make it readable"))),
    })
}

/// What a change has led to.
#[derive(Debug)]
pub struct Changed {
    /// The settings that the file has now.
    pub config: Config,
    /// The mistakes that the file had before and still has. It does not load until they are
    /// corrected.
    pub remaining: Vec<Problem>,
}

/// Sets one key, or with `None` gives it its default back.
///
/// # Errors
/// The value is wrong, or a line of the file cannot be read. Nothing is written then.
pub fn set(path: &Path, key: &str, value: Option<&Json>) -> Result<Changed> {
    // Another process that has read the file and not written it yet would take this change back.
    let lock = with_suffix(path, ".lock");
    let alone = lock::take(&lock, LOCK_LIMIT, lock::pause)?;
    let _alone = alone.with_context(|| {
        format!("{}: another process holds it; nothing was changed, try again", lock.display())
    })?;
    let before = read(path).map_err(|problem| anyhow!("{}", problem.at(path)))?;
    let (_, problems) = check::check(&before);
    // A setting that nobody knows can be taken out of the file, and not put into it.
    let is_taken_out = value.is_none() && problems.iter().any(|problem| problem.key == key);
    if !is_taken_out {
        check_settable(key)?;
    }
    // The table of a setting may be no table in the file.
    let holds = |problem: &Problem| key.starts_with(&format!("{}.", problem.key));
    let in_the_way = problems.iter().find(|problem| problem.key.is_empty() || holds(problem));
    if let Some(problem) = in_the_way {
        bail!("{}", problem.at(path));
    }
    let text = changed(&before, key, value)?;
    let (config, remaining) = check::check(&text);
    let is_own =
        |problem: &&Problem| problem.key == key || problem.key.starts_with(&format!("{key}."));
    if let Some(wrong) = remaining.iter().find(is_own) {
        bail!("{wrong}; nothing was changed");
    }
    let target = linked(path)?;
    write_atomic(&target, text.as_bytes())
        .with_context(|| format!("{}: cannot be written; {MAKE_WRITABLE}", target.display()))?;
    Ok(Changed { config, remaining })
}

/// The file itself, if the path is a link to it, as it is for those who keep their settings in a
/// repository. Writing to the link would put a file of its own in the link's place.
fn linked(path: &Path) -> Result<PathBuf> {
    if !path.is_symlink() {
        return Ok(path.to_owned());
    }
    path.canonicalize().with_context(|| {
        format!("{}: is a link to a file that is not there; remove the link", path.display())
    })
}

/// # Errors
/// There is no such setting, or it is a table of settings.
fn check_settable(key: &str) -> Result<()> {
    let schema = schema();
    let known = node(&schema, key).with_context(|| expected::unknown(key))?;
    if let Some(below) = known["properties"].as_object() {
        let name = below.keys().next().map_or("", String::as_str);
        bail!("{key}: is a table; name a setting in it, such as `{key}.{name}`");
    }
    Ok(())
}

/// The text with one key set or removed.
fn changed(text: &str, key: &str, value: Option<&Json>) -> Result<String> {
    let mut document: DocumentMut = text.parse()?;
    let names = names(key);
    let Some(value) = value else {
        remove(document.as_table_mut(), &names);
        return Ok(document.to_string());
    };
    let [tables @ .., name] = names.as_slice() else { bail!(expected::unknown(key)) };
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for part in tables {
        table = table
            .entry(part)
            .or_insert_with(toml_edit::table)
            .as_table_like_mut()
            .with_context(|| format!("{key}: `{part}` is no table"))?;
    }
    put(table, name, to_toml(value)?);
    Ok(document.to_string())
}

/// Removes a setting, if it is there.
fn remove(table: &mut dyn TableLike, names: &[&str]) {
    match names {
        [] => {}
        [name] => {
            table.remove(name);
        }
        [name, rest @ ..] => {
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

    /// Sets a key, and returns the settings that are there then.
    fn config(path: &Path, key: &str, value: Json) -> Config {
        set(path, key, Some(&value)).unwrap().config
    }

    #[test]
    fn setting_a_key_keeps_what_the_user_wrote() {
        let (_folder, path) = folder();
        assert!(!config(&path, "learning.enabled", json!(false)).learning.enabled);
        let mine = "# mine\n[lab]\nbatch_episodes = 3 # few\n";
        std::fs::write(&path, mine).unwrap();
        set(&path, "learning.enabled", Some(&json!(false))).unwrap();
        set(&path, "lab.batch_episodes", Some(&json!(4))).unwrap();
        set(&path, "completion.languages.c++", Some(&json!(false))).unwrap();
        let config = config(&path, "model.name", json!("smollm2-135m"));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(&mine.replace('3', "4")), "{text}");
        assert_eq!(Config::load(&path).unwrap(), config);
        assert_eq!((config.lab.batch_episodes, config.learning.enabled), (4, false));
        assert!(!config.completion.is_on("c++"));
        assert_eq!(config.model.name.as_deref(), Some("smollm2-135m"));
    }

    /// Each of them read the file, and the last to write took back what the others had set.
    #[test]
    fn changes_at_the_same_time_are_all_in_the_file() {
        let (_folder, path) = folder();
        let settings = ["lab.idle_exit_s", "completion.context_chars", "privacy.retention_days"];
        for round in 0..20 {
            let value = json!(2 + round);
            std::thread::scope(|threads| {
                for key in settings {
                    threads.spawn(|| set(&path, key, Some(&value)).unwrap());
                }
            });
            let config = Config::load(&path).unwrap().to_json().unwrap();
            for key in settings {
                let (table, name) = key.split_once('.').unwrap();
                assert_eq!(config[table][name], value, "{key}");
            }
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_link_to_the_file_stays_and_the_file_is_changed() {
        let (folder, path) = folder();
        let mine = folder.path().join("mine.toml");
        std::os::unix::fs::symlink(&mine, &path).unwrap();
        let error = set(&path, "learning.enabled", Some(&json!(false))).unwrap_err();
        assert!(error.to_string().contains("remove the link"), "{error:#}");
        std::fs::write(&mine, "# mine\n").unwrap();
        assert!(!config(&path, "learning.enabled", json!(false)).learning.enabled);
        assert!(path.is_symlink());
        assert!(std::fs::read_to_string(&mine).unwrap().contains("enabled = false"));
    }

    #[test]
    fn the_name_of_a_language_may_have_dots() {
        let (_folder, path) = folder();
        let key = "completion.languages.yaml.ansible";
        assert!(!config(&path, key, json!(false)).completion.languages["yaml.ansible"]);
        std::fs::write(&path, "[completion.languages]\n\"yaml.ansible\" = 1\n").unwrap();
        let changed = set(&path, "learning.enabled", Some(&json!(true))).unwrap();
        let [problem] = &changed.remaining[..] else { panic!("{:?}", changed.remaining) };
        assert_eq!((&*problem.key, problem.line), (key, Some(2)));
        let changed = set(&path, key, None).unwrap();
        assert!(changed.remaining.is_empty() && changed.config.completion.languages.is_empty());
    }

    #[test]
    fn a_key_without_a_value_goes_back_to_its_default() {
        let (_folder, path) = folder();
        std::fs::write(&path, "lab.max_tokens = 8\nlearning.enabled = false\n").unwrap();
        let config = set(&path, "lab.max_tokens", None).unwrap().config;
        assert_eq!((config.lab.max_tokens, config.learning.enabled), (32, false));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "learning.enabled = false\n");
    }

    #[test]
    fn a_table_written_on_one_line_stays_on_it() {
        let (_folder, path) = folder();
        std::fs::write(&path, "completion = { context_chars = 8 }\n").unwrap();
        set(&path, "completion.languages.rust", Some(&json!(false))).unwrap();
        let config = config(&path, "completion.context_chars", json!(7));
        assert!(config.completion.context_chars == Some(7) && !config.completion.is_on("rust"));
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
        for (key, value, told) in [
            (
                "lab.max_tokens",
                json!(0),
                "lab.max_tokens must be from 1 to 128, such as 32; it is 0; nothing was \
                 changed",
            ),
            (
                "lab.max_tokens",
                json!("many"),
                "lab.max_tokens must be a whole number from 1 to 128, such as 32; it is \
                 \"many\"; nothing was changed",
            ),
            (
                "completion.enabled",
                json!("on"),
                "completion.enabled must be true or false; it is \"on\"; nothing was changed",
            ),
            (
                "lab.max_token",
                json!(1),
                "lab.max_token: no such setting; `lab.max_tokens` may be meant; \
                 `hone config get` lists them",
            ),
        ] {
            assert_eq!(refused(key, value), told);
        }
        assert!(refused("privacy.ignore", json!(["a["])).contains("; it is \"a[\"; nothing"));
        assert!(refused("completion", json!(1)).contains("is a table"));
        assert!(refused("lab", json!(1)).contains("is a table"));
        assert!(refused("lab.ppo.epochs.x", json!(1)).contains("no such setting"));
    }

    #[test]
    fn a_line_that_cannot_be_read_is_left_alone_and_told() {
        let (_folder, path) = folder();
        for (text, line) in [("[learning]\nenabled = yes\n", 2), ("learning = 3\n", 1)] {
            std::fs::write(&path, text).unwrap();
            let error = set(&path, "learning.enabled", Some(&json!(false))).err().unwrap();
            let error = format!("{error:#}");
            assert!(error.contains(&format!("config.toml:{line}: ")), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    /// `hone config set` refused to touch a file that would not load. A value that one release
    /// had accepted and the next did not could only be corrected in an editor, and of two such
    /// values neither could be corrected by the command, because of the other.
    #[test]
    fn wrong_values_are_corrected_one_after_the_other() {
        let (_folder, path) = folder();
        let wrong = "lab.idle_exit_s = 0\nlab.max_tokens = 0\nmodel.nam = 1\n";
        std::fs::write(&path, wrong).unwrap();
        let changed = set(&path, "lab.max_tokens", Some(&json!(9))).unwrap();
        let remaining: Vec<_> = changed.remaining.iter().map(|one| (one.line, &*one.key)).collect();
        assert_eq!(remaining, [(Some(1), "lab.idle_exit_s"), (Some(3), "model.nam")]);
        let changed = set(&path, "lab.idle_exit_s", Some(&json!(60))).unwrap();
        let (config, remaining) = (changed.config, changed.remaining);
        assert_eq!((config.lab.idle_exit_s, config.lab.max_tokens), (60, 9));
        assert_eq!((remaining.len(), remaining[0].line), (1, Some(3)));
        assert_eq!(set(&path, "model.nam", None).unwrap().remaining, vec![]);
        assert!(Config::load(&path).is_ok());
        std::fs::write(&path, "lab.idle_exit_s = \"soon\"\n").unwrap();
        let changed = set(&path, "lab.idle_exit_s", None).unwrap();
        assert_eq!((changed.config.lab.idle_exit_s, changed.remaining), (600, vec![]));
    }
}
