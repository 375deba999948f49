//! The vocabulary the server and the learner share: what happened to an offer
//! ([`event`]), what it meant ([`episode`], [`reward`]), the work order that
//! crosses the process border ([`job`]), and where events are kept ([`log`]).
//!
//! Nothing here knows LSP, llama.cpp or candle; only [`sled_log`] knows sled.

pub mod checkpoint;
pub mod clock;
pub mod episode;
pub mod event;
pub mod job;
pub mod log;
mod mark;
pub mod reward;
pub mod secrets;
#[cfg(test)]
mod sled_damage;
pub mod sled_log;
