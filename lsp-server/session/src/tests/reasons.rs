//! Every request ends with a reason, and the user can ask for it.

use super::*;
use services::reason::Reason;
use settings::Eagerness;

/// A session with these settings, whose engine always gives this answer, and why a request at its
/// cursor ended as it did.
async fn reason(config: Config, answer: &'static [&'static str], trigger: Trigger) -> Reason {
    let engine = ScriptedEngine { answers: answer, learned: None, takes: Duration::ZERO };
    let (_folder, session) = session_as_set(config, engine).await;
    let completed = session.complete(URI, CURSOR, trigger, None).await.unwrap();
    assert_eq!(completed.reason.is_offer(), !completed.suggestions.is_empty());
    let noted = session.services.requests.latest().remove(0);
    assert_eq!((noted.path.as_str(), noted.line), ("/a.rs", 2));
    assert_eq!(noted.why, completed.reason);
    assert_eq!(noted.invoked, trigger == Trigger::Invoked);
    completed.reason
}

fn without_gate() -> Config {
    let mut config = Config::default();
    config.gate.enabled = false;
    config
}

#[tokio::test]
async fn a_request_that_is_not_answered_says_why() {
    let mut off = without_gate();
    off.completion.enabled = false;
    assert_eq!(reason(off.clone(), ANSWERS, AUTOMATIC).await, Reason::SwitchedOff);
    assert_eq!(reason(off, ANSWERS, Trigger::Invoked).await, Reason::Shown);
    let mut no_rust = without_gate();
    no_rust.completion.languages.insert("rust".into(), false);
    let language = "rust".to_owned();
    assert_eq!(reason(no_rust, ANSWERS, AUTOMATIC).await, Reason::LanguageOff { language });
    let mut ignored = without_gate();
    ignored.completion.ignore = vec!["*.md".into(), "*.rs".into()];
    let pattern = "*.rs".to_owned();
    assert_eq!(reason(ignored, ANSWERS, AUTOMATIC).await, Reason::FileIgnored { pattern });
}

#[tokio::test]
async fn an_answer_that_is_not_shown_says_why() {
    assert_eq!(reason(without_gate(), &["call(x);"], AUTOMATIC).await, Reason::Shown);
    assert_eq!(reason(without_gate(), &["   "], AUTOMATIC).await, Reason::OnlyBlanks);
    assert_eq!(reason(without_gate(), &[""], AUTOMATIC).await, Reason::NothingToAdd);
    let mut quiet = without_gate();
    quiet.completion.eagerness = Eagerness::Quiet;
    assert_eq!(reason(quiet.clone(), &["x;"], AUTOMATIC).await, Reason::TooShort);
    assert_eq!(reason(quiet, &["x;"], Trigger::Invoked).await, Reason::Shown);
}

#[tokio::test]
async fn what_the_gate_holds_back_names_chance_and_threshold() {
    let mut config = Config::default();
    config.lab.gate_threshold = 0.99;
    let held = loop {
        match reason(config.clone(), &["call(x);"], AUTOMATIC).await {
            // The gate draws, and rarely shows an offer to learn from it.
            Reason::Shown => {}
            held => break held,
        }
    };
    let Reason::HeldBack { probability, threshold, .. } = held else { panic!("{held:?}") };
    assert!(probability < threshold && threshold == 0.99);
}

/// `from typing import List` was dismissed at the start of a line, and came again 1.6 s later as
/// `typing import List`, when its first word had been typed.
#[tokio::test]
async fn what_the_user_rejected_stays_away_from_its_line() {
    let engine = ScriptedEngine { answers: &["l(x);"], learned: None, takes: Duration::ZERO };
    let (_folder, session) = session_as_set(without_gate(), engine).await;
    type_at_cursor(&session, "cal");
    let behind = |column| Position { line: 1, column };
    let offer = session.complete(URI, behind(7), AUTOMATIC, None).await.unwrap();
    session.shown(&offer.suggestions[0].id);
    session.rejected(&offer.suggestions[0].id, Outcome::RejectedEsc);
    let again = session.complete(URI, behind(7), AUTOMATIC, None).await.unwrap();
    assert_eq!((again.reason, again.suggestions.len()), (Reason::RejectedHere, 0));
    let by_hand = session.complete(URI, behind(7), Trigger::Invoked, None).await.unwrap();
    assert_eq!(texts(&by_hand.suggestions), ["l(x);"]);
    let new_line = "cal\n    cal".to_owned();
    session.change(URI, 3, vec![(Some((CURSOR, behind(7))), new_line)]).unwrap();
    let next = Position { line: 2, column: 7 };
    let elsewhere = session.complete(URI, next, AUTOMATIC, None).await.unwrap();
    assert_eq!(texts(&elsewhere.suggestions), ["l(x);"], "another line");
}

/// `limit: '10'` was dismissed, and came first again when the user asked for another one by hand.
#[tokio::test]
async fn by_hand_a_rejected_text_comes_behind_the_others() {
    let answers = &["call(x);", "call(y);", "call(z);"];
    let engine = ScriptedEngine { answers, learned: None, takes: Duration::ZERO };
    let (_folder, session) = session_as_set(without_gate(), engine).await;
    let offer = session.complete(URI, CURSOR, AUTOMATIC, None).await.unwrap();
    assert_eq!(texts(&offer.suggestions), ["call(x);"]);
    session.shown(&offer.suggestions[0].id);
    session.rejected(&offer.suggestions[0].id, Outcome::RejectedEsc);
    let by_hand = session.complete(URI, CURSOR, Trigger::Invoked, None).await.unwrap();
    assert_eq!(texts(&by_hand.suggestions), ["call(y);", "call(z);", "call(x);"]);
    type_at_cursor(&session, "call(y);");
    let counts = session.services.recorder.counts();
    assert_eq!((counts.accepted, counts.rejected_esc), (1, 1));
}

#[tokio::test]
async fn an_error_is_remembered_too() {
    let (_folder, session) = session(Duration::ZERO).await;
    let past = Position { line: 99, column: 0 };
    assert!(session.complete(URI, past, AUTOMATIC, None).await.is_err());
    assert!(session.complete("file:///unknown.rs", CURSOR, AUTOMATIC, None).await.is_err());
    let noted = session.services.requests.latest();
    assert_eq!([&noted[0].why, &noted[1].why], [&Reason::OutOfStep; 2]);
    assert_eq!(noted[0].path, "file:///unknown.rs");
}

#[tokio::test]
async fn a_request_that_the_next_key_or_the_editor_ends_is_remembered() {
    let (_folder, session) = session(Duration::from_secs(60)).await;
    let ask = || {
        let asking = session.clone();
        tokio::spawn(async move { asking.complete(URI, CURSOR, AUTOMATIC, None).await })
    };
    let arrived = async || {
        // One that was cancelled stays until another one comes.
        let is_under_way = |current: &Computing| !current.abort.load(Ordering::Relaxed);
        while !session.state.lock().current.as_ref().is_some_and(is_under_way) {
            tokio::task::yield_now().await;
        }
    };
    let noted = || session.services.requests.latest();
    let cancelled = ask();
    arrived().await;
    cancelled.abort();
    assert!(cancelled.await.unwrap_err().is_cancelled());
    assert_eq!(noted().len(), 1);
    assert_eq!((noted()[0].path.as_str(), noted()[0].line), ("/a.rs", 2));
    assert!(matches!(noted()[0].why, Reason::Unanswered { .. }), "{:?}", noted());
    let overtaken = ask();
    arrived().await;
    type_at_cursor(&session, "x");
    assert!(overtaken.await.unwrap().is_err());
    assert_eq!(noted().len(), 2);
    assert!(matches!(noted()[0].why, Reason::Unanswered { .. }), "{:?}", noted());
}
