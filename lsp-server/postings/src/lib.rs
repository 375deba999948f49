//! Sorted runs of 64-bit postings: an inverted index in its most compact form.
//!
//! A posting is one number. Its upper bits say what was found (the hash of a term), and its lower
//! bits say where. Postings are kept in sorted runs, so that all places of a term lie side by side,
//! and a run takes eight bytes a posting and nothing more. New postings become a run of their own.
//! Short runs are merged, so there are always few of them.
//!
//! Runs never change once they are made, so a clone shares them. A thread can go on reading a clone
//! while another one adds postings to the original.

mod hash;
mod slots;

pub use hash::hash;
pub use slots::Slots;

use std::ops::RangeInclusive;
use std::sync::Arc;

/// Runs are not merged beyond this number of postings. So a merge needs at most 8 MB beside what is
/// there already, and takes some milliseconds.
pub const RUN_POSTINGS_MAX: usize = 1 << 20;

/// A younger run is merged with the one before it, unless that one is this many times longer.
const LONGER: usize = 2;

#[derive(Debug, Clone, Default)]
pub struct Runs {
    runs: Vec<Arc<[u64]>>,
}

impl Runs {
    /// Adds postings in any order.
    pub fn add(&mut self, mut postings: Vec<u64>) {
        postings.sort_unstable();
        self.add_sorted(postings);
    }

    fn add_sorted(&mut self, postings: Vec<u64>) {
        if postings.is_empty() {
            return;
        }
        let mut run = postings;
        while let Some(last) = self.runs.last() {
            let is_long = last.len() > LONGER * run.len();
            if is_long || last.len() + run.len() > RUN_POSTINGS_MAX {
                break;
            }
            run = merge(last, &run);
            self.runs.pop();
        }
        self.runs.push(run.into());
    }

    /// The postings within a range, as one sorted slice for each run that has some.
    pub fn slices(&self, range: RangeInclusive<u64>) -> impl Iterator<Item = &[u64]> {
        let (first, last) = range.into_inner();
        let slice = move |run: &'_ Arc<[u64]>| {
            let start = run.partition_point(|posting| *posting < first);
            let length = run[start..].partition_point(|posting| *posting <= last);
            (start, start + length)
        };
        let slices = self.runs.iter().map(move |run| {
            let (start, end) = slice(run);
            &run[start..end]
        });
        slices.filter(|slice| !slice.is_empty())
    }

    /// The number of postings within a range.
    pub fn count(&self, range: RangeInclusive<u64>) -> usize {
        self.slices(range).map(<[u64]>::len).sum()
    }

    /// Keeps only the postings for which `keep` says so.
    pub fn retain(&mut self, keep: impl Fn(u64) -> bool) {
        let mut runs = std::mem::take(&mut self.runs);
        runs.sort_by_key(|run| std::cmp::Reverse(run.len()));
        for run in runs {
            self.add_sorted(run.iter().copied().filter(|posting| keep(*posting)).collect());
        }
    }

    /// The number of all postings.
    pub fn len(&self) -> usize {
        self.runs.iter().map(|run| run.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The memory of the postings, in bytes.
    pub fn bytes(&self) -> usize {
        self.len() * size_of::<u64>()
    }
}

fn merge(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut merged = Vec::with_capacity(a.len() + b.len());
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        if a[i] <= b[j] {
            merged.push(a[i]);
            i += 1;
        } else {
            merged.push(b[j]);
            j += 1;
        }
    }
    merged.extend_from_slice(&a[i..]);
    merged.extend_from_slice(&b[j..]);
    merged
}

#[cfg(test)]
mod tests;
