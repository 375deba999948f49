//! Jobs on an adapter that a team shares a part of.

use crate::common::{episode, job, write_gguf};
use feedback::event::Outcome;
use feedback::job::{Job, LearnerLine, Parent, Train, UpdateReport};
use learner::job::lines;
use learner::job::trainer::Trainer;
use models::adapter::LoraAdapter;
use models::gguf::Gguf;
use models::team::compose::{compose, private_part};
use models::team::core::{Core, STEP};
use models::team::frame::{Frame, RANK};
use std::ops::ControlFlow;
use std::path::PathBuf;
use tempfile::TempDir;

struct Team {
    folder: TempDir,
    sha256: String,
    frame: Frame,
    core: Core,
}

impl Team {
    fn new() -> Team {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("base.gguf");
        let sha256 = write_gguf(&base, "qwen2", 11);
        let frame = Frame::of(&Gguf::open(&base).unwrap(), &sha256).unwrap();
        let numbers = (0..frame.numbers() as i32).map(|i| i * 37 % 401 - 200).collect();
        let core = Core::new(&frame, 3, numbers).unwrap();
        core.write(&frame, &folder.path().join("team.core")).unwrap();
        Team { folder, sha256, frame, core }
    }

    fn core_file(&self) -> PathBuf {
        self.folder.path().join("team.core")
    }

    fn job(&self, name: &str, parent: &LoraAdapter) -> Job {
        let episodes = (0..6).map(|seq| match seq % 2 {
            0 => episode(seq, &self.sha256, &[0, 1, 2], Outcome::Accepted),
            _ => episode(seq, &self.sha256, &[15, 16, 17], Outcome::RejectedEsc),
        });
        let mut job = job(self.folder.path(), &self.sha256, name, episodes.collect());
        let path = self.folder.path().join(format!("{name}-parent.gguf"));
        let sha256 = parent.write(&path).unwrap();
        job.parent = Some(Parent { version: 1, path, sha256, optimizer: None });
        job.hyper.epochs = 4;
        job.hyper.target_kl = 10.0;
        job.candidate = 2;
        job
    }

    fn shared_job(&self, name: &str, parent: &LoraAdapter) -> Job {
        Job { train: Train::Shared { core: self.core_file() }, ..self.job(name, parent) }
    }
}

fn run(job: &Job) -> Result<UpdateReport, String> {
    match lines::run(&mut Trainer::default(), job, &mut |_| ControlFlow::Continue(())) {
        LearnerLine::Done(report) => Ok(*report),
        LearnerLine::Failed { error, .. } => Err(error),
        other => panic!("{other:?}"),
    }
}

/// The bits of the shared rows of A and columns of B.
fn shared_bits(adapter: &LoraAdapter) -> Vec<u32> {
    let mut bits = vec![];
    for pair in &adapter.pairs {
        bits.extend(pair.a[..RANK * pair.rows_in].iter().map(|value| value.to_bits()));
        bits.extend(
            pair.b.chunks(adapter.rank).flat_map(|row| row[..RANK].iter()).map(|v| v.to_bits()),
        );
    }
    bits
}

#[test]
fn an_update_changes_the_private_part_alone() {
    let team = Team::new();
    let alone = compose(&team.frame, &team.core, None).unwrap();
    let first = team.job("first", &alone);
    run(&first).unwrap();
    let learned = LoraAdapter::read(&first.adapter_out).unwrap();
    assert_eq!((learned.rank, learned.shared_rank), (RANK + 4, RANK), "a private part is added");
    let own = private_part(&learned).unwrap();
    assert_eq!((own.rank, own.alpha), (4, 8.0), "with the rank and alpha of the settings");
    let expected = compose(&team.frame, &team.core, Some(&own)).unwrap();
    assert_eq!(shared_bits(&learned), shared_bits(&expected));

    let second = team.job("second", &learned);
    run(&second).unwrap();
    let next = LoraAdapter::read(&second.adapter_out).unwrap();
    assert_eq!(shared_bits(&next), shared_bits(&learned));
    assert_ne!(private_part(&next), private_part(&learned));
}

/// A shared part that changes nothing leaves the private part to learn as if it was alone.
#[test]
fn a_private_part_learns_as_much_with_a_shared_part_as_alone() {
    let team = Team::new();
    let nothing = compose(&team.frame, &Core::zero(&team.frame), None).unwrap();
    let with_shared = team.job("with_shared", &nothing);
    let alone = Job { parent: None, ..team.job("alone", &nothing) };
    let sizes = [&with_shared, &alone].map(|job| {
        run(job).unwrap();
        let adapter = LoraAdapter::read(&job.adapter_out).unwrap();
        let own = private_part(&adapter).unwrap();
        let squares = own.pairs.iter().flat_map(|pair| &pair.b).map(|b| b.powi(2));
        (own.alpha / own.rank as f32) * squares.sum::<f32>().sqrt()
    });
    let ratio = sizes[0] / sizes[1];
    assert!((ratio - 1.0).abs() < 0.05, "{sizes:?}");
}

#[test]
fn a_contribution_trains_the_shared_part_alone() {
    let team = Team::new();
    let first = team.job("first", &compose(&team.frame, &team.core, None).unwrap());
    run(&first).unwrap();
    let parent = LoraAdapter::read(&first.adapter_out).unwrap();
    let job = team.shared_job("contribution", &parent);
    let report = run(&job).unwrap();
    assert!(!job.optimizer_out.exists());
    let bytes = std::fs::read(&job.adapter_out).unwrap();
    assert_eq!(bytes.len(), 4 * team.frame.numbers());
    let values: Vec<f32> =
        bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let before = team.core.numbers().iter().map(|number| *number as f32 * STEP);
    let moved = values.iter().zip(before).filter(|(now, before)| *now != before).count();
    assert!(moved > values.len() / 2, "{moved} of {} numbers moved", values.len());
    let rewarded = report.logprob_rewarded.unwrap();
    assert!(rewarded.after > rewarded.before + 0.01, "{rewarded:?}");
    // Adam's steps in C are at most the learning rate each.
    let limit = job.hyper.learning_rate * report.steps as f32 * 1.5;
    let before = team.core.numbers().iter().map(|number| *number as f32 * STEP);
    assert!(values.iter().zip(before).all(|(now, before)| (now - before).abs() <= limit));
}

/// A member that has learned nothing of its own yet can contribute.
#[test]
fn a_contribution_needs_no_private_part() {
    let team = Team::new();
    let alone = compose(&team.frame, &team.core, None).unwrap();
    let report = run(&team.shared_job("alone", &alone)).unwrap();
    assert!(report.update_ratio > 0.0 && report.update_ratio.is_finite());
}

#[test]
fn a_parent_that_was_made_with_another_shared_part_is_refused() {
    let team = Team::new();
    let other = compose(&team.frame, &Core::zero(&team.frame), None).unwrap();
    let error = run(&team.shared_job("other", &other)).unwrap_err();
    assert!(error.contains("not made with this shared part"), "{error}");
    let mut fresh = team.shared_job("fresh", &other);
    fresh.parent = None;
    assert!(run(&fresh).unwrap_err().contains("within an adapter"));
    let mut damaged = std::fs::read(team.core_file()).unwrap();
    damaged[70] ^= 1;
    std::fs::write(team.core_file(), damaged).unwrap();
    let parent = compose(&team.frame, &team.core, None).unwrap();
    assert!(run(&team.shared_job("damaged", &parent)).unwrap_err().contains("team.core"));
}
