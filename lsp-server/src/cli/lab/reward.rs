//! `hone lab reward`: what another reward would have said of the same verdicts.

use crate::cli::inspect::each_offer;
use crate::cli::settings::Configured;
use crate::paths::Paths;
use crate::report::offers::OfferHistory;
use anyhow::{Result, ensure};
use comfy_table::{CellAlignment, Table, presets};
use feedback::event::Outcome;
use feedback::reward::{self, RewardVersion};
use serde::Serialize;
use serde_json::json;

#[derive(Debug, clap::Args)]
pub struct RewardArgs {
    #[arg(long, value_name = "VERSION", value_parser = version, help = versions())]
    reward: RewardVersion,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// The name of a reward in the log and in the settings.
pub fn name(version: RewardVersion) -> String {
    let name = serde_json::to_value(version).ok();
    name.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

fn versions() -> String {
    let names = RewardVersion::ALL.map(name).join(", ");
    format!("The reward to compare with the one in use: {names}")
}

fn version(text: &str) -> Result<RewardVersion, String> {
    let known = RewardVersion::ALL;
    known.into_iter().find(|version| name(*version) == text).ok_or_else(|| {
        let names: Vec<_> = known.into_iter().map(name).collect();
        format!("there is no such reward; say {}", names.join(" or "))
    })
}

/// Offers with the same outcome, under two rewards.
#[derive(Debug, Default, Serialize)]
struct Row {
    outcome: &'static str,
    offers: u64,
    /// Mean reward of the offers that have one.
    in_use: Option<f64>,
    other: Option<f64>,
    /// Advantages (reward − V) with another sign: an offer that was encouraged is
    /// discouraged, or the reverse, or it is a label under only one of the rewards.
    signs_changed: u64,
    #[serde(skip)]
    sums: [(f64, u64); 2],
}

const OUTCOMES: [&str; 10] = [
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

fn outcome_index(outcome: Option<Outcome>, is_no_offer: bool) -> usize {
    match outcome {
        Some(Outcome::Accepted) => 0,
        Some(Outcome::PartlyAccepted { .. }) => 1,
        Some(Outcome::TypedThrough { .. }) => 2,
        Some(Outcome::RejectedEsc) => 3,
        Some(Outcome::RejectedTimeout) => 4,
        Some(Outcome::RejectedEdit) => 5,
        Some(Outcome::Superseded) => 6,
        Some(Outcome::Unseen) => 7,
        None if is_no_offer => 9,
        None => 8,
    }
}

/// Sums up offers by outcome, under both rewards.
struct Replay {
    /// V, the baseline.
    value: f32,
    versions: [RewardVersion; 2],
    rows: [Row; OUTCOMES.len()],
}

impl Replay {
    fn new(value: f32, other: RewardVersion) -> Replay {
        let rows = OUTCOMES.map(|outcome| Row { outcome, ..Row::default() });
        Replay { value, versions: [reward::CURRENT, other], rows }
    }

    fn add(&mut self, history: &OfferHistory) {
        // The outcome of an offer is the same under both; its reward may differ.
        let episodes = self.versions.map(|version| history.episode(version));
        let Some(episode) = episodes.iter().flatten().next() else { return };
        let outcome = episode.outcome.map(|(outcome, _)| outcome);
        let row = &mut self.rows[outcome_index(outcome, episode.is_no_offer())];
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

pub async fn run(home: &Paths, args: RewardArgs) -> Result<()> {
    let config = Configured::noted(home).config;
    let value = config.lab.ppo.baseline;
    let mut replay = Replay::new(value, args.reward);
    each_offer(home, |history| {
        replay.add(&history);
        Ok(())
    })
    .await?;
    let rows = replay.rows();
    ensure!(!rows.is_empty(), "nothing to replay: no offer is recorded yet");
    let (in_use, other) = (name(reward::CURRENT), name(args.reward));
    if args.json {
        let all = json!({ "in_use": in_use, "other": other, "value": value, "outcomes": rows });
        say!("{}", serde_json::to_string_pretty(&all)?)?;
        return Ok(());
    }
    let changed: u64 = rows.iter().map(|row| row.signs_changed).sum();
    say!(
        "{}\n{changed} advantage(s) (reward − {value}) would change their sign under {other}.",
        table(&rows, &in_use, &other)
    )?;
    Ok(())
}

fn table(rows: &[Row], in_use: &str, other: &str) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED);
    let heading = |version: &str| format!("mean reward {version}");
    table.set_header([
        "outcome".into(),
        "offers".into(),
        format!("{} (in use)", heading(in_use)),
        heading(other),
        "signs changed".into(),
    ]);
    let mean = |mean: Option<f64>| mean.map_or("–".into(), |mean| format!("{mean:.3}"));
    for row in rows {
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
    table
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
        assert_eq!(version("v9").unwrap_err(), "there is no such reward; say v1 or v2 or v3");
    }
}
