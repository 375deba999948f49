//! Whole jobs on a tiny GGUF.

use crate::common::{ARCHITECTURES, MIDDLE, NEWLINE, episode, job, write_gguf};
use feedback::event::Outcome;
use feedback::experts::{ChosenExperts, ExpertLayout};
use feedback::job::{BeforeAfter, Job, LearnerLine, Parent, Phase, UpdateReport};
use feedback::limits::WAITING_EPISODES_MAX;
use learner::job::lines;
use learner::job::trainer::Trainer;
use learner::machine::threads::Threads;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

struct Fixture {
    folder: TempDir,
    sha256: String,
}

fn fixture(architecture: &str) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let sha256 = write_gguf(&folder.path().join("base.gguf"), architecture, 11);
    Fixture { folder, sha256 }
}

impl Fixture {
    fn job(&self, name: &str) -> Job {
        let episodes = (0..6)
            .map(|seq| {
                let (tokens, outcome) = match seq % 2 {
                    0 => ([0, 1, 2], Outcome::Accepted),
                    _ => ([15, 16, 17], Outcome::RejectedEsc),
                };
                episode(seq, &self.sha256, &tokens, outcome)
            })
            .collect();
        job(self.folder.path(), &self.sha256, name, episodes)
    }
}

fn run(job: &Job) -> Result<UpdateReport, String> {
    match lines::run(&mut Trainer::default(), job, &mut |_| ControlFlow::Continue(())) {
        LearnerLine::Done(report) => Ok(*report),
        LearnerLine::Failed { job: id, error } => {
            assert_eq!(id, job.id);
            assert!(!error.contains('\n'), "one line: {error}");
            Err(error)
        }
        other => panic!("{other:?}"),
    }
}

fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

#[test]
fn accepted_text_becomes_likelier_and_rejected_text_less_likely() {
    for architecture in ARCHITECTURES {
        let fixture = fixture(architecture);
        let mut job = fixture.job("learn");
        job.hyper.epochs = 8;
        job.hyper.target_kl = 10.0;
        let report = run(&job).unwrap();
        let (rewarded, unrewarded) =
            (report.logprob_rewarded.unwrap(), report.logprob_unrewarded.unwrap());
        assert!(rewarded.after > rewarded.before + 0.05, "{architecture}: {rewarded:?}");
        assert!(unrewarded.after < unrewarded.before - 0.005, "{architecture}: {unrewarded:?}");
        assert_eq!((report.episodes_used, report.tokens_trained, report.steps), (6, 18, 8));
        assert!(report.kl_base > 0.0 && report.update_ratio > 0.0);
    }
}

#[test]
fn the_phases_of_a_report_are_parts_of_its_time() {
    let fixture = fixture("qwen2");
    let report = run(&fixture.job("phases")).unwrap();
    let phases = report.phases;
    assert!(phases.prompts + phases.references <= report.prompt_ms, "{report:?}");
    let training = phases.forward + phases.backward + phases.optimizer + phases.check;
    assert!(training <= report.train_ms, "{report:?}");
    let parts = report.load_ms + report.prompt_ms + report.train_ms + phases.write;
    assert!(parts <= report.total_ms, "{report:?}");
    assert_eq!(phases.stopped, 0, "only the daemon stops the learner");
}

#[test]
fn the_first_step_starts_exactly_at_the_parent() {
    let fixture = fixture("qwen2");
    let first = fixture.job("first");
    run(&first).unwrap();
    let mut second = fixture.job("second");
    second.parent = Some(parent(&first));
    for job in [&first, &second] {
        let report = run(job).unwrap();
        assert_eq!(report.steps_log[0].kl_parent, 0.0);
        assert_eq!(report.steps_log[0].clip_fraction, 0.0);
    }
}

#[test]
fn the_same_job_gives_the_same_bytes() {
    for architecture in ARCHITECTURES {
        let fixture = fixture(architecture);
        let (once, again) = (fixture.job("once"), fixture.job("again"));
        let (a, b) = (run(&once).unwrap(), run(&again).unwrap());
        assert_eq!(a.adapter_sha256, b.adapter_sha256);
        assert_eq!(a.steps_log, b.steps_log);
        assert_eq!(bytes(&once.adapter_out), bytes(&again.adapter_out));
        assert_eq!(bytes(&once.optimizer_out), bytes(&again.optimizer_out));
        let other = Job { seed: 8, ..fixture.job("other") };
        assert_ne!(run(&other).unwrap().adapter_sha256, a.adapter_sha256);
    }
}

#[test]
fn the_number_of_threads_changes_no_byte() {
    let fixture = fixture("qwen2");
    let sha256 = |threads: usize| {
        let job = fixture.job(&format!("threads-{threads}"));
        let mut trainer = Trainer::with_threads(Threads::fixed(threads));
        match lines::run(&mut trainer, &job, &mut |_| ControlFlow::Continue(())) {
            LearnerLine::Done(report) => report.adapter_sha256,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(sha256(1), sha256(3));
}

#[test]
fn a_cancelled_job_ends_at_its_next_piece_of_work_and_leaves_nothing() {
    let fixture = fixture("qwen2");
    // A GPU does more work in a piece, and so fewer pieces.
    let mut all = 0;
    let whole = lines::run(&mut Trainer::default(), &fixture.job("whole"), &mut |_| {
        all += 1;
        ControlFlow::Continue(())
    });
    assert!(matches!(whole, LearnerLine::Done(_)), "{whole:?}");
    for pieces in [0, 1, all / 2, all - 1] {
        let job = fixture.job("cancelled");
        let mut seen = 0;
        let answer = lines::run(&mut Trainer::default(), &job, &mut |_| {
            seen += 1;
            if seen > pieces { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(answer, LearnerLine::Cancelled { job: "cancelled".into() });
        assert_eq!(seen, pieces + 1, "no work follows the cancellation");
        assert!(!job.adapter_out.exists() && !job.optimizer_out.exists());
    }
}

#[test]
fn what_the_user_typed_instead_becomes_likelier() {
    const INSTEAD: [u32; 3] = [3, 4, 5];
    let fixture = fixture("llama");
    let likelihood = |name: &str, coefficient: f32| {
        let mut job = fixture.job(name);
        job.hyper.demonstration_coefficient = coefficient;
        job.hyper.epochs = 8;
        job.hyper.target_kl = 10.0;
        for episode in job.episodes.iter_mut().filter(|episode| episode.seq % 2 == 1) {
            episode.replacement = Some(INSTEAD.to_vec());
        }
        let report = run(&job).unwrap();
        assert_eq!(report.episodes_used, 6);
        assert_eq!(report.demonstrations, if coefficient > 0.0 { 3 } else { 0 });
        // The next job reports the log-prob of those tokens under the learned adapter.
        let mut next = fixture.job(&format!("{name}-next"));
        next.parent = Some(parent(&job));
        next.hyper.learning_rate = 0.0;
        next.episodes.truncate(2);
        next.episodes.remove(0);
        let tokens = &mut next.episodes[0].completion.tokens;
        tokens.iter_mut().zip(INSTEAD).for_each(|(token, id)| token.id = id);
        next.episodes[0].completion.shown = "def".into();
        run(&next).unwrap().logprob_unrewarded.unwrap().before
    };
    let (with, without) = (likelihood("with", 0.5), likelihood("without", 0.0));
    assert!(with > without + 0.05, "{with} nats with demonstrations, {without} without");
}

#[test]
fn with_the_demonstration_loss_alone_accepted_text_becomes_likelier() {
    let fixture = fixture("llama");
    let moved = |name: &str, typed: bool| {
        let mut job = fixture.job(name);
        job.hyper.policy_coefficient = 0.0;
        job.hyper.kl_coefficient = 0.0;
        job.hyper.demonstration_coefficient = 1.0;
        if typed {
            for episode in &mut job.episodes {
                episode.outcome = None;
                episode.replacement = Some(vec![3, 4, 5]);
            }
        }
        run(&job).unwrap()
    };
    let accepted = moved("accepted", false);
    assert_eq!((accepted.episodes_used, accepted.demonstrations), (6, 0));
    let likelier = |change: Option<BeforeAfter>| change.map(|c| c.after - c.before).unwrap();
    let (rewarded, unrewarded) =
        (likelier(accepted.logprob_rewarded), likelier(accepted.logprob_unrewarded));
    assert!(rewarded > unrewarded.max(0.0), "{rewarded} {unrewarded}");

    let typed = moved("typed", true);
    assert_eq!((typed.episodes_used, typed.demonstrations), (0, 6));
    assert!(typed.update_ratio > 0.0);
    let expected = typed.demonstrated.unwrap();
    assert_eq!(
        (expected.tokens, expected.base),
        (18, expected.parent),
        "the first adapter starts at the base"
    );
}

#[test]
fn a_warm_trainer_gives_the_bytes_of_a_cold_one() {
    let fixture = fixture("llama");
    let mut trainer = Trainer::default();
    let mut sha256 = |name: &str| match lines::run(&mut trainer, &fixture.job(name), &mut |_| {
        ControlFlow::Continue(())
    }) {
        LearnerLine::Done(report) => report.adapter_sha256,
        other => panic!("{other:?}"),
    };
    assert_eq!(sha256("cold"), sha256("warm"));
}

fn parent(job: &Job) -> Parent {
    Parent {
        version: job.candidate,
        path: job.adapter_out.clone(),
        sha256: models::file::sha256(&job.adapter_out).unwrap(),
        optimizer: Some(job.optimizer_out.clone()),
    }
}

/// The token that switches the adapter on comes from the episodes of the first job, and is
/// written to the files of all its descendants.
#[test]
fn the_adapter_file_names_its_invocation_token() {
    let fixture = fixture("qwen2");
    let first = fixture.job("first");
    run(&first).unwrap();
    let mut second = fixture.job("second");
    second.parent = Some(parent(&first));
    run(&second).unwrap();
    for job in [first, second] {
        let adapter = models::adapter::LoraAdapter::read(&job.adapter_out).unwrap();
        assert_eq!(adapter.invocation, [MIDDLE]);
        assert_eq!(adapter.base_sha256, fixture.sha256);
    }
}

#[test]
fn the_learner_reports_how_far_it_is_from_the_server() {
    let fixture = fixture("qwen2");
    let mut job = fixture.job("mismatch");
    job.episodes[0].completion.adapter = 1;
    let report = run(&job).unwrap();
    assert_eq!(report.mismatch.count, 15, "the parent is the base, which is version 0");
    assert!(report.mismatch.mean > 0.0, "every recorded log-prob is −3");
}

#[test]
fn epochs_stop_when_the_policy_is_far_from_the_parent() {
    let fixture = fixture("qwen2");
    let mut job = fixture.job("far");
    job.hyper.epochs = 50;
    job.hyper.learning_rate = 0.05;
    job.hyper.target_kl = 0.02;
    let report = run(&job).unwrap();
    assert!(report.stopped_early);
    assert!(report.steps < 50);
    assert!(report.steps_log.iter().all(|step| step.kl_parent <= 0.02));
}

#[test]
fn the_change_of_one_job_stays_within_its_limit() {
    let fixture = fixture("llama");
    let mut job = fixture.job("limited");
    job.hyper.learning_rate = 0.05;
    job.hyper.max_update_ratio = 0.01;
    job.hyper.target_kl = 10.0;
    let report = run(&job).unwrap();
    assert!((report.update_ratio - 0.01).abs() < 1e-5, "{}", report.update_ratio);
}

#[test]
fn progress_runs_through_every_phase() {
    let fixture = fixture("qwen2");
    let mut seen = Vec::new();
    lines::run(&mut Trainer::default(), &fixture.job("progress"), &mut |progress| {
        assert!(progress.done <= progress.total, "{progress:?}");
        if seen.last() != Some(&progress.phase) {
            seen.push(progress.phase);
        }
        ControlFlow::Continue(())
    });
    assert_eq!(seen, [Phase::Load, Phase::Prompt, Phase::Train, Phase::Evaluate]);
}

/// Each broken job gives one line that says what is wrong, and leaves no file.
#[test]
fn a_broken_job_fails_clearly_and_leaves_nothing() {
    let fixture = fixture("qwen2");
    let good = fixture.job("good");
    run(&good).unwrap();
    let parent_of_good = parent(&good);
    let check = |expected: &str, break_it: &dyn Fn(&mut Job)| {
        let mut job = fixture.job("bad");
        job.parent = Some(parent_of_good.clone());
        break_it(&mut job);
        let error = run(&job).expect_err(expected);
        assert!(error.contains(expected), "expected {expected:?} in {error:?}");
        let mut left: Vec<_> = std::fs::read_dir(fixture.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.contains("bad"))
            .collect();
        left.sort();
        assert!(left.is_empty(), "{expected}: left {left:?}");
    };
    let damaged = |name: &str, source: &Path, change: &dyn Fn(&mut Vec<u8>)| {
        let path = fixture.folder.path().join(name);
        let mut content = bytes(source);
        change(&mut content);
        std::fs::write(&path, content).unwrap();
        path
    };

    check("job format 9", &|job| job.format = 9);
    check("the job was made for", &|job| job.base.sha256 = "0".repeat(64));
    check("nowhere.gguf", &|job| job.base.path = fixture.folder.path().join("nowhere.gguf"));
    check("no episode to learn from: of 6, 6 unlabelled", &|job| {
        job.episodes.iter_mut().for_each(|episode| episode.outcome = None);
    });
    check("no episode to learn from: of 0", &|job| job.episodes.clear());
    check("episode 3: the recorded log-prob of token 1 is NaN", &|job| {
        job.episodes[3].completion.tokens[1].logprob = f32::NAN;
    });
    check("episode 2: token 40 is out of the vocabulary of 40", &|job| {
        job.episodes[2].completion.tokens[0].id = 40;
    });
    check("episode 1: token 4000000000 is out", &|job| {
        job.episodes[1].completion.prompt[0] = 4_000_000_000;
    });
    check("episode 1: adapter_from is 9", &|job| job.episodes[1].completion.adapter_from = 9);
    check("episode 0: its prompt has 4097 tokens, the limit is 4096", &|job| {
        job.episodes[0].completion.prompt = vec![1; 4097];
    });
    check("longer than the model's context of 256", &|job| {
        job.episodes[0].completion.prompt = vec![1; 256];
        job.episodes[0].completion.adapter_from = 255;
    });
    check("episode 4: token 0 does not reproduce", &|job| {
        job.episodes[4].completion.healing = "zz".into();
    });
    check("its limit is 1 MiB; raise learning.memory_limit_mb", &|job| job.memory_limit_mb = 1);
    check("needs 3072 MiB of memory, and the learner may hold 2048; raise learning.", &|job| {
        let large = std::fs::File::create(fixture.folder.path().join("large.gguf")).unwrap();
        large.set_len(3 << 30).unwrap();
        job.base.path = fixture.folder.path().join("large.gguf");
        job.memory_limit_mb = 2048;
    });
    check("episode 2: it has chosen experts, and the model has none", &|job| {
        let layout = ExpertLayout { experts: 8, used: 3, layers: 2 };
        let experts = ChosenExperts::new(layout, &layout.unknown(2));
        job.episodes[2].completion.experts = experts;
    });
    check("lora_rank must be from 1 to 256", &|job| job.hyper.lora_rank = 0);
    check("learning_rate must be at least 0", &|job| job.hyper.learning_rate = f32::NAN);
    check("clip_low must be at least 0 and below 1", &|job| job.hyper.clip_low = 1.0);
    check("4097 episodes, the limit is 4096", &|job| {
        job.episodes = vec![job.episodes[0].clone(); WAITING_EPISODES_MAX + 1];
    });
    check("the job names", &|job| {
        job.parent.as_mut().unwrap().sha256 = "0".repeat(64);
    });
    let cut = damaged("cut.gguf", &good.adapter_out, &|content| {
        content.truncate(content.len() / 2);
    });
    check("cut.gguf", &|job| {
        let parent = job.parent.as_mut().unwrap();
        parent.sha256 = models::file::sha256(&cut).unwrap();
        parent.path = cut.clone();
    });
    let mut unfit = models::adapter::LoraAdapter::read(&good.adapter_out).unwrap();
    unfit.alpha = 0.0;
    let unfit_path = fixture.folder.path().join("unfit.gguf");
    let sha256 = unfit.write(&unfit_path).unwrap();
    check("unfit.gguf; `hone adapter use 0` starts a new one: lora_alpha must be", &|job| {
        let parent = job.parent.as_mut().unwrap();
        (parent.sha256, parent.path) = (sha256.clone(), unfit_path.clone());
    });
    check("cannot write the optimizer state", &|job| {
        job.optimizer_out = fixture.folder.path().join("no folder").join("bad.opt");
    });
    check("no folder", &|job| {
        job.adapter_out = fixture.folder.path().join("no folder").join("bad.gguf");
    });
    let base = fixture.folder.path().join("base.gguf");
    let cut = damaged("cut-base.gguf", &base, &|content| content.truncate(content.len() / 2));
    check("cut-base.gguf", &|job| {
        job.base.sha256 = models::file::sha256(&cut).unwrap();
        job.base.path = cut.clone();
    });
}

/// Changing `lab.ppo.lora_rank` or `lora_alpha` stopped learning: the learner refused a
/// parent of another rank, so every update failed and its labels were set aside. A parent
/// keeps what it was made with, and the settings are for an adapter that starts anew.
#[test]
fn an_adapter_keeps_its_rank_and_alpha_when_the_settings_change() {
    let fixture = fixture("qwen2");
    let first = fixture.job("first");
    run(&first).unwrap();
    let learned = |name: &str, parent: Option<Parent>, rank: usize, alpha: f32| {
        let mut job = fixture.job(name);
        job.parent = parent;
        (job.hyper.lora_rank, job.hyper.lora_alpha) = (rank, alpha);
        run(&job).unwrap();
        models::adapter::LoraAdapter::read(&job.adapter_out).unwrap()
    };
    let same = learned("same", Some(parent(&first)), 4, 8.0);
    let changed = learned("changed", Some(parent(&first)), 2, 16.0);
    assert_eq!((changed.rank, changed.alpha), (4, 8.0));
    assert!(changed == same, "the settings change nothing about it");
    let fresh = learned("fresh", None, 2, 16.0);
    assert_eq!((fresh.rank, fresh.alpha), (2, 16.0));
}

/// If the optimizer state of a parent cannot be used, the job continues as if there were none.
/// If it were an error, every later job would fail too.
#[test]
fn an_unusable_optimizer_state_costs_only_its_momentum() {
    let fixture = fixture("qwen2");
    let (first, other) = (fixture.job("first"), Job { seed: 99, ..fixture.job("other") });
    run(&first).unwrap();
    run(&other).unwrap();
    let learned = |name: &str, optimizer: Option<PathBuf>| {
        let mut job = fixture.job(name);
        job.parent = Some(Parent { optimizer, ..parent(&first) });
        run(&job).unwrap();
        bytes(&job.adapter_out)
    };
    let damaged = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let path = fixture.folder.path().join(name);
        let mut content = bytes(&first.optimizer_out);
        change(&mut content);
        std::fs::write(&path, content).unwrap();
        Some(path)
    };
    let without = learned("without", None);
    let cut = damaged("cut.opt", &|content| content.truncate(content.len() - 7));
    let flipped = damaged("flipped.opt", &|content| content[900] ^= 1);
    assert!(learned("cut", cut) == without, "it is truncated");
    assert!(learned("flipped", flipped) == without, "a bit of it is flipped");
    assert!(
        learned("foreign", Some(other.optimizer_out.clone())) == without,
        "it belongs to another adapter"
    );
    assert!(
        learned("whole", Some(first.optimizer_out.clone())) != without,
        "a usable state makes a difference"
    );
}

/// An update whose numbers overflow is never written.
#[test]
fn an_update_that_is_not_finite_is_refused() {
    let fixture = fixture("qwen2");
    let mut job = fixture.job("overflow");
    job.hyper.learning_rate = 1e30;
    job.hyper.warmup_steps = 1;
    job.hyper.max_update_ratio = 1e30;
    job.hyper.target_kl = 1e30;
    let error = run(&job).unwrap_err();
    assert!(error.contains("not finite"), "{error}");
    assert!(!job.adapter_out.exists() && !job.optimizer_out.exists());
}

#[test]
fn the_newline_that_ended_a_shown_line_is_trained() {
    let fixture = fixture("qwen2");
    let mut job = fixture.job("newline");
    for episode in &mut job.episodes {
        let completion = &mut episode.completion;
        completion.tokens.push(feedback::event::TokenRecord { id: NEWLINE, logprob: -2.0 });
        completion.stop = feedback::event::StopReason::Newline;
    }
    assert_eq!(run(&job).unwrap().tokens_trained, 24);
}

/// With the largest batch that the settings allow, every update failed, and its labels were set
/// aside.
#[test]
fn a_job_as_large_as_the_settings_allow_is_accepted() {
    let fixture = fixture("qwen2");
    let mut job = fixture.job("large");
    job.episodes[0].outcome = None;
    job.episodes = vec![job.episodes[0].clone(); WAITING_EPISODES_MAX];
    let error = run(&job).unwrap_err();
    assert!(error.contains("no episode to learn from: of 4096, 4096 unlabelled"), "{error}");
}
