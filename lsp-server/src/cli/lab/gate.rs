//! `hone gate --replay`: what a gate would have shown of offers that were all shown.

use super::{GateArgs, fit, verdicts};
use anyhow::Result;
use comfy_table::{Table, presets};
use policy::gate::Gate;

/// Thresholds of the table, in P(taken).
const THRESHOLDS: [f64; 8] = [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.35, 0.5];

/// One offer as a gate saw it, and what came of it.
struct Offer {
    /// P(taken).
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

    /// Share of offers that are not shown, share of the shown that is taken, share of
    /// the accepted characters that is kept.
    fn beside(&self, all: &Shown) -> [f32; 3] {
        [
            1.0 - self.offers / all.offers.max(1.0),
            self.reward / self.offers.max(1.0),
            self.characters / all.characters.max(1.0),
        ]
    }
}

/// Replays the logs of homes in order, each under the prior that is shipped, or under
/// one fitted to others.
pub(super) fn replay(args: &GateArgs) -> Result<()> {
    let mut offers = vec![];
    for home in &args.replay {
        let others: Vec<_> = args.fit.iter().filter(|other| *other != home).cloned().collect();
        let mut gate = match args.fit.is_empty() {
            true => Gate::default(),
            false => Gate::with_prior(&fit(&others, args.between_users)?.0),
        };
        for judged in verdicts(home)? {
            if let Some(record) = gate.judge_again(&judged, THRESHOLDS[0]) {
                let at = |threshold| gate.judge_again(&judged, threshold);
                let propensity = |threshold| at(threshold).map_or(1.0, |seen| seen.propensity);
                offers.push(Offer {
                    probability: record.probability,
                    propensities: THRESHOLDS.map(propensity),
                    reward: judged.reward.max(0.0),
                    characters: judged.offer_utf16 as f32,
                    accepted: judged.accepted,
                });
            }
            gate.learn(&judged);
        }
    }
    let error = offers.iter().map(|offer| (offer.probability - offer.reward).powi(2));
    let error = error.sum::<f32>() / offers.len().max(1) as f32;
    let all = Shown::of(&offers, |_| 1.0);
    let rows = THRESHOLDS.iter().enumerate().map(|(index, &from)| {
        let cut =
            Shown::of(&offers, |offer| f32::from(u8::from(f64::from(offer.probability) >= from)));
        let served = Shown::of(&offers, |offer| offer.propensities[index]);
        (from, cut.beside(&all), served.beside(&all))
    });
    let rows: Vec<_> = rows.collect();
    match args.json {
        true => println!("{}", serde_json::json!({ "rows": rows, "squared_error": error })),
        false => println!(
            "{} offers, each seen before its verdict was learned. Above a threshold alone, and as \
             served,\nwhere what is unsure is shown more often, to find out:\n{}\nmean squared \
             error of the predictions: {error:.3}",
            offers.len(),
            table(&rows)
        ),
    }
    Ok(())
}

fn table(rows: &[(f64, [f32; 3], [f32; 3])]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    let columns = ["fewer offers", "taken", "accepted characters kept"];
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
