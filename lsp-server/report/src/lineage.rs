//! The picture of the adapters' descent. Time runs to the right, and each branch has a lane, as in
//! a graph of commits.

use super::Adapter;
use feedback::event::AdapterVersion;
use serde::Serialize;
use std::collections::HashMap;

/// The most adapters that are drawn: the newest. A year of daily updates would not fit.
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
    /// The number of adapters before the first that is drawn.
    pub earlier: usize,
}

#[derive(Debug, Serialize)]
pub struct Node {
    pub x: u32,
    pub y: u32,
    pub name: String,
    pub kind: &'static str,
    pub description: String,
}

pub fn draw(adapters: &[Adapter]) -> Picture {
    let earlier = adapters.len().saturating_sub(DRAWN_LIMIT);
    let drawn = &adapters[earlier..];
    let root = (MARGIN, MARGIN);
    let name = if earlier > 0 { "…".to_owned() } else { "base".to_owned() };
    let base_serves = !adapters.iter().any(|adapter| adapter.active);
    let mut picture = Picture { earlier, ..Picture::default() };
    picture.nodes.push(Node {
        x: root.0,
        y: root.1,
        name,
        kind: if base_serves { "active" } else { "base" },
        description: "the model alone".into(),
    });
    let mut lanes = Lanes::new(active_line(adapters));
    let mut places: HashMap<AdapterVersion, (u32, u32)> = HashMap::from([(0, root)]);
    for (index, adapter) in drawn.iter().enumerate() {
        // A parent that is too old to be drawn is replaced by the first point.
        let parent = if places.contains_key(&adapter.parent) { adapter.parent } else { 0 };
        let lane = lanes.assign(adapter.version, parent);
        let to = (MARGIN + STEP * (index as u32 + 1), MARGIN + LANE * lane);
        picture.edges.push(edge(places[&parent], to));
        picture.nodes.push(node(adapter, to));
        places.insert(adapter.version, to);
    }
    picture.width = 2 * MARGIN + STEP * drawn.len() as u32;
    picture.height = 2 * MARGIN + LANE * (lanes.count - 1);
    picture
}

/// Gives each adapter a lane of the picture.
struct Lanes {
    /// The active version and its ancestors, whose line stays straight.
    active_line: Vec<AdapterVersion>,
    count: u32,
    /// The lanes that end at a parent, and that its next child may continue.
    ends: HashMap<AdapterVersion, u32>,
}

impl Lanes {
    fn new(active_line: Vec<AdapterVersion>) -> Lanes {
        Lanes { active_line, count: 1, ends: HashMap::from([(0, 0)]) }
    }

    /// The parent's lane, if it ends there, or else a new one. In the first lane, only the
    /// active line continues.
    fn assign(&mut self, version: AdapterVersion, parent: AdapterVersion) -> u32 {
        let lane = match self.ends.get(&parent).copied() {
            Some(lane) if lane > 0 || self.active_line.contains(&version) => {
                self.ends.remove(&parent);
                lane
            }
            _ => {
                self.count += 1;
                self.count - 1
            }
        };
        self.ends.insert(version, lane);
        lane
    }
}

/// A curve from a parent to its child, as the path of an SVG.
fn edge((from_x, from_y): (u32, u32), (x, y): (u32, u32)) -> String {
    let bend = (x - from_x).min(STEP) / 2;
    let (middle, end) = (from_x + bend, from_x + 2 * bend);
    format!("M{from_x} {from_y}C{middle} {from_y} {middle} {y} {end} {y}L{x} {y}")
}

fn node(adapter: &Adapter, (x, y): (u32, u32)) -> Node {
    let kind = match adapter {
        Adapter { forgotten: true, .. } => "forgotten",
        Adapter { active: true, .. } => "active",
        _ => "past",
    };
    let name = format!("v{}", adapter.version);
    Node { x, y, name, kind, description: describe(adapter) }
}

/// The active version and its ancestors.
fn active_line(adapters: &[Adapter]) -> Vec<AdapterVersion> {
    let of = |version| adapters.iter().find(|adapter| adapter.version == version);
    let newest = adapters.iter().find(|adapter| adapter.active).or(adapters.last());
    std::iter::successors(newest, |adapter| of(adapter.parent)).map(|a| a.version).collect()
}

fn describe(adapter: &Adapter) -> String {
    let from = match adapter.imported {
        true => "imported".to_owned(),
        false => format!("learned from {}", printable::count(adapter.learned_from, "offer")),
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
    use crate::tests::report;

    #[test]
    fn the_active_adapters_line_is_straight_and_a_branch_leaves_it() {
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
    fn only_the_end_of_a_long_descent_is_drawn() {
        let adapters: Vec<_> = (1..=100)
            .map(|version| Adapter {
                version,
                parent: version - 1,
                made_at_ms: 0,
                learned_from: 0,
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
