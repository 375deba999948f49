//! The model's word on a next edit: when it is asked for, what becomes of it, and that nobody waits
//! for it in vain.

use super::*;
use crate::config::NextEditScore;
use crate::session::next_edit::Search;
use crate::session::next_edit::log_ratio::Texts;
use completion::prompt::FimPrompt;
use engine::unloading::{Residence, UnloadingEngine};
use engine::worker::{EngineHandle, UnloadRule};
use engine::{Engine, EngineError, EngineInfo, Generated, Request, Score, ScoreRequest, Tokenizer};
use feedback::event::{AdapterVersion, NextEdit};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// ln P of a text that the model likes, and of any other.
const LIKELY: f32 = -1.0;
const UNLIKELY: f32 = -4.0;

/// How long a model is busy that is not interrupted.
const BUSY_STEPS: usize = 5_000;

/// A model that finds texts with a word likely.
struct Opinion {
    scripted: ScriptedEngine,
    likes: &'static str,
    /// Whether it takes its time, until it is interrupted.
    is_slow: bool,
    /// How often it was asked.
    asked: Arc<AtomicUsize>,
}

impl Opinion {
    fn of(likes: &'static str) -> (Opinion, Arc<AtomicUsize>) {
        let scripted = ScriptedEngine { answers: &["x"], learned: None, takes: Duration::ZERO };
        let asked = Arc::new(AtomicUsize::default());
        (Opinion { scripted, likes, is_slow: false, asked: asked.clone() }, asked)
    }
}

impl Engine for Opinion {
    fn info(&self) -> EngineInfo {
        self.scripted.info()
    }

    fn tokenizer(&self) -> Tokenizer {
        self.scripted.tokenizer()
    }

    fn generate(&mut self, one: &Request, abort: &AtomicBool) -> Result<Generated, EngineError> {
        self.scripted.generate(one, abort)
    }

    fn warm(&mut self, prompt: &FimPrompt, abort: &AtomicBool) -> Result<(), EngineError> {
        self.scripted.warm(prompt, abort)
    }

    fn score(
        &mut self,
        request: &ScoreRequest,
        abort: &AtomicBool,
    ) -> Result<Vec<Score>, EngineError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        for _ in 0..if self.is_slow { BUSY_STEPS } else { 0 } {
            std::thread::sleep(Duration::from_millis(1));
            if abort.load(Ordering::Relaxed) {
                return Err(EngineError::Aborted);
            }
        }
        let bytes = request.tokens.iter().map(|token| *token as u8).collect();
        let is_liked = String::from_utf8(bytes).unwrap().contains(self.likes);
        let logprob = if is_liked { LIKELY } else { UNLIKELY };
        Ok(vec![Score { logprob, is_greedy: false }])
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

async fn user_of(score: NextEditScore, opinion: Opinion) -> User {
    let mut config = Config::default();
    config.completion.next_edit = Setting::On;
    config.lab.next_edit_score = score;
    let (home, session) = session_as_set(config, opinion).await;
    let document = open(&session, URI, LINES);
    let mut user = User { session, uri: URI.into(), document, _home: home };
    for line in 0..2 {
        user.replace(line, "load", "fetch");
    }
    user
}

impl User {
    /// The next edits that are recorded.
    fn recorded(&self) -> Vec<NextEdit> {
        let edit = |event| match event {
            EventKind::NextEdit(edit) => Some(*edit),
            _ => None,
        };
        self.events().into_iter().filter_map(edit).collect()
    }
}

#[tokio::test]
async fn what_the_model_says_is_recorded_and_counts() {
    let mut probabilities = vec![];
    for (likes, expected) in [("fetch", LIKELY - UNLIKELY), ("load", UNLIKELY - LIKELY)] {
        let (opinion, asked) = Opinion::of(likes);
        let user = user_of(NextEditScore::Unsure, opinion).await;
        assert!(user.ask(1).await.is_some(), "a rule's first place is shown all the same");
        assert_eq!(asked.load(Ordering::SeqCst), 2, "the old and the new text");
        let edit = user.recorded().remove(0);
        assert_eq!(edit.log_ratio, Some(expected));
        probabilities.push(edit.gate.unwrap().probability);
    }
    assert!(probabilities[0] > probabilities[1], "{probabilities:?}");
}

#[tokio::test]
async fn the_model_is_asked_only_where_its_word_may_decide() {
    for (score, trigger) in [
        (NextEditScore::Off, Trigger::Automatic),
        (NextEditScore::Unsure, Trigger::Invoked),
        (NextEditScore::Always, Trigger::Invoked),
    ] {
        let (opinion, asked) = Opinion::of("fetch");
        let user = user_of(score, opinion).await;
        assert!(user.ask_by(1, trigger).await.is_some());
        assert_eq!(asked.load(Ordering::SeqCst), 0, "{score:?} {trigger:?}");
        assert_eq!(user.recorded()[0].log_ratio, None);
    }
}

#[tokio::test]
async fn a_completion_ends_the_wait_for_the_model() {
    let (mut opinion, asked) = Opinion::of("fetch");
    opinion.is_slow = true;
    let user = user_of(NextEditScore::Unsure, opinion).await;
    let (session, at) = (user.session.clone(), Position { line: 1, column: 0 });
    let version = Some(user.document.version);
    let waiting =
        tokio::spawn(async move { session.next_edit(URI, version, at, Trigger::Automatic).await });
    while asked.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let completed = user.session.complete(URI, at, Trigger::Automatic, None).await;
    assert!(completed.is_ok(), "it is answered");
    assert!(waiting.await.unwrap().is_ok(), "the gate decides without the model");
    assert_eq!(user.recorded()[0].log_ratio, None);
}

#[tokio::test]
async fn a_model_that_is_not_in_memory_is_not_loaded_for_it() {
    let residence = Residence::default();
    let loads = Arc::new(AtomicUsize::default());
    let (rule, counted) = (residence.clone(), loads.clone());
    let build = move || {
        let load = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(Opinion::of("fetch").0)
        };
        let mut engine = UnloadingEngine::new(load, Box::new(|_| PathBuf::new()), residence)?;
        engine.unload();
        Ok(engine)
    };
    let unload = UnloadRule { after: None, residence: rule };
    let engine = EngineHandle::start(build, |_| (), unload).unwrap();
    let texts = Texts::of(&Rope::from_str(LINES), &(5..9), "fetch").unwrap();
    assert_eq!(Search::default().log_ratio(&engine, texts, false, || true).await, None);
    assert_eq!(loads.load(Ordering::SeqCst), 1, "once at the start");
}
