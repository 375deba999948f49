//! An engine that gives fixed answers, for unit tests of the code around the engine.

use super::speed::PromptSpeed;
use super::{
    Answer, Engine, EngineError, EngineInfo, Generated, Request, Score, ScoreRequest, Tokenizer,
};
use completion::prompt::FimPrompt;
use feedback::event::{AdapterVersion, StopReason, TokenRecord};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// ln π of each byte of an answer.
const LOGPROB: f32 = -0.1;

/// Answers every prompt with the same texts; each byte is one token.
pub struct ScriptedEngine {
    /// The first answer and its alternatives.
    pub answers: &'static [&'static str],
    /// The answers of an adapter, if they differ.
    pub learned: Option<&'static [&'static str]>,
    /// The time that a completion takes. The abort flag is checked every millisecond.
    pub takes: Duration,
}

impl Engine for ScriptedEngine {
    fn info(&self) -> EngineInfo {
        EngineInfo { backend: "scripted".into(), reads_files: true, speed: PromptSpeed::default() }
    }

    fn tokenizer(&self) -> Tokenizer {
        Arc::new(|text| text.bytes().map(u32::from).collect())
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
        let learned = self.learned.filter(|_| request.adapter > 0);
        let answers = learned.unwrap_or(self.answers);
        let answer = |text: &&str| {
            let token = |&byte: &u8| TokenRecord { id: u32::from(byte), logprob: LOGPROB };
            let text = format!("{}{text}\n", request.prompt.healing).into_bytes();
            let tokens = text.iter().map(token).collect();
            let visible_logprobs = vec![LOGPROB; text.len()];
            let healed = request.prompt.healing.len();
            Answer {
                tokens,
                visible_logprobs,
                healed,
                ends: (1..=text.len()).collect(),
                text,
                given_up: None,
                stop: StopReason::Newline,
                decode_time: self.takes,
                experts: None,
            }
        };
        let wanted = 1 + request.alternatives;
        Ok(Generated {
            prompt: vec![0],
            adapter_from: 0,
            prompt_reused: 0,
            prompt_evaluated: 1,
            prompt_time: Duration::ZERO,
            without_context: false,
            answers: answers.iter().take(wanted).map(answer).collect(),
        })
    }

    /// The engine has nothing to compute in advance.
    fn warm(&mut self, _: &FimPrompt, _: &AtomicBool) -> Result<(), EngineError> {
        Ok(())
    }

    fn score(
        &mut self,
        request: &ScoreRequest,
        _abort: &AtomicBool,
    ) -> Result<Vec<Score>, EngineError> {
        let score = |version: &AdapterVersion| Score {
            logprob: -10.0 / (1.0 + *version as f32),
            is_greedy: *version > 0,
        };
        Ok(request.adapters.iter().map(score).collect())
    }

    fn load_adapter(
        &mut self,
        _version: AdapterVersion,
        _path: &Path,
        _keep: &[AdapterVersion],
    ) -> Result<(), EngineError> {
        Ok(())
    }
}
