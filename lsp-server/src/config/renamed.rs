//! Settings that had another name before. An old name stands for the new one, in the file, in
//! `hone config`, in a rehearsal's arms and in VS Code's settings, which know the old names from
//! the schema. Where a file has both, the new name counts.

use serde_json::{Value, json};
use std::borrow::Cow;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Where the schema of a setting or of a table has its old names.
const OLD_NAMES: &str = "x-old-names";

/// Old names and new ones. A name may be that of a table, and stands for all in it.
const RENAMED: [(&str, &str); 9] = [
    ("completion.follow_rhythm", "completion.adaptive_debounce"),
    ("completion.line_behind_middle", "lab.line_behind_middle"),
    ("completion.prefix_chars", "lab.prefix_chars"),
    ("completion.suffix_chars", "lab.suffix_chars"),
    ("completion.temperature", "lab.temperature"),
    ("completion.token_healing", "lab.token_healing"),
    ("gate.threshold", "lab.gate_threshold"),
    ("learning.ppo", "lab.ppo"),
    ("learning.replay_episodes", "lab.replay_episodes"),
];

/// The name that a setting has today: the given one, unless that is an old name.
pub fn current_name(key: &str) -> Cow<'_, str> {
    let renamed = RENAMED.iter().find_map(|(old, new)| replace(key, old, new));
    renamed.map_or(Cow::Borrowed(key), Cow::Owned)
}

/// The name that a setting had before, if it had another.
pub fn old_name(key: &str) -> Option<String> {
    RENAMED.iter().find_map(|(old, new)| replace(key, new, old))
}

/// Writes into the schema which old names its settings and tables have.
pub fn add_old_names(schema: &mut Value) {
    for (old, new) in RENAMED {
        let setting = new.split('.').try_fold(&mut *schema, |table, name| {
            table.get_mut("properties").and_then(|properties| properties.get_mut(name))
        });
        if let Some(Value::Object(setting)) = setting
            && let Value::Array(names) = setting.entry(OLD_NAMES).or_insert_with(|| json!([]))
        {
            names.push(old.into());
        }
    }
}

/// `key` with the name `from` at its beginning replaced by `to`.
fn replace(key: &str, from: &str, to: &str) -> Option<String> {
    let rest = key.strip_prefix(from)?;
    (rest.is_empty() || rest.starts_with('.')).then(|| format!("{to}{rest}"))
}

/// Gives every setting of a file its name of today, and answers which old names the file has.
/// Values stay where they are in the text, so errors name their lines.
pub fn rename(file: &mut DeTable) -> Vec<&'static str> {
    let mut found = vec![];
    for (old, new) in RENAMED {
        if let Some((key, value)) = take(file, old) {
            found.push(old);
            put(file, new, key.span(), value);
        }
    }
    found
}

/// A key as it stands in the text, and its value.
type Entry<'i> = (Spanned<Cow<'i, str>>, Spanned<DeValue<'i>>);

fn take<'i>(table: &mut DeTable<'i>, key: &str) -> Option<Entry<'i>> {
    match key.split_once('.') {
        None => table.remove_entry(key),
        Some((name, rest)) => match table.get_mut(name)?.get_mut() {
            DeValue::Table(below) => take(below, rest),
            _ => None,
        },
    }
}

/// Sets what is not set yet. Two tables become one, in which the values there are count.
fn put<'i>(table: &mut DeTable<'i>, key: &str, span: Range<usize>, value: Spanned<DeValue<'i>>) {
    let (name, rest) = key.split_once('.').unwrap_or((key, ""));
    let spanned = Spanned::new(span.clone(), Cow::Owned(name.to_owned()));
    if rest.is_empty() {
        let Some(there) = table.get_mut(name) else {
            table.insert(spanned, value);
            return;
        };
        if let (DeValue::Table(there), DeValue::Table(more)) = (there.get_mut(), value.into_inner())
        {
            for (name, value) in more {
                put(there, name.get_ref(), name.span(), value);
            }
        }
        return;
    }
    let new = || Spanned::new(span.clone(), DeValue::Table(DeTable::new()));
    // A value that is no table is a mistake, and is told where the settings are read.
    if let DeValue::Table(below) = table.entry(spanned).or_insert_with(new).get_mut() {
        put(below, rest, span, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::check::check;
    use crate::config::{Config, node, schema};

    fn parse(text: &str) -> Config {
        Config::parse(text).unwrap_or_else(|error| panic!("{text}: {error:#}"))
    }

    fn error(text: &str) -> String {
        format!("{:#}", Config::parse(text).unwrap_err())
    }

    #[test]
    fn an_old_name_is_read_as_the_new_one() {
        for (old, new) in [
            ("completion.follow_rhythm = false", "completion.adaptive_debounce = false"),
            ("completion.temperature = 0.5", "lab.temperature = 0.5"),
            ("[completion]\nprefix_chars = 7", "lab.prefix_chars = 7"),
            ("completion = { suffix_chars = 7 }", "[lab]\nsuffix_chars = 7"),
            ("completion.token_healing = false", "lab.token_healing = false"),
            ("completion.line_behind_middle = false", "lab.line_behind_middle = false"),
            ("gate.threshold = 0.5", "lab.gate_threshold = 0.5"),
            ("learning.replay_episodes = 3", "lab.replay_episodes = 3"),
            ("learning.ppo.learning_rate = 3e-4", "lab.ppo.learning_rate = 3e-4"),
            ("[learning.ppo]\nadvantage = \"group\"", "[lab.ppo]\nadvantage = \"group\""),
            (
                "learning.ppo = { epochs = 3 }\n[lab]\nprefix_chars = 7",
                "[lab]\nprefix_chars = 7\nppo = { epochs = 3 }",
            ),
        ] {
            let config = parse(old);
            assert_eq!(config, parse(new), "{old}");
            assert_ne!(config, Config::default(), "{old}");
        }
    }

    #[test]
    fn every_old_name_stands_for_a_setting_that_exists() {
        let schema = schema();
        for (old, new) in RENAMED {
            assert!(node(&schema, new).is_some(), "{new}");
            assert!(node(&schema, old).is_none(), "{old}");
            assert_eq!((current_name(old), old_name(new).as_deref()), (new.into(), Some(old)));
        }
        assert_eq!(current_name("learning.ppo.epochs"), "lab.ppo.epochs");
        assert_eq!(old_name("lab.ppo.epochs").as_deref(), Some("learning.ppo.epochs"));
        assert_eq!(current_name("learning.ppolo"), "learning.ppolo");
        assert_eq!(old_name("learning.enabled"), None);
    }

    /// Whoever asks under an old name, such as an editor that has kept it, finds the new one there.
    #[test]
    fn the_schema_has_every_old_name_at_the_new_one() {
        let schema = schema();
        for (old, new) in RENAMED {
            let old_names = node(&schema, new).unwrap()[OLD_NAMES].as_array().unwrap();
            assert!(old_names.contains(&json!(old)), "{new} was {old}");
        }
        let listed = schema.to_string().matches(OLD_NAMES).count();
        assert_eq!(listed, RENAMED.len(), "nothing else has an old name");
    }

    #[test]
    fn where_a_file_has_both_names_the_new_one_counts() {
        let config = parse("completion.temperature = 0.5\nlab.temperature = 0.25\n");
        assert_eq!(config.lab.temperature, 0.25);
        let both = "[learning.ppo]\nepochs = 3\nclip_low = 0.1\n[lab.ppo]\nepochs = 4\n";
        let ppo = parse(both).lab.ppo;
        assert_eq!((ppo.epochs, ppo.clip_low), (4, 0.1));
    }

    #[test]
    fn a_mistake_under_an_old_name_is_told_with_its_line() {
        let line = |text: &str, line: usize, key: &str| {
            let (_, problems) = check(text);
            assert_eq!((problems[0].line, &*problems[0].key), (Some(line), key), "{text}");
            problems[0].to_string()
        };
        let typo = "[learning]\nenabled = true\n[learning.ppo]\nepohcs = 3\n";
        line(typo, 4, "lab.ppo.epohcs");
        let told = line("# mine\ncompletion.temperature = \"warm\"\n", 2, "lab.temperature");
        assert!(told.contains("(its old name is completion.temperature)"), "{told}");
        line("learning.ppo = 3\n", 1, "lab.ppo");
        line("lab = 3\ncompletion.temperature = 0.5\n", 1, "lab");
    }

    /// The name in the file is the one that the user looks for.
    #[test]
    fn a_value_out_of_range_is_told_under_both_names() {
        assert_eq!(
            error("learning.ppo.epochs = 0\n"),
            "lab.ppo.epochs must be at least 1, such as 2 (its old name is \
             learning.ppo.epochs); it is 0"
        );
        assert_eq!(
            error("lab.temperature = 2.5\n"),
            "lab.temperature must be from 0 to 2, such as 0.0; it is 2.5"
        );
    }
}
