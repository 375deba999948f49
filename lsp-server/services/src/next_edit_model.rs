//! The model that writes next edits, if the settings name one. It is loaded when it is asked for
//! the first time, has a thread of its own, and gives way to whatever the user does: a key and a
//! request for a completion end what it computes.

use engine::EngineError;
use engine::continuation::{Continuation, Continued};
use engine::worker::EngineHandle;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Loads the model, which takes a second and more.
pub type Load = Box<dyn Fn() -> Result<EngineHandle, EngineError> + Send + Sync>;

pub struct NextEditModel {
    load: Load,
    /// The engine, once the model was asked. The lock is held while it is loaded.
    engine: Mutex<Option<EngineHandle>>,
    /// The flag that ends what is computed.
    current: Mutex<Arc<AtomicBool>>,
}

impl NextEditModel {
    pub fn new(load: Load) -> NextEditModel {
        NextEditModel { load, engine: Mutex::default(), current: Mutex::default() }
    }

    /// Continues files. Nothing else is computed from now on.
    ///
    /// # Errors
    /// The model cannot be loaded, or it was interrupted ([`EngineError::Aborted`]).
    pub async fn ask(self: &Arc<Self>, files: Continuation) -> Result<Continued, EngineError> {
        let abort = Arc::<AtomicBool>::default();
        let before = std::mem::replace(&mut *self.current.lock(), abort.clone());
        before.store(true, Ordering::Relaxed);
        let model = self.clone();
        let loaded = host::tasks::blocking(move || model.loaded()).await;
        let engine = loaded.map_err(|error| EngineError::Failed(error.to_string()))??;
        engine.continued(files, abort).await
    }

    /// Ends what is computed, because the user types or waits for a completion.
    pub fn interrupt(&self) {
        self.current.lock().store(true, Ordering::Relaxed);
    }

    /// Gives the model's memory back, and with it all that is held of prompts.
    ///
    /// # Errors
    /// The engine does not listen any more.
    pub fn unload(&self) -> Result<(), EngineError> {
        self.interrupt();
        let engine = self.engine.lock().clone();
        engine.map_or(Ok(()), |engine| engine.unload())
    }

    fn loaded(&self) -> Result<EngineHandle, EngineError> {
        let mut engine = self.engine.lock();
        if engine.is_none() {
            *engine = Some((self.load)()?);
        }
        engine.clone().ok_or(EngineError::Gone)
    }
}
