//! The texts in which the results are printed.

use serde_json::Value;

/// The constants of `rehearsal: developer/person.rs`.
pub fn developer(measured: &Value) -> String {
    let fitted = &measured["developer"];
    let numbers = |list: &Value| -> Vec<f64> {
        list.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
    };
    let mut lines = vec![format!("{} offers, {} accepted", fitted["offers"], fitted["accepted"])];
    let named = [
        ("accept", ["nothing", "share", "all", "length"].as_slice()),
        ("look", ["ms", "length", "deviation"].as_slice()),
    ];
    for (key, names) in named {
        let cells = names.iter().zip(numbers(&fitted[key]));
        let cells: Vec<String> = cells.map(|(name, value)| format!("{name} {value:.3}")).collect();
        lines.push(format!("{key}: {}", cells.join(", ")));
    }
    for person in fitted["people"].as_array().into_iter().flatten() {
        let [inclined, slow, blind] = numbers(person)[..] else { continue };
        lines.push(format!("    person({inclined:.2}, {slow:.2}, {blind:.3}),"));
    }
    lines.join("\n")
}

/// A row's label and key, and whether it is a share.
const ROWS: [(&str, &str, bool); 7] = [
    ("AUC", "auc", false),
    ("Brier", "brier", false),
    ("Brier of the base rate", "brier_of_base_rate", false),
    ("accept rate, all shown", "accept_rate", true),
    ("accept rate, 45 % shown", "accept_rate_at_45", true),
    ("accepts kept", "accepts_kept_at_45", true),
    ("accepted characters kept", "accepted_characters_kept_at_45", true),
];

pub fn verdicts(measured: &Value) -> String {
    let views = ["served", "recorded"];
    let head = format!("{} offers, {} people", measured["recorded"]["offers"], measured["people"]);
    let mut lines = vec![format!("{head:<28}{:>12}{:>12}", views[0], views[1])];
    for (label, key, is_share) in ROWS {
        let cells = views.map(|view| match measured[view][key].as_f64().unwrap_or(f64::NAN) {
            share if is_share => format!("{:>10.1} %", 100.0 * share),
            number => format!("{number:>12.3}"),
        });
        lines.push(format!("{label:<28}{}", cells.concat()));
    }
    lines.push("calibration: predicted → accepted (offers)".into());
    let bins = |view: &str| measured[view]["calibration"].as_array().cloned().unwrap_or_default();
    let (served, recorded) = (bins("served"), bins("recorded"));
    for (index, recorded) in recorded.iter().enumerate() {
        let served = served.get(index).unwrap_or(&Value::Null);
        let cell = |bin: &Value| {
            let percent = |key: &str| 100.0 * bin[key].as_f64().unwrap_or(f64::NAN);
            let (predicted, accepted) = (percent("predicted"), percent("accepted"));
            format!("{predicted:.0} → {accepted:.0} % ({})", bin["offers"])
        };
        lines.push(format!("  {:<22}{:<22}", cell(served), cell(recorded)));
    }
    let weights = measured["weights"].as_array().into_iter().flatten();
    lines.extend(weights.map(|weight| {
        let number = |at: usize| weight[at].as_f64().unwrap_or(f64::NAN);
        let name = weight[0].as_str().unwrap_or_default();
        format!("    ({:.2}, {:.2}), // {name}", number(1), number(2))
    }));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_fitted_developer_becomes_constants() {
        let text = developer(&json!({ "developer": { "offers": 9, "accepted": 4,
            "accept": [-4.2, 5.8, 0.65, 1.2], "look": [3900.0, 0.08, 1.1],
            "people": [[0.28, 0.11, 0.148]] } }));
        assert!(text.contains("accept: nothing -4.200, share 5.800, all 0.650"), "{text}");
        assert!(text.ends_with("    person(0.28, 0.11, 0.148),"), "{text}");
    }

    #[test]
    fn a_report_becomes_a_table() {
        let view = json!({ "offers": 4, "auc": 0.75, "accepts_kept_at_45": 0.5,
            "calibration": [{ "offers": 4, "predicted": 0.3, "accepted": 0.25 }] });
        let text = verdicts(&json!({ "people": 2, "served": view, "recorded": view }));
        assert!(text.starts_with("4 offers, 2 people"), "{text}");
        assert!(text.contains("0.750") && text.contains("50.0 %"), "{text}");
        assert!(text.contains("30 → 25 % (4)"), "{text}");
    }
}
