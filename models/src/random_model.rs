//! Model files with random weights in the shape of a real model. Speed and memory of such a model
//! are those of the real one, so that a machine that cannot have the real file measures them all
//! the same. What it says is words without sense.
//!
//! The formats of the matrices are those that llama.cpp gives them in q4_k_m.

mod blocks;
mod shape;
pub mod tiny;

pub use shape::Shape;

use crate::gguf::{DEFAULT_ALIGNMENT, Gguf};
use crate::gguf_write::Builder;
use crate::platform::write_all_at;
use anyhow::{Context, Result, ensure};
use blocks::{Format, Random};
use shape::Matrix;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that a thread makes and writes at a time, as a goal.
const CHUNK_BYTES: usize = 8 << 20;

/// The factor by which the rows of tokens that are no plain words are smaller. The model then
/// says plain words only: it neither ends its answer nor breaks a line.
const QUIET: f32 = 1.0 / 16.0;

/// The factor by which the row of the line break is larger, if lines are to end. It is then the
/// likeliest of all tokens about once in ten.
const LINE_BREAK: f32 = 3.0;

/// The speech of a random model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speech {
    /// Plain words without end, so that answers are as long as they may be.
    Words,
    /// Lines of some ten plain words.
    Lines,
}

/// A piece of a matrix that one thread makes.
struct Chunk<'a> {
    matrix: &'a Matrix,
    /// The first row, and the number of rows.
    from: usize,
    rows: usize,
    /// The place where its bytes go, from the start of the file.
    at: u64,
}

/// Writes a model of this shape to `out`. Tokenizer and everything else that is no size are those
/// of `like`. The same seed gives the same bytes, whatever the number of threads.
///
/// # Errors
/// `like` has no vocabulary, or `out` cannot be written.
pub fn write(
    like: &Gguf,
    shape: &Shape,
    speech: Speech,
    seed: u64,
    threads: usize,
    out: &Path,
) -> Result<()> {
    let sizes = row_sizes(like, speech)?;
    let matrices = shape.matrices(sizes.len());
    let mut builder = header(like, Some(shape));
    let mut offset = 0;
    let mut offsets = Vec::with_capacity(matrices.len());
    for matrix in &matrices {
        builder.tensor_info(&matrix.name, &matrix.dims(), matrix.format.ggml_type(), offset);
        offsets.push(offset);
        offset += (matrix.bytes() as u64).next_multiple_of(DEFAULT_ALIGNMENT);
    }
    let head = builder.finish();
    let file = File::create(out).with_context(|| out.display().to_string())?;
    write_all_at(&file, &head, 0).with_context(|| out.display().to_string())?;
    file.set_len(head.len() as u64 + offset).with_context(|| out.display().to_string())?;

    let starts = offsets.iter().map(|offset| head.len() as u64 + offset);
    let chunks: Vec<Chunk> =
        matrices.iter().zip(starts).flat_map(|(matrix, start)| chunks(matrix, start)).collect();
    let next = AtomicUsize::new(0);
    let work = || -> Result<()> {
        let mut bytes = Vec::with_capacity(CHUNK_BYTES);
        while let Some((index, chunk)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, chunks.get(i)?)))
        {
            bytes.clear();
            let mut random = Random::new(seed, index as u64);
            for row in chunk.from..chunk.from + chunk.rows {
                let of_token = sizes.get(row).filter(|_| chunk.matrix.of_tokens);
                let size = of_token.copied().unwrap_or(1.0);
                chunk.matrix.row(size, &mut random, &mut bytes);
            }
            write_all_at(&file, &bytes, chunk.at).with_context(|| out.display().to_string())?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result,
            Err(_) => anyhow::bail!("a thread that makes weights has panicked"),
        })
    })
}

/// Writes a file with the metadata of a model and without its matrices. It is a few megabytes, and
/// [`write`] takes it for `like`.
///
/// # Errors
/// `out` cannot be written.
pub fn write_metadata(like: &Gguf, out: &Path) -> Result<()> {
    std::fs::write(out, header(like, None).finish()).with_context(|| out.display().to_string())
}

/// The metadata of `like`, with the architecture and the sizes of `shape` instead of its own.
fn header(like: &Gguf, shape: Option<&Shape>) -> Builder {
    let mut builder = Builder::default();
    let own = like.architecture().unwrap_or_default();
    let architecture = shape.map_or(own, |shape| shape.architecture());
    let sizes = shape.map_or_else(Vec::new, Shape::sizes);
    for (key, value) in &like.metadata {
        let of_model = key.strip_prefix(own).and_then(|key| key.strip_prefix('.'));
        match of_model {
            _ if key == "general.architecture" => builder.string(key, architecture),
            Some(name) if sizes.iter().any(|(size, _)| *size == name) => {}
            Some(name) => builder.value(&format!("{architecture}.{name}"), value),
            None => builder.value(key, value),
        }
    }
    for (name, size) in sizes {
        builder.u32(&format!("{architecture}.{name}"), size);
    }
    builder
}

/// Returns how large the row of each token is. Plain words have at least three small letters, and
/// maybe a space before them.
fn row_sizes(like: &Gguf, speech: Speech) -> Result<Vec<f32>> {
    let tokens = like.strings("tokenizer.ggml.tokens");
    let tokens = tokens.with_context(|| format!("{}: no vocabulary", like.path.display()))?;
    let is_plain = |token: &str| {
        let word = token.strip_prefix('Ġ').unwrap_or(token);
        word.len() >= 3 && word.bytes().all(|byte| byte.is_ascii_lowercase())
    };
    let size = |token| match token {
        "Ċ" if speech == Speech::Lines => LINE_BREAK,
        token if is_plain(token) => 1.0,
        _ => QUIET,
    };
    let sizes: Vec<f32> = tokens.map(size).collect();
    ensure!(sizes.contains(&1.0), "{}: its vocabulary has no plain words", like.path.display());
    Ok(sizes)
}

fn chunks(matrix: &Matrix, start: u64) -> impl Iterator<Item = Chunk<'_>> {
    let row_bytes = matrix.row_bytes();
    let rows = (CHUNK_BYTES / row_bytes).max(1);
    (0..matrix.rows).step_by(rows).map(move |from| Chunk {
        matrix,
        from,
        rows: rows.min(matrix.rows - from),
        at: start + (from * row_bytes) as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experts::Experts;
    use crate::gguf::Value;
    use crate::vocab::Vocab;

    fn like(folder: &Path) -> Gguf {
        let mut builder = Builder::default();
        builder.string("general.architecture", "qwen2");
        builder.u32("qwen2.block_count", 99);
        builder.string("tokenizer.ggml.model", "gpt2");
        let texts = ["Ġvalue", "<|endoftext|>", "Ċ", "total"];
        let texts = texts.map(|text| Value::String(text.to_owned())).to_vec();
        builder.value("tokenizer.ggml.tokens", &Value::Array(texts));
        let types = [1, 3, 1, 1].map(Value::I32).to_vec();
        builder.value("tokenizer.ggml.token_type", &Value::Array(types));
        builder.value("tokenizer.ggml.add_bos_token", &Value::Bool(false));
        let path = folder.join("like.gguf");
        std::fs::write(&path, builder.finish()).unwrap();
        Gguf::open(&path).unwrap()
    }

    const SMALL: Shape = Shape {
        layers: 9,
        width: 512,
        heads: 4,
        kv_heads: 2,
        head_width: 128,
        feed_forward: 768,
        experts: None,
        context: 64,
        has_output: true,
    };

    #[test]
    fn a_random_model_is_a_whole_file_with_the_shape_that_was_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let like = like(folder.path());
        let out = folder.path().join("random.gguf");
        write(&like, &SMALL, Speech::Words, 7, 3, &out).unwrap();
        let gguf = Gguf::open(&out).unwrap();
        assert_eq!(gguf.u32("qwen2.block_count"), Some(9));
        assert_eq!(gguf.u32("qwen2.attention.head_count_kv"), Some(2));
        assert_eq!(gguf.metadata.get("tokenizer.ggml.add_bos_token"), Some(&Value::Bool(false)));
        assert_eq!(Vocab::from_gguf(&gguf).unwrap().len(), 4);
        let dims = |name: &str| gguf.tensor(name).unwrap().dims.clone();
        assert_eq!(dims("blk.8.ffn_down.weight"), [768, 512]);
        assert_eq!(dims("blk.0.attn_k.weight"), [512, 256]);
        assert_eq!(dims("output.weight"), [512, 4]);
        // q4_k_m gives the first eighth of the layers the wider format.
        assert_eq!(gguf.tensor("blk.0.ffn_down.weight").unwrap().ggml_type, 14);
        assert_eq!(gguf.tensor("blk.1.ffn_down.weight").unwrap().ggml_type, 12);

        let again = folder.path().join("again.gguf");
        write(&like, &SMALL, Speech::Words, 7, 1, &again).unwrap();
        assert!(std::fs::read(&out).unwrap() == std::fs::read(&again).unwrap());
        write(&like, &SMALL, Speech::Words, 8, 1, &again).unwrap();
        assert!(std::fs::read(&out).unwrap() != std::fs::read(&again).unwrap());
        write(&like, &SMALL, Speech::Lines, 7, 1, &again).unwrap();
        assert!(std::fs::read(&out).unwrap() != std::fs::read(&again).unwrap());
    }

    #[test]
    fn a_random_mixture_of_experts_has_stacks_of_matrices() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("random.gguf");
        let experts = Some(Experts { count: 3, used: 2 });
        let shape = Shape { heads: 8, experts, ..SMALL };
        write(&like(folder.path()), &shape, Speech::Words, 7, 2, &out).unwrap();
        let gguf = Gguf::open(&out).unwrap();
        assert_eq!(gguf.architecture(), Some("qwen3moe"));
        assert_eq!(Experts::of(&gguf), Ok(experts));
        assert!(gguf.metadata.keys().all(|key| !key.starts_with("qwen2.")));
        let dims = |name: &str| gguf.tensor(name).unwrap().dims.clone();
        assert_eq!(dims("blk.8.attn_q.weight"), [512, 1024]);
        assert_eq!(dims("blk.8.attn_q_norm.weight"), [128]);
        assert_eq!(dims("blk.8.ffn_gate_inp.weight"), [512, 3]);
        assert_eq!(dims("blk.8.ffn_up_exps.weight"), [512, 768, 3]);
        assert_eq!(dims("blk.8.ffn_down_exps.weight"), [768, 512, 3]);
        assert!(gguf.tensor("blk.8.attn_q.bias").is_none());
    }

    #[test]
    fn the_metadata_alone_serve_as_well_as_the_whole_model() {
        let folder = tempfile::tempdir().unwrap();
        let whole = like(folder.path());
        let path = folder.path().join("metadata.gguf");
        write_metadata(&whole, &path).unwrap();
        let alone = Gguf::open(&path).unwrap();
        assert_eq!(alone.metadata, whole.metadata);
        assert!(alone.tensors.is_empty());
    }

    #[test]
    fn a_vocabulary_without_words_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut builder = Builder::default();
        builder.string("general.architecture", "qwen2");
        let tokens = Value::Array(vec![Value::String("(".into())]);
        builder.value("tokenizer.ggml.tokens", &tokens);
        let path = folder.path().join("bare.gguf");
        std::fs::write(&path, builder.finish()).unwrap();
        let bare = Gguf::open(&path).unwrap();
        let out = folder.path().join("out.gguf");
        let error = write(&bare, &SMALL, Speech::Words, 1, 1, &out).unwrap_err();
        assert!(error.to_string().contains("bare.gguf: its vocabulary has no plain words"));
    }
}
