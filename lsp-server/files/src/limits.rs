//! The limits of this crate. A folder of a stranger may hold anything, of any size.

use std::time::Duration;

/// The longest ignore file, in bytes. A longer one is not read, so it ignores everything.
pub const RULES_BYTES_MAX: u64 = 256 * 1024;

/// The most patterns of all ignore files that speak about one file. With more, it is ignored.
pub const PATTERNS_MAX: usize = 10_000;

/// The most bytes of one pattern, and the most `*` in it. A file with another pattern ignores
/// everything.
pub const PATTERN_BYTES_MAX: usize = 1_024;
pub const PATTERN_STARS_MAX: usize = 16;

/// The most folders above a file. A file that lies deeper is ignored.
pub const DEPTH_MAX: usize = 128;

/// The time for which the rules of a folder are used without a look at its files. It is short
/// enough that a user's change seems to take effect at once.
pub const FRESH: Duration = Duration::from_secs(2);

/// The most folders whose rules are kept.
pub const FOLDERS_MAX: usize = 8_192;

/// The most files whose verdicts are kept.
pub const VERDICTS_MAX: usize = 4_096;

/// The longest file of git's settings, in bytes. With a longer one, everything is ignored.
pub const SETTINGS_BYTES_MAX: u64 = 1024 * 1024;

/// The most files of git's settings that are read for one repository, those that others include
/// among them.
pub const SETTINGS_FILES_MAX: usize = 64;

/// The most files that include each other one after the other, as in git.
pub const INCLUDES_DEPTH_MAX: usize = 10;

/// The most conditions of includes in the settings of one repository, and the most addresses of
/// remotes that they are held against. With more, everything is ignored.
pub const CONDITIONS_MAX: usize = 256;
pub const REMOTES_MAX: usize = 256;

/// The longest text that the condition of an include is held against, in bytes. No path is longer.
pub const CONDITION_TEXT_BYTES_MAX: usize = 4_096;

/// The most steps that it may take to match all patterns that speak about one file, or all
/// conditions of one repository. With more, everything is ignored.
pub const MATCH_STEPS_MAX: u64 = 1_000_000;

/// The longest file that names another folder (`.git`, `commondir`) or a branch (`HEAD`), in bytes.
pub const POINTER_BYTES_MAX: u64 = 4_096;

/// The most folders and files that one walk looks at.
pub const WALK_ENTRIES_MAX: usize = 200_000;

/// The most folders that a walk has still to look at.
pub const WALK_FOLDERS_MAX: usize = 20_000;

/// The most threads that wait for the disk to say what is ignored. Beyond that, everything is.
pub const ASKING_THREADS_MAX: usize = 128;

/// The most threads that ask about the files of one question.
pub const THREADS_OF_ONE_MAX: usize = 4;
