//! Writes a model file with random weights in the shape of a real model, for measurements where
//! the real weights cannot be had:
//!
//!   random_model --like qwen2.5-coder-0.5b.gguf --shape 7b --out random-7b.gguf
//!   random_model --like qwen2.5-coder-0.5b.gguf --out metadata.gguf    the tokenizer alone
//!
//! The second form makes a file of a few megabytes that `--like` accepts instead of the model.

use anyhow::{Context, Result};
use clap::Parser;
use models::gguf::Gguf;
use models::random_model::{self, Shape, Speech};
use std::path::PathBuf;

#[derive(Parser)]
struct Arguments {
    /// The model whose tokenizer is used
    #[arg(long)]
    like: PathBuf,
    /// 0.5b, 1.5b, 7b or 30b-a3b; tiny is a shape of no model, for tries
    #[arg(long)]
    shape: Option<String>,
    /// Layers, if the shape's own are too many for this machine
    #[arg(long)]
    layers: Option<usize>,
    /// Break a line after some ten words, where words would continue without end
    #[arg(long)]
    lines: bool,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long)]
    out: PathBuf,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let like = Gguf::open(&arguments.like)?;
    match &arguments.shape {
        None => random_model::write_metadata(&like, &arguments.out),
        Some(name) => {
            let mut shape = Shape::named(name)
                .with_context(|| format!("{name:?} is none of 0.5b, 1.5b, 7b, 30b-a3b and tiny"))?;
            shape.layers = arguments.layers.unwrap_or(shape.layers);
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            let speech = if arguments.lines { Speech::Lines } else { Speech::Words };
            random_model::write(&like, &shape, speech, arguments.seed, threads, &arguments.out)
        }
    }
}
