//! `hone feedback`: the verdicts on the offers, for other programs and for
//! judging them by another reward.

use crate::cli::inspect::{each_offer, is_broken_pipe};
use crate::config::Config;
use crate::paths::Home;
use crate::report::export::without_code;
use crate::report::offers::OfferHistory;
use anyhow::{Context, Result, ensure};
use clap::Subcommand;
use comfy_table::{CellAlignment, Table, presets};
use feedback::event::Outcome;
use feedback::reward;
use feedback::reward::RewardVersion;
use serde::Serialize;
use serde_json::{Value, json};
use std::io::Write;

#[derive(Subcommand)]
pub enum FeedbackCommand {
    /// Print every judged offer as a JSON line, oldest first
    ///
    /// What was offered, by which adapter, what became of it, how that is known,
    /// when, and the reward it earned. To look at it in a table, for example:
    ///
    ///   hone feedback export | jq -r '[.outcome.kind, .reward.value] | @tsv'
    #[command(verbatim_doc_comment)]
    Export {
        /// Include code: prompts, offered text and token ids
        #[arg(long)]
        with_code: bool,
    },
    /// Show what another reward would have said of the same verdicts
    ///
    /// The log holds what happened, not what it was worth; so a reward can be
    /// compared with the one in use on your own history, before it trains anything.
    Replay {
        /// The reward to compare with the one in use: v1, v2
        #[arg(long, value_name = "VERSION", value_parser = version)]
        reward: RewardVersion,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
}

pub async fn run(home: &Home, command: FeedbackCommand) -> Result<()> {
    match command {
        FeedbackCommand::Export { with_code } => export(home, with_code).await,
        FeedbackCommand::Replay { reward, json } => replay(home, reward, json).await,
    }
}

/// As the log and the configuration write it.
fn name(version: RewardVersion) -> String {
    let name = serde_json::to_value(version).ok();
    name.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

fn version(text: &str) -> Result<RewardVersion, String> {
    let known = RewardVersion::ALL;
    known.into_iter().find(|version| name(*version) == text).ok_or_else(|| {
        let names: Vec<_> = known.into_iter().map(name).collect();
        format!("there is no such reward; say {}", names.join(" or "))
    })
}

async fn export(home: &Home, with_code: bool) -> Result<()> {
    let mut output = std::io::stdout().lock();
    let exported = each_offer(home, |history| match line(&history, with_code)? {
        Some(line) => Ok(writeln!(output, "{line}")?),
        None => Ok(()),
    });
    match exported.await {
        // `hone feedback export | head` is no error.
        Err(error) if is_broken_pipe(&error) => Ok(()),
        done => done,
    }
}

/// `None` for what was never judged.
fn line(history: &OfferHistory, with_code: bool) -> Result<Option<Value>> {
    let Some(episode) = history.episode(reward::CURRENT) else { return Ok(None) };
    let Some(value) = episode.reward(reward::CURRENT) else { return Ok(None) };
    let first = history.first();
    let mut completion = match with_code {
        true => serde_json::to_value(first)?,
        false => without_code(first)?,
    };
    let fields = completion.as_object_mut().context("a completion is an object")?;
    for said_outside in ["id", "at_ms", "event", "seq"] {
        fields.remove(said_outside);
    }
    let judged = history.outcome(&episode);
    let mut line = json!({
        "offer": history.completion().id,
        "at_ms": first.at_ms,
        "adapter": history.completion().adapter,
        "outcome": judged.map(|(outcome, ..)| outcome),
        "evidence": judged.map(|(_, evidence, _)| evidence),
        "judged_at_ms": judged.map(|(.., at_ms)| at_ms),
        "seen": episode.shown,
        "kept": episode.kept,
        "reward": { "version": name(reward::CURRENT), "value": value },
        "completion": completion,
    });
    if with_code {
        line["typed_instead"] = json!(episode.replacement);
    }
    Ok(Some(line))
}

/// Offers of one fate, under two rewards.
#[derive(Debug, Default, Serialize)]
struct Row {
    outcome: &'static str,
    offers: u64,
    /// Mean over those that have one.
    in_use: Option<f64>,
    other: Option<f64>,
    /// Advantages (reward − V) whose sign is another: what was encouraged is
    /// discouraged, or the reverse, or it is a label under one of them alone.
    signs_changed: u64,
    #[serde(skip)]
    sums: [(f64, u64); 2],
}

const FATES: [&str; 10] = [
    "accepted",
    "partly accepted",
    "typed through",
    "rejected: Esc",
    "rejected: 10 s",
    "rejected: typed on",
    "superseded",
    "unseen",
    "open",
    "broken, not shown",
];

fn fate(outcome: Option<Outcome>, is_silence: bool) -> usize {
    match outcome {
        Some(Outcome::Accepted) => 0,
        Some(Outcome::PartlyAccepted { .. }) => 1,
        Some(Outcome::TypedThrough { .. }) => 2,
        Some(Outcome::RejectedEsc) => 3,
        Some(Outcome::RejectedTimeout) => 4,
        Some(Outcome::RejectedEdit) => 5,
        Some(Outcome::Superseded) => 6,
        Some(Outcome::Unseen) => 7,
        None if is_silence => 9,
        None => 8,
    }
}

/// V, and both rewards' rows.
struct Replay {
    value: f32,
    versions: [RewardVersion; 2],
    rows: [Row; FATES.len()],
}

impl Replay {
    fn new(value: f32, other: RewardVersion) -> Replay {
        let rows = FATES.map(|outcome| Row { outcome, ..Row::default() });
        Replay { value, versions: [reward::CURRENT, other], rows }
    }

    fn add(&mut self, history: &OfferHistory) {
        // An offer's fate is the same under both; its worth may not be.
        let episodes = self.versions.map(|version| history.episode(version));
        let Some(episode) = episodes.iter().flatten().next() else { return };
        let outcome = episode.outcome.map(|(outcome, _)| outcome);
        let row = &mut self.rows[fate(outcome, episode.is_no_offer())];
        row.offers += 1;
        let rewards = [0, 1].map(|index: usize| {
            let version = self.versions[index];
            episodes[index].as_ref().and_then(|episode| episode.reward(version))
        });
        for (sum, reward) in row.sums.iter_mut().zip(rewards) {
            if let Some(reward) = reward {
                *sum = (sum.0 + f64::from(reward), sum.1 + 1);
            }
        }
        let sign = |reward: Option<f32>| reward.map_or(0, |r| if r > self.value { 1 } else { -1 });
        row.signs_changed += u64::from(sign(rewards[0]) != sign(rewards[1]));
    }

    fn rows(self) -> Vec<Row> {
        let met = self.rows.into_iter().filter(|row| row.offers > 0);
        let mean = |(sum, count): (f64, u64)| (count > 0).then(|| sum / count as f64);
        met.map(|row| Row { in_use: mean(row.sums[0]), other: mean(row.sums[1]), ..row }).collect()
    }
}

async fn replay(home: &Home, other: RewardVersion, as_json: bool) -> Result<()> {
    let config = Config::load(&home.config_file())?;
    let value = config.learning.ppo.baseline;
    let mut replay = Replay::new(value, other);
    each_offer(home, |history| {
        replay.add(&history);
        Ok(())
    })
    .await?;
    let rows = replay.rows();
    ensure!(!rows.is_empty(), "nothing to replay: no offer is recorded yet");
    let (in_use, other) = (name(reward::CURRENT), name(other));
    if as_json {
        let all = json!({ "in_use": in_use, "other": other, "value": value, "outcomes": rows });
        println!("{}", serde_json::to_string_pretty(&all)?);
        return Ok(());
    }
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED);
    let heading = |version: &str| format!("mean reward {version}");
    table.set_header([
        "outcome".into(),
        "offers".into(),
        format!("{} (in use)", heading(&in_use)),
        heading(&other),
        "signs changed".into(),
    ]);
    let mean = |mean: Option<f64>| mean.map_or("–".into(), |mean| format!("{mean:.3}"));
    for row in &rows {
        let cells = [
            row.offers.to_string(),
            mean(row.in_use),
            mean(row.other),
            row.signs_changed.to_string(),
        ];
        table.add_row([row.outcome.to_owned()].into_iter().chain(cells));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let changed: u64 = rows.iter().map(|row| row.signs_changed).sum();
    println!(
        "{table}\n{changed} advantage(s) (reward − {value}) would change their sign under {other}."
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::offers::tests::group;
    use crate::testing::fixtures::completion;
    use feedback::event::{EventKind, Evidence};

    fn judged(id: &str, outcome: Outcome) -> Vec<EventKind> {
        let evidence = Evidence::Command;
        vec![completion(id, "/p/a.rs"), EventKind::Outcome { id: id.into(), outcome, evidence }]
    }

    #[test]
    fn a_line_tells_the_verdict_and_no_code() {
        let mut lines = vec![];
        group([judged("a", Outcome::Accepted), judged("b", Outcome::Unseen)].concat(), |history| {
            lines.push((line(&history, false).unwrap(), line(&history, true).unwrap()));
        });
        let (bare, whole) = (lines[0].0.clone().unwrap(), lines[0].1.clone().unwrap());
        assert_eq!((&bare["offer"], &bare["outcome"]["kind"]), (&json!("a"), &json!("accepted")));
        assert_eq!((&bare["evidence"], &bare["judged_at_ms"]), (&json!("command"), &json!(10)));
        assert_eq!(bare["reward"], json!({ "version": "v1", "value": 1.0 }));
        assert_eq!(bare["completion"]["path"], "/p/a.rs");
        assert!(!bare.to_string().contains("0123456789"));
        assert_eq!(whole["completion"]["shown"], "0123456789");
        assert_eq!(lines[1].0, None, "nobody judged it");
    }

    #[test]
    fn another_reward_is_set_beside_the_one_in_use() {
        let part = Outcome::PartlyAccepted { utf16: 4 };
        let events = [
            judged("a", Outcome::Accepted),
            judged("b", part),
            judged("c", Outcome::RejectedEsc),
            judged("d", Outcome::Unseen),
        ];
        let mut replay = Replay::new(0.25, RewardVersion::V2);
        group(events.concat(), |history| replay.add(&history));
        let rows = replay.rows();
        let names: Vec<_> = rows.iter().map(|row| row.outcome).collect();
        assert_eq!(names, ["accepted", "partly accepted", "rejected: Esc", "unseen"]);
        // Ten characters: v2 pays 1 − 2^(−10/8) of v1.
        let worth = 1.0 - (-10.0f64 / 8.0).exp2();
        assert!((rows[0].other.unwrap() - worth).abs() < 1e-6, "{rows:?}");
        assert_eq!((rows[0].in_use, rows[3].in_use), (Some(1.0), None));
        let changed: Vec<_> = rows.iter().map(|row| row.signs_changed).collect();
        assert_eq!(changed, [0, 1, 0, 0], "0.4 is more than V, 0.23 is not");
    }

    #[test]
    fn rewards_are_named_as_they_are_written() {
        assert_eq!(version("v2"), Ok(RewardVersion::V2));
        assert_eq!(version("v9").unwrap_err(), "there is no such reward; say v1 or v2");
    }
}
