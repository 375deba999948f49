//! `hone-lab gate`: what a gate would have shown of offers that were all shown, and a prior
//! fitted to logs.

use anyhow::{Result, bail, ensure};
use comfy_table::{Table, presets};
use feedback::episode::Label;
use hone::cli::gate_log::{BETWEEN_USERS, as_prior, verdicts};
use policy::gate::Gate;
use policy::gate::features::NAMES;
use policy::gate::prior::{self, Prior};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub struct GateArgs {
    /// Replay the log of a home in which every offer was shown, and print what
    /// the gate would have held back at several thresholds
    #[arg(long, value_name = "HOME")]
    replay: Vec<PathBuf>,
    /// Fit a prior to the logs of these homes; with --replay, each home is
    /// replayed under a prior fitted to the others
    #[arg(long, value_name = "HOME")]
    fit: Vec<PathBuf>,
    /// Deviation that every weight of the fit is given on top: how far users differ
    #[arg(long, value_name = "DEVIATION", requires = "fit", default_value_t = BETWEEN_USERS)]
    between_users: f64,
    /// Leave this feature of the gate out, by its name in `hone gate`
    #[arg(long, value_name = "FEATURE")]
    without: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The share of the offers that one line of the result holds back: as many as Cursor's model shows
/// less (https://cursor.com/blog/tab-rl).
const HELD_BACK: f64 = 0.21;

/// Thresholds of the table, as probabilities of acceptance.
const THRESHOLDS: [f64; 8] = [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.35, 0.5];

pub fn run(args: &GateArgs) -> Result<()> {
    for name in &args.without {
        let is_known = NAMES.contains(&&**name);
        ensure!(is_known, "{name:?} is no feature; `hone gate` shows their names");
    }
    match (args.replay.is_empty(), args.fit.is_empty()) {
        (true, true) => bail!("name homes with --replay, with --fit, or with both"),
        (true, false) => print_fit(args),
        (false, _) => {
            print_replay(&replay(args)?, args.json);
            Ok(())
        }
    }
}

impl GateArgs {
    /// The verdicts of a home without the features that are left out.
    fn verdicts(&self, home: &Path) -> Result<Vec<Label>> {
        let mut verdicts = verdicts(home)?;
        let gates = verdicts.iter_mut().filter_map(|label| label.gate.as_mut());
        for gate in gates {
            for (value, name) in gate.features.iter_mut().zip(NAMES) {
                if self.without.iter().any(|without| without == name) {
                    *value = 0.0;
                }
            }
        }
        Ok(verdicts)
    }
}

/// A prior learned from the logs of some homes, and from how many verdicts.
fn fit(homes: &[PathBuf], args: &GateArgs) -> Result<(Prior, u64)> {
    let mut gate = Gate::with_prior(&prior::assumed());
    for home in homes {
        args.verdicts(home)?.iter().for_each(|label| gate.learn(label));
    }
    Ok(as_prior(&gate, args.between_users))
}

fn print_fit(args: &GateArgs) -> Result<()> {
    let (prior, labels) = fit(&args.fit, args)?;
    println!("// Fitted to {labels} verdicts.");
    for (i, name) in NAMES.iter().enumerate() {
        println!("({:.2}, {:.2}), // {name}", prior.mean[i], prior.deviation[i]);
    }
    Ok(())
}

/// One offer as a gate saw it, and what came of it.
struct Offer {
    /// The gate's probability that it is accepted.
    probability: f32,
    /// How often it would have been shown, at each threshold.
    propensities: [f32; THRESHOLDS.len()],
    reward: f32,
    characters: f32,
    accepted: bool,
}

/// Offers, each as far as it is shown, summed up.
#[derive(Default)]
struct Shown {
    offers: f32,
    reward: f32,
    /// Characters of what was accepted.
    characters: f32,
}

impl Shown {
    fn of(offers: &[Offer], share: impl Fn(&Offer) -> f32) -> Shown {
        let mut sum = Shown::default();
        for offer in offers {
            let share = share(offer);
            sum.offers += share;
            sum.reward += share * offer.reward;
            sum.characters += if offer.accepted { share * offer.characters } else { 0.0 };
        }
        sum
    }

    /// Share of offers that are not shown, share of the shown that is accepted, share of
    /// the accepted characters that is kept.
    fn beside(&self, all: &Shown) -> [f32; 3] {
        [
            1.0 - self.offers / all.offers.max(1.0),
            self.reward / self.offers.max(1.0),
            self.characters / all.characters.max(1.0),
        ]
    }
}

/// Replays the logs in order, each under the prior that is shipped, or under one that is
/// fitted to the other homes of the fit.
fn replay(args: &GateArgs) -> Result<Vec<Offer>> {
    let mut offers = vec![];
    for home in &args.replay {
        let others: Vec<_> = args.fit.iter().filter(|other| *other != home).cloned().collect();
        let mut gate = if args.fit.is_empty() {
            Gate::default()
        } else {
            Gate::with_prior(&fit(&others, args)?.0)
        };
        for label in args.verdicts(home)? {
            if let Some(record) = gate.judge_again(&label, THRESHOLDS[0]) {
                let at = |threshold| gate.judge_again(&label, threshold);
                let propensity = |threshold| at(threshold).map_or(1.0, |seen| seen.propensity);
                offers.push(Offer {
                    probability: record.probability,
                    propensities: THRESHOLDS.map(propensity),
                    reward: label.reward.max(0.0),
                    characters: label.offer_utf16 as f32,
                    accepted: label.accepted,
                });
            }
            gate.learn(&label);
        }
    }
    Ok(offers)
}

fn print_replay(offers: &[Offer], json: bool) {
    let error = offers.iter().map(|offer| (offer.probability - offer.reward).powi(2));
    let error = error.sum::<f32>() / offers.len().max(1) as f32;
    let all = Shown::of(offers, |_| 1.0);
    let rows = THRESHOLDS.iter().enumerate().map(|(index, &from)| {
        let cut =
            Shown::of(offers, |offer| f32::from(u8::from(f64::from(offer.probability) >= from)));
        let served = Shown::of(offers, |offer| offer.propensities[index]);
        (from, cut.beside(&all), served.beside(&all))
    });
    let rows: Vec<_> = rows.collect();
    let kept = kept_without_the_least(offers);
    if json {
        let (error, kept) = (f64::from(error), f64::from(kept));
        println!("{}", serde_json::json!({ "rows": rows, "squared_error": error, "kept": kept }));
    } else {
        println!(
            "{} offers. The gate saw each one before it learned its verdict. The table says what\n\
             a threshold alone would have done, and what serving would have done, which shows\n\
             what the gate is unsure of more often, to find out:\n{}\nmean squared error of the \
             predictions: {error:.4}\nwithout the {:.0} % of the offers that are least likely, \
             {:.1} % of the accepted characters are kept",
            offers.len(),
            table(&rows),
            100.0 * HELD_BACK,
            100.0 * kept
        );
    }
}

/// The share of the accepted characters that is kept if [`HELD_BACK`] of the offers are not shown:
/// those that are least likely.
fn kept_without_the_least(offers: &[Offer]) -> f32 {
    let mut ordered: Vec<&Offer> = offers.iter().collect();
    ordered.sort_by(|one, other| one.probability.total_cmp(&other.probability));
    let characters = |offers: &[&Offer]| -> f32 {
        offers.iter().filter(|offer| offer.accepted).map(|offer| offer.characters).sum()
    };
    let held_back = (offers.len() as f64 * HELD_BACK).round() as usize;
    characters(&ordered[held_back..]) / characters(&ordered).max(1.0)
}

fn table(rows: &[(f64, [f32; 3], [f32; 3])]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    let columns = ["fewer offers", "accepted", "accepted characters kept"];
    let served = columns.map(|column| format!("served: {column}"));
    let header = ["threshold".to_owned()].into_iter().chain(columns.map(String::from));
    table.set_header(header.chain(served));
    for (from, cut, served) in rows {
        let percent = |share: &f32| format!("{:.0} %", 100.0 * share);
        let shares = cut.iter().chain(served).map(percent);
        table.add_row([format!("{from:.2}")].into_iter().chain(shares));
    }
    table
}
