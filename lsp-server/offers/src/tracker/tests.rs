use super::*;

const URI: &str = "file:///a.rs";
/// Long enough after serving for the offer to have been read.
const READ: u64 = MIN_VISIBLE_MS;

/// A tracker with the offer `push(item);` at offset 10, served at 0 ms.
fn offered() -> Tracker {
    let mut tracker = Tracker::default();
    assert_eq!(tracker.serve(vec![offer("o1", "push(item);")], false, 0), vec![]);
    tracker
}

fn insert(start: usize, text: &str) -> Edit {
    Edit { start, removed: 0, inserted: text.into() }
}

fn outcome(outcome: Outcome, evidence: Evidence) -> Vec<EventKind> {
    vec![outcome_event("o1", outcome, evidence)]
}

/// Types `text` from the offer's start, one character a change.
fn type_text(tracker: &mut Tracker, text: &str) -> Vec<EventKind> {
    let mut events = vec![];
    for (i, c) in text.chars().enumerate() {
        events.extend(tracker.edit(URI, &insert(10 + i, &c.to_string()), READ));
    }
    events
}

#[test]
fn the_accept_command_is_an_acceptance() {
    let mut tracker = offered();
    assert_eq!(tracker.accepted("o1"), outcome(Outcome::Accepted, Evidence::Command));
    assert_eq!(tracker.accepted("o1"), vec![], "the same message again");
}

#[test]
fn text_that_appears_at_once_is_an_acceptance_without_any_command() {
    let mut tracker = offered();
    let events = tracker.edit(URI, &insert(10, "push(item);"), READ);
    assert_eq!(events, outcome(Outcome::Accepted, Evidence::Document));
    assert_eq!(tracker.accepted("o1"), vec![], "VS Code's command comes after its change");
}

/// Four entries of the suggestion list that happened to be what was offered counted as accepted
/// offers, in a session of 92 minutes with 77 accepts.
#[test]
fn an_entry_of_the_list_that_is_what_was_offered_is_no_acceptance() {
    let mut tracker = offered();
    let events = tracker.edit_by_list(URI, &insert(10, "push(item);"), READ);
    assert_eq!(events, outcome(Outcome::TypedThrough { utf16: 11 }, Evidence::Document));
    let command = outcome(Outcome::Accepted, Evidence::Command);
    assert_eq!(tracker.accepted("o1"), command, "the client knows better");
    let mut tracker = offered();
    tracker.taking("o1", READ);
    let events = tracker.edit_by_list(URI, &insert(10, "push(item);"), READ);
    assert_eq!(events, outcome(Outcome::Accepted, Evidence::Document), "it was announced");
    let events = offered().edit_by_list(URI, &insert(10, "pop"), READ);
    assert_eq!(events, outcome(Outcome::RejectedEdit, Evidence::Document));
}

#[test]
fn typing_the_whole_offer_is_typing_through() {
    let events = type_text(&mut offered(), "push(item);");
    assert_eq!(events, outcome(Outcome::TypedThrough { utf16: 11 }, Evidence::Document));
}

#[test]
fn the_rest_is_accepted_after_some_typing() {
    let mut tracker = offered();
    assert_eq!(type_text(&mut tracker, "pu"), vec![]);
    assert_eq!(
        tracker.continuation(URI, &Rope::new(), 12),
        Some(("o1".into(), "sh(item);".into()))
    );
    let events = tracker.edit(URI, &insert(12, "sh(item);"), READ);
    assert_eq!(events, outcome(Outcome::Accepted, Evidence::Document));
}

#[test]
fn typing_something_else_is_a_reject() {
    let events = type_text(&mut offered(), "pop");
    assert_eq!(events, outcome(Outcome::RejectedEdit, Evidence::Document));
}

#[test]
fn most_of_it_typed_and_then_changed_is_its_share() {
    let events = type_text(&mut offered(), "push(i)");
    assert_eq!(events, outcome(Outcome::TypedThrough { utf16: 6 }, Evidence::Document));
}

/// Any edit of the document was a rejection, also an import that another tool put in above,
/// formatting on save, a final newline and the other one of two cursors. Gate and learner were
/// taught what the user had never said.
#[test]
fn an_edit_elsewhere_is_no_verdict_and_the_offer_moves_along() {
    let mut tracker = offered();
    assert_eq!(tracker.edit("file:///b.rs", &insert(0, "x"), READ), vec![]);
    assert_eq!(tracker.edit(URI, &insert(0, "use a;\n"), READ), vec![], "above");
    assert_eq!(tracker.edit(URI, &insert(40, "\n"), READ), vec![], "below");
    let shorter = Edit { start: 2, removed: 3, inserted: "x".into() };
    assert_eq!(tracker.edit(URI, &shorter, READ), vec![], "a line above is formatted");
    let start = 10 + 7 - 2;
    assert_eq!(
        tracker.continuation(URI, &Rope::new(), start),
        Some(("o1".into(), "push(item);".into()))
    );
    assert_eq!(tracker.edit(URI, &insert(start, "p"), READ), vec![]);
    assert_eq!(tracker.edit(URI, &insert(5, "p"), READ), vec![], "the other one of two cursors");
    assert_eq!(
        tracker.continuation(URI, &Rope::new(), start + 2),
        Some(("o1".into(), "ush(item);".into()))
    );
    let events = tracker.edit(URI, &insert(start + 2, "ush(item);"), READ);
    assert_eq!(events, outcome(Outcome::Accepted, Evidence::Document));
}

#[test]
fn an_edit_elsewhere_keeps_the_time_running() {
    let mut tracker = offered();
    assert_eq!(tracker.edit(URI, &insert(0, "x"), READ), vec![]);
    let events = tracker.tick(REJECT_TIMEOUT_MS);
    assert_eq!(events, outcome(Outcome::RejectedTimeout, Evidence::Clock));
}

#[test]
fn what_is_rewritten_together_with_its_surroundings_has_no_verdict() {
    let formatted = Edit { start: 4, removed: 12, inserted: "one line\nand another".into() };
    let events = offered().edit(URI, &formatted, READ);
    assert_eq!(events, outcome(Outcome::Superseded, Evidence::Document));
}

/// A formatter's replacement that ended exactly where the offer began was a rejection. So was an
/// edit before what the user had typed of the offer.
#[test]
fn what_is_rewritten_up_to_the_offer_is_no_verdict() {
    let replaced = Edit { start: 8, removed: 2, inserted: "x".into() };
    let events = offered().edit(URI, &replaced, READ);
    assert_eq!(events, outcome(Outcome::Superseded, Evidence::Document));
    let mut tracker = offered();
    type_text(&mut tracker, "pu");
    let removed = Edit { start: 9, removed: 1, inserted: String::new() };
    assert_eq!(tracker.edit(URI, &removed, READ), vec![]);
    assert_eq!(tracker.edit(URI, &insert(9, "  "), READ), vec![]);
    assert_eq!(
        tracker.continuation(URI, &Rope::new(), 13),
        Some(("o1".into(), "sh(item);".into()))
    );
}

#[test]
fn an_edit_that_a_tool_may_have_made_rejects_nothing_and_still_may_accept() {
    let mut tracker = offered();
    let events = tracker.edit_by_tool(URI, &insert(10, "\n"), READ);
    assert_eq!(events, outcome(Outcome::Superseded, Evidence::Document));
    let mut tracker = offered();
    let events = tracker.edit_by_tool(URI, &insert(10, "push(item);"), READ);
    assert_eq!(events, outcome(Outcome::Accepted, Evidence::Document));
}

#[test]
fn an_edit_that_touches_the_place_is_a_verdict() {
    let touching = [
        Edit { start: 9, removed: 1, inserted: String::new() },
        insert(10, "\n"),
        Edit { start: 10, removed: 1, inserted: "x".into() },
    ];
    for edit in touching {
        let events = offered().edit(URI, &edit, READ);
        assert_eq!(events, outcome(Outcome::RejectedEdit, Evidence::Document), "{edit:?}");
    }
}

#[test]
fn nobody_rejects_what_was_gone_before_it_could_be_read() {
    let mut tracker = offered();
    let events = tracker.edit(URI, &insert(10, "x"), MIN_VISIBLE_MS - 1);
    assert_eq!(events, outcome(Outcome::Unseen, Evidence::Document));
    let mut tracker = offered();
    assert_eq!(tracker.shown("o1", 0), vec![EventKind::Shown { id: "o1".into() }]);
    assert_eq!(tracker.shown("o1", 0), vec![], "VS Code shows again at every key");
    let events = tracker.edit(URI, &insert(10, "x"), MIN_VISIBLE_MS - 1);
    assert_eq!(events, outcome(Outcome::RejectedEdit, Evidence::Document));
}

#[test]
fn ten_seconds_without_an_answer_is_a_reject() {
    let mut tracker = offered();
    assert_eq!(tracker.tick(REJECT_TIMEOUT_MS - 1), vec![]);
    let events = tracker.tick(REJECT_TIMEOUT_MS);
    assert_eq!(events, outcome(Outcome::RejectedTimeout, Evidence::Clock));
    let late = tracker.accepted("o1");
    assert_eq!(late, outcome(Outcome::Accepted, Evidence::Command), "it still stood there");
}

/// A slow typist needs more than ten seconds for a long offer, as does who takes it word by word.
#[test]
fn each_step_along_the_offer_begins_the_ten_seconds_again() {
    let mut tracker = offered();
    assert_eq!(tracker.edit(URI, &insert(10, "p"), REJECT_TIMEOUT_MS - 1), vec![]);
    let again = 2 * REJECT_TIMEOUT_MS - 2;
    assert_eq!(tracker.tick(again), vec![]);
    let backspace = Edit { start: 10, removed: 1, inserted: String::new() };
    assert_eq!(tracker.edit(URI, &backspace, again), vec![]);
    assert_eq!(tracker.tick(again + REJECT_TIMEOUT_MS - 1), vec![]);
    let events = tracker.tick(again + REJECT_TIMEOUT_MS);
    assert_eq!(events, outcome(Outcome::RejectedTimeout, Evidence::Clock));
}

#[test]
fn escape_is_kept_apart() {
    let mut tracker = offered();
    let events = tracker.rejected("o1", Outcome::RejectedEsc, READ);
    assert_eq!(events, outcome(Outcome::RejectedEsc, Evidence::ClientNotice));
}

#[test]
fn a_word_taken_and_then_something_else_is_partly_accepted() {
    let mut tracker = offered();
    assert_eq!(tracker.edit(URI, &insert(10, "push"), READ), vec![]);
    let partial = EventKind::PartlyAccepted { id: "o1".into(), accepted_utf16: 4 };
    assert_eq!(tracker.partly_accepted("o1", 4), vec![partial]);
    let events = tracker.edit(URI, &insert(14, "_back"), READ);
    assert_eq!(events, outcome(Outcome::PartlyAccepted { utf16: 4 }, Evidence::Document));
}

/// A user who thought about an offer for longer than the clock waits and then took a word of it had
/// rejected it for good.
#[test]
fn a_part_that_is_taken_after_the_clock_has_rejected_takes_that_back() {
    let part = |utf16| outcome(Outcome::PartlyAccepted { utf16 }, Evidence::ClientNotice);
    let mut tracker = offered();
    tracker.tick(REJECT_TIMEOUT_MS);
    tracker.edit(URI, &insert(10, "push"), REJECT_TIMEOUT_MS + 1);
    assert_eq!(tracker.partly_accepted("o1", 4), part(4));
    assert_eq!(tracker.partly_accepted("o1", 4), vec![], "the same message again");
    assert_eq!(tracker.partly_accepted("o1", 9), part(9));
    assert_eq!(tracker.accepted("o1"), outcome(Outcome::Accepted, Evidence::Command));
    assert_eq!(tracker.partly_accepted("o1", 11), vec![], "all of it was accepted");
    assert_eq!(tracker.partly_accepted("o2", 4), vec![], "an offer that nobody knows");
}

/// The client's text is `fi`, which was typed, the rest of the entry, and what is offered.
#[test]
fn a_part_of_an_entry_is_no_part_of_the_offer_behind_it() {
    let behind_entry = || {
        let mut tracker = Tracker::default();
        let (id, text) = ("o1".into(), "ndIndex(x);".into());
        let uri = URI.into();
        let healing = String::new();
        let offer = Offer {
            id,
            uri,
            start: 12,
            text,
            before: TextBefore::default(),
            healing,
            entry_chars: 7,
        };
        tracker.serve(vec![offer], false, 0);
        tracker.told("o1", "", "fi");
        tracker
    };
    let mut entry_alone = behind_entry();
    assert_eq!(entry_alone.edit(URI, &insert(12, "ndIndex"), READ), vec![]);
    assert_eq!(entry_alone.partly_accepted("o1", 9), vec![]);
    let events = entry_alone.edit(URI, &insert(19, "!"), READ);
    assert_eq!(events, outcome(Outcome::RejectedEdit, Evidence::Document));

    let whole = behind_entry().edit_by_list(URI, &insert(12, "ndIndex(x);"), READ);
    assert_eq!(whole, outcome(Outcome::Accepted, Evidence::Document), "it begins as entries do");

    let mut more = behind_entry();
    let partial = EventKind::PartlyAccepted { id: "o1".into(), accepted_utf16: 2 };
    assert_eq!(more.partly_accepted("o1", 11), vec![partial]);
}

/// copilot.lua says the same before a word as before the whole.
#[test]
fn what_a_client_is_about_to_take_is_told_by_the_change() {
    let whole = outcome(Outcome::Accepted, Evidence::Document);
    let mut tracker = offered();
    assert_eq!(tracker.taking("o1", 0), vec![EventKind::Shown { id: "o1".into() }]);
    assert_eq!(tracker.edit(URI, &insert(10, "push(item);"), READ), whole);

    let mut tracker = offered();
    tracker.taking("o1", 0);
    tracker.edit(URI, &insert(10, "push"), READ);
    let events = tracker.edit(URI, &insert(14, "!"), READ);
    assert_eq!(events, outcome(Outcome::PartlyAccepted { utf16: 4 }, Evidence::Document));

    let mut tracker = offered();
    tracker.tick(REJECT_TIMEOUT_MS);
    let late = tracker.taking("o1", REJECT_TIMEOUT_MS);
    assert_eq!(late, outcome(Outcome::Accepted, Evidence::Command), "it still stood there");
}

#[test]
fn backspace_over_what_was_typed_brings_the_offer_back() {
    let mut tracker = offered();
    type_text(&mut tracker, "pus");
    let backspace = Edit { start: 12, removed: 1, inserted: String::new() };
    assert_eq!(tracker.edit(URI, &backspace, READ), vec![]);
    assert_eq!(
        tracker.continuation(URI, &Rope::new(), 12),
        Some(("o1".into(), "sh(item);".into()))
    );
}

#[test]
fn a_bracket_the_editor_closed_by_itself_is_still_typing_along() {
    let mut tracker = offered();
    type_text(&mut tracker, "push");
    assert_eq!(tracker.edit(URI, &insert(14, "()"), READ), vec![]);
    assert_eq!(tracker.continuation(URI, &Rope::new(), 15), Some(("o1".into(), "item);".into())));
}

/// `()` typed by its first key is one character of the offer, not two: the
/// cursor stands between them.
#[test]
fn a_pair_in_the_offer_itself_is_typed_by_its_first_mark() {
    let mut tracker = Tracker::default();
    let text = "pop();".to_owned();
    let offer = Offer {
        id: "o1".into(),
        uri: URI.into(),
        start: 10,
        text,
        before: TextBefore::default(),
        healing: String::new(),
        entry_chars: 0,
    };
    tracker.serve(vec![offer], false, 0);
    type_text(&mut tracker, "pop");
    assert_eq!(tracker.edit(URI, &insert(13, "()"), READ), vec![]);
    assert_eq!(tracker.continuation(URI, &Rope::new(), 14), Some(("o1".into(), ");".into())));
    let events = tracker.supersede(READ);
    assert_eq!(events, outcome(Outcome::TypedThrough { utf16: 4 }, Evidence::Document));
}

/// `()` is offered, and the user types `(`, which the editor closes. All of the offer appeared at
/// once, and it counted as accepted.
#[test]
fn a_pair_that_is_all_of_the_offer_may_have_been_typed() {
    let pair = || {
        let mut tracker = Tracker::default();
        let (id, uri, text) = ("o1".to_owned(), URI.to_owned(), "()".to_owned());
        tracker.serve(
            vec![Offer {
                id,
                uri,
                start: 10,
                text,
                before: TextBefore::default(),
                healing: String::new(),
                entry_chars: 0,
            }],
            false,
            0,
        );
        tracker
    };
    let mut tracker = pair();
    let events = tracker.edit(URI, &insert(10, "()"), READ);
    assert_eq!(events, outcome(Outcome::TypedThrough { utf16: 2 }, Evidence::Document));
    let command = tracker.accepted("o1");
    assert_eq!(command, outcome(Outcome::Accepted, Evidence::Command), "a client that tells");
    let mut tracker = pair();
    tracker.taking("o1", 0);
    let events = tracker.edit(URI, &insert(10, "()"), READ);
    assert_eq!(events, outcome(Outcome::Accepted, Evidence::Document));
    let mut tracker = offered();
    type_text(&mut tracker, "push(item");
    let events = tracker.edit(URI, &insert(19, ");"), READ);
    assert_eq!(events, outcome(Outcome::Accepted, Evidence::Document), "no pair");
}

/// `text` offered in `foo(|)`, of which it takes the bracket's place.
fn offered_in_brackets(text: &str) -> Tracker {
    let mut tracker = Tracker::default();
    tracker.serve(vec![offer("o1", text)], false, 0);
    tracker.told("o1", ")", "");
    tracker
}

fn replace(start: usize, removed: usize, text: &str) -> Edit {
    Edit { start, removed, inserted: text.into() }
}

#[test]
fn taking_the_place_of_a_bracket_is_an_acceptance() {
    let taken = outcome(Outcome::Accepted, Evidence::Document);
    let mut tracker = offered_in_brackets("a, b);");
    assert_eq!(tracker.edit(URI, &replace(10, 1, "a, b);"), READ), taken);
    // Of an edit, what it leaves as it was is left out.
    let mut tracker = offered_in_brackets("a).b()");
    assert_eq!(tracker.edit(URI, &insert(10, "a).b("), READ), taken);
    let mut tracker = offered_in_brackets(").b();");
    assert_eq!(tracker.edit(URI, &insert(11, ".b();"), READ), taken);
}

#[test]
fn a_bracket_typed_over_goes_along() {
    let mut tracker = offered_in_brackets("a, b);");
    assert_eq!(type_text(&mut tracker, "a, b"), vec![]);
    assert_eq!(tracker.continuation(URI, &Rope::new(), 16), None, "past the bracket");
    assert_eq!(tracker.continuation(URI, &Rope::new(), 15), Some(("o1".into(), ";".into())));
    let events = tracker.edit(URI, &insert(15, ";"), READ);
    assert_eq!(events, outcome(Outcome::TypedThrough { utf16: 6 }, Evidence::Document));
    // The key behind it may come before the next request.
    let mut tracker = offered_in_brackets("a, b);");
    type_text(&mut tracker, "a, b");
    let events = tracker.edit(URI, &insert(15, ";"), READ);
    assert_eq!(events, outcome(Outcome::TypedThrough { utf16: 6 }, Evidence::Document));
    // All of it stands there before that key.
    let events = type_text(&mut offered_in_brackets("a)"), "a");
    assert_eq!(events, outcome(Outcome::TypedThrough { utf16: 2 }, Evidence::Document));
}

/// The file is loaded again, and its last characters are those of the offer's place.
#[test]
fn a_rewrite_that_ends_with_the_replaced_bracket_is_no_verdict() {
    let mut tracker = offered_in_brackets("a, b);");
    let superseded = outcome(Outcome::Superseded, Evidence::Document);
    assert_eq!(tracker.edit(URI, &replace(2, 9, "    f(x)"), READ), superseded);
    let mut tracker = offered_in_brackets("a, b);");
    let rejected = outcome(Outcome::RejectedEdit, Evidence::Document);
    assert_eq!(tracker.edit(URI, &replace(9, 2, ""), READ), rejected, "Backspace in the pair");
}

/// The text has line breaks of two kinds, and the editor puts in the other one.
#[test]
fn an_offer_that_is_put_in_with_other_line_breaks_is_an_acceptance() {
    let taken = outcome(Outcome::Accepted, Evidence::Document);
    let mut tracker = offered_in_brackets("a,\r\n    b);");
    assert_eq!(tracker.edit(URI, &replace(10, 1, "a,\n    b);"), READ), taken);
    let mut tracker = offered_in_brackets("a,\n    b);");
    assert_eq!(tracker.edit(URI, &replace(10, 1, "a,\r\n    b);"), READ), taken);
}

/// VS Code puts what comes behind the bracket there, and leaves the bracket.
#[test]
fn words_are_taken_on_both_sides_of_a_bracket() {
    let mut tracker = offered_in_brackets("a, b).c();");
    assert_eq!(tracker.edit(URI, &insert(10, "a, b"), READ), vec![]);
    tracker.partly_accepted("o1", 4);
    assert_eq!(tracker.edit(URI, &insert(15, ".c"), READ), vec![]);
    tracker.partly_accepted("o1", 7);
    assert_eq!(tracker.continuation(URI, &Rope::new(), 17), Some(("o1".into(), "();".into())));
    let events = tracker.edit(URI, &insert(17, "();"), READ);
    assert_eq!(events, outcome(Outcome::Accepted, Evidence::Document));
}

#[test]
fn a_bracket_closed_while_typing_along_is_replaced_too() {
    let mut tracker = offered();
    type_text(&mut tracker, "push");
    tracker.edit(URI, &insert(14, "()"), READ);
    tracker.told("o1", ")", "");
    let both = replace(14, 2, "");
    assert_eq!(tracker.edit(URI, &both, READ), vec![], "a backspace takes both");
    assert_eq!(tracker.continuation(URI, &Rope::new(), 14), Some(("o1".into(), "(item);".into())));
    tracker.edit(URI, &insert(14, "()"), READ);
    tracker.told("o1", ")", "");
    let events = tracker.edit(URI, &replace(15, 1, "item);"), READ);
    assert_eq!(events, outcome(Outcome::Accepted, Evidence::Document));
}

#[test]
fn what_is_no_longer_on_screen_was_not_rejected() {
    let mut tracker = offered();
    let events = tracker.rejected("o1", Outcome::Superseded, READ);
    assert_eq!(events, outcome(Outcome::Superseded, Evidence::ClientNotice));
    assert_eq!(tracker.tick(REJECT_TIMEOUT_MS), vec![], "nor later");
}

#[test]
fn leaving_without_an_edit_is_no_verdict() {
    let mut tracker = offered();
    let events = tracker.supersede(READ);
    assert_eq!(events, outcome(Outcome::Superseded, Evidence::Document));
    assert_eq!(offered().supersede_in(URI, 0), outcome(Outcome::Unseen, Evidence::Document));
    assert_eq!(offered().supersede_in("file:///b.rs", 0), vec![]);
}

const LINES: &str = "if größe {\n        b();\n    }";

/// A tracker with an offer of several lines at offset 10, served at 0 ms.
fn offered_lines() -> Tracker {
    let mut tracker = Tracker::default();
    tracker.serve(vec![offer("o1", LINES)], false, 0);
    tracker
}

/// What an editor inserts for the Enter key is the break and the indentation.
#[test]
fn a_line_break_comes_with_its_indentation_and_goes_along() {
    let mut tracker = offered_lines();
    assert_eq!(type_text(&mut tracker, "if größe {"), vec![]);
    assert_eq!(tracker.edit(URI, &insert(20, "\n        "), READ), vec![]);
    let rest = Some(("o1".into(), "b();\n    }".into()));
    assert_eq!(tracker.continuation(URI, &Rope::new(), 29), rest);
    let back = Edit { start: 25, removed: 4, inserted: String::new() };
    assert_eq!(tracker.edit(URI, &back, READ), vec![]);
    let rest = Some(("o1".into(), "    b();\n    }".into()));
    assert_eq!(tracker.continuation(URI, &Rope::new(), 25), rest);
    let events = tracker.edit(URI, &insert(25, "    b();\n    }"), READ);
    assert_eq!(events, outcome(Outcome::Accepted, Evidence::Document));
}

#[test]
fn several_lines_that_appear_at_once_are_an_acceptance() {
    let events = offered_lines().edit(URI, &insert(10, LINES), READ);
    assert_eq!(events, outcome(Outcome::Accepted, Evidence::Document));
    let mut typed = offered_lines();
    let events = type_text(&mut typed, LINES);
    let utf16 = LINES.encode_utf16().count() as u32;
    assert_eq!(events, outcome(Outcome::TypedThrough { utf16 }, Evidence::Document));
}

/// A document without a line break may be one of `\r\n`, and the editor inserts those. The offer
/// was rejected by that.
#[test]
fn several_lines_that_appear_with_the_breaks_of_the_document_are_an_acceptance() {
    for line_break in ["\r\n", "\r"] {
        let inserted = LINES.replace('\n', line_break);
        let events = offered_lines().edit(URI, &insert(10, &inserted), READ);
        assert_eq!(events, outcome(Outcome::Accepted, Evidence::Document));
    }
}

#[test]
fn a_line_taken_of_several_and_then_something_else_is_partly_accepted() {
    let mut tracker = offered_lines();
    assert_eq!(tracker.edit(URI, &insert(10, "if größe {\n"), READ), vec![]);
    tracker.partly_accepted("o1", 11);
    assert_eq!(tracker.edit(URI, &insert(21, "        b();"), READ), vec![]);
    tracker.partly_accepted("o1", 23);
    let rest = Some(("o1".into(), "\n    }".into()));
    assert_eq!(tracker.continuation(URI, &Rope::new(), 33), rest);
    let events = tracker.edit(URI, &insert(33, " // why"), READ);
    assert_eq!(events, outcome(Outcome::PartlyAccepted { utf16: 23 }, Evidence::Document));
}

#[test]
fn another_second_line_is_a_reject() {
    let mut tracker = offered_lines();
    type_text(&mut tracker, "if größe {");
    tracker.edit(URI, &insert(20, "\n"), READ);
    let events = tracker.edit(URI, &insert(21, "\tc"), READ);
    assert_eq!(events, outcome(Outcome::RejectedEdit, Evidence::Document));
    let chars_in_document: Vec<usize> =
        tracker.take_decided().iter().map(|one| one.chars_in_document).collect();
    assert_eq!(chars_in_document, [11], "what was typed as offered stays known");
}

fn offer(id: &str, text: &str) -> Offer {
    Offer {
        id: id.into(),
        uri: URI.into(),
        start: 10,
        text: text.into(),
        before: TextBefore::default(),
        healing: String::new(),
        entry_chars: 0,
    }
}

/// Some clients do not announce their reports. Until the first one, an offer that nobody reported
/// counts as shown.
#[test]
fn rejects_before_the_first_report_were_never_shown() {
    let unseen = |id: &str| outcome_event(id, Outcome::Unseen, Evidence::ClientNotice);
    let mut tracker = offered();
    tracker.tick(REJECT_TIMEOUT_MS);
    tracker.serve(vec![offer("o2", "pop();")], false, REJECT_TIMEOUT_MS);
    let now = REJECT_TIMEOUT_MS + READ;
    assert_eq!(
        tracker.edit(URI, &insert(10, "x"), now),
        [outcome_event("o2", Outcome::RejectedEdit, Evidence::Document)]
    );
    tracker.serve(vec![offer("o3", "clear();")], false, now);
    let first = tracker.shown("o3", now);
    assert_eq!(first, [unseen("o1"), unseen("o2"), EventKind::Shown { id: "o3".into() }]);
    assert_eq!(tracker.accepted("o1").len(), 1, "a command says more than silence");
}

#[test]
fn a_first_report_changes_no_offer_that_was_seen() {
    let mut tracker = offered();
    tracker.turned_to("o1", 0);
    tracker.tick(REJECT_TIMEOUT_MS);
    assert_eq!(tracker.client_reports(None), vec![], "the user turned to it");
    let mut tracker = offered();
    tracker.rejected("o1", Outcome::RejectedEsc, READ);
    assert_eq!(tracker.client_reports(None), vec![], "Escape was pressed");
    let mut tracker = offered();
    tracker.tick(REJECT_TIMEOUT_MS);
    assert_eq!(tracker.shown("o1", REJECT_TIMEOUT_MS), vec![], "the report came late");
    assert_eq!(tracker.client_reports(None), vec![], "it reports already");
}

/// `o1` as above on screen, `o2` and `o3` to turn to.
fn invoked_answer() -> Tracker {
    let mut tracker = offered();
    tracker.complete(vec![offer("o2", "push_all(items);"), offer("o3", "sort();")], 0);
    tracker
}

/// The outcomes of the three in that order.
fn outcomes(events: &[EventKind]) -> Vec<Option<Outcome>> {
    let of = |wanted: &str| {
        events.iter().rev().find_map(|event| match event {
            EventKind::Outcome { id, outcome, .. } if id == wanted => Some(*outcome),
            _ => None,
        })
    };
    ["o1", "o2", "o3"].map(of).to_vec()
}

const UNSEEN: Option<Outcome> = Some(Outcome::Unseen);
const LEFT: Option<Outcome> = Some(Outcome::Superseded);

#[test]
fn only_the_offer_on_screen_is_judged() {
    let mut tracker = invoked_answer();
    assert_eq!(tracker.continuations(URI, &Rope::new(), 10).map(|all| all.len()), Some(3));
    let events = tracker.edit(URI, &insert(10, "x"), READ);
    assert_eq!(outcomes(&events), [Some(Outcome::RejectedEdit), UNSEEN, UNSEEN]);
    assert_eq!(events.len(), 3, "each once");
}

#[test]
fn turning_to_another_rejects_nothing() {
    let mut tracker = invoked_answer();
    tracker.shown("o1", 0);
    assert_eq!(tracker.shown("o2", 9_000), vec![EventKind::Shown { id: "o2".into() }]);
    assert_eq!(tracker.tick(REJECT_TIMEOUT_MS), vec![], "its ten seconds begin anew");
    let events = tracker.rejected("o2", Outcome::RejectedEsc, 9_000);
    assert_eq!(outcomes(&events), [LEFT, Some(Outcome::RejectedEsc), UNSEEN]);
}

/// VS Code without its proposed API does not say what it shows, and Hone's commands still say
/// which alternative the user turned to. The next offer then counted as never displayed.
#[test]
fn turning_to_another_says_nothing_of_offers_that_are_not_reported() {
    let judged = |turn: fn(&mut Tracker, &str, u64) -> Vec<EventKind>| {
        let mut tracker = invoked_answer();
        turn(&mut tracker, "o2", READ);
        tracker.rejected("o2", Outcome::RejectedEsc, READ);
        tracker.serve(vec![offer("o4", "pop();")], true, READ);
        tracker.edit(URI, &insert(10, "x"), 2 * READ)
    };
    let ended = |outcome| vec![outcome_event("o4", outcome, Evidence::Document)];
    assert_eq!(judged(Tracker::turned_to), ended(Outcome::RejectedEdit));
    assert_eq!(judged(Tracker::shown), ended(Outcome::Unseen));
}

/// Clients show the first of several. It was the one that had been on screen first, and the next
/// key was held against another one.
#[test]
fn what_the_user_has_turned_to_comes_first() {
    let mut tracker = invoked_answer();
    tracker.shown("o2", READ);
    let offers = tracker.continuations(URI, &Rope::new(), 10).unwrap();
    let ids: Vec<_> = offers.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["o2", "o1", "o3"]);
}

#[test]
fn turning_back_and_taking_it_is_an_acceptance() {
    let mut tracker = invoked_answer();
    for id in ["o1", "o2", "o1"] {
        tracker.shown(id, 0);
    }
    let events = tracker.edit(URI, &insert(10, "push(item);"), READ);
    assert_eq!(outcomes(&events), [Some(Outcome::Accepted), LEFT, UNSEEN]);
}

#[test]
fn another_one_is_taken_by_a_client_that_does_not_say_what_it_shows() {
    let events = invoked_answer().edit(URI, &insert(10, "sort();"), READ);
    assert_eq!(outcomes(&events), [UNSEEN, UNSEEN, Some(Outcome::Accepted)]);
    let events = invoked_answer().accepted("o3");
    assert_eq!(outcomes(&events), [UNSEEN, UNSEEN, Some(Outcome::Accepted)]);
}

#[test]
fn typing_along_keeps_only_the_others_that_still_fit() {
    let mut tracker = invoked_answer();
    type_text(&mut tracker, "push");
    let left = vec![("o1".to_owned(), "(item);".to_owned()), ("o2".into(), "_all(items);".into())];
    assert_eq!(tracker.continuations(URI, &Rope::new(), 14), Some(left));
    let events = tracker.edit(URI, &insert(14, "_all(items);"), READ);
    assert_eq!(outcomes(&events), [UNSEEN, Some(Outcome::Accepted), UNSEEN]);
}

/// What the change alone would have called a word of the first.
#[test]
fn the_command_names_the_one_that_was_taken() {
    let mut tracker = offered();
    let offer = Offer {
        id: "o2".into(),
        uri: URI.into(),
        start: 10,
        text: "push".into(),
        before: TextBefore::default(),
        healing: String::new(),
        entry_chars: 0,
    };
    tracker.complete(vec![offer], 0);
    assert_eq!(tracker.edit(URI, &insert(10, "push"), READ), vec![]);
    let events = tracker.accepted("o2");
    assert_eq!(outcomes(&events), [UNSEEN, Some(Outcome::Accepted), None]);
}

#[test]
fn an_unseen_one_that_goes_leaves_what_is_on_screen() {
    let mut tracker = invoked_answer();
    assert_eq!(tracker.rejected("o3", Outcome::Superseded, READ), vec![]);
    assert_eq!(tracker.continuations(URI, &Rope::new(), 10).map(|all| all.len()), Some(2));
    let events = tracker.rejected("o1", Outcome::Superseded, READ);
    assert_eq!(outcomes(&events), [LEFT, UNSEEN, UNSEEN]);
}
