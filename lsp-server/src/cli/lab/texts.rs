//! `hone lab texts`: what somebody wrote, as the episodes that the daemon would have recorded if
//! nothing had been offered there.

use crate::config::Config;
use anyhow::{Context, Result};
use completion::prompt::PromptLayout;
use engine::Engine;
use engine::cached::KvAccess;
use engine::llama::{LlamaConfig, LlamaEngine, LoadedModel};
use engine::speed::PromptSpeed;
use feedback::episode::Episode;
use feedback::event::{Completion, Decision, Sampling, StopReason, Timing, Typed};
use ropey::Rope;
use serde::Deserialize;
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

/// A text that somebody wrote, and the document in which they did.
#[derive(Deserialize)]
struct Written {
    repository: String,
    path: String,
    language: String,
    text: String,
    /// In characters of `text`.
    cursor: usize,
    written: String,
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
    let tokenize = engine.tokenizer();
    for (number, line) in texts.lines().enumerate() {
        let written: Written = serde_json::from_str(&line?)
            .with_context(|| format!("{}:{}: it is no text", named(), number + 1))?;
        let document = Rope::from_str(&written.text);
        let cursor = written.cursor.min(document.len_chars());
        let prompt = PromptLayout::new(&document, cursor, window).prompt(&document, cursor, window);
        let (prompt, adapter_from) = engine.prompt_tokens(&prompt);
        let completion = Completion {
            id: format!("text-{number}"),
            path: format!("{}/{}", written.repository, written.path),
            context: vec![],
            language: written.language,
            model_sha256: found.sha256.clone(),
            adapter: 0,
            sampling: Sampling::GREEDY,
            prompt,
            adapter_from,
            healing: String::new(),
            tokens: vec![],
            stop: StopReason::Newline,
            shown: String::new(),
            shown_from: 0,
            timing: Timing::default(),
            decision: Decision::default(),
            copied: None,
            typed: Typed::default(),
            experts: None,
        };
        let episode = Episode {
            seq: number as u64 + 1,
            completion,
            shown: false,
            outcome: None,
            replacement: Some(tokenize(&written.written)),
            kept: None,
        };
        say!("{}", serde_json::to_string(&episode)?)?;
    }
    Ok(())
}
