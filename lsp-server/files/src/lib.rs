//! Reads the files of opened folders, and the rules by which git ignores files. No program is run
//! for that, and nothing that lies in a folder is trusted: whoever made it may be a stranger.
//!
//! [`folder`] reads one file below a folder, [`walk`] finds the files of a folder, [`ignored`] says
//! which of them git or a `.honeignore` ignores, and [`disk`] waits for all that only for so long.

pub mod disk;
pub mod folder;
pub mod ignored;
pub mod limits;
pub mod plain;
mod platform;
pub mod walk;
