//! The engine with the real small model.

mod continued;
mod handed;
mod other_code;
mod two_texts;

use completion::prompt::FimPrompt;
use engine::llama::{LlamaConfig, LlamaEngine};
use engine::{Engine, Generated, Request};
use models::fim::FimTemplate;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

fn file() -> PathBuf {
    let folder = std::env::var_os("HONE_TEST_MODELS").map(PathBuf::from);
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-home/models");
    let file = folder.unwrap_or(default).join("SmolLM2-135M-Instruct.Q4_1.gguf");
    assert!(file.exists(), "{} is needed; run `cargo xtask test`", file.display());
    file
}

/// An engine that reads prompts of up to 512 tokens on one thread.
fn load(template: &'static FimTemplate) -> LlamaEngine {
    let config = LlamaConfig {
        scores_in_background: true,
        ..LlamaConfig::on_cpu(&file(), template, 1, 512)
    };
    LlamaEngine::load(&config).unwrap()
}

/// A prompt of one document, without other code, at the end of a line.
fn prompt(prefix: &str, line: &str) -> FimPrompt {
    FimPrompt { prefix: prefix.into(), line: line.into(), ..FimPrompt::default() }
}

/// Asks the plain model for a few tokens of a line, and waits for whatever the prompt shows.
fn request(prompt: FimPrompt) -> Request {
    Request::line(prompt, 4)
}

fn generate(engine: &mut LlamaEngine, request: &Request) -> Generated {
    engine.generate(request, &AtomicBool::default()).unwrap()
}
