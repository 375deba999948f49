//! The rules that decide whether an offer is shown and which adapter answers. Each maps a request
//! to an action and records its probability. All of it is folded from events, reads no file and
//! imports `feedback` alone.

pub mod gate;
pub mod learned_state;
pub mod next_edit;
pub mod references;
pub mod regression;
pub mod regression_suite;
pub mod trial;
pub mod written;
