//! What a key costs: a cold prompt of 4,096 tokens, and keys behind a warm one that is nearly as
//! long, with answers of several lengths.

use crate::card::used_mib;
use crate::served::{Served, lines};
use crate::{Bench, quantile};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// The longest prompt of the daemon, and characters that fill it.
const SETTINGS: &str =
    "learning.enabled = false\nlab.prompt_tokens = 4096\nlab.prefix_chars = 40000\n";

/// Tokens of an answer. A line of code has about ten.
const ANSWERS: [usize; 3] = [1, 10, 32];

/// Cold prompts, each of another document.
const COLD: usize = 5;

/// Keys typed for each length of answers.
const KEYS: usize = 60;

/// Characters above the line that is typed: some 3,000 tokens. A prompt that is as long as it may
/// be loses a token at its beginning for each that is typed at its end, and nothing stays warm.
const WARM_CHARS: usize = 12_000;

pub fn measure(bench: &Bench, shape: &str) -> Result<Value> {
    let before = used_mib();
    let served = Served::start(bench, &bench.model(shape), SETTINGS, &[])?;
    let mut report = json!({
        "backend": served.backend()?,
        "ready_s": served.ready_s,
        "cold": cold(&served, bench.count(COLD))?,
        "vram_mib": used_mib().zip(before).map(|(now, before)| now.saturating_sub(before)),
    });
    for tokens in ANSWERS {
        report["warm"][tokens.to_string()] = warm(&served, tokens, bench.count(KEYS))?;
    }
    Ok(report)
}

/// A text of a whole prompt that no other document shares the beginning of.
fn text(document: usize) -> String {
    let lines = lines();
    let start = document * 37 % lines.len();
    let rotated = lines[start..].iter().chain(&lines[..start]);
    let lines: Vec<&str> = rotated.map(String::as_str).collect();
    format!("// document {document}\n{}\n", lines.join("\n"))
}

fn cold(served: &Served, count: usize) -> Result<Value> {
    served.hone(&["config", "set", "lab.max_tokens", "1"])?;
    let mut wall = vec![];
    let mut ask = |document: usize| -> Result<()> {
        let uri = format!("file:///cold{document}.rs");
        served.client.open(&uri, "rust", "")?;
        wall.push(served.ask(&uri, &format!("{}    let x", text(document)))?.0);
        Ok(())
    };
    // The first long prompt makes buffers, which all later ones use.
    (0..=count).try_for_each(&mut ask)?;
    let completions = served.completions()?;
    ensure!(completions.len() > count, "only {} completions are recorded", completions.len());
    let mut tokens = vec![];
    let mut prompt = vec![];
    for completion in &completions[completions.len() - count..] {
        let timing = &completion["timing"];
        tokens.extend(timing["prompt_evaluated"].as_f64());
        prompt.extend(timing["prompt_ms"].as_f64());
    }
    Ok(json!({
        "prompts": count,
        "tokens_computed": quantile(&tokens, 0.5),
        "first_ms": wall[0],
        "prompt_ms": quantile(&prompt, 0.5),
        "wall_p50_ms": quantile(&wall[1..], 0.5),
        "wall_max_ms": quantile(&wall[1..], 1.0),
    }))
}

/// Types `keys` keys behind a warm prompt. Every key goes to the model.
fn warm(served: &Served, tokens: usize, keys: usize) -> Result<Value> {
    served.hone(&["config", "set", "lab.max_tokens", &tokens.to_string()])?;
    let uri = format!("file:///warm{tokens}.rs");
    served.client.open(&uri, "rust", "")?;
    let above: String = text(100 + tokens).chars().take(WARM_CHARS).collect();
    let above = format!("{above}\n");
    let line: String = "let quantity = numbers.iter().filter(|number| number.is_even()).count(); "
        .chars()
        .cycle()
        .take(keys)
        .collect();
    served.ask(&uri, &format!("{above}    "))?;
    let recorded = served.completions()?.len();
    let mut wall = vec![];
    for end in 1..=keys {
        wall.push(served.ask(&uri, &format!("{above}    {}", &line[..end]))?.0);
    }
    let completions = served.completions()?;
    let (mut prompt, mut step, mut said, mut length) = (vec![], vec![], vec![], vec![]);
    for completion in &completions[recorded.min(completions.len())..] {
        let count = completion["logprobs"].as_array().map_or(0, Vec::len);
        said.push(count as f64);
        let timing = &completion["timing"];
        prompt.extend(timing["prompt_ms"].as_f64());
        let reused = timing["prompt_reused"].as_f64();
        length.extend(reused.zip(timing["prompt_evaluated"].as_f64()).map(|(a, b)| a + b));
        if let (true, Some(ms)) = (count > 1, timing["decode_ms"].as_f64()) {
            step.push(ms / (count - 1) as f64);
        }
    }
    let step = quantile(&step, 0.5);
    Ok(json!({
        "keys": keys,
        "computed": said.len(),
        "prompt_tokens": quantile(&length, 0.5),
        "tokens_p50": quantile(&said, 0.5),
        "p50_ms": quantile(&wall, 0.5),
        "p95_ms": quantile(&wall, 0.95),
        "first_token_ms": quantile(&prompt, 0.5),
        "decode_step_ms": step,
        "decode_tokens_per_s": step.map(|ms| 1000.0 / ms),
    }))
}
