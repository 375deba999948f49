//! Tests of what only the whole process shows: trials, checkpoints and forgetting.

mod year;

use super::*;
use crate::testing;
use adapters::import::ImportedFile;
use adapters::registry::Registry;
use adapters::registry::adoption::{Basis, Outdated};
use adapters::testing::adapter;
use completion::document::{Document, Position};
use engine::scripted::ScriptedEngine;
use engine::{Engine, EngineError, Request};
use feedback::clock::ManualClock;
use feedback::event::{AdapterVersion, Event, EventKind, Evidence, Outcome};
use feedback::log::{EventLog, LogError, MemoryLog};
use feedback::sled_log::SledLog;
use fixtures::forgettable::{self, Disk};
use fixtures::{HookedEngine, completion, home};
use models::file::faults::FailingWrite;
use privacy::forget_scope::Scope;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use report::layout::Layout;
use report::status::screen;
use ropey::Rope;
use services::derived_state::{CHECKPOINT_EVENTS, DerivedInputs, DerivedState};
use session::request::Trigger;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const CURSOR: Position = Position { line: 1, column: 4 };
const ANSWERS: &[&str] = &["call(x);", "call(y);", "close();"];
const AUTOMATIC: Trigger = Trigger::Automatic;

/// A trial of a candidate whose adapter answers `learned`. Returns the adapter that serves
/// afterwards, and the status screen.
async fn trial_of(learned: &'static [&'static str]) -> (AdapterVersion, String) {
    let engine = ScriptedEngine { learned: Some(learned), ..fixtures::engine(ANSWERS) };
    let (_folder, home) = home();
    let clock = Arc::new(ManualClock::starting_at(0));
    let mut config = Config::default();
    config.gate.enabled = false;
    let log = Arc::new(MemoryLog::default());
    let app = testing::app::start(&home, config, engine, clock, log).await;
    assert_eq!(testing::app::try_first_adapter(&app, |_| Ok(())).await.unwrap(), None);
    testing::app::accept_until_the_trial_ends(&app).await;
    (app.services.adapters.serving().active(), screen(&app.status(), Layout::UNLIMITED))
}

#[tokio::test]
async fn the_status_names_the_model_for_next_edits() {
    let (_folder, home) = home();
    let mut config = Config::default();
    config.completion.next_edit_model = Some("sweep-next-edit-0.5b".into());
    let (clock, log) = (Arc::new(ManualClock::starting_at(0)), Arc::new(MemoryLog::default()));
    let app = testing::app::start(&home, config, fixtures::engine(ANSWERS), clock, log).await;
    let told = screen(&app.status(), Layout::UNLIMITED);
    let missing = "sweep-next-edit-0.5b, not here: run `hone model pull sweep-next-edit-0.5b`";
    assert!(told.contains(missing), "{told}");
}

#[tokio::test]
async fn a_restart_that_would_end_completions_is_not_recommended() {
    let (_folder, home) = home();
    let app = testing::app::start_in(&home).await;
    let mut config = Config::default();
    config.model.name = Some("qwen2.5-coder-1.5b".into());
    app.services.settings.replace(config);
    let mut status = app.status();
    let told = screen(&status, Layout::UNLIMITED);
    assert!(told.contains("; `hone restart` takes the changed settings"), "{told}");
    let trouble = "qwen2.5-coder-1.5b is chosen and not here: run `hone model pull`";
    status.restart_trouble = Some(trouble.into());
    let told = screen(&status, Layout::UNLIMITED);
    assert!(told.contains(trouble) && !told.contains("hone restart"), "{told}");
}

#[tokio::test]
async fn a_hack_ends_its_trial_and_the_status_names_it() {
    let (serves, screen) = trial_of(&["});"]).await;
    assert_eq!(serves, 0);
    assert!(screen.contains("closing brackets"), "{screen}");
    let (serves, screen) = trial_of(&[""]).await;
    assert_eq!(serves, 0);
    assert!(screen.contains("seldom offers anything"), "{screen}");
}

/// Labels of a model on which Hone does not learn wait for nothing.
#[tokio::test]
async fn a_model_that_only_serves_says_so_and_starts_no_update() {
    let (_folder, home) = home();
    let model =
        ServedModel { architecture: "mamba".into(), ..fixtures::scripted::scripted_model() };
    let engine = fixtures::engine(ANSWERS);
    let engine = EngineHandle::start(move || Ok(engine), |_| (), Default::default()).unwrap();
    let (clock, log) = (Arc::new(ManualClock::starting_at(0)), Arc::new(MemoryLog::default()));
    let app = App::start(&home, Config::default(), model, engine, clock, log, None).await.unwrap();
    let refusal = app.services.adapters.learning_refusal().unwrap();
    assert!(refusal.starts_with("nothing is learned: Hone serves mamba models"), "{refusal}");
    let screen = screen(&app.status(), Layout::UNLIMITED);
    assert!(screen.contains("does not learn on them; `hone model list` shows"), "{screen}");
    assert!(!screen.contains("until the next update"), "{screen}");
}

const CANARY: &str = "/project/canary7391.rs";

async fn app(home: &Paths) -> Arc<App> {
    let log = Arc::new(SledLog::open(&home.event_log()).unwrap());
    let clock = Arc::new(ManualClock::starting_at(0));
    testing::app::start(home, Config::default(), fixtures::engine(&["x"]), clock, log).await
}

/// There may be too little memory for the candidate of a trial when the model is loaded again.
#[tokio::test]
async fn where_a_candidate_cannot_answer_the_adapter_that_serves_does() {
    let (_folder, home) = home();
    let generate = |scripted: &mut ScriptedEngine, request: &Request, abort: &AtomicBool| {
        match request.adapter {
            1 => Err(EngineError::NotFinite(1)),
            _ => scripted.generate(request, abort),
        }
    };
    let scripted = fixtures::engine(&["x"]);
    let engine = HookedEngine { generate: Box::new(generate), ..scripted.hooked() };
    let (clock, log) = (Arc::new(ManualClock::starting_at(0)), Arc::new(MemoryLog::default()));
    let app = testing::app::start(&home, Config::default(), engine, clock, log).await;
    assert_eq!(testing::app::try_first_adapter(&app, |_| Ok(())).await.unwrap(), None);
    let session = app.session();
    for place in 0..5 {
        let uri = format!("file:///{place}.rs");
        let text = Rope::from_str("fn a() {\n    \n}\n");
        let (path, language) = (uri.clone(), "rust".into());
        session.open(uri.clone(), Document { path, language, version: 1, text });
        session.complete(&uri, CURSOR, AUTOMATIC, None).await.unwrap();
    }
    let mut answered = vec![];
    let note = &mut |event: Event| {
        if let EventKind::Completion(completion) = event.kind {
            answered.push((completion.adapter, completion.decision.arm.is_some()));
        }
        ControlFlow::Continue(())
    };
    app.services.recorder.log().scan(0, note).unwrap();
    assert!(answered.len() == 5 && answered.iter().all(|(adapter, _)| *adapter == 0));
    assert!(answered.contains(&(0, false)), "an answer in its place is none of the trial");
    let told = app.services.health.latest().unwrap();
    assert_eq!(told, "adapter v1 cannot answer, so the model does; its trial waits meanwhile");
}

/// Waits for the checkpoint, which another thread writes. Returns its log position.
async fn checkpointed(app: &App) -> u64 {
    loop {
        if let Some(checkpoint) = app.services.recorder.log().checkpoint().unwrap() {
            return checkpoint.next_seq;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn is_in_files_of(folder: &Path, text: &str) -> bool {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).any(|path| {
        if path.is_dir() {
            is_in_files_of(&path, text)
        } else {
            let bytes = std::fs::read(&path).unwrap_or_default();
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checkpoints_are_written_regularly_and_hold_nothing_that_is_forgotten() {
    let (folder, home) = home();
    let first = app(&home).await;
    for number in 0..CHECKPOINT_EVENTS {
        let path = if number % 7 == 0 { CANARY } else { "/project/kept.rs" };
        first.services.recorder.record(vec![completion(&format!("o{number}"), path)]);
    }
    assert_eq!(checkpointed(&first).await, CHECKPOINT_EVENTS);
    let checkpoint = first.services.recorder.log().checkpoint().unwrap().unwrap();
    let content = String::from_utf8(checkpoint.content).unwrap();
    assert!(
        content.contains(CANARY),
        "the checkpoint must hold the path, or the test shows nothing"
    );

    let names = vec![CANARY.to_owned()];
    first.forget(Scope::File { names }).await.unwrap();
    assert!(!is_in_files_of(folder.path(), CANARY));
    assert_eq!(
        first.services.recorder.counts().total,
        CHECKPOINT_EVENTS - CHECKPOINT_EVENTS.div_ceil(7)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_daemon_knows_what_the_last_one_did() {
    let (_folder, home) = home();
    {
        let log = SledLog::open(&home.event_log()).unwrap();
        for number in 0..CHECKPOINT_EVENTS + 10 {
            log.append(number, completion(&format!("o{number}"), "/project/a.rs")).unwrap();
        }
        log.flush().unwrap();
    }
    let first = app(&home).await;
    assert_eq!(
        checkpointed(&first).await,
        CHECKPOINT_EVENTS + 10,
        "all of it was read at the start"
    );
    first.services.recorder.record(vec![completion("late", "/project/a.rs")]);
    first.services.recorder.flush().await.unwrap();
    let counts = first.services.recorder.counts();
    drop(first);
    let second = app(&home).await;
    assert_eq!(second.services.recorder.counts(), counts);
    assert_eq!(second.services.recorder.next_seq(), CHECKPOINT_EVENTS + 11);
}

/// Forgetting withdrew adapters first, which a registry that cannot be read refuses. So
/// nothing could be forgotten until the user had moved the folder away by hand.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_forgotten_though_the_registry_cannot_be_read() {
    for scope in [Scope::File { names: vec!["/secret.rs".into()] }, Scope::All] {
        let (_folder, home) = home();
        let (registry, adapter) =
            (home.adapters().join("registry.json"), home.adapters().join("v0001.gguf"));
        std::fs::write(&registry, "{\"format\": 99}").unwrap();
        std::fs::write(&adapter, "the first adapter").unwrap();
        let app = testing::app::start_in(&home).await;
        let recorder = &app.services.recorder;
        recorder.record(vec![completion("o", "/secret.rs")]);
        let plan = app.plan_to_forget(scope.clone()).await.unwrap();
        let done = app.forget(scope).await.unwrap();
        assert_eq!((done.events, done.offers, &done), (1, 1, &plan));
        let note = done.adapters_left.unwrap();
        assert!(note.contains(&home.adapters().display().to_string()), "{note}");
        assert!(note.contains("update Hone") && note.contains("may have learned"), "{note}");
        assert_eq!(recorder.counts().total, 0);
        let mut events = 0;
        let count = &mut |_| {
            events += 1;
            std::ops::ControlFlow::Continue(())
        };
        recorder.log().scan(0, count).unwrap();
        assert_eq!(events, 0);
        assert_eq!(std::fs::read_to_string(&registry).unwrap(), "{\"format\": 99}");
        assert_eq!(std::fs::read(&adapter).unwrap(), b"the first adapter");
    }
}

/// A trial's first log position was read before the registry was written, and the trial
/// began after that. A verdict in between belonged to what is known of the incumbent
/// while the daemon ran, and to the trial when the log was read at the next start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trial_is_the_same_after_a_restart() {
    let (_folder, home) = home();
    let app = testing::app::start_in(&home).await;
    let recorder = app.services.recorder.clone();
    let verdict = |id: &str| {
        let (outcome, evidence) = (Outcome::Accepted, Evidence::Command);
        recorder.record(vec![completion(id, "/a.rs")]);
        recorder.record(vec![EventKind::Outcome { id: id.into(), outcome, evidence }]);
    };
    verdict("before");
    let between = |_: &Registry| {
        verdict("between");
        Ok(())
    };
    assert_eq!(testing::app::try_first_adapter(&app, between).await.unwrap(), None);
    verdict("after");
    let inputs = DerivedInputs::of(&app.services.adapters.serving(), "base");
    let read = DerivedState::of(&**recorder.log(), &inputs).unwrap();
    assert!(read.learned_state.trial.is_some());
    let live = recorder.learned_state(|state| state.trial.clone());
    assert_eq!(live, read.learned_state.trial);
}

/// A log whose disk is full from time to time.
#[derive(Default)]
struct LogOnFullDisk {
    log: MemoryLog,
    is_full: AtomicBool,
}

impl EventLog for LogOnFullDisk {
    fn append(&self, at_ms: u64, kind: EventKind) -> Result<Event, LogError> {
        if self.is_full.load(Ordering::Relaxed) {
            return Err(LogError::Write { path: "log".into(), reason: "no space left".into() });
        }
        self.log.append(at_ms, kind)
    }

    fn number_from(&self, next_seq: u64) -> Result<(), LogError> {
        self.log.number_from(next_seq)
    }

    fn flush(&self) -> Result<(), LogError> {
        self.log.flush()
    }

    fn scan(
        &self,
        from_seq: u64,
        visit: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<(), LogError> {
        self.log.scan(from_seq, visit)
    }

    fn retain(&self, keep: &(dyn Fn(&Event) -> bool + Sync)) -> Result<(), LogError> {
        self.log.retain(keep)
    }
}

/// The disk was full for a moment: while an offer was made, or while the text of the offer came
/// into the document. The editor confirms the acceptance afterwards. Returns what the editor is
/// told and the outcomes in the log.
async fn accepted_over_a_full_disk(while_offered: bool) -> (Result<()>, Vec<Outcome>) {
    let (_folder, home) = home();
    let mut config = Config::default();
    config.gate.enabled = false;
    let log = Arc::new(LogOnFullDisk::default());
    let clock = Arc::new(ManualClock::starting_at(0));
    let engine = fixtures::engine(ANSWERS);
    let app = testing::app::start(&home, config, engine, clock, log.clone()).await;
    let (session, recorder) = (app.session(), &app.services.recorder);
    let text = Rope::from_str("fn a() {\n    \n}\n");
    let (path, language) = ("/a.rs".into(), "rust".into());
    session.open("file:///a.rs".into(), Document { path, language, version: 1, text });
    log.is_full.store(while_offered, Ordering::Relaxed);
    let offer = session
        .complete("file:///a.rs", CURSOR, AUTOMATIC, None)
        .await
        .unwrap()
        .suggestions
        .remove(0);
    log.is_full.store(true, Ordering::Relaxed);
    session.change("file:///a.rs", 2, vec![(Some((CURSOR, CURSOR)), offer.text)]).unwrap();
    assert!(recorder.has_outage());
    log.is_full.store(false, Ordering::Relaxed);
    let change = app.services.adapters.try_change().unwrap();
    let inputs = DerivedInputs::of(change.registry(), &app.services.adapters.model().sha256);
    recorder.read_again(&inputs).unwrap();
    recorder.end_outage();
    let told = recorder.record_durably(|| session.accepted(&offer.id)).await;
    let mut outcomes = vec![];
    let mut look = |event: Event| {
        if let EventKind::Outcome { outcome, .. } = event.kind {
            outcomes.push(outcome);
        }
        ControlFlow::Continue(())
    };
    log.scan(0, &mut look).unwrap();
    (told, outcomes)
}

/// The disk was full while the accepted text came into the document and had room when the editor
/// confirmed the acceptance. The confirmation was answered with success, and nothing was recorded.
#[tokio::test]
async fn an_acceptance_that_is_confirmed_after_the_disk_was_full_is_in_the_log() {
    let (told, outcomes) = accepted_over_a_full_disk(false).await;
    assert!(told.is_ok(), "{told:?}");
    assert_eq!(outcomes, [Outcome::Accepted]);
}

#[tokio::test]
async fn the_acceptance_of_an_offer_that_was_never_recorded_is_an_error() {
    let (told, outcomes) = accepted_over_a_full_disk(true).await;
    assert!(told.unwrap_err().to_string().contains("could not be written"));
    assert_eq!(outcomes, []);
}

/// Settings with which nothing is forgotten by itself in the middle of a test.
fn without_retention() -> Config {
    let mut config = Config::default();
    config.privacy.retention_days = 0;
    config
}

/// The same in a daemon as in the files (see the test of the command): what an attempt left in
/// memory counts for nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_could_not_be_forgotten_is_forgotten_by_the_next_attempt() {
    let scope = forgettable::scope();
    let mut expected = None;
    for number in 0.. {
        let (folder, home) = home();
        forgettable::fill(&home, "base");
        let log = Arc::new(SledLog::open(&home.event_log()).unwrap());
        let (engine, clock) = (fixtures::engine(&["x"]), Arc::new(ManualClock::starting_at(0)));
        let app = testing::app::start(&home, without_retention(), engine, clock, log).await;
        forgettable::leave(&home);
        let disk = || Disk::of(&home, &**app.services.recorder.log());
        let expected = match &expected {
            Some(expected) => expected,
            None => {
                app.forget(scope.clone()).await.unwrap();
                assert!(disk().has_forgotten(), "{:?}", disk());
                assert_eq!(app.services.adapters.serving().active(), 1);
                expected = Some(disk());
                continue;
            }
        };
        let fault = FailingWrite::arm(folder.path(), number - 1);
        let first = app.forget(scope.clone()).await;
        let has_failed = fault.has_failed();
        drop(fault);
        let on_disk = Registry::open(&home.adapters(), "base").0.active();
        assert_eq!(app.services.adapters.serving().active(), on_disk, "write {number}");
        if first.is_ok() {
            assert_eq!(&disk(), expected, "write {number} failed silently");
        }
        app.forget(scope.clone()).await.unwrap();
        assert_eq!(&disk(), expected, "write {number}");
        assert_eq!(app.services.recorder.counts().total, 1, "write {number}");
        if !has_failed {
            return;
        }
    }
}

/// Only the first event was looked at, so one that was recorded while the clock was ahead kept all
/// that came after it.
#[tokio::test]
async fn whatever_the_clock_showed_old_events_are_forgotten() {
    const DAY_MS: u64 = 24 * 60 * 60 * 1000;
    const DAYS: u32 = 30;
    for seed in 0..20 {
        let (_folder, home) = home();
        let (log, mut rng) = (Arc::new(MemoryLog::default()), StdRng::seed_from_u64(seed));
        let mut dates: Vec<u64> = (0..20).map(|_| rng.random_range(0..400)).collect();
        // One is from a clock that ran ahead, and comes first.
        (dates[0], dates[1]) = (900, 3);
        for (number, day) in dates.iter().enumerate() {
            let path = "/project/a.rs";
            log.append(day * DAY_MS, completion(&format!("o{number}"), path)).unwrap();
        }
        let clock = Arc::new(ManualClock::starting_at(200 * DAY_MS));
        let engine = fixtures::engine(&["x"]);
        let app = testing::app::start(&home, without_retention(), engine, clock, log.clone()).await;
        let checked = |day: u64| retention::forget_older(&app, DAYS, day * DAY_MS);
        checked(199).await.unwrap();
        checked(200).await.unwrap();
        let mut left = vec![];
        log.scan(0, &mut |event| {
            left.push(event.at_ms / DAY_MS);
            ControlFlow::Continue(())
        })
        .unwrap();
        let is_younger = |day: &u64| *day >= 200 - u64::from(DAYS);
        assert!(left.iter().all(is_younger), "seed {seed}: {dates:?} became {left:?}");
        let right =
            |days: &[u64]| days.iter().filter(|day| is_younger(day) && **day <= 200).count();
        assert_eq!(right(&left), right(&dates), "seed {seed}: {dates:?} became {left:?}");
        assert!(!left.contains(&900), "it was recorded before the one of day 3");
    }
}

/// The prompts of offers that were old enough to be forgotten stayed on disk.
#[tokio::test]
async fn with_old_events_the_computed_prompts_go() {
    const DAY_MS: u64 = 24 * 60 * 60 * 1000;
    let (_folder, home) = home();
    let log = Arc::new(MemoryLog::default());
    log.append(100 * DAY_MS, completion("o", "/project/a.rs")).unwrap();
    let clock = Arc::new(ManualClock::starting_at(110 * DAY_MS));
    let engine = fixtures::engine(&["x"]);
    let app = testing::app::start(&home, without_retention(), engine, clock, log).await;
    std::fs::create_dir_all(home.prompts()).unwrap();
    let prompt = home.prompts().join("prompt");
    std::fs::write(&prompt, "numbers").unwrap();
    let checked = |day: u64| retention::forget_older(&app, 30, day * DAY_MS);
    checked(109).await.unwrap();
    checked(110).await.unwrap();
    assert!(prompt.exists(), "nothing is old");
    for day in 111..140 {
        checked(day).await.unwrap();
    }
    assert_eq!(app.services.recorder.counts().total, 0);
    assert!(!prompt.exists());
}

/// What was scored while it was forgotten was recorded all the same, under the forgotten offer.
#[tokio::test]
async fn nothing_is_recorded_that_was_derived_from_what_is_forgotten() {
    let (_folder, home) = home();
    let app = testing::app::start_in(&home).await;
    let recorder = &app.services.recorder;
    recorder.record(vec![completion("o", "/project/a.rs")]);
    let id = "o".to_owned();
    let compared = EventKind::Compared { id, tokens: 1, logprobs: vec![], greedy: vec![] };
    let before = recorder.log().generation();
    app.forget(Scope::All).await.unwrap();
    recorder.record_derived(compared.clone(), before);
    let first = recorder.first_seq().unwrap();
    assert_eq!(recorder.next_seq(), first, "the log is empty");
    recorder.record_derived(compared, recorder.log().generation());
    let first = recorder.first_seq().unwrap();
    assert_eq!(recorder.next_seq(), first + 1, "without this the test could not fail");
}

async fn adopt(app: &App, basis: Basis) -> Result<AdapterVersion, Outdated> {
    let file = ImportedFile::write(&app.paths.adapters(), &adapter("base")).unwrap();
    app.adopt_file(file, None, basis).await.unwrap()
}

/// What was compared for minutes was adopted whatever served by then, and although something that
/// it had learned from was forgotten.
#[tokio::test]
async fn an_adoption_is_refused_once_something_else_serves_or_was_forgotten() {
    let (_folder, home) = home();
    let (log, clock) = (Arc::new(MemoryLog::default()), Arc::new(ManualClock::starting_at(0)));
    let engine = fixtures::engine(&["x"]);
    let app = testing::app::start(&home, without_retention(), engine, clock, log).await;
    let basis = || {
        let registry = app.services.adapters.serving();
        Basis { compared_with: registry.active(), generation: registry.generation() }
    };
    let first = basis();
    assert_eq!(adopt(&app, first).await, Ok(1));
    assert_eq!(app.services.adapters.serving().active(), 1);
    assert_eq!(adopt(&app, first).await, Err(Outdated::Serves(1)));
    let before = basis();
    // Nothing is recorded about it, and a history may have been learned from all the same.
    app.forget(Scope::File { names: vec!["/p/a.rs".into()] }).await.unwrap();
    assert_eq!(adopt(&app, before).await, Err(Outdated::Forgotten));
    assert_eq!(adopt(&app, basis()).await, Ok(2));
    let left = std::fs::read_dir(home.adapters()).unwrap();
    let names = left.map(|file| file.unwrap().file_name().to_string_lossy().into_owned());
    assert!(names.into_iter().all(|name| !name.starts_with("import-")), "refused files are gone");
}
