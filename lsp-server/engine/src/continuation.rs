//! Files that a model continues, as models for next edits are asked: no completion at a cursor, no
//! healing and no adapter, only the likeliest text behind what stands there.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Continuation {
    /// The texts, each behind the model's token for a file. The last one is continued, and the
    /// first ones are left out if they are too long together.
    pub files: Vec<String>,
    /// The most tokens of the answer. They take their room from the engine's longest prompt.
    pub max_tokens: usize,
    /// The time for prompt and answer.
    pub budget: Duration,
    pub enough: Enough,
}

/// Returns whether an answer needs to be continued. It is asked at each end of a line with the text
/// so far. By default only the model ends an answer.
#[derive(Clone)]
pub struct Enough(Arc<dyn Fn(&str) -> bool + Send + Sync>);

impl Enough {
    pub fn when(is_enough: impl Fn(&str) -> bool + Send + Sync + 'static) -> Enough {
        Enough(Arc::new(is_enough))
    }

    pub fn is(&self, text: &str) -> bool {
        (self.0)(text)
    }
}

impl Default for Enough {
    fn default() -> Enough {
        Enough::when(|_| false)
    }
}

impl fmt::Debug for Enough {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Enough")
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Continued {
    pub text: String,
    /// For each token, where its text ends in the answer, in bytes, and its log-prob in nats.
    pub logprobs: Vec<(usize, f32)>,
    /// The model ended the text by itself.
    pub is_whole: bool,
    /// Tokens of the prompt that were known, and that were computed.
    pub prompt_reused: u32,
    pub prompt_evaluated: u32,
    /// Tokens of the answer.
    pub tokens: u32,
    pub took: Duration,
}
