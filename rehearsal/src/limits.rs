//! The limits of a rehearsal: how long it waits, how much it reads, how much it needs before it
//! speaks. How limits relate is checked when this is compiled.

use std::time::Duration;

// Waits.

/// Longest wait until a daemon is ready. A model is read from a cold disk in seconds.
pub const DAEMON_START: Duration = Duration::from_secs(120);
/// Longest wait until a daemon that was told to stop has ended.
pub const DAEMON_STOP: Duration = Duration::from_secs(5);
pub const DAEMON_POLL: Duration = Duration::from_millis(50);
/// Longest wait for one update.
pub const UPDATE: Duration = Duration::from_secs(600);
pub const UPDATE_POLL: Duration = Duration::from_millis(100);
/// Longest wait for an answer of the server. A cold prompt on a busy machine with two cores takes
/// seconds, never a minute.
pub const REQUEST: Duration = Duration::from_secs(120);
/// Longest wait until a language server has left after `exit`.
pub const EXIT: Duration = Duration::from_secs(5);
pub const EXIT_POLL: Duration = Duration::from_millis(10);
/// What an arm's completions may take. It is so long that what is offered depends on the seed and
/// not on how busy the machine is; the latencies show what it cost.
pub const COMPLETION_BUDGET_MS: i64 = 60_000;

// What the daemon's rules ask of the developer.

/// An offer that stood this long counts as seen: the daemon's rule.
const OFFER_SEEN_MS: u64 = 250;
/// An offer that stood this long without an answer is rejected: the daemon's rule.
pub const OFFER_TIMEOUT_MS: u64 = 10_000;
/// How long the developer looks at an offer before anything happens.
pub const LOOK_MS: u64 = 700;
/// How long the developer does nothing in order to reject an offer.
pub const WAIT_MS: u64 = 11_000;

// Sizes.

/// A larger file is data or generated code.
pub const FILE_BYTES_MAX: usize = 256 << 10;
/// The files that a commit adds and removes are compared, to find those that it renames, up to so
/// many bytes of them together.
pub const RENAMES_BYTES_MAX: usize = 64 << 20;
/// A commit's message and names. With a larger one a repository is refused.
pub const COMMIT_BYTES_MAX: usize = 16 << 20;
/// Files and folders of a commit; one with more is left out.
pub const TREE_ENTRIES_MAX: u64 = 1_000_000;
/// The bytes of their paths, and of the trees in which git has them.
pub const TREE_PATHS_BYTES_MAX: u64 = 128 << 20;
/// Folders in folders of a commit.
pub const TREE_DEPTH_MAX: u32 = 512;
/// Trees of a history whose sizes are remembered.
pub const TREES_KNOWN_MAX: usize = 200_000;
/// A larger file is left out of the working tree.
pub const TREE_FILE_BYTES_MAX: usize = 1 << 20;
/// What the files of a working tree may take together.
pub const TREE_BYTES_MAX: u64 = 2 << 30;
/// Files of a working tree.
pub const TREE_FILES_MAX: usize = 200_000;
/// A longer line is minified or data.
pub const LINE_BYTES_MAX: usize = 1000;
/// A larger message means that the peer is broken.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// JSON writes one byte of a text with at most this many.
const JSON_BYTES_PER_BYTE: usize = 6;
/// Header lines of a message before the blank line.
pub const HEADER_LINES_MAX: usize = 16;
pub const HEADER_LINE_BYTES_MAX: u64 = 1024;
/// Notifications that are kept until somebody takes them; the oldest are dropped.
pub const NOTIFICATIONS_MAX: usize = 256;
/// Messages that wait until the peer reads them; then the caller waits.
pub const OUTBOX_MESSAGES_MAX: usize = 256;
/// Places that `--limit` may ask for.
pub const PLACES_MAX: u64 = 1_000_000;
/// Minutes that `--max-minutes` may ask for.
pub const MINUTES_MAX: u64 = 100_000;

// A recorded session.

/// The bytes of a recording's file.
pub const RECORDING_BYTES_MAX: u64 = 256 << 20;
/// Entries of a recording.
pub const RECORDING_ENTRIES_MAX: usize = 2_000_000;
/// Documents of a recording.
pub const RECORDED_DOCUMENTS_MAX: usize = 10_000;
/// The text of a recorded document.
pub const RECORDED_TEXT_BYTES_MAX: usize = 8 << 20;
/// The texts that documents have, one after the other. A recording may name one and have it again.
pub const RECORDED_TEXTS_BYTES_MAX: usize = 1 << 30;
/// A longer pause in a recording, such as a night, is played as one of this length.
pub const RECORDED_PAUSE_MS_MAX: u64 = 3_600_000;
/// How long after a key or a move of the caret an editor asks, if nothing else happens.
pub const ASK_AFTER_MS: u64 = 50;
/// An offer that gives way to another one within this time flickers.
pub const FLICKER_MS: u64 = 500;

// The judge.

/// Longest wait for one answer of a judge: a slow model on a slow machine.
pub const JUDGE_ANSWER: Duration = Duration::from_secs(120);
/// How often a judge is asked for one rating, with a pause between.
pub const JUDGE_ATTEMPTS: u32 = 3;
pub const JUDGE_PAUSE: Duration = Duration::from_secs(1);
/// Code before the offer that a judge sees.
pub const JUDGE_BEFORE_CHARS: usize = 1500;
/// Code before that which is searched for secrets too: it may begin in the middle of a key, and the
/// longest key in use has 3,300 characters.
pub const JUDGE_MARGIN_CHARS: usize = 4096;
/// Tokens of a judge's answer: a number, and what a talkative model puts around it.
pub const JUDGE_ANSWER_TOKENS: u32 = 16;

// Statistics.

/// With fewer commits there is no interval: they would say how much these few differ and not what
/// the next ones would bring.
pub const COMMITS_MIN: usize = 8;
/// With fewer accepted offers in the arm that others are compared with, nothing is said about
/// chance: too many resamples would have none to divide by.
pub const ACCEPTED_MIN: usize = 10;
/// With fewer offers in an arm, nothing is said about its accept rate.
pub const SHOWN_MIN: usize = 20;
/// Resamples of the bootstrap.
pub const RESAMPLES: usize = 2000;
/// Share of the resamples that is left out on each side, which leaves a 95 % interval.
pub const TAIL_SHARE: f64 = 0.025;

const _: () = {
    // The server gives up on a completion before the client gives up on the server.
    assert!((COMPLETION_BUDGET_MS as u128) < REQUEST.as_millis());
    assert!(DAEMON_POLL.as_millis() < DAEMON_STOP.as_millis());
    assert!(UPDATE_POLL.as_millis() < UPDATE.as_millis());
    assert!(EXIT_POLL.as_millis() < EXIT.as_millis());
    // An offer that was looked at counts as seen and is still there; one that was waited at is not.
    assert!(OFFER_SEEN_MS < LOOK_MS && LOOK_MS < OFFER_TIMEOUT_MS && OFFER_TIMEOUT_MS < WAIT_MS);
    assert!(LINE_BYTES_MAX < FILE_BYTES_MAX);
    // A file that is typed lies in the working tree.
    assert!(FILE_BYTES_MAX < TREE_FILE_BYTES_MAX);
    // A file can be opened with one message.
    assert!(FILE_BYTES_MAX * JSON_BYTES_PER_BYTE < MESSAGE_BYTES_MAX);
    // A recorded document can be opened with one message.
    assert!(RECORDED_TEXT_BYTES_MAX * JSON_BYTES_PER_BYTE < MESSAGE_BYTES_MAX);
    assert!(ASK_AFTER_MS < FLICKER_MS);
    // The bounds of an interval are resamples, not the outermost ones.
    assert!(RESAMPLES as f64 * TAIL_SHARE > 10.0);
    assert!(JUDGE_ATTEMPTS > 0);
    assert!(ACCEPTED_MIN <= SHOWN_MIN);
};
