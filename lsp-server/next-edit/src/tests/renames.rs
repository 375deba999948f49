//! A name that is changed where it is declared is offered where it is used, and nowhere else.

use super::Editor;

const NONE: [&str; 0] = [];

/// Returns what is found once the user has renamed in the place that `old` names.
fn after(file: &'static str, text: &str, old: &str, new: &str) -> Vec<String> {
    let mut editor = Editor::of(file, text);
    editor.replace(old, new);
    editor.found(new)
}

#[test]
fn a_variable_is_renamed_in_its_block_and_not_beyond() {
    let text = "void read() {\n    Input input = new Input();\n    use(input);\n    if (ok) {\n\
        \x20       input.close(input, inputs);\n    }\n}\n\nvoid write() {\n    use(input);\n}\n";
    let found = after("A.java", text, "Input input", "Input source");
    assert_eq!(found, ["2: input → source", "4: input.close(input → source.close(source"]);
}

#[test]
fn a_type_and_a_function_are_renamed_in_all_of_the_file() {
    let text = "double area(const Box& box);\n\nclass Box {\npublic:\n    Box(double side);\n};\n\
        \nBox::Box(double side) {}\n";
    let found = after("a.cpp", text, "class Box", "class Cube");
    assert_eq!(found, ["4: Box → Cube", "7: Box::Box → Cube::Cube", "0: Box → Cube"]);
    let text = "def main():\n    print(total(1))\n    self.total(2)\n    cart.total(3)\n\n\
        def total(x):\n    return x\n";
    let found = after("a.py", text, "def total", "def amount");
    assert_eq!(found, ["1: total → amount", "2: total → amount"], "a cart has its own");
    let text = "func (c *Cart) total() int {\n\treturn 1\n}\n\nfunc main() {\n\ttotal()\n}\n";
    assert_eq!(after("a.go", text, ") total", ") sum"), ["5: total → sum"]);
    let text = "class Cart {\n    int total(int x) {\n        return total(x - 1);\n    }\n}\n";
    assert_eq!(after("A.java", text, "int total", "int sum"), ["2: total → sum"]);
}

/// The recorded edit of a person: the first letters of a longer name were typed.
#[test]
fn a_name_in_a_formatted_string_is_a_use() {
    let text = "user = \"x\"\nprint(f\"Hi {user}!\", \"{user}\")\n";
    let second = "1: user → owner";
    assert_eq!(after("a.py", text, "user =", "owner ="), [second]);
    let text = "const user = 1;\nlog(`${user} user`);\n";
    assert_eq!(after("a.ts", text, "user =", "owner ="), [second]);
    let text = "let user = 1;\nprintln!(\"{user:?} user\");\n";
    assert_eq!(after("a.rs", text, "user =", "owner ="), [second]);
}

#[test]
fn a_loop_names_what_stands_in_it_and_in_its_head() {
    let text = "for (int row = 0; row < rows; row++) {\n    sum(row);\n}\nsum(row);\n";
    let found = after("a.c", text, "int row", "int at");
    assert_eq!(found, ["0: row < rows; row → at < rows; at", "1: row → at"]);
}

#[test]
fn what_may_mean_something_else_is_left_alone() {
    let silent = |file, text: &str, old, new, why| {
        assert_eq!(after(file, text, old, new), NONE, "{why}");
    };
    let shadowed = "let item = 1;\nlet item = 2;\nuse(item);\n";
    silent("a.rs", shadowed, "item = 2", "thing = 2", "the first one may be meant");
    silent("a.rs", shadowed, "item = 1", "thing = 1", "it is declared again before its use");
    let known = "let item = 1;\nuse(thing);\nuse(item);\n";
    silent("a.rs", known, "item =", "thing =", "the new name stands for something");
    let argument = "def f(item):\n    item = trim(item)\n    use(item)\n";
    silent("a.py", argument, "item = trim", "thing = trim", "it was an argument");
    let twice = "fn load() {}\nimpl A {\n    fn load() {}\n}\nload();\n";
    silent("a.rs", twice, "load() {}\nimpl", "read() {}\nimpl", "two are called so");
    let use_of_it = "use(item);\nuse(item);\n";
    silent("a.rs", use_of_it, "item", "thing", "nothing is declared");
    let short = "let i = 1;\nuse(i);\n";
    silent("a.rs", short, "i = 1", "at = 1", "one letter says little");
    let members = "let item = 1;\nx.item = 2;\nitem::new();\nA { item };\nf({ item: 1 });\n\
        f(a, item=1)\n// item\n\"{item}s\" \"item\";\nitems();\n";
    silent("a.ts", members, "item = 1", "thing = 1", "members, keys, paths and texts");
}

#[test]
fn a_rename_continues_from_use_to_use_until_it_is_rejected() {
    let text = "let item = 1;\na(item);\nb(item);\nc(item);\n";
    let mut editor = Editor::of("a.rs", text);
    editor.replace("item =", "thing =");
    editor.replace("a(item", "a(thing");
    assert_eq!(editor.found("a(thing"), ["2: item → thing", "3: item → thing"]);
    for _ in 0..2 {
        let edit = editor.find("a(thing", &[]).remove(0);
        editor.next.rejected(&edit);
    }
    assert_eq!(editor.found("a(thing"), NONE);
    let mut editor = Editor::of("a.rs", text);
    editor.replace("item =", "th =");
    let edit = editor.find("th =", &[]).remove(0);
    editor.next.rejected(&edit);
    editor.replace("th =", "thing =");
    let lines: Vec<usize> = editor.find("thing =", &[]).iter().map(|edit| edit.line).collect();
    assert_eq!(lines, [2, 3], "one more letter asks for the first place again");
}
