//! What happened in a rehearsal, line by line: the one source of every number.

use crate::typist::Fate;

/// How many arms a rehearsal has.
pub const ARMS: usize = 2;

/// One typed line, with everything that happened on it in every arm.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LineRecord {
    /// Characters of the line, without indentation and line ending.
    pub chars: usize,
    /// Of these, by accepted offers, per arm.
    pub accepted_chars: [usize; ARMS],
    pub points: Vec<PointRecord>,
}

/// One place in the stream at which at least one arm asked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PointRecord {
    /// `None` where an accepted offer had carried the arm past this place.
    pub asked: [Option<Asked>; ARMS],
}

/// One request and what came of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asked {
    pub latency_ms: f64,
    /// The adapter version that served it; 0 is the base.
    pub version: u64,
    /// `None`: nothing was offered.
    pub fate: Option<Fate>,
}

impl Asked {
    pub fn accepted(&self) -> bool {
        matches!(self.fate, Some(Fate::Accepted { .. }))
    }
}

/// An update of an arm's learner, at the point of the stream where it landed.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Update {
    /// Points asked before it.
    pub at_point: usize,
    pub number: u64,
    pub ms: Option<f64>,
}

/// An adapter version put into service.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Swap {
    /// Points asked before it.
    pub at_point: usize,
    pub version: u64,
    pub ms: Option<f64>,
}
