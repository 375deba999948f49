//! How far `hone learn --history` is: a bar for people, and lines of JSON for programs.

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::time::{Duration, Instant};

/// The share of the work that must be done before anything is said of the time left.
const KNOWN_FROM: f64 = 0.02;

/// The weight of the newest guess of the time left, against those before it.
const NEWEST_WEIGHT: f64 = 0.1;

/// The parts of the work, and the share of the time at which each ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Reading,
    Learning,
    Checking,
}

impl Part {
    fn span(self) -> (f64, f64) {
        match self {
            Part::Reading => (0.0, 0.02),
            Part::Learning => (0.02, 0.75),
            Part::Checking => (0.75, 1.0),
        }
    }

    fn doing(self) -> &'static str {
        match self {
            Part::Reading => "reading the history",
            Part::Learning => "learning",
            Part::Checking => "checking on newer changes",
        }
    }
}

pub struct Progress {
    /// `None` for programs.
    bar: Option<ProgressBar>,
    began: Instant,
    left: TimeLeft,
    said: Option<(Part, u64)>,
}

impl Progress {
    pub fn new(for_programs: bool) -> Progress {
        let bar = (!for_programs).then(|| {
            let bar = ProgressBar::new(100);
            let template = "{bar:32} {percent} %  {msg}";
            // The template is a constant. If it had a typo, the default bar would be shown.
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_secs(1));
            bar
        });
        Progress { bar, began: Instant::now(), left: TimeLeft::default(), said: None }
    }

    /// This share of a part is done.
    pub fn at(&mut self, part: Part, share: f64) {
        let (from, to) = part.span();
        let share = from + (to - from) * share.clamp(0.0, 1.0);
        let percent = (100.0 * share) as u64;
        // Reading is quick, and says nothing of how fast the rest is.
        let left = match part {
            Part::Reading => None,
            Part::Learning | Part::Checking => self.left.at(share, self.began.elapsed()),
        };
        if self.said == Some((part, percent)) {
            return;
        }
        self.said = Some((part, percent));
        match &self.bar {
            Some(bar) => {
                let left = left.map_or(String::new(), |left| format!(", {}", told(left)));
                bar.set_message(format!("{}{left}", part.doing()));
                bar.set_position(percent);
            }
            // Nobody may be reading any more.
            None => drop(emit!("{}", json!({ "percent": percent, "doing": part.doing() }))),
        }
    }
}

/// Guesses how long the rest takes, from the time that has passed since the first share. The parts
/// of the work differ in speed, so each guess counts a little.
#[derive(Debug, Default)]
struct TimeLeft {
    /// An interrupted run begins with what it had done.
    first: Option<(f64, Duration)>,
    guess: Option<(f64, Duration)>,
}

impl TimeLeft {
    /// Returns the time left once this share is done, if that can be told already.
    fn at(&mut self, share: f64, now: Duration) -> Option<Duration> {
        let (first, since) = *self.first.get_or_insert((share, now));
        let (done, took) = (share - first, (now - since).as_secs_f64());
        if done < KNOWN_FROM {
            return None;
        }
        let newest = took / done * (1.0 - share).max(0.0);
        let left = match self.guess {
            None => newest,
            Some((guess, at)) => {
                let expected = (guess - (now - at).as_secs_f64()).max(0.0);
                expected + NEWEST_WEIGHT * (newest - expected)
            }
        };
        self.guess = Some((left, now));
        Some(Duration::from_secs_f64(left))
    }
}

fn told(left: Duration) -> String {
    match left.as_secs().div_ceil(60) {
        0 | 1 => "about a minute left".to_owned(),
        minutes => format!("about {minutes} minutes left"),
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It told 11, 74, 34, 29, 39, 13 and 2 minutes in one run.
    #[test]
    fn the_time_left_does_not_jump_when_the_speed_does() {
        let mut left = TimeLeft::default();
        let (mut share, mut now, mut before) = (0.08, 0.0, None);
        while share < 1.0 {
            // A text takes two seconds or ten.
            now += if (share * 100.0) as u64 % 10 < 5 { 2.0 } else { 10.0 };
            share += 0.005;
            let told = left.at(share, Duration::from_secs_f64(now));
            if let (Some(told), Some(before)) = (told, before) {
                let jump = f64::abs(Duration::as_secs_f64(&told) - Duration::as_secs_f64(&before));
                assert!(jump < 60.0 + 0.1 * Duration::as_secs_f64(&before), "{before:?} {told:?}");
            }
            before = told;
        }
        assert!(before.unwrap() < Duration::from_secs(60), "{before:?}");
    }

    #[test]
    fn what_an_earlier_run_did_says_nothing_of_the_speed() {
        let mut left = TimeLeft::default();
        assert_eq!(left.at(0.5, Duration::from_secs(1)), None);
        let told = left.at(0.6, Duration::from_secs(61));
        assert_eq!(told.map(|told| told.as_secs_f64().round()), Some(240.0));
    }
}
