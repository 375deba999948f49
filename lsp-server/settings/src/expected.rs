//! What a setting may be, in words, with an example: `a whole number from 1 to 128, such as 32`.

use super::{node, schema};
use feedback::schema::{bounds, field};
use serde_json::Value;

/// Examples of settings whose default is none, or shows nothing.
const EXAMPLES: [(&str, &str); 11] = [
    ("completion.context_chars", "3000"),
    ("completion.ignore", r#"["*.min.js", "~/notes/"]"#),
    ("completion.languages", "{ markdown = false }"),
    ("completion.next_edit_model", r#""sweep-next-edit-0.5b""#),
    ("model.gpu_layers", "24"),
    ("model.idle_unload_s", "600"),
    ("model.threads", "4"),
    ("model.name", r#""qwen2.5-coder-0.5b""#),
    ("privacy.ignore", r#"["*.sql", "~/clients/"]"#),
    ("team.address", r#""hone.example.org:9092""#),
    ("team.certificate", r#""ca.pem""#),
];

/// The most letters in which a misspelt name may differ from the right one: two, and at most a
/// third of them.
const MISSPELT: usize = 2;
const MISSPELT_SHARE: usize = 3;

/// That a setting's value is of a wrong kind, and what it may be.
pub fn wrong(key: &str) -> String {
    let schema = schema();
    let Some(known) = node(&schema, key) else { return unknown(key) };
    let kind = kind(known);
    match example(key, known).filter(|_| kind != BOOLEAN) {
        Some(example) => format!("{key} must be {kind}, such as {example}"),
        None => format!("{key} must be {kind}"),
    }
}

const BOOLEAN: &str = "true or false";

fn kind(known: &Value) -> String {
    if let Some(names) = names(known) {
        return format!("one of {names}");
    }
    let is = |name: &str| match &known["type"] {
        Value::Array(types) => types.iter().any(|one| one == name),
        one => one == name,
    };
    if is("object") {
        let settings = if known.get("properties").is_some() { " of settings" } else { "" };
        return format!("a table{settings}");
    }
    let kinds = [
        ("boolean", BOOLEAN),
        ("array", "a list of texts"),
        ("string", "a text in quotes"),
        ("integer", "a whole number"),
    ];
    let kind = kinds.into_iter().find(|(name, _)| is(name)).map_or("a number", |(_, kind)| kind);
    match bounds(known) {
        Some(bounds) => format!("{kind} {bounds}"),
        None => kind.to_owned(),
    }
}

/// The names of a setting that has one of a few.
fn names(known: &Value) -> Option<String> {
    let described = known["oneOf"].as_array().map(|all| all.iter().map(|one| &one["const"]));
    let names: Vec<String> = match described {
        Some(described) => described.map(Value::to_string).collect(),
        None => known["enum"].as_array()?.iter().map(Value::to_string).collect(),
    };
    let (last, others) = names.split_last()?;
    Some(if others.is_empty() { last.clone() } else { format!("{} and {last}", others.join(", ")) })
}

fn example(key: &str, known: &Value) -> Option<String> {
    let named = EXAMPLES.iter().find(|(name, _)| *name == key);
    if let Some((_, example)) = named {
        return Some((*example).to_owned());
    }
    if let Some(first) = known["properties"].as_object().and_then(|settings| settings.iter().next())
    {
        return Some(format!("`[{key}]` on a line and `{} = …` below it", first.0));
    }
    known.get("default").filter(|default| !default.is_null()).map(Value::to_string)
}

/// Returns whether settings may stand below this one.
pub fn is_table(known: &Value) -> bool {
    known.get("properties").is_some() || known["additionalProperties"].is_object()
}

/// That there is no such setting, and which one may be meant.
pub fn unknown(key: &str) -> String {
    let meant = match similar(key) {
        Some(name) => format!("; `{name}` may be meant"),
        None => String::new(),
    };
    format!("{key}: no such setting{meant}; `hone config get` lists them")
}

/// The setting whose name is nearest, if it is near.
fn similar(key: &str) -> Option<String> {
    let schema = schema();
    let (table, name) = key.rsplit_once('.').unwrap_or(("", key));
    let below = if table.is_empty() { Some(&schema) } else { node(&schema, table) }?;
    let names = below["properties"].as_object()?.keys();
    let near = names.map(|other| (distance(name, other), other));
    let (distance, nearest) = near.min()?;
    let full = if table.is_empty() { nearest.clone() } else { format!("{table}.{nearest}") };
    let is_near = distance <= MISSPELT && MISSPELT_SHARE * distance <= name.len() + 1;
    (is_near && field(below, nearest).is_some()).then_some(full)
}

/// The number of letters to insert, remove or replace, two neighbours swapped counting as two.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let replaced = corner + usize::from(letter != *other);
            corner = row[j + 1];
            row[j + 1] = replaced.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    /// The keys of all settings, and of the tables among them.
    fn keys(schema: &Value, key: &str, found: &mut Vec<String>) {
        for (name, below) in schema["properties"].as_object().into_iter().flatten() {
            let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
            keys(below, &key, found);
            found.push(key);
        }
    }

    /// An example that would be refused is worse than none.
    #[test]
    fn every_setting_has_an_example_that_is_right() {
        let (schema, mut found) = (schema(), vec![]);
        keys(&schema, "", &mut found);
        assert!(found.len() > 30);
        for key in found {
            let known = node(&schema, &key).unwrap();
            if known.get("properties").is_some() {
                continue;
            }
            let example = example(&key, known).unwrap_or_else(|| panic!("{key}: no example"));
            let text = format!("{key} = {example}\n");
            Config::parse(&text).unwrap_or_else(|error| panic!("{text}: {error:#}"));
        }
    }

    #[test]
    fn a_misspelt_name_is_recognised() {
        for (wrong, meant) in [
            ("completion.multiine", Some("completion.multiline")),
            ("lab.budget_sm", Some("lab.budget_ms")),
            ("lab.ppo.epohcs", Some("lab.ppo.epochs")),
            ("learnin", Some("learning")),
            ("completion.colour", None),
            ("colour.multiline", None),
            ("a", None),
            ("model.nam", Some("model.name")),
        ] {
            assert_eq!(similar(wrong).as_deref(), meant, "{wrong}");
        }
    }
}
