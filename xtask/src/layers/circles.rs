//! Import circles between modules that stand side by side in a folder.

use super::modules::{Target, Tree};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The modules of one circle in their order, with an import that leads to the next.
#[derive(Debug, PartialEq)]
pub struct Circle(pub Vec<Step>);

#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// `session::tracker`.
    pub module: String,
    /// An index into [`Tree::imports`], to the next module of the circle.
    pub import: usize,
}

/// The arrows of one folder between its modules, each with the first import behind it.
/// What lies deeper counts as its module on this level. The folder's own file is none of
/// them: a folder may use its parts, and they what it says of itself.
type Level = BTreeMap<String, BTreeMap<String, usize>>;

/// The shortest circle of every knot, without the imports that `skip` names.
pub fn find(tree: &Tree, skip: impl Fn(usize) -> bool) -> Vec<Circle> {
    let levels = levels(tree, skip);
    levels.values().flat_map(circles).collect()
}

/// Whether an import is part of a circle.
pub fn is_in_one(tree: &Tree, import: usize) -> bool {
    let Target::Module(to) = tree.imports[import].to else { return false };
    let (from, to) = (&tree.modules[tree.imports[import].from].path, &tree.modules[to].path);
    let shared = from.iter().zip(to).take_while(|(a, b)| a == b).count();
    let Some(level) = levels(tree, |_| false).remove(&from[..shared]) else { return false };
    let name = |path: &[String]| path.get(..=shared).unwrap_or_default().join("::");
    reach(&level, &name(to)).contains(name(from).as_str())
}

/// By the path of the folder.
fn levels(tree: &Tree, skip: impl Fn(usize) -> bool) -> BTreeMap<Vec<String>, Level> {
    let mut levels: BTreeMap<Vec<String>, Level> = BTreeMap::new();
    for (index, import) in tree.imports.iter().enumerate() {
        let Target::Module(to) = import.to else { continue };
        let (from, to) = (&tree.modules[import.from].path, &tree.modules[to].path);
        let shared = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        if skip(index) || shared == from.len() || shared == to.len() {
            continue;
        }
        let name = |path: &[String]| path[..=shared].join("::");
        let arrows = levels.entry(from[..shared].to_vec()).or_default();
        arrows.entry(name(from)).or_default().entry(name(to)).or_insert(index);
    }
    levels
}

fn circles(level: &Level) -> Vec<Circle> {
    let mut told: BTreeSet<&str> = BTreeSet::new();
    let mut circles = vec![];
    for name in level.keys() {
        if told.contains(name.as_str()) {
            continue;
        }
        if let Some(circle) = shortest(level, name) {
            let reached = reach(level, name);
            // Whoever is reached and reaches back hangs in the same knot, told once.
            told.extend(
                reached.into_iter().filter(|other| reach(level, other).contains(name.as_str())),
            );
            circles.push(circle);
        }
    }
    circles
}

fn reach<'a>(level: &'a Level, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![from];
    while let Some(name) = waiting.pop() {
        for to in level.get(name).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(to.as_str()) {
                waiting.push(to);
            }
        }
    }
    reached
}

/// The shortest way from a module back to itself.
fn shortest(level: &Level, start: &str) -> Option<Circle> {
    let mut ways: BTreeMap<&str, Vec<Step>> = BTreeMap::new();
    let mut waiting = VecDeque::from([start]);
    while let Some(name) = waiting.pop_front() {
        for (to, &import) in level.get(name).into_iter().flatten() {
            let mut way = ways.get(name).cloned().unwrap_or_default();
            way.push(Step { module: name.to_owned(), import });
            if to == start {
                return Some(Circle(way));
            }
            if !ways.contains_key(to.as_str()) {
                ways.insert(to, way);
                waiting.push_back(to);
            }
        }
    }
    None
}
