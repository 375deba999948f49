//! Documents that are not served.

use super::*;

fn at(line: u32) -> Option<(Position, Position)> {
    Some((Position { line, column: 0 }, Position { line, column: 0 }))
}

#[tokio::test]
async fn a_change_of_a_document_that_was_never_opened_is_an_error_once() {
    let (_folder, session) = session(Duration::ZERO).await;
    let unknown = "file:///other.rs";
    let change = || session.change(unknown, 1, vec![(at(0), "x".into())]);
    let error = change().unwrap_err().to_string();
    assert_eq!(error, format!("{unknown}: was never opened here; open the file again"));
    assert!(change().is_ok(), "it is named once");
    let error = session.complete(unknown, CURSOR, AUTOMATIC, None).await.unwrap_err().to_string();
    assert_eq!(error, format!("{unknown}: was never opened here; open the file again"));
}

#[tokio::test]
async fn a_document_that_is_out_of_step_is_not_served_until_it_is_opened_again() {
    let (_folder, session) = session(Duration::ZERO).await;
    // The text has four lines. Some clients append behind the last one.
    session.change(URI, 2, vec![(at(4), "// end\n".into())]).unwrap();
    let offer = session.complete(URI, CURSOR, AUTOMATIC, None).await.unwrap().suggestions.remove(0);
    session.shown(&offer.id);
    let error = session.change(URI, 3, vec![(at(40), "x".into())]).unwrap_err().to_string();
    assert!(error.contains(URI) && error.contains("close and open the file again"), "{error}");
    assert!(session.change(URI, 4, vec![(at(0), "y".into())]).is_ok(), "it is named once");
    let again = session.complete(URI, CURSOR, AUTOMATIC, None).await.unwrap_err().to_string();
    assert_eq!(again, error);
    let counts = session.services.recorder.counts();
    assert_eq!(counts.rejected_edit, 0, "the user rejected nothing");

    let (path, language) = ("/a.rs".into(), "rust".into());
    let text = Rope::from_str("fn a() {\n    \n}\n");
    session.open(URI.into(), Document { path, language, version: 1, text });
    assert_eq!(session.complete(URI, CURSOR, AUTOMATIC, None).await.unwrap().suggestions.len(), 1);
}

#[tokio::test]
async fn a_document_whose_message_was_lost_says_why_it_is_not_served() {
    let (_folder, session) = session(Duration::ZERO).await;
    assert!(session.stop_serving(URI, "it is too long"));
    assert!(!session.stop_serving(URI, "it is too long"), "it is no news");
    assert!(session.change(URI, 2, vec![(at(0), "y".into())]).is_ok());
    let error = session.complete(URI, CURSOR, AUTOMATIC, None).await.unwrap_err().to_string();
    assert_eq!(error, format!("{URI}: it is too long"));
    session.close(URI);
    let error = session.complete(URI, CURSOR, AUTOMATIC, None).await.unwrap_err();
    assert!(matches!(error, SessionError::NotOpen { .. }), "it is closed");
}
