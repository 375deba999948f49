//! What the authors of a repository wrote, hunk by hunk, as texts to learn from.

use crate::developer::history::{self, FileChange, History, Hunk};
use anyhow::Result;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use serde::Serialize;
use std::collections::HashSet;

/// A hunk is cut behind the line with which it has this many characters.
const WRITTEN_CHARS: usize = 500;
/// A hunk with fewer characters, blanks not counted, has nothing to learn from.
const WRITTEN_CHARS_MIN: usize = 8;
/// A commit that changes more files was made by a program: a rename or a formatter.
const COMMIT_FILES_MAX: usize = 20;

/// One hunk as its author began it: the hunks above it are written, and the lines that it replaces
/// are gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WrittenText {
    pub commit: String,
    /// Relative to the repository.
    pub path: String,
    pub language: &'static str,
    /// The file. The author begins on an empty line of it.
    pub text: String,
    /// The place where that line is, in characters of `text`.
    pub cursor: usize,
    pub written: String,
}

/// How many hunks are drawn.
#[derive(Debug, Clone, Copy)]
pub struct Amount {
    /// Of all commits together, at most.
    pub hunks: usize,
    /// Of each commit, at most. With few, no large commit speaks for its author.
    pub per_commit: usize,
}

/// Draws some hunks of as many of the newest `commits` as there are. They come in no order; each
/// has the place of its commit in the history next to it.
pub fn draw(
    history: &History,
    commits: usize,
    amount: Amount,
    random: &mut StdRng,
) -> Result<Vec<(usize, WrittenText)>> {
    let mut of_commits = vec![];
    let mut seen = HashSet::new();
    let older = history.len().saturating_sub(commits);
    for (place, changes) in history.commits_from(older).enumerate() {
        let changes = changes?;
        if changes.len() > COMMIT_FILES_MAX {
            continue;
        }
        let found = changes.iter().flat_map(|change| {
            change.hunks.iter().filter_map(|hunk| written(change, hunk)).collect::<Vec<_>>()
        });
        // A text that is written again and again counts once.
        let fresh: Vec<WrittenText> =
            found.filter(|hunk| seen.insert(hunk.written.clone())).collect();
        let some = fresh.choose_multiple(random, amount.per_commit).cloned();
        of_commits.push(some.map(|hunk| (place, hunk)).collect::<Vec<_>>());
    }
    of_commits.shuffle(random);
    Ok(of_commits.into_iter().flatten().take(amount.hunks).collect())
}

fn written(change: &FileChange, hunk: &Hunk) -> Option<WrittenText> {
    let (before, after) = (history::lines(&change.before), history::lines(&change.after));
    let above = after[..hunk.added.start].concat();
    let below = before[hunk.removed.end..].concat();
    let mut written = String::new();
    for line in &after[hunk.added.clone()] {
        written.push_str(&line.replace("\r\n", "\n"));
        if written.chars().count() >= WRITTEN_CHARS {
            break;
        }
    }
    let letters = written.chars().filter(|c| !c.is_whitespace()).count();
    (letters >= WRITTEN_CHARS_MIN && written.ends_with('\n')).then(|| WrittenText {
        commit: change.commit.clone(),
        path: change.path.clone(),
        language: change.language,
        text: format!("{above}\n{below}"),
        cursor: above.chars().count(),
        written,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::developer::history::Filter;
    use crate::developer::history::tests::Repo;
    use rand::SeedableRng;

    fn drawn(repo: &Repo, commits: usize, amount: Amount) -> Vec<(usize, WrittenText)> {
        let history = History::open(&repo.path("."), &Filter::default()).unwrap();
        let mut random = StdRng::seed_from_u64(1);
        let mut drawn = draw(&history, commits, amount, &mut random).unwrap();
        drawn.sort_by_key(|(place, _)| *place);
        drawn
    }

    #[test]
    fn a_hunk_is_a_text_at_the_place_where_its_author_began_it() {
        let repo = Repo::new();
        repo.write("a.rs", "fn first() {}\nfn last() {}\n");
        repo.commit("Ada", 1, None);
        repo.write("a.rs", "fn first() {}\nfn middle(é: u8) {}\nfn end() {}\n");
        repo.commit("Bob", 2, None);
        let drawn = drawn(&repo, 10, Amount { hunks: 10, per_commit: 2 });
        assert_eq!(drawn.len(), 2);
        let (place, second) = &drawn[1];
        assert_eq!((*place, second.path.as_str(), second.language), (1, "a.rs", "rust"));
        // The line that was replaced is gone.
        assert_eq!(second.text, "fn first() {}\n\n");
        assert_eq!(second.cursor, "fn first() {}\n".len());
        assert_eq!(second.written, "fn middle(é: u8) {}\nfn end() {}\n");
    }

    #[test]
    fn few_hunks_of_many_new_commits_are_drawn_and_no_text_twice() {
        let repo = Repo::new();
        for commit in 0..6 {
            for file in 0..3 {
                let name = format!("{commit}_{file}.rs");
                repo.write(&name, format!("fn number_{commit}_{file}() {{}}\n"));
            }
            repo.write(&format!("same_{commit}.rs"), "fn again_and_again() {}\n");
            repo.commit("Ada", commit, None);
        }
        let all = drawn(&repo, 4, Amount { hunks: 100, per_commit: 2 });
        assert_eq!(all.len(), 8, "two of each of the newest four");
        assert!(all.iter().all(|(_, text)| !text.path.starts_with("1_")), "that one is older");
        let again = all.iter().filter(|(_, text)| text.written.contains("again")).count();
        assert!(again <= 1);
        assert_eq!(drawn(&repo, 4, Amount { hunks: 3, per_commit: 2 }).len(), 3);
    }
}
