//! What an offered line is worth, and how two choices compare.

use crate::places::record::Record;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rehearsal::developer::is_right;

/// Resamples of a bootstrap.
const RESAMPLES: usize = 4_000;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcome {
    /// It is the whole rest of the line.
    pub is_exact: bool,
    /// Its characters, if the developer of a rehearsal would take it without mending it.
    pub right_chars: usize,
}

/// Compares an offer with what the author wrote. Marks that the editor has closed need not be in
/// it, if the line ends with them.
pub fn outcome(offer: &str, record: &Record) -> Outcome {
    let (offer, rest) = (offer.trim_end(), record.rest.trim_end());
    let closers = record.closers.as_str();
    let before_marks = rest.strip_suffix(closers).unwrap_or(rest);
    let is_exact = !offer.is_empty() && (offer == rest || offer == before_marks);
    let is_right = is_exact || is_right(offer, rest);
    Outcome { is_exact, right_chars: if is_right { offer.chars().count() } else { 0 } }
}

/// Exact lines and right characters of a choice, with their differences to the first one of each
/// pair. The intervals draw commits.
pub fn compared(pairs: &[(&str, Outcome, Outcome)]) -> String {
    let exact = |one: &Outcome| usize::from(one.is_exact);
    let sum = |of: &dyn Fn(&(&str, Outcome, Outcome)) -> usize| pairs.iter().map(of).sum::<usize>();
    let (lines, chars) = (sum(&|pair| exact(&pair.2)), sum(&|pair| pair.2.right_chars));
    let gained = sum(&|pair| usize::from(pair.2.is_exact && !pair.1.is_exact));
    let lost = sum(&|pair| usize::from(pair.1.is_exact && !pair.2.is_exact));
    let lines_by = |of: &dyn Fn(&Outcome) -> usize| {
        let (low, high) = interval(pairs, of);
        let (before, after) = (sum(&|pair| of(&pair.1)), sum(&|pair| of(&pair.2)));
        format!("{:+.1} % ({low:+.1} … {high:+.1})", gain(before, after))
    };
    format!(
        "{lines:>4} exact {:<26} +{gained} −{lost}  {chars:>6} right characters {}",
        lines_by(&exact),
        lines_by(&|one| one.right_chars)
    )
}

/// By how many percent there is more.
fn gain(before: usize, after: usize) -> f64 {
    100.0 * (after as f64 / before.max(1) as f64 - 1.0)
}

/// The 95 % interval of the gain: a paired bootstrap over commits.
fn interval(pairs: &[(&str, Outcome, Outcome)], of: &dyn Fn(&Outcome) -> usize) -> (f64, f64) {
    let mut commits: Vec<(&str, usize, usize)> = vec![];
    for (commit, before, after) in pairs {
        match commits.iter_mut().find(|known| known.0 == *commit) {
            Some(known) => {
                known.1 += of(before);
                known.2 += of(after);
            }
            None => commits.push((commit, of(before), of(after))),
        }
    }
    if commits.is_empty() {
        return (0.0, 0.0);
    }
    let mut random = StdRng::seed_from_u64(1);
    let mut gains: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let drawn = (0..commits.len()).map(|_| commits[random.random_range(0..commits.len())]);
            let (before, after) = drawn.fold((0, 0), |sum, one| (sum.0 + one.1, sum.1 + one.2));
            gain(before, after)
        })
        .collect();
    gains.sort_by(f64::total_cmp);
    (gains[RESAMPLES * 25 / 1000], gains[RESAMPLES * 975 / 1000])
}
