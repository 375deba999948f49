//! A wrong label teaches the wrong thing. For each outcome of an offer, a test sends the messages
//! of a real client; the outcome must be recorded exactly once.

use feedback::event::{EventKind, Evidence, Outcome};
use rehearsal::client::{Client, Item};
use serde_json::json;
use tests::buffer::{Buffer, WEEK};
use tests::processes::{is_alive, signal};
use tests::{Home, Model, QUICK, eventually};

fn home() -> Home {
    Home::with(Model::Smol, QUICK)
}

/// Checks the outcome of the only offer, in the events and in the counts.
fn check(home: &Home, editor: &Client, item: &Item, expected: (Outcome, Evidence), count: &str) {
    // The answer to any request comes after the notifications before it.
    editor.status().expect("a status");
    assert_eq!(home.outcomes(&item.id), [expected]);
    assert_eq!(counts(home), [(count.to_owned(), 1)]);
}

/// The outcomes with their counts, which must add up to the number of offers.
fn counts(home: &Home) -> Vec<(String, u64)> {
    let status = home.status();
    let episodes = status["episodes"].as_object().expect("episodes are an object").clone();
    let total = episodes["total"].as_u64();
    let counted: Vec<_> = episodes
        .into_iter()
        .filter(|(name, _)| name != "total" && name != "no_offer")
        .filter_map(|(name, count)| Some((name, count.as_u64()?)).filter(|(_, count)| *count > 0))
        .collect();
    assert_eq!(Some(counted.iter().map(|(_, count)| count).sum()), total, "{counted:?}");
    counted
}

#[test]
fn an_open_offer_is_unlabelled() {
    let home = home();
    let editor = home.editor();
    let item = Buffer::open(&editor, "week.rs", WEEK).offer();
    assert!(item.insert_text.starts_with("Thursday, Friday"), "{item:?}");
    assert_eq!(home.outcomes(&item.id), []);
    assert_eq!(counts(&home), [("unlabelled".to_owned(), 1)]);
}

#[test]
fn the_accept_command_after_the_change_is_one_acceptance() {
    let home = home();
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    week.accept(&item);
    // A client may run the command twice (a macro, a retry).
    editor.accept(&item.id).unwrap();
    check(&home, &editor, &item, (Outcome::Accepted, Evidence::Document), "accepted");
}

#[test]
fn the_accept_command_before_the_change_is_one_acceptance() {
    let home = home();
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    editor.accept(&item.id).unwrap();
    week.insert(&item.insert_text);
    check(&home, &editor, &item, (Outcome::Accepted, Evidence::Command), "accepted");
}

/// Clients that never run an item's command give labels too.
#[test]
fn the_change_alone_is_an_acceptance() {
    let home = home();
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    week.insert(&item.insert_text);
    check(&home, &editor, &item, (Outcome::Accepted, Evidence::Document), "accepted");
}

#[test]
fn escape_is_a_reject_of_its_own() {
    let home = home();
    let editor = home.editor();
    let item = Buffer::open(&editor, "week.rs", WEEK).offer();
    editor.did_reject(&item.id, "esc").unwrap();
    // The later timeout changes nothing.
    editor.advance_clock(60_000).unwrap();
    check(&home, &editor, &item, (Outcome::RejectedEsc, Evidence::ClientNotice), "rejected_esc");
}

#[test]
fn ten_seconds_without_an_answer_are_a_reject() {
    let home = home();
    let editor = home.editor();
    let item = Buffer::open(&editor, "week.rs", WEEK).offer();
    editor.advance_clock(9_999).unwrap();
    assert_eq!(home.outcomes(&item.id), []);
    editor.advance_clock(1).unwrap();
    check(&home, &editor, &item, (Outcome::RejectedTimeout, Evidence::Clock), "rejected_timeout");
}

/// The user accepted the offer after it had counted as rejected.
#[test]
fn an_acceptance_after_the_timeout_replaces_the_reject() {
    let home = home();
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    editor.advance_clock(10_000).unwrap();
    week.accept(&item);
    let both =
        [(Outcome::RejectedTimeout, Evidence::Clock), (Outcome::Accepted, Evidence::Command)];
    assert_eq!(home.outcomes(&item.id), both);
    assert_eq!(counts(&home), [("accepted".to_owned(), 1)]);
}

#[test]
fn another_edit_in_its_place_is_a_reject() {
    let home = home();
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    week.type_text("holiday");
    check(&home, &editor, &item, (Outcome::RejectedEdit, Evidence::Document), "rejected_edit");
}

/// Typing what is offered must cost no computation, and must not count as many offers.
#[test]
fn an_offer_that_is_typed_stays_one_offer() {
    let home = home();
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    let text = item.insert_text.clone();
    for (at, typed) in text.char_indices() {
        let same = week.complete().expect("the offer continues");
        assert_eq!((same.id.as_str(), same.insert_text.as_str()), (item.id.as_str(), &text[at..]));
        week.type_text(&typed.to_string());
    }
    let whole = Outcome::TypedThrough { utf16: text.encode_utf16().count() as u32 };
    check(&home, &editor, &item, (whole, Evidence::Document), "typed_through");
    assert_eq!(home.completions().len(), 1);
}

#[test]
fn most_of_an_offer_that_is_typed_is_typed_through_so_far() {
    let home = home();
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    let most = item.insert_text.len() * 3 / 4;
    week.type_text(&item.insert_text[..most]);
    week.type_text("#");
    let share = Outcome::TypedThrough { utf16: most as u32 };
    check(&home, &editor, &item, (share, Evidence::Document), "typed_through");
}

#[test]
fn a_word_accepted_and_then_something_else_is_a_part() {
    let home = home();
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    week.insert("Thursday");
    editor.did_partially_accept(&item, 8).unwrap();
    week.type_text("!");
    let part = Outcome::PartlyAccepted { utf16: 8 };
    check(&home, &editor, &item, (part, Evidence::Document), "partly_accepted");
    let noted = EventKind::PartlyAccepted { id: item.id, accepted_utf16: 8 };
    assert!(home.events().iter().any(|event| event.kind == noted));
}

/// An offer that is accepted word by word is accepted as a whole.
#[test]
fn parts_that_add_up_are_an_acceptance() {
    let home = home();
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    let (word, rest) = item.insert_text.split_at(8);
    week.insert(word);
    editor.did_partially_accept(&item, 8).unwrap();
    week.insert(rest);
    check(&home, &editor, &item, (Outcome::Accepted, Evidence::Document), "accepted");
}

/// Nobody reads an offer in a quarter of a second, so an edit in that time is no rejection.
#[test]
fn an_offer_that_was_gone_before_it_could_be_read_has_no_label() {
    let home = home();
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.complete().unwrap();
    editor.advance_clock(249).unwrap();
    week.type_text("#");
    check(&home, &editor, &item, (Outcome::Unseen, Evidence::Document), "unseen");
}

/// Clients that were written for Copilot report what they show, and do not announce it.
#[test]
fn what_was_rejected_before_the_first_report_was_never_shown() {
    let home = home();
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let unreported = week.complete().unwrap();
    editor.advance_clock(1_000).unwrap();
    week.type_text("holiday");
    editor.status().unwrap();
    let rejected = (Outcome::RejectedEdit, Evidence::Document);
    assert_eq!(home.outcomes(&unreported.id), [rejected]);
    let other = Buffer::open(&editor, "other.rs", WEEK);
    other.offer();
    editor.status().unwrap();
    let unseen = (Outcome::Unseen, Evidence::ClientNotice);
    assert_eq!(home.outcomes(&unreported.id), [rejected, unseen]);
    let counted = [("unlabelled".to_owned(), 1), ("unseen".to_owned(), 1)];
    assert_eq!(counts(&home), counted);
}

/// After that time an offer counts as shown, even if the client does not report it.
#[test]
fn an_offer_that_stood_long_enough_was_seen() {
    let home = home();
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.complete().unwrap();
    editor.advance_clock(250).unwrap();
    week.type_text("#");
    check(&home, &editor, &item, (Outcome::RejectedEdit, Evidence::Document), "rejected_edit");
}

#[test]
fn a_request_elsewhere_supersedes_the_offer() {
    let home = home();
    let editor = home.editor();
    let item = Buffer::open(&editor, "week.rs", WEEK).offer();
    let next = Buffer::open(&editor, "count.rs", "// one, two, three, four, |\n").offer();
    assert_eq!(home.outcomes(&item.id), [(Outcome::Superseded, Evidence::Document)]);
    assert_eq!(counts(&home), [("superseded".to_owned(), 1), ("unlabelled".to_owned(), 1)]);
    assert_ne!(item.id, next.id);
}

#[test]
fn closing_the_file_or_the_editor_is_no_label() {
    let home = home();
    let editor = home.editor();
    let week = Buffer::open(&editor, "week.rs", WEEK);
    let closed = week.offer();
    editor.close(week.uri()).unwrap();
    editor.status().unwrap();
    assert_eq!(home.outcomes(&closed.id), [(Outcome::Superseded, Evidence::Document)]);
    let left = Buffer::open(&editor, "week.rs", WEEK).offer();
    editor.shutdown().unwrap();
    eventually("the session ends", || home.status()["daemon"]["sessions"] == 0);
    assert_eq!(home.outcomes(&left.id), [(Outcome::Superseded, Evidence::Document)]);
    assert_eq!(counts(&home), [("superseded".to_owned(), 2)]);
}

/// Clients written for Copilot send an item's command back, and nothing else of the item.
#[test]
fn an_item_is_recognised_by_its_command_alone() {
    let home = home();
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.complete().unwrap();
    let bare = json!({"command": {"command": "hone.accept", "arguments": [item.id]}});
    editor.notify("textDocument/didShowCompletion", json!({"item": bare})).unwrap();
    let part = json!({"item": bare, "acceptedLength": 8});
    week.insert("Thursday");
    editor.notify("textDocument/didPartiallyAcceptCompletion", part).unwrap();
    week.type_text("!");
    let part = Outcome::PartlyAccepted { utf16: 8 };
    check(&home, &editor, &item, (part, Evidence::Document), "partly_accepted");
    let shown = EventKind::Shown { id: item.id };
    assert!(home.events().iter().any(|event| event.kind == shown));
}

/// An id of an earlier daemon, of another client, or of no offer changes nothing.
#[test]
fn messages_about_unknown_offers_change_nothing() {
    let home = home();
    let editor = home.editor();
    let item = Buffer::open(&editor, "week.rs", WEEK).offer();
    editor.accept("no-such-offer").unwrap_err();
    editor.did_reject("no-such-offer", "esc").unwrap();
    let nothing = editor.request("workspace/executeCommand", json!({"command": "hone.accept"}));
    assert_eq!(nothing.unwrap_err().code(), Some(-32602));
    editor.did_reject(&item.id, "esc").unwrap();
    check(&home, &editor, &item, (Outcome::RejectedEsc, Evidence::ClientNotice), "rejected_esc");
}

/// An editor that reports what it shows was taken for one that does not once its daemon had died.
/// An offer that it had never displayed then counted as rejected.
#[test]
fn what_was_never_displayed_stays_unseen_after_the_daemon_is_replaced() {
    let home = home();
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let shown = week.offer();
    week.accept(&shown);
    let pid = home.daemon_pid().unwrap();
    assert!(signal("-9", pid));
    eventually("the daemon is dead", || !is_alive(pid));
    week.insert("\n// one, two, three, ");
    let never_displayed = week.complete().expect("an offer");
    editor.advance_clock(1_000).unwrap();
    week.insert("something else");
    editor.status().unwrap();
    let outcomes = home.outcomes(&never_displayed.id);
    assert_eq!(outcomes, [(Outcome::Unseen, Evidence::Document)]);
}
