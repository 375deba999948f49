//! The report as a table for people.

use serde_json::Value;

/// One line for each number of the report. The numbers of a step are under its name.
pub fn of(report: &Value) -> String {
    let card = &report["card"];
    let mut lines = vec![match card["name"].as_str() {
        Some(name) => format!("{name}, driver {}, {} MiB", card["driver"], card["memory_mib"]),
        None => "no NVIDIA card".to_owned(),
    }];
    for (name, step) in report["steps"].as_object().into_iter().flatten() {
        lines.push(format!("{name}  ({:.0} s)", report["seconds"][name].as_f64().unwrap_or(0.0)));
        add(&mut lines, "", step);
    }
    lines.join("\n")
}

fn add(lines: &mut Vec<String>, path: &str, value: &Value) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path} {key}") };
    match value {
        Value::Object(object) => {
            object.iter().for_each(|(key, value)| add(lines, &below(key), value));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| add(lines, &below(&i.to_string()), item));
        }
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            let shown = match number {
                number if number.fract() == 0.0 => format!("{number:.0}"),
                number if number.abs() < 0.01 => format!("{number:.2e}"),
                number => format!("{number:.2}"),
            };
            lines.push(format!("    {path:<44} {shown}"));
        }
        Value::String(text) => lines.push(format!("    {path:<44} {text}")),
        other => lines.push(format!("    {path:<44} {other}")),
    }
}
