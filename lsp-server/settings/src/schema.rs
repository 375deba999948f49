//! The settings as JSON Schema.

use super::{Config, LAB};
use feedback::schema::{field, schema_of};
use serde_json::Value;

/// JSON Schema of [`Config`]. `x-restart` marks what a running daemon cannot take,
/// `x-new-adapter` what an adapter that has learned already cannot.
pub fn schema() -> Value {
    schema_of::<Config>()
}

/// [`schema`] without the table `[lab]`: what editors and `hone config` show.
pub fn schema_for_users() -> Value {
    let mut schema = schema();
    if let Some(tables) = schema["properties"].as_object_mut() {
        tables.remove(LAB);
    }
    schema
}

/// The tables whose names are those of languages, which may contain dots, such as Neovim's
/// `yaml.ansible`.
const BY_LANGUAGE: [&str; 3] =
    ["completion.eagerness_for.", "completion.languages.", "completion.next_edit_for."];

/// The names of a key such as `completion.multiline`: its tables, and the setting.
pub fn names(key: &str) -> Vec<&str> {
    for table in BY_LANGUAGE {
        if let Some(language) = key.strip_prefix(table) {
            return table.split_terminator('.').chain([language]).collect();
        }
    }
    key.split('.').collect()
}

/// The part of a schema that describes a key such as `completion.multiline`.
pub fn node<'a>(schema: &'a Value, key: &str) -> Option<&'a Value> {
    names(key).into_iter().try_fold(schema, field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_key_has_its_description_default_and_range() {
        let schema = schema();
        let tokens = node(&schema, "lab.max_tokens").unwrap();
        let described = tokens["description"].as_str().unwrap();
        assert!(described.starts_with("The most tokens that a line"), "{described}");
        assert_eq!(tokens["default"], 32);
        assert_eq!((&tokens["minimum"], &tokens["maximum"]), (&json!(1), &json!(128)));
        assert_eq!(node(&schema, "lab.ppo.clip_low").unwrap()["default"], 0.2);
        assert_eq!(node(&schema, "model.threads").unwrap()["x-restart"], true);
        assert_eq!(node(&schema, "completion.languages.rust").unwrap()["type"], "boolean");
        assert_eq!(node(&schema, "lab.max_token"), None);
        let multiline = node(&schema, "completion.multiline").unwrap();
        assert_eq!(multiline["default"], "invoked");
        assert_eq!(multiline["oneOf"][0]["const"], "never");
        assert_eq!(multiline["oneOf"][0]["description"], "Never.");
    }

    /// The names of every other table are ours, and have no dots.
    #[test]
    fn only_names_of_languages_may_have_dots() {
        fn open_tables(schema: &Value, key: &str) -> Vec<String> {
            let below = schema["properties"].as_object().into_iter().flatten();
            let below = below.flat_map(|(name, one)| open_tables(one, &format!("{key}{name}.")));
            let is_open = schema["additionalProperties"].is_object();
            is_open.then(|| key.to_owned()).into_iter().chain(below).collect()
        }
        assert_eq!(open_tables(&schema(), ""), BY_LANGUAGE);
        assert_eq!(names("completion.languages.yaml.ansible").last(), Some(&"yaml.ansible"));
        assert_eq!(names("lab.ppo.clip_low"), ["lab", "ppo", "clip_low"]);
    }

    #[test]
    fn users_are_not_shown_what_only_experiments_change() {
        let (all, shown) = (schema(), schema_for_users());
        assert_eq!(node(&shown, "lab"), None);
        assert_eq!(node(&shown, "learning.ppo"), None);
        let tables = |schema: &Value| schema["properties"].as_object().unwrap().len();
        assert_eq!(tables(&shown) + 1, tables(&all));
        for kept in ["completion.context_chars", "learning.on_battery", "team.noise"] {
            assert_eq!(node(&shown, kept), node(&all, kept));
        }
    }

    /// An editor shows the description next to each setting, so each one has one.
    #[test]
    fn every_setting_is_described() {
        fn undescribed(schema: &Value, key: &str) -> Vec<String> {
            let Some(below) = schema["properties"].as_object() else {
                let described = schema["description"].is_string();
                return if described { vec![] } else { vec![key.to_owned()] };
            };
            let keys = below.iter().map(|(name, schema)| (format!("{key}.{name}"), schema));
            keys.flat_map(|(key, schema)| undescribed(schema, &key)).collect()
        }
        assert_eq!(undescribed(&schema(), ""), Vec::<String>::new());
    }
}
