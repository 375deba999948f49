//! The token of the HTTP API, in a file that only the user can read.

use anyhow::{Context, Result, ensure};
use api::Token;
use host::platform::files;
use rand::RngCore;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Reads the token, and makes one if there is none.
///
/// # Errors
/// Others can read the file, or it holds something else.
pub fn read_or_make(path: &Path) -> Result<Token> {
    match read(path)? {
        Some(token) => Ok(token),
        None => make(path),
    }
}

/// Reads the token. `None` if there is none.
pub fn read(path: &Path) -> Result<Option<Token>> {
    let (is_private, how) = match files::is_private(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    ensure!(
        is_private && files::is_own(path)?,
        "{}: others can read this token ({how}), so it is not used; remove the file, and \
         `hone api on` makes another",
        path.display()
    );
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let token = Token::from_text(&text).with_context(|| {
        format!("{}: remove the file, and `hone api on` makes another", path.display())
    })?;
    Ok(Some(token))
}

fn make(path: &Path) -> Result<Token> {
    let mut bytes = [0; 32];
    rand::rng().fill_bytes(&mut bytes);
    let token = Token::from_bytes(bytes);
    let made = files::private().write(true).create_new(true).open(path);
    let written = made.and_then(|mut file| writeln!(file, "{}", token.as_str()));
    match written {
        Ok(()) => Ok(token),
        // Another process was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            read(path)?.with_context(|| format!("{}: it was just removed", path.display()))
        }
        Err(error) => Err(error).with_context(|| format!("{}: cannot be written", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_made_once_and_for_the_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("api-token");
        assert!(read(&path).unwrap().is_none());
        let made = read_or_make(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read_or_make(&path).unwrap().as_str(), made.as_str());
    }

    #[test]
    fn a_token_that_others_can_read_or_that_is_none_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("api-token");
        read_or_make(&path).unwrap();
        for mode in [0o640, 0o604] {
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let error = read_or_make(&path).err().unwrap().to_string();
            assert!(
                error.contains(&format!("others can read this token (mode {mode:o})")),
                "{error}"
            );
        }
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        std::fs::write(&path, "secret\n").unwrap();
        let error = format!("{:#}", read_or_make(&path).err().unwrap());
        assert!(error.contains("remove the file") && !error.contains("secret"), "{error}");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        assert!(read_or_make(&path).is_err(), "a link is not followed");
    }
}
