//! The form and the answers are vectors in words of our own, laid out as the released client lays
//! them out.

use super::*;
use crate::{By, Edit, File, History, Language, NextEdit};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use ropey::Rope;

const OPENED: &str = "\
fn main() {
    let cart = load();
    let sum = total(cart);

    print(sum);
    save(cart);
    close();
}
";

/// A document that was opened and changed.
struct Document {
    opened: String,
    text: String,
    changes: Vec<Changed>,
}

impl Document {
    fn unchanged(text: &str) -> Document {
        Document { opened: text.into(), text: text.into(), changes: vec![] }
    }

    /// Replaces the first such text of a document by another one.
    fn changed(text: &str, edits: &[(&str, &str)]) -> Document {
        let (mut rope, mut history) = (Rope::from(text), History::default());
        for (old, new) in edits {
            let now = rope.to_string();
            let start = now[..now.find(old).expect(old)].chars().count();
            let edit = Edit { start, removed: old.chars().count(), inserted: (*new).into() };
            let language = Language::named("rs");
            history.change("a.rs", language, &rope, std::slice::from_ref(&edit), By::Person);
            rope.remove(start..start + edit.removed);
            rope.insert(start, new);
        }
        let now = rope.to_string();
        let units = history.latest(8);
        let changes = units.iter().filter_map(|unit| Changed::of(unit, "a.rs", Some(&now)));
        Document { opened: text.into(), changes: changes.collect(), text: now }
    }

    fn form(&self) -> Form<'_> {
        let Document { opened, text, changes } = self;
        Form { path: "a.rs", opened, text, changes, shown: Shown::default(), other: None }
    }

    /// The window around the end of this text.
    fn window(&self, behind: &str) -> Window {
        let cursor = self.text.find(behind).expect(behind) + behind.len();
        Window::around(&self.text, cursor).unwrap()
    }

    /// Returns what is offered, as `line: old → new`, or why nothing is.
    fn offered(&self, behind: &str, answer: &str) -> Result<String, Dropped> {
        self.offered_to(behind, answer, &Rejected::default())
    }

    fn offered_to(
        &self,
        behind: &str,
        answer: &str,
        rejected: &Rejected,
    ) -> Result<String, Dropped> {
        let (form, window) = (&self.form(), &self.window(behind));
        let hunk = Offered { form, window, answer, is_whole: true }.hunk("a.rs", rejected)?;
        let old = &self.text[hunk.range.clone()];
        Ok(format!("{}: {old} → {}", hunk.lines.start, hunk.new))
    }

    /// The user rejects what is offered.
    fn reject(&self, behind: &str, answer: &str, rejected: &mut Rejected) {
        let (form, window) = (&self.form(), &self.window(behind));
        let offered = Offered { form, window, answer, is_whole: true };
        let hunk = offered.hunk("a.rs", &Rejected::default()).unwrap();
        let file = File { name: "a.rs", text: &self.text, language: Language::named("rs") };
        rejected.note(&NextEdit::by_model(&file, &hunk, Place::Cursor));
    }
}

#[test]
fn a_prompt_is_laid_out_as_the_models_were_trained() {
    let document = Document::changed(OPENED, &[("load()", "load_all()"), ("cart =", "carts =")]);
    let other = Some(("b.rs", "fn load() {}\n"));
    let form = Form { other, ..document.form() };
    let blocks = form.blocks(&document.window("let carts"));
    let whole: String = blocks.iter().map(|block| format!("<|file_sep|>{block}")).collect();
    let expected = "\
<|file_sep|>b.rs
fn load() {}
<|file_sep|>a.rs
fn main() {
    let cart = load();
    let sum = total(cart);

    print(sum);
    save(cart);
    close();
}

<|file_sep|>a.rs:1:3
original:
fn main() {
    let cart = load();
    let sum = total(cart);
updated:
fn main() {
    let carts = load_all();
    let sum = total(cart);
<|file_sep|>original/a.rs:2:9
fn main() {
    let cart = load();
    let sum = total(cart);

    print(sum);
    save(cart);
    close();
<|file_sep|>current/a.rs:2:9
fn main() {
    let carts<|cursor|> = load_all();
    let sum = total(cart);

    print(sum);
    save(cart);
    close();
<|file_sep|>updated/a.rs:2:9
fn main() {
";
    assert_eq!(whole, expected);
}

#[test]
fn the_window_has_no_blank_edges_and_the_model_begins_behind_its_first_line() {
    let document = Document::unchanged("\n\none();\n\ntwo();\n\n\n");
    let window = document.window("one(");
    assert_eq!(window.text(&document.text), "one();\n\ntwo();");
    assert_eq!((window.line, &*window.prefill(&document.text)), (2, "one("));
    let below = document.window("two()");
    assert_eq!(below.prefill(&document.text), "one();\n\n", "empty lines go along");
    assert_eq!(Window::around("\n\n", 1), None, "nothing is written there");
    let long = format!("{}\n", "x".repeat(4000));
    assert_eq!(Window::around(&long, 10), None);
    let document = Document::unchanged(&format!("{}\n", "y".repeat(400)).repeat(4));
    let window = Window::around(&document.text, 2 * 401).unwrap();
    assert_eq!((window.line, window.range.len()), (1, 2 * 401), "it fits the answer");
}

/// A document of which a piece is shown, and whose lines are as long as people write them.
fn long_document(changed: &[usize]) -> Document {
    let line = |at: usize, name: &str| format!("{name}_{at} = \"{}\";\n", "x".repeat(80));
    let text: String = (0..300).map(|at| line(at, "value")).collect();
    let added = |at: &usize| {
        let lines: String = (0..5).map(|more| line(more, "other")).collect();
        (format!("value_{at} ="), format!("{lines}value_{at} ="))
    };
    let edits: Vec<(String, String)> = changed.iter().map(added).collect();
    let edits: Vec<(&str, &str)> = edits.iter().map(|(old, new)| (&**old, &**new)).collect();
    Document::changed(&text, &edits)
}

#[test]
fn a_piece_of_a_long_file_stays_while_the_cursor_moves_a_little() {
    let document = long_document(&[]);
    let mut pieces: Vec<String> = vec![];
    for line in 0..300 {
        let own = format!("value_{line} =");
        let piece = document.form().blocks(&document.window(&own)).remove(0);
        assert!(piece.contains(&own) && piece.len() <= FILE_BYTES_MAX + 8, "line {line}");
        if pieces.last() != Some(&piece) {
            pieces.push(piece);
        }
    }
    let blocks = document.text.len().div_ceil(FILE_BYTES_MAX / 2);
    assert!(pieces.len() <= blocks + 1, "{} pieces of {blocks} blocks", pieces.len());
}

#[test]
fn changes_are_left_out_before_a_prompt_is_too_long() {
    let document = long_document(&[20, 60, 100, 140, 180, 220]);
    let other = Some(("b.rs", &*document.text));
    let form = Form { other, ..document.form() };
    let blocks = form.blocks(&document.window("value_220 ="));
    let bytes: usize = blocks.iter().map(|block| block.len() + 3).sum();
    assert!(bytes <= super::form::PROMPT_BYTES_MAX, "{bytes} bytes");
    assert!(blocks[0].starts_with("b.rs\n") && blocks[1].starts_with("a.rs\n"));
    let changes = blocks[2..].iter().filter(|block| block.contains("original:\n")).count();
    assert!((1..6).contains(&changes), "{changes} changes");
}

#[test]
fn old_changes_are_left_out_together_and_keep_their_lines() {
    let text: String = (0..12).map(|at| format!("line_{at}_();\n\n")).collect();
    let named: Vec<String> = (0..12).rev().map(|at| format!("line_{at}_")).collect();
    let edits: Vec<(&str, &str)> = named.iter().map(|name| (&**name, "\nx")).collect();
    let mut shown = Shown::default();
    let mut seen: Vec<Vec<String>> = vec![];
    for count in 1..=12 {
        let document = Document::changed(&text, &edits[..count]);
        shown = shown.after(&document.changes);
        let form = Form { shown, ..document.form() };
        let blocks = form.blocks(&document.window("\nx"));
        let changes = blocks.into_iter().filter(|block| block.contains("original:\n"));
        seen.push(changes.collect());
    }
    assert_eq!(seen.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 4, 5, 6, 4, 5, 6]);
    let earlier = Document::changed(&text, &edits[..3]).changes;
    assert_eq!(shown.after(&earlier).of(&earlier).count(), 3, "the later ones were undone");
    for (before, after) in seen.iter().zip(&seen[1..]) {
        assert!(after.len() == 4 && before[3..] == after[..3] || after.starts_with(before));
    }
}

/// The same file with either sort of line breaks.
#[test]
fn an_answer_becomes_the_first_edit_at_the_cursor_or_below() {
    let answer = "    let carts = load();\n    let sum = total(carts);\n\n    print(sum);\n\
        \x20   save(carts);\n    close();\n";
    let edits = [("cart =", "carts =")];
    let document = Document::changed(OPENED, &edits);
    assert_eq!(document.offered("let carts", answer).unwrap(), "2:  → s");
    let document = Document::changed(&OPENED.replace('\n', "\r\n"), &edits);
    assert_eq!(document.offered("let carts", answer).unwrap(), "2:  → s");
    let inserted = answer.replace("    save", "    check();\n    save").replace("carts)", "cart)");
    assert_eq!(document.offered("let carts", &inserted).unwrap(), "5:  →     check();\r\n");
    let document = Document::changed("a(1);\nb(2);", &[("1", "11")]);
    assert_eq!(document.offered("a(11", ");\nb(2);\nc(3);\n").unwrap(), "2:  → \nc(3);");
    assert_eq!(document.offered("a(11", ");\nb(22);").unwrap(), "1:  → 2");
}

#[test]
fn edits_above_the_cursor_come_last_and_the_nearest_of_them_first() {
    let document = Document::unchanged("aa();\nbb();\ncc();\ndd();\nee();\nff();\ngg();\n");
    let window = document.window("dd(");
    let lines = |answer: &str| -> Vec<std::ops::Range<usize>> {
        hunks(&document.text, &window, answer).into_iter().map(|hunk| hunk.lines).collect()
    };
    assert_eq!(lines("cC();\ndd();\neE();\nff();\ngg();\n"), [4..5, 2..3]);
    assert_eq!(lines("cC();\ndd();\neE();\nff();\ngG();\n"), [4..5, 6..7, 2..3]);
    let window = document.window("ff(");
    let fused = hunks(&document.text, &window, "eE();\nff();\ngg();\n");
    assert_eq!(fused.len(), 1);
}

#[test]
fn what_is_not_worth_showing_is_dropped() {
    let document = Document::changed(OPENED, &[("load()", "load_all()")]);
    let same = "    let cart = load_all();\n    let sum = total(cart);\n\n    print(sum);\n    \
        save(cart);\n    close();\n";
    let why = |answer: &str| document.offered("load_all", answer).unwrap_err();
    assert_eq!(why(same), Dropped::Unchanged);
    assert_eq!(why(&same.replace("load_all", "load")), Dropped::TakesBack);
    assert_eq!(why(&same.replace("_all", "")), Dropped::TakesBack);
    assert_eq!(why(&same.replace("print(sum)", "print( sum )")), Dropped::OnlyBlanks);
    assert_eq!(why(&format!("    use a;\n{same}")), Dropped::OnlyAbove);
    assert_eq!(why(""), Dropped::Blank, "it would delete the window");
    assert_eq!(why("\n    \n"), Dropped::Blank);
    assert_eq!(why("<|fim_middle|>"), Dropped::Malformed);
    let (form, window) = (&document.form(), &document.window("load_all"));
    let cut = Offered { form, window, answer: "    let c", is_whole: false };
    assert_eq!(cut.hunk("a.rs", &Rejected::default()), Err(Dropped::CutOff));
    let useful = same.replace("print(sum)", "print(sum, cart)");
    assert_eq!(document.offered("load_all", &useful).unwrap(), "4:  → , cart");
    let mut rejected = Rejected::default();
    document.reject("load_all", &useful, &mut rejected);
    let again = document.offered_to("load_all", &useful, &rejected);
    assert_eq!(again, Err(Dropped::RejectedBefore));
    for at in 0..REJECTED_MAX {
        let other = same.replace("print(sum)", &format!("print({at})"));
        document.reject("load_all", &other, &mut rejected);
    }
    let forgotten = document.offered_to("load_all", &useful, &rejected);
    assert!(forgotten.is_ok(), "twenty others were rejected since");
    let typed = Document::changed("one();\ntwo();\n", &[("one();\n", "one();\nextra();\n")]);
    let deleted = typed.offered("one()", ";\ntwo();\n");
    assert_eq!(deleted, Err(Dropped::TakesBack));
    let typed = Document::changed("f(a);\ntwo();\n", &[("a)", "a, bb)"), ("two", "tow")]);
    let deleted = typed.offered("f(a", ");\ntow();\n");
    assert_eq!(deleted, Err(Dropped::TakesBack), "another change is newer");
    let typed = Document::changed("f(a);\ntwo();\n", &[("two", "tow"), ("a)", "a, bb)")]);
    assert_eq!(typed.offered("f(a", ");\ntow();\n"), Err(Dropped::TakesBack));
    let typed = Document::changed("f(a);\n\ntwo();\n", &[("a)", "a, bb)")]);
    let both = typed.offered("f(a", ");\n\ntwo(1);\n");
    assert_eq!(both.unwrap(), "2:  → 1", "the other hunk deletes what was typed");
    assert_eq!(typed.offered("f(a", ", c);\n\ntwo();\n").unwrap(), "0: bb → c");
    let imports = Document::changed("use a;\nf(b);\ng();\n", &[("b", "bc")]);
    assert_eq!(imports.offered("use ", "b;\nf(bc);\ng();\n"), Err(Dropped::OnlyImports));
    let all: String = (0..9).map(|at| format!("line{at}();\n")).collect();
    let anew: String = (2..9).map(|at| format!("other{at}();\n")).collect();
    let document = Document::unchanged(&all);
    assert_eq!(document.offered("line3(", &anew), Err(Dropped::Rewrites));
}

#[test]
fn a_hunk_that_takes_a_change_back_is_dropped_alone() {
    let mut document = Document::changed(OPENED, &[("cart = load", "carts = load")]);
    let back = "    let cart = load();\n    let sum = total(cart);\n\n    print(sum);\n    \
        save(cart);\n    close();\n";
    let more = back.replace("print(sum)", "print(sum, 2)");
    let offered = |document: &Document, answer: &str| document.offered("let carts", answer);
    assert_eq!(offered(&document, &more).unwrap(), "4:  → , 2");
    let rest = std::mem::take(&mut document.changes);
    assert_eq!(offered(&document, &more).unwrap(), "4:  → , 2", "as it was opened");
    assert_eq!(offered(&document, back), Err(Dropped::TakesBack));
    document.opened = document.text.clone();
    assert!(offered(&document, back).is_ok(), "nobody has changed it");
    document.changes = rest;
    assert_eq!(offered(&document, back), Err(Dropped::TakesBack));
    let text = far_apart("top();\ncheck(one);", "end();");
    let edits = [("(one)", "(two)"), ("end()", "over()")];
    let mut document = Document::changed(&text, &edits);
    document.opened = document.text.clone();
    let lines: String = (0..5).map(|at| format!("line_{at};\n")).collect();
    let back = format!("check(one);\n{lines}");
    assert_eq!(document.offered("check(", &back), Err(Dropped::TakesBack), "the last is elsewhere");
    let text = "top();\ncheck(two);\nend();\n";
    let deleted = Document::changed(text, &[("check(two);\n", "")]);
    assert_eq!(deleted.offered("top()", ";\ncheck(two);\nend();\n"), Err(Dropped::TakesBack));
    assert!(deleted.offered("top()", ";\ncheck(six);\nend();\n").is_ok());
}

/// Whatever was changed, all that differs from it leads back to it.
#[test]
fn every_hunk_between_two_texts_is_known_from_the_other_one() {
    for seed in 0..2_000 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut text = || -> String {
            let count = random.random_range(1..12);
            (0..count).map(|_| format!("line_{}\n", random.random_range(0..5))).collect()
        };
        let (opened, text) = (text(), text());
        let document = Document { opened: opened.clone(), text, changes: vec![] };
        let Some(window) = Window::around(&document.text, 0) else { continue };
        let (form, answer) = (&document.form(), opened.strip_prefix("line_").unwrap());
        if document.text.len() != window.range.len() {
            continue;
        }
        let window = &Window { cursor: "line_".len(), ..window };
        let offered = Offered { form, window, answer, is_whole: true };
        let dropped = offered.hunk("a.rs", &Rejected::default());
        assert!(dropped.is_err(), "seed {seed}: {dropped:?}");
    }
}

#[test]
fn what_was_typed_is_known_by_its_place() {
    let edits = [("a)", "a, bb, cc)"), ("two", "tow")];
    let mut typed = Document::changed("f(a);\n\ntwo();\n", &edits);
    let answer = ", bb);\n\ntow();\n";
    assert_eq!(typed.offered("f(a", answer), Err(Dropped::DeletesTyped));
    typed.changes.iter_mut().for_each(|change| change.path = "b/a.rs".into());
    assert_eq!(typed.offered("f(a", answer).unwrap(), "0: , cc → ", "it was another file");
    let moved = Document::changed("a();\ncopy();\nb();\n", &[("a();", "copy();\na();")]);
    let deleted = moved.offered("copy();\na()", "a();\nb();\n");
    assert_eq!(deleted.unwrap(), "2: copy();\n → ", "the line was typed anew above");
    let typed = [("end", "one();\r\ntwo();\r\nthree();\r\nend")];
    let typed = Document::changed("begin();\r\nend();\r\n", &typed);
    let deleted = typed.offered("begin(", ");\nthree();\nend();\n");
    assert_eq!(deleted, Err(Dropped::DeletesTyped), "with other line breaks");
}

#[test]
fn imports_are_told_from_what_begins_like_them() {
    let only = |old: &[&str], new: &[&str]| {
        let [old_lines, new_lines] =
            [old, new].map(|lines| lines.iter().map(|line| (*line).to_owned()).collect());
        let (lines, range, new, in_answer) = (0..1, 0..1, String::new(), 0..0);
        super::filter::only_imports(&Hunk { lines, range, new, in_answer, old_lines, new_lines })
    };
    assert!(only(&["use a;"], &["use a;", "use b;", ""]));
    assert!(only(&[], &["from a import b"]) && only(&[], &["from 'a';"]));
    assert!(only(&["using System;"], &[]));
    assert!(!only(&["use a;"], &["use a;", "f();"]));
    assert!(!only(&["a();", "b();"], &["b();", "a();"]), "lines that only changed their places");
    assert!(!only(&[], &["using var file = Open();"]));
    assert!(!only(&["from orders o"], &["from orders p"]) && !only(&[], &["from x in xs"]));
}

/// Returns what is offered of an answer that the model has not ended.
fn offered_early(document: &Document, behind: &str, answer: &str) -> Result<String, Dropped> {
    let (form, window) = (&document.form(), &document.window(behind));
    let offered = Offered { form, window, answer, is_whole: false };
    let hunk = offered.hunk("a.rs", &Rejected::default())?;
    Ok(format!("{}: {} → {}", hunk.lines.start, &document.text[hunk.range.clone()], hunk.new))
}

#[test]
fn an_answer_is_settled_where_the_window_continues_behind_its_change() {
    let text = "a1();\nb1();\nc1();\nd1();\ne1();\n\nf1();\ng1();\n";
    let document = Document::changed(text, &[("c1", "c")]);
    let early = |answer: &str| offered_early(&document, "c();", answer);
    let written = "b1();\nc(1);\nd1();\ne1();\n";
    assert_eq!(early(written), Err(Dropped::CutOff), "two lines are the same again");
    let settled = format!("{written}\n");
    assert_eq!(early(&settled).unwrap(), "2:  → 1");
    assert_eq!(early(&format!("{settled}f")).unwrap(), "2:  → 1", "a line that is begun");
    let whole = format!("{settled}f1();\ng1();");
    assert_eq!(document.offered("c();", &whole).unwrap(), "2:  → 1");
    let inserted = "b1();\nc();\nnew();\nd1();\ne1();\n\n";
    assert_eq!(early(inserted).unwrap(), "3:  → new();\n");
    let deleted = "b1();\nc();\ne1();\n\nf1();\n";
    assert_eq!(early(deleted), Err(Dropped::CutOff), "the line may be moved");
    let above = "b(1);\nc();\nd1();\ne1();\n\n";
    assert_eq!(early(above), Err(Dropped::CutOff), "a change at the cursor may come");
    let same = "b1();\nc();\nd1();\ne1();\n\nf1();\n";
    assert_eq!(early(same), Err(Dropped::CutOff), "nothing has changed yet");
}

#[test]
fn an_early_end_leaves_no_change_above_the_cursor_to_offer() {
    let document = Document::unchanged("a();\nb();\nc();\nd();\ne();\nf();\ng();\nh();\n");
    let written = "b(1);\nc();\n\nd();\ne();\nf();\n";
    assert_eq!(offered_early(&document, "c(", written), Err(Dropped::CutOff));
    let whole = format!("{written}g();\nh(2);\n");
    assert_eq!(document.offered("c(", &whole).unwrap(), "7:  → 2");
}

#[test]
fn lines_that_begin_as_their_neighbours_are_no_early_end() {
    let sibling = "    let a = new();\n    a.start();\n    a.stop();\n";
    let document = Document::unchanged(&format!("    a.stop();\n}}\n\nfn one() {{\n{sibling}}}\n"));
    for line in ["fn middle() {\n", "\nfn middle() {\n"] {
        let written = format!("}}\n{line}{sibling}");
        assert_eq!(offered_early(&document, "}\n", &written), Err(Dropped::CutOff), "{line:?}");
    }
    let document = Document::unchanged("a();\nb();\nc();\nx();\ny();\nz();\n");
    let moved = "b();\nx();\ny();\nz();\n";
    assert_eq!(offered_early(&document, "c(", moved), Err(Dropped::CutOff));
}

#[test]
fn the_empty_line_of_the_cursor_stays() {
    for text in ["x = 1\ny = 2\n\n", "x = 1\ny = 2\n"] {
        let document = Document::unchanged(text);
        let window = document.window("y = 2\n");
        let blocks = document.form().blocks(&window);
        let current = &blocks[blocks.len() - 2];
        assert!(current.ends_with("x = 1\ny = 2\n<|cursor|>\n"), "{current}");
        let offered = |answer: &str| document.offered("y = 2\n", answer);
        for answer in ["y = 3", "y = 3\n", "y = 3\n\n"] {
            assert_eq!(offered(answer).unwrap(), "1: 2 → 3", "{text:?}");
        }
        assert_eq!(offered("y = 2\nz = 3\n").unwrap(), "2:  → z = 3");
        assert_eq!(offered("y = 2"), Err(Dropped::Unchanged));
    }
}

#[test]
fn a_fence_behind_an_answer_is_no_code() {
    let document = Document::changed("a();\nb();\nc();\n", &[("a()", "a(1)")]);
    assert_eq!(document.offered("a(1", ");\nb();\nc();\n```\n"), Err(Dropped::Unchanged));
    assert_eq!(document.offered("a(1", ");\nb(1);\nc();\n```").unwrap(), "1:  → 1");
    assert_eq!(document.offered("a(1", ");\nb();\nc(); ```").unwrap(), "2:  →  ```");
    let document = Document::changed("a();\n```\nb();\n", &[("a()", "a(1)")]);
    assert_eq!(document.offered("a(1", ");\n```\nb();\n```").unwrap(), "3:  → ```\n");
}

#[test]
fn lines_that_stand_twice_settle_nothing() {
    let text = "a();\nb();\nx();\ny();\nx();\ny();\nx();\n";
    let document = Document::changed(text, &[("b()", "b(1)")]);
    let answer = "b(2);\nx();\ny();\nx();\n";
    assert_eq!(offered_early(&document, "b(1", answer), Err(Dropped::CutOff));
}

#[test]
fn an_answer_of_too_many_lines_is_given_up() {
    let document = Document::changed(OPENED, &[("load()", "load_all()")]);
    let window = document.window("load_all");
    let room = window.text(&document.text).lines().count() + 19;
    let written = |lines: usize| "    x();\n".repeat(lines - 1);
    assert!(!is_too_long(&document.text, &window, &written(room)));
    assert!(is_too_long(&document.text, &window, &written(room + 1)));
}

/// As a file has it that describes diffs.
#[test]
fn the_mark_of_a_missing_line_break_is_cut_off_at_the_end_alone() {
    let document = Document::unchanged("a();\nb(\" No newline at end of file\");\nc();\n");
    let answer = ");\nb(\" No newline at end of file\");\nc(1);";
    assert_eq!(document.offered("a(", answer).unwrap(), "2:  → 1");
    let marked = format!("{answer} No newline at end of file\n");
    assert_eq!(document.offered("a(", &marked).unwrap(), "2:  → 1");
}

#[test]
fn a_rejected_edit_is_known_by_its_whole_lines() {
    let document = Document::unchanged("cart(1);\nitem(2);\nshow(3);\n");
    let mut rejected = Rejected::default();
    document.reject("show(", "item(2);\nshows(3);\n", &mut rejected);
    let again = document.offered_to("show(", "item(2);\nshows(3);\n", &rejected);
    assert_eq!(again, Err(Dropped::RejectedBefore));
    let other = document.offered_to("show(", "items(2);\nshow(3);\n", &rejected);
    assert_eq!(other.unwrap(), "1:  → s", "the same letter at another place");
    document.reject("item(", "item(2);\nshow(3);\nsave(4);\nlog(5);\n", &mut rejected);
    let between = "item(2);\nsave(4);\nlog(5);\nshow(3);\n";
    assert!(document.offered_to("item(", between, &rejected).is_ok(), "the same lines elsewhere");
    let document = Document::unchanged(&document.text.replace('\n', "\r\n"));
    let below = "item(2);\nshow(3);\nsave(4);\nlog(5);\n";
    let again = document.offered_to("item(", below, &rejected);
    assert_eq!(again, Err(Dropped::RejectedBefore), "with other line breaks");
}

#[test]
fn the_signs_of_a_hunk_are_those_of_its_tokens_its_lines_and_its_words() {
    let document = Document::changed(OPENED, &[("load()", "load_all()")]);
    let window = document.window("load_all");
    let signs = |answer: &str, logprobs: &[(usize, f32)]| {
        let all = hunks(&document.text, &window, answer);
        assert_eq!(all.len(), 1, "{all:?}");
        all[0].signs(logprobs, &document.changes)
    };
    let same = "    let cart = load_all();\n    let sum = total(cart);\n\n    print(sum);\n    \
        save(cart);\n    close();\n";
    let answer = same.replace("print(sum)", "print(sum, cart)");
    let at = answer.find(", cart").unwrap();
    let tokens = [(at, -0.1), (at + 3, -1.0), (at + 6, -0.5), (at + 8, -3.0)];
    let expected = Signs { logprobs: Some((-0.75, -1.0)), lines: 1, known_words: Some(1.0) };
    assert_eq!(signs(&answer, &tokens), expected);
    assert_eq!(signs(&answer, &[]), Signs { logprobs: None, ..expected });
    // Of the words of the line that goes, the latest change has one.
    let answer = same.replace("    save(cart);\n", "");
    let at = answer.find("    close").unwrap();
    let tokens = [(at, -0.1), (at + 4, -2.0), (at + 12, -0.5)];
    let expected = Signs { logprobs: Some((-2.0, -2.0)), lines: 1, known_words: Some(0.5) };
    assert_eq!(signs(&answer, &tokens), expected);
    let answer = same.replace("print(sum)", "print( sum )");
    assert_eq!(signs(&answer, &[]).known_words, None);
}

#[test]
fn files_that_no_person_writes_are_left_alone() {
    assert!(is_served(OPENED));
    assert!(!is_served(&"x".repeat(300)));
    assert!(!is_served(&"x\n".repeat(50_001)));
}

/// Enough lines between two places that they share no window.
fn far_apart(first: &str, last: &str) -> String {
    let between: String = (0..20).map(|at| format!("line_{at};\n")).collect();
    format!("{first}\n{between}{last}\n")
}

#[test]
fn a_second_place_is_found_by_what_was_changed() {
    let place = |document: &Document, behind: &str| {
        let (place, window) =
            second(&document.text, "a.rs", &document.changes, &document.window(behind)).unwrap();
        (place, document.text[..window.cursor].matches('\n').count())
    };
    let text = far_apart("check the big box();", "check the big box();");
    let gone = Document::changed(&text, &[("check the big box();\n", "")]);
    assert_eq!(place(&gone, "line_0"), (Place::SameLine, 20));
    let word = Document::changed(&far_apart("box(1);", "box(2);"), &[("box", "")]);
    assert_eq!(place(&word, "(1"), (Place::DeletedWord, 21));
    let added = Document::changed(&far_apart("a(1);", "total(2);"), &[("a(", "total(")]);
    assert_eq!(place(&added, "total(1"), (Place::AddedWord, 21));
    let short_word = Document::changed(&far_apart("db(1);", "db(2);"), &[("db", "")]);
    assert_eq!(place(&short_word, "(1"), (Place::DeletedWord, 21));
    let edits = [("db", ""), ("line_3", "line_three")];
    let older = Document::changed(&far_apart("db(1);", "db(2);"), &edits);
    assert_eq!(place(&older, "(1"), (Place::DeletedWord, 21), "not by the last change");
    let edits = [("check the big box();\n", ""), ("line_3", "line_three")];
    let older = Document::changed(&text, &edits);
    assert_eq!(place(&older, "line_0"), (Place::SameLine, 20));
    let put = "check the big box();\nover();\nend();";
    let edits = [("check the big box();\n", ""), ("end();", put)];
    let moved = Document::changed(&far_apart("check the big box();", "end();"), &edits);
    assert_eq!(place(&moved, "line_0"), (Place::Below, 6), "the line was moved");
    let nothing = Document::unchanged(&far_apart("a();", "b();"));
    assert_eq!(place(&nothing, "a("), (Place::Below, 6));
    let short = Document::unchanged("a();\n");
    assert_eq!(second(&short.text, "a.rs", &[], &short.window("a(")), None, "the file ends there");
}

#[test]
fn the_model_is_asked_after_a_rest_and_not_after_a_no() {
    let mut moment = Moment::default();
    let asked = |moment: &Moment, now| moment.ask(false, false, now);
    moment.told(LastChange::Accept);
    assert_eq!(asked(&moment, 0), Decision::Never(Never::NothingChanged));
    moment.changed("x", false, 1_000);
    assert_eq!(asked(&moment, 1_100), Decision::After(200));
    assert_eq!(asked(&moment, 9_000), Decision::After(0));
    assert_eq!(moment.ask(false, true, 1_500), Decision::After(1_500), "a completion goes first");
    moment.changed("\n                    ", false, 2_000);
    assert_eq!(asked(&moment, 2_000), Decision::After(300), "an indented line is no paste");
    moment.changed("a text that is long", false, 2_000);
    assert_eq!(moment.ask(false, true, 2_000), Decision::After(0));
    moment.changed("x", true, 3_000);
    assert_eq!(asked(&moment, 9_000), Decision::Never(Never::Undone));
    assert_eq!(moment.ask(true, false, 3_000), Decision::After(0), "the user has asked for it");
    moment.accepted(9_000);
    assert_eq!(asked(&moment, 9_000), Decision::After(0));
    for change in [LastChange::Undo, LastChange::Typing, LastChange::Paste, LastChange::Accept] {
        for (inserted, is_back) in [("x", true), ("a text that is long", false)] {
            moment.changed(inserted, is_back, 9_000);
            moment.told(change);
            let expected = match change {
                LastChange::Undo => Decision::Never(Never::Undone),
                LastChange::Typing => Decision::After(300),
                LastChange::Paste | LastChange::Accept => Decision::After(0),
            };
            assert_eq!(asked(&moment, 9_000), expected, "the client knows better than the text");
        }
    }
    moment.rejected(9_100);
    moment.changed("x", false, 9_200);
    assert_eq!(asked(&moment, 14_000), Decision::Never(Never::JustRejected));
    assert_eq!(asked(&moment, 14_100), Decision::After(0));
}

/// Whatever a model answers, its hunks together make the window as the answer has it.
#[test]
fn the_hunks_of_an_answer_make_the_whole_answer() {
    const LINES: [&str; 6] = ["a();", "b();", "", "    c(d);", "é = 1;", "a();"];
    for seed in 0..2_000 {
        let mut random = StdRng::seed_from_u64(seed);
        let end = if random.random_bool(0.3) { "\r\n" } else { "\n" };
        let mut lines = |most| -> Vec<&str> {
            let count = random.random_range(1..most);
            (0..count).map(|_| LINES[random.random_range(0..LINES.len())]).collect()
        };
        let (file, answer) = (lines(14), lines(9).join("\n"));
        let last = if seed % 3 == 0 { "" } else { end };
        let text = format!("{}{last}", file.join(end));
        let at = (seed as usize * 7) % (text.len() + 1);
        let cursor = (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap();
        let Some(window) = Window::around(&text, cursor) else { continue };
        let mut all = hunks(&text, &window, &answer);
        all.sort_by_key(|hunk| std::cmp::Reverse(hunk.range.start));
        let mut made = text.clone();
        for hunk in &all {
            let file = File { name: "a", text: &text, language: Language::named("rs") };
            assert!(NextEdit::by_model(&file, hunk, Place::Cursor).fits(&text), "seed {seed}");
            made.replace_range(hunk.range.clone(), &hunk.new);
            let own = &answer[hunk.in_answer.clone()];
            assert!(hunk.new_lines.join("\n").contains(own), "seed {seed}: {own:?} {hunk:?}");
        }
        let tail = text.len() - window.range.end;
        let own = made[window.range.start..made.len() - tail].replace("\r\n", "\n");
        // The cursor may stand on the empty line behind the last line break.
        let is_open = window.cursor == window.range.end;
        let own = own.strip_suffix('\n').filter(|_| !is_open).unwrap_or(&own);
        let expected = super::answer::updated(&text, &window, &answer).join("\n");
        assert_eq!(own, expected, "seed {seed}: {text:?} {window:?} {answer:?}");
        let breaks = if text.contains("\r\n") { "\r\n" } else { "\n" };
        assert_eq!(made.matches(breaks).count(), made.matches('\n').count(), "seed {seed}");
    }
}
