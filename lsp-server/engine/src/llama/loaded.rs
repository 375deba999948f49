//! Tokenizing while the model may be unloaded.

use super::tokenize;
use crate::Tokenizer;
use crate::ffi::load_vocabulary;
use llama_cpp_2::model::LlamaModel;
use parking_lot::Mutex;
use std::path::Path;
use std::sync::{Arc, Weak};

/// The model while it is loaded, and its vocabulary otherwise.
#[derive(Clone, Default)]
pub struct LoadedModel(Arc<Mutex<Held>>);

#[derive(Default)]
struct Held {
    model: Weak<LlamaModel>,
    /// It is read from the file when a text is tokenized while the model is unloaded, and dropped
    /// when the model is loaded again.
    vocabulary: Option<Arc<LlamaModel>>,
}

impl LoadedModel {
    pub(super) fn set(&self, model: &Arc<LlamaModel>) {
        *self.0.lock() = Held { model: Arc::downgrade(model), vocabulary: None };
    }

    /// A tokenizer that works whether or not the model is loaded. It gives no token if the file
    /// cannot be read any more.
    pub(super) fn tokenizer(&self, path: &Path) -> Tokenizer {
        let (held, path) = (self.0.clone(), path.to_owned());
        Arc::new(move |text| {
            let model = held.lock().model_or_vocabulary(&path);
            match model {
                Ok(model) => tokenize(&model, text),
                Err(error) => {
                    tracing::warn!("{error}");
                    vec![]
                }
            }
        })
    }
}

impl Held {
    fn model_or_vocabulary(&mut self, path: &Path) -> Result<Arc<LlamaModel>, String> {
        if let Some(model) = self.model.upgrade() {
            return Ok(model);
        }
        if self.vocabulary.is_none() {
            self.vocabulary = Some(load_vocabulary(path)?);
        }
        self.vocabulary.clone().ok_or_else(|| "no vocabulary".to_owned())
    }
}
