use super::store::EVENTS;
use super::*;
use crate::event::{EVENT_FORMAT, KeptCheck};
use crate::testing::accepted;
use models::file::faults::FailingWrite;
use models::file::with_suffix;

fn all(log: &dyn EventLog) -> Vec<Event> {
    let mut events = Vec::new();
    log.scan(0, &mut |event| {
        events.push(event);
        ControlFlow::Continue(())
    })
    .unwrap();
    events
}

#[test]
fn events_come_back_in_order_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.sled");
    let mut written = Vec::new();
    for round in 0..2 {
        let log = SledLog::open(&path).unwrap();
        for i in 0..300 {
            written.push(log.append(i, accepted(&format!("{round}-{i}"))).unwrap());
        }
        log.flush().unwrap();
    }
    assert_eq!(all(&SledLog::open(&path).unwrap()), written);
}

#[test]
fn a_second_process_is_told_who_holds_the_log_and_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let _first = SledLog::open(dir.path()).unwrap();
    let second = SledLog::open(dir.path()).map(drop).unwrap_err();
    assert!(matches!(second, LogError::InUse { .. }), "{second}");
    assert!(second.to_string().contains("hone stop"));
}

#[test]
fn a_record_of_a_newer_hone_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let newer = vec![EVENT_FORMAT + 1, b'?'];
    store.events.insert(7u64.to_be_bytes(), newer.clone()).unwrap();
    drop(store);
    let error = SledLog::open(dir.path()).map(drop).unwrap_err();
    assert!(matches!(error, LogError::NewerFormat { seq: 7, .. }), "{error}");
    let db = sled::open(dir.path()).unwrap();
    let kept = db.open_tree(EVENTS).unwrap().get(7u64.to_be_bytes()).unwrap().unwrap();
    assert_eq!(kept.as_ref(), newer);
}

/// Every byte of every file below a folder.
fn bytes_below(folder: &Path) -> Vec<u8> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(
            |path| {
                if path.is_dir() { bytes_below(&path) } else { std::fs::read(&path).unwrap() }
            },
        )
        .collect()
}

fn holds(folder: &Path, text: &str) -> bool {
    bytes_below(folder).windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn forgotten_events_are_gone_from_the_disk_and_their_numbers_are_not_given_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.sled");
    let log = SledLog::open(&path).unwrap();
    let long = "keep-".repeat(2_000);
    for i in 0..200 {
        let id = if i % 3 == 2 { format!("canary-{i}") } else { format!("{long}{i}") };
        log.append(i, accepted(&id)).unwrap();
    }
    log.flush().unwrap();
    assert!(holds(dir.path(), "canary-"), "without this the test could not fail");
    let kept: Vec<_> = all(&log)
        .into_iter()
        .filter(|event| !event.kind.offer_id().starts_with("canary"))
        .collect();

    log.retain(&|event| !event.kind.offer_id().starts_with("canary")).unwrap();
    assert!(!holds(dir.path(), "canary-"));
    assert_eq!(all(&log), kept);
    log.retain(&|event| event.seq < 100).unwrap();
    drop(log);
    let log = SledLog::open(&path).unwrap();
    assert_eq!(all(&log), kept[..67]);
    assert_eq!(log.append(0, accepted("next")).unwrap().seq, 200);
}

#[test]
fn events_appended_during_a_rewrite_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.sled");
    let log = SledLog::open(&path).unwrap();
    for i in 0..500 {
        log.append(i, accepted("early")).unwrap();
    }
    std::thread::scope(|scope| {
        let appending = scope.spawn(|| {
            for i in 0..500 {
                log.append(i, accepted("late")).unwrap();
            }
        });
        log.retain(&|event| event.kind.offer_id() != "early").unwrap();
        appending.join().unwrap();
    });
    let late = all(&log);
    assert!(late.len() == 500 && late.iter().all(|event| event.kind.offer_id() == "late"));
    assert!(late.is_sorted_by_key(|event| event.seq));
}

/// Saves a checkpoint, and returns it.
fn saved(log: &SledLog, next_seq: u64) -> Checkpoint {
    let checkpoint =
        Checkpoint { generation: log.generation(), next_seq, content: b"canary".to_vec() };
    assert!(log.save_checkpoint(&checkpoint).unwrap());
    checkpoint
}

#[test]
fn a_checkpoint_comes_back_until_something_is_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.sled");
    let log = SledLog::open(&path).unwrap();
    for i in 0..10 {
        log.append(i, accepted("a")).unwrap();
    }
    let checkpoint = saved(&log, 10);
    drop(log);
    let log = SledLog::open(&path).unwrap();
    assert_eq!(log.checkpoint().unwrap(), Some(checkpoint.clone()));
    log.retain(&|event| event.seq > 3).unwrap();
    assert!(!log.save_checkpoint(&checkpoint).unwrap(), "it holds what was forgotten meanwhile");
    assert!(log.checkpoint().unwrap().is_none() && !holds(dir.path(), "canary"));
}

/// A checkpoint can hold more than its log: after a crash during forgetting, after the
/// log was restored from a copy or begun anew, and after damage.
#[test]
fn a_checkpoint_of_another_log_is_removed_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.sled");
    let file = checkpoint::path_of(&path);
    let first = SledLog::open(&path).unwrap();
    first.append(0, accepted("a")).unwrap();
    let checkpoint = saved(&first, 1);
    first.retain(&|_| true).unwrap();
    checkpoint::write(&file, &checkpoint).unwrap();
    drop(first);
    let log = SledLog::open(&path).unwrap();
    assert!(log.checkpoint().unwrap().is_none() && !file.exists(), "it is of another generation");
    checkpoint::write(
        &file,
        &Checkpoint { generation: log.generation(), next_seq: 9, ..checkpoint },
    )
    .unwrap();
    drop(log);
    let log = SledLog::open(&path).unwrap();
    assert!(log.checkpoint().unwrap().is_none(), "it has events that are not in the log");
    saved(&log, 1);
    drop(log);
    std::fs::write(with_suffix(&file, ".tmp"), "canary").unwrap();
    Mark::open(mark_of(&path)).note(5).unwrap();
    let log = SledLog::open(&path).unwrap();
    assert!(log.damage().is_some() && log.checkpoint().unwrap().is_none());
    assert!(!holds(dir.path(), "canary"));
}

#[test]
fn a_log_that_is_opened_again_continues_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let log = SledLog::open(&dir.path().join("events.sled")).unwrap();
    let before: Vec<Event> = (0..10).map(|i| log.append(i, accepted("a")).unwrap()).collect();
    log.flush().unwrap();
    log.reopen().unwrap();
    assert_eq!(all(&log), before);
    assert_eq!(log.append(0, accepted("b")).unwrap().seq, 10);
}

#[test]
fn numbers_can_be_left_out_and_stay_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.sled");
    let log = SledLog::open(&path).unwrap();
    log.append(0, accepted("a")).unwrap();
    log.number_from(50).unwrap();
    log.number_from(7).unwrap();
    log.flush().unwrap();
    drop(log);
    let log = SledLog::open(&path).unwrap();
    assert!(log.damage().is_none(), "nothing is missing");
    assert_eq!(log.append(0, accepted("b")).unwrap().seq, 50);
}

/// JSON has no number that is not finite. Where one was written, `null` could not be read again.
#[test]
fn an_event_that_could_not_be_read_again_is_refused_and_the_log_continues() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.sled");
    let log = SledLog::open(&path).unwrap();
    for share in [f32::NAN, f32::INFINITY] {
        let id = "a".to_owned();
        let kept = EventKind::Kept { id, check: KeptCheck::HalfMinute, share };
        let error = log.append(0, kept).unwrap_err().to_string();
        assert!(error.contains("would not be readable"), "{error}");
    }
    log.append(1, accepted("b")).unwrap();
    drop(log);
    assert_eq!(all(&SledLog::open(&path).unwrap()).len(), 1);
}

#[test]
fn a_closed_log_stays_closed_and_can_be_opened_by_another() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.sled");
    let log = SledLog::open(&path).unwrap();
    let before = log.append(0, accepted("a")).unwrap();
    log.flush().unwrap();
    log.close();
    let another = SledLog::open(&path).unwrap();
    assert_eq!(all(&another), [before]);
    drop(another);
    let error = log.append(1, accepted("b")).unwrap_err().to_string();
    assert!(error.contains("this process ends"), "{error}");
    assert!(log.reopen().is_err() && log.append(1, accepted("b")).is_err());
    assert_eq!(all(&SledLog::open(&path).unwrap()).len(), 1);
}

/// The states in the table at the top of the module, as a crash at any point leaves them.
#[test]
fn an_interrupted_rewrite_is_finished_or_undone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.sled");
    let written = |at: &Path, id: &str| {
        SledLog::open(at).unwrap().append(0, accepted(id)).unwrap();
    };
    let only = |id: &str| {
        let events = all(&SledLog::open(&path).unwrap());
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].kind.offer_id(), id);
        assert!(!rewrite_of(&path).exists() && !forgotten_of(&path).exists());
    };
    written(&path, "old");
    written(&rewrite_of(&path), "half");
    only("old");

    written(&rewrite_of(&path), "new");
    std::fs::rename(&path, forgotten_of(&path)).unwrap();
    only("new");

    written(&forgotten_of(&path), "old");
    only("new");
}

/// A log with an event to keep and one to forget, a checkpoint that holds the second one, and a log
/// that was set aside and may hold it.
fn with_canary(folder: &Path) -> SledLog {
    let path = folder.join("events.sled");
    let aside = folder.join("events.sled.damaged-3");
    std::fs::create_dir(&aside).unwrap();
    std::fs::write(aside.join("db"), "canary").unwrap();
    let log = SledLog::open(&path).unwrap();
    log.append(0, accepted("kept")).unwrap();
    log.append(1, accepted("canary")).unwrap();
    saved(&log, 2);
    log
}

/// Each write of forgetting fails once, and from there on. What is kept is never lost, and the next
/// attempt removes the rest.
#[test]
fn forgetting_that_failed_anywhere_can_be_done_again() {
    let is_kept = |event: &Event| event.kind.offer_id() == "kept";
    let mut writes = 0;
    for fails_at in 0.. {
        for (arm, restarts) in [
            (FailingWrite::arm as fn(&Path, usize) -> _, false),
            (FailingWrite::arm_from, true),
            (FailingWrite::arm_from, false),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("events.sled");
            let mut log = with_canary(dir.path());
            let fault = arm(dir.path(), fails_at);
            let done = log.retain(&is_kept);
            let has_failed = fault.has_failed();
            drop(fault);
            assert_eq!(done.is_err(), has_failed, "write {fails_at}");
            writes = writes.max(fails_at);
            if restarts {
                drop(log);
                log = SledLog::open(&path).unwrap();
            } else {
                log.remove_others().unwrap();
            }
            assert!(all(&log).iter().any(is_kept), "write {fails_at}: what is kept is lost");
            log.remove_others().unwrap();
            log.retain(&is_kept).unwrap();
            assert!(all(&log).iter().all(is_kept), "write {fails_at}");
            assert!(!holds(dir.path(), "canary"), "write {fails_at}");
            if !has_failed {
                assert!(writes > 5, "there are too few writes to show anything: {writes}");
                return;
            }
        }
    }
}

/// Numbers were counted up to the first that was missing.
#[test]
fn a_log_that_was_set_aside_is_found_though_the_one_before_was_moved_away() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.sled");
    for name in ["events.sled.damaged-2", "events.sled.damaged-10", "events.sled.damaged-x"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    let numbers = |found: Vec<(u64, PathBuf)>| -> Vec<u64> {
        found.into_iter().map(|(number, _)| number).collect()
    };
    assert_eq!(numbers(files::set_aside_so_far(&path).unwrap()), [2, 10]);
    let log = SledLog::open(&path).unwrap();
    log.remove_others().unwrap();
    assert_eq!(numbers(files::set_aside_so_far(&path).unwrap()), Vec::<u64>::new());
    assert!(dir.path().join("events.sled.damaged-x").exists(), "it has no name of ours");
    drop(log);
    std::fs::create_dir(dir.path().join("events.sled.damaged-2")).unwrap();
    assert!(files::set_aside(&path).unwrap().ends_with("events.sled.damaged-3"));
}
