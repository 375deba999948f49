//! Prompts that begin alike share rows: those of one document, above all.

use std::ops::Range;

/// The new rows that a prompt adds to the tree of its group.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TreeBranch {
    pub(super) prompt: usize,
    /// Their indices in the group.
    pub(super) rows: Range<usize>,
    /// The position in the prompt of the first one.
    pub(super) start: usize,
}

/// The prefix tree of one group of prompts.
#[derive(Debug, Default)]
pub(super) struct PrefixTree {
    /// The token of each row.
    pub(super) tokens: Vec<u32>,
    /// The position of each row in its prompts.
    pub(super) positions: Vec<usize>,
    pub(super) branches: Vec<TreeBranch>,
    /// For each prompt, the row of each of its tokens.
    pub(super) paths: Vec<Vec<u32>>,
}

impl PrefixTree {
    /// The number of rows that `prompt` would share with the tree, and the index of the
    /// prompt that it would share them with.
    pub(super) fn shared(&self, prompt: &[u32]) -> (usize, usize) {
        let common = |path: &[u32]| {
            path.iter()
                .zip(prompt)
                .take_while(|(row, token)| self.tokens[**row as usize] == **token)
                .count()
        };
        let mut best = (0, 0);
        for (index, path) in self.paths.iter().enumerate() {
            let shared = common(path);
            if shared > best.0 {
                best = (shared, index);
            }
        }
        best
    }

    /// Adds a prompt. Returns how many of its rows were there already.
    pub(super) fn insert(&mut self, prompt: &[u32]) -> usize {
        let (shared, with) = self.shared(prompt);
        let mut path = if shared > 0 { self.paths[with][..shared].to_vec() } else { Vec::new() };
        let first = self.tokens.len();
        let own = prompt.len() - shared;
        path.extend((first..first + own).map(|row| row as u32));
        self.tokens.extend_from_slice(&prompt[shared..]);
        self.positions.extend(shared..prompt.len());
        if own > 0 {
            self.branches.push(TreeBranch {
                prompt: self.paths.len(),
                rows: first..first + own,
                start: shared,
            });
        }
        self.paths.push(path);
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_of_one_document_share_their_rows() {
        let mut tree = PrefixTree::default();
        tree.insert(&[1, 2, 3, 4]);
        tree.insert(&[1, 2, 9]);
        tree.insert(&[1, 2, 3, 4, 5]);
        tree.insert(&[1, 2]);
        tree.insert(&[7]);
        assert_eq!(tree.tokens, [1, 2, 3, 4, 9, 5, 7]);
        assert_eq!(tree.positions, [0, 1, 2, 3, 2, 4, 0]);
        assert_eq!(
            tree.paths,
            [vec![0, 1, 2, 3], vec![0, 1, 4], vec![0, 1, 2, 3, 5], vec![0, 1], vec![6]]
        );
        assert_eq!(tree.branches.len(), 4, "the fourth prompt adds no row");
    }
}
