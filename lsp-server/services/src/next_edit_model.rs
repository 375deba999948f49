//! The model that writes next edits, if the settings name one. It is loaded when it is asked for
//! the first time, has a thread of its own, and gives way to whatever the user does: a key and a
//! completion end what it computes.

use engine::EngineError;
use engine::continuation::{Continuation, Continued};
use engine::unloading::Resident;
use engine::worker::EngineHandle;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Loads the model, which takes a second and more.
pub type Load = Box<dyn Fn() -> Result<EngineHandle, EngineError> + Send + Sync>;

pub struct NextEditModel {
    load: Load,
    /// Held while the model is loaded. Only who needs the engine waits for that.
    loading: Mutex<()>,
    /// The engine, once the model was asked.
    engine: Mutex<Option<EngineHandle>>,
    turns: Mutex<Turns>,
}

/// Who computes. One lock has both, so that neither side misses the other.
#[derive(Default)]
struct Turns {
    /// The completions that are computed.
    completions: usize,
    asking: Vec<Request>,
}

impl Turns {
    fn interrupt(&self) {
        self.asking.iter().for_each(Request::end);
    }
}

/// A request under way.
struct Request {
    asker: usize,
    /// The asker's requests are counted.
    number: u64,
    /// Ends the request.
    abort: Arc<AtomicBool>,
}

impl Request {
    fn end(&self) {
        self.abort.store(true, Ordering::Relaxed);
    }
}

/// A request to the model. Once it is interrupted, nothing is computed for it any more.
pub struct Asking {
    model: Arc<NextEditModel>,
    abort: Arc<AtomicBool>,
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.model.turns.lock().asking.retain(|request| !Arc::ptr_eq(&request.abort, &self.abort));
    }
}

/// A completion that is computed. The model waits until this is dropped.
pub struct Completing(Arc<NextEditModel>);

impl Drop for Completing {
    fn drop(&mut self) {
        self.0.turns.lock().completions -= 1;
    }
}

impl NextEditModel {
    pub fn new(load: Load) -> NextEditModel {
        let (loading, engine, turns) = Default::default();
        NextEditModel { load, loading, engine, turns }
    }

    /// Begins a request instead of the asker's last one. A key ends it from now on, so the text is
    /// looked at behind this. `None` while a completion is computed, or where the asker has begun a
    /// request of a higher number.
    pub fn begin(self: &Arc<Self>, asker: usize, number: u64) -> Option<Asking> {
        let mut turns = self.turns.lock();
        let own = |request: &&Request| request.asker == asker;
        let is_late = turns.asking.iter().filter(own).any(|request| request.number > number);
        if turns.completions > 0 || is_late {
            return None;
        }
        turns.asking.iter().filter(own).for_each(Request::end);
        let abort = Arc::<AtomicBool>::default();
        turns.asking.push(Request { asker, number, abort: abort.clone() });
        Some(Asking { model: self.clone(), abort })
    }

    /// Ends what is computed, because the user types.
    pub fn interrupt(&self) {
        self.turns.lock().interrupt();
    }

    /// Ends what is computed, because a completion is. Nothing begins until that has ended too.
    pub fn give_way(self: &Arc<Self>) -> Completing {
        let mut turns = self.turns.lock();
        turns.completions += 1;
        turns.interrupt();
        Completing(self.clone())
    }

    /// Returns whether the model is in memory. `None` before its first request.
    pub fn resident(&self) -> Option<Resident> {
        self.engine.lock().as_ref().map(EngineHandle::resident)
    }

    /// Gives the model's memory back, and with it all that is held of prompts. A model that is
    /// being loaded holds none, and whoever waits for it is interrupted.
    ///
    /// # Errors
    /// The engine has too much to do.
    pub fn unload(&self) -> Result<(), EngineError> {
        self.interrupt();
        let engine = self.engine.lock().clone();
        match engine.map_or(Ok(()), |engine| engine.unload()) {
            // A thread that has ended holds nothing.
            Err(EngineError::Gone) => Ok(()),
            unloaded => unloaded,
        }
    }

    fn loaded(&self) -> Result<EngineHandle, EngineError> {
        let _one_load = self.loading.lock();
        let known = self.engine.lock().clone();
        if let Some(engine) = known {
            return Ok(engine);
        }
        let engine = (self.load)()?;
        *self.engine.lock() = Some(engine.clone());
        Ok(engine)
    }
}

impl Asking {
    /// Continues files.
    ///
    /// # Errors
    /// The model cannot be loaded, or the request was interrupted ([`EngineError::Aborted`]).
    pub async fn ask(&self, files: Continuation) -> Result<Continued, EngineError> {
        if self.abort.load(Ordering::Relaxed) {
            return Err(EngineError::Aborted);
        }
        let model = self.model.clone();
        let loaded = host::tasks::blocking(move || model.loaded()).await;
        let engine = loaded.map_err(|error| EngineError::Failed(error.to_string()))??;
        let answer = engine.continued(files, self.abort.clone()).await;
        if matches!(answer, Err(EngineError::Gone)) {
            // Its thread has ended. The next request loads the model again.
            *self.model.engine.lock() = None;
        }
        answer
    }
}
