use super::*;
use crate::ScorePrompt;
use crate::scripted::{HookedEngine, ScriptedEngine};
use crate::unloading::UnloadingEngine;
use std::sync::atomic::AtomicUsize;

/// The time after which the model is unloaded here.
const AFTER: Duration = Duration::from_millis(20);

/// The longest wait for the engine's thread.
const PATIENCE: Duration = Duration::from_secs(60);

fn scripted() -> Result<ScriptedEngine, EngineError> {
    Ok(ScriptedEngine { answers: &["x"], learned: None, takes: Duration::ZERO })
}

fn wait_for(what: &str, is_reached: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_reached() {
        assert!(since.elapsed() < PATIENCE, "it never comes to this: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn until(handle: &EngineHandle, wanted: Resident) {
    wait_for(&format!("the model is {wanted:?}"), || handle.resident() == wanted);
}

#[test]
fn an_engine_that_nobody_asks_gives_its_memory_back_until_the_next_request() {
    let unload = IdleRule { unload_after: Some(AFTER), ..IdleRule::default() };
    let residence = unload.residence.clone();
    let loads = Arc::new(AtomicUsize::new(0));
    let counted = loads.clone();
    let load = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        scripted()
    };
    let build = move || UnloadingEngine::new(load, Box::new(|_| PathBuf::new()), residence);
    let handle = EngineHandle::start(build, |_| (), unload).unwrap();
    until(&handle, Resident::Unloaded);
    assert_eq!(loads.load(Ordering::SeqCst), 1, "it stays unloaded while nobody asks");
    handle.warm(FimPrompt::default());
    wait_for("the model is loaded again", || loads.load(Ordering::SeqCst) == 2);
    until(&handle, Resident::Unloaded);
    assert_eq!(loads.load(Ordering::SeqCst), 2);
}

/// A model that is unloaded on request must not come back by a prompt that was to be computed in
/// advance.
#[test]
fn what_is_unloaded_on_request_stays_so_until_the_next_request() {
    let unload = IdleRule::default();
    let residence = unload.residence.clone();
    let build = move || UnloadingEngine::new(scripted, Box::new(|_| PathBuf::new()), residence);
    let handle = EngineHandle::start(build, |_| (), unload).unwrap();
    handle.warm(FimPrompt::default());
    handle.unload().unwrap();
    until(&handle, Resident::Unloaded);
    std::thread::sleep(AFTER);
    assert_eq!(handle.resident(), Resident::Unloaded);
    handle.warm(FimPrompt::default());
    until(&handle, Resident::Loaded);
}

fn hooked() -> HookedEngine {
    scripted().unwrap().hooked()
}

fn request(line: &str) -> Request {
    Request::line(FimPrompt { line: line.into(), ..FimPrompt::default() }, 1)
}

#[test]
fn a_prompt_whose_other_code_was_left_out_is_computed_in_advance() {
    let warmed = Arc::<std::sync::Mutex<Vec<FimPrompt>>>::default();
    let known = warmed.clone();
    let generate = move |scripted: &mut ScriptedEngine, request: &Request, abort: &AtomicBool| {
        let without_context = !known.lock().unwrap().contains(&request.prompt);
        Ok(Generated { without_context, ..scripted.generate(request, abort)? })
    };
    let warm = move |prompt: &FimPrompt, _: &AtomicBool| {
        warmed.lock().unwrap().push(prompt.clone());
        Ok(())
    };
    let build = || {
        let (generate, warm) = (Box::new(generate), Box::new(warm));
        Ok(HookedEngine { generate, warm, ..hooked() })
    };
    let handle = EngineHandle::start(build, |_| (), IdleRule::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let request = request("");
    let ask = || {
        let answer = handle.generate(request.clone(), Arc::default());
        runtime.block_on(answer).unwrap().without_context
    };
    assert!(ask(), "nothing was computed before");
    wait_for("the prompt is computed", || !ask());
}

/// A line that is computed until it is interrupted.
const ENDLESS: &str = "endless";

/// Computes until it is interrupted.
fn interrupted(abort: &AtomicBool) -> EngineError {
    while !abort.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(1));
    }
    EngineError::Aborted
}

/// The whole prompt with other code takes seconds. Nothing was computed ahead meanwhile, so the
/// next offer was not there after an accept.
#[test]
fn what_is_computed_ahead_comes_before_a_prompt_which_then_continues() {
    let done = Arc::<std::sync::Mutex<Vec<&str>>>::default();
    let (warmed, asked) = (done.clone(), done.clone());
    let warm = move |_: &FimPrompt, abort: &AtomicBool| {
        let continues = !warmed.lock().unwrap().is_empty();
        warmed.lock().unwrap().push("prompt");
        if continues { Ok(()) } else { Err(interrupted(abort)) }
    };
    let generate = move |scripted: &mut ScriptedEngine, request: &Request, abort: &AtomicBool| {
        asked.lock().unwrap().push("ahead");
        scripted.generate(request, abort)
    };
    let build = || {
        let (generate, warm) = (Box::new(generate), Box::new(warm));
        Ok(HookedEngine { generate, warm, ..hooked() })
    };
    let handle = EngineHandle::start(build, |_| (), IdleRule::default()).unwrap();
    let until = |count: usize| {
        while done.lock().unwrap().len() < count {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    handle.warm(FimPrompt::default());
    until(1);
    handle.ahead(vec![request("next")]);
    until(3);
    assert_eq!(*done.lock().unwrap(), ["prompt", "ahead", "prompt"]);
}

#[test]
fn what_is_computed_ahead_ends_when_a_request_comes() {
    let asked = Arc::<std::sync::Mutex<Vec<String>>>::default();
    let noted = asked.clone();
    let generate = move |scripted: &mut ScriptedEngine, request: &Request, abort: &AtomicBool| {
        noted.lock().unwrap().push(request.prompt.line.clone());
        if request.prompt.line == ENDLESS {
            return Err(interrupted(abort));
        }
        scripted.generate(request, abort)
    };
    let build = || Ok(HookedEngine { generate: Box::new(generate), ..hooked() });
    let handle = EngineHandle::start(build, |_| (), IdleRule::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    handle.ahead(vec![request("first"), request(ENDLESS), request("never")]);
    while asked.lock().unwrap().len() < 2 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let answer = handle.generate(request("now"), Arc::default());
    runtime.block_on(answer).expect("an answer, although the other would not end");
    assert_eq!(*asked.lock().unwrap(), ["first", ENDLESS, "now"]);
}

/// Computing ahead changes what the engine holds of the last prompt.
#[test]
fn a_prompt_is_copied_before_anything_is_computed_ahead_and_not_after_a_request() {
    let done = Arc::<std::sync::Mutex<Vec<&str>>>::default();
    let (asked, copied) = (done.clone(), done.clone());
    let generate = move |scripted: &mut ScriptedEngine, request: &Request, abort: &AtomicBool| {
        let is_first = asked.lock().unwrap().is_empty();
        asked.lock().unwrap().push("answer");
        if is_first {
            // The others come while this one is computed.
            let _ = interrupted(abort);
        }
        scripted.generate(request, abort)
    };
    let prompt_kv = move |_: &[u32]| {
        copied.lock().unwrap().push("copy");
        Some(vec![])
    };
    let build = || {
        let (generate, prompt_kv) = (Box::new(generate), Box::new(prompt_kv));
        Ok(HookedEngine { generate, prompt_kv, ..hooked() })
    };
    let handle = EngineHandle::start(build, |_| (), IdleRule::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    // It is put ahead first, so that what is computed ahead is interrupted by what follows.
    handle.ahead(vec![request("first")]);
    while done.lock().unwrap().is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let late = handle.prompt_kv(vec![1]);
    let answer = handle.generate(request("now"), Arc::default());
    runtime.block_on(answer).expect("an answer");
    assert!(runtime.block_on(late).is_err(), "the engine holds another prompt by now");
    let kv = handle.prompt_kv(vec![1]);
    handle.ahead(vec![request("next")]);
    assert_eq!(runtime.block_on(kv).unwrap(), Some(vec![]));
    while done.lock().unwrap().len() < 4 {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(*done.lock().unwrap(), ["answer", "answer", "copy", "answer"]);
}

#[tokio::test]
async fn a_thread_that_panics_is_known_and_one_that_ends_by_itself_is_no_trouble() {
    let panicking =
        HookedEngine { generate: Box::new(|_, _, _| panic!("let canary = 1;")), ..hooked() };
    let handle = EngineHandle::start(move || Ok(panicking), |_| (), IdleRule::default()).unwrap();
    let panicked = handle.panicked();
    let asked = handle.generate(request("a"), Arc::default()).await;
    assert!(matches!(asked, Err(EngineError::Gone)));
    assert!(panicked.await);

    let handle = EngineHandle::start(scripted, |_| (), IdleRule::default()).unwrap();
    let panicked = handle.panicked();
    drop(handle);
    assert!(!panicked.await);
}

/// A key interrupts a score even if no request follows, and an answer does not wait for the rest.
#[test]
fn a_score_gives_way_to_a_key_and_to_a_request_and_then_continues() {
    let done = Arc::<Mutex<Vec<&str>>>::default();
    let (scored, asked) = (done.clone(), done.clone());
    let score = move |scripted: &mut ScriptedEngine, request: &ScoreRequest, abort: &AtomicBool| {
        let tries = scored.lock().len();
        scored.lock().push("score");
        // The key and the request each interrupt it once.
        if tries == 0 || tries == 1 {
            Err(interrupted(abort))
        } else {
            scripted.score(request, abort)
        }
    };
    let generate = move |scripted: &mut ScriptedEngine, request: &Request, abort: &AtomicBool| {
        asked.lock().push("answer");
        scripted.generate(request, abort)
    };
    let (busy, idle) = (Arc::<Mutex<Vec<bool>>>::default(), IdleRule::default());
    let told = busy.clone();
    let build =
        || Ok(HookedEngine { generate: Box::new(generate), score: Box::new(score), ..hooked() });
    let handle = EngineHandle::start(build, move |busy| told.lock().push(busy), idle).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let scoring = handle.clone();
    let score = runtime.spawn(async move {
        let prompt = ScorePrompt::Fim(FimPrompt::default());
        let (healing, tokens, adapters) = (String::new(), vec![1], vec![2, 1]);
        scoring.score(ScoreRequest { prompt, healing, tokens, adapters }).await
    });
    wait_for("the score begins", || done.lock().len() == 1);
    assert_eq!(handle.work(), Work::Scoring);
    handle.key();
    wait_for("the score begins again", || done.lock().len() == 2);
    runtime.block_on(handle.generate(request("now"), Arc::default())).expect("an answer");
    let scored = runtime.block_on(score).unwrap().expect("the scores");
    assert_eq!(scored.scores.len(), 2);
    assert!(!scored.took.is_zero());
    assert_eq!(*done.lock(), ["score", "score", "answer", "score"]);
    wait_for("the engine rests", || handle.work() == Work::Nothing);
    wait_for("that is told", || *busy.lock() == [true, false]);
}
