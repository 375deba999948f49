//! `hone-rehearse texts`: what the authors of a repository wrote, for `hone learn --history`.
//!
//! The first line of the output is a [`Header`], and each further line a text, in the order of
//! their commits.

use crate::developer::history::{Filter, History};
use crate::developer::written::{self, Amount};
use anyhow::{Result, ensure};
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::Serialize;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct TextsArguments {
    /// The repository, or a folder inside it
    #[arg(long, value_name = "DIR")]
    repo: PathBuf,
    /// Only commits whose author's name or mail address contains this text
    #[arg(long, value_name = "TEXT")]
    author: Option<String>,
    /// The newest commit, in hex, instead of the one that is checked out
    #[arg(long, value_name = "COMMIT")]
    head: Option<String>,
    /// So many of the newest commits
    #[arg(long, value_name = "N")]
    commits: usize,
    /// Hunks of all commits together, at most
    #[arg(long, value_name = "N")]
    hunks: usize,
    /// Hunks of each commit, at most
    #[arg(long, value_name = "N")]
    per_commit: usize,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Serialize)]
struct Header {
    /// The newest commit, in hex.
    head: String,
    /// The folder that the paths of the texts are relative to.
    root: PathBuf,
}

pub fn print(arguments: &TextsArguments) -> Result<()> {
    let TextsArguments { author, head, .. } = arguments;
    let filter = Filter { author: author.clone(), since: None, head: head.clone() };
    let history = History::open(&arguments.repo, &filter)?;
    ensure!(
        history.repository().workdir().is_some(),
        "{}: a bare repository has no file .honeignore to keep to: `git clone` it, and name the \
         clone",
        arguments.repo.display()
    );
    let amount = Amount { hunks: arguments.hunks, per_commit: arguments.per_commit };
    let mut random = StdRng::seed_from_u64(arguments.seed);
    let mut texts = written::draw(&history, arguments.commits, amount, &mut random)?;
    texts.sort_by_key(|(place, _)| *place);
    let mut out = BufWriter::new(io::stdout().lock());
    serde_json::to_writer(&mut out, &Header { head: history.head(), root: history.root() })?;
    for (_, text) in texts {
        out.write_all(b"\n")?;
        serde_json::to_writer(&mut out, &text)?;
    }
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use git2::{Repository, Signature};

    /// What a repository keeps out is said by files of its work tree.
    #[test]
    fn a_bare_repository_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let git = Repository::init_bare(folder.path()).unwrap();
        let tree = git.treebuilder(None).unwrap().write().unwrap();
        let who = Signature::now("Ada", "ada@example.org").unwrap();
        let tree = git.find_tree(tree).unwrap();
        git.commit(Some("HEAD"), &who, &who, "x", &tree, &[]).unwrap();
        let arguments = TextsArguments {
            repo: folder.path().to_owned(),
            author: None,
            head: None,
            commits: 1,
            hunks: 1,
            per_commit: 1,
            seed: 1,
        };
        let error = print(&arguments).unwrap_err().to_string();
        assert!(error.contains("`git clone` it"), "{error}");
    }
}
