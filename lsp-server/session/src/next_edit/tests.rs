//! Next edits of a session: what is offered, what is recorded, and what is never done.

mod model;

use crate::Session;
use crate::next_edit::OfferedEdit;
use crate::request::Trigger;
use crate::tests::session_as_set;
use completion::document::{Document, Edit, Encoding, Position};
use engine::scripted::ScriptedEngine;
use feedback::event::{EventKind, NextEditOutcome, Outcome};
use privacy::forget_scope::Scope;
use ropey::Rope;
use services::reason::Reason;
use settings::{Config, NextEdit as Setting};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest wait for a place in a file that is not open.
const PATIENCE: Duration = Duration::from_secs(60);

const URI: &str = "file:///src/a.rs";
const LINES: &str = "file.load(1);\nfile.load(2);\nfile.load(3);\nfile.load(4);\nend();\n";

/// A user of an editor that has one document on screen.
struct User {
    session: Arc<Session>,
    uri: String,
    document: Document,
    _home: tempfile::TempDir,
}

impl User {
    async fn of(text: &str) -> User {
        User::as_set(text, Setting::On).await
    }

    async fn as_set(text: &str, setting: Setting) -> User {
        let mut config = Config::default();
        config.completion.next_edit = setting;
        User::with(text, config).await
    }

    async fn with(text: &str, config: Config) -> User {
        let engine = ScriptedEngine { answers: &["x"], learned: None, takes: Duration::ZERO };
        let (home, session) = session_as_set(config, engine).await;
        let document = open(&session, URI, text);
        User { session, uri: URI.into(), document, _home: home }
    }

    /// Replaces the first such text of a line, in one message.
    fn replace(&mut self, line: usize, old: &str, new: &str) {
        let text = self.document.text.line(line).to_string();
        let at = text.find(old).expect("the line has the text");
        let column = |bytes| text[..bytes].encode_utf16().count() as u32;
        let place = |column| Position { line: line as u32, column };
        self.change((place(column(at)), place(column(at + old.len()))), new);
    }

    fn change(&mut self, range: (Position, Position), new: &str) -> Edit {
        self.document.version += 1;
        let version = self.document.version;
        self.session.change(&self.uri, version, vec![(Some(range), new.into())]).unwrap();
        self.document.apply(Some(range), new.into(), Encoding::Utf16).unwrap()
    }

    async fn ask(&self, line: u32) -> Option<OfferedEdit> {
        self.ask_by(line, Trigger::Automatic).await
    }

    async fn ask_by(&self, line: u32, trigger: Trigger) -> Option<OfferedEdit> {
        let at = Position { line, column: 0 };
        self.session.next_edit(&self.uri, Some(self.document.version), at, trigger).await.ok()
    }

    /// Returns why the last request ended as it did.
    fn why(&self) -> Reason {
        self.session.services.requests.latest()[0].why.clone()
    }

    /// Presses the key until its search finds a place in a file that is not open. On a busy machine
    /// the time of one search may not be enough.
    async fn press_until_found(&self, line: u32) -> Reason {
        let since = Instant::now();
        loop {
            assert_eq!(self.ask_by(line, Trigger::Invoked).await, None);
            let why = self.why();
            if why != Reason::NoOtherPlace {
                return why;
            }
            assert!(since.elapsed() < PATIENCE, "no place is found");
        }
    }

    /// Makes the offered edit, after it has checked that the text is still there.
    fn make(&mut self, edit: &OfferedEdit) {
        assert_eq!((&edit.uri, edit.version), (&self.uri, self.document.version));
        let at = |position| self.document.offset(position, Encoding::Utf16).unwrap();
        let place = at(edit.range.0)..at(edit.range.1);
        assert_eq!(self.document.text.slice(place).to_string(), edit.old);
        self.change(edit.range, &edit.new.clone());
    }

    fn events(&self) -> Vec<EventKind> {
        let mut events = vec![];
        let mut each = |event: feedback::event::Event| {
            events.push(event.kind);
            ControlFlow::Continue(())
        };
        self.session.services.recorder.log().scan(0, &mut each).unwrap();
        events
    }

    fn outcomes(&self) -> Vec<NextEditOutcome> {
        let outcome = |event| match event {
            EventKind::NextEditOutcome { outcome, .. } => Some(outcome),
            _ => None,
        };
        self.events().into_iter().filter_map(outcome).collect()
    }
}

fn open(session: &Session, uri: &str, text: &str) -> Document {
    let path = uri.trim_start_matches("file://").to_owned();
    let text = Rope::from_str(text);
    let document = Document { path, language: "rust".into(), version: 1, text };
    session.open(uri.into(), document.clone());
    document
}

#[tokio::test]
async fn what_was_changed_twice_is_offered_where_it_comes_next() {
    let mut user = User::of(LINES).await;
    user.replace(0, "load", "fetch");
    assert_eq!(user.ask(0).await, None, "once is not enough");
    user.replace(1, "load", "fetch");
    let edit = user.ask(1).await.expect("the third line");
    let range = (Position { line: 2, column: 5 }, Position { line: 2, column: 9 });
    assert_eq!((edit.range, &*edit.old, &*edit.new), (range, "load", "fetch"));
    user.make(&edit);
    let edit = user.ask(2).await.expect("the fourth line");
    assert_eq!(edit.range.0.line, 3);
    user.make(&edit);
    assert_eq!(user.ask(3).await, None, "nothing is left");
    assert_eq!(user.outcomes(), [NextEditOutcome::Accepted; 2]);
    let first = user.events().into_iter().find_map(|event| match event {
        EventKind::NextEdit(edit) => Some(edit),
        _ => None,
    });
    let first = first.expect("the offer is recorded");
    assert_eq!((&*first.path, first.line, first.support), ("/src/a.rs", 3, 2));
    assert_eq!(user.session.services.recorder.edit_gate().labels(), 2);
}

#[tokio::test]
async fn a_request_again_keeps_the_offer() {
    let mut user = User::of(LINES).await;
    user.replace(0, "load", "fetch");
    user.replace(1, "load", "fetch");
    let first = user.ask(1).await.unwrap();
    assert_eq!(user.ask(1).await.unwrap().id, first.id);
    assert_eq!(user.outcomes(), []);
}

#[tokio::test]
async fn subtle_offers_come_with_a_key_alone_and_off_is_off() {
    for (setting, by_itself, by_key) in
        [(Setting::Off, false, false), (Setting::Subtle, false, true), (Setting::On, true, true)]
    {
        let mut user = User::as_set(LINES, setting).await;
        user.replace(0, "load", "fetch");
        user.replace(1, "load", "fetch");
        assert_eq!(user.ask(1).await.is_some(), by_itself, "{setting:?}");
        assert_eq!(user.ask_by(1, Trigger::Invoked).await.is_some(), by_key, "{setting:?}");
    }
}

#[tokio::test]
async fn a_language_may_have_a_setting_of_its_own() {
    for (language, is_asked) in [("rust", false), ("go", true)] {
        let mut config = Config::default();
        config.completion.next_edit = Setting::On;
        config.completion.next_edit_for.insert(language.into(), Setting::Off);
        let mut user = User::with(LINES, config).await;
        user.replace(0, "load", "fetch");
        user.replace(1, "load", "fetch");
        assert_eq!(user.ask(1).await.is_some(), is_asked, "off for {language}");
    }
}

#[tokio::test]
async fn every_request_says_why_it_ended_as_it_did() {
    let mut user = User::of("file.load(1);\nfile.load(2);\nfile.load(3);\nend();\n").await;
    user.replace(0, "load", "fetch");
    assert!(user.ask(0).await.is_none());
    assert_eq!(user.why(), Reason::NothingAlike);
    user.replace(1, "load", "fetch");
    let edit = user.ask(1).await.expect("the third line");
    assert_eq!(user.why(), Reason::Shown);
    user.session.rejected(&edit.id, Outcome::RejectedEsc);
    assert!(user.ask(1).await.is_none());
    assert_eq!(user.why(), Reason::TurnedDown);
    user.replace(2, "load", "fetch");
    assert!(user.ask(2).await.is_none());
    assert_eq!(user.why(), Reason::NoOtherPlace);
    for (setting, reason) in
        [(Setting::Off, Reason::NextEditsOff), (Setting::Subtle, Reason::NextEditsByKey)]
    {
        let user = User::as_set(LINES, setting).await;
        assert!(user.ask(1).await.is_none());
        assert_eq!(user.why(), reason);
    }
}

/// Two unlikely things speak against the edit: the rule's places were wrong, and it is far away.
#[tokio::test]
async fn the_gate_says_what_it_holds_an_edit_back_for() {
    let mut user = User::of(&"file.load(1);\n".repeat(400)).await;
    let mut held_back = false;
    for round in 0..60 {
        user.replace(2 * round, "load", &format!("fetch{round}"));
        user.replace(2 * round + 1, "load", &format!("fetch{round}"));
        if let Some(edit) = user.ask(0).await {
            user.session.rejected(&edit.id, Outcome::RejectedEsc);
        } else if let Reason::HeldBack { probability, threshold, weighed } = user.why() {
            assert!(probability < threshold && !weighed.is_empty());
            held_back = true;
        }
    }
    assert!(held_back);
}

#[tokio::test]
async fn an_old_version_and_an_unknown_document_get_no_edit() {
    let mut user = User::of(LINES).await;
    user.replace(0, "load", "fetch");
    user.replace(1, "load", "fetch");
    let at = Position { line: 1, column: 0 };
    let ask = |uri, version| user.session.next_edit(uri, Some(version), at, Trigger::Automatic);
    assert_eq!(ask(URI, 2).await, Err(Reason::Superseded));
    assert_eq!(ask(URI, 9).await, Err(Reason::Superseded), "a version that is not here yet");
    assert_eq!(ask("file:///none.rs", 1).await, Err(Reason::OutOfStep));
    assert!(ask(URI, 3).await.is_ok());
}

#[tokio::test]
async fn a_text_that_changes_under_the_offer_is_not_offered_any_more() {
    let mut user = User::of(LINES).await;
    user.replace(0, "load", "fetch");
    user.replace(1, "load", "fetch");
    let edit = user.ask(1).await.unwrap();
    user.session.next_edit_shown(&edit.id);
    // Another program writes the whole file anew.
    let end = Position { line: 99, column: 0 };
    user.change((Position { line: 0, column: 0 }, end), "all();\nis();\nnew();\n");
    assert_eq!(user.ask(1).await, None);
    assert_eq!(user.outcomes(), [NextEditOutcome::Superseded]);
    // A client that makes the old edit all the same changes nothing here, and says so too late.
    user.session.accepted(&edit.id).unwrap();
    assert_eq!(user.outcomes(), [NextEditOutcome::Superseded]);
}

/// An editor keeps an edit that the user asked for on screen while the next automatic request finds
/// none, and while the user writes elsewhere. That it was made then was answered and not recorded.
#[tokio::test]
async fn an_edit_that_the_editor_still_has_counts_when_it_is_made() {
    for is_passed_by in [false, true] {
        let mut user = User::of(LINES).await;
        user.replace(0, "load", "fetch");
        user.replace(1, "load", "fetch");
        let mut edit = user.ask_by(1, Trigger::Invoked).await.unwrap();
        user.session.next_edit_shown(&edit.id);
        let ended = if is_passed_by {
            let top = Position { line: 0, column: 0 };
            user.change((top, top), "// a\n");
            user.replace(4, "load(4)", "load(5)");
            user.replace(5, "end", "finish");
            edit.range =
                (Position { line: 3, ..edit.range.0 }, Position { line: 3, ..edit.range.1 });
            edit.version = user.document.version;
            NextEditOutcome::PassedBy
        } else {
            user.session.turn(|state, turn| {
                let events = state.next_edits.withdraw(turn.now_ms);
                turn.events.extend(events);
            });
            NextEditOutcome::Superseded
        };
        assert_eq!(user.outcomes(), [ended]);
        user.session.accepted(&edit.id).unwrap();
        assert_eq!(user.outcomes(), [ended], "it does not stand there");
        user.make(&edit);
        for _ in 0..2 {
            user.session.accepted(&edit.id).unwrap();
            assert_eq!(user.outcomes(), [ended, NextEditOutcome::Accepted]);
        }
    }
}

#[tokio::test]
async fn a_rule_ends_when_it_is_rejected_twice() {
    let mut user = User::of(&"file.load(1);\n".repeat(9)).await;
    user.replace(0, "load", "fetch");
    user.replace(1, "load", "fetch");
    let mut offers = 0;
    while let Some(edit) = user.ask(1).await {
        offers += 1;
        user.session.rejected(&edit.id, Outcome::RejectedEsc);
        assert!(offers < 9);
    }
    assert!(offers <= 2, "{offers} offers");
    assert_eq!(user.outcomes(), vec![NextEditOutcome::Rejected; offers]);
}

#[tokio::test]
async fn an_edit_that_is_undone_at_once_was_wrong() {
    let mut user = User::of(LINES).await;
    user.replace(0, "load", "fetch");
    user.replace(1, "load", "fetch");
    let edit = user.ask(1).await.unwrap();
    user.make(&edit);
    user.replace(2, "fetch", "load");
    assert_eq!(user.outcomes(), [NextEditOutcome::Accepted, NextEditOutcome::Undone]);
    assert!(user.ask(2).await.is_none_or(|edit| edit.range.0.line != 2), "it is not offered again");
}

#[tokio::test]
async fn the_other_open_documents_come_after_the_own_one() {
    let mut user = User::of("file.load(1);\nfile.load(2);\n").await;
    let other = open(&user.session, "file:///src/b.rs", "\n// 😀\n\tfile.load(3);\r\n");
    user.replace(0, "load", "fetch");
    user.replace(1, "load", "fetch");
    let edit = user.ask(1).await.expect("the other document");
    assert_eq!((&*edit.uri, edit.version), ("file:///src/b.rs", other.version));
    let range = (Position { line: 2, column: 6 }, Position { line: 2, column: 10 });
    assert_eq!(edit.range, range);
}

#[tokio::test]
async fn line_breaks_of_windows_and_tabs_stay_as_they_are() {
    let text =
        "\tfile.load(1); // é😀\r\n\tfile.load(2);\r\n\t/* 😀 */ file.load(3);\r\nend();\r\n";
    let mut user = User::of(text).await;
    user.replace(0, "load(1)", "fetch(1)");
    user.replace(1, "load(2)", "fetch(2)");
    let edit = user.ask(1).await.expect("the third line");
    user.make(&edit);
    let expected = text.replace("load", "fetch");
    assert_eq!(user.document.text.to_string(), expected);
}

#[tokio::test]
async fn ten_thousand_places_are_offered_one_by_one() {
    let mut user = User::of(&"file.load(1);\n".repeat(10_000)).await;
    user.replace(0, "load", "fetch");
    user.replace(1, "load", "fetch");
    for line in 2..6 {
        let edit = user.ask(line - 1).await.expect("the next line");
        assert_eq!(edit.range.0.line, line);
        user.make(&edit);
    }
}

/// Two windows on one file are two sessions: each has its own text and its own versions.
#[tokio::test]
async fn two_windows_do_not_mix_their_texts() {
    let mut one = User::of(LINES).await;
    let mut other = User::of("// A line more here.\nfile.load(1);\nfile.load(2);\n").await;
    for user in [&mut one, &mut other] {
        let first = usize::from(user.document.text.line(0).to_string().starts_with("//"));
        user.replace(first, "load", "fetch");
        user.replace(first + 1, "load", "fetch");
    }
    assert_eq!(one.ask(1).await.unwrap().range.0.line, 2);
    assert_eq!(other.ask(2).await, None);
}

/// What is written in a file with credentials must not turn up in another one.
#[tokio::test]
async fn edits_of_private_files_teach_nothing() {
    let mut user = User::of(LINES).await;
    let open_as = |uri: &str, language: &str| {
        let text = Rope::from_str("KEY=load\nOTHER=load\n");
        let (path, language) = (uri.trim_start_matches("file://").to_owned(), language.to_owned());
        user.session.open(uri.into(), Document { path, language, version: 1, text });
    };
    open_as("file:///src/.env", "dotenv");
    for (line, column) in [(0, 4), (1, 6)] {
        let at = |column| Position { line, column };
        let change = (Some((at(column), at(column + 4))), "secret".into());
        user.session.change("file:///src/.env", 2, vec![change]).unwrap();
    }
    assert_eq!(user.ask(0).await, None);
    user.replace(0, "load", "fetch");
    user.replace(1, "load", "fetch");
    assert!(user.ask(1).await.is_some(), "other files continue");
}

/// The text alone is no secret: only the name next to it says that it is one.
#[tokio::test]
async fn a_password_is_neither_offered_in_another_file_nor_recorded() {
    let password = format!("\"{}\"", ["Tr0ub4dor", "-zz9Kq"].concat());
    for (name, is_secret) in [("password", true), ("colour", false)] {
        let line = format!("    {name} = \"changeme\"\n");
        let mut user = User::of(&format!("connect()\n{line}open()\n").repeat(3)).await;
        open(&user.session, "file:///src/b.rs", &format!("other()\n{line}"));
        for line in [1, 4] {
            user.replace(line, "\"changeme\"", &password);
        }
        let edit = user.ask_by(4, Trigger::Invoked).await.expect("the third one");
        assert_eq!((&*edit.uri, edit.range.0.line), (URI, 7), "it stays in its file");
        user.make(&edit);
        let elsewhere = user.ask_by(7, Trigger::Invoked).await;
        assert_eq!(elsewhere.is_none(), is_secret, "{name}");
        let is_stored = user.events().iter().any(|event| matches!(event, EventKind::NextEdit(_)));
        assert_eq!(is_stored, !is_secret, "{name}");
    }
}

#[tokio::test]
async fn edits_that_are_forgotten_teach_nothing_any_more() {
    let mut user = User::of(LINES).await;
    user.replace(0, "load", "fetch");
    assert_eq!(user.ask(0).await, None);
    user.session.forget();
    user.replace(1, "load", "fetch");
    assert_eq!(user.ask(1).await, None);
    user.replace(2, "load", "fetch");
    assert!(user.ask(2).await.is_some(), "two edits since");
}

#[tokio::test]
async fn a_client_that_never_asks_costs_a_bounded_queue() {
    let mut user = User::of(LINES).await;
    let at = Position { line: 4, column: 0 };
    for _ in 0..3_000 {
        user.change((at, at), "x");
    }
    assert_eq!(user.ask(4).await, None);
    user.replace(0, "load", "fetch");
    user.replace(1, "load", "fetch");
    assert!(user.ask(1).await.is_some());
}

/// A user who has a folder open, and one file of it.
async fn in_a_folder(files: &[(&str, &str)]) -> (User, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let mut user = User::of("").await;
    user.session.open_folder(folder.path());
    user.uri = format!("file://{}", folder.path().join(files[0].0).display());
    user.document = open(&user.session, &user.uri, files[0].1);
    (user, folder)
}

#[tokio::test]
async fn the_key_finds_the_next_place_in_a_file_that_is_not_open() {
    let open_one = "file.load_all(1);\nfile.load_all(2);\n";
    let files = [
        ("a.rs", open_one),
        ("b.py", "file.load_all(4)\n"),
        ("c.rs", "end();\nfile.load_all(3);\n"),
    ];
    let (mut user, folder) = in_a_folder(&files).await;
    for line in 0..2 {
        user.replace(line, "load_all", "fetch_all");
    }
    assert_eq!(user.ask(1).await, None);
    assert_eq!(user.why(), Reason::NoOtherPlace, "nobody reads files while the user types");
    let path = folder.path().join("c.rs").to_str().unwrap().to_owned();
    let there = Reason::InAnotherFile { path: path.clone(), line: 2 };
    assert_eq!(user.press_until_found(1).await, there);

    let uri = format!("file://{path}");
    user.document = open(&user.session, &uri, files[2].1);
    user.uri = uri;
    let edit = user.ask_by(1, Trigger::Invoked).await.expect("the place in the opened file");
    assert_eq!((edit.range.0.line, &*edit.new), (1, "fetch_all"));
    user.make(&edit);
    assert_eq!(user.ask_by(1, Trigger::Invoked).await, None);
    assert_eq!(user.why(), Reason::NoOtherPlace);
}

#[tokio::test]
async fn no_place_is_named_of_a_file_that_is_ignored_forgotten_or_holds_a_secret() {
    let key = format!("file.load_all(3);\nconst K: &str = \"AKIA{}\";\n", "QYLPMN5HHHFPZAM2");
    let files = [
        ("a.rs", "file.load_all(1);\nfile.load_all(2);\n"),
        (".honeignore", "ignored.rs\n"),
        ("forgotten.rs", "file.load_all(3);\n"),
        ("ignored.rs", "file.load_all(3);\n"),
        ("secret.rs", &*key),
        // Files are searched in the order of their names, so this one is the last.
        ("third.rs", "file.load_all(4);\n"),
    ];
    let (mut user, folder) = in_a_folder(&files).await;
    let name = folder.path().join("forgotten.rs").to_str().unwrap().to_owned();
    let access = &user.session.services.access;
    access.forgotten.add(&Scope::File { names: vec![name] }).unwrap();
    for line in 0..2 {
        user.replace(line, "load_all", "fetch_all");
    }
    let path = folder.path().join("third.rs").to_str().unwrap().to_owned();
    assert_eq!(user.press_until_found(1).await, Reason::InAnotherFile { path, line: 1 });
}
