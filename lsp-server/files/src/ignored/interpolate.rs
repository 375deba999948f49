//! The paths that git's settings name, with `~` for a home.

use bstr::BString;
use gix_config::path::interpolate::Context;
use std::path::{Path, PathBuf};

/// Returns the path that a setting means. `~` is the home of the user.
pub fn interpolated(value: BString, home: Option<&Path>) -> Option<PathBuf> {
    let context =
        Context { git_install_dir: None, home_dir: home, home_for_user: Some(home_of_own_name) };
    gix_config::Path::from(value).interpolate(context).ok()
}

/// Returns the home of a user by name, if it is the one who runs this. The homes of others are not
/// asked for, because a directory service on another machine may know them.
fn home_of_own_name(name: &str) -> Option<PathBuf> {
    let own = ["USER", "LOGNAME", "USERNAME"].map(std::env::var_os);
    let is_own = own.into_iter().flatten().any(|own| own == name);
    is_own.then(std::env::home_dir)?
}
