//! Jobs that train a square between fixed matrices, and nothing else.

use crate::common::{episode, job, write_gguf};
use feedback::event::Outcome;
use feedback::job::{Job, LearnerLine, Parent, UpdateReport};
use learner::job::lines;
use learner::job::trainer::Trainer;
use learner::model::load::load;
use learner::model::lora::Lora;
use learner::ppo::square::Square;
use models::adapter::LoraAdapter;
use models::gguf::Gguf;
use models::team::compose::{compose, private_part};
use models::team::core::Core;
use models::team::frame::{Frame, RANK};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

struct Base {
    folder: TempDir,
    sha256: String,
    frame: Frame,
}

impl Base {
    fn new() -> Base {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("base.gguf");
        let sha256 = write_gguf(&base, "qwen2", 11);
        let frame = Frame::of(&Gguf::open(&base).unwrap(), &sha256).unwrap();
        Base { folder, sha256, frame }
    }

    /// A job that starts from squares which change nothing yet.
    fn first_job(&self, name: &str) -> Job {
        let squares = compose(&self.frame, &Core::zero(&self.frame), None).unwrap();
        let squares = LoraAdapter { shared_rank: 0, ..squares };
        self.job(name, Some(self.parent(name, &squares)))
    }

    /// A job that starts from the base if there is no parent.
    fn job(&self, name: &str, parent: Option<Parent>) -> Job {
        let episodes = (0..6).map(|seq| match seq % 2 {
            0 => episode(seq, &self.sha256, &[0, 1, 2], Outcome::Accepted),
            _ => episode(seq, &self.sha256, &[15, 16, 17], Outcome::RejectedEsc),
        });
        let mut job = job(self.folder.path(), &self.sha256, name, episodes.collect());
        job.parent = parent;
        job.hyper.epochs = 4;
        job.hyper.target_kl = 10.0;
        job.candidate = 2;
        job
    }

    fn parent(&self, name: &str, adapter: &LoraAdapter) -> Parent {
        let path = self.folder.path().join(format!("{name}-parent.gguf"));
        let sha256 = adapter.write(&path).unwrap();
        Parent { version: 1, path, sha256, optimizer: None }
    }

    /// The squares of an adapter's own ranks; `None` if they have another form.
    fn squares(&self, adapter: &LoraAdapter) -> Option<Vec<f32>> {
        let base = Gguf::open(&self.folder.path().join("base.gguf")).unwrap();
        let lora = Lora::from_adapter(adapter, &load(&base).unwrap().shape).unwrap();
        Square::own(&self.frame, &lora).unwrap().map(|square| square.values())
    }
}

fn run(job: &Job) -> UpdateReport {
    match lines::run(&mut Trainer::default(), job, &mut |_| ControlFlow::Continue(())) {
        LearnerLine::Done(report) => *report,
        other => panic!("{other:?}"),
    }
}

fn parent_of(job: &Job, report: &UpdateReport) -> Parent {
    Parent {
        version: 1,
        path: job.adapter_out.clone(),
        sha256: report.adapter_sha256.clone(),
        optimizer: Some(job.optimizer_out.clone()),
    }
}

fn read(path: &Path) -> LoraAdapter {
    LoraAdapter::read(path).unwrap()
}

fn bytes_of(path: &PathBuf) -> usize {
    std::fs::metadata(path).unwrap().len() as usize
}

#[test]
fn updates_train_the_squares_alone_one_after_the_other() {
    let base = Base::new();
    let first = base.first_job("first");
    let report = run(&first);
    let rewarded = report.logprob_rewarded.unwrap();
    assert!(rewarded.after > rewarded.before + 0.01, "{rewarded:?}");
    let learned = read(&first.adapter_out);
    assert_eq!((learned.rank, learned.shared_rank, learned.alpha), (RANK, 0, RANK as f32));
    let squares = base.squares(&learned).expect("the adapter consists of squares");
    assert!(squares.iter().filter(|value| **value != 0.0).count() > squares.len() / 2);
    let state = bytes_of(&first.optimizer_out);
    assert!(state < 16 * base.frame.numbers(), "two moments of each number, not {state} bytes");

    let second = base.job("second", Some(parent_of(&first, &report)));
    let report = run(&second);
    let next = base.squares(&read(&second.adapter_out)).expect("it still consists of squares");
    // The steps continue from the parent: each is at most the learning rate.
    let limit = second.hyper.learning_rate * report.steps as f32 * 1.5;
    let moved = next.iter().zip(&squares).map(|(now, before)| (now - before).abs());
    assert!(moved.clone().all(|moved| moved <= limit));
    assert!(moved.filter(|moved| *moved > 0.0).count() > squares.len() / 2);
}

#[test]
fn the_state_of_the_optimizer_is_found_again() {
    let base = Base::new();
    let first = base.first_job("first");
    let report = run(&first);
    let with = base.job("with", Some(parent_of(&first, &report)));
    let without = Parent { optimizer: None, ..parent_of(&first, &report) };
    let without = base.job("without", Some(without));
    run(&with);
    run(&without);
    assert_ne!(read(&with.adapter_out), read(&without.adapter_out));
}

#[test]
fn squares_stand_next_to_what_a_team_shares() {
    let base = Base::new();
    let numbers = (0..base.frame.numbers() as i32).map(|i| i * 37 % 401 - 200).collect();
    let core = Core::new(&base.frame, 3, numbers).unwrap();
    let history = compose(&base.frame, &Core::zero(&base.frame), None).unwrap();
    let history = LoraAdapter { shared_rank: 0, ..history };
    let both = compose(&base.frame, &core, Some(&history)).unwrap();
    let job = base.job("both", Some(base.parent("both", &both)));
    run(&job);
    let learned = read(&job.adapter_out);
    assert_eq!((learned.rank, learned.shared_rank), (2 * RANK, RANK));
    assert!(base.squares(&learned).is_some());
    let own = private_part(&learned).unwrap();
    assert_eq!(
        compose(&base.frame, &core, Some(&own)).unwrap(),
        learned,
        "the team's is as it was"
    );
}

#[test]
fn an_adapter_keeps_the_form_that_it_has() {
    let base = Base::new();
    let first = base.first_job("history");
    run(&first);
    assert!(base.squares(&read(&first.adapter_out)).is_some());

    let full = base.job("full", None);
    let report = run(&full);
    assert_eq!(read(&full.adapter_out).rank, 4);
    let on = base.job("on", Some(parent_of(&full, &report)));
    run(&on);
    assert_eq!(read(&on.adapter_out).rank, 4);
    assert_eq!(base.squares(&read(&on.adapter_out)), None);
}

#[test]
fn the_change_of_one_job_stays_within_its_limit() {
    let base = Base::new();
    let mut job = base.first_job("limited");
    job.hyper.max_update_ratio = 1e-3;
    let report = run(&job);
    assert!(report.update_ratio <= 1.001e-3, "{}", report.update_ratio);
    assert!(report.update_ratio > 0.9e-3, "the limit did not bind: {}", report.update_ratio);
    assert!(base.squares(&read(&job.adapter_out)).is_some());
}
