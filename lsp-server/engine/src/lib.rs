//! What answers a prompt. [`llama`] is the real engine, and [`scripted`] is for unit tests of
//! everything around it. [`cached`] wraps an engine for rehearsals. [`worker`] gives each its
//! own thread and queue.

mod answer_cache;
pub mod cached;
mod ffi;
mod gpu_layers;
mod line_end;
pub mod llama;
mod sampler;
pub mod scripted;
mod threads;
pub mod worker;

pub use ffi::{leave, quantize_q4_0};

use completion::prompt::FimPrompt;
use completion::stop_rule::Extent;
use feedback::event::{AdapterVersion, Sampling, StopReason, TokenRecord};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Text to token ids, on any thread.
pub type Tokenizer = Arc<dyn Fn(&str) -> Vec<u32> + Send + Sync>;

#[derive(Debug, Clone)]
pub struct Request {
    pub prompt: FimPrompt,
    /// `0`: the base alone.
    pub adapter: AdapterVersion,
    pub sampling: Sampling,
    /// Where the answer ends by what it says.
    pub extent: Extent,
    /// Of each of its lines.
    pub max_tokens: usize,
    /// Time for prompt and decoding; what is there by then is the answer.
    pub budget: Duration,
    /// Decoding is given up where the line it is at has become less likely than this
    /// as a whole, in [0, 1].
    pub min_probability: f32,
    /// Most answers wanted beside the first; they take extra time.
    pub alternatives: usize,
}

#[derive(Debug, Clone)]
pub struct Generated {
    /// Token ids of the prompt as evaluated.
    pub prompt: Vec<u32>,
    /// Index in `prompt` from which on the adapter acts.
    pub adapter_from: usize,
    pub prompt_reused: u32,
    pub prompt_evaluated: u32,
    pub prompt_time: Duration,
    /// The first as without alternatives, then those, each of another text.
    pub answers: Vec<Answer>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Answer {
    pub tokens: Vec<TokenRecord>,
    /// ln π of what the user sees of each: of it or any other token that ends its line the same.
    pub visible_logprobs: Vec<f32>,
    /// Of these, how many say nothing but what healing had to reproduce.
    pub healed: usize,
    /// Concatenated pieces of `tokens`, stop token included.
    pub text: Vec<u8>,
    /// Where in `text` each token ends.
    pub ends: Vec<usize>,
    /// Where in `text` the line begins that was given up, if one was.
    pub given_up: Option<usize>,
    pub stop: StopReason,
    pub decode_time: Duration,
}

impl Answer {
    /// What of `text` may be offered.
    pub fn offered(&self) -> &[u8] {
        &self.text[..self.given_up.unwrap_or(self.text.len())]
    }

    /// What time cut short is no answer to anybody else.
    pub fn is_whole(&self) -> bool {
        self.stop != StopReason::Budget
    }
}

/// A text to be looked at by several adapters.
#[derive(Debug, Clone)]
pub struct ScoreRequest {
    pub prompt: ScorePrompt,
    /// What the text begins with because the prompt left it out.
    pub healing: String,
    pub tokens: Vec<u32>,
    /// 0 is the base.
    pub adapters: Vec<AdapterVersion>,
}

#[derive(Debug, Clone)]
pub enum ScorePrompt {
    Fim(FimPrompt),
    /// As it was served: see [`Generated`].
    Tokens {
        prompt: Vec<u32>,
        adapter_from: usize,
    },
}

/// A text in the eyes of one adapter.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// ln π, in nats, summed over its tokens, at temperature 1; of the last, however
    /// the end of its line is said.
    pub logprob: f32,
    /// Each of its tokens, and some end of its line, is the likeliest at its place:
    /// decoding greedily says it.
    pub says: bool,
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
    #[error("{0}")]
    Failed(String),
}

#[derive(Debug, Clone)]
pub struct EngineInfo {
    /// Where the matrices are multiplied, for the user to read.
    pub backend: String,
    /// Whether its prompts can hold excerpts of several files.
    pub reads_files: bool,
}

pub trait Engine {
    fn info(&self) -> EngineInfo;

    fn tokenizer(&self) -> Tokenizer;

    /// Returns [`EngineError::Aborted`] soon after `abort` turns true.
    fn generate(&mut self, request: &Request, abort: &AtomicBool)
    -> Result<Generated, EngineError>;

    /// Computes what a request with this prompt will find computed. Gives up
    /// soon after `abort` turns true; what was done by then stays.
    fn warm(&mut self, prompt: &FimPrompt, abort: &AtomicBool) -> Result<(), EngineError>;

    /// How each adapter sees a text. Gives up soon after `abort` turns true.
    fn score(
        &mut self,
        request: &ScoreRequest,
        abort: &AtomicBool,
    ) -> Result<Vec<Score>, EngineError>;

    /// Makes a version available to the requests that follow; those of `keep`
    /// stay loaded beside it, every other version may be dropped.
    fn load_adapter(
        &mut self,
        version: AdapterVersion,
        path: &Path,
        keep: &[AdapterVersion],
    ) -> Result<(), EngineError>;
}
