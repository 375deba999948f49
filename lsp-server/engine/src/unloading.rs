//! An engine that gives the model's memory back while nobody asks it anything. The next request
//! loads the model again, with the adapters that were loaded.

use super::{Engine, EngineError, EngineInfo, Generated, Request, Score, ScoreRequest, Tokenizer};
use crate::continuation::{Continuation, Continued};
use completion::prompt::FimPrompt;
use feedback::event::AdapterVersion;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicU8, Ordering};

/// The flag by which everybody else reads whether the model is in memory.
#[derive(Debug, Clone, Default)]
pub struct Residence(Arc<AtomicU8>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resident {
    Loaded,
    Unloaded,
    Loading,
}

impl Residence {
    pub fn get(&self) -> Resident {
        match self.0.load(Ordering::Relaxed) {
            0 => Resident::Loaded,
            1 => Resident::Unloaded,
            _ => Resident::Loading,
        }
    }

    fn set(&self, resident: Resident) {
        self.0.store(resident as u8, Ordering::Relaxed);
    }
}

/// Names the file that an adapter has once it is registered.
pub type AdapterFiles = Box<dyn Fn(AdapterVersion) -> PathBuf + Send>;

/// `L` loads the engine.
pub struct UnloadingEngine<E, L> {
    load: L,
    files: AdapterFiles,
    /// `None` while the model is not in memory.
    engine: Option<E>,
    info: EngineInfo,
    tokenizer: Tokenizer,
    /// The adapters to load again with the model, and the files that they were loaded from.
    adapters: Vec<(AdapterVersion, PathBuf)>,
    residence: Residence,
}

impl<E: Engine, L: FnMut() -> Result<E, EngineError>> UnloadingEngine<E, L> {
    /// # Errors
    /// The model cannot be loaded.
    pub fn new(
        mut load: L,
        files: AdapterFiles,
        residence: Residence,
    ) -> Result<UnloadingEngine<E, L>, EngineError> {
        let engine = load()?;
        let (info, tokenizer) = (engine.info(), engine.tokenizer());
        Ok(UnloadingEngine {
            load,
            files,
            engine: Some(engine),
            info,
            tokenizer,
            adapters: vec![],
            residence,
        })
    }

    /// The engine, which is loaded again if it has to be.
    fn loaded(&mut self) -> Result<&mut E, EngineError> {
        if self.engine.is_none() {
            self.residence.set(Resident::Loading);
            let loaded = self.load_again();
            let now = if loaded.is_ok() { Resident::Loaded } else { Resident::Unloaded };
            self.residence.set(now);
            self.engine = Some(loaded?);
        }
        self.engine.as_mut().ok_or(EngineError::Gone)
    }

    fn load_again(&mut self) -> Result<E, EngineError> {
        let mut engine = (self.load)()?;
        // A candidate is loaded from a temporary file, which goes when it is registered.
        for (version, path) in &mut self.adapters {
            let registered = (self.files)(*version);
            if registered.exists() {
                *path = registered;
            }
        }
        // One that was forgotten in the meantime has no file at all, and no request asks for it.
        self.adapters.retain(|(_, path)| path.exists());
        let versions: Vec<_> = self.adapters.iter().map(|(version, _)| *version).collect();
        for (version, path) in &self.adapters {
            // It stays in the list, because there may be memory for it the next time.
            if let Err(error) = engine.load_adapter(*version, path, &versions) {
                tracing::warn!("adapter v{version}: {error}");
            }
        }
        Ok(engine)
    }
}

impl<E: Engine, L: FnMut() -> Result<E, EngineError>> Engine for UnloadingEngine<E, L> {
    fn info(&self) -> EngineInfo {
        self.info.clone()
    }

    fn tokenizer(&self) -> Tokenizer {
        self.tokenizer.clone()
    }

    fn generate(
        &mut self,
        request: &Request,
        abort: &AtomicBool,
    ) -> Result<Generated, EngineError> {
        self.loaded()?.generate(request, abort)
    }

    fn continued(
        &mut self,
        request: &Continuation,
        abort: &AtomicBool,
    ) -> Result<Continued, EngineError> {
        self.loaded()?.continued(request, abort)
    }

    fn warm(&mut self, prompt: &FimPrompt, abort: &AtomicBool) -> Result<(), EngineError> {
        self.loaded()?.warm(prompt, abort)
    }

    fn score(
        &mut self,
        request: &ScoreRequest,
        abort: &AtomicBool,
    ) -> Result<Vec<Score>, EngineError> {
        self.loaded()?.score(request, abort)
    }

    fn load_adapter(
        &mut self,
        version: AdapterVersion,
        path: &Path,
        keep: &[AdapterVersion],
    ) -> Result<(), EngineError> {
        self.loaded()?.load_adapter(version, path, keep)?;
        self.adapters.retain(|(known, _)| *known != version && keep.contains(known));
        self.adapters.push((version, path.to_owned()));
        Ok(())
    }

    /// A model that was unloaded holds no prompt, and is not loaded for one.
    fn prompt_kv(&mut self, prompt: &[u32]) -> Option<Vec<u8>> {
        self.engine.as_mut()?.prompt_kv(prompt)
    }

    fn unload(&mut self) {
        if self.engine.take().is_some() {
            super::platform::return_free_memory();
            self.residence.set(Resident::Unloaded);
        }
    }

    fn is_in_the_way(&self) -> bool {
        self.engine.as_ref().is_some_and(Engine::is_in_the_way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{HookedEngine, ScriptedEngine};
    use std::sync::Mutex;
    use std::time::Duration;

    /// An engine that notes its adapters in a list that all loads share.
    fn noting(notes: &Arc<Mutex<Vec<String>>>) -> HookedEngine {
        let scripted = ScriptedEngine { answers: &["x"], learned: None, takes: Duration::ZERO };
        let (prompts, adapters) = (notes.clone(), notes.clone());
        HookedEngine {
            warm: Box::new(move |_, _| {
                prompts.lock().unwrap().push("warm".into());
                Ok(())
            }),
            load_adapter: Box::new(move |version, path, keep| {
                let note = format!("{version} {} {keep:?}", path.display());
                adapters.lock().unwrap().push(note);
                Ok(())
            }),
            ..scripted.hooked()
        }
    }

    #[test]
    fn the_next_request_loads_the_model_with_the_adapters_that_were_kept() {
        let notes: Arc<Mutex<Vec<String>>> = Arc::default();
        let residence = Residence::default();
        let seen = notes.clone();
        let load = move || {
            seen.lock().unwrap().push("load".into());
            Ok(noting(&seen))
        };
        let folder = tempfile::tempdir().unwrap();
        let [registered, unregistered] = ["2", "three"].map(|name| folder.path().join(name));
        let forgotten = folder.path().join("four");
        let files = folder.path().to_owned();
        let files: AdapterFiles = Box::new(move |version| files.join(version.to_string()));
        let mut engine = UnloadingEngine::new(load, files, residence.clone()).unwrap();
        engine.load_adapter(1, Path::new("one"), &[]).unwrap();
        engine.load_adapter(2, Path::new("two"), &[1]).unwrap();
        std::fs::write(&registered, "").unwrap();
        std::fs::write(&unregistered, "").unwrap();
        engine.load_adapter(3, &unregistered, &[2]).unwrap();
        engine.load_adapter(4, &forgotten, &[2, 3]).unwrap();
        assert_eq!(residence.get(), Resident::Loaded);
        engine.unload();
        engine.unload();
        assert_eq!(residence.get(), Resident::Unloaded);
        assert_eq!((engine.tokenizer())("ab"), [97, 98], "text is tokenized all the same");
        notes.lock().unwrap().clear();
        engine.warm(&FimPrompt::default(), &AtomicBool::default()).unwrap();
        // The second was registered since it was loaded, the third was not, and the fourth was
        // forgotten: the daemon warned that it cannot load what it had itself removed.
        let second = format!("2 {} [2, 3]", registered.display());
        let third = format!("3 {} [2, 3]", unregistered.display());
        assert_eq!(*notes.lock().unwrap(), ["load", &second, &third, "warm"]);
        assert_eq!(residence.get(), Resident::Loaded);
    }

    #[test]
    fn a_model_that_cannot_be_loaded_again_is_an_error_and_is_tried_anew() {
        let mut tries = 0;
        let load = || {
            tries += 1;
            if tries == 2 {
                return Err(EngineError::Failed("the file is gone".into()));
            }
            Ok(ScriptedEngine { answers: &["x"], learned: None, takes: Duration::ZERO })
        };
        let residence = Residence::default();
        let files: AdapterFiles = Box::new(|_| PathBuf::new());
        let mut engine = UnloadingEngine::new(load, files, residence.clone()).unwrap();
        engine.unload();
        let failed = engine.warm(&FimPrompt::default(), &AtomicBool::default());
        assert_eq!(failed.unwrap_err().to_string(), "the file is gone");
        assert_eq!(residence.get(), Resident::Unloaded);
        engine.warm(&FimPrompt::default(), &AtomicBool::default()).unwrap();
        assert_eq!(residence.get(), Resident::Loaded);
    }
}
