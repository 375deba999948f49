//! What differs between operating systems.

use std::io;
use std::path::Path;

#[cfg(unix)]
pub fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

/// Files have no mode here.
#[cfg(not(unix))]
pub fn set_mode(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}
