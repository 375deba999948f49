//! The cells of a notebook, as editors change them: in one list and, by number or by name, in
//! parts. Every reader of an editor's messages applies them here, so that all of them hold the same
//! cells.

use std::collections::HashMap;
use std::hash::Hash;

/// Replaces `removed` cells from `start` on by others, and returns them. Numbers beyond the end
/// mean the end.
pub fn splice<T>(cells: &mut Vec<T>, start: usize, removed: usize, added: Vec<T>) -> Vec<T> {
    let start = start.min(cells.len());
    let end = start.saturating_add(removed).min(cells.len());
    cells.splice(start..end, added).collect()
}

/// Replaces the cells that have the names of these.
pub fn replace<T, N: Eq + Hash>(cells: &mut [T], changed: Vec<T>, name: impl Fn(&T) -> N) {
    let mut changed: HashMap<N, T> = changed.into_iter().map(|cell| (name(&cell), cell)).collect();
    for cell in cells {
        if let Some(new) = changed.remove(&name(cell)) {
            *cell = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beyond_the_end_mean_the_end() {
        let mut cells = vec![1, 2, 3];
        assert_eq!(splice(&mut cells, 1, 1, vec![7, 8]), [2]);
        assert!(splice(&mut cells, 90, 9, vec![4]).is_empty());
        assert_eq!(splice(&mut cells, 3, usize::MAX, vec![]), [3, 4]);
        assert_eq!(cells, [1, 7, 8]);
    }

    #[test]
    fn cells_are_replaced_by_name() {
        let mut cells = vec![("a", 1), ("b", 1)];
        replace(&mut cells, vec![("b", 2), ("c", 2)], |cell| cell.0);
        assert_eq!(cells, [("a", 1), ("b", 2)]);
    }
}
