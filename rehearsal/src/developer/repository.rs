//! Opens the repository of a history. It may be a stranger's: libgit2 runs no program that its
//! settings name, and it is refused if they lead to other folders.

use crate::developer::git_files::{self, real};
use anyhow::{Error, Result, anyhow, ensure};
use git2::{ConfigLevel, ErrorCode, Repository};
use std::path::Path;

/// Opens a repository, or the one around a folder.
///
/// # Errors
/// Says in one line what is there and what to do.
pub fn open(path: &Path) -> Result<Repository> {
    git_files::check(path)?;
    let repository = Repository::discover(path).map_err(|error| refused(path, &error))?;
    let (own, shared) = (real(repository.path()), real(repository.commondir()));
    ensure!(
        own.starts_with(&shared),
        "{}: its commondir names {}, which is no repository around it: name that folder, or remove \
         the file",
        path.display(),
        shared.display()
    );
    if let Some(files) = repository.workdir() {
        let is_within =
            [files, repository.path()].iter().any(|folder| real(path).starts_with(real(folder)));
        ensure!(
            is_within && files.join(".git").symlink_metadata().is_ok(),
            "{}: its setting core.worktree names another folder: name that folder, or remove the \
             setting",
            path.display()
        );
    }
    let is_own = match repository.workdir() {
        Some(files) => own.starts_with(real(files)) || names_back(&repository, files),
        // A bare one may be the `.git` of the folder in which its worktrees lie.
        None => {
            real(path).starts_with(own.parent().filter(|_| own.ends_with(".git")).unwrap_or(&own))
        }
    };
    ensure!(
        is_own,
        "{}: its .git leads to {}, which does not name this folder: name that one, or, if both are \
         yours, run `git config core.worktree` with this folder in it",
        path.display(),
        own.display()
    );
    Ok(repository)
}

/// Returns true if the folder of a repository says itself that the files lie there: by the path
/// that git keeps of a worktree, or by the setting of a submodule.
fn names_back(repository: &Repository, files: &Path) -> bool {
    let own = repository.path();
    let of_worktree = git_files::pointer(&own.join("gitdir"), "").map(|git| real(&own.join(git)));
    let of_module = || {
        let settings = repository.config().ok()?.open_level(ConfigLevel::Local).ok()?;
        settings.get_path("core.worktree").ok().map(|named| real(&own.join(named)))
    };
    of_worktree == Some(real(&files.join(".git"))) || of_module() == Some(real(files))
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

    /// A file `.git` may name any repository on this machine.
    #[test]
    fn a_folder_is_read_with_another_repository_only_if_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        let private = Repository::init(at("private")).unwrap();
        let mut index = private.index().unwrap();
        let tree = private.find_tree(index.write_tree().unwrap()).unwrap();
        let who = git2::Signature::now("Ada", "ada@example.org").unwrap();
        private.commit(Some("HEAD"), &who, &who, "x", &tree, &[]).unwrap();
        private.worktree("tree", &at("tree"), None).unwrap();
        assert!(open(&at("tree")).is_ok(), "a worktree");

        fs::create_dir_all(at("module")).unwrap();
        let module = Repository::init_bare(at("private/.git/modules/module")).unwrap();
        module.config().unwrap().set_bool("core.bare", false).unwrap();
        let worktree = "../../../../module";
        module.config().unwrap().set_str("core.worktree", worktree).unwrap();
        fs::write(at("module/.git"), "gitdir: ../private/.git/modules/module\n").unwrap();
        assert!(open(&at("module")).is_ok(), "a submodule");

        fs::create_dir_all(at("strange/src")).unwrap();
        for named in ["private/.git", "private/.git/worktrees/tree", "private/.git/modules/module"]
        {
            fs::write(at("strange/.git"), format!("gitdir: {}\n", at(named).display())).unwrap();
            for path in ["strange", "strange/src"] {
                let refusal = refusal(&at(path));
                assert!(refusal.contains("name"), "{named}: {refusal}");
            }
        }
        Repository::init_bare(at("bare")).unwrap();
        Repository::init_bare(at("around/.git")).unwrap();
        for path in ["bare", "bare/refs", "around", "around/.git"] {
            assert!(open(&at(path)).is_ok(), "{path}");
        }
        fs::write(at("strange/.git"), "gitdir: ../bare\n").unwrap();
        let of_bare = refusal(&at("strange/src"));
        assert!(of_bare.contains("does not name this folder"), "{of_bare}");
        fs::remove_file(at("strange/.git")).unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("../private/.git", at("strange/.git")).unwrap();
            let of_link = refusal(&at("strange"));
            assert!(of_link.contains("names another folder"), "{of_link}");
            fs::remove_file(at("strange/.git")).unwrap();
        }
        Repository::init(at("strange")).unwrap();
        fs::write(at("strange/.git/commondir"), "../../private/.git\n").unwrap();
        assert!(refusal(&at("strange")).contains("commondir"), "{}", refusal(&at("strange")));
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
