//! The bounds on what a client may use.

use std::time::Duration;

/// The largest body of a request, in bytes. Clients send at most a few hundred kilobytes.
pub const BODY_BYTES: usize = 4 * 1024 * 1024;

/// The most bytes that are read of a larger one.
pub const DISCARDED_BYTES: usize = 8 * BODY_BYTES;

/// The largest head of a request, in bytes.
pub const HEAD_BYTES: usize = 32 * 1024;

/// The most header fields of a request.
pub const HEADERS: usize = 64;

/// The most files that one request may send along. The first ones count.
pub const FILES: usize = 32;

/// The longest name of a client, in bytes.
pub const NAME_BYTES: usize = 32;

const _: () = assert!(HEAD_BYTES < BODY_BYTES);

/// The limits that a test may have otherwise.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The most connections at a time.
    pub connections: usize,
    /// The time in which the head of a request must arrive, also of the next one on a connection.
    pub head_time: Duration,
    /// The time in which the body must arrive.
    pub body_time: Duration,
    /// The time for which a client may take nothing of its answer.
    pub write_time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 64,
            head_time: Duration::from_secs(30),
            body_time: Duration::from_secs(10),
            write_time: Duration::from_secs(10),
        }
    }
}
