//! Tests that a state derived with a checkpoint equals one derived from the whole log: random event
//! streams are cut anywhere, with updates and trials between the cuts.

use crate::derived_state::{DerivedInputs, DerivedState};
use feedback::event::{
    ArmRecord, Completion, Decision, Defect, EventKind, Evidence, GateRecord, KeptCheck, Outcome,
    StopReason, TokenRecord,
};
use feedback::log::{EventLog, MemoryLog};
use feedback::sled_log::SledLog;
use feedback::testing::served;
use policy::gate::prior::{assumed, shipped};
use policy::trial::Arms;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::collections::HashSet;
use std::time::Instant;

const MODEL: &str = "base";
const SCENARIOS: u64 = 60;
const LONGEST: u64 = 3_000;

/// More events than any bounded part of the derived state holds.
const LONG: u64 = 40_000;

/// An update may happen after this many events.
const LEARNS_EVERY: u64 = 500;

/// Events in the log on which a start is measured.
const EVENTS: u64 = 12_000;
const EVENTS_LONG: u64 = 1_000_000;
/// Events that were recorded after the checkpoint.
const NEW_EVENTS: u64 = 4_000;

const PROMPT_TOKENS: u32 = 500;

fn completion(rng: &mut StdRng, id: String, trial: Option<Arms>, prompt: u32) -> EventKind {
    let shown = *["", "x", "push(item);", "größe = 1", ")"].choose(rng).unwrap();
    let gate = rng.random_bool(0.8).then(|| GateRecord {
        features_version: policy::gate::features::FEATURES_VERSION,
        features: (0..policy::gate::features::FEATURES).map(|_| rng.random()).collect(),
        probability: rng.random(),
        propensity: rng.random_range(0.1..1.0),
        held_back: shown.is_empty().then(|| "held".into()),
    });
    let (adapter, arm) = match trial.filter(|_| rng.random_bool(0.9)) {
        Some(arms) => {
            let (adapter, record) = arms.draw(rng.random());
            (adapter, Some(record))
        }
        // The arm belongs to a trial that is over.
        None if rng.random_bool(0.1) => (2, Some(ArmRecord { trial: 3, propensity: 0.5 })),
        None => (rng.random_range(0..3), None),
    };
    let defect = [None, None, None, Some(Defect::Unbalanced)].choose(rng).unwrap();
    served(Completion {
        model_sha256: if rng.random_bool(0.9) { MODEL } else { "another" }.into(),
        adapter,
        prompt: (0..prompt).map(|_| rng.random_range(0..50_000)).collect(),
        adapter_from: 1,
        tokens: (0..4).map(|id| TokenRecord { id, logprob: -rng.random::<f32>() }).collect(),
        stop: StopReason::StopToken,
        shown: shown.into(),
        decision: Decision { invoked: rng.random_bool(0.1), gate, arm, defect: *defect },
        ..feedback::testing::completion(&id)
    })
}

/// An event about one of the last offers. Any event may come in any order, and repeatedly.
fn outcome_event(rng: &mut StdRng, id: String, trial: Option<Arms>) -> EventKind {
    let evidence = [Evidence::Clock, Evidence::Document, Evidence::ClientNotice, Evidence::Command];
    let outcome = [
        Outcome::Accepted,
        Outcome::PartlyAccepted { utf16: 3 },
        Outcome::TypedThrough { utf16: 1 },
        Outcome::RejectedEsc,
        Outcome::RejectedTimeout,
        Outcome::Superseded,
        Outcome::Unseen,
    ];
    match rng.random_range(0..8) {
        0 => EventKind::Shown { id },
        1 => EventKind::PartlyAccepted { id, accepted_utf16: 2 },
        2 => {
            let check = *[KeptCheck::Undone, KeptCheck::HalfMinute].choose(rng).unwrap();
            EventKind::Kept { id, check, share: rng.random() }
        }
        3 => EventKind::Replacement { id, tokens: vec![rng.random_range(0..9)] },
        4 => {
            let arms = trial.map_or((1, 0), |arms| (arms.candidate, arms.incumbent));
            let logprobs = vec![(arms.0, -rng.random::<f32>()), (arms.1, -rng.random::<f32>())];
            let greedy = [arms.0, arms.1].into_iter().filter(|_| rng.random()).collect();
            EventKind::Compared { id, tokens: 2, logprobs, greedy }
        }
        _ => {
            let outcome = *outcome.choose(rng).unwrap();
            EventKind::Outcome { id, outcome, evidence: *evidence.choose(rng).unwrap() }
        }
    }
}

fn fresh(log: &dyn EventLog, inputs: &DerivedInputs) -> DerivedState {
    // A log without a checkpoint.
    let bare = MemoryLog::default();
    log.scan(0, &mut |event| {
        bare.append(event.at_ms, event.kind).unwrap();
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    DerivedState { new_events: 0, ..DerivedState::of(&bare, inputs).unwrap() }
}

/// Runs a random scenario. Returns whether the state was derived from a checkpoint.
fn scenario(seed: u64, events: u64) -> bool {
    let mut rng = StdRng::seed_from_u64(seed);
    let log = MemoryLog::default();
    let mut inputs = DerivedInputs {
        model_sha256: MODEL.into(),
        learned_through: None,
        left_out: HashSet::new(),
        trial: None,
        prior: shipped(),
    };
    let cuts = [0.002, 0.0005][usize::from(events > LONGEST)];
    for seq in 0..events {
        let number = rng.random_range(seq.saturating_sub(400)..=seq);
        let id = format!("o{number}");
        let kind = if number == seq || rng.random_bool(0.3) {
            completion(&mut rng, format!("o{seq}"), inputs.trial, 2)
        } else {
            outcome_event(&mut rng, id, inputs.trial)
        };
        log.append(seq, kind).unwrap();
        if rng.random_bool(cuts) {
            DerivedState::write_checkpoint(&log, &inputs).unwrap();
        }
        if rng.random_bool(cuts) {
            inputs.trial = match inputs.trial {
                None => Some(Arms { candidate: 2, incumbent: 1, since: seq + 1 }),
                Some(arms) if rng.random() => Some(Arms { candidate: arms.candidate + 1, ..arms }),
                Some(_) => None,
            };
        }
        if seq % LEARNS_EVERY == 0 && rng.random_bool(0.8) {
            let behind = rng.random_range(0..=seq.min(LEARNS_EVERY));
            inputs.learned_through = inputs.learned_through.max(Some(seq - behind));
            // The next update learns from what one has left out, or leaves it out again.
            if rng.random() {
                inputs.left_out.clear();
            }
            let from = seq.saturating_sub(LEARNS_EVERY);
            inputs.left_out.extend((0..3).map(|_| format!("o{}", rng.random_range(from..=seq))));
        }
    }
    let mut continued = DerivedState::of(&log, &inputs).unwrap();
    let new_events = std::mem::take(&mut continued.new_events);
    assert!(continued == fresh(&log, &inputs), "seed {seed}");
    new_events < events
}

#[test]
fn a_checkpoint_changes_nothing_about_the_derived_state() {
    let scenarios = (0..SCENARIOS).filter(|seed| scenario(*seed, 50 + seed * LONGEST / SCENARIOS));
    let used_checkpoint = scenarios.count() as u64;
    assert!(
        used_checkpoint > SCENARIOS / 2,
        "too few scenarios used a checkpoint to show anything: {used_checkpoint}"
    );
    assert!(scenario(SCENARIOS, LONG));
}

/// The test above would also pass if every start read the whole log. This test would not.
#[test]
fn events_before_the_checkpoint_are_not_read_again() {
    let log = MemoryLog::default();
    let mut rng = StdRng::seed_from_u64(1);
    let append = |rng: &mut StdRng, from: u64, to: u64| {
        (from..to).for_each(|i| {
            log.append(i, completion(rng, format!("o{i}"), None, 2)).unwrap();
        });
    };
    append(&mut rng, 0, 100);
    let mut inputs = DerivedInputs {
        model_sha256: MODEL.into(),
        learned_through: Some(50),
        left_out: HashSet::new(),
        trial: None,
        prior: shipped(),
    };
    DerivedState::write_checkpoint(&log, &inputs).unwrap();
    append(&mut rng, 100, 130);
    let read = |inputs: &DerivedInputs| DerivedState::of(&log, inputs).unwrap().new_events;
    assert_eq!(read(&inputs), 30);
    inputs.learned_through = Some(90);
    assert_eq!(read(&inputs), 30, "an update after the checkpoint");
    inputs.trial = Some(Arms { candidate: 1, incumbent: 0, since: 100 });
    assert_eq!(read(&inputs), 30, "a trial after the checkpoint");

    let unlike = [
        DerivedInputs { learned_through: Some(49), ..inputs.clone() },
        DerivedInputs { learned_through: None, ..inputs.clone() },
        DerivedInputs { model_sha256: "another".into(), ..inputs.clone() },
        DerivedInputs { prior: assumed(), ..inputs.clone() },
        DerivedInputs {
            trial: Some(Arms { candidate: 1, incumbent: 0, since: 99 }),
            ..inputs.clone()
        },
    ];
    for unlike in unlike {
        assert_eq!(read(&unlike), 130, "{unlike:?}");
        let all = DerivedState { new_events: 0, ..DerivedState::of(&log, &unlike).unwrap() };
        assert!(all == fresh(&log, &unlike));
    }
    let mut checkpoint = log.checkpoint().unwrap().unwrap();
    checkpoint.content[0] += 1;
    assert!(log.save_checkpoint(&checkpoint).unwrap());
    assert_eq!(read(&inputs), 130, "another format");
    checkpoint.content.truncate(40);
    checkpoint.content[0] -= 1;
    assert!(log.save_checkpoint(&checkpoint).unwrap());
    assert_eq!(read(&inputs), 130, "cut short");
    DerivedState::write_checkpoint(&log, &inputs).unwrap();
    assert_eq!(read(&inputs), 0, "after a new checkpoint");
    log.retain(&|event| event.seq != 7).unwrap();
    assert_eq!(read(&inputs), 129, "something was forgotten");
}

/// No time is asserted. `cargo xtask soak` prints the times for docs/lab/long-runs.md.
#[test]
fn soak_a_start_on_a_long_log_reads_only_new_events() {
    let events = match std::env::var("HONE_SOAK").ok().and_then(|share| share.parse::<f64>().ok()) {
        Some(share) => ((EVENTS_LONG as f64 * share) as u64).max(EVENTS),
        None => EVENTS,
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.sled");
    let inputs = DerivedInputs {
        model_sha256: MODEL.into(),
        learned_through: Some(events),
        left_out: HashSet::new(),
        trial: None,
        prior: shipped(),
    };
    let mut rng = StdRng::seed_from_u64(5);
    let mut append = |log: &SledLog, from: u64, to: u64| {
        for seq in from..to {
            let kind = match seq % 3 {
                0 => completion(&mut rng, format!("o{seq}"), None, PROMPT_TOKENS),
                _ => outcome_event(&mut rng, format!("o{}", seq - seq % 3), None),
            };
            log.append(seq, kind).unwrap();
        }
        log.flush().unwrap();
    };
    let start = |what: &str| {
        let begun = Instant::now();
        let log = SledLog::open(&path).unwrap();
        let opened = begun.elapsed().as_secs_f64();
        let derived = DerivedState::of(&log, &inputs).unwrap();
        let (new_events, ready) = (derived.new_events, begun.elapsed().as_secs_f64());
        eprintln!("{what}: log open {opened:.2} s, ready {ready:.2} s, {new_events} events read");
        (log, derived)
    };
    append(&SledLog::open(&path).unwrap(), 0, events - NEW_EVENTS);
    let (log, derived) = start("a start without a checkpoint");
    assert_eq!(derived.new_events, events - NEW_EVENTS);
    let begun = Instant::now();
    let checkpoint = derived.checkpoint(log.generation()).unwrap();
    log.save_checkpoint(&checkpoint).unwrap();
    let (took, bytes) = (begun.elapsed().as_secs_f64(), checkpoint.content.len());
    eprintln!("checkpoint written in {took:.2} s, {} KiB", bytes >> 10);
    append(&log, events - NEW_EVENTS, events);
    drop(log);
    for what in ["the next start", "the one after"] {
        assert_eq!(start(what).1.new_events, NEW_EVENTS);
    }
}
