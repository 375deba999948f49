//! `hone model`: list, pull, use, path.

use crate::config::Config;
use crate::home::Home;
use crate::launch::configured_manifest;
use anyhow::{Context, Result};
use clap::Subcommand;
use comfy_table::{Table, presets};
use models::file::write_atomic;
use models::manifest::{Catalogue, Manifest};
use models::progress::TerminalProgress;
use models::store::{ModelStatus, Store};
use toml_edit::DocumentMut;

#[derive(Subcommand)]
pub enum ModelCommand {
    /// List the known models and whether they are here
    ///
    /// More can be added as manifests: *.toml files in the models folder.
    List,
    /// Fetch a model, or the configured one; an interrupted pull resumes
    Pull {
        /// A name from `hone model list`
        name: Option<String>,
    },
    /// Serve this model from the next start of the daemon on
    Use {
        /// A name from `hone model list`
        name: String,
    },
    /// Print where a model's file is
    Path {
        /// A name from `hone model list`; the configured model if left out
        name: Option<String>,
    },
}

pub fn run(home: &Home, command: ModelCommand) -> Result<()> {
    home.create()?;
    let config = Config::load(&home.config_file())?;
    let catalogue = Catalogue::load(&home.models())?;
    let store = Store::new(home.models());
    let named = |name: Option<String>| -> Result<&Manifest> {
        match name {
            Some(name) => Ok(catalogue.get(&name)?),
            None => configured_manifest(home, &catalogue, &config),
        }
    };
    match command {
        ModelCommand::List => list(home, &store, &catalogue, &config),
        ModelCommand::Pull { name } => {
            let manifest = named(name)?;
            let path = models::hub::pull(&store, manifest, &mut TerminalProgress::default())?;
            if let Some(notice) = &manifest.notice {
                eprintln!("note: {notice}");
            }
            println!("{}", path.display());
            Ok(())
        }
        ModelCommand::Use { name } => {
            let manifest = catalogue.get(&name)?;
            choose(home, &manifest.name)?;
            println!("{name} serves from the next start on (`hone stop` ends the daemon)");
            if store.status(manifest) == ModelStatus::Missing {
                println!("it is not here yet: `hone model pull`");
            }
            Ok(())
        }
        ModelCommand::Path { name } => {
            println!("{}", store.verified(named(name)?)?.display());
            Ok(())
        }
    }
}

/// Sets `model.name` and leaves the rest of the file as the user wrote it.
fn choose(home: &Home, name: &str) -> Result<()> {
    let path = home.config_file();
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read.with_context(|| path.display().to_string())?,
    };
    let mut document: DocumentMut = text.parse().with_context(|| path.display().to_string())?;
    document.entry("model").or_insert(toml_edit::table())["name"] = toml_edit::value(name);
    write_atomic(&path, document.to_string().as_bytes())
        .with_context(|| format!("{}: cannot be written", path.display()))
}

fn list(home: &Home, store: &Store, catalogue: &Catalogue, config: &Config) -> Result<()> {
    let configured = configured_manifest(home, catalogue, config)?;
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["", "name", "template", "size", "licence", "here"]);
    for manifest in catalogue.iter() {
        let mark = if manifest.name == configured.name { "→" } else { "" };
        let here = match store.status(manifest) {
            ModelStatus::Missing => "no".to_owned(),
            ModelStatus::Partial { bytes } => {
                format!("{} %", 100 * bytes / manifest.bytes.max(1))
            }
            ModelStatus::Present | ModelStatus::Verified => "yes".into(),
            ModelStatus::Wrong => "damaged".into(),
        };
        let size = indicatif::HumanBytes(manifest.bytes).to_string();
        let (name, licence) = (manifest.name.clone(), manifest.licence.clone());
        table.add_row([mark.into(), name, manifest.template.name.into(), size, licence, here]);
    }
    println!("{table}");
    Ok(())
}
