//! The current settings. They are read without a lock and replaced as a whole.

use crate::reason::Reason;
use anyhow::Result;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use settings::patterns::Patterns;
use settings::{Config, ModelConfig};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch;

pub struct Settings {
    current: ArcSwap<Current>,
    /// The settings at the start of this process. A change of the models takes effect at the next
    /// start.
    loaded: Config,
    changed: watch::Sender<()>,
    /// Held while the file is read and the settings are replaced.
    reading: Mutex<()>,
}

/// All settings, and the patterns that are compiled from them.
pub struct Current {
    config: Config,
    /// `completion.ignore`.
    not_completed: Patterns,
    /// `privacy.ignore`.
    pub not_stored: Patterns,
}

impl Current {
    fn new(config: Config) -> Current {
        // The patterns were checked when the file was loaded, so they compile.
        let compile = |lines| Patterns::compile(lines).unwrap_or_else(|_| Patterns::none());
        Current {
            not_completed: compile(&config.completion.ignore),
            not_stored: compile(&config.privacy.ignore),
            config,
        }
    }

    /// Returns whether a document is completed as the user types.
    pub fn completes(&self, path: &str, language: &str) -> bool {
        self.silence(path, language).is_none()
    }

    /// Returns why a document is not completed as the user types, if it is not.
    pub fn silence(&self, path: &str, language: &str) -> Option<Reason> {
        if !self.completion.enabled {
            return Some(Reason::SwitchedOff);
        }
        if !self.completion.is_on(language) {
            if self.completion.is_silent_prose(language) {
                return Some(Reason::ProseOff { language: language.to_owned() });
            }
            return Some(Reason::LanguageOff { language: language.to_owned() });
        }
        let pattern = self.not_completed.pattern_for(path)?;
        Some(Reason::FileIgnored { pattern })
    }
}

impl Deref for Current {
    type Target = Config;

    fn deref(&self) -> &Config {
        &self.config
    }
}

impl Settings {
    pub fn new(config: Config) -> Settings {
        Settings {
            loaded: config.clone(),
            current: ArcSwap::from_pointee(Current::new(config)),
            changed: watch::Sender::new(()),
            reading: Mutex::new(()),
        }
    }

    pub fn current(&self) -> Arc<Current> {
        self.current.load_full()
    }

    /// Reads the file again. Of two readers the later one has what is newer: without the lock, it
    /// could be replaced by what the first has read.
    pub fn reload(&self, file: &Path) -> Result<()> {
        let _alone = self.reading.lock();
        self.replace(Config::load(file)?);
        Ok(())
    }

    /// Replaces the settings from the next message on. Those of the models wait for the next start.
    pub fn replace(&self, config: Config) {
        self.current.store(Arc::new(Current::new(config)));
        self.changed.send_replace(());
    }

    /// A receiver that is notified of every change.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Returns whether a setting has changed that takes effect only at the next start.
    pub fn needs_restart(&self) -> bool {
        of_models(&self.current.load()) != of_models(&self.loaded)
    }

    /// The name of the model for next edits that was set when this process started.
    pub fn next_edit_model(&self) -> Option<&str> {
        self.loaded.completion.next_edit_model.as_deref()
    }
}

/// The settings that take effect at the next start.
fn of_models(config: &Config) -> (&ModelConfig, Option<&str>) {
    (&config.model, config.completion.next_edit_model.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_either_model_waits_for_a_restart() {
        let changed = |change: fn(&mut Config)| {
            let settings = Settings::new(Config::default());
            let mut config = Config::default();
            change(&mut config);
            settings.replace(config);
            assert_eq!(settings.next_edit_model(), None, "it is that of the start");
            settings.needs_restart()
        };
        assert!(!changed(|config| config.learning.enabled = false));
        assert!(changed(|config| config.model.threads = 3));
        assert!(changed(|config| config.completion.next_edit_model = Some("a".into())));
    }
}
