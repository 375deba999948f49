//! `hone-lab texts`: what somebody wrote, as the episodes that the daemon would have recorded if
//! nothing had been offered there.

use anyhow::{Context, Result};
use engine::llama::{LlamaConfig, LlamaEngine};
use learning::history::texts::{Episodes, Written};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use settings::Config;
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
    /// Go to a random place within the first line of each text, as if its beginning had been typed
    #[arg(long)]
    within: bool,
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
    let prompt_tokens = config.lab.prompt_tokens;
    let engine = LlamaConfig::on_cpu(&args.model, found.template, 1, prompt_tokens);
    let engine = LlamaEngine::load(&engine).map_err(|error| anyhow::anyhow!("{error}"))?;
    let window = config.lab.window();
    for (number, line) in texts.lines().enumerate() {
        let mut written: Written = serde_json::from_str(&line?)
            .with_context(|| format!("{}:{}: it is no text", named(), number + 1))?;
        if args.within {
            let typed = place_within(&written.written, number as u64);
            written = written.after(typed);
        }
        let episodes = Episodes { engine: &engine, window, model_sha256: &found.sha256 };
        println!("{}", serde_json::to_string(&episodes.of(written, number))?);
    }
    Ok(())
}

/// A place between the characters of the first line, behind its indentation; 0 if it has too few.
fn place_within(written: &str, seed: u64) -> usize {
    let line = written.lines().next().unwrap_or_default();
    let indentation = line.chars().take_while(|c| c.is_whitespace()).count();
    let places = indentation + 1..line.trim_end().chars().count();
    if places.is_empty() { 0 } else { StdRng::seed_from_u64(seed).random_range(places) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_lies_within_the_code_of_the_first_line() {
        let places: Vec<usize> = (0..100).map(|seed| place_within("  abc \nd", seed)).collect();
        assert!([3, 4].iter().all(|place| places.contains(place)), "{places:?}");
        assert!(places.iter().all(|place| [3, 4].contains(place)), "{places:?}");
        assert_eq!((place_within("  }\n", 1), place_within("", 1)), (0, 0));
    }
}
