//! Two alike edits make a rule, and the rule finds where it comes next.

use super::Editor;
use crate::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const NONE: [&str; 0] = [];

#[test]
fn an_identifier_is_renamed_where_it_stands_as_a_whole() {
    let mut editor = Editor::of(
        "a.rs",
        "item.old_name(1);\nitem.old_name(2);\nlet x = item.old_name(3) + item.old_name(4);\n\
        item.old_names(5);\n\
        // item.old_name(6)\n",
    );
    editor.replace("old_name(1)", "fresh(1)");
    assert_eq!(editor.found("fresh(1)"), NONE, "one edit is no rule");
    editor.replace("old_name(2)", "fresh(2)");
    let both = "2: old_name(3) + item.old_name → fresh(3) + item.fresh";
    assert_eq!(editor.found("fresh(2)"), [both]);
}

#[test]
fn parts_that_differ_are_carried_over() {
    let text = "self.compute(a, b)\nself.compute(c, d)\n\
        x = self.compute(self.y[0], g(z, 1))\nself.compute(e)\n";
    let mut editor = Editor::of("a.py", text);
    editor.replace("self.compute(a, b)", "a.compute(b)");
    editor.replace("self.compute(c, d)", "c.compute(d)");
    let carried_over = "2: self.compute(self.y[0],  → self.y[0].compute(";
    assert_eq!(editor.found("c.compute(d)"), [carried_over]);
}

#[test]
fn text_is_inserted_between_the_same_words() {
    let mut editor = Editor::of(
        "a.go",
        "\tstore.save(one)\n\tstore.save(two)\n\tstore.save(ctx, three)\n\tif ok {\n\
        \t\tstore.save(four)\n\t}\n\tstore.load(five)\n",
    );
    editor.replace("save(one", "save(ctx, one");
    editor.replace("save(two", "save(ctx, two");
    assert_eq!(editor.found("ctx, two"), ["4:  → ctx, "]);
}

#[test]
fn lines_are_inserted_below_lines_that_are_alike() {
    let test = |name: &str, body: &str| format!("func Test{name}(t *testing.T) {{\n{body}}}\n\n");
    let text = &[
        test("One", "\tone()\n"),
        test("Two", "\ttwo()\n"),
        test("Three", "\tthree()\n"),
        test("Four", "\tt.Parallel()\n"),
    ]
    .concat();
    let mut editor = Editor::of("a.go", text);
    editor.replace("\n\tone", "\n\tt.Parallel()\n\tone");
    editor.replace("\n\ttwo", "\n\tt.Parallel()\n\ttwo");
    assert_eq!(editor.found("two()"), ["11:  → \tt.Parallel()\n"]);
}

#[test]
fn a_block_is_deleted_after_two_and_not_after_one() {
    let text = "a();\ntrace(here);\nlog();\nb();\ntrace(here);\nlog();\nc();\ntrace(here);\n\
        log();\nd();\ntrace(here);\ne();\n";
    let mut editor = Editor::of("a.js", text);
    editor.edit(5, 20, "");
    assert_eq!(editor.found("b();"), NONE);
    editor.edit(10, 20, "");
    assert_eq!(editor.found("c();"), ["3: trace(here);\nlog();\n → "]);
}

#[test]
fn comments_and_strings_are_left_alone_unless_both_examples_stand_in_them() {
    let text = "use(colour, here);\nmix(colour, here);\n/* (colour, here) */\n\
        say(\"(colour, here)\");\nlet x = add(colour, here);\n";
    let mut editor = Editor::of("a.js", text);
    editor.replace("use(colour", "use(color");
    editor.replace("mix(colour", "mix(color");
    assert_eq!(editor.found("mix(color"), ["4: colour → color"]);

    let text = "// one colour here\n// two colour here\nlet colour = here; // its colour here\n\
        say(\"its colour here\");\n";
    let mut editor = Editor::of("a.js", text);
    editor.replace("one colour", "one color");
    editor.replace("two colour", "two color");
    assert_eq!(editor.found("two color"), ["2: colour → color"]);
    let edit = &editor.find("two color", &[])[0];
    assert!(edit.range.start > editor.text.to_string().find("its").unwrap(), "in the comment");

    // One stands in a comment, the other in code: nothing in a comment is touched.
    let text = "// (colour, here)\nuse(colour, here);\n// (colour, here)\nadd(colour, here);\n";
    let mut editor = Editor::of("a.js", text);
    editor.replace("// (colour", "// (color");
    editor.replace("use(colour", "use(color");
    assert_eq!(editor.found("use(color"), ["3: colour → color"]);
}

#[test]
fn a_comment_of_many_lines_is_known_from_any_of_its_lines() {
    let text = "/*\none background here\ntwo background here\nlast background here\n*/\n\
        let background = here;\n";
    let mut editor = Editor::of("a.c", text);
    editor.replace("one background", "one backdrop");
    editor.replace("two background", "two backdrop");
    assert_eq!(editor.found("two backdrop"), ["3: background → backdrop"]);
}

#[test]
fn a_place_that_the_user_passed_by_narrows_the_rule_or_ends_it() {
    // `item.size` is passed by. What stands around both examples is looked for instead.
    let text = "box.size();\nitem.size();\nbox.size();\nitem.size();\nbox.size();\n";
    let mut editor = Editor::of("a.js", text);
    editor.replace("box.size", "box.area");
    editor.replace("box.size", "box.area");
    assert_eq!(editor.found("box.area();\nitem.size();\nbox.area"), ["4: size → area"]);

    let text = "size();\nsize();\nsize();\nsize();\n";
    let mut editor = Editor::of("a.js", text);
    editor.edit(0, 4, "area");
    editor.edit(16, 4, "area");
    assert_eq!(editor.found("area"), NONE, "nothing tells them apart");
}

#[test]
fn places_come_below_the_cursor_then_from_the_start_then_in_the_next_file() {
    let text = "item.old_one(0);\nx();\nitem.old_one(1);\nitem.old_one(2);\nitem.old_one(3);\n";
    let others = [("b.rs", "item.old_one(4);\n"), ("c.rs", "item.old_one(5);\n")];
    let mut editor = Editor::of("a.rs", text);
    // The user goes up: what is above was not passed by.
    editor.replace("item.old_one(2)", "item.fresh(2)");
    editor.replace("item.old_one(1)", "item.fresh(1)");
    let found = editor.find("item.fresh(1)", &others);
    let places: Vec<(&str, usize)> = found.iter().map(|edit| (&*edit.file, edit.line)).collect();
    assert_eq!(places, [("a.rs", 4), ("a.rs", 0), ("b.rs", 0), ("c.rs", 0)]);
}

#[test]
fn a_rule_ends_after_two_misses_and_a_place_after_one() {
    let text: String = (1..=5).map(|at| format!("item.old_one({at});\n")).collect();
    let mut editor = Editor::of("a.rs", &text);
    editor.replace("item.old_one(1)", "item.fresh(1)");
    editor.replace("item.old_one(2)", "item.fresh(2)");
    let found = editor.find("item.fresh(2)", &[]);
    assert_eq!(found.len(), 3);
    editor.next.rejected(&found[0]);
    let left = editor.find("item.fresh(2)", &[]);
    assert_eq!(left, found[1..]);
    editor.next.taken(&left[0]);
    editor.next.rejected(&left[0]);
    assert_eq!(
        editor.find("item.fresh(2)", &[]).len(),
        1,
        "one that was taken counts for the rule"
    );
    editor.next.rejected(&left[1]);
    assert!(editor.next.rules().is_err());
}

#[test]
fn a_rule_is_forgotten_once_the_user_does_something_else() {
    let text =
        "item.old_one(1);\nitem.old_one(2);\nitem.old_one(3);\nfirst\nsecond\nthird\nfourth\n";
    let mut editor = Editor::of("a.rs", text);
    editor.replace("item.old_one(1)", "item.fresh(1)");
    editor.replace("item.old_one(2)", "item.fresh(2)");
    for line in ["first", "second", "third", "fourth"].into_iter().take(RECENT_UNITS) {
        assert_eq!(editor.found("item.fresh(2)").len(), 1);
        editor.replace(line, &format!("{line}!"));
    }
    assert_eq!(editor.found("item.fresh(2)"), NONE);
}

#[test]
fn brackets_stay_balanced() {
    // The user wraps both calls, but the third one is closed in the next line.
    let text = "x = call(1);\ny = call(2);\nz = call(\n  3);\n";
    let mut editor = Editor::of("a.js", text);
    editor.replace("x = call(1)", "x = wrap(call(1))");
    editor.replace("y = call(2)", "y = wrap(call(2))");
    for edit in editor.find("wrap(call(2))", &[]) {
        let balance =
            |text: &str| text.matches('(').count() as i32 - text.matches(')').count() as i32;
        assert_eq!(balance(&edit.old), balance(&edit.new), "{edit:?}");
    }
}

#[test]
fn an_edit_fits_only_the_text_that_it_was_made_for() {
    let mut editor = Editor::of("a.rs", "item.old_one(1);\nitem.old_one(2);\nitem.old_one(3);\n");
    editor.replace("item.old_one(1)", "item.fresh(1)");
    editor.replace("item.old_one(2)", "item.fresh(2)");
    let edit = editor.find("item.fresh(2)", &[]).remove(0);
    assert!(edit.fits(&editor.text.to_string()));
    assert!(!edit.fits("item.fresh(1);\nitem.fresh(2);\nitem.old_two(3);\n"));
    assert!(
        !edit.fits("item.fresh(1);\nitem.fresh(2);\nitem.old_one(4);\n"),
        "the line is another one"
    );
    assert!(!edit.fits("é"));
}

#[test]
fn line_breaks_and_tabs_stay_as_they_are() {
    let text =
        "\tone {\r\n\t\ta;\r\n\t}\r\n\ttwo {\r\n\t\tb;\r\n\t}\r\n\tsix {\r\n\t\tc;\r\n\t}\r\n";
    let text =
        &text.replace("one", "each(one)").replace("two", "each(two)").replace("six", "each(six)");
    let mut editor = Editor::of("a.js", text);
    for name in ["a;", "b;"] {
        editor.replace(&format!("\t\t{name}"), &format!("\t\tcheck();\r\n\t\t{name}"));
    }
    assert_eq!(editor.found("b;"), ["9:  → \t\tcheck();\r\n"]);

    let mut editor =
        Editor::of("a.js", "item.old_one(1);\r\nitem.old_one(2);\r\nitem.old_one(3);\r\n");
    editor.replace("item.old_one(1)", "item.fresh(1)");
    editor.replace("item.old_one(2)", "item.fresh(2)");
    assert_eq!(editor.found("item.fresh(2)"), ["2: old_one → fresh"]);
}

#[test]
fn a_rename_of_ten_thousand_places_is_bounded() {
    let mut text = String::from("item.old_one(1);\nitem.old_one(2);\n");
    (0..10_000).for_each(|at| text.push_str(&format!("    item.old_one({at});\n")));
    let mut editor = Editor::of("a.rs", &text);
    editor.edit(5, 7, "fresh");
    editor.edit(20, 7, "fresh");
    let found = editor.find("fresh(2)", &[]);
    assert_eq!(found.len(), 8);
    assert_eq!(found[0].line, 2);
}

/// Whatever is edited: an edit that is found fits its text, keeps the brackets and changes
/// something, and no two overlap.
#[test]
fn every_edit_that_is_found_may_be_applied() {
    const LINES: &[&str] = &[
        "ledger.post_entry(a, b);\n",
        "let total = post_entry(é);\r\n",
        "    post_entry(post_entry(c), [d]);\n",
        "// post_entry\n",
        "say(\"post_entry\");\n",
        "/* post_entry\n",
        "*/\n",
        "{\n",
        "}\n",
        "\n",
        "trace(post_entry);\n",
    ];
    const NEW: &[&str] = &["store", "store(", "x) + (y", "", "post_entry_all", "a.post_entry", ")"];
    let mut found = 0;
    for seed in 0..2000 {
        let mut random = StdRng::seed_from_u64(seed);
        let lines = (0..30).map(|_| LINES[random.random_range(0..LINES.len())]);
        let mut editor = Editor::of("a.rs", &lines.collect::<String>());
        let new = NEW[random.random_range(0..NEW.len())];
        for _ in 0..3 {
            let text = editor.text.to_string();
            let mut places = text.match_indices("post_entry");
            if let Some((at, old)) = places.nth(random.random_range(0..3)) {
                editor.edit(text[..at].chars().count(), old.len(), new);
            }
            let text = editor.text.to_string();
            let language = editor.language();
            let files = [File { name: "a.rs", text: &text, language }];
            let query = Query { files: &files, cursor: text.len() / 2, count: 5 };
            let cursor = if text.is_char_boundary(query.cursor) { query.cursor } else { 0 };
            let edits = editor.next.find(&Query { cursor, ..query }).unwrap_or_default();
            edits.iter().for_each(|edit| may_be_applied(edit, &text));
            for (number, edit) in edits.iter().enumerate() {
                found += 1;
                for other in &edits[number + 1..] {
                    let (one, other) = (&edit.range, &other.range);
                    assert!(one.end <= other.start || other.end <= one.start, "seed {seed}");
                }
            }
        }
    }
    assert!(found > 200, "only {found} were found");
}

fn may_be_applied(edit: &NextEdit, text: &str) {
    assert!(edit.fits(text), "{edit:?}");
    assert_ne!(edit.old, edit.new);
    assert_eq!(text[..edit.range.start].matches('\n').count(), edit.line, "{edit:?}");
    if !edit.old.contains(['"', '/', '*']) {
        let depth = |text: &str, open: char, close: char| {
            text.matches(open).count() as i32 - text.matches(close).count() as i32
        };
        for (open, close) in [('(', ')'), ('[', ']'), ('{', '}')] {
            let [old, new] = [&edit.old, &edit.new].map(|text| depth(text, open, close));
            assert_eq!(old, new, "{edit:?}");
        }
    }
}
