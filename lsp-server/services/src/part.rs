//! The parts of the process that must live as long as it.

use std::fmt::{self, Display, Formatter};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Engine,
    Http,
    Learning,
    Settings,
    StatusLine,
    Trials,
    /// The timeouts of offers, retention, checkpoints, and the recovery of the log.
    Upkeep,
}

impl Part {
    /// Returns true if the process cannot do its work, or keep what it promises, without it.
    pub fn is_vital(self) -> bool {
        match self {
            Part::Engine | Part::Settings | Part::Upkeep => true,
            Part::Http | Part::Learning | Part::StatusLine | Part::Trials => false,
        }
    }
}

impl Display for Part {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Engine => "the engine",
            Part::Http => "the HTTP API",
            Part::Learning => "learning",
            Part::Settings => "the part that follows the settings",
            Part::StatusLine => "the status line",
            Part::Trials => "the part that decides trials",
            Part::Upkeep => "the part that ends offers and removes old events",
        })
    }
}
