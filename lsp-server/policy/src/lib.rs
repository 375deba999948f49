//! Show or not, and which adapter: rules that map a request to an action and record its
//! probability. All of it is folded from events, reads no file and imports `feedback` alone.

pub mod gate;
pub mod learned_state;
pub mod references;
pub mod regression_suite;
pub mod trial;
