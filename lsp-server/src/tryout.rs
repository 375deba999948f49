//! What a candidate must pass before it may answer anybody: it still expects
//! ordinary code, and what this user wrote lately, about as well as before.

use crate::engine::worker::EngineHandle;
use crate::engine::{EngineError, ScorePrompt, ScoreRequest};
use crate::ordinary::SUITE;
use crate::prompt::FimPrompt;
use crate::texts::Text;
use crate::trial::monitors::KL_LIMIT;
use feedback::event::AdapterVersion;

/// Mean loss of log-prob that is let pass, in nats a token: about what one
/// update of sixteen labels moves by chance.
const TOLERANCE: f64 = 0.25;

/// Fewer of the user's own texts say nothing.
const ENOUGH_TEXTS: usize = 8;

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
