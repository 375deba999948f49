//! `hone lab texts`: what somebody wrote, as the episodes that the daemon would have recorded if
//! nothing had been offered there.

use crate::config::Config;
use crate::learning::history::texts::{Episodes, Written};
use anyhow::{Context, Result};
use engine::llama::{LlamaConfig, LlamaEngine, LoadedModel};
use engine::speed::PromptSpeed;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct TextsArgs {
    /// The model whose prompts and tokens they get
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// FIM template of the model, where its vocabulary does not tell
    #[arg(long, value_name = "NAME")]
    template: Option<String>,
    /// The texts, one JSON object a line: repository, path, language, text, cursor and written
    #[arg(value_name = "FILE")]
    texts: PathBuf,
}

/// Prints an episode a line.
pub fn run(args: &TextsArgs) -> Result<()> {
    let named = || args.texts.display().to_string();
    let texts = BufReader::new(File::open(&args.texts).with_context(named)?);
    let found = models::inspect::inspect(&args.model, args.template.as_deref())?;
    let config = Config::default();
    let engine = LlamaEngine::load(&LlamaConfig {
        path: args.model.clone(),
        template: found.template,
        threads: 1,
        adapts_threads: false,
        gpu_layers: Some(0),
        prompt_tokens: config.lab.prompt_tokens,
        micro_batch: None,
        records_experts: true,
        loaded: LoadedModel::default(),
        speed: PromptSpeed::default(),
    })
    .map_err(|error| anyhow::anyhow!("{error}"))?;
    let window = config.lab.window();
    let episodes = Episodes { engine: &engine, window, model_sha256: &found.sha256 };
    for (number, line) in texts.lines().enumerate() {
        let written: Written = serde_json::from_str(&line?)
            .with_context(|| format!("{}:{}: it is no text", named(), number + 1))?;
        say!("{}", serde_json::to_string(&episodes.of(written, number))?)?;
    }
    Ok(())
}
