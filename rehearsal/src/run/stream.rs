//! One stream of real lines, typed into one or more arms side by side.

use crate::developer::disturbance::Disturbed;
use crate::developer::history::{FileChange, History, lines};
use crate::developer::person::{Judging, Person, PersonDraws};
use crate::developer::plan;
use crate::developer::{Developer, Manner, PlaceDraws};
use crate::run::arm::Arm;
use crate::run::interrupt;
use crate::run::judge::JudgedOffer;
use crate::run::record::{ArmRecord, LineRecord, RequestRecord, Swap, Update};
use crate::run::resume::SavedRun;
use crate::run::status::DaemonStatus;
use crate::run::tree::WorkingTree;
use crate::run::typist::{CompletionAnswer, Typist};
use crate::run::{ArmResult, RequestEvent, RunEvent, RunSettings, StreamEnd};
use anyhow::Result;
use std::collections::HashSet;
use std::path::Path;
use std::time::Instant;

/// An error, and the arm in which it happened if it happened in one.
pub struct Failure {
    pub arm: Option<usize>,
    pub error: anyhow::Error,
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

/// What a stream is typed into, and from where.
pub struct Stage<'a> {
    pub arms: &'a [Arm],
    pub history: &'a History,
    /// The folder in which the developer works. It is as it was before the current commit.
    pub tree: Option<&'a mut WorkingTree>,
    pub settings: &'a RunSettings,
    /// When the run began.
    pub begun: Instant,
}

/// Types until the stream ends or until it is time to save. At the end of the stream it returns why
/// the stream ended, and the results.
pub fn run_stretch(
    stage: Stage,
    progress: &mut SavedRun,
    observe: &mut dyn FnMut(RunEvent),
) -> Result<Option<(StreamEnd, Vec<ArmResult>)>, Failure> {
    let Stage { arms, history, tree, settings, begun } = stage;
    let records = std::mem::take(&mut progress.arms);
    let folder = tree.as_ref().map(|tree| tree.root().to_owned());
    let lane =
        |(index, (arm, record))| Lane::new(arm, folder.as_deref(), settings, record).in_arm(index);
    let mut stream = Stream {
        lanes: arms.iter().zip(records).enumerate().map(lane).collect::<Result<_, _>>()?,
        tree,
        settings,
        deadline: settings.time_limit.map(|limit| begun + limit),
        file: progress.files,
        left_out: progress.left_out,
        commit: std::mem::take(&mut progress.commit),
        places: progress.places,
        lines: progress.lines,
        observe,
    };
    let save_at = settings.work.as_ref().map(|_| progress.places + settings.save_places);
    stream.type_history(history, save_at)?;
    let ended_by = match stream.over() {
        None if save_at.is_some_and(|at| stream.places >= at) => None,
        end => Some(end.unwrap_or(StreamEnd::History)),
    };
    let results = stream.conclude(ended_by.is_some())?;
    progress.files = stream.file;
    progress.left_out = stream.left_out;
    progress.commit = std::mem::take(&mut stream.commit);
    progress.places = stream.places;
    progress.lines = stream.lines;
    progress.arms = stream.lanes.into_iter().map(|lane| lane.record).collect();
    Ok(ended_by.map(|end| (end, results)))
}

/// One arm with its typist and what happened in it.
struct Lane<'a> {
    arm: &'a Arm,
    typist: Typist<'a>,
    record: ArmRecord,
    /// The offers that had a verdict before this stretch.
    judged_before: HashSet<String>,
}

impl<'a> Lane<'a> {
    fn new(
        arm: &'a Arm,
        folder: Option<&Path>,
        settings: &RunSettings,
        record: ArmRecord,
    ) -> Result<Lane<'a>> {
        let judged_before = match record.lines.is_empty() {
            true => HashSet::new(),
            false => arm.verdicts()?.into_keys().collect(),
        };
        let mut typist = Typist::new(arm.client(), record.typist).with_editor(settings.editor);
        if let Some(folder) = folder {
            typist = typist.in_folder(folder);
        }
        Ok(Lane { arm, typist, record, judged_before })
    }

    /// Compares the daemon's verdicts with what the developer did in this stretch.
    fn check_labels(&mut self, status: &DaemonStatus) -> Result<()> {
        let mut verdicts = self.arm.verdicts()?;
        verdicts.retain(|offer, _| !self.judged_before.contains(offer));
        self.record.labels += self.typist.ledger().check(&verdicts, status.withheld);
        Ok(())
    }
}

/// The stream as it is typed into all arms.
struct Stream<'a, 'o> {
    lanes: Vec<Lane<'a>>,
    tree: Option<&'a mut WorkingTree>,
    settings: &'a RunSettings,
    deadline: Option<Instant>,
    /// Index of the current file change.
    file: usize,
    /// File changes that were left out because their commit had enough places.
    left_out: usize,
    /// The current commit and its places so far.
    commit: (String, usize),
    /// Places and lines done so far.
    places: usize,
    lines: usize,
    observe: &'o mut dyn FnMut(RunEvent),
}

/// The place where in the stream a request is made.
struct RequestPlace<'t> {
    path: &'t str,
    line: usize,
    text: &'t str,
    at: usize,
    draws: PlaceDraws,
}

impl Stream<'_, '_> {
    /// Types file after file until the stream is over or has come to the place `save_at`.
    fn type_history(&mut self, history: &History, save_at: Option<usize>) -> Result<(), Failure> {
        let done = self.file;
        for (index, change) in history.changes().enumerate() {
            let change = change?;
            if index < done {
                self.open_again(&change)?;
                continue;
            }
            self.begin_commit(history, &change.commit)?;
            let places_before = self.places;
            if self.commit_is_full() {
                self.left_out += 1;
            } else {
                self.type_file(&change)?;
            }
            self.file += 1;
            self.visit(places_before)?;
            if self.over().is_some() || save_at.is_some_and(|at| self.places >= at) {
                break;
            }
        }
        Ok(())
    }

    /// Runs the program that was asked for, if the file has come past one of its places.
    fn visit(&mut self, places_before: usize) -> Result<(), Failure> {
        let Some(visit) = &self.settings.visit else { return Ok(()) };
        if self.places / visit.places > places_before / visit.places {
            for arm in 0..self.lanes.len() {
                self.wait_for_update(arm)?;
                self.lanes[arm].arm.visit(&visit.program).in_arm(arm)?;
            }
        }
        Ok(())
    }

    /// Notes what the daemons count by now. Returns the results if this is the end of the stream.
    fn conclude(&mut self, is_end: bool) -> Result<Vec<ArmResult>, Failure> {
        let mut results = Vec::new();
        for arm in 0..self.lanes.len() {
            let status = self.wait_for_update(arm)?;
            let lane = &mut self.lanes[arm];
            lane.record.typist = lane.typist.ledger().counts();
            lane.check_labels(&status).in_arm(arm)?;
            lane.record.end_stretch(status.withheld);
            if is_end {
                let learned = lane.arm.learned().in_arm(arm)?;
                results.push(ArmResult {
                    name: lane.arm.name.clone(),
                    record: lane.record.clone(),
                    status,
                    learned,
                    home: None,
                });
            }
        }
        Ok(results)
    }

    fn over(&self) -> Option<StreamEnd> {
        if self.places >= self.settings.limit {
            Some(StreamEnd::Limit)
        } else if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            Some(StreamEnd::Time)
        } else {
            None
        }
    }

    /// Returns true if the current commit has had as many places as one commit may have.
    fn commit_is_full(&self) -> bool {
        self.settings.per_commit.is_some_and(|most| self.commit.1 >= most)
    }

    /// Returns what disturbs the developer at this place. Its random numbers are no line's.
    fn disturbed(&self) -> Disturbed {
        let mut rng = plan::draws(self.settings.seed, !(self.places as u64));
        Disturbed::draw(&self.settings.disturbances, &mut rng)
    }

    /// Returns how the developer meets an offer at this place.
    fn manner(&self) -> Manner {
        let RunSettings { seed, noise, developer, .. } = *self.settings;
        match developer {
            Developer::Exact => Manner::Exact { noise },
            Developer::Person => Manner::Person(Judging {
                person: Person::of(seed, &self.commit.0),
                draws: PersonDraws::at(seed, self.places as u64),
            }),
        }
    }

    /// The developer is done with one commit and begins another. They close its files.
    fn begin_commit(&mut self, history: &History, commit: &str) -> Result<(), Failure> {
        if self.commit.0 == commit {
            return Ok(());
        }
        self.commit = (commit.to_owned(), 0);
        self.each(|typist| typist.close_tabs())?;
        if let Some(tree) = &mut self.tree {
            tree.move_before(history, commit)?;
        }
        Ok(())
    }

    /// Opens a file again that was typed before the run was saved, in the current commit.
    fn open_again(&mut self, change: &FileChange) -> Result<(), Failure> {
        let Some(tree) = self.tree.as_mut().filter(|_| change.commit == self.commit.0) else {
            return Ok(());
        };
        tree.begin_file(change)?;
        tree.save(&change.path, &change.after)?;
        self.each(|typist| {
            typist.open(&change.path, change.language, &change.after)?;
            typist.leave(None)
        })
    }

    fn type_file(&mut self, change: &FileChange) -> Result<(), Failure> {
        (self.observe)(RunEvent::File { commit: &change.commit, path: &change.path });
        if let Some(tree) = &mut self.tree {
            tree.begin_file(change)?;
        }
        self.each(|typist| typist.open(&change.path, change.language, &change.before))?;
        let after = lines(&change.after);
        // The hunks above this one are done, so lines are counted as in the new text.
        for hunk in &change.hunks {
            self.each(|typist| typist.delete_lines(hunk.added.start, hunk.removed.len()))?;
            for line in hunk.added.clone() {
                interrupt::check()?;
                self.type_line(&change.path, line, after[line])?;
                if self.over().is_some() || self.commit_is_full() {
                    return self.each(|typist| typist.close(None));
                }
            }
            self.each(|typist| typist.finish_hunk())?;
            self.save(&change.path)?;
        }
        match self.tree {
            Some(_) => self.each(|typist| typist.leave(Some(&change.after))),
            None => self.each(|typist| typist.close(Some(&change.after))),
        }
    }

    /// Saves the file, whose text is the same in all arms.
    fn save(&mut self, path: &str) -> Result<(), Failure> {
        let (Some(tree), Some(lane)) = (&mut self.tree, self.lanes.first()) else { return Ok(()) };
        tree.save(path, lane.typist.text())?;
        self.each(|typist| typist.save())
    }

    fn type_line(&mut self, path: &str, line: usize, full: &str) -> Result<(), Failure> {
        let text = full.strip_suffix('\n').unwrap_or(full);
        let text = text.strip_suffix('\r').unwrap_or(text);
        let ending = &full[text.len()..];
        let plan = plan::of_line(
            text,
            self.settings.editor,
            &mut plan::draws(self.settings.seed, self.lines as u64),
        );
        self.lines += 1;
        self.each(|typist| typist.begin_line(line, text, plan.indent, ending))?;
        let chars = text[plan.indent..].chars().count();
        if chars > 0 {
            let (file, place) = (self.file, self.places);
            let record = LineRecord { file, place, chars, requests: Vec::new() };
            self.lanes.iter_mut().for_each(|lane| lane.record.lines.push(record.clone()));
        }
        for (at, draws) in plan.places {
            if self.over().is_some() || self.commit_is_full() {
                break;
            }
            self.ask(&RequestPlace { path, line, text, at, draws })?;
            self.places += 1;
            self.commit.1 += 1;
            (self.observe)(RunEvent::PlaceDone { places: self.places });
        }
        self.each(|typist| typist.finish_line())
    }

    /// Asks every arm for a completion, except where an accepted offer went past this place. The
    /// requests follow one another at once and in alternating order, so that the machine is equally
    /// busy for all of them. The developer responds after the last answer.
    fn ask(&mut self, place: &RequestPlace) -> Result<(), Failure> {
        self.each(|typist| typist.type_to(place.at))?;
        let mut order: Vec<usize> =
            (0..self.lanes.len()).filter(|arm| self.lanes[*arm].typist.is_at(place.at)).collect();
        let mut versions = vec![0; self.lanes.len()];
        for arm in &order {
            versions[*arm] = self.wait_for_update(*arm)?.version_served();
        }
        if self.places % 2 == 1 {
            order.reverse();
        }
        let mut answers: Vec<Option<CompletionAnswer>> = vec![None; self.lanes.len()];
        for arm in order {
            answers[arm] = Some(self.lanes[arm].typist.ask().in_arm(arm)?);
        }
        for (arm, answer) in answers.into_iter().enumerate() {
            if let Some(answer) = answer {
                self.respond(arm, place, answer, versions[arm])?;
                self.wait_if_it_learns(arm)?;
            }
        }
        Ok(())
    }

    /// Does in one arm what the developer decides about an answer, and records it.
    fn respond(
        &mut self,
        arm: usize,
        place: &RequestPlace,
        CompletionAnswer { latency_ms, offer, reason }: CompletionAnswer,
        version: u64,
    ) -> Result<(), Failure> {
        let (disturbed, manner) = (self.disturbed(), self.manner());
        let lane = &mut self.lanes[arm];
        lane.record.note_reason(reason);
        let rating = match (&self.settings.judge, &offer) {
            (Some(judge), Some(offer)) => {
                let (before, written) = (lane.typist.before(), &place.text[place.at..]);
                let (id, offered) = (offer.id(), offer.text.as_str());
                judge.rate(JudgedOffer { id, before: &before, offered, written })?
            }
            _ => None,
        };
        let responded = offer
            .as_ref()
            .map(|offer| lane.typist.respond(offer, place.draws, manner, &disturbed).in_arm(arm));
        let responded = responded.transpose()?;
        let outcome = responded.map(|(outcome, _)| outcome);
        let request = RequestRecord {
            place: self.places,
            latency_ms,
            late: latency_ms > place.draws.pause_ms,
            version,
            outcome,
            rating,
            doubled: responded.is_some_and(|(_, doubled)| doubled),
        };
        if let Some(line) = lane.record.lines.last_mut() {
            line.requests.push(request);
        }
        (self.observe)(RunEvent::Requested(RequestEvent {
            arm: &lane.arm.name,
            path: place.path,
            line: place.line + 1,
            typed: &place.text[..place.at],
            rest: &place.text[place.at..],
            offer: offer.as_ref().map(|offer| offer.text.as_str()),
            outcome,
            latency_ms,
        }));
        Ok(())
    }

    /// Waits for an update that is under way, and records what it brought.
    fn wait_for_update(&mut self, arm: usize) -> Result<DaemonStatus, Failure> {
        let Stream { lanes, observe, places, .. } = self;
        let Lane { arm: daemon, record, .. } = &mut lanes[arm];
        let name = daemon.name.as_str();
        let status = daemon
            .wait_for_update(|_, elapsed| observe(RunEvent::Training { arm: name, elapsed }))
            .in_arm(arm)?;
        if status.learner.updates > record.updates_seen {
            record.updates_seen = status.learner.updates;
            let number = status.learner.updates;
            let update = Update { place: *places, number, ms: status.learner.last_update_ms };
            let labels = status.episodes.total - status.episodes.unlabelled;
            observe(RunEvent::Updated { arm: name, update: &update, labels });
            record.updates.push(update);
        }
        if status.adapter.swaps > record.swaps_seen {
            record.swaps_seen = status.adapter.swaps;
            let version = status.version_served();
            let swap = Swap { place: *places, version, ms: status.adapter.last_swap_ms };
            observe(RunEvent::Swapped { arm: name, swap: &swap });
            record.swaps.push(swap);
        }
        if let Some(error) = &status.learner.last_error
            && record.learner_errors.last() != Some(error)
        {
            observe(RunEvent::LearnerFailed { arm: name, error });
            record.learner_errors.push(error.clone());
        }
        Ok(status)
    }

    /// One step of every typist. An update that is due after it takes its batch before the next
    /// step. Without this wait, what the update learns from would depend on timing.
    fn each<E: Into<anyhow::Error>>(
        &mut self,
        mut step: impl FnMut(&mut Typist) -> Result<(), E>,
    ) -> Result<(), Failure> {
        for (arm, lane) in self.lanes.iter_mut().enumerate() {
            step(&mut lane.typist).in_arm(arm)?;
        }
        (0..self.lanes.len()).try_for_each(|arm| self.wait_if_it_learns(arm))
    }

    fn wait_if_it_learns(&mut self, arm: usize) -> Result<(), Failure> {
        if self.lanes[arm].arm.learns {
            self.wait_for_update(arm)?;
        }
        Ok(())
    }
}
