//! Opens the repository of a history. It may be a stranger's: libgit2 runs no program that its
//! settings name, and it is refused if they lead to other folders.

use anyhow::{Error, Result, anyhow, ensure};
use git2::{ErrorCode, Repository};
use std::path::Path;

/// Opens a repository, or the one around a folder.
///
/// # Errors
/// Says in one line what is there and what to do.
pub fn open(path: &Path) -> Result<Repository> {
    let repository = Repository::discover(path).map_err(|error| refused(path, &error))?;
    if let Some(files) = repository.workdir() {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let is_within =
            [files, repository.path()].iter().any(|folder| real(path).starts_with(real(folder)));
        ensure!(
            is_within && files.join(".git").symlink_metadata().is_ok(),
            "{}: its setting core.worktree names another folder: name that folder, or remove the \
             setting",
            path.display()
        );
    }
    Ok(repository)
}

fn refused(path: &Path, error: &git2::Error) -> Error {
    let path = path.display();
    match error.code() {
        ErrorCode::NotFound if error.message().starts_with("could not find repository") => {
            anyhow!("{path} is not inside a git repository: name a folder that is")
        }
        ErrorCode::Owner => anyhow!(
            "{path} belongs to another user: make it your own, or run `git config --global --add \
             safe.directory` with its path if you trust whoever owns it"
        ),
        _ if error.message().contains("object format") => anyhow!(
            "{path} names its objects by SHA-256, which cannot be read: name a repository with \
             SHA-1"
        ),
        _ => anyhow!("{path}: this repository cannot be read: {}", error.message()),
    }
}

/// Returns an error with its causes in one line. What libgit2 says comes without its numbers.
pub fn sentence(error: &Error) -> String {
    let said = error.chain().map(|cause| match cause.downcast_ref::<git2::Error>() {
        Some(git) => git.message().trim_end().to_owned(),
        None => cause.to_string(),
    });
    said.collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn refusal(path: &Path) -> String {
        match open(path) {
            Ok(_) => panic!("it was opened"),
            Err(error) => sentence(&error),
        }
    }

    #[test]
    fn a_repository_of_another_kind_is_named_for_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert!(refusal(path).contains("is not inside a git repository: name a folder"));
        let git = Repository::init(path).unwrap();
        fs::create_dir(path.join("src")).unwrap();
        for elsewhere in ["/", "../src"] {
            git.config().unwrap().set_str("core.worktree", elsewhere).unwrap();
            let refusal = refusal(path);
            assert!(refusal.contains("core.worktree names another folder"), "{refusal}");
        }
        git.config().unwrap().set_str("core.worktree", "..").unwrap();
        assert!(open(&path.join("src")).is_ok(), "a submodule has this setting");
        git.config().unwrap().remove("core.worktree").unwrap();
        assert!(open(path).is_ok() && open(&path.join(".git")).is_ok());
        git.config().unwrap().set_str("core.repositoryformatversion", "1").unwrap();
        git.config().unwrap().set_str("extensions.objectformat", "sha256").unwrap();
        assert!(refusal(path).contains("SHA-256"), "{}", refusal(path));
    }

    #[test]
    fn what_libgit2_says_comes_without_its_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let git = Repository::init(folder.path()).unwrap();
        let error = Error::from(git.head().err().unwrap()).context("no commit");
        let said = sentence(&error);
        assert!(said.starts_with("no commit: ") && !said.contains("class="), "{said}");
    }
}
