//! The ranges of numbers in a type's JSON Schema, and the check that goes by them.
//!
//! A range is written once, with its field (`#[schemars(range(…))]`). The settings, the
//! editors and the learner read it from there, so none can take what another refuses.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::Value;

#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// `range` says what the number may be, and names an example.
    #[error("{key} must be {range}")]
    OutOfRange { key: String, range: String },
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// The JSON Schema of a type, every table in its place.
pub fn schema_of<T: JsonSchema>() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    shortest(settings.into_generator().into_root_schema_for::<T>().to_value())
}

/// The part of a table's schema that describes one of its fields.
pub fn field<'a>(table: &'a Value, name: &str) -> Option<&'a Value> {
    let named = table.get("properties").and_then(|properties| properties.get(name));
    // A table whose names are the user's: additionalProperties is a schema, not `false`.
    named.or_else(|| table.get("additionalProperties").filter(|any| any.is_object()))
}

/// Checks every number of a value, tables in it included, against its range.
///
/// # Errors
/// Names the first number that is out of its range, and what it may be.
pub fn check<T: JsonSchema + Serialize>(value: &T) -> Result<(), SchemaError> {
    check_below("", &schema_of::<T>(), &serde_json::to_value(value)?)
}

fn check_below(key: &str, schema: &Value, value: &Value) -> Result<(), SchemaError> {
    if let Some(table) = value.as_object() {
        for (name, value) in table {
            if let Some(below) = field(schema, name) {
                let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                check_below(&key, below, value)?;
            }
        }
    }
    // What is neither a number nor infinite has no JSON: serde writes null for it.
    let is_no_number = value.is_null() && schema["type"] == "number";
    if is_no_number || value.as_f64().is_some_and(|number| !is_in_range(schema, number)) {
        return Err(SchemaError::OutOfRange { key: key.to_owned(), range: range(schema) });
    }
    Ok(())
}

fn is_in_range(schema: &Value, number: f64) -> bool {
    let holds = |bound: &str, holds: fn(f64, f64) -> bool| {
        schema.get(bound).and_then(Value::as_f64).is_none_or(|bound| holds(number, bound))
    };
    holds("minimum", |number, bound| number >= bound)
        && holds("exclusiveMinimum", |number, bound| number > bound)
        && holds("maximum", |number, bound| number <= bound)
        && holds("exclusiveMaximum", |number, bound| number < bound)
}

/// Returns what a number may be, for a person, with the default as an example.
fn range(schema: &Value) -> String {
    let range = bounds(schema).unwrap_or_else(|| "a number".into());
    match schema.get("default").filter(|default| default.is_number()) {
        Some(default) => format!("{range}, such as {default}"),
        None => range,
    }
}

/// The bounds of a number, for a person: `from 1 to 9`. `None` if it has none.
pub fn bounds(schema: &Value) -> Option<String> {
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    if let (Some(least), Some(most)) = (bound("minimum"), bound("maximum")) {
        return Some(format!("from {least} to {most}"));
    }
    let bounds = [
        ("at least", "minimum"),
        ("above", "exclusiveMinimum"),
        ("at most", "maximum"),
        ("below", "exclusiveMaximum"),
    ];
    let bounds = bounds.iter().filter_map(|(says, name)| Some(format!("{says} {}", bound(name)?)));
    let bounds: Vec<String> = bounds.collect();
    (!bounds.is_empty()).then(|| bounds.join(" and "))
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

    #[derive(Debug, Clone, Serialize, JsonSchema)]
    #[serde(default)]
    struct Numbers {
        #[schemars(range(min = 1, max = 9))]
        from_to: u32,
        #[schemars(range(min = 1))]
        at_least: u64,
        #[schemars(extend("exclusiveMinimum" = 0))]
        above: f32,
        #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
        below: f32,
        any: f32,
        none: Option<u32>,
    }

    impl Default for Numbers {
        fn default() -> Numbers {
            Numbers { from_to: 2, at_least: 3, above: 0.2, below: 0.5, any: 0.0, none: None }
        }
    }

    #[test]
    fn a_number_out_of_its_range_is_named_with_what_it_may_be() {
        let numbers = Numbers::default();
        assert!(check(&numbers).is_ok());
        let refused = |numbers: Numbers| check(&numbers).unwrap_err().to_string();
        let error = refused(Numbers { from_to: 10, ..numbers.clone() });
        assert_eq!(error, "from_to must be from 1 to 9, such as 2");
        let error = refused(Numbers { at_least: 0, ..numbers.clone() });
        assert_eq!(error, "at_least must be at least 1, such as 3");
        for above in [0.0, -1.0, f32::NAN] {
            let error = refused(Numbers { above, ..numbers.clone() });
            assert_eq!(error, "above must be above 0, such as 0.2");
        }
        for below in [1.0, -0.5, f32::INFINITY] {
            let error = refused(Numbers { below, ..numbers.clone() });
            assert_eq!(error, "below must be at least 0 and below 1, such as 0.5");
        }
        let error = refused(Numbers { any: f32::NAN, ..numbers });
        assert_eq!(error, "any must be a number, such as 0.0");
    }
}
