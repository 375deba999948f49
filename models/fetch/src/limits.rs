//! The limits of downloads, and how they relate to each other.

use std::time::Duration;

pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// From the request to the head of the answer.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// The longest time of a transfer without a byte arriving.
pub const STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// The number of times in a row that a transfer may break off without a new byte.
pub const FRUITLESS_ATTEMPTS_MAX: u32 = 4;

/// The wait before the first repeat of a transfer. It doubles with each fruitless one.
pub const RETRY_WAIT: Duration = Duration::from_millis(250);

/// Bytes of one package's page in a package index.
pub const INDEX_PAGE_BYTES_MAX: u64 = 16 << 20;

/// Bytes of a wheel without its data file: names, checksums, small sources.
pub const WHEEL_EXTRA_BYTES_MAX: u64 = 16 << 20;

/// JSON lines of progress in one transfer. A progress bar needs no more.
pub const PROGRESS_LINES_MAX: u64 = 200;

/// Bytes between two lines of progress if the server does not say how many there are.
pub const PROGRESS_STEP_BYTES: u64 = 4 * 1024 * 1024;

// A connection that takes long must not look like a server that takes long to answer.
const _: () = assert!(CONNECT_TIMEOUT.as_secs() < RESPONSE_TIMEOUT.as_secs());
// The longest wait, before the last attempt, must not look like a stalled transfer.
const _: () =
    assert!(RETRY_WAIT.as_millis() << (FRUITLESS_ATTEMPTS_MAX - 1) < STALL_TIMEOUT.as_millis());
const _: () = assert!(PROGRESS_LINES_MAX > 0 && PROGRESS_STEP_BYTES > 0);
