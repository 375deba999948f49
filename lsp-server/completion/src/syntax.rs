//! Finds the brackets of code in a text, and its strings and comments, with tree-sitter for the
//! common languages.
//!
//! Text that is being written seldom parses: its tree is mostly errors. The tokens in it are still
//! told apart, and only they are used (ADR 0006).

use std::ops::Range;
use tree_sitter::{Language, Node, Parser};

/// The grammar of a language by the id that editors use. `None` if there is none here.
pub fn grammar(language: &str) -> Option<Language> {
    Some(match language {
        "c" => tree_sitter_c::LANGUAGE.into(),
        "cpp" => tree_sitter_cpp::LANGUAGE.into(),
        "go" => tree_sitter_go::LANGUAGE.into(),
        "javascript" | "javascriptreact" => tree_sitter_javascript::LANGUAGE.into(),
        "python" => tree_sitter_python::LANGUAGE.into(),
        "rust" => tree_sitter_rust::LANGUAGE.into(),
        "typescript" => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        "typescriptreact" => tree_sitter_typescript::LANGUAGE_TSX.into(),
        _ => return None,
    })
}

/// A bracket of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bracket {
    /// Byte offset in the text.
    pub at: usize,
    pub opens: bool,
    /// The bracket belongs to a list, a record or a pattern, in which no statements stand.
    pub encloses_value: bool,
}

/// The brackets, strings and comments of a text, in its order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SyntaxScan {
    pub brackets: Vec<Bracket>,
    /// Byte ranges of strings and comments.
    pub text_ranges: Vec<Range<usize>>,
}

impl SyntaxScan {
    /// Returns whether a byte lies within a string or a comment.
    pub fn is_text(&self, at: usize) -> bool {
        self.text_ranges.iter().any(|text| text.start < at && at < text.end)
    }
}

/// Parts of the names of node kinds whose braces hold values.
const VALUES: &[&str] = &[
    "argument",
    "array",
    "dictionary",
    "import",
    "initializer",
    "list_pattern",
    "literal",
    "object",
    "set",
    "subscript",
    "tuple",
    "use_list",
];

/// Scans a text. `None` where the grammar needs another version of tree-sitter.
pub fn scan(grammar: &Language, text: &str) -> Option<SyntaxScan> {
    let mut parser = Parser::new();
    parser.set_language(grammar).ok()?;
    let tree = parser.parse(text, None)?;
    let mut scan = SyntaxScan::default();
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        if let Some(text) = text_range(&node, text.len()) {
            scan.text_ranges.push(text);
        } else {
            scan.brackets.extend(bracket(&node));
            if cursor.goto_first_child() {
                continue;
            }
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return Some(scan);
            }
        }
    }
}

fn text_range(node: &Node, end: usize) -> Option<Range<usize>> {
    let kind = node.kind();
    let is_in_error = || node.parent().is_some_and(|parent| parent.is_error());
    if matches!(kind, "string_start" | "`") && is_in_error() {
        // A string over several lines that is still being written reaches to the end.
        return Some(node.start_byte()..end);
    }
    let named =
        node.is_named() && node.child_count() > 0 || node.end_byte() - node.start_byte() > 1;
    let kinds = ["string", "comment", "char_literal", "rune_literal", "regex", "jsx_text"];
    let matching = kinds.iter().any(|part| kind.contains(part));
    (named && matching && !node.is_error()).then(|| node.byte_range())
}

fn bracket(node: &Node) -> Option<Bracket> {
    let opens = match node.kind() {
        "(" | "[" | "{" => true,
        ")" | "]" | "}" => false,
        _ => return None,
    };
    // A missing bracket is one that the parser expects; it is not in the text.
    if node.is_missing() {
        return None;
    }
    let parent = node.parent().map_or("", |parent| parent.kind());
    let is_brace = matches!(node.kind(), "{" | "}");
    let encloses_value = !is_brace || VALUES.iter().any(|part| parent.contains(part));
    Some(Bracket { at: node.start_byte(), opens, encloses_value })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The brackets of code without those of values, in their order.
    fn bodies(language: &str, text: &str) -> String {
        let scan = scan(&grammar(language).unwrap(), text).unwrap();
        let bodies = scan.brackets.iter().filter(|bracket| !bracket.encloses_value);
        bodies.map(|bracket| char::from(text.as_bytes()[bracket.at])).collect()
    }

    #[test]
    fn brackets_in_strings_and_comments_do_not_count() {
        assert_eq!(bodies("rust", "fn a() { b(\"{\", '{'); // {\n}\n"), "{}");
        assert_eq!(bodies("c", "void a() { b(\"{\", '{'); /* { */ }\n"), "{}");
        assert_eq!(bodies("cpp", "void a() { b(R\"({)\"); }\n"), "{}");
        assert_eq!(bodies("go", "func a() { b(`{`, '{') }\n"), "{}");
        assert_eq!(bodies("javascript", "function a() { b(`{${c}`, /{/); }\n"), "{}");
        assert_eq!(bodies("typescript", "function a(b: string) { return '{'; }\n"), "{}");
        assert_eq!(bodies("typescriptreact", "const a = () => { return <b>it's</b>; };\n"), "{}");
        assert_eq!(bodies("python", "def a():\n    return '''{\n'''\n"), "");
    }

    #[test]
    fn an_unfinished_text_is_scanned_too() {
        assert_eq!(bodies("rust", "}\n\nimpl A {\n    fn b() {\n        let c = \"}\";\n"), "}{{");
        assert_eq!(bodies("c", "void a()\n{\n  if (x) {\n    b(\"}\");\n"), "{{");
        assert_eq!(bodies("typescript", "class A {\n  b(x: string) {\n    c('}');\n"), "{{");
    }

    #[test]
    fn braces_of_values_are_told_apart_from_braces_of_blocks() {
        assert_eq!(bodies("rust", "fn a() { B { c: 1 } }\n"), "{}");
        assert_eq!(bodies("javascript", "function a() { return { b: 1 }; }\n"), "{}");
        assert_eq!(bodies("go", "func a() { b := []int{1} }\n"), "{}");
    }

    #[test]
    fn an_unfinished_string_of_several_lines_reaches_to_the_end() {
        for (language, text) in [
            ("python", "def a():\n    \"\"\"Says {\n\nmore"),
            ("javascript", "const a = `b {\n\nmore"),
        ] {
            let scan = scan(&grammar(language).unwrap(), text).unwrap();
            assert!(scan.is_text(text.len() - 1), "{language}: {scan:?}");
        }
    }
}
