//! Where each adapter stands in the picture of their descent: time runs to the
//! right, a branch is a lane of its own, as in a graph of commits.

use super::Adapter;
use feedback::event::AdapterVersion;
use serde::Serialize;
use std::collections::HashMap;

/// Adapters drawn, the newest; a year of daily updates would be no picture.
const DRAWN_LIMIT: usize = 40;

const STEP: u32 = 64;
const LANE: u32 = 52;
const MARGIN: u32 = 36;

#[derive(Debug, Default, Serialize)]
pub struct Picture {
    pub width: u32,
    pub height: u32,
    pub nodes: Vec<Node>,
    pub edges: Vec<String>,
    /// Adapters before the first that is drawn.
    pub earlier: usize,
}

#[derive(Debug, Serialize)]
pub struct Node {
    pub x: u32,
    pub y: u32,
    pub name: String,
    pub kind: &'static str,
    pub told: String,
}

pub fn draw(adapters: &[Adapter]) -> Picture {
    let earlier = adapters.len().saturating_sub(DRAWN_LIMIT);
    let drawn = &adapters[earlier..];
    let mut places: HashMap<AdapterVersion, (u32, u32)> = HashMap::new();
    let root = (MARGIN, MARGIN);
    places.insert(0, root);
    let name = if earlier > 0 { "…".to_owned() } else { "base".to_owned() };
    let base_serves = !adapters.iter().any(|adapter| adapter.active);
    let mut picture = Picture { earlier, ..Picture::default() };
    picture.nodes.push(Node {
        x: root.0,
        y: root.1,
        name,
        kind: if base_serves { "active" } else { "base" },
        told: "the model alone".into(),
    });
    let line = lane_of_the_active(adapters);
    let mut lanes = 1;
    // The lane a parent's next child may go on in.
    let mut ends: HashMap<AdapterVersion, u32> = HashMap::from([(0, 0)]);
    for (index, adapter) in drawn.iter().enumerate() {
        // A parent that is too old to be drawn lies behind the first point.
        let parent = if places.contains_key(&adapter.parent) { adapter.parent } else { 0 };
        let (from_x, from_y) = places[&parent];
        let lane = match ends.get(&parent).copied() {
            // The line that leads to what serves stays straight.
            Some(lane) if lane > 0 || line.contains(&adapter.version) => {
                ends.remove(&parent);
                lane
            }
            _ => {
                lanes += 1;
                lanes - 1
            }
        };
        let (x, y) = (MARGIN + STEP * (index as u32 + 1), MARGIN + LANE * lane);
        places.insert(adapter.version, (x, y));
        ends.insert(adapter.version, lane);
        let bend = (x - from_x).min(STEP) / 2;
        picture.edges.push(format!(
            "M{from_x} {from_y}C{} {from_y} {} {y} {} {y}L{x} {y}",
            from_x + bend,
            from_x + bend,
            from_x + 2 * bend
        ));
        picture.nodes.push(Node {
            x,
            y,
            name: format!("v{}", adapter.version),
            kind: match adapter {
                Adapter { forgotten: true, .. } => "forgotten",
                Adapter { active: true, .. } => "active",
                _ => "past",
            },
            told: told(adapter),
        });
    }
    picture.width = 2 * MARGIN + STEP * drawn.len() as u32;
    picture.height = 2 * MARGIN + LANE * (lanes - 1);
    picture
}

/// The version that serves and all it descends from.
fn lane_of_the_active(adapters: &[Adapter]) -> Vec<AdapterVersion> {
    let of = |version| adapters.iter().find(|adapter| adapter.version == version);
    let newest = adapters.iter().find(|adapter| adapter.active).or(adapters.last());
    std::iter::successors(newest, |adapter| of(adapter.parent)).map(|a| a.version).collect()
}

fn told(adapter: &Adapter) -> String {
    let from = match (adapter.imported, adapter.learned_from) {
        (true, _) => "imported".to_owned(),
        (false, Some(offers)) => format!("learned from {offers} offers"),
        (false, None) => "learned here".to_owned(),
    };
    let state = match adapter {
        Adapter { forgotten: true, .. } => "; forgotten since",
        Adapter { active: true, .. } => "; serves now",
        _ => "",
    };
    format!("v{}, on v{}: {from}{state}", adapter.version, adapter.parent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::report;

    #[test]
    fn the_line_to_what_serves_is_straight_and_a_branch_leaves_it() {
        let picture = draw(&report().lineage);
        let places: Vec<_> =
            picture.nodes.iter().map(|node| (node.name.as_str(), node.y, node.kind)).collect();
        let (top, below) = (MARGIN, MARGIN + LANE);
        assert_eq!(
            places,
            [
                ("base", top, "base"),
                ("v1", top, "past"),
                ("v2", below, "forgotten"),
                ("v3", top, "active")
            ]
        );
        assert_eq!((picture.edges.len(), picture.earlier), (3, 0));
    }

    #[test]
    fn a_long_descent_shows_its_end() {
        let adapters: Vec<_> = (1..=100)
            .map(|version| Adapter {
                version,
                parent: version - 1,
                made_at_ms: 0,
                learned_from: None,
                active: version == 100,
                forgotten: false,
                imported: false,
            })
            .collect();
        let picture = draw(&adapters);
        assert_eq!((picture.nodes.len(), picture.earlier), (DRAWN_LIMIT + 1, 60));
        assert!(picture.nodes.iter().all(|node| node.y == MARGIN), "one line");
    }
}
