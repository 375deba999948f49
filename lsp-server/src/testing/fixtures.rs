//! The values that many unit tests need: a home, an engine, an event.

use completion::prompt::FimPrompt;
use engine::continuation::{Continuation, Continued};
use engine::scripted::ScriptedEngine;
use engine::{Engine, EngineError, EngineInfo, Generated, Request, Score, ScoreRequest, Tokenizer};
use feedback::event::{AdapterVersion, Completion, EventKind};
use feedback::testing;
use host::paths::Paths;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A home with its folders in a temporary folder, which must outlive it.
pub fn home() -> (TempDir, Paths) {
    let folder = tempfile::tempdir().unwrap();
    let home = Paths::at(folder.path().into());
    home.create().unwrap();
    (folder, home)
}

/// An engine that answers every request at once with these texts, whatever the adapter is.
pub fn engine(answers: &'static [&'static str]) -> ScriptedEngine {
    ScriptedEngine { answers, learned: None, takes: Duration::ZERO }
}

type Generate =
    dyn FnMut(&mut ScriptedEngine, &Request, &AtomicBool) -> Result<Generated, EngineError> + Send;

type Continue = dyn FnMut(&Continuation, &AtomicBool) -> Result<Continued, EngineError> + Send;

/// A [`ScriptedEngine`] in whose place a test answers requests, and which counts the prompts that
/// it prepares.
pub struct HookedEngine {
    pub scripted: ScriptedEngine,
    pub generate: Box<Generate>,
    pub prepared: Arc<AtomicUsize>,
    /// Continues files, if the test has a model for next edits.
    pub continued: Option<Box<Continue>>,
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
        match &mut self.continued {
            Some(continued) => continued(request, abort),
            None => self.scripted.continued(request, abort),
        }
    }

    fn warm(&mut self, prompt: &FimPrompt, abort: &AtomicBool) -> Result<(), EngineError> {
        self.prepared.fetch_add(1, Ordering::Relaxed);
        self.scripted.warm(prompt, abort)
    }

    fn score(
        &mut self,
        request: &ScoreRequest,
        abort: &AtomicBool,
    ) -> Result<Vec<Score>, EngineError> {
        self.scripted.score(request, abort)
    }

    fn load_adapter(
        &mut self,
        version: AdapterVersion,
        path: &Path,
        keep: &[AdapterVersion],
    ) -> Result<(), EngineError> {
        self.scripted.load_adapter(version, path, keep)
    }
}

/// Waits for something that another task or thread brings about.
pub async fn eventually(what: &str, happened: impl Fn() -> bool) {
    const PATIENCE: Duration = Duration::from_secs(60);
    let started = Instant::now();
    while !happened() {
        assert!(started.elapsed() < PATIENCE, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The event of a completion in this file that offers ten characters.
pub fn completion(id: &str, path: &str) -> EventKind {
    testing::served(Completion { path: path.into(), ..testing::completion(id) })
}
