//! A simulated developer: replays the real commits of a git repository through
//! the real protocol into real daemons, and says what that was worth.
//!
//! [`history`] says what somebody wrote, [`plan`] where the developer pauses,
//! [`developer`] what they think of an offer, [`typist`] does it, [`arm`] gives
//! each arm its daemon, [`run`] leads them through one stream side by side,
//! [`work`] keeps what is done, [`report`] counts.
//!
//! Nothing here knows the server's code: everything goes through [`client`],
//! which the end-to-end tests use too.

pub mod arm;
pub mod chart;
pub mod client;
pub mod developer;
pub mod document;
pub mod history;
pub mod interrupt;
pub mod judge;
pub mod keep;
pub mod language;
pub mod ledger;
pub mod plan;
pub mod record;
pub mod report;
pub mod run;
pub mod stats;
pub mod status;
pub mod transcript;
pub mod typist;
pub mod work;
