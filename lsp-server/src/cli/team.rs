//! `hone team`: sharing a part of the adapter with a team. The package `team` runs `contribute` and
//! `receive`, and carries what they print and read to the coordinator and back.

use crate::app::team::{ContributionMessage, TEAM_FORMAT};
use crate::cli::settings::Configured;
use crate::cli::{config, output};
use crate::daemon::client;
use crate::daemon::handshake::Command;
use adapters::registry::Registry;
use adapters::team::{Outcome, Received, TeamFiles};
use anyhow::{Context, Result, bail, ensure};
use clap::Subcommand;
use host::paths::Paths;
use learning::contribution::EPISODES_MIN;
use models::adapter::LoraAdapter;
use models::file::hex;
use models::gguf::Gguf;
use models::store::Store;
use models::team::frame::Frame;
use serde_json::{Value, json};
use settings::Config;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What a message on stdin may have, in bytes.
const MESSAGE_BYTES_MAX: u64 = 64 << 20;

/// ε is told to the daemon in thousandths, rounded up.
const EPSILON_PARTS: f64 = 1000.0;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct TeamArgs {
    #[command(subcommand)]
    command: Option<TeamCommand>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum TeamCommand {
    /// Join a team: share a part of the adapter, never code
    ///
    /// Nothing is sent by this alone. It prints the command that does.
    ///
    ///   hone team join hone.example.org:9092 --certificate ca.pem
    #[command(verbatim_doc_comment)]
    Join {
        /// Where the team's coordinator listens
        #[arg(value_name = "HOST:PORT")]
        address: String,
        /// The PEM file with the certificate that the coordinator's must be signed by
        #[arg(long, value_name = "FILE.pem")]
        certificate: Option<PathBuf>,
    },
    /// Leave the team: nothing more is sent or received
    ///
    /// What was learned stays on this machine, and the team keeps what was contributed.
    Leave,
    /// Show what was contributed and received, as `hone team` alone does (scripts)
    #[command(hide = true)]
    Status {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Learn for the team, and print what is sent of it (for the package `team`)
    #[command(hide = true)]
    Contribute {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        /// How many members the round has
        #[arg(long, value_name = "N")]
        members: usize,
        /// The ε that is spent after this contribution, if `team.noise` is set
        #[arg(long, value_name = "E")]
        epsilon: Option<f64>,
    },
    /// Take a version of the team's adapter from stdin (for the package `team`)
    #[command(hide = true)]
    Receive {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

pub async fn run(home: &Paths, args: TeamArgs) -> Result<()> {
    match args.command.unwrap_or(TeamCommand::Status { json: args.json }) {
        TeamCommand::Join { address, certificate } => join(home, &address, certificate).await,
        TeamCommand::Leave => leave(home).await,
        TeamCommand::Status { json } => status(home, json).await,
        TeamCommand::Contribute { json, members, epsilon } => {
            contribute(home, json, members, epsilon).await
        }
        TeamCommand::Receive { json } => receive(home, json).await,
    }
}

async fn join(home: &Paths, address: &str, certificate: Option<PathBuf>) -> Result<()> {
    check_address(address)?;
    let certificate = match certificate {
        Some(path) => Some(checked_certificate(&path)?),
        None => None,
    };
    ensure!(
        certificate.is_some() || is_loopback(address),
        "name the coordinator's certificate with --certificate; without one, only a coordinator on \
         this machine is joined"
    );
    let text = certificate.as_ref().map(|path| Value::from(path.display().to_string()));
    config::change(home, "team.certificate", text.as_ref()).await?;
    config::change(home, "team.address", Some(&address.into())).await?;
    say!("joined; nothing has been sent. This takes part in the team's rounds while it runs:")?;
    say!("  hone-team node")?;
    Ok(())
}

fn check_address(address: &str) -> Result<()> {
    let port = address.rsplit_once(':').filter(|(host, _)| !host.is_empty());
    let port = port.and_then(|(_, port)| port.parse::<u16>().ok());
    ensure!(port.is_some_and(|port| port > 0), "{address}: say HOST:PORT, as in host.example:9092");
    Ok(())
}

fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    ["localhost", "127.0.0.1", "[::1]"].contains(&host)
}

fn checked_certificate(path: &Path) -> Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("{}: cannot be read", path.display()))?;
    ensure!(
        text.contains("-----BEGIN CERTIFICATE-----"),
        "{}: holds no certificate in PEM form",
        path.display()
    );
    Ok(path)
}

async fn leave(home: &Paths) -> Result<()> {
    for key in ["team.address", "team.certificate"] {
        config::change(home, key, None).await?;
    }
    say!("left: nothing more is sent or received")?;
    say!("what serves continues to serve; `hone adapter use 0` serves the model alone")?;
    say!("end `hone-team node`, if it still runs")?;
    Ok(())
}

async fn contribute(home: &Paths, json: bool, members: usize, epsilon: Option<f64>) -> Result<()> {
    if let Some(epsilon) = epsilon {
        ensure!(epsilon.is_finite() && epsilon >= 0.0, "--epsilon {epsilon} is no ε");
    }
    let epsilon_parts = epsilon.map(|epsilon| (epsilon * EPSILON_PARTS).ceil() as u64);
    let command = Command::Contribute { members, epsilon_parts };
    let answer = client::question::<Result<ContributionMessage, String>>(home, command).await?;
    let Some(answer) = answer else { bail!("no daemon runs; an editor with Hone starts it") };
    let message = answer.map_err(anyhow::Error::msg)?;
    if json {
        emit!("{}", serde_json::to_string(&message)?)?;
    } else {
        say!("{} numbers for version {}", message.numbers.len(), message.version)?;
    }
    Ok(())
}

async fn receive(home: &Paths, json: bool) -> Result<()> {
    let mut text = vec![];
    std::io::stdin().lock().take(MESSAGE_BYTES_MAX + 1).read_to_end(&mut text)?;
    ensure!(text.len() as u64 <= MESSAGE_BYTES_MAX, "stdin: over {MESSAGE_BYTES_MAX} bytes");
    let path = TeamFiles::next_to(&home.adapters()).message_file()?;
    models::file::write_atomic(&path, &text)
        .with_context(|| format!("{}: cannot be written", path.display()))?;
    let command = Command::Receive { message: path.clone() };
    let answer = client::question::<Result<Received, String>>(home, command).await;
    let _ = std::fs::remove_file(&path);
    let Some(answer) = answer? else { bail!("no daemon runs; an editor with Hone starts it") };
    let received = answer.map_err(anyhow::Error::msg)?;
    if json {
        emit!("{}", serde_json::to_string(&received)?)?;
    } else {
        say!("version {}: {}", received.version, told(&received))?;
    }
    Ok(())
}

fn told(received: &Received) -> String {
    match (received.outcome, &received.reason) {
        (Outcome::Trial, _) => "on trial (`hone adapter show`)".into(),
        (Outcome::Serves, _) => "serves".into(),
        (Outcome::Refused, Some(reason)) => format!("refused: {reason}"),
        (Outcome::Refused, None) => "refused".into(),
        (Outcome::Same, _) => "here already".into(),
    }
}

async fn status(home: &Paths, as_json: bool) -> Result<()> {
    let configured = Configured::noted(home);
    let (team, lab) = (&configured.config.team, &configured.config.lab);
    let files = TeamFiles::next_to(&home.adapters());
    let ledger = files.ledger()?;
    // Without the model's file only the numbers of the frame are missing.
    let manifest = configured.model();
    let frame = Store::new(home.models())
        .verified(manifest)
        .ok()
        .and_then(|path| Frame::of(&Gguf::open(&path).ok()?, &manifest.sha256).ok());
    let core = frame.as_ref().map(|frame| files.core(frame));
    let serves = serves_shared(home, &manifest.sha256);
    let labels = labels(home).await;
    if as_json {
        let object = json!({
            "format": TEAM_FORMAT,
            "address": team.address,
            "certificate": team.certificate,
            "minimum_members": team.minimum_members,
            "max_norm": lab.team_max_norm,
            "noise": team.noise,
            "epsilon": ledger.epsilon,
            "epsilon_limit": team.epsilon_limit,
            "delta": lab.team_delta,
            "mechanisms": ledger.mechanisms,
            "contributions": ledger.count(),
            "contributed_to": ledger.contributed_to(),
            "labels": labels,
            "labels_min": EPISODES_MIN,
            "frame": frame.as_ref().map(|frame| hex(&frame.sha256())),
            "numbers": frame.as_ref().map(Frame::numbers),
            "version": core.as_ref().map(|core| core.version),
            "core": frame.as_ref().zip(core.as_ref()).map(|(f, core)| hex(&core.sha256(f))),
            "received": ledger.received,
            "serves": serves,
        });
        emit!("{}", serde_json::to_string(&object)?)?;
        return Ok(());
    }
    let waiting = match labels {
        Some(labels) => {
            let labels = printable::count(labels, "label");
            format!("{labels}; a contribution takes {EPISODES_MIN}")
        }
        None => "not known, because no daemon answers; an editor starts one".into(),
    };
    let received = match &ledger.received {
        Some(received) => format!("version {}: {}", received.version, told(received)),
        None => "nothing yet".into(),
    };
    let none = "none; `hone team join` joins one";
    let fields = [
        ("team", team.address.clone().unwrap_or_else(|| none.into())),
        ("sent", printable::count(ledger.count(), "contribution")),
        ("waiting", waiting),
        ("privacy", privacy(&configured.config, ledger.epsilon)),
        ("received", received),
        ("serves", format!("{} the team's part", if serves { "with" } else { "without" })),
    ];
    say!("{}", output::layout().fields(fields))
}

/// Returns how many labels the next contribution would learn from; `None` without a daemon that
/// knows.
async fn labels(home: &Paths) -> Option<usize> {
    let answer = client::question::<Result<usize, String>>(home, Command::LabelsForTeam).await;
    answer.ok()??.ok()
}

fn privacy(config: &Config, epsilon: Option<f64>) -> String {
    let (team, delta) = (&config.team, config.lab.team_delta);
    match (team.noise > 0.0, epsilon) {
        (false, _) => "only sums are seen; no noise is added (team.noise)".into(),
        (true, None) => format!("nothing spent of ε {} (δ {delta})", team.epsilon_limit),
        (true, Some(epsilon)) => {
            format!("ε {epsilon:.2} of {} spent (δ {delta})", team.epsilon_limit)
        }
    }
}

/// Returns whether the adapter that serves has a shared part.
fn serves_shared(home: &Paths, base_sha256: &str) -> bool {
    let (registry, _) = Registry::open(&home.adapters(), base_sha256);
    let file = registry.adapter_file(registry.active());
    registry.active() > 0 && LoraAdapter::read(&file).is_ok_and(|adapter| adapter.shared_rank > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for right in ["localhost:9092", "hone.example.org:443", "[::1]:9092"] {
            check_address(right).unwrap();
        }
        for wrong in ["localhost", ":9092", "host:0", "host:99999", "host:port", ""] {
            assert!(check_address(wrong).is_err(), "{wrong}");
        }
        assert!(is_loopback("127.0.0.1:9092") && is_loopback("[::1]:1"));
        assert!(!is_loopback("localhost.example.org:9092"));
    }

    #[tokio::test]
    async fn a_team_on_another_machine_needs_its_certificate() {
        let folder = tempfile::tempdir().unwrap();
        let home = Paths::at(folder.path().into());
        let error = join(&home, "hone.example.org:9092", None).await.unwrap_err().to_string();
        assert!(error.contains("--certificate"), "{error}");
        // What lies in a home is Hone's own.
        let elsewhere = tempfile::tempdir().unwrap();
        let file = elsewhere.path().join("ca.pem");
        std::fs::write(&file, "nothing of it").unwrap();
        let error = join(&home, "hone.example.org:9092", Some(file.clone())).await.unwrap_err();
        assert!(error.to_string().contains("ca.pem: holds no certificate"), "{error:#}");
        std::fs::write(&file, "-----BEGIN CERTIFICATE-----\n").unwrap();
        join(&home, "hone.example.org:9092", Some(file.clone())).await.unwrap();
        let team = settings::Config::load(&home.config_file()).unwrap().team;
        assert_eq!(team.address.as_deref(), Some("hone.example.org:9092"));
        assert_eq!(team.certificate.map(PathBuf::from), Some(file));
        leave(&home).await.unwrap();
        let team = settings::Config::load(&home.config_file()).unwrap().team;
        assert_eq!(team, settings::TeamConfig::default());
    }

    #[test]
    fn the_privacy_that_was_spent_is_told() {
        let quiet = Config::default();
        assert!(privacy(&quiet, None).contains("no noise"));
        let mut noisy = quiet.clone();
        noisy.team.noise = 2.0;
        assert!(privacy(&noisy, None).starts_with("nothing spent of ε 8"));
        assert!(privacy(&noisy, Some(1.5)).starts_with("ε 1.50 of 8 spent (δ 0.00001)"));
    }
}
