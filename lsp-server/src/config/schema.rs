//! The settings as JSON Schema, and the check that goes by it.

use super::Config;
use anyhow::{Result, bail};
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// JSON Schema of [`Config`], every table in its place. `x-restart` marks what
/// a running daemon cannot take.
pub fn schema() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    shortest(settings.into_generator().into_root_schema_for::<Config>().to_value())
}

/// The part of a schema that tells about a key such as `completion.max_tokens`.
pub fn node<'a>(schema: &'a Value, key: &str) -> Option<&'a Value> {
    key.split('.').try_fold(schema, |table, name| {
        let named = table.get("properties").and_then(|properties| properties.get(name));
        // A table whose names are the user's: additionalProperties is a schema, not `false`.
        named.or_else(|| table.get("additionalProperties").filter(|any| any.is_object()))
    })
}

/// The first value that is out of its range, by name.
pub fn check(config: &Value) -> Result<()> {
    check_below("", &schema(), config)
}

fn check_below(key: &str, schema: &Value, value: &Value) -> Result<()> {
    if let Some(table) = value.as_object() {
        for (name, value) in table {
            if let Some(below) = node(schema, name) {
                let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                check_below(&key, below, value)?;
            }
        }
    }
    // What is neither a number nor infinite has no JSON: serde writes null for it.
    let is_no_number = value.is_null() && schema["type"] == "number";
    let number = if is_no_number { Some(f64::NAN) } else { value.as_f64() };
    let Some(number) = number else { return Ok(()) };
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let (least, most) = (bound("minimum"), bound("maximum"));
    let is_in_range =
        least.is_none_or(|least| number >= least) && most.is_none_or(|most| number <= most);
    if is_in_range && !is_no_number {
        return Ok(());
    }
    let range = match (least, most) {
        (Some(least), Some(most)) => format!("from {least} to {most}"),
        (Some(least), None) => format!("at least {least}"),
        (None, Some(most)) => format!("at most {most}"),
        (None, None) => "a number".to_owned(),
    };
    let example = schema.get("default").filter(|default| default.is_number());
    let example = example.map_or_else(String::new, |default| format!(", such as {default}"));
    bail!("{key} must be {range}{example}")
}

/// Fractions as they were written: `0.2`, which JSON's double makes of the
/// settings' single precision as 0.20000000298.
pub fn shortest(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let single = number.as_f64().unwrap_or_default() as f32;
            single.to_string().parse::<f64>().map_or(Value::Number(number), Value::from)
        }
        Value::Array(items) => items.into_iter().map(shortest).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, shortest(value))).collect()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_key_has_its_description_default_and_range() {
        let schema = schema();
        let tokens = node(&schema, "completion.max_tokens").unwrap();
        let described = "Tokens a line of a completion may have; all of its lines at most 128.";
        assert_eq!(tokens["description"], described);
        assert_eq!(tokens["default"], 32);
        assert_eq!((&tokens["minimum"], &tokens["maximum"]), (&json!(1), &json!(128)));
        assert_eq!(node(&schema, "learning.ppo.clip_low").unwrap()["default"], 0.2);
        assert_eq!(node(&schema, "model.threads").unwrap()["x-restart"], true);
        assert_eq!(node(&schema, "completion.languages.rust").unwrap()["type"], "boolean");
        assert_eq!(node(&schema, "completion.max_token"), None);
        let multiline = node(&schema, "completion.multiline").unwrap();
        assert_eq!(multiline["default"], "by_hand");
        assert_eq!(multiline["oneOf"][0]["const"], "never");
        assert_eq!(multiline["oneOf"][0]["description"], "Nowhere.");
    }

    /// An editor shows it beside the switch: no setting goes without a word.
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
