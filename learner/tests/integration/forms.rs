//! Whole jobs on a tiny model of every form (`models::random_model::tiny`): the update learns, its
//! adapter fits the base, and the next update continues from it.

use crate::common::{episode, job};
use feedback::event::Outcome;
use feedback::job::{Job, LearnerLine, Parent, UpdateReport};
use learner::job::lines;
use learner::job::trainer::Trainer;
use models::adapter::LoraAdapter;
use models::gguf::Gguf;
use models::random_model::tiny::{FORMS, Form, Matrices, Sizes};
use std::ops::ControlFlow;
use std::path::Path;

/// A job whose base has this form. The text `abc` was accepted and `pqr` was rejected.
fn job_on(form: &Form, folder: &Path, name: &str) -> Job {
    let base = folder.join("base.gguf");
    form.write(Sizes::SMALL, Matrices::Q8_0, 11, &base).unwrap();
    let sha256 = models::file::sha256(&base).unwrap();
    let episodes = (0..6).map(|seq| match seq % 2 {
        0 => episode(seq, &sha256, &[0, 1, 2], Outcome::Accepted),
        _ => episode(seq, &sha256, &[15, 16, 17], Outcome::RejectedEsc),
    });
    let mut job = job(folder, &sha256, name, episodes.collect());
    job.hyper.epochs = 8;
    job.hyper.target_kl = 10.0;
    job
}

fn run(job: &Job) -> Result<UpdateReport, String> {
    match lines::run(&mut Trainer::default(), job, &mut |_| ControlFlow::Continue(())) {
        LearnerLine::Done(report) => Ok(*report),
        LearnerLine::Failed { error, .. } => Err(error),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_update_learns_on_every_form_and_the_next_continues_from_it() {
    for form in FORMS {
        let folder = tempfile::tempdir().unwrap();
        let first = job_on(form, folder.path(), "first");
        let report = run(&first).unwrap_or_else(|error| panic!("{}: {error}", form.name));
        let rewarded = report.logprob_rewarded.unwrap();
        let unrewarded = report.logprob_unrewarded.unwrap();
        assert!(rewarded.after > rewarded.before + 0.05, "{}: {rewarded:?}", form.name);
        assert!(unrewarded.after < unrewarded.before, "{}: {unrewarded:?}", form.name);

        let adapter = LoraAdapter::read(&first.adapter_out).unwrap();
        let base = Gguf::open(&first.base.path).unwrap();
        adapter.check_base(&base, &first.base.sha256).unwrap();
        let layers = Sizes::SMALL.layers;
        let maps = models::architecture::of(form.architecture).unwrap().maps.len();
        assert_eq!(adapter.pairs.len(), layers * maps, "{}", form.name);

        let mut second = job_on(form, folder.path(), "second");
        second.parent = Some(Parent {
            version: 1,
            path: first.adapter_out.clone(),
            sha256: report.adapter_sha256,
            optimizer: Some(first.optimizer_out.clone()),
        });
        let step = &run(&second).unwrap().steps_log[0];
        assert_eq!((step.kl_parent, step.clip_fraction), (0.0, 0.0), "{}", form.name);
    }
}

/// The daemon shows this line to the user.
#[test]
fn a_job_on_a_model_that_cannot_learn_fails_with_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let other = Form { name: "other", architecture: "mamba", ..FORMS[0] };
    let error = run(&job_on(&other, folder.path(), "other")).unwrap_err();
    assert!(error.contains("base.gguf") && !error.contains('\n'), "{error}");
    assert!(error.contains("does not learn on the architecture mamba"), "{error}");
}
