//! `hone-lab gate`: what a gate would have shown of offers that were all shown.

use anyhow::Result;
use comfy_table::{Table, presets};
use hone::cli::gate_log::verdicts;
use policy::gate::Gate;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct GateArgs {
    /// Replay the log of a home in which every offer was shown, and print what
    /// the gate would have held back at several thresholds
    #[arg(long, value_name = "HOME", required = true)]
    replay: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Thresholds of the table, as probabilities of acceptance.
const THRESHOLDS: [f64; 8] = [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.35, 0.5];

pub fn run(args: &GateArgs) -> Result<()> {
    print_replay(&replay(args)?, args.json);
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
    fn compared_with(&self, all: &Shown) -> [f32; 3] {
        [
            1.0 - self.offers / all.offers.max(1.0),
            self.reward / self.offers.max(1.0),
            self.characters / all.characters.max(1.0),
        ]
    }
}

/// Replays the logs in order, each under the prior that is shipped.
fn replay(args: &GateArgs) -> Result<Vec<Offer>> {
    let mut offers = vec![];
    for home in &args.replay {
        let mut gate = Gate::default();
        for label in verdicts(home)? {
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
        (from, cut.compared_with(&all), served.compared_with(&all))
    });
    let rows: Vec<_> = rows.collect();
    if json {
        println!("{}", serde_json::json!({ "rows": rows, "squared_error": f64::from(error) }));
    } else {
        println!(
            "{} offers. The gate saw each one before it learned its verdict. The table says what\n\
             a threshold alone would have done, and what serving would have done, which shows\n\
             what the gate is unsure of more often, to find out:\n{}\nmean squared error of the \
             predictions: {error:.4}",
            offers.len(),
            table(&rows)
        );
    }
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
