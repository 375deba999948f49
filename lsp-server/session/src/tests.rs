//! A session on a scripted engine: what it answers, records and lets go of.

mod canary;
mod documents;
mod locks;
mod notebooks;
mod reasons;
mod suggestion_list;
mod unserved;

use super::*;
use crate::request::CursorContext;
use engine::Engine;
use engine::scripted::ScriptedEngine;
use feedback::clock::{Clock, ManualClock};
use feedback::event::{Event, Outcome, StopReason, Typed};
use feedback::log::MemoryLog;
use fixtures::HookedEngine;
use host::paths::Paths;
use offers::REJECT_TIMEOUT_MS;
use ropey::Rope;
use services::snooze::Snooze;
use settings::Config;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

const URI: &str = "file:///a.rs";
const CURSOR: Position = Position { line: 1, column: 4 };
const ANSWERS: &[&str] = &["call(x);", "call(y);", "close();"];
const AUTOMATIC: Trigger = Trigger::Automatic;

/// A session on `fn a() {\n    |\n}\n` whose engine always answers the same.
async fn session(takes: Duration) -> (tempfile::TempDir, Arc<Session>) {
    session_with(ScriptedEngine { answers: ANSWERS, learned: None, takes }).await
}

async fn session_with(engine: impl Engine + Send + 'static) -> (tempfile::TempDir, Arc<Session>) {
    let mut config = Config::default();
    config.gate.enabled = false;
    // Some tests write prose, because it is easy to read.
    config.completion.prose = true;
    session_as_set(config, engine).await
}

pub(super) async fn session_as_set(
    config: Config,
    engine: impl Engine + Send + 'static,
) -> (tempfile::TempDir, Arc<Session>) {
    session_at(Arc::new(ManualClock::starting_at(0)), config, engine).await
}

async fn session_at(
    clock: Arc<ManualClock>,
    config: Config,
    engine: impl Engine + Send + 'static,
) -> (tempfile::TempDir, Arc<Session>) {
    let folder = tempfile::tempdir().unwrap();
    let home = Paths::at(folder.path().into());
    home.create().unwrap();
    let log = Arc::new(MemoryLog::default());
    let services = fixtures::scripted::start(&home, config, engine, clock, log).await;
    let session = Arc::new(Session::new(services));
    let text = Rope::from_str("fn a() {\n    \n}\n");
    let (path, language) = ("/a.rs".into(), "rust".into());
    session.open(URI.into(), Document { path, language, version: 1, text });
    (folder, session)
}

/// Ends the offer on screen without a verdict.
fn end_offer(session: &Session) {
    session.turn(|state, turn| state.supersede(turn));
}

fn type_at_cursor(session: &Session, text: &str) {
    session.change(URI, 2, vec![(Some((CURSOR, CURSOR)), text.into())]).unwrap();
}

#[tokio::test]
async fn typing_along_keeps_the_offer_and_asks_the_engine_nothing() {
    let (_folder, session) = session(Duration::ZERO).await;
    let offer = session.complete(URI, CURSOR, AUTOMATIC, None).await.unwrap().suggestions.remove(0);
    assert_eq!(offer.text, "call(x);");
    type_at_cursor(&session, "cal");
    let rest = session
        .complete(URI, Position { line: 1, column: 7 }, AUTOMATIC, None)
        .await
        .unwrap()
        .suggestions
        .remove(0);
    assert_eq!((rest.id, rest.text.as_str()), (offer.id, "l(x);"));
    assert_eq!(session.services.recorder.counts().total, 1);
}

/// What was on screen stayed there until it was typed to its end.
#[tokio::test]
async fn a_snooze_ends_what_is_on_screen_unless_the_user_asked_for_it() {
    for (trigger, stays) in [(AUTOMATIC, false), (Trigger::Invoked, true)] {
        let (_folder, session) = session(Duration::ZERO).await;
        session.complete(URI, CURSOR, trigger, None).await.unwrap();
        session.services.snoozes.apply(&Snooze::Everything { seconds: None });
        type_at_cursor(&session, "c");
        let behind = Position { line: 1, column: 5 };
        let completed = session.complete(URI, behind, AUTOMATIC, None).await.unwrap();
        assert_eq!(!completed.suggestions.is_empty(), stays, "{trigger:?}");
        assert_eq!(matches!(completed.reason, Reason::Snoozed { .. }), !stays);
    }
}

#[tokio::test]
async fn nobody_waits_for_a_key_behind_what_was_accepted_or_on_a_new_line() {
    let (_folder, session) = session(Duration::ZERO).await;
    let is_at_rest = |column| {
        let state = session.state.lock();
        let position = Position { line: 1, column };
        state.is_at_rest(&CursorContext::of(&state, URI, position, 0).unwrap())
    };
    assert!(is_at_rest(4), "the line is empty");
    type_at_cursor(&session, "x");
    assert!(!is_at_rest(5));
    let cursor = Position { line: 1, column: 5 };
    let completed = session.complete(URI, cursor, AUTOMATIC, None).await.unwrap();
    let offer = &completed.suggestions[0];
    session.change(URI, 3, vec![(Some((cursor, cursor)), offer.text.clone())]).unwrap();
    assert!(is_at_rest(5 + offer.text.len() as u32));
    assert!(!is_at_rest(6), "within what was accepted");
}

/// The computer's clock was a year ahead while an offer was made, and was then set
/// right. The offer's ten seconds were counted by that clock, so no offer of the
/// process ran into its timeout before the year was over.
#[tokio::test]
async fn an_offer_times_out_though_the_clock_was_set_back_meanwhile() {
    const YEAR_MS: u64 = 365 * 24 * 60 * 60 * 1000;
    let clock = Arc::new(ManualClock::starting_at(2 * YEAR_MS));
    let engine = ScriptedEngine { answers: ANSWERS, learned: None, takes: Duration::ZERO };
    let mut config = Config::default();
    config.gate.enabled = false;
    let (_folder, session) = session_at(clock.clone(), config, engine).await;
    session.complete(URI, CURSOR, AUTOMATIC, None).await.unwrap();
    clock.set_unix_ms(YEAR_MS);
    clock.advance(REJECT_TIMEOUT_MS - 1);
    session.tick();
    assert_eq!(session.services.recorder.counts().rejected_timeout, 0, "it has a millisecond left");
    clock.advance(1);
    session.tick();
    assert_eq!(session.services.recorder.counts().rejected_timeout, 1);
}

const LONG: &str = "let unlikely = this_and_that(and_the_rest, of_it, and_more);";

/// An engine whose answer the gate holds back, with the settings by which it does.
fn held_back() -> (Config, ScriptedEngine) {
    let mut config = Config::default();
    config.lab.gate_threshold = 0.99;
    (config, ScriptedEngine { answers: &[LONG], learned: None, takes: Duration::ZERO })
}

#[tokio::test]
async fn what_was_held_back_is_not_asked_again_until_its_rest_may_be_worth_it() {
    let (mut config, engine) = held_back();
    let (_folder, session) = session_as_set(config.clone(), engine).await;
    let ask = async |column| {
        let position = Position { line: 1, column };
        texts(&session.complete(URI, position, AUTOMATIC, None).await.unwrap().suggestions).join("")
    };
    assert_eq!(ask(4).await, "");
    let answers = || session.services.recorder.counts().no_offer;
    assert_eq!(answers(), 1);
    type_at_cursor(&session, "let unlikely");
    assert_eq!(ask(16).await, "");
    assert_eq!(answers(), 1, "the model would say the same");
    let cursor = Position { line: 1, column: 16 };
    let most = &LONG[12..LONG.len() - 2];
    session.change(URI, 3, vec![(Some((cursor, cursor)), most.into())]).unwrap();
    config.lab.gate_threshold = 0.01;
    session.services.settings.replace(config);
    assert_ne!(ask(4 + LONG.len() as u32 - 2).await, "", "what is left may be worth it");
}

fn texts(suggestions: &[Suggestion]) -> Vec<&str> {
    suggestions.iter().map(|suggestion| suggestion.text.as_str()).collect()
}

#[tokio::test]
async fn an_invoked_request_offers_others_next_to_what_is_on_screen() {
    let (_folder, session) = session(Duration::ZERO).await;
    let first = session.complete(URI, CURSOR, AUTOMATIC, None).await.unwrap().suggestions;
    assert_eq!(texts(&first), ["call(x);"], "one as the user types");
    let all = session.complete(URI, CURSOR, Trigger::Invoked, None).await.unwrap().suggestions;
    assert_eq!(texts(&all), ANSWERS);
    assert_eq!(all[0].id, first[0].id, "what is on screen stays the same offer");
    assert_eq!(session.services.recorder.counts().total, 3);
    let again = session.complete(URI, CURSOR, Trigger::Invoked, None).await.unwrap().suggestions;
    assert_eq!(again, all, "and asks the engine nothing");

    session.shown(&all[1].id);
    type_at_cursor(&session, "call(y);");
    let counts = session.services.recorder.counts();
    assert_eq!((counts.accepted, counts.unseen, counts.unlabelled), (1, 2, 0));
}

/// The prompt took nearly all of the time, so that the line broke off behind `let bound =`. Whoever
/// then asked by hand had that first, and the whole line, which the engine knew by now, behind it.
#[tokio::test]
async fn an_offer_that_ran_out_of_time_gives_way_to_the_whole_line() {
    let is_late = AtomicBool::new(true);
    let scripted = fixtures::engine(&["let bound = highest;", "let bound = lowest;"]);
    let engine = HookedEngine {
        generate: Box::new(move |scripted, request, abort| {
            let mut generated = scripted.generate(request, abort)?;
            if is_late.swap(false, Ordering::Relaxed) {
                let answer = &mut generated.answers[0];
                let end = request.prompt.healing.len() + "let bound = hig".len();
                answer.text.truncate(end);
                answer.ends.truncate(end);
                answer.tokens.truncate(end);
                answer.visible_logprobs.truncate(end);
                answer.stop = StopReason::Budget;
            }
            Ok(generated)
        }),
        ..scripted.hooked()
    };
    let (_folder, session) = session_with(engine).await;
    let cut = session.complete(URI, CURSOR, AUTOMATIC, None).await.unwrap().suggestions;
    assert_eq!(texts(&cut), ["let bound ="]);
    let all = session.complete(URI, CURSOR, Trigger::Invoked, None).await.unwrap().suggestions;
    assert_eq!(texts(&all), ["let bound = highest;", "let bound = lowest;"]);
    type_at_cursor(&session, "let bound = highest;");
    let counts = session.services.recorder.counts();
    assert_eq!((counts.accepted, counts.total), (1, 3), "the first one by hand was taken");
}

#[tokio::test]
async fn an_invoked_request_where_nothing_stands_offers_all_at_once() {
    let (_folder, session) = session(Duration::ZERO).await;
    let all = session.complete(URI, CURSOR, Trigger::Invoked, None).await.unwrap().suggestions;
    assert_eq!(texts(&all), ANSWERS);
    type_at_cursor(&session, "cal");
    let after = Position { line: 1, column: 7 };
    let one = session.complete(URI, after, AUTOMATIC, None).await.unwrap().suggestions;
    assert_eq!(texts(&one), ["l(x);"]);
    let fitting = session.complete(URI, after, Trigger::Invoked, None).await.unwrap().suggestions;
    assert_eq!(texts(&fitting), ["l(x);", "l(y);"]);
}

const LINES: &[&str] = &[
    "for x in y {\n        call(x);\n    }\n}\n\nfn b() {",
    "for x in y {\n        close(x);\n    }\n}",
    "for x in y {\n        call(x);\n    }\n}\n\nfn c() {",
];

#[tokio::test]
async fn an_invoked_request_in_an_empty_block_offers_its_lines_and_typing_one() {
    let engine = ScriptedEngine { answers: LINES, learned: None, takes: Duration::ZERO };
    let (_folder, session) = session_with(engine).await;
    let all = session.complete(URI, CURSOR, Trigger::Invoked, None).await.unwrap().suggestions;
    let first = "for x in y {\n        call(x);\n    }";
    let second = "for x in y {\n        close(x);\n    }";
    assert_eq!(texts(&all), [first, second], "to the brace that stands below, each once");

    type_at_cursor(&session, "for x in y {");
    let end = Position { line: 1, column: 16 };
    session.change(URI, 3, vec![(Some((end, end)), "\n        ".into())]).unwrap();
    let next = Position { line: 2, column: 8 };
    let rest = session.complete(URI, next, AUTOMATIC, None).await.unwrap().suggestions;
    assert_eq!(texts(&rest), ["call(x);\n    }"], "over the line break");
    session.change(URI, 4, vec![(Some((next, next)), rest[0].text.clone())]).unwrap();
    assert_eq!(session.services.recorder.counts().accepted, 1);
}

#[tokio::test]
async fn as_the_user_types_one_line_is_offered() {
    let engine = ScriptedEngine { answers: LINES, learned: None, takes: Duration::ZERO };
    let (_folder, session) = session_with(engine).await;
    let typed = session.complete(URI, CURSOR, AUTOMATIC, None).await.unwrap().suggestions;
    assert_eq!(texts(&typed), ["for x in y {"]);
}

#[tokio::test]
async fn lines_are_not_offered_before_a_bracket_that_the_editor_closed() {
    let engine = ScriptedEngine { answers: LINES, learned: None, takes: Duration::ZERO };
    let (_folder, session) = session_with(engine).await;
    session.complete(URI, CURSOR, Trigger::Invoked, None).await.unwrap();
    type_at_cursor(&session, "for x in y ");
    let end = Position { line: 1, column: 15 };
    session.change(URI, 3, vec![(Some((end, end)), "{}".into())]).unwrap();
    let within = Position { line: 1, column: 16 };
    let offers = session.complete(URI, within, AUTOMATIC, None).await.unwrap().suggestions;
    assert!(offers.iter().all(|offer| !offer.text.contains('\n')), "{offers:?}");
}

#[tokio::test]
async fn an_edit_while_computing_means_that_nothing_was_offered() {
    let (_folder, session) = session(Duration::from_secs(60)).await;
    let asking = session.clone();
    let asked = tokio::spawn(async move { asking.complete(URI, CURSOR, AUTOMATIC, None).await });
    while session.state.lock().current.is_none() {
        tokio::task::yield_now().await;
    }
    type_at_cursor(&session, "x");
    assert!(matches!(asked.await.unwrap(), Err(SessionError::Superseded)));
    assert_eq!(session.services.recorder.counts().total, 0);
}

/// Returns whether a cursor that is put somewhere has its prompt prepared once a request has ended,
/// which `end` waits for.
async fn prepares_after(
    takes: Duration,
    fails: Option<fn() -> EngineError>,
    end: impl AsyncFnOnce(Arc<Session>),
) -> bool {
    const PATIENCE: Duration = Duration::from_secs(60);
    let prepared = Arc::new(AtomicUsize::new(0));
    let scripted = ScriptedEngine { answers: ANSWERS, learned: None, takes };
    let generate = Box::new(move |scripted: &mut ScriptedEngine, request: &_, abort: &_| {
        let answer = scripted.generate(request, abort)?;
        fails.map_or(Ok(answer), |fails| Err(fails()))
    });
    let count = prepared.clone();
    let warm = Box::new(move |_: &_, _: &_| {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    });
    let engine = HookedEngine { generate, warm, ..scripted.hooked() };
    let (_folder, session) = session_with(engine).await;
    end(session.clone()).await;
    session.focus(URI, CURSOR).unwrap();
    let began = Instant::now();
    while prepared.load(Ordering::Relaxed) == 0 && began.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    prepared.load(Ordering::Relaxed) > 0
}

/// A request that failed, ran out of time or was cancelled by the client stayed the
/// session's newest. Until the next edit or request, `focus` took it for one under way
/// and prepared no prompt.
#[tokio::test]
async fn prompts_are_prepared_again_however_a_request_has_ended() {
    let answered = async |session: Arc<Session>| {
        let _ = session.complete(URI, CURSOR, AUTOMATIC, None).await;
    };
    assert!(prepares_after(Duration::ZERO, None, answered).await, "finished");
    let failed = || EngineError::Failed("no memory".into());
    assert!(prepares_after(Duration::ZERO, Some(failed), answered).await, "failed");
    let late = || EngineError::OverBudget;
    assert!(prepares_after(Duration::ZERO, Some(late), answered).await, "over budget");
    let cancelled = async |session: Arc<Session>| {
        let asking = session.clone();
        let asked =
            tokio::spawn(async move { asking.complete(URI, CURSOR, AUTOMATIC, None).await });
        while session.state.lock().current.is_none() {
            tokio::task::yield_now().await;
        }
        asked.abort();
        assert!(asked.await.unwrap_err().is_cancelled());
    };
    assert!(prepares_after(Duration::from_secs(60), None, cancelled).await, "cancelled");
}

/// An older request that ends must leave the newer one in its place: it is the one that
/// the next key has to abort.
#[tokio::test]
async fn a_request_that_was_superseded_leaves_the_newer_one_alone() {
    let (_folder, session) = session(Duration::from_secs(60)).await;
    let ask = |column| {
        let asking = session.clone();
        let at = Position { line: 0, column };
        tokio::spawn(async move { asking.complete(URI, at, AUTOMATIC, None).await })
    };
    let older = ask(0);
    while session.state.lock().current.is_none() {
        tokio::task::yield_now().await;
    }
    let newer = ask(1);
    assert!(matches!(older.await.unwrap(), Err(SessionError::Superseded)));
    assert!(session.state.lock().current.is_some());
    type_at_cursor(&session, "x");
    assert!(matches!(newer.await.unwrap(), Err(SessionError::Superseded)));
}

#[tokio::test]
async fn what_is_forgotten_while_computing_is_not_offered_and_is_no_error() {
    let (_folder, session) = session(Duration::from_millis(50)).await;
    let asking = session.clone();
    let asked = tokio::spawn(async move { asking.complete(URI, CURSOR, AUTOMATIC, None).await });
    while session.state.lock().current.is_none() {
        tokio::task::yield_now().await;
    }
    session.forget();
    assert_eq!(asked.await.unwrap().unwrap().suggestions, []);
    assert_eq!(session.services.recorder.counts().total, 0);
    assert_eq!(session.complete(URI, CURSOR, AUTOMATIC, None).await.unwrap().suggestions.len(), 1);
}

/// Returns what is written instead of an offer, in events, if `forget` comes in between.
async fn told_instead(forget: impl Fn(&Session, &OfferId)) -> usize {
    let (_folder, session) = session(Duration::ZERO).await;
    let offer = session.complete(URI, CURSOR, AUTOMATIC, None).await.unwrap().suggestions.remove(0);
    session.shown(&offer.id);
    forget(&session, &offer.id);
    session.rejected(&offer.id, Outcome::RejectedEsc);
    forget(&session, &offer.id);
    type_at_cursor(&session, "other();\n");
    session.tick();
    let mut told = 0;
    let count = &mut |event: Event| {
        told += usize::from(matches!(event.kind, EventKind::Replacement { .. }));
        ControlFlow::Continue(())
    };
    session.services.recorder.log().scan(0, count).unwrap();
    told
}

#[tokio::test]
async fn what_is_written_instead_of_a_forgotten_offer_is_not_told() {
    assert_eq!(told_instead(|_, _| {}).await, 1);
    let forget = |session: &Session, id: &OfferId| session.forget_offers(&[id.clone()].into());
    assert_eq!(told_instead(forget).await, 0);
    let on_screen = std::cell::Cell::new(true);
    let first = |session: &Session, id: &OfferId| {
        if on_screen.take() {
            forget(session, id);
            session.forget_offers(&HashSet::new());
        }
    };
    assert_eq!(told_instead(first).await, 0, "nor of one that was on screen");
}

/// Outcomes of an offer were recorded after it was forgotten, and its acceptance was an error where
/// the change came before the command.
#[tokio::test]
async fn nothing_is_recorded_that_becomes_of_a_forgotten_offer() {
    let what: [fn(&Session, &OfferId); 6] = [
        |session, id| session.rejected(id, Outcome::RejectedEsc),
        |session, _| type_at_cursor(session, "other();\n"),
        |session, id| {
            type_at_cursor(session, "call(x);");
            session.accepted(id).expect("its acceptance needs no record");
        },
        |session, id| {
            session.accepted(id).expect("its acceptance needs no record");
            type_at_cursor(session, "call(x);");
        },
        |session, id| {
            type_at_cursor(session, "o");
            session.shown(id);
            session.partly_accepted(id, 4);
        },
        |session, _| {
            session.services.clock.advance(REJECT_TIMEOUT_MS);
            session.tick();
            session.client_reports();
        },
    ];
    for (index, becomes) in what.into_iter().enumerate() {
        let (_folder, session) = session(Duration::ZERO).await;
        let answer = session.complete(URI, CURSOR, AUTOMATIC, None).await.unwrap();
        let id = answer.suggestions[0].id.clone();
        session.forget_offers(&[id.clone()].into());
        becomes(&session, &id);
        session.tick();
        let about = &mut |event: Event| {
            let is_offer = matches!(event.kind, EventKind::Completion(_));
            assert!(is_offer || *event.kind.offer_id() != id, "{index}: {event:?}");
            ControlFlow::Continue(())
        };
        session.services.recorder.log().scan(0, about).unwrap();
    }
}

#[tokio::test]
async fn a_newer_request_takes_the_place_of_an_older_one() {
    let (_folder, session) = session(Duration::from_millis(50)).await;
    let newer = Position { line: 0, column: 0 };
    let (older, newer) = tokio::join!(
        session.complete(URI, CURSOR, AUTOMATIC, None),
        session.complete(URI, newer, AUTOMATIC, None)
    );
    assert!(matches!(older, Err(SessionError::Superseded)));
    assert_eq!(newer.unwrap().suggestions.len(), 1);
}

/// Asks for a completion that never ends by itself, and does `meanwhile` to its document.
async fn asked_while(meanwhile: impl Fn(&Session)) -> Result<Vec<Suggestion>, SessionError> {
    let (_folder, session) = session(Duration::from_millis(50)).await;
    let asking = session.clone();
    let asked = tokio::spawn(async move { asking.complete(URI, CURSOR, AUTOMATIC, None).await });
    while session.state.lock().current.is_none() {
        tokio::task::yield_now().await;
    }
    meanwhile(&session);
    let answer = asked.await.unwrap().map(|completed| completed.suggestions);
    session.services.clock.advance(REJECT_TIMEOUT_MS);
    session.tick();
    let made = answer.as_ref().map_or(0, |offers| offers.len() as u64);
    assert_eq!(session.services.recorder.counts().rejected_timeout, made);
    answer
}

fn document(text: &str) -> Document {
    Document {
        path: "/a.rs".into(),
        language: "rust".into(),
        version: 1,
        text: Rope::from_str(text),
    }
}

/// An answer to a column that is not there named the same column, in the middle of a character or
/// behind the end of the line.
#[tokio::test]
async fn an_answer_lies_within_the_text_wherever_it_was_asked_for() {
    let (_folder, session) = session(Duration::ZERO).await;
    session.open(URI.into(), document("fn a() {\n    😀\n}\n"));
    let ask = async |column| {
        let asked = Position { line: 1, column };
        let offers =
            session.complete(URI, asked, Trigger::Invoked, None).await.unwrap().suggestions;
        offers[0].position.column
    };
    assert_eq!(ask(5).await, 4, "in the middle of a surrogate pair");
    assert_eq!(ask(99).await, 6, "behind the end of the line");
    assert_eq!(ask(u32::MAX).await, 6);
    session.use_encoding(Encoding::Utf8);
    assert_eq!(ask(6).await, 4, "in the middle of a character");
    assert_eq!(ask(99).await, 8);
}

/// What remained of an offer closed a bracket that the editor had closed since, and that was looked
/// at only where the rest began with it: `f((x) => {))`.
#[tokio::test]
async fn a_rest_that_would_close_a_bracket_twice_does_not_continue() {
    let engine = ScriptedEngine { answers: &["(x) => {"], learned: None, takes: Duration::ZERO };
    let (_folder, session) = session_with(engine).await;
    session.open(URI.into(), document("f()\n"));
    let within = Position { line: 0, column: 2 };
    let offers = session.complete(URI, within, AUTOMATIC, None).await.unwrap().suggestions;
    assert_eq!(texts(&offers), ["(x) => {"]);
    session.change(URI, 2, vec![(Some((within, within)), "()".into())]).unwrap();
    let deeper = Position { line: 0, column: 3 };
    let offers = session.complete(URI, deeper, AUTOMATIC, None).await.unwrap().suggestions;
    assert!(offers.iter().all(|offer| offer.text != "x) => {"), "{offers:?}");
}

mod public_reports;
