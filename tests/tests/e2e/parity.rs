//! Two implementations, the server's and the learner's, compute the same log-probabilities for
//! the same model file, tokens and adapter.
//!
//! Both round activations to 8 bits in their products with quantised matrices, and add up in
//! another order. So the log-probabilities differ a little. The bounds are twice the measured
//! differences (docs/lab/learning-results.md) and far inside PPO's clip range. The
//! distribution is printed.

use feedback::job::UpdateReport;
use tests::buffer::Buffer;
use tests::{Home, Model, PATIENT, learn};

/// Places of different kinds: the start of a line, after a dot, inside a word, in a call.
const PLACES: &[&str] = &[
    "fn main() {\n    let args: Vec<String> = std::env::args().collect();\n    |\n}\n",
    "fn sum(values: &[i64]) -> i64 {\n    values.|\n}\n",
    "use std::collections::HashMap;\n\n\
     fn count(words: &[&str]) -> HashMap<String, usize> {\n    let mut coun|\n}\n",
    "fn read(path: &str) -> std::io::Result<String> {\n    std::fs::read_to_string(|\n}\n",
    "#[derive(Debug, Clone)]\nstruct Point {\n    x: f64,\n    |\n}\n",
    "impl Iterator for Counter {\n    type Item = u32;\n    \
         fn next(&mut self) -> Option<Self::Item> {\n        \
             self.count += 1;\n        |\n    }\n}\n",
];

/// Collects a label at every place and learns from them.
fn round(home: &Home, round: usize) -> UpdateReport {
    let editor = home.editor();
    for (i, place) in PLACES.iter().enumerate() {
        let mut buffer = Buffer::open(&editor, &format!("{round}_{i}.rs"), place);
        if let Some(offer) = buffer.complete() {
            editor.did_show(&offer).expect("didShowCompletion is sent");
            buffer.accept(&offer);
        }
    }
    learn(&editor);
    let registry = home.registry();
    let newest = registry["adapters"].as_array().and_then(|all| all.last()).cloned();
    let report = newest.expect("an adapter was registered")["report"].take();
    serde_json::from_value(report).expect("a report")
}

fn check(model: Model, mean_bound: f32, p95_bound: f32) {
    let home = Home::with(model, PATIENT);
    for parent in ["base", "adapter v1"] {
        let report = round(&home, usize::from(parent != "base"));
        let (mismatch, ratio) = (report.mismatch, report.ratio_before);
        println!(
            "{} served by its {parent}: |Δ log-prob| {mismatch:?}, ratio {ratio:?}",
            model.name()
        );
        assert!(mismatch.count >= 20, "too few tokens to judge: {mismatch:?}");
        assert!(mismatch.mean <= mean_bound, "{parent}: {mismatch:?}");
        assert!(mismatch.p95 <= p95_bound, "{parent}: {mismatch:?}");
        // Before the first step, the learner's policy is the one that served.
        assert!((ratio.p50 - 1.0).abs() <= mean_bound, "{parent}: {ratio:?}");
        assert!((ratio.mean - 1.0).abs() <= mean_bound, "{parent}: {ratio:?}");
    }
}

#[test]
fn the_learner_agrees_with_the_server_on_qwen() {
    check(Model::Qwen, 0.015, 0.07);
}

#[test]
fn the_learner_agrees_with_the_server_on_smollm() {
    check(Model::Smol, 0.075, 0.2);
}
