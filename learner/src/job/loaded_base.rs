//! The base model that jobs learn on, which stays in memory from one job to the next.

use crate::model::Transformer;
#[cfg(feature = "cuda")]
use crate::model::gpu::GpuModel;
use crate::model::load::load;
use anyhow::{Context, bail, ensure};
use feedback::job::Base;
use models::file;
use models::gguf::{Gguf, Value};
use models::vocab::Vocab;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A base model in memory, and the file that it was read from.
pub(super) struct LoadedBase {
    path: PathBuf,
    pub(super) sha256: String,
    stamp: FileStamp,
    pub(super) gguf: Gguf,
    pub(super) vocab: Vocab,
    pub(super) model: Transformer<f32>,
}

/// Changes when a file is replaced.
#[derive(PartialEq)]
struct FileStamp {
    bytes: u64,
    modified: Option<SystemTime>,
}

impl FileStamp {
    fn of(metadata: &Metadata) -> FileStamp {
        FileStamp { bytes: metadata.len(), modified: metadata.modified().ok() }
    }
}

/// Returns the base model. It is read from its file unless it is in memory and the file
/// has not changed.
pub(super) fn load_base<'a>(
    kept: &'a mut Option<LoadedBase>,
    wanted: &Base,
    memory_limit_mb: u64,
) -> anyhow::Result<&'a LoadedBase> {
    let path = &wanted.path;
    let metadata = std::fs::metadata(path)
        .with_context(|| format!("cannot read the base model {}", path.display()))?;
    check_size(path, metadata.len() >> 20, memory_limit_mb)?;
    let stamp = FileStamp::of(&metadata);
    let current = kept.take_if(|loaded| loaded.path != *path || loaded.stamp != stamp);
    // The old one is freed before the next one is read: memory never has to hold both.
    drop(current);
    if kept.is_none() {
        let sha256 = file::sha256(path)
            .with_context(|| format!("cannot read the base model {}", path.display()))?;
        // The wrong model is refused before hundreds of megabytes are read into memory.
        check_base(path, &sha256, &wanted.sha256)?;
        let mut gguf = Gguf::open(path)?;
        let vocab = Vocab::from_gguf(&gguf)?;
        let mut model = load(&gguf)?;
        // The lists of tokens and merges are in `vocab` as far as they are needed, and take 20 MiB
        // here. Whoever reads the header later reads single values and shapes.
        gguf.metadata.retain(|_, value| !matches!(value, Value::Array(_)));
        use_gpu(&mut model);
        *kept = Some(LoadedBase { path: path.clone(), sha256, stamp, gguf, vocab, model });
    }
    let Some(loaded) = kept else { bail!("the base model was not kept") };
    check_base(path, &loaded.sha256, &wanted.sha256)?;
    Ok(loaded)
}

/// Copies the model to a GPU if there is one and the program was built for it. Without one
/// the CPU does the work, so that this is never an error.
#[cfg(feature = "cuda")]
fn use_gpu(model: &mut Transformer<f32>) {
    match GpuModel::copy_of(model) {
        Ok(gpu) => {
            eprintln!("hone-learner: learning on {}", gpu.name());
            model.gpu = Some(gpu);
        }
        Err(error) => eprintln!("hone-learner: learning on the CPU: {error:#}"),
    }
}

#[cfg(not(feature = "cuda"))]
fn use_gpu(_: &mut Transformer<f32>) {}

/// Refuses a base model that is larger than the learner may be. Every pass reads all of it, and
/// would read it from the disk if there were no room for it in the page cache.
fn check_size(path: &Path, megabytes: u64, limit_mb: u64) -> anyhow::Result<()> {
    ensure!(
        limit_mb == 0 || megabytes <= limit_mb,
        "the base model {} needs {megabytes} MiB of memory, and the learner may hold {limit_mb}; \
         raise learning.memory_limit_mb or serve a smaller model",
        path.display()
    );
    Ok(())
}

fn check_base(path: &Path, found: &str, wanted: &str) -> anyhow::Result<()> {
    ensure!(
        found.eq_ignore_ascii_case(wanted),
        "the base model {} has SHA-256 {found}, the job was made for {wanted}",
        path.display()
    );
    Ok(())
}
