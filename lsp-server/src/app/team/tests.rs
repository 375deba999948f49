use super::*;
use crate::config::{Config, TeamConfig};
use crate::paths::Paths;
use crate::testing::{self, fixtures};
use engine::scripted::ScriptedEngine;
use feedback::clock::ManualClock;
use feedback::log::MemoryLog;
use models::team::frame::FrameMap;
use std::sync::Arc;

fn frame() -> Frame {
    let map = |name: &str, rows_out, rows_in| FrameMap { name: name.into(), rows_out, rows_in };
    Frame {
        base_sha256: "base".into(),
        architecture: "llama".into(),
        maps: vec![map("blk.0.attn_q.weight", 24, 40), map("blk.0.ffn_down.weight", 40, 64)],
    }
}

fn core(frame: &Frame, version: u64) -> Core {
    let number = |i: i32| (i * 31 % 61 - 30) * version as i32;
    Core::new(frame, version, (0..frame.numbers() as i32).map(number).collect()).unwrap()
}

fn digits(bytes: &[u8]) -> String {
    hex(bytes)
}

/// The message of version `to`, by a chain from version `from`.
fn message(frame: &Frame, from: u64, to: u64) -> VersionMessage {
    let chain = (from..to).map(|version| Link {
        version: version + 1,
        delta: digits(
            &delta::encode(frame, &core(frame, version), &core(frame, version + 1)).unwrap(),
        ),
    });
    VersionMessage {
        format: TEAM_FORMAT,
        frame: digits(&frame.sha256()),
        version: to,
        core: digits(&core(frame, to).sha256(frame)),
        from,
        chain: chain.collect(),
    }
}

#[test]
fn a_chain_from_here_and_the_whole_lead_to_the_same_version() {
    let frame = frame();
    assert_eq!(core(&frame, 0), Core::zero(&frame));
    let here = core(&frame, 2);
    assert_eq!(follow(&frame, &here, &message(&frame, 2, 5)).unwrap(), core(&frame, 5));
    let whole = delta::encode(&frame, &Core::zero(&frame), &core(&frame, 5)).unwrap();
    let mut message = message(&frame, 0, 5);
    message.chain = vec![Link { version: 5, delta: digits(&whole) }];
    assert_eq!(follow(&frame, &here, &message).unwrap(), core(&frame, 5));
    assert_eq!(
        follow(&frame, &core(&frame, 5), &message).unwrap(),
        core(&frame, 5),
        "here already"
    );
}

#[test]
fn what_does_not_fit_is_refused_with_its_reason() {
    let frame = frame();
    let here = core(&frame, 2);
    let refused = |message: &VersionMessage| {
        format!("{:#}", follow(&frame, &here, message).map(|core| core.version).unwrap_err())
    };
    let good = message(&frame, 2, 4);
    let foreign = VersionMessage { frame: "00".into(), ..good.clone() };
    assert!(refused(&foreign).contains("another base model"));
    assert!(refused(&message(&frame, 0, 1)).contains("older than 2"));
    assert!(refused(&message(&frame, 1, 4)).contains("begin at version 1, here is 2"));
    let other = VersionMessage { core: "00".into(), ..message(&frame, 0, 2) };
    assert!(refused(&other).contains("another than the one of this number"));
    let newer = VersionMessage { format: 2, ..good.clone() };
    assert!(refused(&newer).contains("format 2"));
    let mut short = good.clone();
    short.chain.pop();
    assert!(refused(&short).contains("do not lead to version 4"));
    let mut damaged = good.clone();
    let delta = &mut damaged.chain[1].delta;
    let last = delta.pop().unwrap();
    delta.push(if last == '0' { '1' } else { '0' });
    assert!(refused(&damaged).contains("the delta to version 4"), "{}", refused(&damaged));
    let mut text = good.clone();
    text.chain[0].delta = "not hex".into();
    assert!(refused(&text).contains("hex digits"));
    let mut disordered = good;
    disordered.chain.swap(0, 1);
    assert!(refused(&disordered).contains("version"), "{}", refused(&disordered));
}

/// The noise of three members is far above the norm of what they have learned.
#[test]
fn a_version_may_be_as_large_as_its_noise_and_no_larger() {
    const NUMBERS: usize = 43_008;
    let mut random = rand::rng();
    for noise in [0.0, 2.0] {
        let mut config = Config::default();
        (config.team.noise, config.team.minimum_members) = (noise, 3);
        let max_norm = config.lab.team_max_norm;
        let share = noise * max_norm / 3f64.sqrt();
        let mut noise_of_member = || share * normal(|| random.random());
        let mut mean = || (0..3).map(|_| noise_of_member()).sum::<f64>() / 3.0;
        let squares: f64 = (0..NUMBERS).map(|_| mean().powi(2)).sum();
        let learned = squares.sqrt() + max_norm;
        assert!(learned <= norm_limit(&config, 1, NUMBERS), "{noise}");
        assert!(1.1 * learned > norm_limit(&config, 1, NUMBERS), "{noise}: the limit is close");
    }
}

/// A version takes the place of the one before, and what was learned privately goes on beside it.
#[test]
fn the_private_part_of_the_head_stays_beside_a_new_version() {
    let home = tempfile::tempdir().unwrap();
    let frame = frame();
    let (mut registry, _) = Registry::open(home.path(), &frame.base_sha256);
    let first = candidate(&registry, &frame, &core(&frame, 1), 5).unwrap();
    registry.promote(&first).unwrap();
    let learned = {
        let mut private = compose(&frame, &core(&frame, 7), None).unwrap();
        (private.shared_rank, private.alpha) = (0, 8.0);
        private
    };
    let both = compose(&frame, &core(&frame, 1), Some(&learned)).unwrap();
    let (adapter, _) = registry.job_files("update");
    let sha256 = both.write(&adapter).unwrap();
    let entry = Entry { version: registry.next_version(), parent: 1, sha256, ..first.entry };
    registry.promote(&Candidate { entry, adapter, optimizer: None }).unwrap();

    let next = candidate(&registry, &frame, &core(&frame, 2), 6).unwrap();
    let made = LoraAdapter::read(&next.adapter).unwrap();
    assert_eq!(private_part(&made), Some(learned.clone()));
    assert_eq!(made, compose(&frame, &core(&frame, 2), Some(&learned)).unwrap());
    assert_eq!(next.entry.parent, 2);
}

async fn app_with(home: &Paths, team: TeamConfig) -> Arc<App> {
    let answers = ScriptedEngine { learned: Some(&["});"]), ..fixtures::engine(&["call(x);"]) };
    let mut config = Config { team, ..Config::default() };
    config.gate.enabled = false;
    let clock = Arc::new(ManualClock::starting_at(0));
    testing::app::start(home, config, answers, clock, Arc::new(MemoryLog::default())).await
}

#[tokio::test]
async fn a_contribution_is_refused_without_a_team_or_beyond_the_users_own_limits() {
    let (_folder, home) = fixtures::home();
    let alone = app_with(&home, TeamConfig::default()).await;
    let refused = alone.contribute(5, None).await.unwrap_err().to_string();
    assert!(refused.contains("in no team"), "{refused}");

    let (_folder, home) = fixtures::home();
    let address = Some("here:1".into());
    let team = TeamConfig { address, noise: 2.0, epsilon_limit: 8.0, ..TeamConfig::default() };
    let member = app_with(&home, team).await;
    for (members, epsilon, expected) in [
        (2, Some(1.0), "team.minimum_members asks for 3"),
        (3, None, "--epsilon must say what is spent"),
        (3, Some(8.01), "team.epsilon_limit is 8"),
    ] {
        let refused = member.contribute(members, epsilon).await.unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
    }
    assert_eq!(member.team_files().ledger().unwrap().count(), 0);
}

/// A hostile coordinator may send what passes the holdout check and is always accepted.
#[tokio::test]
async fn a_version_that_only_closes_brackets_loses_its_trial() {
    let (_folder, home) = fixtures::home();
    let app = app_with(&home, TeamConfig::default()).await;
    let received = app.try_core(frame(), core(&frame(), 1)).await.unwrap();
    assert_eq!((received.version, received.outcome), (1, Outcome::Trial));
    testing::app::accept_until_the_trial_ends(&app).await;
    let serving = app.services.adapters.serving();
    assert_eq!(serving.active(), 0, "the model alone serves again");
    let verdict = serving.entry(1).unwrap().verdict.clone().unwrap();
    assert!(verdict.reason.contains("closing brackets"), "{}", verdict.reason);
    // Completions have gone on.
    assert!(app.services.recorder.counts().accepted > 0);
}

#[test]
fn a_contribution_is_in_the_ledger_before_it_leaves_and_a_broken_one_never_is() {
    let home = tempfile::tempdir().unwrap();
    let files = TeamFiles::beside(&home.path().join("adapters"));
    let frame = frame();
    let core = core(&frame, 1);
    let limits = Limits { max_norm: 0.5, noise: 0.0 };
    let attempt = |change: Vec<f32>| {
        record(&files, &frame, &core, &change, limits, |ledger| {
            let (offers, forgotten, elsewhere) = (vec!["o1".into()], false, false);
            let made = Contributed { at_ms: 1, version: 1, offers, forgotten, elsewhere };
            ledger.add(made, 0.0, None);
        })
    };
    assert!(attempt(vec![f32::NAN; frame.numbers()]).is_err());
    assert!(attempt(vec![0.1; 3]).is_err());
    assert_eq!(files.ledger().unwrap().count(), 0);
    let made = attempt(vec![1e-5; frame.numbers()]).unwrap();
    assert_eq!(made.numbers.len(), frame.numbers());
    assert_eq!(files.ledger().unwrap().contributions[0].offers, ["o1"]);
    assert!(files.left(&frame).iter().all(|left| *left != 0.0), "rounding left something");
}
