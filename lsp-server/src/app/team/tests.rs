use super::*;
use crate::testing;
use engine::scripted::ScriptedEngine;
use feedback::clock::ManualClock;
use feedback::log::MemoryLog;
use fixtures::overflowing;
use host::paths::Paths;
use models::team::frame::FrameMap;
use settings::{Config, TeamConfig};
use std::sync::Arc;

pub(super) fn frame() -> Frame {
    let map = |name: &str, rows_out, rows_in| FrameMap { name: name.into(), rows_out, rows_in };
    Frame {
        base_sha256: "base".into(),
        architecture: "llama".into(),
        maps: vec![map("blk.0.attn_q.weight", 24, 40), map("blk.0.ffn_down.weight", 40, 64)],
    }
}

pub(super) fn core(frame: &Frame, version: u64) -> Core {
    let number = |i: i32| (i * 31 % 61 - 30) * version as i32;
    Core::new(frame, version, (0..frame.numbers() as i32).map(number).collect()).unwrap()
}

/// A version takes the place of the one before, and what was learned privately stays next to it.
#[test]
fn the_private_part_of_the_head_stays_next_to_a_new_version() {
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
    registry.promote(&AdapterCandidate { entry, adapter, optimizer: None }).unwrap();

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

#[tokio::test]
async fn a_contribution_spends_no_less_than_those_before_and_has_a_bounded_round() {
    let (_folder, home) = fixtures::home();
    let address = Some("here:1".into());
    let team = TeamConfig { address, noise: 2.0, epsilon_limit: 8.0, ..TeamConfig::default() };
    let member = app_with(&home, team).await;
    let refused = member.contribute(MEMBERS_MAX + 1, Some(1.0)).await.unwrap_err().to_string();
    assert!(refused.contains("are the most"), "{refused}");
    let files = member.team_files();
    let ledger = Ledger { epsilon: Some(2.0), ..files.ledger().unwrap() };
    files.write_ledger(&ledger).unwrap();
    let after = |epsilon| check_epsilon(Some(epsilon), &ledger).map_err(|error| error.to_string());
    assert!(after(1.999).unwrap_err().contains("only grows"));
    assert_eq!((after(2.0), after(2.5)), (Ok(()), Ok(())));
}

/// A version that the holdout check refused was the base of the next contribution.
#[tokio::test]
async fn a_refused_version_leaves_what_was_kept_and_is_refused_again_without_a_check() {
    let (_folder, home) = fixtures::home();
    let config = Config { team: TeamConfig::default(), ..Config::default() };
    let engine = overflowing(fixtures::engine(&["call(x);"]), 1);
    let clock = Arc::new(ManualClock::starting_at(0));
    let app =
        testing::app::start(&home, config, engine, clock, Arc::new(MemoryLog::default())).await;
    let (frame, files) = (frame(), app.team_files());
    files.write_core(&frame, &core(&frame, 1)).unwrap();
    let received = app.try_core(frame.clone(), core(&frame, 2)).await.unwrap();
    assert_eq!(received.outcome, Outcome::Refused);
    assert_eq!(files.core(&frame), core(&frame, 1), "it was not kept");
    let ledger = files.ledger().unwrap();
    assert_eq!((ledger.received, ledger.joined), (Some(received.clone()), None));
    let sha256 = hex(&core(&frame, 2).sha256(&frame));
    assert!(was_refused(&received, &sha256) && !was_refused(&received, "another"));
}

#[tokio::test]
async fn a_version_that_is_tried_is_kept_and_the_first_says_when_this_machine_joined() {
    let (_folder, home) = fixtures::home();
    let app = app_with(&home, TeamConfig::default()).await;
    let (frame, files) = (frame(), app.team_files());
    for version in [3, 4] {
        let received = app.try_core(frame.clone(), core(&frame, version)).await.unwrap();
        assert_eq!(received.outcome, Outcome::Trial);
        assert_eq!(files.core(&frame).version, version);
        assert_eq!(files.ledger().unwrap().joined.map(|joined| joined.version), Some(3));
    }
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
    let files = TeamFiles::next_to(&home.path().join("adapters"));
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
