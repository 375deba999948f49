//! What the engine of the played editor says: texts that are made from the text around the cursor,
//! so that they open, close and repeat what stands there.

use engine::scripted::{self, answer};
use engine::{Generated, Request};
use fixtures::HookedEngine;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Log-probability of each byte. An answer is likely enough to be shown.
const LOGPROB: f32 = -0.001;

/// An engine whose answers depend on nothing but the prompt.
pub fn engine() -> HookedEngine {
    HookedEngine {
        generate: Box::new(|_, request, _| Ok(generated(request))),
        ..fixtures::engine(&[]).hooked()
    }
}

fn generated(request: &Request) -> Generated {
    let prompt = &request.prompt;
    let mut texts: Vec<String> = vec![];
    for number in 0..=request.alternatives {
        let text = answer_to(&format!("{}{}", prompt.line, prompt.healing), &prompt.suffix, number);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    scripted::generated(texts.iter().map(|text| answer(&prompt.healing, text, LOGPROB)).collect())
}

/// The text number `number` for a cursor between these two texts.
fn answer_to(line: &str, suffix: &str, number: usize) -> String {
    let mut hasher = DefaultHasher::new();
    (line, suffix, number).hash(&mut hasher);
    let draw = hasher.finish() as usize;
    let rest = suffix.split(['\n', '\r']).next().unwrap_or_default();
    let closers = closers_of(line);
    let below = suffix.lines().nth(1 + draw % 3).unwrap_or_default();
    let word = ["item", "größe", "x", "push_all", "a😀b"][draw / 64 % 5];
    match draw % 32 {
        0 => format!("{word}(a, 2);"),
        1 => "()".into(),
        2 => format!("{word}{closers};"),
        3 => format!("{word}{closers} + {word}"),
        4 => format!("{word}{rest}"),
        5 => rest.to_owned(),
        6 => format!("{rest}{rest}"),
        7 => format!("\"{word} ]\"{closers};"),
        8 => format!("'{word}'{closers}"),
        9 => format!("`${{{word}}}`{closers};"),
        10 => format!("{closers};"),
        11 => closers,
        12 => format!("if ({word}) {{\n    {word}();\n}}"),
        13 => format!("{word};\n    {word}({word});\n"),
        14 => "    ".into(),
        15 => String::new(),
        16 => format!("// they don't {word}"),
        17 => format!("{word};\r\n{word};\r\n"),
        18 => format!("[1, [{word}, 3]]"),
        19 => format!("{word}(b["),
        20 => format!("({word}) => {{"),
        21 => format!("\t{word}"),
        22 => "x".into(),
        23 => "\"\"".into(),
        24 => below.to_owned(),
        25 => format!("\n    {word}();\n    {word}();"),
        26 => format!("{word}: &'a str{closers}"),
        27 => format!("{word}, {word}{closers}.{word}({word});"),
        28 => format!("{line}{word}"),
        29 => word.repeat(20),
        30 => format!("{word}  {closers}   "),
        _ => format!("{word} = {word}.{word}"),
    }
}

/// The marks that close what is open at the end of a line, the innermost first.
fn closers_of(line: &str) -> String {
    let open = super::closers::scan(line);
    open.map_or_else(String::new, |open| open.awaited.iter().rev().collect())
}
