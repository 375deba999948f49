//! `hone model`: list, pull, add, use.

mod add;
mod expected;

use crate::app::startup::configured_manifest;
use crate::cli::settings::Configured;
use crate::cli::{config, one_line, output};
use crate::daemon::client;
use crate::daemon::handshake::Command;
use anyhow::Result;
use clap::Subcommand;
use host::paths::Paths;
use model_fetch::hub;
use model_fetch::progress::{JsonProgress, PullProgress, TerminalProgress};
use models::architecture;
use models::manifest::{Catalogue, Manifest};
use models::size::Size;
use models::store::{ModelStatus, Store};
use report::layout::{Column, Layout};
use report::status::Status;
use settings::Config;
use std::path::{Path, PathBuf};

/// How long a line may take with a model that editors show first to those who choose one.
const SUGGESTED_LINE_MS: u64 = 2000;

const COLUMNS: [Column; 7] = [
    Column::Text(""),
    Column::Text("name"),
    Column::Text("here"),
    Column::Number("size"),
    Column::Number("a line"),
    Column::Text("learns"),
    Column::Text("licence"),
];

#[derive(Subcommand)]
pub enum ModelCommand {
    /// List the known models and whether they are here
    ///
    /// More can be added as manifests: *.toml files in the models folder.
    List {
        /// Print a JSON object, with the paths of the files that are here
        #[arg(long)]
        json: bool,
    },
    /// Fetch a model, or the configured one; an interrupted pull resumes
    Pull {
        /// A name from `hone model list`
        name: Option<String>,
        /// Print JSON lines: bytes of a total, notes, and at last the path
        #[arg(long)]
        json: bool,
    },
    /// Take a model's file from this disk, where there is no network
    ///
    /// It must be one of `hone model list`: its size and checksum say which. It is copied
    /// into the models folder, and `hone model use NAME` serves it.
    Add {
        /// The file, such as a download of another machine
        file: PathBuf,
        /// Print a JSON object with the model's name and path
        #[arg(long)]
        json: bool,
    },
    /// Serve this model from now on
    Use {
        /// A name from `hone model list`
        name: String,
    },
}

pub async fn run(home: &Paths, command: ModelCommand) -> Result<()> {
    // A wrong setting must not keep anybody from choosing and fetching a model.
    let configured = Configured::noted(home);
    let catalogue = &configured.catalogue;
    let store = Store::new(home.models());
    let named = |name: Option<String>| match name {
        Some(name) => Ok(catalogue.get(&name)?),
        None => configured_manifest(home, catalogue, &configured.config),
    };
    if !matches!(command, ModelCommand::List { .. }) {
        home.create()?;
    }
    match command {
        ModelCommand::List { json: true } => list_json(home, &store, &configured),
        ModelCommand::List { json: false } => list(&store, catalogue, configured.model_name()),
        ModelCommand::Pull { name, json: true } => pull_for_programs(&store, named(name)?),
        ModelCommand::Pull { name, json: false } => {
            let manifest = named(name)?;
            pull(&store, manifest)?;
            // The path alone stands on stdout.
            // The notice of a model for next edits has said how it is used.
            if configured.model_name() == Some(&manifest.name) {
                tell!("{}", serve(home, manifest).await?);
            } else if !manifest.next_edits {
                tell!("next: `hone model use {}` serves it", manifest.name);
            }
            Ok(())
        }
        ModelCommand::Add { file, json } => add(&store, catalogue, &file, json),
        ModelCommand::Use { name } => choose(home, &store, catalogue.completing(&name)?).await,
    }
}

/// Sets the model, and has it serve if its file is here.
async fn choose(home: &Paths, store: &Store, manifest: &Manifest) -> Result<()> {
    let name = manifest.name.as_str();
    config::change(home, config::MODEL_NAME, Some(&name.into())).await?;
    if !store.has(manifest) {
        return say!("{name} is chosen, and is not here yet; next: `hone model pull`");
    }
    say!("{}", serve(home, manifest).await?)
}

/// Has the configured model serve: a daemon with another one makes way. Returns what to tell.
async fn serve(home: &Paths, manifest: &Manifest) -> Result<String> {
    let name = &manifest.name;
    Ok(match client::question::<Status>(home, Command::Status).await {
        Ok(None) => format!("{name} serves once an editor with Hone is open; next: `hone doctor`"),
        Ok(Some(status)) if status.model.sha256 == manifest.sha256 => format!("{name} serves"),
        // One that cannot load its model makes way too.
        Ok(Some(_)) | Err(_) => {
            client::restart(home).await?;
            format!("{name} serves from now on")
        }
    })
}

fn pull_for_programs(store: &Store, manifest: &Manifest) -> Result<()> {
    let mut progress = JsonProgress::new(std::io::stdout());
    let path = hub::pull(store, manifest, &mut progress)?;
    if let Some(notice) = &manifest.notice {
        progress.note(notice);
    }
    emit!("{}", serde_json::json!({ "path": path }))
}

fn pull(store: &Store, manifest: &Manifest) -> Result<()> {
    let path = hub::pull(store, manifest, &mut TerminalProgress::default())?;
    if let Some(notice) = &manifest.notice {
        tell!("note: {notice}");
    }
    emit!("{}", path.display())
}

fn add(store: &Store, catalogue: &Catalogue, file: &Path, json: bool) -> Result<()> {
    let (manifest, path) = add::add(store, catalogue, file)?;
    if json {
        return emit!("{}", serde_json::json!({ "name": manifest.name, "path": path }));
    }
    match &manifest.notice {
        Some(notice) if manifest.next_edits => say!("{}; {notice}", path.display()),
        _ => say!("{}; `hone model use {}` serves it", path.display(), manifest.name),
    }
}

fn list_json(home: &Paths, store: &Store, configured: &Configured) -> Result<()> {
    let models: Vec<_> = configured
        .catalogue
        .iter()
        // Editors have the user choose from it what completes code.
        .filter(|manifest| !manifest.next_edits)
        .map(|manifest| {
            let present = store.has(manifest);
            let is_configured = Some(manifest.name.as_str()) == configured.model_name();
            let line_ms = expected::line_ms(manifest.bytes);
            let is_quick = manifest.is_pinned() && line_ms <= SUGGESTED_LINE_MS;
            serde_json::json!({
                "name": manifest.name,
                "template": manifest.template.name,
                "architecture": manifest.architecture,
                "learns": architecture::learns(&manifest.architecture),
                "bytes": manifest.bytes,
                "pinned": manifest.is_pinned(),
                "licence": manifest.licence,
                "expected_line_ms": line_ms,
                "configured": is_configured,
                "present": present,
                "path": present.then(|| store.path(manifest).display().to_string()),
                "suggested": present || is_configured || is_quick,
            })
        })
        .collect();
    let problem = problem(home, configured);
    let all = serde_json::json!({ "models": models, "problem": problem });
    emit!("{}", serde_json::to_string_pretty(&all)?)
}

/// Returns what is wrong with the settings. Editors ask for it before they start the server, which
/// takes no wrong settings.
pub fn problem(home: &Paths, configured: &Configured) -> Option<String> {
    let config = Config::load(&home.config_file());
    let checked = config
        .and_then(|config| configured_manifest(home, &configured.catalogue, &config).map(drop));
    checked.err().map(|error| one_line(&error))
}

fn list(store: &Store, catalogue: &Catalogue, configured: Option<&str>) -> Result<()> {
    say!("{}", models_table(store, catalogue, configured, output::layout()))?;
    tell!("a line: estimated for two cores; `hone doctor` says how fast this machine answers");
    tell!("learns: no means that the model serves as it is, and nothing is learned on it");
    tell!("–: writes next edits (`completion.next_edit_model`), and completes no code");
    tell!("~ before a size: the first pull asks the hub for the exact size and the checksum");
    Ok(())
}

fn models_table(
    store: &Store,
    catalogue: &Catalogue,
    configured: Option<&str>,
    layout: Layout,
) -> String {
    let row = |manifest: &Manifest| {
        let mark = if Some(manifest.name.as_str()) == configured { "→" } else { "" };
        let here = match store.status(manifest) {
            ModelStatus::Missing => "no".to_owned(),
            ModelStatus::Partial { bytes } => {
                format!("{} %", 100 * bytes / manifest.bytes.max(1))
            }
            ModelStatus::Present | ModelStatus::Verified => "yes".into(),
            ModelStatus::Wrong => "damaged".into(),
        };
        let about = if manifest.is_pinned() { "" } else { "~" };
        let size = format!("{about}{}", Size(manifest.bytes));
        let line = format!("{:.1} s", expected::line_ms(manifest.bytes) as f64 / 1000.0);
        let learns = match architecture::learns(&manifest.architecture) {
            _ if manifest.next_edits => "–",
            true => "yes",
            false => "no",
        };
        let (name, licence) = (manifest.name.clone(), manifest.licence.clone());
        vec![mark.into(), name, here, size, line, learns.into(), licence]
    };
    layout.table(&COLUMNS, &catalogue.iter().map(row).collect::<Vec<_>>())
}
