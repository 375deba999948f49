//! The holdout check, which a candidate must pass before it may answer a request. It must still
//! complete the regression suite and the user's held-out references about as well as before. The
//! check counts lines and not nats, because an adapter that is less sure of a line, and still
//! completes it, has not forgotten it.

use completion::prompt::FimPrompt;
use engine::worker::EngineHandle;
use engine::{EngineError, ScorePrompt, ScoreRequest};
use feedback::event::AdapterVersion;
use policy::references::Reference;
use policy::regression_suite::SUITE;
use policy::trial::monitors::KL_LIMIT;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

/// The share of the lines completed before that a candidate may miss, less the lines that only the
/// candidate completes. Of four adapters that had learned well, none missed more than 2 of 29.
const MISSED_SHARE_MAX: f64 = 0.25;

/// With fewer completed lines the check cannot tell anything.
const LINES_MIN: usize = 4;

/// The time that the user's own lines may take. Each has a prompt of hundreds of tokens, and an
/// update must end soon after the typing does. The newest lines come first.
const OWN_LINES_TIME: Duration = Duration::from_secs(45);

/// The reason why the candidate gets no trial, if there is one. The engine must have loaded both
/// the candidate and `before`.
pub async fn refusal(
    engine: &EngineHandle,
    candidate: AdapterVersion,
    before: AdapterVersion,
    kl_base: f32,
    own: Vec<Reference>,
) -> Result<Option<String>, EngineError> {
    match forgotten(engine, candidate, before, kl_base, own).await {
        Err(EngineError::NotFinite(version)) if version == candidate => {
            Ok(Some("a number that it computes is not finite".into()))
        }
        answer => answer,
    }
}

/// Returns what the candidate has forgotten, if it is too much.
async fn forgotten(
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
    let suite = SUITE.iter().map(|[above, line, rest, below]| ScoreRequest {
        prompt: ScorePrompt::Fim(FimPrompt {
            prefix: (*above).into(),
            line: (*line).into(),
            suffix: (*below).into(),
            ..FimPrompt::default()
        }),
        healing: String::new(),
        // The line break belongs to the case, because a line that continues is another line.
        tokens: engine.tokenize(&format!("{rest}\n")),
        adapters: vec![candidate, 0],
    });
    let lines = compare(engine, suite, Duration::MAX).await?;
    if lines.are_forgotten() {
        return Ok(Some(format!(
            "of the regression suite's lines that the base model completes, {lines}"
        )));
    }
    let own = own.into_iter().rev().map(|text| ScoreRequest {
        prompt: ScorePrompt::Tokens {
            prompt: text.served.prompt.clone(),
            adapter_from: text.served.adapter_from,
        },
        healing: text.served.healing.clone(),
        tokens: text.tokens,
        adapters: vec![candidate, before],
    });
    let lines = compare(engine, own, OWN_LINES_TIME).await?;
    Ok(lines.are_forgotten().then(|| match before {
        0 => format!("of lines you wrote lately that the base model completes, {lines}"),
        _ => format!("of lines you wrote lately that v{before} completes, {lines}"),
    }))
}

/// Counts of the lines that a candidate and the adapter before it complete.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Lines {
    before: usize,
    /// Those of them that the candidate does not complete.
    lost: usize,
    /// Lines that only the candidate completes.
    gained: usize,
}

impl Lines {
    fn are_forgotten(self) -> bool {
        let lost = self.lost.saturating_sub(self.gained);
        self.before >= LINES_MIN && lost as f64 > MISSED_SHARE_MAX * self.before as f64
    }
}

impl Display for Lines {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Lines { before, lost, gained } = self;
        write!(f, "it misses {lost} of {before}")?;
        match gained {
            0 => Ok(()),
            _ => write!(f, ", and completes {gained} others"),
        }
    }
}

/// Counts the lines that the first adapter of each request completes, and those that the second
/// does, until they have taken this time to compute.
async fn compare(
    engine: &EngineHandle,
    requests: impl Iterator<Item = ScoreRequest>,
    limit: Duration,
) -> Result<Lines, EngineError> {
    let mut lines = Lines::default();
    let mut took = Duration::ZERO;
    for request in requests {
        if took >= limit {
            break;
        }
        let candidate = request.adapters[0];
        match engine.score(request).await {
            Ok(scored) => {
                took += scored.took;
                let scores = scored.scores;
                let (by_candidate, by_before) = (scores[0].is_greedy, scores[1].is_greedy);
                lines.before += usize::from(by_before);
                lines.lost += usize::from(by_before && !by_candidate);
                lines.gained += usize::from(by_candidate && !by_before);
            }
            // The line is too long, or no adapter could generate it. The other lines are enough.
            Err(EngineError::Failed(_)) => {}
            // What was before is gone, or computes nothing that could be compared.
            Err(EngineError::NotFinite(version) | EngineError::NotLoaded(version))
                if version != candidate => {}
            Err(error) => return Err(error),
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::worker::IdleRule;
    use fixtures::overflowing;

    #[tokio::test]
    async fn a_candidate_whose_numbers_are_not_finite_is_refused_and_only_that() {
        let refused = async |overflows: AdapterVersion| {
            let engine = overflowing(fixtures::engine(&["x"]), overflows);
            let engine = EngineHandle::start(move || Ok(engine), |_| (), IdleRule::default());
            refusal(&engine.unwrap(), 2, 1, 0.0, vec![]).await.unwrap()
        };
        assert!(refused(2).await.unwrap().contains("not finite"));
        assert_eq!(refused(0).await, None, "the lines of the base say nothing then");
        assert_eq!(refused(9).await, None);
    }

    #[tokio::test]
    async fn lines_are_compared_until_their_time_is_over() {
        let engine = fixtures::engine(&["x"]);
        let engine = EngineHandle::start(move || Ok(engine), |_| (), IdleRule::default()).unwrap();
        let requests = || {
            let prompt = ScorePrompt::Tokens { prompt: vec![1], adapter_from: 0 };
            let (healing, tokens, adapters) = (String::new(), vec![1], vec![2, 1]);
            std::iter::repeat_n(ScoreRequest { prompt, healing, tokens, adapters }, 9)
        };
        let lines = async |limit| compare(&engine, requests(), limit).await.unwrap().before;
        assert_eq!(lines(Duration::MAX).await, 9);
        assert_eq!(lines(Duration::ZERO).await, 0);
    }

    #[test]
    fn a_quarter_may_be_missed_and_gained_lines_make_up_for_it() {
        let forgotten = |before, lost, gained| Lines { before, lost, gained }.are_forgotten();
        assert!(!forgotten(16, 4, 0));
        assert!(forgotten(16, 5, 0));
        assert!(!forgotten(16, 5, 1));
        assert!(!forgotten(3, 3, 0), "three lines are too few to tell anything");
    }

    #[test]
    fn the_reason_counts_lines() {
        let lines = Lines { before: 16, lost: 7, gained: 0 };
        assert_eq!(lines.to_string(), "it misses 7 of 16");
        let lines = Lines { gained: 2, ..lines };
        assert_eq!(lines.to_string(), "it misses 7 of 16, and completes 2 others");
    }
}
