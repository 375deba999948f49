//! A server that is asked by `/infill`, as llama.vim and llama.vscode ask.

use crate::Answer;
use crate::trace::Trace;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The context that both sides see. These are Hone's defaults.
const PREFIX_CHARS: usize = 1500;
const SUFFIX_CHARS: usize = 500;

/// Tokens that both sides may generate. This is Hone's default.
const MAX_TOKENS: usize = 32;

/// Longest wait for an answer.
pub const WAIT_LIMIT: Duration = Duration::from_secs(120);

pub struct Infill {
    pub agent: ureq::Agent,
    pub url: String,
    /// Start of the context. It stays the same for a trace, as in a good client.
    from: usize,
    pub prompt_ms: Vec<f64>,
}

impl Infill {
    /// The path of `url` may hold a token.
    pub fn new(url: String) -> Infill {
        let agent = ureq::Agent::config_builder().timeout_global(Some(WAIT_LIMIT)).build().into();
        Infill { agent, url, from: 0, prompt_ms: vec![] }
    }

    pub fn open(&mut self, trace: &Trace) {
        let before = trace.before(0);
        let chars = before.chars().count().saturating_sub(PREFIX_CHARS);
        let at = before.char_indices().nth(chars).map_or(0, |(at, _)| at);
        self.from =
            if chars == 0 { 0 } else { before[at..].find('\n').map_or(at, |line| at + line + 1) };
    }

    /// Asks with the current line behind the middle token.
    pub fn key(&mut self, trace: &Trace, key: usize) -> Result<Answer> {
        let before = &trace.before(key)[self.from..];
        let line = before.rfind('\n').map_or(0, |at| at + 1);
        let body = json!({
            "input_prefix": &before[..line],
            "prompt": &before[line..],
            "input_suffix": trace.after().chars().take(SUFFIX_CHARS).collect::<String>(),
            "n_predict": MAX_TOKENS,
            "temperature": 0,
            "top_k": 1,
            "samplers": ["top_k"],
            "stop": ["\n"],
            "cache_prompt": true,
        });
        let body = serde_json::to_vec(&body)?;
        let started = Instant::now();
        let mut response = self
            .agent
            .post(format!("{}/infill", self.url))
            .content_type("application/json")
            .send(&body[..])?;
        let answer = response.body_mut().read_to_string()?;
        let ms = started.elapsed().as_secs_f64() * 1000.0;
        let answer: Value = serde_json::from_str(&answer)?;
        let text = answer["content"].as_str().context("the answer has no content")?.to_owned();
        if key > 0 {
            self.prompt_ms.extend(answer["timings"]["prompt_ms"].as_f64());
        }
        Ok(Answer { ms, text })
    }
}
