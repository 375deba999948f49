use super::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

fn all(runs: &Runs, range: RangeInclusive<u64>) -> Vec<u64> {
    let mut found: Vec<u64> = runs.slices(range).flatten().copied().collect();
    found.sort_unstable();
    found
}

#[test]
fn runs_hold_what_a_list_holds() {
    for seed in 0..50 {
        let mut draws = StdRng::seed_from_u64(seed);
        let (mut runs, mut list) = (Runs::default(), vec![]);
        for _ in 0..200 {
            if draws.random_bool(0.1) {
                let bit: u32 = draws.random_range(0..6);
                runs.retain(|posting| (posting >> bit) & 1 == 0);
                list.retain(|posting| (posting >> bit) & 1 == 0);
            } else {
                let length = draws.random_range(0..40);
                let new: Vec<u64> = (0..length).map(|_| draws.random_range(0..1000)).collect();
                list.extend(&new);
                runs.add(new);
            }
            list.sort_unstable();
            let (a, b) = (draws.random_range(0..1000), draws.random_range(0..1000));
            let range = a.min(b)..=a.max(b);
            let expected: Vec<u64> =
                list.iter().copied().filter(|posting| range.contains(posting)).collect();
            assert_eq!(all(&runs, range.clone()), expected, "seed {seed}");
            assert_eq!(runs.count(range), expected.len());
            assert_eq!(runs.len(), list.len());
        }
    }
}

#[test]
fn there_are_few_runs_however_many_were_added() {
    let mut runs = Runs::default();
    for posting in 0..10_000 {
        runs.add(vec![posting]);
    }
    assert!(runs.runs.len() <= 16, "{}", runs.runs.len());
}

#[test]
fn a_clone_does_not_change() {
    let mut runs = Runs::default();
    runs.add(vec![1, 2, 3]);
    let before = runs.clone();
    runs.add(vec![4]);
    runs.retain(|posting| posting > 3);
    assert_eq!(all(&before, 0..=9), [1, 2, 3]);
    assert_eq!(all(&runs, 0..=9), [4]);
}

#[test]
fn hashes_of_short_texts_differ_in_their_upper_bits() {
    let upper: std::collections::HashSet<u64> =
        (0..1000).map(|n: u32| hash(n.to_string().as_bytes()) >> 32).collect();
    assert_eq!(upper.len(), 1000);
}
