//! An engine that says what it is told: for unit tests of what lies around it.

use super::{Engine, EngineError, EngineInfo, Generated, Request};
use feedback::event::{AdapterVersion, StopReason, TokenRecord};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Answers every prompt with the same text, one token a byte.
pub struct ScriptedEngine {
    pub answer: &'static str,
    /// How long a completion takes; the abort flag is looked at every millisecond.
    pub takes: Duration,
}

impl Engine for ScriptedEngine {
    fn info(&self) -> EngineInfo {
        EngineInfo { backend: "scripted".into() }
    }

    fn generate(
        &mut self,
        request: &Request,
        abort: &AtomicBool,
    ) -> Result<Generated, EngineError> {
        for _ in 0..self.takes.as_millis() {
            std::thread::sleep(Duration::from_millis(1));
            if abort.load(Ordering::Relaxed) {
                return Err(EngineError::Aborted);
            }
        }
        let text = format!("{}{}\n", request.prompt.healing, self.answer).into_bytes();
        let token = |&byte: &u8| TokenRecord { id: u32::from(byte), logprob: -0.1 };
        Ok(Generated {
            prompt: vec![0],
            adapter_from: 0,
            tokens: text.iter().map(token).collect(),
            text,
            stop: StopReason::Newline,
            prompt_reused: 0,
            prompt_evaluated: 1,
            prompt_time: Duration::ZERO,
            decode_time: self.takes,
        })
    }

    fn load_adapter(
        &mut self,
        _version: AdapterVersion,
        _path: &Path,
        _keep: AdapterVersion,
    ) -> Result<(), EngineError> {
        Ok(())
    }
}
