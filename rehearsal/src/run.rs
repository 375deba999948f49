//! The rehearsal itself: one stream of real lines, typed into both arms side
//! by side.

use crate::arm::{Arm, Kind};
use crate::history::{FileChange, History, lines};
use crate::interrupt;
use crate::ledger::LabelCounts;
use crate::plan::{self, Temper};
use crate::record::{ARMS, Asked, LineRecord, PointRecord, Swap, Update};
use crate::status::Status;
use crate::typist::{Answer, Fate, Typist};
use anyhow::{Context, Result};
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::Serialize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(Debug, Clone)]
pub struct Settings {
    pub hone: PathBuf,
    pub model: PathBuf,
    /// What is compared with the frozen base.
    pub against: Kind,
    /// Places in the stream at which a completion is asked for.
    pub limit: usize,
    pub seed: u64,
    /// End the stream after this long, wherever it is by then.
    pub time_limit: Option<Duration>,
    /// Leave the daemons' homes behind.
    pub keep_homes: bool,
}

/// What an onlooker may want to know, as it happens.
#[derive(Debug)]
pub enum Event<'a> {
    File {
        commit: &'a str,
        path: &'a str,
    },
    Asked(AskedEvent<'a>),
    /// An update is on its way; told again and again until it lands.
    Training {
        arm: Kind,
        elapsed: Duration,
    },
    Updated {
        arm: Kind,
        update: &'a Update,
        labels: u64,
    },
    Swapped {
        arm: Kind,
        swap: &'a Swap,
    },
    LearnerFailed {
        arm: Kind,
        error: &'a str,
    },
    /// A point is done in every arm.
    PointDone {
        points: usize,
    },
}

#[derive(Debug)]
pub struct AskedEvent<'a> {
    pub arm: Kind,
    pub path: &'a str,
    /// Counts from 1.
    pub line: usize,
    /// The line up to the cursor.
    pub typed: &'a str,
    /// What somebody really wrote after it.
    pub rest: &'a str,
    pub offer: Option<&'a str>,
    pub fate: Option<Fate>,
    pub latency_ms: f64,
}

/// Why the stream ended where it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// All chosen commits are typed.
    History,
    /// The limit of places to ask at.
    Limit,
    /// The time limit.
    Time,
}

/// Everything a report is made of.
#[derive(Debug)]
pub struct Outcome {
    pub lines: Vec<LineRecord>,
    pub arms: Vec<ArmOutcome>,
    pub files: usize,
    pub ended_by: End,
    pub elapsed: Duration,
}

#[derive(Debug)]
pub struct ArmOutcome {
    pub kind: Kind,
    pub updates: Vec<Update>,
    pub swaps: Vec<Swap>,
    pub learner_errors: Vec<String>,
    /// What the typist did.
    pub typist: LabelCounts,
    /// What the daemon made of it, at the end.
    pub status: Status,
    /// The daemon's home, where it was to be kept.
    pub home: Option<PathBuf>,
}

/// An error and the arm it happened in, if it was one.
struct Failure {
    arm: Option<usize>,
    error: anyhow::Error,
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure { arm: None, error: error.into() }
    }
}

trait InArm<T> {
    fn in_arm(self, arm: usize) -> Result<T, Failure>;
}

impl<T, E: Into<anyhow::Error>> InArm<T> for Result<T, E> {
    fn in_arm(self, arm: usize) -> Result<T, Failure> {
        self.map_err(|error| Failure { arm: Some(arm), error: error.into() })
    }
}

/// Starts both arms and types the history into them.
pub fn rehearse(
    history: &History,
    settings: &Settings,
    mut observe: impl FnMut(Event),
) -> Result<Outcome> {
    let mut arms = [Kind::Frozen, settings.against]
        .into_iter()
        .map(|kind| Arm::start(kind, &settings.hone, &settings.model))
        .collect::<Result<Vec<_>>>()?;
    match stream(&arms, history, settings, &mut observe) {
        Ok(mut outcome) => {
            if settings.keep_homes {
                for (arm, outcome) in arms.iter_mut().zip(&mut outcome.arms) {
                    outcome.home = arm.keep_home();
                }
            }
            Ok(outcome)
        }
        Err(Failure { arm: Some(arm), error }) => Err(arms[arm].explain(error)),
        Err(Failure { arm: None, error }) => Err(error),
    }
}

fn stream(
    arms: &[Arm],
    history: &History,
    settings: &Settings,
    observe: &mut dyn FnMut(Event),
) -> Result<Outcome, Failure> {
    let begun = Instant::now();
    let mut stage = Stage {
        lanes: arms.iter().map(Lane::new).collect(),
        rng: StdRng::seed_from_u64(settings.seed),
        limit: settings.limit,
        deadline: settings.time_limit.map(|limit| begun + limit),
        points: 0,
        lines: Vec::new(),
        observe,
    };
    let mut files = 0;
    for change in history.changes() {
        let change = change?;
        files += 1;
        stage.type_file(&change)?;
        if stage.over().is_some() {
            break;
        }
    }
    let ended_by = stage.over().unwrap_or(End::History);
    let arms = (0..stage.lanes.len())
        .map(|arm| {
            let status = stage.settle(arm)?;
            let lane = &mut stage.lanes[arm];
            Ok(ArmOutcome {
                kind: lane.arm.kind,
                updates: std::mem::take(&mut lane.updates),
                swaps: std::mem::take(&mut lane.swaps),
                learner_errors: std::mem::take(&mut lane.learner_errors),
                typist: lane.typist.ledger().counts(),
                status,
                home: None,
            })
        })
        .collect::<Result<_, Failure>>()?;
    Ok(Outcome { lines: stage.lines, arms, files, ended_by, elapsed: begun.elapsed() })
}

/// One arm at work.
struct Lane<'a> {
    arm: &'a Arm,
    typist: Typist<'a>,
    seen_updates: u64,
    seen_swaps: u64,
    updates: Vec<Update>,
    swaps: Vec<Swap>,
    learner_errors: Vec<String>,
}

impl<'a> Lane<'a> {
    fn new(arm: &'a Arm) -> Lane<'a> {
        Lane {
            arm,
            typist: Typist::new(arm.client()),
            seen_updates: 0,
            seen_swaps: 0,
            updates: Vec::new(),
            swaps: Vec::new(),
            learner_errors: Vec::new(),
        }
    }
}

struct Stage<'a, 'o> {
    lanes: Vec<Lane<'a>>,
    rng: StdRng,
    limit: usize,
    deadline: Option<Instant>,
    /// Points done so far.
    points: usize,
    lines: Vec<LineRecord>,
    observe: &'o mut dyn FnMut(Event),
}

/// Where in the stream a request is made.
struct Place<'t> {
    path: &'t str,
    line: usize,
    text: &'t str,
    point: usize,
    temper: Temper,
}

impl Stage<'_, '_> {
    fn over(&self) -> Option<End> {
        if self.points >= self.limit {
            Some(End::Limit)
        } else if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            Some(End::Time)
        } else {
            None
        }
    }

    fn type_file(&mut self, change: &FileChange) -> Result<(), Failure> {
        (self.observe)(Event::File { commit: &change.commit, path: &change.path });
        self.each(|typist| typist.open(&change.path, change.language, &change.before))?;
        let after = lines(&change.after);
        // Hunks above are done, so lines are counted as in the new text.
        for hunk in &change.hunks {
            self.each(|typist| typist.delete_lines(hunk.added.start, hunk.removed.len()))?;
            for line in hunk.added.clone() {
                interrupt::check()?;
                self.type_line(&change.path, line, after[line])?;
                if self.over().is_some() {
                    return self.each(|typist| typist.close(None));
                }
            }
        }
        self.each(|typist| typist.close(Some(&change.after)))
    }

    fn type_line(&mut self, path: &str, line: usize, full: &str) -> Result<(), Failure> {
        let text = full.strip_suffix('\n').unwrap_or(full);
        let text = text.strip_suffix('\r').unwrap_or(text);
        let ending = &full[text.len()..];
        let plan = plan::line(text, &mut self.rng);
        self.each(|typist| typist.begin_line(line, text, plan.indent, ending))?;

        let mut record =
            LineRecord { chars: text[plan.indent..].chars().count(), ..LineRecord::default() };
        for (point, temper) in plan.points {
            if self.over().is_some() {
                break;
            }
            let place = Place { path, line, text, point, temper };
            if let Some(point) = self.ask(&place)? {
                for (total, asked) in record.accepted_chars.iter_mut().zip(&point.asked) {
                    if let Some(Asked { fate: Some(Fate::Accepted { chars }), .. }) = asked {
                        *total += chars;
                    }
                }
                record.points.push(point);
                self.points += 1;
                (self.observe)(Event::PointDone { points: self.points });
            }
        }
        self.each(|typist| typist.finish_line())?;
        if record.chars > 0 {
            self.lines.push(record);
        }
        Ok(())
    }

    /// Asks in every arm that has not been carried past this place. The
    /// requests follow one another at once, in alternating order, so that the
    /// machine's mood is the same for both; labels come after the last answer.
    fn ask(&mut self, place: &Place) -> Result<Option<PointRecord>, Failure> {
        self.each(|typist| typist.type_to(place.point))?;
        let mut versions = [0; ARMS];
        for (arm, version) in versions.iter_mut().enumerate() {
            *version = self.settle(arm)?.version_served();
        }
        let mut order: Vec<usize> = (0..self.lanes.len())
            .filter(|arm| self.lanes[*arm].typist.is_at(place.point))
            .collect();
        if self.points % 2 == 1 {
            order.reverse();
        }
        let mut answers: [Option<Answer>; ARMS] = std::array::from_fn(|_| None);
        for arm in &order {
            answers[*arm] = Some(self.lanes[*arm].typist.ask().in_arm(*arm)?);
        }
        let mut record = PointRecord::default();
        for (arm, answer) in answers.iter().enumerate() {
            let Some(answer) = answer else { continue };
            let lane = &mut self.lanes[arm];
            let fate = match &answer.offer {
                Some(offer) => Some(lane.typist.judge(offer, place.temper).in_arm(arm)?),
                None => None,
            };
            record.asked[arm] =
                Some(Asked { latency_ms: answer.latency_ms, version: versions[arm], fate });
            (self.observe)(Event::Asked(AskedEvent {
                arm: lane.arm.kind,
                path: place.path,
                line: place.line + 1,
                typed: &place.text[..place.point],
                rest: &place.text[place.point..],
                offer: answer.offer.as_ref().map(|offer| offer.text.as_str()),
                fate,
                latency_ms: answer.latency_ms,
            }));
        }
        Ok((!order.is_empty()).then_some(record))
    }

    /// Waits for an update that is on its way, and notes what has landed.
    fn settle(&mut self, arm: usize) -> Result<Status, Failure> {
        let Stage { lanes, observe, points, .. } = self;
        let lane = &mut lanes[arm];
        let kind = lane.arm.kind;
        let status = lane
            .arm
            .settled(|_, elapsed| observe(Event::Training { arm: kind, elapsed }))
            .in_arm(arm)?;
        if status.learner.updates > lane.seen_updates {
            lane.seen_updates = status.learner.updates;
            let update = Update {
                at_point: *points,
                number: status.learner.updates,
                ms: status.learner.last_update_ms,
            };
            let labels = status.episodes.total - status.episodes.unlabelled;
            observe(Event::Updated { arm: kind, update: &update, labels });
            lane.updates.push(update);
        }
        if status.adapter.swaps > lane.seen_swaps {
            lane.seen_swaps = status.adapter.swaps;
            let swap = Swap {
                at_point: *points,
                version: status.version_served(),
                ms: status.adapter.last_swap_ms,
            };
            observe(Event::Swapped { arm: kind, swap: &swap });
            lane.swaps.push(swap);
        }
        if let Some(error) = &status.learner.last_error
            && lane.learner_errors.last() != Some(error)
        {
            observe(Event::LearnerFailed { arm: kind, error });
            lane.learner_errors.push(error.clone());
        }
        Ok(status)
    }

    fn each<E: Into<anyhow::Error>>(
        &mut self,
        mut step: impl FnMut(&mut Typist) -> Result<(), E>,
    ) -> Result<(), Failure> {
        for (arm, lane) in self.lanes.iter_mut().enumerate() {
            step(&mut lane.typist).in_arm(arm)?;
        }
        Ok(())
    }
}

/// The default model's file, as the `hone` in use knows it.
pub fn default_model(hone: &std::path::Path) -> Result<PathBuf> {
    let output =
        std::process::Command::new(hone).args(["model", "path"]).output().with_context(|| {
            format!("cannot start {} (build it, or pass --hone PATH)", hone.display())
        })?;
    let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if !output.status.success() || path.is_empty() {
        let said = String::from_utf8_lossy(&output.stderr);
        anyhow::bail!(
            "no model: run `hone model pull`, or pass --model FILE ({})",
            said.trim().lines().next_back().unwrap_or("`hone model path` printed nothing")
        );
    }
    Ok(PathBuf::from(path))
}
