//! The sources of keys and values of prompts that need not be computed: the daemon, which
//! has computed them to complete, or another learner of the same rehearsal.
//!
//! They stay in their files, and a pass reads those of one layer when it comes to it. Prompts of a
//! thousand tokens need 12 MiB each with the default model, and a job has 16 of them; the system
//! holds what was read in its page cache as long as nobody else needs the memory.

use crate::kernels::float::Float;
use crate::limits::PROMPT_FILES_MAX;
use crate::machine::platform;
use crate::model::Transformer;
use candle_core::{Device, Result, Tensor};
use models::disk_cache::DiskCache;
use std::collections::{HashMap, HashSet};
use std::fs::File;

/// The caches in which prompts are looked up.
#[derive(Default)]
pub struct KnownPrompts {
    /// Shared by the learners of a rehearsal, which also write to it.
    shared: Option<DiskCache>,
    /// The files that the daemon has put there. They are only read.
    handed: Option<DiskCache>,
}

impl KnownPrompts {
    pub fn new(shared: Option<DiskCache>, handed: Option<DiskCache>) -> KnownPrompts {
        KnownPrompts { shared, handed }
    }

    /// Opens the files of those of these prompts that are known, at most [`PROMPT_FILES_MAX`]. A
    /// file that is removed afterwards can still be read.
    pub fn open<T: Float>(&self, model: &Transformer<T>, prompts: &[&[u32]]) -> OpenPrompts {
        let mut open = OpenPrompts::default();
        for prompt in prompts.iter().copied().filter(|prompt| !prompt.is_empty()) {
            if open.files.len() == PROMPT_FILES_MAX {
                break;
            }
            if open.index(prompt).is_none()
                && let Some(file) = self.open_one(model, prompt)
            {
                open.by_prompt.insert(prompt.to_vec(), open.files.len());
                open.files.push(file);
            }
        }
        open
    }

    fn open_one<T: Float>(&self, model: &Transformer<T>, prompt: &[u32]) -> Option<PromptFile> {
        let mut caches = [&self.shared, &self.handed].into_iter().flatten();
        caches.find_map(|cache| PromptFile::of(cache.open(prompt)?, model, prompt.len()))
    }

    /// Keeps prompts that had to be computed, if there is a cache for them. The update continues if
    /// that fails. `computed` gives the bytes of a prompt by its index, or `None` if it was known.
    ///
    /// # Errors
    /// The bytes cannot be copied.
    pub fn keep(
        &mut self,
        prompts: &[&[u32]],
        computed: impl Fn(usize) -> Result<Option<Vec<u8>>>,
    ) -> Result<()> {
        let Some(shared) = &mut self.shared else { return Ok(()) };
        let mut written = HashSet::new();
        for (index, prompt) in prompts.iter().copied().enumerate() {
            if !prompt.is_empty()
                && written.insert(prompt)
                && let Some(bytes) = computed(index)?
                && let Err(error) = shared.put(prompt, &bytes)
            {
                eprintln!("hone-learner: cannot write a prompt to the cache: {error}");
            }
        }
        Ok(())
    }
}

/// The open files of known prompts.
#[derive(Default)]
pub struct OpenPrompts {
    files: Vec<PromptFile>,
    /// The index of each prompt's file.
    by_prompt: HashMap<Vec<u32>, usize>,
}

impl OpenPrompts {
    /// The index of a prompt's file; `None` if the prompt is not known.
    pub(super) fn index(&self, prompt: &[u32]) -> Option<usize> {
        self.by_prompt.get(prompt).copied()
    }

    pub(super) fn into_files(self) -> Vec<PromptFile> {
        self.files
    }
}

/// The keys and values of one prompt in a file: layer by layer the keys of all tokens, which are
/// rotated, and then their values, each token's with type [`Float::KV`].
pub(super) struct PromptFile {
    file: File,
    tokens: usize,
    /// kv_heads·head_width.
    width: usize,
}

impl PromptFile {
    /// `None` if the file has another size than this many tokens have with this model.
    fn of<T: Float>(file: File, model: &Transformer<T>, tokens: usize) -> Option<PromptFile> {
        let shape = &model.shape;
        let width = shape.kv_heads * shape.head_width;
        let bytes = 2 * shape.layers * tokens * width * T::KV.size_in_bytes();
        let found = file.metadata().ok()?.len();
        (found == bytes as u64).then_some(PromptFile { file, tokens, width })
    }

    /// Reads the keys and values of one layer, each `tokens × kv_heads·head_width`.
    ///
    /// # Errors
    /// The file cannot be read, or somebody has made it shorter.
    pub(super) fn layer<T: Float>(&self, layer: usize) -> Result<(Tensor, Tensor)> {
        let part = self.tokens * self.width * T::KV.size_in_bytes();
        let mut bytes = vec![0; 2 * part];
        platform::read_exact_at(&self.file, &mut bytes, (2 * part * layer) as u64)?;
        let (k, v) = bytes.split_at(part);
        let shape = [self.tokens, self.width];
        let tensor = |bytes: &[u8]| {
            Tensor::from_raw_buffer(bytes, T::KV, &shape, &Device::Cpu)?.to_dtype(T::DTYPE)
        };
        Ok((tensor(k)?, tensor(v)?))
    }
}
