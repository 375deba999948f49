//! The vocabulary that the server and the learner share.
//!
//! [`event`] records what was served and what became of it. [`episode`] and [`reward`] tell
//! what that meant. [`job`] is the work order that crosses the process border, and [`log`]
//! is where events are kept.
//!
//! Nothing here knows LSP, llama.cpp or candle; only [`sled_log`] knows sled.

pub mod bounded_map;
pub mod checkpoint;
pub mod clock;
pub mod episode;
pub mod event;
pub mod experts;
pub mod job;
pub mod limits;
pub mod log;
mod mark;
pub mod panics;
pub mod reward;
pub mod schema;
pub mod secrets;
pub mod sled_log;
pub mod testing;
