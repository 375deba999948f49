//! A simulated developer, who types the real commits of a git repository through the real protocol
//! into real daemons, and a report that says what Hone's offers were worth.
//!
//! - [`developer`] says what somebody wrote, and what the developer who types it does.
//! - [`run`] types one stream of lines into several arms, each with a daemon of its own.
//! - [`next_edits`] makes the commits as edits instead, and asks for the next edit.
//! - [`recording`] plays a recorded session of a person, and compares offers with what they wrote.
//! - [`report`] counts, draws and rates what happened.
//! - [`cli`] is the command line of `hone rehearse`.
//!
//! Nothing here depends on the server's code. Everything goes through [`client`], which the
//! end-to-end tests use too.

pub mod cli;
pub mod client;
pub mod developer;
pub mod document;
pub mod limits;
pub mod next_edits;
pub mod recording;
pub mod report;
pub mod run;
