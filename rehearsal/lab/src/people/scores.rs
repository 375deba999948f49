//! The log-probs that the served model gives to offers, token by token, as the server computes them
//! for an answer of its own. They are kept in a file, because a model needs minutes for them.

use super::verdicts::Verdict;
use crate::lines::first_line;
use anyhow::{Context, Result};
use completion::prompt::{FimPrompt, PromptLayout, Window};
use engine::caching_engine::KvAccess;
use engine::llama::{LlamaConfig, LlamaEngine};
use engine::{Engine, EngineError, ScorePrompt, ScoreRequest};
use models::gguf::Gguf;
use models::vocab::Vocab;
use ropey::Rope;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The scores of a file, by a hash of place and text. The file holds no text.
pub struct Scores {
    model_sha256: String,
    known: HashMap<String, Vec<f32>>,
    file: File,
}

#[derive(Serialize, Deserialize)]
struct Line {
    key: String,
    logprobs: Vec<f32>,
}

impl Scores {
    /// Reads the scores by a model that a file has so far. A last line that was cut is left out.
    pub fn open(path: &Path, model_sha256: &str) -> Result<Scores> {
        let named = || format!("cannot keep scores in {}", path.display());
        let file = OpenOptions::new().create(true).append(true).open(path).with_context(named)?;
        let text = std::fs::read_to_string(path).with_context(named)?;
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
        let known = lines.map(|line| (line.key, line.logprobs)).collect();
        Ok(Scores { model_sha256: model_sha256.to_owned(), known, file })
    }

    pub fn get(&self, verdict: &Verdict) -> Option<&[f32]> {
        self.known.get(&self.key(verdict)).map(Vec::as_slice)
    }

    fn key(&self, verdict: &Verdict) -> String {
        let Verdict { before, offer, .. } = verdict;
        let text = [&*self.model_sha256, before, "", first_line(offer)].join("\0");
        models::file::sha256_of(text.as_bytes())
    }

    /// Notes the score of an offer.
    pub fn keep(&mut self, verdict: &Verdict, logprobs: Vec<f32>) -> Result<()> {
        let line = Line { key: self.key(verdict), logprobs };
        writeln!(self.file, "{}", serde_json::to_string(&line)?)?;
        self.known.insert(line.key, line.logprobs);
        Ok(())
    }

    /// Scores the offers that are not known yet. The model is loaded only if there are any.
    pub fn complete(&mut self, verdicts: &[Verdict], model: &Path, window: Window) -> Result<()> {
        let missing: Vec<&Verdict> =
            verdicts.iter().filter(|verdict| self.get(verdict).is_none()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let mut scorer = Scorer::load(model)?;
        let count = missing.len();
        for (number, verdict) in missing.into_iter().enumerate() {
            if number % 50 == 0 {
                eprintln!("scored {number} of {count} offers");
            }
            let logprobs = scorer.score(verdict, window)?;
            self.keep(verdict, logprobs)?;
        }
        Ok(())
    }
}

/// A model that scores texts.
struct Scorer {
    engine: LlamaEngine,
    vocab: Vocab,
    /// The prompt's layout, which a server keeps for as long as it fits.
    layout: Option<PromptLayout>,
    /// The most tokens of a line that the server generates.
    max_tokens: usize,
}

impl Scorer {
    fn load(model: &Path) -> Result<Scorer> {
        let found = models::inspect::inspect(model, None)?;
        let lab = settings::Config::default().lab;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let engine = LlamaEngine::load(&LlamaConfig {
            // Other programs may need the cores.
            adapts_threads: true,
            records_experts: false,
            ..LlamaConfig::on_cpu(model, found.template, threads, lab.prompt_tokens)
        })?;
        let vocab = Vocab::from_gguf(&Gguf::open(model)?)?;
        Ok(Scorer { engine, vocab, layout: None, max_tokens: lab.max_tokens })
    }

    /// The log-probs of the tokens of an offer's first line that are new to the user. The last one
    /// counts with all tokens that end the line the same way.
    fn score(&mut self, verdict: &Verdict, window: Window) -> Result<Vec<f32>> {
        let text = Rope::from_str(&verdict.before);
        let cursor = text.len_chars();
        let layout = self.layout.get_or_insert_with(|| PromptLayout::new(&text, cursor, window));
        let prompt = layout.prompt(&text, cursor, window);
        let line = format!("{}\n", first_line(&verdict.offer));
        match self.logprobs(&prompt, &line) {
            // The text cannot be had from the tokens that healing allows.
            Err(EngineError::Failed(_)) if !prompt.healing.is_empty() => {
                let whole = format!("{}{}", prompt.line, prompt.healing);
                let unhealed = FimPrompt { line: whole, healing: String::new(), ..prompt };
                Ok(self.logprobs(&unhealed, &line)?)
            }
            scored => Ok(scored?),
        }
    }

    fn logprobs(&mut self, prompt: &FimPrompt, line: &str) -> Result<Vec<f32>, EngineError> {
        let healing = prompt.healing.as_str();
        let tokens = self.engine.tokenizer()(&format!("{healing}{line}"));
        let (mut said, _) = self.engine.prompt_tokens(prompt);
        let (mut logprobs, mut end) = (vec![], 0);
        for token in tokens {
            if logprobs.len() == self.max_tokens {
                break;
            }
            // A token that only reproduces what was typed is not scored.
            let begins = end;
            end += self.vocab.piece(token).len();
            if end > healing.len() {
                let cut = || EngineError::Failed("a character is cut by a token".into());
                let need = healing.get(begins.min(healing.len())..).ok_or_else(cut)?;
                logprobs.push(self.logprob(&said, need, token)?);
            }
            said.push(token);
        }
        Ok(logprobs)
    }

    /// The log-prob of a token behind others. What was said stays computed for the next one.
    fn logprob(&mut self, said: &[u32], need: &str, token: u32) -> Result<f32, EngineError> {
        let request = ScoreRequest {
            prompt: ScorePrompt::Tokens { prompt: said.to_vec(), adapter_from: said.len() - 1 },
            healing: need.to_owned(),
            tokens: vec![token],
            adapters: vec![0],
        };
        Ok(self.engine.score(&request, &AtomicBool::new(false))?[0].logprob.min(0.0))
    }
}
