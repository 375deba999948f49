//! An engine with an adapter that computes numbers which are not finite.

use completion::prompt::FimPrompt;
use engine::scripted::ScriptedEngine;
use engine::{Engine, EngineError, EngineInfo, Generated, Request, Score, ScoreRequest, Tokenizer};
use feedback::event::AdapterVersion;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Scores as a scripted engine does, but not with this adapter, which the holdout check rejects.
pub struct Overflows(pub ScriptedEngine, pub AdapterVersion);

impl Engine for Overflows {
    fn info(&self) -> EngineInfo {
        self.0.info()
    }

    fn tokenizer(&self) -> Tokenizer {
        self.0.tokenizer()
    }

    fn generate(
        &mut self,
        request: &Request,
        abort: &AtomicBool,
    ) -> Result<Generated, EngineError> {
        self.0.generate(request, abort)
    }

    fn warm(&mut self, prompt: &FimPrompt, abort: &AtomicBool) -> Result<(), EngineError> {
        self.0.warm(prompt, abort)
    }

    fn score(
        &mut self,
        request: &ScoreRequest,
        abort: &AtomicBool,
    ) -> Result<Vec<Score>, EngineError> {
        if request.adapters.contains(&self.1) {
            return Err(EngineError::NotFinite(self.1));
        }
        self.0.score(request, abort)
    }

    fn load_adapter(
        &mut self,
        version: AdapterVersion,
        path: &Path,
        keep: &[AdapterVersion],
    ) -> Result<(), EngineError> {
        self.0.load_adapter(version, path, keep)
    }
}
