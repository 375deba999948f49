//! What happens to documents: they are opened, changed, saved and closed, in the editor and on
//! the disk.

use super::*;

/// Neovim sends the keys of 150 ms in one message, which has a change for each.
#[tokio::test]
async fn keys_that_come_in_one_message_are_counted_as_typed() {
    let (_folder, session) = session(Duration::ZERO).await;
    let at = |line, column| Some((Position { line, column }, Position { line, column }));
    let keys = vec![(at(1, 4), "l".into()), (at(1, 5), "e".into()), (at(1, 6), "t".into())];
    session.change(URI, 2, keys).unwrap();
    assert_eq!(session.state.lock().offers.take_typed(URI), Typed { chars: 3, lines: 0 });
    let carets = vec![(at(0, 0), "x".into()), (at(2, 0), "x".into())];
    session.change(URI, 3, carets).unwrap();
    assert_eq!(session.state.lock().offers.take_typed(URI), Typed::default(), "several carets");
}

/// Ignore files were opened without a look at what they are, and a pipe that nobody writes to kept
/// everybody who asked. A pipe that is opened hangs this test.
#[cfg(unix)]
#[tokio::test]
#[allow(clippy::disallowed_types, reason = "the process is the test's own")]
async fn a_pipe_in_the_place_of_an_ignore_file_is_not_waited_for() {
    for name in [".gitignore", ".honeignore", ".git"] {
        let project = tempfile::tempdir().unwrap();
        let file = |name: &str| project.path().join(name).to_string_lossy().into_owned();
        let made = std::process::Command::new("mkfifo").arg(file(name)).status().unwrap();
        assert!(made.success());
        std::fs::write(file("ledger.rs"), "pub struct Ledger;\n").unwrap();
        let mut config = Config::default();
        config.completion.context_chars = Some(1_000);
        let scripted = ScriptedEngine { answers: ANSWERS, learned: None, takes: Duration::ZERO };
        let (_folder, session) = session_as_set(config, scripted).await;
        session.open_folder(project.path());
        let text = Rope::from_str("use ledger::Ledger;\n    \n");
        let (path, language) = (file("here.rs"), "rust".into());
        session.open("here".into(), Document { path, language, version: 1, text });
        session.look_at_imports("here");
        session.focus("here", CURSOR).unwrap();
        let begun = session.begin("here", CURSOR, AUTOMATIC, None).unwrap();
        assert!(matches!(begun, Start::Pending(_)), "{name}");
    }
}

#[tokio::test]
async fn a_document_that_was_never_opened_is_named() {
    let (_folder, session) = session(Duration::ZERO).await;
    let unknown = "file:///other.rs";
    let error = session.complete(unknown, CURSOR, AUTOMATIC, None).await.unwrap_err().to_string();
    assert!(error.contains(unknown) && error.contains("open the file again"), "{error}");
    let error = session.change(unknown, 1, vec![]).unwrap_err().to_string();
    assert!(error.contains(unknown), "{error}");
}

/// An editor that trims trailing blanks when it saves takes the indentation of the line away on
/// which an offer is shown. This was counted as a rejection.
#[tokio::test]
async fn blanks_that_are_trimmed_on_save_are_no_verdict() {
    let (_folder, session) = session(Duration::ZERO).await;
    let offer = session.complete(URI, CURSOR, AUTOMATIC, None).await.unwrap().suggestions.remove(0);
    session.shown(&offer.id);
    let from = Position { line: 1, column: 0 };
    session.change(URI, 2, vec![(Some((from, CURSOR)), String::new())]).unwrap();
    let counts = session.services.recorder.counts();
    assert_eq!((counts.rejected_edit, counts.superseded), (0, 1));
}

/// A final newline that a tool puts in on save was seen as the Enter key at the cursor, because
/// the text is the same with both.
#[tokio::test]
async fn a_final_newline_is_no_verdict() {
    let (_folder, session) = session(Duration::ZERO).await;
    session.change(URI, 2, vec![(None, "fn a() {\n    \n".into())]).unwrap();
    let offer = session.complete(URI, CURSOR, AUTOMATIC, None).await.unwrap().suggestions.remove(0);
    session.shown(&offer.id);
    let end = Position { line: 2, column: 0 };
    session.change(URI, 3, vec![(Some((end, end)), "\n".into())]).unwrap();
    assert_eq!(session.services.recorder.counts().rejected_edit, 0);
    session.change(URI, 4, vec![(Some((CURSOR, CURSOR)), "\n".into())]).unwrap();
    assert_eq!(session.services.recorder.counts().rejected_edit, 1, "the Enter key at the offer");
}

/// The offer was given up when a file that has no final newline got one on save. It was still on
/// screen, and its acceptance was not counted.
#[tokio::test]
async fn an_offer_at_the_end_of_a_file_outlives_its_final_newline() {
    let (_folder, session) = session(Duration::ZERO).await;
    session.change(URI, 2, vec![(None, "fn a() {\n    ".into())]).unwrap();
    let ask = async || session.complete(URI, CURSOR, AUTOMATIC, None).await.unwrap().suggestions;
    let offer = ask().await.remove(0);
    session.shown(&offer.id);
    let put = |version, text: &str| {
        session.change(URI, version, vec![(Some((CURSOR, CURSOR)), text.into())]).unwrap();
    };
    put(3, "\n");
    assert_eq!(ask().await.remove(0).id, offer.id, "the editor asks again");
    put(4, &offer.text);
    let counts = session.services.recorder.counts();
    assert_eq!((counts.accepted, counts.superseded), (1, 0));
}

/// The offer went live in a document that was closed, or that had another text by then, and ten
/// seconds later it was rejected.
#[tokio::test]
async fn no_offer_is_made_in_a_document_that_was_closed_or_opened_again_meanwhile() {
    let closed = asked_while(|session| session.close(URI)).await;
    assert!(matches!(closed, Err(SessionError::Superseded)), "{closed:?}");
    let reopened = asked_while(|session| session.open(URI.into(), document("x"))).await;
    assert!(matches!(reopened, Err(SessionError::Superseded)), "{reopened:?}");
    let other = "file:///b.rs";
    let elsewhere = asked_while(|session| {
        session.open(other.into(), document("x"));
        session.close(other);
    });
    assert_eq!(texts(&elsewhere.await.unwrap()), ["call(x);"], "another document");
}

/// Of a document that is opened while it is open, the offer and the places that were watched stayed
/// where they had been in the old text.
#[tokio::test]
async fn a_document_that_is_opened_again_has_no_offer_any_more() {
    let (_folder, session) = session(Duration::ZERO).await;
    let offer = session.complete(URI, CURSOR, AUTOMATIC, None).await.unwrap().suggestions.remove(0);
    session.shown(&offer.id);
    session.open(URI.into(), document("fn other() {\n    \n}\n"));
    assert_eq!(session.services.recorder.counts().superseded, 1);
    assert_eq!(session.state.lock().offers.place(URI), None);

    let again = session.complete(URI, CURSOR, AUTOMATIC, None).await.unwrap().suggestions.remove(0);
    session.shown(&again.id);
    session.rejected(&again.id, Outcome::RejectedEsc);
    let cursor = "fn other() {\n    ".len();
    assert!(session.state.lock().offers.awaits(URI, cursor));
    session.open(URI.into(), document("fn a() {}\n"));
    assert!(!session.state.lock().offers.awaits(URI, cursor));
}

/// What was known of a suppressed answer was asked of another text too.
#[tokio::test]
async fn what_was_suppressed_is_forgotten_with_the_text_that_it_was_for() {
    let (config, engine) = held_back();
    let (_folder, session) = session_as_set(config, engine).await;
    session.complete(URI, CURSOR, AUTOMATIC, None).await.unwrap();
    assert!(session.state.lock().offers.suppressed().is_some());
    session.close(URI);
    assert!(session.state.lock().offers.suppressed().is_none());
}
