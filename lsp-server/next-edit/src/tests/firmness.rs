//! What more examples of a rule are worth, in other surroundings and after it was rejected.

use super::Editor;

const NONE: [&str; 0] = [];

#[test]
fn a_token_next_to_the_place_may_differ() {
    let text = "\tenv.AddFilter(\"upper\", FilterUpper)\n\tenv.AddFilter(\"lower\", FilterLower)\n\
        \tenv.AddFilter(\"trim\", FilterTrim)\n\tenv.AddTest(\"odd\", TestOdd)\n";
    let mut editor = Editor::of("a.go", text);
    editor.replace("FilterUpper", "filters.FilterUpper");
    editor.replace("FilterLower", "filters.FilterLower");
    assert_eq!(editor.found("filters.FilterLower"), ["2:   →  filters."]);
}

/// A word of eight letters is not enough alone after two edits, and it is after four.
#[test]
fn a_name_that_is_changed_everywhere_needs_nothing_around_it() {
    let text = "def a(x: TextType) -> None:\n    list[TextType]\n    y = TextType()\n\
        \x20   return (TextType,)\nclass B(TextType):\n";
    let mut editor = Editor::of("a.py", text);
    for (around, is_found) in [("x: ", false), ("list[", false), ("y = ", false), ("(", true)] {
        let old = format!("{around}TextType");
        let new = format!("{around}Content");
        editor.replace(&old, &new);
        assert_eq!(!editor.found(&new).is_empty(), is_found, "{new}");
    }
    assert_eq!(editor.found("(Content"), ["4: TextType → Content"]);
    // Nothing around it is the same in all places, so it is not looked for in other files.
    let files: Vec<String> = editor
        .find("(Content", &[("b.py", "class B(TextType):\n")])
        .iter()
        .map(|edit| edit.file.to_string())
        .collect();
    assert_eq!(files, ["a.py"]);
}

#[test]
fn a_rule_that_was_rejected_begins_anew_when_the_user_continues_by_hand() {
    let line = |i| format!("store.load({i});\n");
    let text: String = (0..10).map(line).collect();
    let mut editor = Editor::of("a.rs", &text);
    let rename = |editor: &mut Editor, i: usize| {
        editor.replace(&format!("load({i})"), &format!("fetch({i})"));
        format!("fetch({i})")
    };
    rename(&mut editor, 0);
    let mut cursor = rename(&mut editor, 1);
    for _ in 0..2 {
        let edit = editor.find(&cursor, &[]).remove(0);
        editor.next.rejected(&edit);
    }
    assert_eq!(editor.found(&cursor), NONE, "it was rejected twice");
    cursor = rename(&mut editor, 2);
    assert_eq!(editor.found(&cursor), NONE, "one more may be the last");
    cursor = rename(&mut editor, 3);
    assert_eq!(editor.found(&cursor)[0], "4: load → fetch");
}
