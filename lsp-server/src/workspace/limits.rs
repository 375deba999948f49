//! How much of a workspace is indexed at most, and how long anything may take.

use std::time::Duration;

/// The folders that are open at a time, of all editors together.
pub const FOLDERS_MAX: usize = 16;

/// The files of one folder that are listed. What comes after them is not looked at.
pub const LISTED_MAX: usize = 200_000;

/// The files of one folder that are indexed: the nearest ones.
pub const FILES_MAX: usize = 20_000;

/// The longest file that is indexed, in bytes.
pub const FILE_BYTES_MAX: usize = 1 << 20;

/// The bytes of all indexed texts of a folder.
pub const TEXT_BYTES_MAX: usize = 48 << 20;

/// The output of `git ls-files` that is read, in bytes.
pub const LISTING_BYTES_MAX: u64 = 64 << 20;

/// The depth to which a folder that git does not know is walked.
pub const DEPTH_MAX: usize = 32;

/// The time that listing a folder may take.
pub const LISTING_TIME_MAX: Duration = Duration::from_secs(60);

/// The time that reading a folder may take. What is not read by then is left out.
pub const BUILD_TIME_MAX: Duration = Duration::from_secs(300);

/// The wait before a folder is indexed. The editor opens its documents meanwhile, and they tell
/// which files are near.
pub const START_DELAY: Duration = Duration::from_secs(1);

/// The files that are read between two rests of the thread, and the rest.
pub const BATCH_FILES: usize = 64;
pub const BATCH_REST: Duration = Duration::from_millis(2);

/// The least time between two published snapshots while a folder is being read.
pub const PUBLISH_EVERY: Duration = Duration::from_millis(500);

/// The time without a key after which a document that is being edited is indexed anew.
pub const QUIET: Duration = Duration::from_millis(400);

/// The longest document that is indexed while it is edited, in bytes. A longer one is indexed when
/// it is saved.
pub const DOCUMENT_BYTES_MAX: usize = 256 * 1024;

/// The lines above a typed piece that are kept with it, so that it is found by what stands before
/// it.
pub const TYPED_LINES_ABOVE: usize = 2;

/// The documents that may be open in a folder. Further ones are indexed as they lie on the disk.
pub const DOCUMENTS_MAX: usize = 512;

/// The changed files that may wait. If there are more, the whole folder is listed again.
pub const CHANGED_MAX: usize = 4096;

/// The least time between two listings of a folder.
pub const LIST_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// How often it is looked whether the folder still exists.
pub const CHECK_EVERY: Duration = Duration::from_secs(10);

/// The folders whose changes the system reports.
pub const WATCHED_MAX: usize = 8192;

/// A disk that does not answer for so long is told in the status.
pub const STALLED_AFTER: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 10 });

/// The files and folders that can be forgotten.
pub const FORGOTTEN_MAX: usize = 100_000;

const _: () = assert!(DOCUMENT_BYTES_MAX <= FILE_BYTES_MAX && FILE_BYTES_MAX <= TEXT_BYTES_MAX);
const _: () = assert!(FILES_MAX <= LISTED_MAX);
