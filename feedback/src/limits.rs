//! The limits of what is kept in memory and on disk, and how they relate to each other.
//! A name ends in its unit, or in what is counted, and then in `MAX` or `MIN`.

use std::time::Duration;

/// Offers in memory that have no label yet, and as many completions that offered
/// nothing. A client has a handful of them open at a time; the rest leaves room for late
/// evidence.
pub const UNLABELLED_OFFERS_MAX: usize = 256;

/// Offers whose outcome is remembered, so that stronger evidence can still change it.
pub const KNOWN_OFFERS_MAX: usize = 4096;

/// Labelled episodes that wait for an update. When there are more, the oldest give way.
pub const WAITING_EPISODES_MAX: usize = 4096;

/// Episodes that are kept after an update has learned from them, for a contribution to a team.
pub const LEARNED_EPISODES_MAX: usize = 256;

/// Bytes of the experts that are recorded with a completion, before they are encoded. Those of
/// Qwen3-Coder-30B-A3B have room for 64 tokens. Of a longer completion the first are recorded.
pub const CHOSEN_EXPERTS_BYTES_MAX: usize = 24 * 1024;

/// LoRA rank. An adapter of a higher one is larger and no better.
pub const LORA_RANK_MAX: usize = 256;

/// The learner's memory limit, in MiB. No machine has more, and it can be counted in bytes.
pub const MEMORY_LIMIT_MB_MAX: u64 = 1 << 30;

/// Size of a checkpoint file. The state in it is bounded and stays far below this.
pub const CHECKPOINT_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// sled's page cache. The log is written in order and read once, at start.
pub const LOG_CACHE_BYTES: u64 = 16 * 1024 * 1024;

/// The time that an event waits for others before they are flushed together. A crash may lose this
/// much of what was appended and not flushed.
pub const LOG_FLUSH_INTERVAL: Duration = Duration::from_millis(200);

/// The interval at which sled's own thread wakes. It also gives the room of old records back.
pub const LOG_CLEAN_INTERVAL: Duration = Duration::from_secs(60);

/// The time that opening the log waits for a daemon that is ending: it releases the log last,
/// when its process ends.
pub const LOG_HANDOVER_MAX: Duration = Duration::from_secs(3);
pub const LOG_HANDOVER_POLL: Duration = Duration::from_millis(20);

/// A log that could not be written is opened again once this much can be written.
pub const LOG_ROOM_BYTES_MIN: usize = 1024 * 1024;

/// Events that are read at a time. A slow reader would otherwise hold up a rewrite, and
/// the rewrite the next append.
pub const SCAN_EVENTS_MAX: usize = 64;

const _: () = assert!(MEMORY_LIMIT_MB_MAX < u64::MAX >> 20);
// Every offer without a label is one whose outcome is remembered.
const _: () = assert!(UNLABELLED_OFFERS_MAX <= KNOWN_OFFERS_MAX);
// A checkpoint has room for the experts of every episode in it, which base64 makes a third longer.
const _: () = assert!(
    ((WAITING_EPISODES_MAX + LEARNED_EPISODES_MAX) * CHOSEN_EXPERTS_BYTES_MAX) as u64 * 4 / 3
        < CHECKPOINT_BYTES_MAX * 3 / 4
);
// A daemon that is ending has time for a last flush before its successor gives up.
const _: () = assert!(LOG_FLUSH_INTERVAL.as_millis() < LOG_HANDOVER_MAX.as_millis());
const _: () = assert!(LOG_HANDOVER_POLL.as_millis() < LOG_HANDOVER_MAX.as_millis());
// A read that asks for no events would never end.
const _: () = assert!(SCAN_EVENTS_MAX > 0);
