//! `config.toml`. Every key has a default, and an unknown key is an error.
//!
//! These types are the one definition of the settings. The check below, `hone config get --schema`
//! and through it the editors read from them what a key means, its default and its range.

// As in `lsp-server/src/lib.rs`: nothing is printed, and a module that starts a program says so.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]
#![warn(clippy::disallowed_types)]

mod api;
mod check;
mod eagerness;
mod expected;
mod file;
mod lab;
mod next_edit;
pub mod patterns;
#[cfg(test)]
mod properties;
pub mod prose;
mod schema;
mod team;

pub use api::ApiConfig;
pub use check::Problem;
pub use completion::stop_rule::Multiline;
pub use eagerness::Eagerness;
pub use expected::unknown;
pub use file::{Changed, set};
pub use lab::{LAB, LabConfig};
pub use next_edit::NextEdit;
pub use schema::{names, node, schema, schema_for_users};
pub use team::TeamConfig;

use anyhow::{Result, bail};
use feedback::limits::MEMORY_LIMIT_MB_MAX;
use feedback::schema::shortest;
use patterns::{NoPattern, Patterns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use toml::de::{DeTable, Deserializer};

/// Stands for every language that is not named.
const ANY_LANGUAGE: &str = "*";

/// Settings of Hone
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub model: ModelConfig,
    pub completion: CompletionConfig,
    pub gate: GateConfig,
    pub learning: LearningConfig,
    pub privacy: PrivacyConfig,
    pub api: ApiConfig,
    pub team: TeamConfig,
    pub lab: LabConfig,
}

/// What is loaded when the daemon starts; a change needs a restart of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ModelConfig {
    /// A name from `hone model list`. If it is not set, Hone uses the default model.
    #[schemars(extend("x-restart" = true))]
    pub name: Option<String>,
    /// Inference threads. 0 means one for each core that nothing else uses, at most eight.
    #[schemars(extend("x-restart" = true), range(max = 512))]
    pub threads: usize,
    /// Layers on the GPU, if Hone was built for one. If it is not set, there are as many as
    /// the GPU's free memory holds.
    #[schemars(extend("x-restart" = true), range(max = 1000))]
    pub gpu_layers: Option<u32>,
    /// Seconds without a request after which the model gives its memory back. The next key
    /// loads it again. 0 keeps it in memory. If it is not set, it is 300 on a GPU and 1,800
    /// on the CPU.
    #[schemars(extend("x-restart" = true))]
    pub idle_unload_s: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CompletionConfig {
    /// Whether anything is completed as you type. A completion that you invoke is always
    /// answered.
    pub enabled: bool,
    /// Languages that are completed as you type, by their editor's id. `*` is every other
    /// language. A language that is not named is on. A completion that you invoke is always
    /// answered.
    pub languages: BTreeMap<String, bool>,
    /// How readily offers are made: `quiet`, `balanced` or `eager`. It moves the chance of
    /// being accepted that an offer needs, the wait for your next key, and the least length
    /// of an offer together.
    pub eagerness: Eagerness,
    /// The same for single languages, by their editor's id.
    pub eagerness_for: BTreeMap<String, Eagerness>,
    /// Whether prose is completed as you type: Markdown, plain text, commit messages. A
    /// language that `completion.languages` names goes by that.
    pub prose: bool,
    /// Files in which nothing is completed as you type, as patterns of a `.gitignore`,
    /// such as `*.min.js` or `~/notes/`. A completion that you invoke is always answered.
    pub ignore: Vec<String>,
    /// Where a completion may have several lines. Everywhere else it ends with its line.
    pub multiline: Multiline,
    /// Characters of other code that the model sees; 0 means none. If it is not set, there
    /// are as many as this machine computes while you rest, and a key waits 0.1 s for them
    /// at most. They are pieces of the documents that you work in and of the files they
    /// import, chosen by the names that they share with the text around the cursor. At most
    /// a quarter is what you changed lately.
    #[schemars(range(max = 20_000))]
    pub context_chars: Option<usize>,
    /// When next edits are offered, by rules and by `completion.next_edit_model`: `off`,
    /// `subtle` (when you press the key for it) or `on` (as you edit).
    pub next_edit: NextEdit,
    /// The same for single languages, by their editor's id.
    pub next_edit_for: BTreeMap<String, NextEdit>,
    /// The model that writes the next edit where no rule fits: a name from `hone model list`,
    /// such as one of `sweep-next-edit`. It is asked as you edit only with
    /// `completion.next_edit` set to `on`, and else by the key alone. It is loaded next to the
    /// model that completes, when it is asked for the first time, and needs memory of its own.
    /// If it is not set, there is none.
    #[schemars(extend("x-restart" = true))]
    pub next_edit_model: Option<String>,
}

impl Default for CompletionConfig {
    fn default() -> Self {
        CompletionConfig {
            enabled: true,
            languages: BTreeMap::new(),
            eagerness: Eagerness::default(),
            eagerness_for: BTreeMap::new(),
            prose: false,
            ignore: vec![],
            multiline: Multiline::default(),
            context_chars: None,
            next_edit: NextEdit::default(),
            next_edit_for: BTreeMap::new(),
            next_edit_model: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GateConfig {
    /// Whether offers that you are not likely enough to accept are held back. The gate
    /// learns from every verdict either way.
    pub enabled: bool,
}

impl Default for GateConfig {
    fn default() -> Self {
        GateConfig { enabled: true }
    }
}

impl CompletionConfig {
    /// Returns whether this language is completed as the user types.
    pub fn is_on(&self, language: &str) -> bool {
        if !self.enabled {
            return false;
        }
        if self.is_silent_prose(language) {
            return false;
        }
        let named = self.languages.get(language).or_else(|| self.languages.get(ANY_LANGUAGE));
        named.copied().unwrap_or(true)
    }

    /// Returns whether a language is one of prose, and only for that reason is not completed.
    pub fn is_silent_prose(&self, language: &str) -> bool {
        !self.prose && prose::is_prose(language) && !self.languages.contains_key(language)
    }

    pub fn eagerness_in(&self, language: &str) -> Eagerness {
        self.eagerness_for.get(language).copied().unwrap_or(self.eagerness)
    }

    pub fn next_edit_in(&self, language: &str) -> NextEdit {
        self.next_edit_for.get(language).copied().unwrap_or(self.next_edit)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LearningConfig {
    /// Whether labels start updates. They are recorded either way.
    pub enabled: bool,
    /// Whether to learn while the machine runs on its battery.
    pub on_battery: bool,
    /// The most memory that the learner may hold, in MiB. 0 means half of the machine's.
    #[schemars(range(max = MEMORY_LIMIT_MB_MAX))]
    pub memory_limit_mb: u64,
}

impl Default for LearningConfig {
    fn default() -> Self {
        LearningConfig { enabled: true, on_battery: false, memory_limit_mb: 0 }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PrivacyConfig {
    /// Days after which what was recorded is deleted. 0 means never.
    #[schemars(range(max = 36_500))]
    pub retention_days: u32,
    /// Files of which nothing is stored, as patterns of a `.gitignore`, such as `*.sql` or
    /// `~/clients/`. Completions work there all the same. Files with credentials, and those
    /// that `.gitignore` and `.honeignore` name, need not be named here.
    pub ignore: Vec<String>,
}

impl Default for PrivacyConfig {
    fn default() -> Self {
        PrivacyConfig { retention_days: 180, ignore: vec![] }
    }
}

impl Config {
    /// P(accepted) from which on the gate shows an offer in a language.
    pub fn gate_threshold(&self, language: &str) -> f64 {
        if self.lab.gate_threshold > 0.0 {
            return self.lab.gate_threshold;
        }
        self.completion.eagerness_in(language).gate_threshold()
    }

    /// The settings of a file.
    ///
    /// # Errors
    /// Names the file, the line, and what would be right.
    pub fn load(path: &Path) -> Result<Config> {
        let (config, problems) = Config::usable(path);
        match problems.split_first() {
            None => Ok(config),
            Some((first, [])) => bail!("{}", first.at(path)),
            Some((first, others)) => {
                bail!("{} (and {} more; `hone doctor` lists them)", first.at(path), others.len())
            }
        }
    }

    /// The settings of a file that are right, and what is wrong with the others, which have their
    /// defaults. Commands that repair something use it, because they work whatever the settings
    /// are.
    pub fn usable(path: &Path) -> (Config, Vec<Problem>) {
        match file::read(path) {
            Ok(text) => check::check(&text),
            Err(problem) => (Config::default(), vec![problem]),
        }
    }

    #[cfg(test)]
    fn parse(text: &str) -> Result<Config> {
        match check::check(text) {
            (config, problems) if problems.is_empty() => Ok(config),
            (_, problems) => bail!("{}", problems[0]),
        }
    }

    /// Every setting with its value, defaults and the table `[lab]` included.
    pub fn to_json(&self) -> Result<Value> {
        Ok(shortest(serde_json::to_value(self)?))
    }

    /// # Errors
    /// A setting, and which of its lines is no pattern.
    fn check_patterns(&self) -> Result<(), (&'static str, NoPattern)> {
        for (key, lines) in [
            ("privacy.ignore", &self.privacy.ignore),
            ("completion.ignore", &self.completion.ignore),
        ] {
            Patterns::compile(lines).map_err(|error| (key, error))?;
        }
        Ok(())
    }
}

/// Returns where a setting stands in a file, such as `config.toml:3`.
pub fn place(path: &Path, key: &str) -> String {
    let text = file::read(path).unwrap_or_default();
    match check::line_of_key(&text, key) {
        Some(line) => format!("{}:{line}", path.display()),
        None => path.display().to_string(),
    }
}

/// The settings in a text without a mistake.
fn parse_file(text: &str) -> Result<Config> {
    let config = Config::deserialize(Deserializer::from(DeTable::parse(text)?))?;
    feedback::schema::check(&config)?;
    config.check_patterns().map_err(|(key, what)| anyhow::anyhow!("{key}: {what}"))?;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedback::job::Hyper;
    use serde_json::json;

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

    /// The example is written by hand, and nothing else notices when a setting gets another name.
    #[test]
    fn the_example_of_the_book_loads() {
        let page = include_str!("../../../docs/book/src/settings.md");
        let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
        let example = example.expect("the page has an example");
        let config = load(example).unwrap();
        assert_eq!(config.privacy.retention_days, Config::default().privacy.retention_days);
    }

    #[test]
    fn an_unknown_key_is_named_with_file_and_line() {
        let error = format!("{:#}", load("[lab]\nbatch_episode = 3\n").unwrap_err());
        assert!(error.contains("config.toml:2: lab.batch_episode: no such"), "{error}");
        assert!(error.contains("`lab.batch_episodes` may be meant"), "{error}");
    }

    #[test]
    fn a_value_out_of_range_is_refused() {
        let error = format!("{:#}", load("[lab]\nmax_tokens = 0\n").unwrap_err());
        assert!(error.contains("lab.max_tokens must be from 1 to 128"), "{error}");
        let error = format!("{:#}", load("lab.temperature = 2.5\n").unwrap_err());
        assert!(error.contains("lab.temperature must be from 0 to 2"), "{error}");
        let error = format!("{:#}", load("lab.ppo.epochs = 0\n").unwrap_err());
        assert!(error.contains("lab.ppo.epochs must be at least 1"), "{error}");
    }

    /// `lab.idle_exit_s = 0` was accepted. The daemon ended as soon as it listened, and
    /// every editor waited two minutes for it and then gave up with a message that did not
    /// name the setting.
    #[test]
    fn a_daemon_that_would_end_at_once_is_refused() {
        let error = format!("{:#}", load("lab.idle_exit_s = 0\n").unwrap_err());
        let expected = "lab.idle_exit_s must be at least 1, such as 600";
        assert!(error.contains(expected), "{error}");
        assert_eq!(load("lab.idle_exit_s = 1\n").unwrap().lab.idle_exit_s, 1);
    }

    /// TOML has `nan` and `inf`, which no range had excluded: they are no JSON, and the
    /// check of ranges goes by the settings as JSON.
    #[test]
    fn a_fraction_that_is_no_number_is_refused() {
        for value in ["nan", "inf", "-inf", "1e300"] {
            let error =
                format!("{:#}", load(&format!("lab.gate_threshold = {value}\n")).unwrap_err());
            assert!(error.contains("lab.gate_threshold must be from 0 to 0.99"), "{error}");
            let text = format!("lab.ppo.baseline = {value}\n");
            let error = format!("{:#}", load(&text).unwrap_err());
            assert!(error.contains("lab.ppo.baseline must be a number"), "{error}");
        }
    }

    /// The settings took values of `lab.ppo` that the learner refuses. Every update
    /// failed then, and its labels were set aside.
    #[test]
    fn what_the_learner_refuses_cannot_be_set() {
        let defaults = serde_json::to_value(Hyper::default()).unwrap();
        let (mut taken, mut refused) = (0, 0);
        for key in defaults.as_object().unwrap().keys() {
            for value in ["-1", "-0.5", "0", "1e-9", "0.5", "1", "1.5", "2", "256", "257"] {
                let hyper = json!({ key: value.parse::<f64>().unwrap() });
                // A whole number is one in TOML without a point.
                let whole = value.parse::<u32>().map(|value| json!({ key: value }));
                let hyper = serde_json::from_value(whole.unwrap_or(hyper));
                let learns = hyper.is_ok_and(|hyper: Hyper| hyper.check().is_ok());
                let set = load(&format!("lab.ppo.{key} = {value}\n"));
                assert_eq!(set.is_ok(), learns, "{key} = {value}: {set:?}");
                *(if learns { &mut taken } else { &mut refused }) += 1;
            }
        }
        assert!(taken > 20 && refused > 20, "{taken} {refused}");
        let error = format!("{:#}", load("lab.ppo.lora_alpha = 0\n").unwrap_err());
        assert!(error.contains("lab.ppo.lora_alpha must be above 0, such as 32"), "{error}");
    }

    /// The smallest and the largest value that the schema allows load, and those beyond
    /// them do not.
    #[test]
    fn every_range_holds_at_its_edges() {
        fn numbers(schema: &Value, key: &str, found: &mut Vec<(String, Value)>) {
            for (name, below) in schema["properties"].as_object().into_iter().flatten() {
                let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                if ["number", "integer"].map(Value::from).contains(&below["type"]) {
                    found.push((key.clone(), below.clone()));
                }
                numbers(below, &key, found);
            }
        }
        let mut found = vec![];
        numbers(&schema(), "", &mut found);
        assert!(found.len() > 20, "{found:?}");
        for (key, schema) in found {
            let set = |value: f64| load(&format!("{key} = {value}\n"));
            for (edge, within, beyond) in [
                ("minimum", 0.0, -1.0),
                ("exclusiveMinimum", 0.001, 0.0),
                ("maximum", 0.0, 1.0),
                ("exclusiveMaximum", -0.001, 0.0),
            ] {
                let Some(value) = schema[edge].as_f64() else { continue };
                let taken = set(value + within);
                taken.unwrap_or_else(|error| panic!("{key} = {}: {error:#}", value + within));
                assert!(set(value + beyond).is_err(), "{key} = {}", value + beyond);
            }
        }
    }

    #[test]
    fn a_pattern_that_is_none_is_refused() {
        let error = format!("{:#}", load("privacy.ignore = [\"*.sql\", \"a[\"]\n").unwrap_err());
        let told = "privacy.ignore has a line that is no pattern of a .gitignore, such as";
        assert!(error.contains(told) && error.ends_with("; it is \"a[\""), "{error}");
        let error = format!("{:#}", load("completion.ignore = [\"b[\"]\n").unwrap_err());
        assert!(error.ends_with("; it is \"b[\""), "{error}");
    }

    #[test]
    fn a_language_is_on_unless_it_or_every_other_is_switched_off() {
        let on = |text: &str, language: &str| load(text).unwrap().completion.is_on(language);
        assert!(on("", "rust"));
        let python = "[completion.languages]\npython = false\n";
        assert!(on(python, "rust") && !on(python, "python"));
        assert!(!on("", "markdown") && on("completion.prose = true\n", "markdown"));
        assert!(on("completion.languages.markdown = true\n", "markdown"), "it is named");
        assert!(!on("completion.languages.markdown = true\n", "git-commit"));
        assert!(!on("completion.enabled = false\ncompletion.languages.rust = true\n", "rust"));
        let only_rust = "[completion.languages]\n\"*\" = false\nrust = true\n";
        assert!(on(only_rust, "rust") && !on(only_rust, "markdown"));
    }
}
