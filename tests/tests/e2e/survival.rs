//! Edit survival: what is left of an accepted offer, and what replaced a rejected one, as the
//! log records it.

use feedback::event::{EventKind, KeptCheck};
use tests::buffer::{Buffer, WEEK};
use tests::{Home, Model, QUICK};

fn kept(home: &Home) -> Vec<(KeptCheck, f32)> {
    let events = home.events().into_iter();
    let kept = events.filter_map(|event| match event.kind {
        EventKind::Kept { check, share, .. } => Some((check, share)),
        _ => None,
    });
    kept.collect()
}

fn typed_instead(home: &Home) -> Vec<(String, Vec<u32>)> {
    let events = home.events().into_iter();
    let typed = events.filter_map(|event| match event.kind {
        EventKind::Replacement { id, tokens } => Some((id, tokens)),
        _ => None,
    });
    typed.collect()
}

#[test]
fn an_accepted_offer_is_measured_three_times_and_the_log_has_each() {
    let home = Home::with(Model::Smol, QUICK);
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    week.accept(&item);
    editor.advance_clock(30_000).unwrap();
    assert_eq!(kept(&home), [(KeptCheck::HalfMinute, 1.0)]);
    editor.advance_clock(90_000).unwrap();
    editor.advance_clock(480_000).unwrap();
    let checks: Vec<_> = kept(&home).into_iter().map(|(check, _)| check).collect();
    assert_eq!(checks, [KeptCheck::HalfMinute, KeptCheck::TwoMinutes, KeptCheck::TenMinutes]);
}

#[test]
fn an_accept_that_is_undone_at_once_is_worth_nothing() {
    let home = Home::with(Model::Smol, QUICK);
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    week.accept(&item);
    week.delete_before(item.insert_text.len());
    editor.status().unwrap();
    assert_eq!(kept(&home), [(KeptCheck::Undone, 0.0)]);
}

#[test]
fn what_was_typed_instead_of_an_offer_is_recorded_as_tokens_of_the_line() {
    let home = Home::with(Model::Smol, QUICK);
    let editor = home.editor();
    let mut week = Buffer::open(&editor, "week.rs", WEEK);
    let item = week.offer();
    week.type_text("and so on");
    assert_eq!(typed_instead(&home), [], "the line is not finished");
    week.type_text("\n");
    editor.status().unwrap();
    let typed = typed_instead(&home);
    assert_eq!(typed.len(), 1, "{typed:?}");
    assert_eq!(typed[0].0, item.id);
    assert!((2..12).contains(&typed[0].1.len()), "{typed:?}");
    // Without the code, the event has the number of tokens only.
    let bare = home.output(&["events", "--json"]);
    let line = bare.lines().find(|line| line.contains("\"replacement\"")).expect("the event");
    let value: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(value["tokens"], typed[0].1.len());
}
