//! Settings and models for commands that show or repair something. They work whatever the
//! settings are: what is wrong counts as not set, and is reported.

use crate::app::startup::{configured_manifest, configured_next_edit_manifest, next_edit_manifest};
use adapters::registry::Registry;
use host::paths::Paths;
use models::manifest::{Catalogue, Manifest};
use settings::Config;

/// What is configured, as far as it is right.
pub struct Configured {
    pub config: Config,
    pub catalogue: Catalogue,
    /// What is wrong with the settings and with the user's manifests, each with its file.
    pub problems: Vec<String>,
    /// True if `model.name` names a model that is known.
    is_known: bool,
}

impl Configured {
    pub fn read(home: &Paths) -> Configured {
        let file = home.config_file();
        let (config, problems) = Config::usable(&file);
        // A name that cannot be read leaves the default in its place.
        let is_lost = problems
            .iter()
            .any(|problem| problem.key.is_empty() || problem.key.starts_with("model"));
        let mut problems: Vec<String> = problems.iter().map(|problem| problem.at(&file)).collect();
        let (catalogue, wrong) = Catalogue::usable(&home.models());
        problems.extend(wrong.iter().map(ToString::to_string));
        let unknown = configured_manifest(home, &catalogue, &config).err();
        let is_known = unknown.is_none() && !is_lost;
        let name = config.completion.next_edit_model.as_deref();
        let unusable =
            name.and_then(|name| configured_next_edit_manifest(home, &catalogue, name).err());
        problems.extend(unknown.into_iter().chain(unusable).map(|error| format!("{error:#}")));
        Configured { config, catalogue, problems, is_known }
    }

    /// The same, and the user is told what is wrong.
    pub fn noted(home: &Paths) -> Configured {
        let configured = Configured::read(home);
        configured.problems.iter().for_each(|problem| tell!("note: {problem}"));
        configured
    }

    /// The configured model, or the default one if nobody knows that.
    pub fn model(&self) -> &Manifest {
        let name = self.config.model.name.as_deref();
        let named = name.and_then(|name| self.catalogue.completing(name).ok());
        named.unwrap_or_else(|| self.catalogue.default_model())
    }

    /// The name of the configured model, if it is known.
    pub fn model_name(&self) -> Option<&str> {
        self.is_known.then(|| self.model().name.as_str())
    }

    /// The model for next edits, if one is set that can be asked.
    pub fn next_edit_model(&self) -> Option<&Manifest> {
        let name = self.config.completion.next_edit_model.as_deref()?;
        next_edit_manifest(&self.catalogue, name).ok()
    }

    /// The model that adapters are for. If the configured one is unknown, it is that of the
    /// newest adapter, so that the registry does not look like that of another model.
    pub fn base_sha256(&self, home: &Paths) -> String {
        let base = &self.model().sha256;
        if self.is_known {
            return base.clone();
        }
        let (registry, _) = Registry::open(&home.adapters(), base);
        registry.entries().last().map_or_else(|| base.clone(), |entry| entry.base_sha256.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told_and_the_rest_counts() {
        let folder = tempfile::tempdir().unwrap();
        let home = Paths::at(folder.path().into());
        home.create().unwrap();
        let text = "learning.enabled = false\nmodel.name = \"gpt-9\"\nmodel.threads = \"all\"\n\
                    completion.next_edit_model = \"smollm2-135m\"\n";
        std::fs::write(home.config_file(), text).unwrap();
        std::fs::write(home.models().join("mine.toml"), "name = 3\n").unwrap();
        let configured = Configured::read(&home);
        assert!(!configured.config.learning.enabled);
        assert_eq!(configured.model().name, configured.catalogue.default_model().name);
        assert_eq!(configured.model_name(), None);
        assert!(configured.next_edit_model().is_none());
        let file = home.config_file().display().to_string();
        let [threads, manifest, name, next_edits] = &*configured.problems else {
            panic!("{:?}", configured.problems)
        };
        assert!(threads.starts_with(&format!("{file}:3: model.threads must be")), "{threads}");
        assert!(manifest.contains("mine.toml:1: "), "{manifest}");
        assert!(name.starts_with(&format!("{file}:2: model.name: unknown model")), "{name}");
        let unusable = format!("{file}:4: completion.next_edit_model: smollm2-135m cannot write");
        assert!(next_edits.starts_with(&unusable), "{next_edits}");
    }
}
