//! A completion that is asked for: where, by what, and what the engine is to do.

use crate::config::{CompletionConfig, Config, LabConfig};
use completion::document::{Document, Position};
use completion::postprocess::Around;
use completion::prompt::{FimPrompt, Window};
use completion::stop_rule::{Extent, Setting};
use engine::Request;
use feedback::event::{AdapterVersion, ArmRecord, Sampling, StopReason};
use policy::gate::Recent;
use policy::gate::features::Surroundings;
use rand::SeedableRng;
use rand::rngs::StdRng;
use ropey::Rope;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Offers beside the first, where the user asks by hand.
pub const ALTERNATIVES: usize = 2;

/// What made the client ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// Typing.
    Automatic,
    /// The user, by hand: always answered.
    Invoked,
}

/// Where a completion is asked for, and what the user did there.
pub struct Place {
    pub uri: String,
    pub path: String,
    pub language: String,
    /// The text as it is asked about; a clone costs nothing.
    pub text: Rope,
    /// In characters.
    pub cursor: usize,
    pub position: Position,
    pub around: Around,
    /// Since the last edit, in milliseconds.
    pub idle_ms: u64,
    /// Offers that the user turned down on this line.
    pub rejects_here: u32,
}

impl Place {
    /// What the gate sees of an answer here.
    pub fn surroundings<'a>(
        &'a self,
        text: &'a str,
        logprobs: &'a [f32],
        stop: StopReason,
        recent: Recent,
    ) -> Surroundings<'a> {
        Surroundings {
            logprobs,
            text,
            stop,
            line_before: &self.around.line_before,
            rest_of_line: &self.around.rest_of_line,
            language: &self.language,
            idle_ms: self.idle_ms,
            rejects_here: self.rejects_here,
            recent,
        }
    }

    /// Draws that depend on nothing but the place and on how many came before: a
    /// replay draws the same, and who comes back to a place does not.
    pub fn draws(&self, before: u64) -> StdRng {
        StdRng::seed_from_u64(self.seed() ^ before.rotate_right(16))
    }

    fn seed(&self) -> u64 {
        (self.text.len_chars() as u64) << 32 | self.cursor as u64
    }

    fn sampling(&self, temperature: f32) -> Sampling {
        if temperature == 0.0 {
            return Sampling::GREEDY;
        }
        Sampling { temperature, seed: self.seed() }
    }

    /// What the engine is to do.
    pub fn request(
        &self,
        prompt: FimPrompt,
        adapter: AdapterVersion,
        extent: Extent,
        trigger: Trigger,
        config: &Config,
    ) -> Request {
        Request {
            prompt: as_set(&config.lab, prompt),
            adapter,
            sampling: self.sampling(config.lab.temperature),
            max_tokens: config.completion.max_tokens,
            extent,
            budget: Duration::from_millis(config.completion.budget_ms),
            // Who asks by hand wants to see how it goes on, sure or not.
            min_probability: match trigger {
                Trigger::Automatic => config.completion.min_probability,
                Trigger::Invoked => 0.0,
            },
            alternatives: if trigger == Trigger::Invoked { ALTERNATIVES } else { 0 },
        }
    }
}

/// A completion under way.
pub struct Asked {
    pub abort: Arc<AtomicBool>,
    /// How often the session had been told to forget by then.
    pub forgets: u64,
    pub arrived: Instant,
    /// Before the engine is asked.
    pub wait: Duration,
    pub place: Place,
    pub trigger: Trigger,
    pub arm: Option<ArmRecord>,
    /// Uniform in [0, 1): what the gate decides by.
    pub draw: f64,
    pub window: Window,
    pub request: Request,
}

/// How far the answer to a request may reach.
pub fn extent(
    document: &Document,
    cursor: usize,
    trigger: Trigger,
    config: &CompletionConfig,
) -> Extent {
    let by_hand = trigger == Trigger::Invoked;
    let setting = Setting { multiline: config.multiline, max_lines: config.max_lines };
    Extent::at(&document.text, cursor, &document.language, by_hand, setting)
}

/// A prompt without what is switched off.
pub fn as_set(config: &LabConfig, mut prompt: FimPrompt) -> FimPrompt {
    if !config.token_healing {
        prompt = prompt.unhealed();
    }
    if !config.line_behind_middle {
        prompt = prompt.line_before_suffix();
    }
    prompt
}
