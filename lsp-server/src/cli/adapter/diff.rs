//! `hone adapter diff`.

use anyhow::{Result, ensure};
use comfy_table::{CellAlignment, Table, presets};
use models::adapter::LoraAdapter;
use models::delta;
use serde::Serialize;
use serde_json::json;

/// How far one kind of map has moved, over all layers.
#[derive(Serialize)]
struct Moved {
    map: String,
    weights: usize,
    /// ‖to − from‖ / ‖from‖.
    change: f64,
    /// Of the angle between the two.
    cosine: f64,
}

#[derive(Default)]
struct Sums {
    weights: usize,
    from: f64,
    to: f64,
    difference: f64,
    product: f64,
}

impl Sums {
    fn add(&mut self, from: &[f32], to: &[f32]) {
        self.weights += from.len();
        for (from, to) in from.iter().zip(to) {
            let (from, to) = (f64::from(*from), f64::from(*to));
            self.from += from * from;
            self.to += to * to;
            self.difference += (to - from) * (to - from);
            self.product += from * to;
        }
    }

    fn moved(&self, map: &str) -> Moved {
        let ratio = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
        Moved {
            map: map.to_owned(),
            weights: self.weights,
            change: ratio(self.difference.sqrt(), self.from.sqrt()),
            cosine: ratio(self.product, (self.from * self.to).sqrt()),
        }
    }
}

pub fn print(from: &LoraAdapter, to: &LoraAdapter, json: bool) -> Result<()> {
    // Checks that the two have the same maps and rank.
    let encoded = delta::encode(from, to)?;
    ensure!(delta::decode(from, &encoded)? == *to, "the delta does not give the adapter back");
    let moved = moved(from, to);
    let full = 4 * moved.last().map_or(0, |all| all.weights);
    if json {
        let object = json!({ "maps": moved, "delta_bytes": encoded.len(), "adapter_bytes": full });
        say!("{}", serde_json::to_string_pretty(&object)?)?;
        return Ok(());
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["map", "weights", "change", "cosine"]);
    for moved in &moved {
        table.add_row([
            moved.map.clone(),
            moved.weights.to_string(),
            format!("{:.2} %", 100.0 * moved.change),
            format!("{:.6}", moved.cosine),
        ]);
    }
    for column in 1..4 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    say!("{table}")?;
    let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
    say!(
        "an exact delta has {:.1} MiB, {:.0} % of the adapter's {:.1}",
        mib(encoded.len()),
        100.0 * encoded.len() as f64 / full.max(1) as f64,
        mib(full)
    )?;
    Ok(())
}

/// By kind of map, and of all together at the end.
fn moved(from: &LoraAdapter, to: &LoraAdapter) -> Vec<Moved> {
    let mut kinds: Vec<(&str, Sums)> = Vec::new();
    let mut all = Sums::default();
    for (from, to) in from.pairs.iter().zip(&to.pairs) {
        let kind = from.name.trim_end_matches(".weight").rsplit('.').next().unwrap_or_default();
        let index = kinds.iter().position(|(known, _)| *known == kind).unwrap_or(kinds.len());
        if index == kinds.len() {
            kinds.push((kind, Sums::default()));
        }
        for (from, to) in [(&from.a, &to.a), (&from.b, &to.b)] {
            kinds[index].1.add(from, to);
            all.add(from, to);
        }
    }
    let mut moved: Vec<Moved> = kinds.iter().map(|(kind, sums)| sums.moved(kind)).collect();
    moved.push(all.moved("all"));
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use models::adapter::LoraPair;

    #[test]
    fn the_change_is_counted_by_kind_of_map_and_over_all() {
        let adapter = |b: f32| LoraAdapter {
            architecture: "qwen2".into(),
            base_sha256: String::new(),
            rank: 1,
            shared_rank: 0,
            alpha: 1.0,
            invocation: vec![],
            pairs: ["blk.0.attn_q.weight", "blk.1.attn_q.weight", "blk.0.ffn_up.weight"]
                .map(|name| LoraPair {
                    name: name.into(),
                    rows_out: 1,
                    rows_in: 1,
                    a: vec![3.0],
                    b: vec![if name.contains("up") { 4.0 } else { b }],
                })
                .into(),
        };
        let moved = moved(&adapter(4.0), &adapter(4.5));
        let maps: Vec<_> = moved.iter().map(|m| (m.map.as_str(), m.weights)).collect();
        assert_eq!(maps, [("attn_q", 4), ("ffn_up", 2), ("all", 6)]);
        // Two of four weights moved by 0.5, of a norm of √50.
        assert!((moved[0].change - 0.1).abs() < 1e-9, "{}", moved[0].change);
        assert_eq!((moved[1].change, moved[1].cosine), (0.0, 1.0));
    }
}
