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

/// Code that everybody's model goes on with in one way: the lines above, the line so
/// far, the rest of it, the lines below. A line that could go on otherwise would
/// count what an adapter learned against it.
const SUITE: &[[&str; 4]] = &[
    [
        "class Point:\n    def __init__(self, x, y):\n        self.x = x\n",
        "        self.y",
        " = y",
        "\n",
    ],
    [
        "def average(numbers):\n    total = 0\n    for number in numbers:\n        total += number\n",
        "    return total",
        " / len(numbers)",
        "\n",
    ],
    [
        "def read_lines(path):\n",
        "    with open(path)",
        " as file:",
        "\n        return file.readlines()\n",
    ],
    [
        "def fibonacci(n):\n    if n < 2:\n        return n\n",
        "    return fibonacci(n - 1)",
        " + fibonacci(n - 2)",
        "\n",
    ],
    [
        "struct Rectangle {\n    width: u32,\n    height: u32,\n}\n\nimpl Rectangle {\n    fn area(&self) -> u32 {\n",
        "        self.width",
        " * self.height",
        "\n    }\n}\n",
    ],
    [
        "struct Counter {\n    count: u32,\n}\n\nimpl Counter {\n    fn new() -> Self {\n",
        "        Counter {",
        " count: 0 }",
        "\n    }\n}\n",
    ],
    [
        "use std::fs::File;\nuse std::io::Read;\n\nfn read(path: &str) -> std::io::Result<String> {\n    let mut file = File::open(path)?;\n    let mut contents = String::new();\n",
        "    file.read_to_string",
        "(&mut contents)?;",
        "\n    Ok(contents)\n}\n",
    ],
    [
        "enum Shape {\n    Circle(f64),\n    Square(f64),\n}\n\nfn area(shape: &Shape) -> f64 {\n    match shape {\n        Shape::Circle(radius) => 3.14 * radius * radius,\n",
        "        Shape::Square(side)",
        " => side * side,",
        "\n    }\n}\n",
    ],
    [
        "function sum(values) {\n  let total = 0;\n  for (const value of values) {\n",
        "    total",
        " += value;",
        "\n  }\n  return total;\n}\n",
    ],
    [
        "const items = [1, 2, 3];\n",
        "for (let i = 0; i < items.length;",
        " i++) {",
        "\n  console.log(items[i]);\n}\n",
    ],
    ["class Animal {\n  constructor(name) {\n", "    this.name", " = name;", "\n  }\n}\n"],
    ["try {\n  run();\n", "} catch", " (error) {", "\n  console.error(error);\n}\n"],
    [
        "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\nfunc main() {\n\tfile, err := os.Open(\"input.txt\")\n",
        "\tif err",
        " != nil {",
        "\n\t\tfmt.Println(err)\n\t\treturn\n\t}\n\tdefer file.Close()\n}\n",
    ],
    [
        "package sum\n\nfunc Sum(numbers []int) int {\n\ttotal := 0\n",
        "\tfor _, number",
        " := range numbers {",
        "\n\t\ttotal += number\n\t}\n\treturn total\n}\n",
    ],
    [
        "int max(int a, int b) {\n    if (a > b) {\n        return a;\n    }\n",
        "    return",
        " b;",
        "\n}\n",
    ],
    [
        "#include <stdlib.h>\n\nstruct node {\n    int value;\n    struct node *next;\n};\n\nstruct node *create(int value) {\n    struct node *node = malloc(sizeof(struct node));\n    node->value = value;\n",
        "    node->next",
        " = NULL;",
        "\n    return node;\n}\n",
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
        // To its end: a line that goes on is another.
        tokens: engine.tokenize(&format!("{rest}\n")),
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
