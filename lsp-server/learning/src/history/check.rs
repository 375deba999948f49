//! Holds what was learned against newer texts that were not learned from: how many of their lines
//! does each adapter complete exactly?

use anyhow::Result;
use engine::worker::EngineHandle;
use engine::{EngineError, ScorePrompt, ScoreRequest};
use feedback::event::AdapterVersion;

/// Shorter lines, such as brackets and `else`, do not count.
const LINE_CHARS_MIN: usize = 4;

/// A text of the check: a prompt, and what was written behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedText {
    pub prompt: Vec<u32>,
    pub adapter_from: usize,
    pub written: String,
}

/// Lines that greedy decoding gives exactly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Right {
    pub lines: usize,
    /// Of those lines, without the blanks at both ends.
    pub characters: usize,
}

impl Right {
    fn add(&mut self, characters: usize) {
        self.lines += 1;
        self.characters += characters;
    }
}

/// What each adapter completes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// All lines that count.
    pub of: Right,
    /// In the order of the adapters.
    pub by: Vec<Right>,
}

/// Checks adapters that the engine has loaded; 0 is the model alone. `progress` gets the number of
/// texts that are done.
pub async fn check(
    engine: &EngineHandle,
    texts: &[CheckedText],
    adapters: &[AdapterVersion],
    mut progress: impl FnMut(usize),
) -> Result<Checked, EngineError> {
    let mut checked = Checked { by: vec![Right::default(); adapters.len()], ..Checked::default() };
    for (index, text) in texts.iter().enumerate() {
        let mut prompt = text.prompt.clone();
        let before = checked.clone();
        for line in text.written.split_inclusive('\n') {
            let tokens = engine.tokenize(line);
            let characters = line.trim().chars().count();
            if characters >= LINE_CHARS_MIN {
                let request = ScoreRequest {
                    prompt: ScorePrompt::Tokens {
                        prompt: prompt.clone(),
                        adapter_from: text.adapter_from,
                    },
                    healing: String::new(),
                    tokens: tokens.clone(),
                    adapters: adapters.to_vec(),
                };
                checked.of.add(characters);
                match engine.score(request).await {
                    Ok(scored) => {
                        for (by, score) in checked.by.iter_mut().zip(scored.scores) {
                            if score.is_greedy {
                                by.add(characters);
                            }
                        }
                    }
                    // The line, or what is written above it, is too long to be scored. So long a
                    // line is not offered either.
                    Err(EngineError::Failed(reason)) => tracing::debug!("not scored: {reason}"),
                    Err(error) => return Err(error),
                }
            }
            prompt.extend(tokens);
        }
        let by: Vec<usize> = checked
            .by
            .iter()
            .zip(&before.by)
            .map(|(now, then)| now.characters - then.characters)
            .collect();
        let of = checked.of.characters - before.of.characters;
        // From these numbers an interval can be drawn (docs/lab/history.md).
        tracing::debug!("checked {{\"of\":{of},\"by\":{by:?}}}");
        progress(index + 1);
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::scripted::ScriptedEngine;
    use engine::worker::IdleRule;
    use std::time::Duration;

    #[tokio::test]
    async fn lines_that_say_little_do_not_count() {
        // The scripted engine says of every adapter but the base that it completes a line.
        let engine = || Ok(ScriptedEngine { answers: &[], learned: None, takes: Duration::ZERO });
        let engine = EngineHandle::start(engine, |_| {}, IdleRule::default()).unwrap();
        let written = "    let a = 1;\n}\n\n    a\n    call(a);\n".to_owned();
        let texts = vec![CheckedText { prompt: vec![1, 2], adapter_from: 1, written }];
        let mut done = vec![];
        let checked = check(&engine, &texts, &[0, 7], |at| done.push(at)).await.unwrap();
        let all = Right { lines: 2, characters: "let a = 1;call(a);".len() };
        assert_eq!(checked, Checked { of: all, by: vec![Right::default(), all] });
        assert_eq!(done, [1]);
    }
}
