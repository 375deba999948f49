//! A simulated developer: replays the real commits of a git repository through
//! the real protocol into real daemons, and says what that was worth.
//!
//! - [`developer`]: what somebody wrote, and what the developer who types it does.
//! - [`run`]: leads the arms, each with a daemon of its own, through one stream.
//! - [`report`]: counts, draws and judges what happened.
//!
//! Nothing here knows the server's code: everything goes through [`client`],
//! which the end-to-end tests use too.

pub mod cli;
pub mod client;
pub mod developer;
pub mod limits;
pub mod report;
pub mod run;
