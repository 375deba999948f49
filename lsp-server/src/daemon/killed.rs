//! What the user is told of daemons that were killed before their model was loaded.

use std::fmt::{self, Display, Formatter};

/// The signal by which the system ends a process for want of memory.
const KILL: i32 = 9;

/// Daemons in a row that were ended from outside before their model was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Killed {
    pub times: u32,
    /// The signal, if it is known.
    pub signal: Option<i32>,
    /// The model, if the last of them came so far.
    pub model: Option<String>,
}

impl Display for Killed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Killed { times, signal, model } = self;
        match times {
            1 => write!(f, "the last daemon was killed")?,
            times => write!(f, "{times} daemons in a row were killed")?,
        }
        if let Some(signal) = signal {
            write!(f, " (signal {signal})")?;
        }
        match model {
            Some(model) => write!(f, " while {model} was loaded")?,
            None => write!(f, " at the start")?,
        }
        match signal {
            Some(signal) if *signal != KILL => {
                write!(f, "; `hone doctor` looks for what is wrong")
            }
            _ => write!(
                f,
                ", perhaps for want of memory; end other programs, or choose a smaller model with \
                 `hone model use` (`hone model list`)"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_end_is_told_in_the_singular() {
        let killed = Killed { times: 1, signal: None, model: None };
        assert!(
            killed.to_string().starts_with("the last daemon was killed at the start"),
            "{killed}"
        );
    }
}
