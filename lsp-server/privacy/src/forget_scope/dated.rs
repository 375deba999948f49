//! What was recorded before or since a time. Dates alone do not say it, because a clock may be set:
//! the order in which things were recorded is always right.

/// The part of a time line that is looked for, in milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy)]
pub enum Range {
    Since(u64),
    Before(u64),
}

/// Looks at dated items in the order in which they were recorded, and keeps those in a range.
///
/// - Since: what is dated so, and what was recorded while the clock was behind an earlier date,
///   unless something with a right date from before that time follows. So everything is within that
///   was recorded after the first item with a right date.
/// - Before: what is dated so, and what has a date in the future and was recorded before something
///   that is dated so.
pub struct Dated<T> {
    range: Range,
    /// The date of today. No later date is right.
    now_ms: u64,
    /// The latest right date so far.
    newest_ms: u64,
    /// Items with a wrong date, until a right one follows.
    doubted: Vec<T>,
    within: Vec<T>,
}

impl<T> Dated<T> {
    pub fn new(range: Range, now_ms: u64) -> Dated<T> {
        Dated { range, now_ms, newest_ms: 0, doubted: vec![], within: vec![] }
    }

    /// Looks at the next date. Its item is only looked for if it is given.
    pub fn next(&mut self, at_ms: u64, item: Option<T>) {
        let is_future = at_ms > self.now_ms;
        let is_right = match self.range {
            Range::Since(_) => !is_future && at_ms >= self.newest_ms,
            Range::Before(_) => !is_future,
        };
        if is_right {
            self.newest_ms = at_ms;
            let doubted = std::mem::take(&mut self.doubted);
            if self.holds(at_ms) {
                self.within.extend(doubted);
            }
        }
        let Some(item) = item else { return };
        if self.holds(at_ms) {
            self.within.push(item);
        } else if !is_right {
            self.doubted.push(item);
        }
    }

    /// Returns the items within the range.
    pub fn within(mut self) -> Vec<T> {
        if matches!(self.range, Range::Since(_)) {
            self.within.append(&mut self.doubted);
        }
        self.within
    }

    fn holds(&self, at_ms: u64) -> bool {
        match self.range {
            Range::Since(since_ms) => at_ms >= since_ms,
            Range::Before(before_ms) => at_ms < before_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    fn within(range: Range, now_ms: u64, dates: &[u64]) -> Vec<usize> {
        let mut dated = Dated::new(range, now_ms);
        dates.iter().enumerate().for_each(|(at, date)| dated.next(*date, Some(at)));
        let mut within = dated.within();
        within.sort_unstable();
        within
    }

    #[test]
    fn since_follows_the_order_where_the_clock_was_behind() {
        let since = |dates: &[u64]| within(Range::Since(100), 1_000, dates);
        assert_eq!(since(&[90, 100, 110]), [1, 2]);
        assert_eq!(since(&[90, 110, 5, 120]), [1, 2, 3], "set back for a while");
        assert_eq!(since(&[90, 110, 5]), [1, 2], "and not put right yet");
        assert_eq!(since(&[90, 5, 6]), [1, 2], "they may be of any time since 90");
        assert_eq!(since(&[90, 5, 95, 110]), [3], "they are older than the one of 95");
        assert_eq!(since(&[9_000, 90, 95]), [0], "a date in the future says nothing of the others");
    }

    #[test]
    fn before_takes_wrong_dates_with_what_follows_them() {
        let before = |dates: &[u64]| within(Range::Before(100), 1_000, dates);
        assert_eq!(before(&[90, 100, 50]), [0, 2], "a clock behind makes nothing else look old");
        assert_eq!(before(&[9_000, 90, 200]), [0, 1], "it was recorded before the one of 90");
        assert_eq!(before(&[90, 9_000, 200]), [0]);
        assert_eq!(before(&[9_000]), [0; 0]);
    }

    /// A clock that leaps in both directions.
    #[test]
    fn whatever_a_clock_shows_nothing_that_was_recorded_since_is_left() {
        for seed in 0..2_000 {
            let mut rng = StdRng::seed_from_u64(seed);
            let (now_ms, since_ms) = (10_000, rng.random_range(1_000..9_000));
            let leaps = rng.random_bool(0.7);
            let (mut real, mut off) = (1_000_i64, 0_i64);
            let mut dates = vec![];
            while real < 10_000 {
                dates.push((real as u64, u64::try_from(real + off).unwrap_or(0)));
                real += rng.random_range(1..400);
                if leaps && rng.random_bool(0.1) {
                    let leap = rng.random_range(-12_000..12_000);
                    off = if rng.random_bool(0.4) { 0 } else { leap };
                }
            }
            let shown: Vec<u64> = dates.iter().map(|(_, shown)| *shown).collect();
            let within = within(Range::Since(since_ms), now_ms, &shown);
            let first = shown.iter().position(|at| (since_ms..=now_ms).contains(at));
            for (at, (real, shown)) in dates.iter().enumerate() {
                let is_within = within.contains(&at);
                assert!(is_within || *shown < since_ms, "seed {seed}: {at} is dated so");
                assert!(is_within || first.is_none_or(|first| at < first), "seed {seed}: {at}");
                assert!(leaps || is_within == (*real >= since_ms), "seed {seed}: {at}");
            }
        }
    }
}
