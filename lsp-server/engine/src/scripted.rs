//! An engine that gives fixed answers, for unit tests of the code around the engine.

use super::continuation::{Continuation, Continued};
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

/// An answer with a line break behind this text. Each byte is a token.
pub fn answer(healing: &str, text: &str, logprob: f32) -> Answer {
    let text = format!("{healing}{text}\n").into_bytes();
    let token = |&byte: &u8| TokenRecord { id: u32::from(byte), logprob };
    Answer {
        tokens: text.iter().map(token).collect(),
        visible_logprobs: vec![logprob; text.len()],
        healed: healing.len(),
        ends: (1..=text.len()).collect(),
        text,
        given_up: None,
        stop: StopReason::Newline,
        decode_time: Duration::ZERO,
        experts: None,
    }
}

/// Answers to a prompt of one token.
pub fn generated(answers: Vec<Answer>) -> Generated {
    Generated {
        prompt: vec![0],
        adapter_from: 0,
        prompt_reused: 0,
        prompt_evaluated: 1,
        prompt_time: Duration::ZERO,
        without_context: false,
        answers,
    }
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
        let answer = |text: &&str| Answer {
            decode_time: self.takes,
            ..answer(&request.prompt.healing, text, LOGPROB)
        };
        let wanted = 1 + request.alternatives;
        Ok(generated(answers.iter().take(wanted).map(answer).collect()))
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

type Generate =
    dyn FnMut(&mut ScriptedEngine, &Request, &AtomicBool) -> Result<Generated, EngineError> + Send;

type Continue = dyn FnMut(&Continuation, &AtomicBool) -> Result<Continued, EngineError> + Send;

type Warm = dyn FnMut(&FimPrompt, &AtomicBool) -> Result<(), EngineError> + Send;

type Scores = Result<Vec<Score>, EngineError>;

type ScoreText = dyn FnMut(&mut ScriptedEngine, &ScoreRequest, &AtomicBool) -> Scores + Send;

type LoadAdapter =
    dyn FnMut(AdapterVersion, &Path, &[AdapterVersion]) -> Result<(), EngineError> + Send;

type PromptKv = dyn FnMut(&[u32]) -> Option<Vec<u8>> + Send;

/// A [`ScriptedEngine`] in whose place a test answers what it is asked.
pub struct HookedEngine {
    pub scripted: ScriptedEngine,
    pub generate: Box<Generate>,
    pub continued: Box<Continue>,
    pub warm: Box<Warm>,
    pub score: Box<ScoreText>,
    pub load_adapter: Box<LoadAdapter>,
    pub prompt_kv: Box<PromptKv>,
}

impl ScriptedEngine {
    /// An engine that does what this one does, for a test to replace parts of it.
    pub fn hooked(self) -> HookedEngine {
        HookedEngine {
            scripted: self,
            generate: Box::new(|scripted, request, abort| scripted.generate(request, abort)),
            continued: Box::new(|_, _| Err(EngineError::Failed("no files are continued".into()))),
            warm: Box::new(|_, _| Ok(())),
            score: Box::new(|scripted, request, abort| scripted.score(request, abort)),
            load_adapter: Box::new(|_, _, _| Ok(())),
            prompt_kv: Box::new(|_| None),
        }
    }
}

impl Engine for HookedEngine {
    fn info(&self) -> EngineInfo {
        self.scripted.info()
    }

    fn tokenizer(&self) -> Tokenizer {
        self.scripted.tokenizer()
    }

    fn generate(
        &mut self,
        request: &Request,
        abort: &AtomicBool,
    ) -> Result<Generated, EngineError> {
        (self.generate)(&mut self.scripted, request, abort)
    }

    fn continued(
        &mut self,
        request: &Continuation,
        abort: &AtomicBool,
    ) -> Result<Continued, EngineError> {
        (self.continued)(request, abort)
    }

    fn warm(&mut self, prompt: &FimPrompt, abort: &AtomicBool) -> Result<(), EngineError> {
        (self.warm)(prompt, abort)
    }

    fn score(
        &mut self,
        request: &ScoreRequest,
        abort: &AtomicBool,
    ) -> Result<Vec<Score>, EngineError> {
        (self.score)(&mut self.scripted, request, abort)
    }

    fn load_adapter(
        &mut self,
        version: AdapterVersion,
        path: &Path,
        keep: &[AdapterVersion],
    ) -> Result<(), EngineError> {
        (self.load_adapter)(version, path, keep)
    }

    fn prompt_kv(&mut self, prompt: &[u32]) -> Option<Vec<u8>> {
        (self.prompt_kv)(prompt)
    }
}
