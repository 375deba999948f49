//! How often a request takes the session's lock.

use super::*;
use services::reason::Reason;

impl Session {
    /// Returns how often the lock was taken since the last call.
    fn locks_taken(&self) -> usize {
        self.state.times.swap(0, Ordering::Relaxed)
    }
}

#[tokio::test]
async fn a_request_that_reaches_the_engine_takes_three_locks_and_one_from_the_screen_takes_one() {
    let (_folder, session) = session(Duration::ZERO).await;
    session.locks_taken();
    let asked = session.complete(URI, CURSOR, AUTOMATIC, None).await.unwrap();
    assert_eq!((asked.reason, session.locks_taken()), (Reason::Shown, 3));

    type_at_cursor(&session, "cal");
    assert_eq!(session.locks_taken(), 1, "an edit");
    let behind = Position { line: 1, column: 7 };
    let known = session.complete(URI, behind, AUTOMATIC, None).await.unwrap();
    assert_eq!((known.reason, session.locks_taken()), (Reason::TypedThrough, 1));

    session.accepted(&asked.suggestions[0].id).unwrap();
    assert_eq!(session.locks_taken(), 1, "a verdict");
}

#[tokio::test]
async fn a_request_that_the_engine_fails_takes_three_locks() {
    let fail = |_: &mut ScriptedEngine, _: &_, _: &_| Err(EngineError::Failed("no memory".into()));
    let scripted = ScriptedEngine { answers: ANSWERS, learned: None, takes: Duration::ZERO };
    let engine = HookedEngine { generate: Box::new(fail), ..scripted.hooked() };
    let (_folder, session) = session_with(engine).await;
    session.locks_taken();
    session.complete(URI, CURSOR, AUTOMATIC, None).await.unwrap_err();
    assert_eq!(session.locks_taken(), 3);
}
