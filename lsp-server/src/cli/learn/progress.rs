//! How far `hone learn --history` is: a bar for people, and lines of JSON for programs.

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::time::Duration;

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
    said: Option<(Part, u64)>,
}

impl Progress {
    pub fn new(for_programs: bool) -> Progress {
        let bar = (!for_programs).then(|| {
            let bar = ProgressBar::new(100);
            let template = "{bar:32} {percent} %  {msg}  {elapsed} passed, {eta} left";
            // The template is a constant. If it had a typo, the default bar would be shown.
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_secs(1));
            bar
        });
        Progress { bar, said: None }
    }

    /// This share of a part is done.
    pub fn at(&mut self, part: Part, share: f64) {
        let (from, to) = part.span();
        let percent = (100.0 * (from + (to - from) * share.clamp(0.0, 1.0))) as u64;
        if self.said == Some((part, percent)) {
            return;
        }
        self.said = Some((part, percent));
        match &self.bar {
            Some(bar) => {
                bar.set_message(part.doing());
                bar.set_position(percent);
            }
            // Nobody may be reading any more.
            None => drop(emit!("{}", json!({ "percent": percent, "doing": part.doing() }))),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
