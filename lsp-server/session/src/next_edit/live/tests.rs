use super::*;
use next_edit::{By, File, Language, NextEdits, Query};

const URI: &str = "file:///a.rs";
const TEXT: &str = "file.load(1);\nfile.load(2);\nfile.load(3);\nend();\nmore();\nlast();\n";

/// The text after two edits, and the offer of the third one.
fn offered() -> (Rope, Live) {
    let language = Language::named("rust");
    let (mut edits, mut text) = (NextEdits::default(), Rope::from_str(TEXT));
    for start in [5, 20] {
        let edit = next_edit::Edit { start, removed: 4, inserted: "fetch".into() };
        edits.change(URI, language, &text, std::slice::from_ref(&edit), By::Person);
        text.remove(start..start + 4);
        text.insert(start, "fetch");
    }
    let whole = text.to_string();
    let files = [File { name: URI, text: &whole, language }];
    let found = edits.find(&Query { files: &files, cursor: 25, count: 1 }).unwrap_or_default();
    let edit = found.into_iter().next().expect("a place is found");
    let place = edit.range.clone();
    (text, Live::new("e-1".into(), edit, place, 1, 0, false))
}

/// Applies the edits of one message.
fn after(
    live: &mut Live,
    text: &mut Rope,
    edits: &[(usize, usize, &str)],
) -> Option<NextEditOutcome> {
    let was = text.clone();
    let edits: Vec<Edit> = edits
        .iter()
        .map(|(start, removed, inserted)| {
            text.remove(*start..start + removed);
            text.insert(*start, inserted);
            Edit { start: *start, removed: *removed, inserted: (*inserted).into() }
        })
        .collect();
    let message = Message { uri: URI, was: &was, is: text, edits: &edits };
    live.changed(&message, SEEN_AFTER_MS)
}

#[test]
fn an_edit_that_is_made_at_once_was_accepted() {
    let (mut text, mut live) = offered();
    let at = live.place.start;
    let outcome = after(&mut live, &mut text, &[(at, 4, "fetch")]);
    assert_eq!(outcome, Some(NextEditOutcome::Accepted));
}

#[test]
fn an_edit_that_moved_down_is_still_recognised() {
    let (mut text, mut live) = offered();
    assert_eq!(after(&mut live, &mut text, &[(0, 0, "// new\n")]), None);
    let at = live.place.start;
    assert_eq!(text.slice(at..at + 4), "load");
    let outcome = after(&mut live, &mut text, &[(at, 4, "fetch")]);
    assert_eq!(outcome, Some(NextEditOutcome::Accepted));
}

#[test]
fn an_edit_that_is_typed_was_made_by_hand() {
    let (mut text, mut live) = offered();
    let at = live.place.start;
    assert_eq!(after(&mut live, &mut text, &[(at, 4, "")]), None);
    for (offset, c) in ["f", "e", "t", "c"].iter().enumerate() {
        assert_eq!(after(&mut live, &mut text, &[(at + offset, 0, c)]), None);
    }
    let outcome = after(&mut live, &mut text, &[(at + 4, 0, "h")]);
    assert_eq!(outcome, Some(NextEditOutcome::MadeByHand));
}

#[test]
fn another_text_at_the_place_turns_it_down() {
    let (mut text, mut live) = offered();
    let at = live.place.start;
    assert_eq!(after(&mut live, &mut text, &[(at, 4, "store")]), None);
    let end = text.len_chars();
    let outcome = after(&mut live, &mut text, &[(end, 0, "x")]);
    assert_eq!(outcome, Some(NextEditOutcome::EditedOtherwise));
}

#[test]
fn work_on_two_other_lines_passes_it_by() {
    let (mut text, mut live) = offered();
    let end = |text: &Rope| text.len_chars();
    let at_cursor = text.line_to_char(1);
    assert_eq!(after(&mut live, &mut text, &[(at_cursor, 0, "x")]), None, "the cursor's line");
    let first = end(&text) - 1;
    assert_eq!(after(&mut live, &mut text, &[(first, 0, "x")]), None);
    let above = text.line_to_char(4);
    let outcome = after(&mut live, &mut text, &[(above, 0, "x")]);
    assert_eq!(outcome, Some(NextEditOutcome::PassedBy));
}

#[test]
fn an_edit_that_was_hardly_on_screen_is_not_judged() {
    let (_, live) = offered();
    let passed = NextEditOutcome::PassedBy;
    assert_eq!(live.left(passed, SEEN_AFTER_MS - 1), NextEditOutcome::Unseen);
    let mut shown = live;
    shown.is_shown();
    assert_eq!(shown.left(passed, 0), passed);
}

/// Its client reports what it shows, and did not report this edit.
#[test]
fn an_edit_that_was_never_on_screen_is_not_judged() {
    let (_, live) = offered();
    let silent = Live { client_reports: true, ..live };
    let passed = NextEditOutcome::PassedBy;
    assert_eq!(silent.left(passed, 100 * SEEN_AFTER_MS), NextEditOutcome::Unseen);
    let shown = Live { shown: true, ..silent };
    assert_eq!(shown.left(passed, 0), passed);
}

#[test]
fn a_change_of_more_than_the_place_says_nothing() {
    let (mut text, mut live) = offered();
    let chars = text.len_chars();
    let outcome = after(&mut live, &mut text, &[(0, chars, "checked out\n")]);
    assert_eq!(outcome, Some(NextEditOutcome::Superseded));
}
