//! Offers while the editor's suggestion list is open, and offers in files with CRLF.

use super::*;
use services::reason::Reason;

/// Returns what the list offers at the cursor, behind `typed`.
fn selected(typed: &str, text: &str) -> Option<Selected> {
    let end = Position { line: 1, column: 4 + typed.len() as u32 };
    Some(Selected { range: (CURSOR, end), text: text.into() })
}

#[tokio::test]
async fn an_offer_continues_from_the_entry_that_is_chosen() {
    let (_folder, session) = session(Duration::ZERO).await;
    type_at_cursor(&session, "fi");
    let cursor = Position { line: 1, column: 6 };
    let entry = selected("fi", "findIndex");
    let completed = session.complete(URI, cursor, AUTOMATIC, entry).await.unwrap();
    let offer = &completed.suggestions[0];
    assert_eq!(offer.text, "ndIndexcall(x);");
    let Some(Entry { from, typed, .. }) = &offer.entry else { panic!("no entry") };
    assert_eq!((*from, typed.as_str()), (CURSOR, "fi"));
    // The document is as the editor has it.
    assert_eq!(session.line_before(URI, cursor).unwrap(), "    fi");
    // The user takes the entry, and the offer continues behind it.
    let range = Some((CURSOR, cursor));
    session.change(URI, 3, vec![(range, "findIndex".into())]).unwrap();
    let behind = Position { line: 1, column: 13 };
    let rest = session.complete(URI, behind, AUTOMATIC, None).await.unwrap();
    assert_eq!(rest.reason, Reason::TypedThrough);
    assert_eq!((&rest.suggestions[0].id, &*rest.suggestions[0].text), (&offer.id, "call(x);"));
    session.accepted(&offer.id).unwrap();
    assert_eq!(session.services.recorder.counts().accepted, 1);
}

#[tokio::test]
async fn nothing_is_offered_behind_an_entry_that_is_spelled_otherwise() {
    let (_folder, session) = session(Duration::ZERO).await;
    type_at_cursor(&session, "fi");
    let cursor = Position { line: 1, column: 6 };
    let entry = selected("fi", "Finder");
    let completed = session.complete(URI, cursor, AUTOMATIC, entry).await.unwrap();
    assert_eq!(completed.reason, Reason::EntrySpelledOtherwise);
}

/// An edit that rejects an offer behind an entry belongs to no other place that is watched.
#[tokio::test]
async fn what_rejects_an_offer_behind_an_entry_is_not_added_to_another_place() {
    let (_folder, session) = session(Duration::ZERO).await;
    let first = session.complete(URI, CURSOR, AUTOMATIC, None).await.unwrap();
    session.rejected(&first.suggestions[0].id, Outcome::RejectedEsc);
    type_at_cursor(&session, "f");
    let cursor = Position { line: 1, column: 5 };
    let entry = selected("f", "find");
    let behind = session.complete(URI, cursor, AUTOMATIC, entry).await.unwrap();
    session.shown(&behind.suggestions[0].id);
    let before = session.state.lock().offers.watched(URI);
    session.change(URI, 3, vec![(Some((cursor, cursor)), "o".into())]).unwrap();
    assert_eq!(session.services.recorder.counts().rejected_edit, 1);
    let after: Vec<_> = before.iter().map(|place| place.start..place.end + 1).collect();
    assert_eq!(session.state.lock().offers.watched(URI), after, "one letter longer");
}

/// The list had what was offered. An editor writes the beginning of the word again with an entry,
/// and not with an offer.
#[tokio::test]
async fn an_entry_that_is_what_was_offered_counts_as_typed() {
    let cursor = Position { line: 1, column: 6 };
    for (from, put_in, typed_through) in [(CURSOR, "findIndex", 1), (cursor, "ndIndex", 0)] {
        let answers = &["findIndex"];
        let engine = ScriptedEngine { answers, learned: None, takes: Duration::ZERO };
        let (_folder, session) = session_with(engine).await;
        session.complete(URI, CURSOR, AUTOMATIC, None).await.unwrap();
        type_at_cursor(&session, "fi");
        session.change(URI, 3, vec![(Some((from, cursor)), put_in.into())]).unwrap();
        let counts = session.services.recorder.counts();
        assert_eq!((counts.typed_through, counts.accepted), (typed_through, 1 - typed_through));
    }
}

/// Another entry is another text, so the first offer says nothing about it.
#[tokio::test]
async fn another_entry_takes_the_place_of_the_first_without_a_verdict() {
    let (_folder, session) = session(Duration::ZERO).await;
    for entry in ["find", "filter"] {
        let completed = session.complete(URI, CURSOR, AUTOMATIC, selected("", entry)).await;
        assert!(completed.unwrap().suggestions[0].text.starts_with(entry));
    }
    let counts = session.services.recorder.counts();
    assert_eq!((counts.accepted, counts.rejected_edit, counts.rejected_timeout), (0, 0, 0));
}

#[tokio::test]
async fn an_offer_of_several_lines_has_the_line_breaks_of_the_file() {
    let answers = &["call(x);\n    call(y);\n}"];
    let engine = ScriptedEngine { answers, learned: None, takes: Duration::ZERO };
    let (_folder, session) = session_with(engine).await;
    let text = Rope::from_str("fn a() {\r\n    \r\n}\r\n");
    let (path, language) = ("/b.rs".into(), "rust".into());
    session.open("file:///b.rs".into(), Document { path, language, version: 1, text });
    let completed = session.complete("file:///b.rs", CURSOR, Trigger::Invoked, None).await;
    let offer = completed.unwrap().suggestions.remove(0);
    assert_eq!(offer.text, "call(x);\r\n    call(y);");
    session.change("file:///b.rs", 2, vec![(Some((CURSOR, CURSOR)), offer.text)]).unwrap();
    assert_eq!(session.services.recorder.counts().accepted, 1);
}

#[tokio::test]
async fn between_braces_an_offer_leaves_the_closing_one_on_its_own_line() {
    let answers = &["\n        call(x);\n    }"];
    let engine = ScriptedEngine { answers, learned: None, takes: Duration::ZERO };
    let (_folder, session) = session_with(engine).await;
    let text = Rope::from_str("impl A {\n    fn a() {}\n}\n");
    let (path, language) = ("/b.rs".into(), "rust".into());
    session.open("file:///b.rs".into(), Document { path, language, version: 1, text });
    let cursor = Position { line: 1, column: 12 };
    let completed = session.complete("file:///b.rs", cursor, Trigger::Invoked, None).await;
    let offer = completed.unwrap().suggestions.remove(0);
    assert_eq!((offer.text.as_str(), offer.replaces), ("\n        call(x);\n    ", 0));
    let typed = session.complete("file:///b.rs", cursor, AUTOMATIC, None).await.unwrap();
    assert_eq!(typed.reason, Reason::TypedThrough, "it is still on screen");
}
