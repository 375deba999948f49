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
