//! `hone report`: a table, JSON, or a page.

use crate::cli::events::each_event_and_offer;
use crate::cli::output;
use crate::cli::settings::Configured;
use adapters::registry::Registry;
use anyhow::{Context, Result, bail};
use feedback::event::Event;
use host::paths::Paths;
use jiff::tz::TimeZone;
use models::file::write_atomic;
use report::next_edits::NextEditsBuilder;
use report::{Adapter, ReportBuilder, page::page, table::table};
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct ReportArgs {
    /// Write a page with charts, to open in a browser; into the current folder if no file is named,
    /// and to stdout for `-`
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "hone-report.html")]
    html: Option<PathBuf>,
    /// Print a JSON object
    #[arg(long, conflicts_with = "html")]
    json: bool,
}

pub async fn run(home: &Paths, args: ReportArgs) -> Result<()> {
    home.create()?;
    let configured = Configured::noted(home);
    let manifest = configured.model();
    let mut builder = ReportBuilder::new(TimeZone::system());
    let mut next_edits = NextEditsBuilder::default();
    let see = |event: &Event| next_edits.apply(event);
    each_event_and_offer(home, see, |history| {
        builder.add(&history);
        Ok(())
    })
    .await?;
    let (registry, _) = Registry::open(&home.adapters(), &manifest.sha256);
    let lineage = registry.entries().iter().map(|entry| Adapter::of(entry, registry.active()));
    let report = builder.report(&manifest.name, next_edits.next_edits(), lineage.collect());
    match args.html {
        // An editor shows the page in one of its own, also where it is empty yet.
        Some(path) if path.as_os_str() == "-" => emit!("{}", page(&report)?)?,
        Some(_) if report.from.is_none() && report.next_edits.is_none() => bail!(
            "nothing is recorded yet, so no page was written; write some code with Hone in your \
             editor"
        ),
        Some(path) => {
            write_atomic(&path, page(&report)?.as_bytes()).with_context(|| {
                format!("{}: cannot be written; name another file", path.display())
            })?;
            let path = path.canonicalize().unwrap_or(path);
            tell!("the page is written; open it in a browser:");
            emit!("{}", path.display())?;
        }
        None if args.json => emit!("{}", serde_json::to_string_pretty(&report)?)?,
        None => say!("{}", table(&report, output::layout()))?,
    }
    Ok(())
}
