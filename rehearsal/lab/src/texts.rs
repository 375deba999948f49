//! `hone-lab texts`: what somebody wrote, as the episodes that the daemon would have recorded if
//! nothing had been offered there.

use anyhow::{Context, Result};
use completion::prompt::FimPrompt;
use engine::llama::{LlamaConfig, LlamaEngine, LoadedModel};
use engine::speed::PromptSpeed;
use engine::{Engine, Request};
use feedback::episode::Episode;
use feedback::event::{Completion, Evidence, Outcome, Sampling};
use learning::history::texts::{Episodes, Written};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use settings::Config;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The most tokens of a drawn line.
const SAMPLE_TOKENS: usize = 48;
/// The time that prompt and line may take. A line that ran out of time would be another sample.
const SAMPLE_BUDGET: Duration = Duration::from_secs(600);

#[derive(Debug, clap::Args)]
pub struct TextsArgs {
    /// The model whose prompts and tokens they get
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// FIM template of the model, where its vocabulary does not tell
    #[arg(long, value_name = "NAME")]
    template: Option<String>,
    /// Answers that the model draws at the place of each text, at temperature 1. Each is an offer
    /// of one line that follows the text's episode, and it is accepted if it is the line that was
    /// written
    #[arg(long, value_name = "N", default_value_t = 0)]
    samples: usize,
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
    let mut engine = LlamaEngine::load(&LlamaConfig {
        path: args.model.clone(),
        template: found.template,
        threads: 1,
        adapts_threads: false,
        scores_in_background: false,
        gpu_layers: Some(0),
        prompt_tokens: config.lab.prompt_tokens,
        micro_batch: None,
        records_experts: true,
        loaded: LoadedModel::default(),
        speed: PromptSpeed::default(),
    })
    .map_err(|error| anyhow::anyhow!("{error}"))?;
    let window = config.lab.window();
    for (number, line) in texts.lines().enumerate() {
        let mut written: Written = serde_json::from_str(&line?)
            .with_context(|| format!("{}:{}: it is no text", named(), number + 1))?;
        if args.within {
            let typed = place_within(&written.written, number as u64);
            written = written.after(typed);
        }
        let prompt = written.prompt(window);
        let line = written.written.lines().next().unwrap_or_default().to_owned();
        let episodes = Episodes { engine: &engine, window, model_sha256: &found.sha256 };
        let text = episodes.of(written, number);
        println!("{}", serde_json::to_string(&text)?);
        for sample in 0..args.samples {
            let drawn = draw(&mut engine, &prompt, &text, &line, sample)?;
            println!("{}", serde_json::to_string(&drawn)?);
        }
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

/// An answer at the place of a text, as an offer that is judged by the line that was written there.
fn draw(
    engine: &mut LlamaEngine,
    prompt: &FimPrompt,
    text: &Episode,
    line: &str,
    sample: usize,
) -> Result<Episode> {
    let sampling = Sampling { temperature: 1.0, seed: text.seq << 16 | sample as u64 };
    let request =
        Request { sampling, budget: SAMPLE_BUDGET, ..Request::line(prompt.clone(), SAMPLE_TOKENS) };
    let generated = engine.generate(&request, &AtomicBool::new(false))?;
    let answer = generated.answers.into_iter().next().context("the model gave no answer")?;
    let behind_healing = answer.text.get(text.completion.healing.len()..).unwrap_or_default();
    let shown = String::from_utf8_lossy(behind_healing).lines().next().unwrap_or("").to_owned();
    let outcome = if shown == line { Outcome::Accepted } else { Outcome::RejectedEsc };
    let completion = Completion {
        id: format!("{}-{sample}", text.completion.id),
        sampling,
        tokens: answer.tokens,
        stop: answer.stop,
        shown,
        experts: answer.experts,
        ..text.completion.clone()
    };
    // What was written instead of a rejected answer tells which of its tokens was wrong.
    let replacement = text.replacement.clone().filter(|_| outcome != Outcome::Accepted);
    Ok(Episode {
        seq: text.seq << 16 | (sample as u64 + 1),
        completion,
        shown: true,
        outcome: Some((outcome, Evidence::Command)),
        hurried: false,
        replacement,
        kept: None,
    })
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
