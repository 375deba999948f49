use super::*;
use crate::scripted::ScriptedEngine;
use crate::unloading::UnloadingEngine;

/// The time after which the model is unloaded here.
const AFTER: Duration = Duration::from_millis(20);

fn scripted() -> Result<ScriptedEngine, EngineError> {
    Ok(ScriptedEngine { answers: &["x"], learned: None, takes: Duration::ZERO })
}

fn prompt() -> FimPrompt {
    FimPrompt {
        context: None,
        prefix: String::new(),
        typed: String::new(),
        line: String::new(),
        healing: String::new(),
        suffix: String::new(),
    }
}

fn until(handle: &EngineHandle, wanted: Resident) {
    while handle.resident() != wanted {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn an_engine_that_nobody_asks_gives_its_memory_back_until_the_next_request() {
    let unload = UnloadRule { after: Some(AFTER), ..UnloadRule::default() };
    let residence = unload.residence.clone();
    let build = move || UnloadingEngine::new(scripted, residence);
    let handle = EngineHandle::start(build, |_| (), unload).unwrap();
    assert_eq!(handle.resident(), Resident::Loaded);
    until(&handle, Resident::Unloaded);
    handle.warm(prompt());
    until(&handle, Resident::Loaded);
    until(&handle, Resident::Unloaded);
}

/// An engine that leaves other code out of each prompt that was not computed in advance.
struct Impatient {
    scripted: ScriptedEngine,
    warmed: Vec<FimPrompt>,
}

impl Engine for Impatient {
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
        let without_context = !self.warmed.contains(&request.prompt);
        Ok(Generated { without_context, ..self.scripted.generate(request, abort)? })
    }

    fn warm(&mut self, prompt: &FimPrompt, _: &AtomicBool) -> Result<(), EngineError> {
        self.warmed.push(prompt.clone());
        Ok(())
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
        path: &std::path::Path,
        keep: &[AdapterVersion],
    ) -> Result<(), EngineError> {
        self.scripted.load_adapter(version, path, keep)
    }
}

fn request(line: &str) -> Request {
    Request {
        prompt: FimPrompt { line: line.into(), ..prompt() },
        adapter: 0,
        sampling: feedback::event::Sampling::GREEDY,
        stop_rule: completion::stop_rule::StopRule::LINE,
        max_tokens: 1,
        budget: Duration::MAX,
        min_probability: 0.0,
        alternatives: 0,
        context_wait: Duration::ZERO,
        draft: None,
    }
}

#[test]
fn a_prompt_whose_other_code_was_left_out_is_computed_in_advance() {
    let build = || Ok(Impatient { scripted: scripted()?, warmed: vec![] });
    let handle = EngineHandle::start(build, |_| (), UnloadRule::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let request = request("");
    let ask = || {
        let answer = handle.generate(request.clone(), Arc::default());
        runtime.block_on(answer).unwrap().without_context
    };
    assert!(ask(), "nothing was computed before");
    let patience = Instant::now() + Duration::from_secs(60);
    while ask() {
        assert!(Instant::now() < patience, "the prompt is never computed");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// An engine that notes what it is asked, and computes some of it until it is interrupted.
struct Endless {
    scripted: ScriptedEngine,
    asked: Arc<std::sync::Mutex<Vec<String>>>,
}

const ENDLESS: &str = "endless";

impl Engine for Endless {
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
        self.asked.lock().unwrap().push(request.prompt.line.clone());
        if request.prompt.line == ENDLESS {
            while !abort.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
            return Err(EngineError::Aborted);
        }
        self.scripted.generate(request, abort)
    }

    fn warm(&mut self, prompt: &FimPrompt, abort: &AtomicBool) -> Result<(), EngineError> {
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
        path: &std::path::Path,
        keep: &[AdapterVersion],
    ) -> Result<(), EngineError> {
        self.scripted.load_adapter(version, path, keep)
    }
}

#[test]
fn what_is_computed_ahead_ends_when_a_request_comes() {
    let asked = Arc::<std::sync::Mutex<Vec<String>>>::default();
    let noted = asked.clone();
    let build = move || Ok(Endless { scripted: scripted()?, asked: noted });
    let handle = EngineHandle::start(build, |_| (), UnloadRule::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    handle.ahead(vec![request("first"), request(ENDLESS), request("never")]);
    while asked.lock().unwrap().len() < 2 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let answer = handle.generate(request("now"), Arc::default());
    runtime.block_on(answer).expect("an answer, although the other would not end");
    assert_eq!(*asked.lock().unwrap(), ["first", ENDLESS, "now"]);
}
