//! Edits become units.

use super::Editor;
use crate::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

fn units(editor: &Editor) -> Vec<String> {
    let shown = |unit: &Unit| format!("{}: {:?} → {:?}", unit.line, unit.before, unit.after);
    editor.next.history().latest(UNITS_MAX).iter().map(shown).collect()
}

#[test]
fn keys_at_one_place_make_one_unit() {
    let mut editor = Editor::of("a.rs", "let a = 1;\nlet b = 2;\n");
    editor.replace("a = 1", "count = 10");
    assert_eq!(units(&editor), [r#"0: "let a = 1;\n" → "let count = 10;\n""#]);
    assert_eq!(editor.next.history().settled().count(), 0, "it may continue");
    editor.replace("b = 2", "b = 20");
    assert_eq!(editor.next.history().settled().count(), 1);
    assert_eq!(units(&editor)[1], r#"1: "let b = 2;\n" → "let b = 20;\n""#);
}

#[test]
fn text_that_is_typed_and_deleted_again_is_no_unit() {
    let mut editor = Editor::of("a.rs", "one\ntwo\n");
    editor.edit(3, 0, "xy");
    editor.edit(3, 2, "");
    editor.edit(7, 0, "!");
    editor.next.change("a.rs", editor.language(), &editor.text.clone(), &[], By::Person);
    assert_eq!(units(&editor), [r#"1: "two\n" → "two!\n""#]);
}

#[test]
fn pasted_and_deleted_lines_are_units_of_whole_lines() {
    let mut editor = Editor::of("a.rs", "one\ntwo\nthree\n");
    editor.edit(4, 0, "new\nlines\n");
    editor.edit(18, 6, "");
    assert_eq!(units(&editor), [r#"1: "" → "new\nlines\n""#, r#"4: "three\n" → """#]);
}

#[test]
fn several_carets_make_a_unit_each_and_one_example() {
    let mut editor = Editor::of("a.rs", "foo(1);\nbar();\nfoo(2);\nfoo(3);\n");
    // Both carets type `d`, and then `e`.
    for (second, first, key) in [(18, 3, "d"), (20, 4, "e")] {
        let edit = |start| Edit { start, removed: 0, inserted: key.into() };
        editor.message(&[edit(second), edit(first)], By::Person);
    }
    let shown = [r#"0: "foo(1);\n" → "foode(1);\n""#, r#"2: "foo(2);\n" → "foode(2);\n""#];
    assert_eq!(units(&editor), shown);
    assert!(editor.next.rules().is_err(), "the user has chosen these two places");
}

#[test]
fn what_is_undone_teaches_nothing() {
    let mut editor = Editor::of("a.rs", "item.older(1);\nitem.older(2);\nitem.older(3);\nend();\n");
    editor.replace("item.older(1)", "item.fresh(1)");
    editor.replace("item.older(2)", "item.fresh(2)");
    assert_eq!(editor.next.rules().unwrap().len(), 1);
    // The user goes elsewhere, comes back, and undoes one of them.
    editor.replace("end", "the_end");
    editor.replace("item.fresh(2)", "item.older(2)");
    assert!(editor.next.rules().is_err());
    let undone = |unit: &&Unit| unit.is_undone;
    assert_eq!(editor.next.history().latest(UNITS_MAX).iter().filter(undone).count(), 2);
}

#[test]
fn a_formatter_teaches_nothing() {
    let mut editor = Editor::of("a.rs", "f( a );\ng( b );\nh( c );\n");
    let edit = |start| [Edit { start, removed: 1, inserted: "".into() }];
    editor.message(&edit(2), By::Tool);
    editor.message(&edit(9), By::Tool);
    assert!(editor.next.rules().is_err());
    // Blanks are nothing to learn from either, whoever changes them.
    editor.edit(3, 1, "");
    editor.edit(9, 1, "");
    assert!(editor.next.rules().is_err());
}

#[test]
fn a_large_change_is_not_remembered() {
    let mut editor = Editor::of("a.rs", "one\n");
    let many = "line\n".repeat(UNIT_LINES_MAX + 1);
    editor.edit(0, 0, &many);
    editor.edit(many.len() + 3, 0, "!");
    editor.next.history.settle_all();
    // The second edit touches the line behind the large change, so it is a part of it.
    assert!(units(&editor).is_empty());
}

/// All units, applied one after the other to the old text, give the new text. Any mix of messages,
/// with one change or several, in two documents, with each kind of line break.
#[test]
fn units_applied_to_the_old_text_give_the_new_one() {
    const PIECES: &[&str] =
        &["a", "bc", "\n", "\r\n", "\r", "(x)", "é", "\n\n", "let y = 1;\n", "", " "];
    for seed in 0..1500 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut history = History::default();
        let mut texts = [Rope::new(), Rope::new()];
        for text in &mut texts {
            let pieces =
                (0..random.random_range(0..40)).map(|_| PIECES[random.random_range(0..11)]);
            *text = Rope::from(pieces.collect::<String>());
        }
        let old = texts.clone();
        for _ in 0..random.random_range(1..30) {
            let document = random.random_range(0..2);
            let was = texts[document].clone();
            let mut edits = vec![];
            for _ in 0..random.random_range(1..4) {
                let text = &mut texts[document];
                let start = random.random_range(0..=text.len_chars());
                let removed = random.random_range(0..=(text.len_chars() - start).min(6));
                let inserted = PIECES[random.random_range(0..11)].to_owned();
                text.remove(start..start + removed);
                text.insert(start, &inserted);
                edits.push(Edit { start, removed, inserted });
            }
            let by = if random.random_bool(0.8) { By::Person } else { By::Tool };
            let name = ["a.rs", "b.py"][document];
            history.change(name, Language::named("rust"), &was, &edits, by);
            if random.random_bool(0.1) {
                history.settle_all();
            }
        }
        let units = history.latest(UNITS_MAX);
        for document in 0..2 {
            let mut replayed = old[document].clone();
            let of_it = |unit: &&Unit| *unit.file == *["a.rs", "b.py"][document];
            for unit in units.iter().filter(of_it) {
                let lines = replayed.slice(replayed.line_to_char(unit.line)..).to_string();
                assert!(lines.starts_with(&unit.before), "seed {seed}: {unit:?}");
                unit.apply(&mut replayed);
            }
            assert_eq!(replayed, texts[document], "seed {seed}");
        }
    }
}
