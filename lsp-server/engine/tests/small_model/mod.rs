//! The real small model.

use engine::llama::{LlamaConfig, LlamaEngine, LoadedModel};
use engine::speed::PromptSpeed;
use models::fim::FimTemplate;
use std::path::{Path, PathBuf};

fn file() -> PathBuf {
    let folder = std::env::var_os("HONE_TEST_MODELS").map(PathBuf::from);
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-home/models");
    let file = folder.unwrap_or(default).join("SmolLM2-135M-Instruct.Q4_1.gguf");
    assert!(file.exists(), "{} is needed; run `cargo xtask test`", file.display());
    file
}

/// An engine that reads prompts of up to 512 tokens on one thread.
pub fn load(template: &'static FimTemplate) -> LlamaEngine {
    let config = LlamaConfig {
        path: file(),
        template,
        threads: 1,
        adapts_threads: false,
        gpu_layers: Some(0),
        prompt_tokens: 512,
        micro_batch: None,
        records_experts: true,
        loaded: LoadedModel::default(),
        speed: PromptSpeed::default(),
    };
    LlamaEngine::load(&config).unwrap()
}
