//! Makes the folders of a home. What Hone makes is private. A folder that was there keeps its
//! access, because others may work in it: it is used if it is private, or refused.

use super::MAKE_WRITABLE;
use crate::platform::files;
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::io::ErrorKind;
use std::path::Path;

/// The folders below the home.
const FOLDERS: [&str; 6] = ["data", "adapters", MODELS, "prompts", "run", "logs"];

/// The folder that holds nothing private.
const MODELS: &str = "models";

/// The names that the folder of a home has, besides [`FOLDERS`]. Unfinished files have them with
/// more behind.
const OTHER_NAMES: [&str; 6] =
    ["config.toml", "team", "history", "recordings", "rehearsal.log", ".DS_Store"];

/// Makes the home and the folders in it.
pub fn create(home: &Path) -> Result<()> {
    make(home)?;
    if !is_private(home)? {
        close(home)?;
    }
    for name in FOLDERS {
        let folder = home.join(name);
        make(&folder)?;
        // Nobody else reaches a folder in a private home, unless it is a link that leads out.
        let leads_out = name != MODELS && folder.is_symlink();
        ensure!(
            !leads_out || is_private(&folder)?,
            "{}: leads to a folder that others can read; take their access away (`chmod 700`), or \
             remove the link",
            folder.display()
        );
        files::check_writable(&folder).map_err(|reason| {
            anyhow!("{}: cannot be written: {reason}; {MAKE_WRITABLE}", folder.display())
        })?;
    }
    Ok(())
}

/// Makes a folder that only this user can read, or refuses one of another user: the owner of a
/// folder decides what lies in it.
fn make(folder: &Path) -> Result<()> {
    files::make_private_folder(folder).map_err(|error| cannot_make(folder, &error))?;
    ensure!(
        files::is_own(folder).map_err(|error| cannot_make(folder, &error))?,
        "{}: belongs to another user; set HONE_HOME to a folder of your own",
        folder.display()
    );
    Ok(())
}

fn is_private(folder: &Path) -> Result<bool> {
    files::keeps_others_out(folder).with_context(|| folder.display().to_string())
}

/// Keeps others out of a home that is Hone's alone, as one that was unpacked from an archive.
///
/// # Errors
/// It is a link, or it holds what is not Hone's: others may need it.
fn close(home: &Path) -> Result<()> {
    let name = home.display();
    if home.is_symlink() || files::is_shared(home)? || !holds_only_our_files(home)? {
        bail!(
            "{name}: others can read this folder, and it is not Hone's alone; set HONE_HOME to a \
             folder of its own, or take their access away (`chmod 700`)"
        );
    }
    files::close_to_others(home)
        .with_context(|| format!("{name}: others can read it, and that cannot be changed"))
}

fn holds_only_our_files(home: &Path) -> Result<bool> {
    let is_ours = |name: &str| {
        FOLDERS.contains(&name)
            || OTHER_NAMES.iter().any(|ours| name.strip_prefix(ours).is_some_and(is_end))
    };
    for entry in home.read_dir().with_context(|| home.display().to_string())? {
        let name = entry?.file_name();
        if !name.to_str().is_some_and(is_ours) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_end(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('.')
}

/// Returns why a folder cannot be made, and what to do about it.
fn cannot_make(path: &Path, error: &std::io::Error) -> anyhow::Error {
    let mut above = path.ancestors().skip(1);
    let there = above.find(|folder| std::fs::symlink_metadata(folder).is_ok());
    let fix = match (error.kind(), there) {
        (ErrorKind::AlreadyExists | ErrorKind::NotADirectory, _) => {
            "a file is in its way: move that elsewhere, or set HONE_HOME to another folder".into()
        }
        (_, Some(there)) => format!(
            "make {} writable for yourself, or set HONE_HOME to another folder",
            there.display()
        ),
        (_, None) => "set HONE_HOME to another folder".to_owned(),
    };
    anyhow!("{}: cannot make this folder: {error}; {fix}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_the_way_of_a_folder_is_told_with_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        std::fs::write(&home, "").unwrap();
        let error = create(&home).unwrap_err().to_string();
        assert!(error.starts_with(&home.display().to_string()), "{error}");
        assert!(error.contains("a file is in its way"), "{error}");
    }

    #[cfg(unix)]
    mod modes {
        use super::*;
        use std::fs::Permissions;
        use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
        use std::path::PathBuf;

        fn set(path: &Path, mode: u32) {
            std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }

        fn mode(path: &Path) -> u32 {
            std::fs::metadata(path).unwrap().mode() & 0o7777
        }

        /// A folder that is there with these files in it.
        fn there(name: &str, files: &[&str], access: u32) -> (tempfile::TempDir, PathBuf) {
            let above = tempfile::tempdir().unwrap();
            let folder = above.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            for file in files {
                std::fs::write(folder.join(file), "").unwrap();
            }
            set(&folder, access);
            (above, folder)
        }

        /// Any folder that `HONE_HOME` named lost the access of all others at the first command.
        #[test]
        fn a_folder_that_is_not_hones_alone_keeps_its_access_and_is_refused() {
            for (files, access, is_taken) in [
                (&["index.html"][..], 0o755, false),
                (&["index.html"], 0o750, false),
                (&["index.html"], 0o700, true),
                (&["config.toml", "notes"], 0o755, false),
                (&[], 0o777, false),
                (&[], 0o1777, false),
            ] {
                let (_above, home) = there("home", files, access);
                let made = create(&home);
                assert_eq!(mode(&home), access, "{files:?}");
                assert_eq!(made.is_ok(), is_taken, "{files:?}: {made:?}");
                if let Err(error) = made {
                    let error = error.to_string();
                    assert!(error.contains("set HONE_HOME to a folder of its own"), "{error}");
                    assert!(!home.join("data").exists(), "nothing was made in it");
                }
            }
        }

        #[test]
        fn a_home_of_hones_own_files_is_closed_again() {
            let files = ["config.toml", "config.toml.lock", "config.toml.7-0.tmp"];
            for files in [&files[..], &[]] {
                let (_above, home) = there("home", files, 0o755);
                create(&home).unwrap();
                assert_eq!(mode(&home), 0o700);
            }
        }

        #[test]
        fn what_lies_behind_a_link_is_left_and_may_be_open_only_for_models() {
            for name in FOLDERS {
                let (_above, shared) = there("shared", &["index.html"], 0o755);
                let home = tempfile::tempdir().unwrap();
                symlink(&shared, home.path().join(name)).unwrap();
                let made = create(home.path());
                assert_eq!(mode(&shared), 0o755, "{name}");
                assert_eq!(made.is_ok(), name == MODELS, "{name}: {made:?}");
                set(&shared, 0o700);
                create(home.path()).unwrap();
            }
            let (above, shared) = there("shared", &[], 0o755);
            let home = above.path().join("link");
            symlink(&shared, &home).unwrap();
            assert!(create(&home).is_err());
            assert_eq!(mode(&shared), 0o755);
        }

        #[test]
        fn everything_that_is_made_is_private() {
            let above = tempfile::tempdir().unwrap();
            let home = above.path().join("a").join("home");
            create(&home).unwrap();
            let below = FOLDERS.iter().map(|name| home.join(name));
            for folder in below.chain([home.clone(), above.path().join("a")]) {
                assert_eq!(mode(&folder), 0o700, "{}", folder.display());
            }
        }

        /// The mode of a folder was set at every start. On a file system that is read-only this
        /// fails, also where the mode is right.
        #[test]
        fn a_private_folder_that_cannot_be_written_is_told_and_left() {
            let home = tempfile::tempdir().unwrap();
            create(home.path()).unwrap();
            let data = home.path().join("data");
            set(&data, 0o500);
            // Root may write everywhere.
            if let Err(error) = create(home.path()) {
                assert!(error.to_string().contains("cannot be written"), "{error}");
                assert!(error.to_string().ends_with(MAKE_WRITABLE), "{error}");
            }
            assert_eq!(mode(&data), 0o500);
            set(&data, 0o700);
        }
    }
}
