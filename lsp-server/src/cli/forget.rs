//! `hone forget`: through the daemon if one runs, else in its files.

use crate::adapters::Registry;
use crate::client;
use crate::config::Config;
use crate::forget::{Forgotten, Found, names_of};
use crate::home::Home;
use crate::launch::configured_manifest;
use crate::serve;
use crate::wire::Purpose;
use anyhow::{Result, bail, ensure};
use feedback::sled_log::SledLog;
use models::manifest::Catalogue;
use std::io::{BufRead, IsTerminal, Write};

#[derive(clap::Args)]
pub struct ForgetArgs {
    /// The file; it need not exist any more
    #[arg(long, value_name = "PATH")]
    file: String,
    /// Do not ask first
    #[arg(long)]
    yes: bool,
    /// Print a JSON object: events, offers, adapters removed, adapter that serves
    #[arg(long)]
    json: bool,
}

pub async fn run(home: &Home, args: ForgetArgs) -> Result<()> {
    home.create()?;
    let names = names_of(&args.file);
    if !args.yes {
        let plan = forget(home, &names, true).await?;
        if plan.events > 0 && !confirmed(&args.file, &plan)? {
            bail!("nothing was forgotten");
        }
    }
    let done = forget(home, &names, false).await?;
    if args.json {
        println!("{}", serde_json::to_string(&done)?);
    } else if done.events == 0 {
        println!("nothing is recorded about {}", args.file);
    } else {
        println!("forgotten: {}", sentence(&done));
    }
    Ok(())
}

async fn forget(home: &Home, names: &[String], plan: bool) -> Result<Forgotten> {
    let purpose = Purpose::Forget { files: names.to_vec(), plan };
    match client::question::<Result<Forgotten, String>>(home, purpose).await? {
        Some(answer) => answer.map_err(anyhow::Error::msg),
        None => in_files(home, names, plan),
    }
}

fn in_files(home: &Home, names: &[String], plan: bool) -> Result<Forgotten> {
    // No daemon; none may start while its files change.
    let _elected = serve::elect(home)?;
    let config = Config::load(&home.config_file())?;
    let catalogue = Catalogue::load(&home.models())?;
    let base_sha256 = &configured_manifest(home, &catalogue, &config)?.sha256;
    let (mut registry, _) = Registry::open(&home.adapters(), base_sha256);
    let log = SledLog::open(&home.event_log())?;
    let found = Found::search(&log, names.to_vec())?;
    let result = found.plan(&registry, base_sha256);
    if !plan && result.events > 0 {
        registry.forget(&result.adapters, result.serves)?;
        found.erase(&log)?;
    }
    Ok(result)
}

fn confirmed(file: &str, plan: &Forgotten) -> Result<bool> {
    ensure!(
        std::io::stdin().is_terminal(),
        "nothing was forgotten: this would remove {}; say --yes",
        sentence(plan)
    );
    eprint!("{file}: forget {}? This cannot be undone. [y/N] ", sentence(plan));
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn sentence(forgotten: &Forgotten) -> String {
    let offers = format!("{} offer(s)", forgotten.offers);
    let Some(last) = forgotten.adapters.last() else { return offers };
    let adapters = match forgotten.adapters.len() {
        1 => format!("adapter v{last}"),
        count => format!("{count} adapters up to v{last}"),
    };
    let serves = match forgotten.serves {
        0 => "the model alone serves".to_owned(),
        version => format!("v{version} serves"),
    };
    format!("{offers} and {adapters} that learned from them; {serves} from then on")
}
