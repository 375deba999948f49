//! `config.toml`: every key has a default, an unknown one is an error.

use crate::engine::llama::MAX_TOKENS;
use anyhow::{Context, Result, ensure};
use feedback::job::Hyper;
use models::file::write_atomic;
use serde::Deserialize;
use std::path::Path;
use toml_edit::{DocumentMut, Value};

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub model: ModelConfig,
    pub completion: CompletionConfig,
    pub learning: LearningConfig,
    pub daemon: DaemonConfig,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelConfig {
    /// A name from `hone model list`; absent: the default model.
    pub name: Option<String>,
    /// Inference threads; 0: one a core, at most eight.
    pub threads: usize,
    /// Layers on the GPU, where Hone was built for one.
    pub gpu_layers: u32,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CompletionConfig {
    /// Tokens a completion may have.
    pub max_tokens: usize,
    /// Milliseconds a completion may take.
    pub budget_ms: u64,
    /// 0 decodes greedily.
    pub temperature: f32,
    /// Decoding stops before a token less likely than this.
    pub min_probability: f32,
    /// Characters before the cursor that the model sees.
    pub prefix_chars: usize,
    /// Characters after the cursor that the model sees.
    pub suffix_chars: usize,
}

impl Default for CompletionConfig {
    fn default() -> Self {
        CompletionConfig {
            max_tokens: 32,
            budget_ms: 10_000,
            temperature: 0.0,
            min_probability: 0.0,
            prefix_chars: 1_500,
            suffix_chars: 500,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LearningConfig {
    pub enabled: bool,
    /// Labelled episodes that start an update.
    pub batch_episodes: usize,
    pub ppo: Hyper,
}

impl Default for LearningConfig {
    fn default() -> Self {
        LearningConfig { enabled: true, batch_episodes: 16, ppo: Hyper::default() }
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DaemonConfig {
    /// The daemon ends this long after its last editor.
    pub idle_exit_s: u64,
}

impl Default for DaemonConfig {
    fn default() -> Self {
        DaemonConfig { idle_exit_s: 600 }
    }
}

impl Config {
    pub fn load(path: &Path) -> Result<Config> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        let config: Config = toml::from_str(&text).with_context(|| {
            format!("{}: not a valid configuration; correct or remove the line", path.display())
        })?;
        config.check().with_context(|| path.display().to_string())?;
        Ok(config)
    }

    fn check(&self) -> Result<()> {
        let completion = &self.completion;
        ensure!(
            (1..=MAX_TOKENS).contains(&completion.max_tokens),
            "completion.max_tokens must be from 1 to {MAX_TOKENS}"
        );
        ensure!(completion.budget_ms > 0, "completion.budget_ms must be above 0");
        ensure!(
            (0.0..=2.0).contains(&completion.temperature),
            "completion.temperature must be from 0 to 2"
        );
        ensure!(
            (0.0..1.0).contains(&completion.min_probability),
            "completion.min_probability must be from 0 to below 1"
        );
        ensure!(self.learning.batch_episodes > 0, "learning.batch_episodes must be above 0");
        Ok(())
    }
}

/// Sets one key and leaves the rest of the file as the user wrote it.
pub fn set(path: &Path, table: &str, key: &str, value: impl Into<Value>) -> Result<()> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read.with_context(|| path.display().to_string())?,
    };
    let mut document: DocumentMut = text.parse().with_context(|| path.display().to_string())?;
    document.entry(table).or_insert(toml_edit::table())[key] = toml_edit::value(value);
    write_atomic(path, document.to_string().as_bytes())
        .with_context(|| format!("{}: cannot be written", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Config> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        std::fs::write(&path, text).unwrap();
        Config::load(&path)
    }

    #[test]
    fn an_empty_file_and_no_file_are_the_defaults() {
        assert_eq!(load("").unwrap(), Config::default());
        assert_eq!(Config::load(Path::new("/nowhere/config.toml")).unwrap(), Config::default());
    }

    #[test]
    fn an_unknown_key_is_named_with_file_and_line() {
        let error = format!("{:#}", load("[learning]\nbatch_episode = 3\n").unwrap_err());
        assert!(error.contains("config.toml"), "{error}");
        assert!(error.contains("line 2"), "{error}");
        assert!(error.contains("`batch_episode`"), "{error}");
        assert!(error.contains("`batch_episodes`"), "{error}");
    }

    #[test]
    fn setting_a_key_keeps_what_the_user_wrote() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        set(&path, "learning", "enabled", false).unwrap();
        assert!(!Config::load(&path).unwrap().learning.enabled, "from no file at all");
        std::fs::write(&path, "# mine\n[learning]\nbatch_episodes = 3 # few\n").unwrap();
        set(&path, "learning", "enabled", false).unwrap();
        set(&path, "model", "name", "smollm2-135m").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# mine\n[learning]\nbatch_episodes = 3 # few\n"), "{text}");
        let config = Config::load(&path).unwrap();
        assert_eq!((config.learning.batch_episodes, config.learning.enabled), (3, false));
        assert_eq!(config.model.name.as_deref(), Some("smollm2-135m"));
    }

    #[test]
    fn a_value_out_of_range_is_refused() {
        let error = format!("{:#}", load("[completion]\nmax_tokens = 0\n").unwrap_err());
        assert!(error.contains("completion.max_tokens must be from 1 to"), "{error}");
    }
}
