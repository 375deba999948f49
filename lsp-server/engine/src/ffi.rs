//! The only module that calls llama.cpp directly.
//!
//! llama-cpp-2 gives a safe model and vocabulary, but it ties an adapter's life to `&mut
//! LlamaModel` while a context borrows the model, and it has no abort callback. So this module
//! calls llama-cpp-sys-2 for the context and its adapters, behind an interface that cannot be
//! misused: one owner, one thread, and every pointer dies with [`Context`].
#![allow(unsafe_code)]

mod aborts;
mod experts;

use super::gpu_layers::{Gpu, GpuLayers};
use experts::{ExpertReader, eval_callback};
use feedback::event::AdapterVersion;
use feedback::experts::ExpertLayout;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_sys_2 as sys;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::io::Write;
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock};

/// Tokens that are given to llama.cpp at once, unless a micro-batch has more.
const BATCH_TOKENS_MIN: usize = 512;

/// The backend of the whole process. llama.cpp's own log is off, because it prints whole prompts at
/// some levels.
fn backend() -> Result<&'static LlamaBackend, String> {
    static BACKEND: OnceLock<Result<LlamaBackend, String>> = OnceLock::new();
    let backend = BACKEND.get_or_init(|| {
        // SAFETY: the callback keeps nothing, and there is no data for it.
        unsafe { sys::ggml_log_set(Some(no_log), null_mut()) };
        aborts::install();
        #[cfg(feature = "portable")]
        load_kernels()?;
        let mut backend = LlamaBackend::init().map_err(|error| error.to_string())?;
        backend.void_logs();
        Ok(backend)
    });
    backend.as_ref().map_err(Clone::clone)
}

/// Takes the place of ggml's log, which reports every library that is loaded.
unsafe extern "C" fn no_log(_: sys::ggml_log_level, _: *const c_char, _: *mut c_void) {}

/// Lets ggml search the libraries next to this program for the best that the CPU can run, and for
/// GPUs. Without a folder by name, ggml would search the current one, which may be a stranger's,
/// and the one where it was built.
#[cfg(feature = "portable")]
fn load_kernels() -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = crate::libraries::folder(&program)?;
    crate::libraries::check(&folder)?;
    llama_cpp_2::llama_backend::load_backends_from_path(&folder);
    // SAFETY: a plain count.
    match unsafe { sys::ggml_backend_dev_count() } {
        0 => Err(format!(
            "{}: no library there is for this CPU; install Hone again",
            folder.display()
        )),
        _ => Ok(()),
    }
}

/// Ends the process at once. Returning from `main` would run the destructors of ggml's statics
/// while the engine's thread computes with them.
pub fn leave(status: u8) -> ! {
    // The flush may fail, because nobody may read the output any more.
    let _ = std::io::stdout().flush();
    let _ = std::io::stderr().flush();
    // SAFETY: takes a number and does not come back.
    unsafe { libc::_exit(status.into()) }
}

/// Loads a model. Without a GPU in `layers`, llama.cpp touches none: it would take some of its
/// memory for large batches even if all layers are on the CPU.
pub fn load_model(path: &Path, layers: &GpuLayers) -> Result<Arc<LlamaModel>, String> {
    let backend = backend()?;
    aborts::name_model(path);
    let params = LlamaModelParams::default()
        .with_n_gpu_layers(layers.gpu_layers)
        .with_devices(layers.device().as_slice())
        .map_err(|error| error.to_string())?;
    LlamaModel::load_from_file(backend, path, &params)
        .map(Arc::new)
        .map_err(|error| format!("{}: llama.cpp cannot load it: {error}", path.display()))
}

/// The vocabulary of a model file without its matrices. It can tokenize and nothing else.
pub fn load_vocabulary(path: &Path) -> Result<Arc<LlamaModel>, String> {
    let backend = backend()?;
    aborts::name_model(path);
    let params = LlamaModelParams::default().with_vocab_only(true);
    LlamaModel::load_from_file(backend, path, &params)
        .map(Arc::new)
        .map_err(|error| format!("{}: llama.cpp cannot load it: {error}", path.display()))
}

/// The GPU with the most free memory that this build supports, if there is one.
pub fn free_gpu() -> Result<Option<Gpu>, String> {
    backend()?;
    // SAFETY: plain queries of ggml's device table, whose entries live as long as
    // the process, and so do the names; the two numbers outlive the call.
    let gpus = (0..unsafe { sys::ggml_backend_dev_count() }).filter_map(|index| unsafe {
        let device = sys::ggml_backend_dev_get(index);
        let kind = sys::ggml_backend_dev_type(device);
        let is_gpu =
            kind == sys::GGML_BACKEND_DEVICE_TYPE_GPU || kind == sys::GGML_BACKEND_DEVICE_TYPE_IGPU;
        is_gpu.then(|| {
            let (mut free, mut total) = (0, 0);
            sys::ggml_backend_dev_memory(device, &mut free, &mut total);
            let name = CStr::from_ptr(sys::ggml_backend_dev_name(device));
            let name = name.to_string_lossy().into_owned();
            Gpu { device: index, name, free: free as u64 }
        })
    });
    Ok(gpus.max_by_key(|gpu| gpu.free))
}

pub struct ContextSize {
    /// KV cells of all sequences together. Each has the same share of them.
    pub cells: usize,
    pub sequences: usize,
    pub threads: usize,
    /// Tokens that are computed at once.
    pub micro_batch: usize,
    /// The model's experts, if it has any. Their choices can then be read.
    pub experts: Option<ExpertLayout>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum DecodeError {
    Aborted,
    /// llama.cpp's return code.
    Code(i32),
}

/// A llama.cpp context with its adapters and one reusable batch.
pub struct Context {
    context: NonNull<sys::llama_context>,
    batch: sys::llama_batch,
    /// Tokens that `batch` has room for.
    batch_tokens: usize,
    vocabulary: usize,
    adapters: BTreeMap<AdapterVersion, NonNull<sys::llama_adapter_lora>>,
    active: AdapterVersion,
    /// The pointer that the abort callback reads: null, or the flag of the decode under way.
    abort: Box<AtomicPtr<AtomicBool>>,
    /// The reader that the evaluation callback writes to.
    experts: Option<Box<Mutex<ExpertReader>>>,
    /// The model is dropped last, because the context points into it.
    model: Arc<LlamaModel>,
}

// SAFETY: every pointer in it is owned by this value alone, llama.cpp has no
// thread affinity, and there is no `Sync`.
unsafe impl Send for Context {}

unsafe extern "C" fn abort_callback(data: *mut c_void) -> bool {
    // SAFETY: `data` is the boxed AtomicPtr of the `Context` whose decode is
    // running; it holds null or a flag borrowed for the length of that decode.
    unsafe {
        let flag = (*data.cast::<AtomicPtr<AtomicBool>>()).load(Ordering::Acquire);
        !flag.is_null() && (*flag).load(Ordering::Relaxed)
    }
}

fn raw(model: &LlamaModel) -> *mut sys::llama_model {
    const _: () = assert!(size_of::<LlamaModel>() == size_of::<*mut sys::llama_model>());
    // SAFETY: LlamaModel is #[repr(transparent)] over a non-null pointer to the
    // llama_model (the version is pinned; the size is asserted above).
    unsafe { *std::ptr::from_ref(model).cast::<*mut sys::llama_model>() }
}

impl Context {
    pub fn new(model: Arc<LlamaModel>, size: &ContextSize) -> Result<Context, String> {
        let abort = Box::new(AtomicPtr::new(null_mut()));
        let batch_tokens = size.micro_batch.max(BATCH_TOKENS_MIN);
        let experts = size.experts.map(|layout| Box::new(Mutex::new(ExpertReader::new(layout))));
        // SAFETY: the model outlives the context (held below), the callbacks'
        // data is boxed and moves with `Context`, and null results are checked.
        unsafe {
            let mut params = sys::llama_context_default_params();
            params.n_ctx = size.cells as u32;
            params.n_batch = batch_tokens as u32;
            params.n_ubatch = size.micro_batch as u32;
            params.n_seq_max = size.sequences as u32;
            // Each sequence has a buffer of its own, so that attention reads no other sequence.
            params.kv_unified = false;
            params.n_threads = size.threads as i32;
            params.n_threads_batch = size.threads as i32;
            params.no_perf = true;
            params.abort_callback = Some(abort_callback);
            params.abort_callback_data = std::ptr::from_ref(&*abort).cast_mut().cast();
            if let Some(experts) = &experts {
                params.cb_eval = Some(eval_callback);
                params.cb_eval_user_data = std::ptr::from_ref(&**experts).cast_mut().cast();
            }
            let context = NonNull::new(sys::llama_init_from_model(raw(&model), params))
                .ok_or("llama.cpp could not create a context; is there enough memory?")?;
            let batch = sys::llama_batch_init(batch_tokens as i32, 0, 1);
            let vocabulary = model.n_vocab() as usize;
            let adapters = BTreeMap::new();
            Ok(Context {
                context,
                batch,
                batch_tokens,
                vocabulary,
                adapters,
                active: 0,
                abort,
                experts,
                model,
            })
        }
    }

    /// Sets the threads for what is decoded from now on.
    pub fn set_threads(&mut self, threads: usize) {
        let threads = threads as i32;
        // SAFETY: sets two numbers of this context, between two decodes.
        unsafe { sys::llama_set_n_threads(self.context.as_ptr(), threads, threads) };
    }

    /// Decodes `tokens` at `position…` of `sequence`, and keeps the logits after
    /// `tokens[first_logits..]`, which must fit one batch.
    pub fn decode(
        &mut self,
        tokens: &[u32],
        position: usize,
        sequence: usize,
        first_logits: usize,
        abort: &AtomicBool,
    ) -> Result<(), DecodeError> {
        for (index, chunk) in tokens.chunks(self.batch_tokens).enumerate() {
            let first = index * self.batch_tokens;
            // A GPU does not look at the callback, so that this is the place where it stops.
            if abort.load(Ordering::Relaxed) {
                return Err(DecodeError::Aborted);
            }
            // SAFETY: the batch was made for `batch_tokens` tokens of one sequence
            // each, and a chunk is no longer. `abort` outlives the call and is
            // taken back out of the callback's reach right after it.
            let code = unsafe {
                self.batch.n_tokens = chunk.len() as i32;
                for (i, &token) in chunk.iter().enumerate() {
                    *self.batch.token.add(i) = token as i32;
                    *self.batch.pos.add(i) = (position + first + i) as i32;
                    *self.batch.n_seq_id.add(i) = 1;
                    **self.batch.seq_id.add(i) = sequence as i32;
                    *self.batch.logits.add(i) = i8::from(first + i >= first_logits);
                }
                self.abort.store(std::ptr::from_ref(abort).cast_mut(), Ordering::Release);
                let code = sys::llama_decode(self.context.as_ptr(), self.batch);
                // A GPU continues to compute behind `llama_decode`. Without waiting, a whole prompt
                // would be in its queue before anybody could look at the time or at `abort`.
                sys::llama_synchronize(self.context.as_ptr());
                self.abort.store(null_mut(), Ordering::Release);
                code
            };
            match code {
                0 => {}
                2 => return Err(DecodeError::Aborted),
                code => return Err(DecodeError::Code(code)),
            }
        }
        Ok(())
    }

    /// Reads the experts of the next decode, which has this many tokens and keeps the logits from
    /// `first_logits` on.
    pub fn read_experts(&mut self, tokens: usize, first_logits: usize) {
        if let Some(experts) = &self.experts {
            experts.lock().begin(tokens, first_logits);
        }
    }

    /// The experts of that decode, as [`ExpertLayout`] lays them out. Empty if the model has none.
    pub fn experts_read(&mut self) -> Vec<u8> {
        self.experts.as_ref().map(|experts| experts.lock().end()).unwrap_or_default()
    }

    /// The logits after the `back`th last token of the last decode, counted from 1. `None` where
    /// they were not kept.
    pub fn logits_at(&self, back: usize) -> Option<&[f32]> {
        // SAFETY: a negative index counts the kept rows from the end, and one
        // that is not there gives null; llama.cpp keeps `vocabulary` floats in
        // a row until the next decode, which needs `&mut self`.
        unsafe {
            let logits = sys::llama_get_logits_ith(self.context.as_ptr(), -(back as i32));
            (!logits.is_null()).then(|| std::slice::from_raw_parts(logits, self.vocabulary))
        }
    }

    /// Forgets positions `from…` of a sequence.
    pub fn forget(&mut self, sequence: usize, from: usize) {
        // SAFETY: the memory handle belongs to this context.
        unsafe {
            let memory = sys::llama_get_memory(self.context.as_ptr());
            sys::llama_memory_seq_rm(memory, sequence as i32, from as i32, -1);
        }
    }

    /// Makes a sequence hold the first `length` positions of another sequence, and nothing else.
    pub fn copy(&mut self, from: usize, to: usize, length: usize) {
        // SAFETY: the memory handle belongs to this context. Between two buffers llama.cpp copies
        // all positions or ends the process, so all are asked for.
        unsafe {
            let memory = sys::llama_get_memory(self.context.as_ptr());
            sys::llama_memory_seq_cp(memory, from as i32, to as i32, -1, -1);
        }
        self.forget(to, length);
    }

    /// The keys and values that a sequence holds.
    pub fn state(&self, sequence: usize) -> Vec<u8> {
        // SAFETY: llama.cpp writes at most `size` bytes, the buffer's length.
        unsafe {
            let size = sys::llama_state_seq_get_size(self.context.as_ptr(), sequence as i32);
            let mut state = vec![0; size];
            let written = sys::llama_state_seq_get_data(
                self.context.as_ptr(),
                state.as_mut_ptr(),
                size,
                sequence as i32,
            );
            state.truncate(written);
            state
        }
    }

    /// Gives a sequence the keys and values that [`Context::state`] read from another. Returns
    /// `false` and leaves the sequence empty if they do not fit.
    pub fn restore(&mut self, sequence: usize, state: &[u8]) -> bool {
        self.forget(sequence, 0);
        // SAFETY: llama.cpp reads at most the slice's length, and refuses what
        // does not describe this context's layers.
        let read = unsafe {
            sys::llama_state_seq_set_data(
                self.context.as_ptr(),
                state.as_ptr(),
                state.len(),
                sequence as i32,
            )
        };
        if read == 0 {
            self.forget(sequence, 0);
        }
        read > 0
    }

    /// The number of positions that a sequence holds.
    pub fn length(&self, sequence: usize) -> usize {
        // SAFETY: as above; an empty sequence gives -1.
        let last = unsafe {
            let memory = sys::llama_get_memory(self.context.as_ptr());
            sys::llama_memory_seq_pos_max(memory, sequence as i32)
        };
        usize::try_from(last + 1).unwrap_or(0)
    }

    /// Activates the adapter for what is decoded from now on. Returns `false` if it is not loaded.
    pub fn activate(&mut self, version: AdapterVersion) -> bool {
        if version == self.active {
            return true;
        }
        let mut adapters = match self.adapters.get(&version) {
            Some(adapter) => vec![adapter.as_ptr()],
            None if version == 0 => vec![],
            None => return false,
        };
        let mut scales = vec![1.0f32; adapters.len()];
        // SAFETY: the adapters belong to this model and live in `self.adapters`.
        let code = unsafe {
            sys::llama_set_adapters_lora(
                self.context.as_ptr(),
                adapters.as_mut_ptr(),
                adapters.len(),
                scales.as_mut_ptr(),
            )
        };
        if code == 0 {
            self.active = version;
        }
        code == 0
    }

    /// Loads an adapter file. `&mut self` is the lock llama.cpp needs: loading
    /// changes the model that a decode reads.
    pub fn load_adapter(&mut self, version: AdapterVersion, path: &Path) -> Result<(), String> {
        let text = path.to_str().ok_or("the adapter's path is not UTF-8")?;
        let text = CString::new(text).map_err(|error| error.to_string())?;
        // SAFETY: the model is alive; a failed load gives null.
        let adapter = unsafe { sys::llama_adapter_lora_init(raw(&self.model), text.as_ptr()) };
        let adapter = NonNull::new(adapter)
            .ok_or_else(|| format!("{}: llama.cpp cannot load this adapter", path.display()))?;
        self.unload(version);
        self.adapters.insert(version, adapter);
        Ok(())
    }

    /// Drops every loaded adapter except these.
    pub fn retain_adapters(&mut self, keep: &[AdapterVersion]) {
        let drop: Vec<_> =
            self.adapters.keys().filter(|version| !keep.contains(version)).copied().collect();
        drop.into_iter().for_each(|version| self.unload(version));
    }

    fn unload(&mut self, version: AdapterVersion) {
        if self.active == version {
            self.activate(0);
        }
        if let Some(adapter) = self.adapters.remove(&version) {
            // SAFETY: owned, no longer in the context's set, freed once.
            unsafe { sys::llama_adapter_lora_free(adapter.as_ptr()) };
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.retain_adapters(&[]);
        // SAFETY: owned and not used again; the model goes after it.
        unsafe {
            sys::llama_batch_free(self.batch);
            sys::llama_free(self.context.as_ptr());
        }
    }
}
