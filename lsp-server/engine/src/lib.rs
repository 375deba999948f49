//! The engine, which answers prompts. [`llama`] runs llama.cpp, [`scripted`] serves unit tests of
//! everything around the engine, [`caching_engine`] wraps an engine for rehearsals, [`unloading`]
//! gives the model's memory back while it is not used, and [`worker`] gives each its own thread and
//! queue.

mod answer_cache;
pub mod caching_engine;
pub mod continuation;
mod exp_sum;
mod ffi;
mod gpu_layers;
#[cfg(any(feature = "portable", test))]
mod libraries;
mod line_end;
pub mod llama;
mod own_memory;
mod platform;
mod sampler;
pub mod scripted;
pub mod speed;
mod threads;
pub mod unloading;
pub mod worker;

pub use ffi::{free_gpu, leave};
pub use gpu_layers::Gpu;

use completion::prompt::FimPrompt;
use completion::stop_rule::StopRule;
use continuation::{Continuation, Continued};
use feedback::event::{AdapterVersion, Sampling, StopReason, TokenRecord};
use feedback::experts::ChosenExperts;
use serde::{Deserialize, Serialize};
use speed::PromptSpeed;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Turns text into token ids, on any thread.
pub type Tokenizer = Arc<dyn Fn(&str) -> Vec<u32> + Send + Sync>;

#[derive(Debug, Clone)]
pub struct Request {
    pub prompt: FimPrompt,
    /// The adapter that answers; `0` is the base alone.
    pub adapter: AdapterVersion,
    pub sampling: Sampling,
    /// The rule that ends the answer by its text.
    pub stop_rule: StopRule,
    /// The most tokens of each line.
    pub max_tokens: usize,
    /// The time for prompt and decoding. The text that is there by then is the answer.
    pub budget: Duration,
    /// Decoding ends where the current line is too unlikely by this, in [0, 1]: see
    /// [`is_too_unlikely`].
    pub min_token_probability: f32,
    /// The most answers that are wanted next to the first. They take extra time.
    pub alternatives: usize,
    /// The time that the prompt's other code may take. If computing it takes longer, the answer is
    /// made without it, and the whole prompt is computed in advance for later requests.
    pub context_wait: Duration,
}

/// The longest time for a line that nobody waits for.
const PATIENCE: Duration = Duration::from_secs(300);

impl Request {
    /// Asks the base for its likeliest line, whatever that is.
    pub fn line(prompt: FimPrompt, max_tokens: usize) -> Request {
        Request {
            prompt,
            adapter: 0,
            sampling: Sampling::GREEDY,
            stop_rule: StopRule::LINE,
            max_tokens,
            budget: PATIENCE,
            min_token_probability: 0.0,
            alternatives: 0,
            context_wait: Duration::MAX,
        }
    }
}

/// Tokens that count as certain next to those of a line, so that one unlikely token does not end
/// it.
const CERTAIN_TOKENS: f32 = 2.0;

/// Returns true if a line, or the beginning of one, is too unlikely to be offered: the geometric
/// mean of its tokens' probabilities is below the least one. [`CERTAIN_TOKENS`] count along. Unlike
/// the probability of the whole line, that does not punish length.
pub fn is_too_unlikely(logprob: f32, tokens: usize, min_token_probability: f32) -> bool {
    logprob < (tokens as f32 + CERTAIN_TOKENS) * min_token_probability.ln()
}

#[derive(Debug, Clone)]
pub struct Generated {
    /// The token ids of the prompt as evaluated.
    pub prompt: Vec<u32>,
    /// The index in `prompt` from which on the adapter acts.
    pub adapter_from: usize,
    pub prompt_reused: u32,
    pub prompt_evaluated: u32,
    pub prompt_time: Duration,
    /// True if the prompt's other code was left out, because it would have taken too long.
    pub without_context: bool,
    /// The first answer is the same as without alternatives. The others follow, each with another
    /// text.
    pub answers: Vec<Answer>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Answer {
    pub tokens: Vec<TokenRecord>,
    /// ln π of each token as the user sees it: the probability of the token and of all tokens that
    /// end its line the same way.
    pub visible_logprobs: Vec<f32>,
    /// The number of tokens that only reproduce the text that healing cut.
    pub healed: usize,
    /// The concatenated pieces of `tokens`, including the stop token.
    pub text: Vec<u8>,
    /// The index in `text` at which each token ends.
    pub ends: Vec<usize>,
    /// The index in `text` at which a line begins that became too unlikely, or from which on the
    /// answer only repeats itself.
    pub given_up: Option<usize>,
    pub stop: StopReason,
    pub decode_time: Duration,
    /// The experts that the prompt from [`Generated::adapter_from`] on and `tokens` went through,
    /// if the model has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experts: Option<ChosenExperts>,
}

impl Answer {
    /// The part of `text` that may be offered.
    pub fn offered(&self) -> &[u8] {
        &self.text[..self.given_up.unwrap_or(self.text.len())]
    }

    /// Returns whether the answer is complete. One that ran out of time is not shared with other
    /// requests.
    pub fn is_whole(&self) -> bool {
        self.stop != StopReason::Budget
    }
}

/// A text that several adapters score.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoreRequest {
    pub prompt: ScorePrompt,
    /// The beginning of the text that the prompt left out.
    pub healing: String,
    pub tokens: Vec<u32>,
    /// The adapters that score the text; 0 is the base.
    pub adapters: Vec<AdapterVersion>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScorePrompt {
    Fim(FimPrompt),
    /// The tokens as they were served: see [`Generated`].
    Tokens {
        prompt: Vec<u32>,
        adapter_from: usize,
    },
}

/// The likelihood of a text under one adapter.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// ln π in nats at temperature 1, summed over the tokens. The last token counts with all tokens
    /// that end its line.
    pub logprob: f32,
    /// True if each token is the likeliest at its place, and the likeliest last token ends the
    /// line. Greedy decoding then gives this text.
    pub is_greedy: bool,
}

/// The scores of a text, in the order of the adapters.
#[derive(Debug, Clone)]
pub struct Scored {
    pub scores: Vec<Score>,
    /// The time for which they were computed.
    pub took: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("superseded or cancelled")]
    Aborted,
    #[error("the time budget ran out before the first token")]
    OverBudget,
    #[error("too many completions are waiting; try again")]
    Busy,
    #[error("the inference thread has ended; restart the daemon (`hone stop`)")]
    Gone,
    #[error("adapter v{0} is not loaded")]
    NotLoaded(AdapterVersion),
    #[error("with adapter v{0} (0 is the model alone) a number is not finite")]
    NotFinite(AdapterVersion),
    #[error("{0}")]
    Failed(String),
}

#[derive(Debug, Clone)]
pub struct EngineInfo {
    /// The device that multiplies the matrices, for the user to read.
    pub backend: String,
    /// True if prompts can hold excerpts of several files.
    pub reads_files: bool,
    /// The speed at which prompts are computed.
    pub speed: PromptSpeed,
}

pub trait Engine {
    fn info(&self) -> EngineInfo;

    fn tokenizer(&self) -> Tokenizer;

    /// Answers a request. Returns [`EngineError::Aborted`] soon after `abort` turns true.
    fn generate(&mut self, request: &Request, abort: &AtomicBool)
    -> Result<Generated, EngineError>;

    /// Continues files. Returns [`EngineError::Aborted`] soon after `abort` turns true; what was
    /// computed by then stays.
    fn continued(
        &mut self,
        _request: &Continuation,
        _abort: &AtomicBool,
    ) -> Result<Continued, EngineError> {
        Err(EngineError::Failed("this engine continues no files".into()))
    }

    /// Computes a prompt in advance for a later request. Stops soon after `abort` turns true; what
    /// was computed by then stays.
    fn warm(&mut self, prompt: &FimPrompt, abort: &AtomicBool) -> Result<(), EngineError>;

    /// Scores a text under each adapter. Stops soon after `abort` turns true; the same request then
    /// continues where it stopped.
    fn score(
        &mut self,
        request: &ScoreRequest,
        abort: &AtomicBool,
    ) -> Result<Vec<Score>, EngineError>;

    /// Makes an adapter available to the requests that follow. The adapters of `keep` stay loaded
    /// next to it, every other one may be dropped.
    fn load_adapter(
        &mut self,
        version: AdapterVersion,
        path: &Path,
        keep: &[AdapterVersion],
    ) -> Result<(), EngineError>;

    /// The keys and values of these tokens under the base, in the form of
    /// [`models::disk_cache::DiskCache::handed`]. `None` if the engine does not hold all of them.
    fn prompt_kv(&mut self, _prompt: &[u32]) -> Option<Vec<u8>> {
        None
    }

    /// Gives the model's memory back, if the engine can. The next call takes it again.
    fn unload(&mut self) {}

    /// Returns true if other processes need the memory that the model takes on a GPU.
    fn is_in_the_way(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::is_too_unlikely;

    #[test]
    fn a_long_line_may_be_less_likely_than_a_short_one() {
        let mean = -0.7;
        let is_out = |tokens: usize| is_too_unlikely(mean * tokens as f32, tokens, 0.55);
        assert!(!is_out(2) && !is_out(8) && is_out(200));
        assert!(is_too_unlikely(-4.0, 2, 0.55) && !is_too_unlikely(-4.0, 8, 0.55));
    }

    #[test]
    fn at_nothing_all_is_offered_and_at_one_only_what_is_certain() {
        assert!(!is_too_unlikely(-1e6, 1, 0.0));
        assert!(is_too_unlikely(-1e-6, 1, 1.0) && !is_too_unlikely(0.0, 1, 1.0));
    }
}
