//! The table in which the result is printed.

use serde_json::Value;

/// Returns a row for each figure, and what is wrong.
pub fn table(measured: &Value) -> String {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let mut lines = vec![
        format!(
            "{} offers, {} accepts; {} accepts of edits and {} of alternatives are left out",
            measured["offers"],
            measured["accepts"],
            measured["of_edits"],
            measured["of_alternatives"]
        ),
        format!("{:<34}{:>16}{:>16}", "", "document alone", "with reports"),
    ];
    let views = [&measured["document"], &measured["reports"]];
    let mut row = |name: &str, cell: &dyn Fn(&Value) -> String| {
        let [document, reports] = views.map(cell);
        lines.push(format!("{name:<34}{document:>16}{reports:>16}"));
    };
    row("accepts labelled right", &|view| {
        let share = 100.0 * view["share"].as_f64().unwrap_or(f64::NAN);
        format!("{} ({share:.0} %)", number(&view["right"]))
    });
    row("of parts", &|view| format!("{} of {}", view["parts_right"], view["parts"]));
    let listed = |view: &Value, name: &str| view[name].as_array().map_or(0, Vec::len).to_string();
    row("accepts invented", &|view| listed(view, "invented"));
    row("undone at once, and known", &|view| {
        format!("{} of {}", view["undone_right"], view["undone"])
    });
    row("undone, by the labels alone", &|view| view["undone_invented"].to_string());
    for (name, key) in [("wrong", "wrong"), ("invented", "invented")] {
        for (place, view) in ["document alone", "with reports"].iter().zip(views) {
            let entries = view[key].as_array().into_iter().flatten();
            let entries: Vec<String> = entries
                .map(|one| format!("{} {}", one[0], one[1].as_str().unwrap_or_default()))
                .collect();
            if !entries.is_empty() {
                lines.push(format!("{name}, {place}: entry {}", entries.join(", ")));
            }
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_report_becomes_a_table() {
        let view = json!({ "right": 9, "share": 0.9, "parts": 3, "parts_right": 2, "undone": 1,
            "undone_right": 1, "undone_invented": 0, "wrong": [[7, "unseen"]], "invented": [] });
        let text = table(&json!({ "offers": 40, "accepts": 10, "of_edits": 2,
            "of_alternatives": 1, "document": view, "reports": view }));
        assert!(text.contains("9 (90 %)") && text.contains("2 of 3"), "{text}");
        assert!(text.contains("wrong, with reports: entry 7 unseen"), "{text}");
    }
}
