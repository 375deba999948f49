//! What only the whole process shows: trials, checkpoints and forgetting.

use super::*;
use crate::adapters::registry::Entry;
use crate::learning::trial_runner;
use crate::privacy::forget_scope::Scope;
use crate::report::offers::tests::completion;
use crate::report::status::screen;
use crate::services::checkpoint::EVERY_EVENTS;
use crate::session::request::Trigger;
use crate::testing;
use completion::document::{Document, Position};
use engine::scripted::ScriptedEngine;
use feedback::clock::ManualClock;
use feedback::log::{EventLog, MemoryLog};
use feedback::sled_log::SledLog;
use ropey::Rope;
use std::path::Path;
use std::time::Duration;

const CURSOR: Position = Position { line: 1, column: 4 };
const ANSWERS: &[&str] = &["call(x);", "call(y);", "close();"];
const AUTOMATIC: Trigger = Trigger::Automatic;

/// Types at many places with a candidate on trial that says `learned`, and
/// answers which adapter serves afterwards, and what the status says.
async fn trial_of(learned: &'static [&'static str]) -> (AdapterVersion, String) {
    let takes = Duration::ZERO;
    let engine = ScriptedEngine { answers: ANSWERS, learned: Some(learned), takes };
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path().into());
    home.create().unwrap();
    let clock = Arc::new(ManualClock::starting_at(0));
    let mut config = Config::default();
    config.gate.enabled = false;
    let log = Arc::new(MemoryLog::default());
    let app = testing::app::start(&home, config, engine, clock, log).await;
    let (session, adapters) = (app.session(), &app.services.adapters);
    let path = adapters.serving().adapter_file(1);
    std::fs::write(&path, "adapter").unwrap();
    let entry = Entry {
        version: 1,
        parent: 0,
        sha256: models::file::sha256(&path).unwrap(),
        base_sha256: "base".into(),
        created_at_ms: 0,
        labels: (0, 0),
        offers: None,
        forgotten: false,
        verdict: None,
        report: Default::default(),
    };
    let tried = trial_runner::try_candidate(&app.services, entry, |_| Ok(())).await;
    assert_eq!(tried.unwrap(), None);
    for place in 0..200 {
        let uri = format!("file:///{place}.rs");
        let text = Rope::from_str(&format!("fn a{place}() {{\n    \n}}\n"));
        let (path, language) = (uri.clone(), "rust".into());
        session.open(uri.clone(), Document { path, language, version: 1, text });
        let offers = session.complete(&uri, CURSOR, AUTOMATIC).await.unwrap();
        if let Some(offer) = offers.first() {
            // A hack pays: whatever is offered is taken.
            session.accepted(&offer.id).unwrap();
        }
        tokio::task::yield_now().await;
        if adapters.serving().trial().is_none() {
            break;
        }
    }
    (adapters.serving().active(), screen(&app.status()))
}

#[tokio::test]
async fn planted_hacks_end_their_trial_and_the_status_names_them() {
    let (serves, screen) = trial_of(&["});"]).await;
    assert_eq!(serves, 0);
    assert!(screen.contains("closing brackets"), "{screen}");
    let (serves, screen) = trial_of(&[""]).await;
    assert_eq!(serves, 0);
    assert!(screen.contains("goes silent"), "{screen}");
}

const CANARY: &str = "/project/canary7391.rs";

async fn app(home: &Home) -> Arc<App> {
    let engine = ScriptedEngine { answers: &["x"], learned: None, takes: Duration::ZERO };
    let log = Arc::new(SledLog::open(&home.event_log()).unwrap());
    let clock = Arc::new(ManualClock::starting_at(0));
    testing::app::start(home, Config::default(), engine, clock, log).await
}

/// Waits for what is done on another thread.
async fn kept(app: &App) -> u64 {
    loop {
        if let Some(checkpoint) = app.services.recorder.log().checkpoint().unwrap() {
            return checkpoint.next_seq;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn is_below(folder: &Path, text: &str) -> bool {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).any(|path| {
        match path.is_dir() {
            true => is_below(&path, text),
            false => {
                let bytes = std::fs::read(&path).unwrap_or_default();
                bytes.windows(text.len()).any(|window| window == text.as_bytes())
            }
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_written_down_by_itself_and_what_is_forgotten_is_gone_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path().into());
    home.create().unwrap();
    let first = app(&home).await;
    for number in 0..EVERY_EVENTS {
        let path = if number % 7 == 0 { CANARY } else { "/project/kept.rs" };
        first.services.recorder.record(vec![completion(&format!("o{number}"), path)]);
    }
    assert_eq!(kept(&first).await, EVERY_EVENTS);
    let checkpoint = first.services.recorder.log().checkpoint().unwrap().unwrap();
    let content = String::from_utf8(checkpoint.content).unwrap();
    assert!(content.contains(CANARY), "or this test tells nothing");

    let names = vec![CANARY.to_owned()];
    first.forget(Scope::File { names }).await.unwrap();
    assert!(!is_below(folder.path(), CANARY));
    assert_eq!(first.services.recorder.counts().total, EVERY_EVENTS - EVERY_EVENTS.div_ceil(7));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_daemon_knows_what_the_last_one_did() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path().into());
    home.create().unwrap();
    {
        let log = SledLog::open(&home.event_log()).unwrap();
        for number in 0..EVERY_EVENTS + 10 {
            log.append(number, completion(&format!("o{number}"), "/project/a.rs")).unwrap();
        }
        log.flush().unwrap();
    }
    let first = app(&home).await;
    assert_eq!(kept(&first).await, EVERY_EVENTS + 10, "all of it was read at the start");
    first.services.recorder.record(vec![completion("late", "/project/a.rs")]);
    first.services.recorder.flush().await.unwrap();
    let counts = first.services.recorder.counts();
    drop(first);
    let second = app(&home).await;
    assert_eq!(second.services.recorder.counts(), counts);
    assert_eq!(second.services.recorder.next_seq(), EVERY_EVENTS + 11);
}
