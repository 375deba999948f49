//! What a candidate must pass before it may answer anybody: it still expects
//! ordinary code, and what this user wrote lately, about as well as before.

use crate::engine::worker::EngineHandle;
use crate::engine::{EngineError, ScorePrompt, ScoreRequest};
use crate::prompt::FimPrompt;
use crate::texts::Text;
use crate::trial::monitors::KL_LIMIT;
use feedback::event::AdapterVersion;

/// Mean loss of log-prob that is let pass, in nats a token: about what one
/// update of sixteen labels moves by chance.
const TOLERANCE: f64 = 0.25;

/// Fewer of the user's own texts say nothing.
const ENOUGH_TEXTS: usize = 8;

/// Code that everybody's model should be able to go on with: the lines above,
/// the line so far, the rest of it, the lines below.
const SUITE: &[[&str; 4]] = &[
    [
        "def mean(values):\n    total = 0\n    for value in values:\n",
        "        total",
        " += value",
        "\n    return total / len(values)\n",
    ],
    [
        "class Stack:\n    def __init__(self):\n        self.items = []\n\n    def push(self, item):\n",
        "        self",
        ".items.append(item)",
        "\n",
    ],
    [
        "fn largest(values: &[i32]) -> Option<i32> {\n    let mut largest = None;\n    for &value in values {\n        if largest.is_none_or(|known| value > known) {\n",
        "            largest",
        " = Some(value);",
        "\n        }\n    }\n    largest\n}\n",
    ],
    [
        "use std::collections::HashMap;\n\nfn count(words: &[&str]) -> HashMap<String, usize> {\n",
        "    let mut counts",
        " = HashMap::new();",
        "\n    for word in words {\n        *counts.entry(word.to_string()).or_insert(0) += 1;\n    }\n    counts\n}\n",
    ],
    [
        "function sum(values) {\n  let total = 0;\n",
        "  for (const value",
        " of values) {",
        "\n    total += value;\n  }\n  return total;\n}\n",
    ],
    [
        "export async function load(url: string): Promise<unknown> {\n",
        "  const response",
        " = await fetch(url);",
        "\n  return response.json();\n}\n",
    ],
    [
        "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfor i := 0; i < 10; i++ {\n",
        "\t\tfmt",
        ".Println(i)",
        "\n\t}\n}\n",
    ],
    [
        "#include <stdio.h>\n\nint main(void) {\n    int values[] = {1, 2, 3};\n    int total = 0;\n    for (int i = 0; i < 3; i++) {\n",
        "        total",
        " += values[i];",
        "\n    }\n    printf(\"%d\\n\", total);\n    return 0;\n}\n",
    ],
];

/// Why the candidate is not to be tried, if so. It and `before` are loaded.
pub async fn refusal(
    engine: &EngineHandle,
    candidate: AdapterVersion,
    before: AdapterVersion,
    kl_base: f32,
    own: Vec<Text>,
) -> Result<Option<String>, EngineError> {
    if kl_base > KL_LIMIT {
        return Ok(Some(format!(
            "it has gone {kl_base:.1} nats a token from the base; {KL_LIMIT} is the limit"
        )));
    }
    let ordinary = SUITE.iter().map(|[above, line, rest, below]| ScoreRequest {
        prompt: ScorePrompt::Fim(FimPrompt {
            context: None,
            prefix: (*above).into(),
            typed: String::new(),
            line: (*line).into(),
            healing: String::new(),
            suffix: (*below).into(),
        }),
        healing: String::new(),
        tokens: engine.tokenize(rest),
        adapters: vec![candidate, 0],
    });
    if let Some(loss) = loss(engine, ordinary.collect(), SUITE.len()).await? {
        return Ok(Some(format!(
            "it expects ordinary code less than the base does, by {loss:.2} nats a token"
        )));
    }
    let own = own.into_iter().map(|text| ScoreRequest {
        prompt: ScorePrompt::Tokens {
            prompt: text.place.prompt.clone(),
            adapter_from: text.place.adapter_from,
        },
        healing: text.place.healing.clone(),
        tokens: text.tokens,
        adapters: vec![candidate, before],
    });
    let loss = loss(engine, own.collect(), ENOUGH_TEXTS).await?;
    Ok(loss.map(|loss| {
        format!(
            "it expects what you wrote lately less than v{before} did, by {loss:.2} nats a token"
        )
    }))
}

/// Mean loss of the first adapter against the second, where it is beyond
/// [`TOLERANCE`] over at least `enough` texts.
async fn loss(
    engine: &EngineHandle,
    requests: Vec<ScoreRequest>,
    enough: usize,
) -> Result<Option<f64>, EngineError> {
    let (mut texts, mut tokens, mut loss) = (0, 0, 0.0);
    for request in requests {
        let count = request.tokens.len();
        match engine.score(request).await {
            Ok(scores) => {
                texts += 1;
                tokens += count;
                loss += f64::from(scores[1].logprob - scores[0].logprob);
            }
            // Too long, or none the policy could say: another text will do.
            Err(EngineError::Failed(_)) => {}
            Err(error) => return Err(error),
        }
    }
    let mean = loss / tokens.max(1) as f64;
    let passes = mean.is_finite() && mean <= TOLERANCE;
    Ok((texts >= enough && !passes).then_some(mean))
}
