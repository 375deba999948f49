//! How likely the model finds what an edit makes of its lines, against these lines as they are.
//!
//! Both texts are whole lines behind the same short prompt, so that they are cut into tokens as the
//! model knows them, and what stands behind the place on its line counts too. Their log-probs are
//! sums over the tokens: if one of the two texts is right, the difference is its log-odds. A mean
//! would make the same difference small on a long line.
//!
//! The base model scores them, so that the number means the same whichever adapter serves. The
//! engine does that once no completion waits, in a sequence of its own, and a newer request ends
//! the wait.

use super::Search;
use completion::prompt::FimPrompt;
use engine::unloading::Resident;
use engine::worker::EngineHandle;
use engine::{EngineError, ScorePrompt, ScoreRequest};
use ropey::Rope;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

/// Characters before the lines that the model sees, in whole lines, and characters behind them.
const BEFORE_CHARS: usize = 600;
const BEHIND_CHARS: usize = 200;

/// The longest text that is scored, in characters. The engine scores few tokens.
const TEXT_CHARS_MAX: usize = 300;

/// How long an offer waits for the model.
const WAIT_MAX: Duration = Duration::from_millis(500);

/// Log-ratios that are remembered, because an editor asks again at the same place.
const KNOWN_MAX: usize = 16;

/// What the model is asked of one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Texts {
    prompt: FimPrompt,
    old: String,
    new: String,
}

/// The log-ratios of the latest places. `None` where the model cannot say.
#[derive(Default)]
pub struct Known(VecDeque<(Texts, Option<f32>)>);

impl Texts {
    /// The lines of a place before and after its characters are replaced. `None` if one of the two
    /// is too long.
    pub fn of(text: &Rope, place: &Range<usize>, new: &str) -> Option<Texts> {
        let first = text.char_to_line(place.start);
        let behind = (text.char_to_line(place.end) + 1).min(text.len_lines());
        let lines = text.line_to_char(first)..text.line_to_char(behind);
        let chars = lines.len() + new.chars().count();
        if chars > TEXT_CHARS_MAX {
            return None;
        }
        let line = |text: String| if text.ends_with('\n') { text } else { text + "\n" };
        let (head, tail) = (lines.start..place.start, place.end..lines.end);
        let changed = format!("{}{new}{}", text.slice(head), text.slice(tail));
        let earliest = lines.start.saturating_sub(BEFORE_CHARS);
        let whole = text.char_to_line(earliest);
        let is_cut = text.line_to_char(whole) < earliest;
        let from = text.line_to_char(whole + usize::from(is_cut));
        let until = (lines.end + BEHIND_CHARS).min(text.len_chars());
        let prompt = FimPrompt {
            context: None,
            prefix: text.slice(from..lines.start).to_string(),
            typed: String::new(),
            line: String::new(),
            healing: String::new(),
            suffix: text.slice(lines.end..until).to_string(),
        };
        let old = text.slice(lines).to_string();
        Some(Texts { prompt, old: line(old), new: line(changed) })
    }
}

impl Known {
    pub fn get(&self, texts: &Texts) -> Option<Option<f32>> {
        self.0.iter().find(|(known, _)| known == texts).map(|(_, ratio)| *ratio)
    }

    fn put(&mut self, texts: Texts, ratio: Option<f32>) {
        if self.0.len() == KNOWN_MAX {
            self.0.pop_front();
        }
        self.0.push_back((texts, ratio));
    }
}

impl Search {
    /// ln P(new text) − ln P(old text). `None` if the model is not in memory, cannot say, or does
    /// not say it in time; `waits` tells whether there is a time.
    pub async fn log_ratio(
        &self,
        engine: &EngineHandle,
        texts: Texts,
        waits: bool,
        is_newest: impl Fn() -> bool,
    ) -> Option<f32> {
        // It is made before the last look, so that a request that comes behind it is noticed.
        let newer = self.newer.notified();
        if engine.resident() != Resident::Loaded || !is_newest() {
            return None;
        }
        let limit = async {
            match waits {
                true => tokio::time::sleep(WAIT_MAX).await,
                false => std::future::pending().await,
            }
        };
        let ratio = tokio::select! {
            ratio = scored(engine, &texts) => ratio,
            () = newer => return None,
            () = limit => return None,
        };
        let ratio = match ratio {
            Ok(ratio) => Some(ratio).filter(|ratio| ratio.is_finite()),
            Err(error) => {
                tracing::debug!("a next edit is not scored: {error}");
                None
            }
        };
        self.known.lock().put(texts, ratio);
        ratio
    }
}

/// Both texts wait in the engine's queue together, and the second one finds the prompt computed.
async fn scored(engine: &EngineHandle, texts: &Texts) -> Result<f32, EngineError> {
    let logprob = async |text: &str| {
        let request = ScoreRequest {
            prompt: ScorePrompt::Fim(texts.prompt.clone()),
            healing: String::new(),
            tokens: engine.tokenize(text),
            adapters: vec![0],
        };
        let scores = engine.score(request).await?;
        scores.first().map(|score| score.logprob).ok_or(EngineError::Gone)
    };
    let (new, old) = tokio::try_join!(logprob(&texts.new), logprob(&texts.old))?;
    Ok(new - old)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str, old: &str, new: &str) -> Texts {
        let at = text[..text.find(old).unwrap()].chars().count();
        Texts::of(&Rope::from_str(text), &(at..at + old.chars().count()), new).unwrap()
    }

    #[test]
    fn the_lines_of_a_place_are_whole() {
        let seen = texts("a();\nlet ä = load(1);\nz();\n", "load", "fetch");
        assert_eq!((&*seen.old, &*seen.new), ("let ä = load(1);\n", "let ä = fetch(1);\n"));
        assert_eq!((&*seen.prompt.prefix, &*seen.prompt.suffix), ("a();\n", "z();\n"));
    }

    #[test]
    fn lines_that_go_or_come_are_seen_with_the_one_behind_them() {
        let gone = texts("a();\nb();\nc();\nd();\n", "b();\n", "");
        assert_eq!((&*gone.old, &*gone.new), ("b();\nc();\n", "c();\n"));
        let last = texts("a[];\nb();", "();", "[];");
        assert_eq!((&*last.old, &*last.new), ("b();\n", "b[];\n"));
    }

    #[test]
    fn the_prompt_is_short_and_begins_with_a_whole_line() {
        let line = "0123456789\n";
        let text = line.repeat(100) + "load\n" + &line.repeat(100);
        let FimPrompt { prefix, suffix, .. } = texts(&text, "load", "fetch").prompt;
        assert!(prefix.len() <= BEFORE_CHARS && prefix.len() > BEFORE_CHARS - line.len());
        assert!(prefix.starts_with(line) && prefix.ends_with(line));
        assert_eq!(suffix.len(), BEHIND_CHARS);
        let long = Rope::from_str(&"x".repeat(1_000));
        assert_eq!(Texts::of(&long, &(0..1), "y"), None);
    }

    #[test]
    fn what_was_said_of_the_latest_places_is_known() {
        let mut known = Known::default();
        let about = |number: usize| texts(&format!("{number} load\n"), "load", "fetch");
        for number in 0..=KNOWN_MAX {
            known.put(about(number), Some(number as f32));
        }
        assert_eq!(known.get(&about(0)), None);
        assert_eq!(known.get(&about(KNOWN_MAX)), Some(Some(KNOWN_MAX as f32)));
    }
}
