use super::*;
use crate::config::Config;
use crate::session::Session;
use crate::session::request::{ALTERNATIVES, Trigger};
use crate::session::tests::session_as_set;
use completion::document::Document;
use completion::stop_rule::Multiline;
use engine::scripted::ScriptedEngine;
use feedback::event::{Completion, EventKind};
use policy::gate::features::NAMES;
use std::ops::ControlFlow;
use std::sync::Arc;

const COPIED: Position = Position { line: 7, column: 33 };
const PAGE: &str = "file:///page.rs";

/// A page whose first lines come again, up to the cursor at [`COPIED`].
const TWICE: &str = "\
fn first(ledger: &mut Ledger) {
    let accounts = ledger.accounts_of_customer();
    let balance = ledger.balance_of(&accounts);
}

fn second(ledger: &mut Ledger) {
    let accounts = ledger.accounts_of_customer();
    let balance = ledger.balance_
}
";

const LINE: &str = "of(&accounts);";

fn found(text: &str, matched: usize) -> Match {
    Match {
        source: Source::OwnFile { lines: 3 },
        file: "/a.rs".into(),
        offset: 0,
        matched,
        exact: matched,
        text: text.into(),
        agreement: 1.0,
        places: 1,
        rest_agrees: true,
        next_line_agrees: false,
    }
}

fn says(answers: &'static [&'static str]) -> ScriptedEngine {
    ScriptedEngine { answers, learned: None, takes: Duration::ZERO }
}

/// A session in which a copy is offered wherever there is one.
async fn session(engine: ScriptedEngine, memory: bool) -> (tempfile::TempDir, Arc<Session>) {
    session_that(engine, memory, true).await
}

async fn session_that(
    engine: ScriptedEngine,
    memory: bool,
    always_copy: bool,
) -> (tempfile::TempDir, Arc<Session>) {
    let mut config = Config::default();
    config.lab.always_copy = always_copy;
    config.gate.enabled = false;
    config.completion.memory = memory;
    config.completion.min_probability = 0.0;
    // Only single lines compete.
    config.completion.multiline = Multiline::Never;
    let (folder, session) = session_as_set(config, engine).await;
    open(&session, TWICE);
    (folder, session)
}

fn open(session: &Session, text: &str) {
    let (path, language) = ("/page.rs".into(), "rust".into());
    let document = Document { path, language, version: 1, text: Rope::from_str(text) };
    session.open(PAGE.into(), document);
}

async fn offered(session: &Session, trigger: Trigger) -> Vec<String> {
    let completed = session.complete(PAGE, COPIED, trigger, None).await.unwrap();
    completed.suggestions.into_iter().map(|offer| offer.text).collect()
}

fn records(session: &Session) -> Vec<Completion> {
    let mut records = vec![];
    session
        .services
        .recorder
        .log()
        .scan(0, &mut |event| {
            if let EventKind::Completion(completion) = event.kind {
                records.push(*completion);
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    records
}

#[test]
fn the_longest_match_decides_and_most_of_its_places_choose_the_line() {
    let best = |matches: Vec<Match>| {
        let candidate = Candidate::of(matches)?;
        Some((candidate.text.clone(), candidate.record.agreement, candidate.record.places))
    };
    let third = 1.0 / 3.0;
    let matches = vec![found("a();", 60), found("b();", 60), found("b( );", 60), found("c();", 40)];
    let (text, agreement, places) = best(matches).unwrap();
    assert_eq!((text.as_str(), places), ("b();", 3), "blanks do not count");
    assert!((agreement - 2.0 * third).abs() < 1e-6, "{agreement}");
    let equal = vec![found("near();", 60), found("far();", 60)];
    assert_eq!(best(equal).unwrap().0, "near();");
    assert_eq!(best(vec![found("a();", MATCH_MIN - 1)]), None, "it is too short");
    assert_eq!(best(vec![found("});", 60)]), None, "marks alone are no line");
    let other_rest = Match { rest_agrees: false, ..found("a();", 60) };
    assert_eq!(best(vec![other_rest]), None);
    assert_eq!(best(vec![]), None);
}

#[test]
fn a_long_line_is_no_copy() {
    let candidate = Candidate::of(vec![found(&"x, ".repeat(COPY_BYTES_MAX), 60)]).unwrap();
    assert_eq!(candidate.line(), None);
    assert!(Candidate::of(vec![found("\n    next();", 60)]).unwrap().line().is_none());
}

#[test]
fn the_places_are_counted_for_each_line() {
    let matches = vec![found("copy();", 60), found("copy( );", 60), found("other();", 60)];
    let candidate = Candidate::of(matches).unwrap();
    let of = |line: &str| {
        let recalled = candidate.recalled(line, Writer::Model);
        (recalled.share, recalled.share_of_other)
    };
    let (third, two_thirds) = (1.0 / 3.0, 1.0 / 3.0 + 1.0 / 3.0);
    assert_eq!(of("copy();"), (two_thirds, third));
    assert_eq!(of("other();"), (third, two_thirds));
    assert_eq!(of("unknown();"), (0.0, two_thirds));
    let recalled = candidate.recalled("copy();", Writer::Copy);
    assert_eq!((recalled.matched, recalled.places), (60, 3));
    assert!(recalled.is_own_file);
}

#[tokio::test]
async fn a_line_that_was_written_before_is_offered_and_its_record_says_so() {
    let (_folder, session) = session(says(&["sheet();"]), true).await;
    assert_eq!(offered(&session, Trigger::Automatic).await, [LINE]);
    let record = records(&session).pop().unwrap();
    let copied = record.copied.unwrap();
    assert_eq!((copied.source, copied.places), (CopySource::OwnFile, 1));
    assert!(copied.matched as usize >= 50 && copied.agreement == 1.0, "{copied:?}");
    assert_eq!((record.shown.as_str(), record.context.len()), (LINE, 0));
    assert!(!record.tokens.is_empty(), "the model has scored it");
}

/// The scripted model finds each byte equally likely, so a long line is unlikely.
#[tokio::test]
async fn the_gate_weighs_the_copy_against_the_models_line() {
    let (_folder, session) = session_that(says(&["sheet_of_today();"]), true, false).await;
    assert_eq!(offered(&session, Trigger::Automatic).await, ["sheet_of_today();"]);
    let record = records(&session).pop().unwrap();
    assert_eq!(record.copied, None);
    let features = record.decision.gate.unwrap().features;
    let otherwise = NAMES.iter().position(|name| *name == "written otherwise before").unwrap();
    assert!(features[otherwise] > 0.0, "the gate knows that it went on otherwise before");

    let long: &[_] =
        &["sheet_of_all_the_accounts_that_nobody_has_looked_at_since_the_year_began(today);"];
    let (_folder, session) = session_that(says(long), true, false).await;
    assert_eq!(offered(&session, Trigger::Automatic).await, [LINE]);
    assert!(records(&session).pop().unwrap().copied.is_some());
}

#[tokio::test]
async fn without_the_setting_nothing_is_copied() {
    let (_folder, session) = session(says(&["sheet();"]), false).await;
    assert_eq!(offered(&session, Trigger::Automatic).await, ["sheet();"]);
    assert_eq!(records(&session).pop().unwrap().copied, None);
}

#[tokio::test]
async fn what_the_model_says_too_is_the_models_own() {
    let (_folder, session) = session(says(&[LINE]), true).await;
    assert_eq!(offered(&session, Trigger::Automatic).await, [LINE]);
    assert_eq!(records(&session).pop().unwrap().copied, None);
}

#[tokio::test]
async fn an_invoked_request_offers_the_models_lines_behind_the_copy() {
    let (_folder, session) = session(says(&["sheet();", "due();"]), true).await;
    assert_eq!(offered(&session, Trigger::Invoked).await, [LINE, "sheet();", "due();"]);
}

#[tokio::test]
async fn a_secret_is_not_copied() {
    let (_folder, session) = session(says(&["none();"]), true).await;
    let secret = ["hunter", "2", "!xyz"].concat();
    let copied = format!("of(\"{secret}\"); let password = \"{secret}\";");
    open(&session, &TWICE.replace(LINE, &copied));
    assert_eq!(offered(&session, Trigger::Automatic).await, ["none();"]);
}

#[tokio::test]
async fn a_copy_on_screen_does_not_go_on_once_something_is_forgotten() {
    let (_folder, session) = session(says(&["sheet();"]), true).await;
    assert_eq!(offered(&session, Trigger::Automatic).await, [LINE]);
    // Now the line stands nowhere else.
    let first_line = Position { line: 2, column: 0 };
    let third_line = Position { line: 3, column: 0 };
    let typed = |at, text: &str| {
        session.change(PAGE, 2, vec![(Some((at, at)), text.into())]).unwrap();
    };
    typed(COPIED, "of");
    let behind = Position { column: COPIED.column + 2, ..COPIED };
    let ask = async || {
        let completed = session.complete(PAGE, behind, Trigger::Automatic, None).await.unwrap();
        completed.suggestions.into_iter().map(|offer| offer.text).collect::<Vec<_>>()
    };
    assert_eq!(ask().await, [&LINE[2..]], "it goes on as the user types along");
    session.forget();
    session.change(PAGE, 3, vec![(Some((first_line, third_line)), "\n".into())]).unwrap();
    assert_eq!(ask().await, ["sheet();"], "nothing of the copy is offered again");
}

#[test]
fn a_cold_prompt_is_waited_for_unless_the_copy_is_certain() {
    let copy = Candidate::of(vec![found("a();", 60)]).unwrap();
    let request = testing_request();
    let now = copy.draft(&request, true, true);
    assert_eq!((now.wait, now.is_certain, now.is_scored), (COLD_AFTER, true, true));
    assert_eq!(copy.draft(&request, true, false).wait, Duration::MAX, "in a rehearsal");
    let invoked = Request { alternatives: ALTERNATIVES, ..request.clone() };
    let invoked = copy.draft(&invoked, true, true);
    assert_eq!((invoked.wait, invoked.is_certain), (Duration::MAX, false));
    let unsure = copy.draft(&request, false, true);
    assert_eq!((unsure.wait, unsure.is_certain, unsure.is_scored), (Duration::MAX, false, true));
}

fn testing_request() -> Request {
    Request {
        prompt: completion::prompt::FimPrompt {
            context: None,
            prefix: String::new(),
            typed: String::new(),
            line: String::new(),
            healing: String::new(),
            suffix: String::new(),
        },
        adapter: 0,
        sampling: feedback::event::Sampling::GREEDY,
        stop_rule: completion::stop_rule::StopRule::LINE,
        max_tokens: 32,
        budget: Duration::MAX,
        min_probability: 0.0,
        alternatives: 0,
        context_wait: Duration::MAX,
        draft: None,
    }
}
