//! What a candidate must pass before it may answer anybody: it still says ordinary
//! lines, and what this user wrote lately, about as well as before. Lines said are
//! counted and not nats: being less sure of a line that it goes on saying is not
//! forgetting it.

use completion::prompt::FimPrompt;
use engine::worker::EngineHandle;
use engine::{EngineError, ScorePrompt, ScoreRequest};
use feedback::event::AdapterVersion;
use policy::references::Reference;
use policy::regression_suite::SUITE;
use policy::trial::monitors::KL_LIMIT;
use std::fmt::{self, Display, Formatter};

/// The share of the lines said before that a candidate may miss, less those that it
/// says anew. Of four adapters that had learned well none missed more than 2 of 29.
const MAY_MISS: f64 = 0.25;

/// Of fewer lines said before nothing can be told.
const ENOUGH: usize = 4;

/// Why the candidate is not to be tried, if so. It and `before` are loaded.
pub async fn refusal(
    engine: &EngineHandle,
    candidate: AdapterVersion,
    before: AdapterVersion,
    kl_base: f32,
    own: Vec<Reference>,
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
    let lines = compare(engine, ordinary.collect()).await?;
    if lines.are_forgotten() {
        return Ok(Some(format!("of ordinary lines that the model alone says, {lines}")));
    }
    let own = own.into_iter().map(|text| ScoreRequest {
        prompt: ScorePrompt::Tokens {
            prompt: text.served.prompt.clone(),
            adapter_from: text.served.adapter_from,
        },
        healing: text.served.healing.clone(),
        tokens: text.tokens,
        adapters: vec![candidate, before],
    });
    let lines = compare(engine, own.collect()).await?;
    Ok(lines.are_forgotten().then(|| match before {
        0 => format!("of lines you wrote lately that the model alone says, {lines}"),
        _ => format!("of lines you wrote lately that v{before} says, {lines}"),
    }))
}

/// Lines in the eyes of a candidate and of what it is held against.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Lines {
    said_before: usize,
    /// Of these, what the candidate misses.
    lost: usize,
    /// What only the candidate says.
    gained: usize,
}

impl Lines {
    fn are_forgotten(self) -> bool {
        let lost = self.lost.saturating_sub(self.gained);
        self.said_before >= ENOUGH && lost as f64 > MAY_MISS * self.said_before as f64
    }
}

impl Display for Lines {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Lines { said_before, lost, gained } = self;
        write!(f, "it misses {lost} of {said_before}")?;
        match gained {
            0 => Ok(()),
            _ => write!(f, ", and says {gained} anew"),
        }
    }
}

/// What the first adapter of each request says, beside the second.
async fn compare(engine: &EngineHandle, requests: Vec<ScoreRequest>) -> Result<Lines, EngineError> {
    let mut lines = Lines::default();
    for request in requests {
        match engine.score(request).await {
            Ok(scores) => {
                let (candidate, before) = (scores[0].is_greedy, scores[1].is_greedy);
                lines.said_before += usize::from(before);
                lines.lost += usize::from(before && !candidate);
                lines.gained += usize::from(candidate && !before);
            }
            // Too long, or none the policy could say: another text will do.
            Err(EngineError::Failed(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_may_be_missed_and_what_is_said_anew_makes_up_for_it() {
        let forgotten =
            |said_before, lost, gained| Lines { said_before, lost, gained }.are_forgotten();
        assert!(!forgotten(16, 4, 0));
        assert!(forgotten(16, 5, 0));
        assert!(!forgotten(16, 5, 1));
        assert!(!forgotten(3, 3, 0), "three lines say nothing");
    }

    #[test]
    fn the_reason_counts_lines() {
        let lines = Lines { said_before: 16, lost: 7, gained: 0 };
        assert_eq!(lines.to_string(), "it misses 7 of 16");
        let lines = Lines { gained: 2, ..lines };
        assert_eq!(lines.to_string(), "it misses 7 of 16, and says 2 anew");
    }
}
