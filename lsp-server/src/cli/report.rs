//! `hone report`: a table, JSON, or a page.

use crate::adapters::registry::Registry;
use crate::app::startup::configured_manifest;
use crate::cli::inspect::each_offer;
use crate::config::Config;
use crate::paths::Paths;
use crate::report::{Adapter, ReportBuilder, page::page, table::table};
use anyhow::{Context, Result};
use jiff::tz::TimeZone;
use models::file::write_atomic;
use models::manifest::Catalogue;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct ReportArgs {
    /// Write a page with charts, to open in a browser
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "hone-report.html")]
    html: Option<PathBuf>,
    /// Print a JSON object
    #[arg(long, conflicts_with = "html")]
    json: bool,
}

pub async fn run(home: &Paths, args: ReportArgs) -> Result<()> {
    home.create()?;
    let config = Config::load(&home.config_file())?;
    let catalogue = Catalogue::load(&home.models())?;
    let manifest = configured_manifest(home, &catalogue, &config)?;
    let mut builder = ReportBuilder::new(TimeZone::system());
    each_offer(home, |history| {
        builder.add(&history);
        Ok(())
    })
    .await?;
    let (registry, _) = Registry::open(&home.adapters(), &manifest.sha256);
    let lineage = registry.entries().iter().map(|entry| Adapter::of(entry, registry.active()));
    let report = builder.report(&manifest.name, lineage.collect());
    match args.html {
        Some(path) => {
            write_atomic(&path, page(&report)?.as_bytes()).with_context(|| {
                format!("{}: cannot be written; name another file", path.display())
            })?;
            let path = path.canonicalize().unwrap_or(path);
            println!("{}", path.display());
        }
        None if args.json => println!("{}", serde_json::to_string_pretty(&report)?),
        None => println!("{}", table(&report)),
    }
    Ok(())
}
