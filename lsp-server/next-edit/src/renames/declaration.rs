//! Where a line declares a name, told by the words around it.

use super::is_word;
use crate::change::Line;

/// Words behind which a variable is declared.
const VARIABLE: &[&str] = &["const", "let", "local", "mut", "val", "var"];

/// Words behind which a type is declared.
const TYPE: &[&str] = &[
    "class",
    "enum",
    "interface",
    "object",
    "protocol",
    "record",
    "struct",
    "trait",
    "type",
    "union",
];

/// Words behind which a function is declared.
const FUNCTION: &[&str] = &["def", "defp", "fn", "fun", "func", "function", "sub"];

/// Words with which a line begins that declares a name for the lines that it leads to.
const HEADER: &[&str] = &["for", "foreach", "if", "try", "using", "while", "with"];

/// Words that are no type, so that what follows them is not declared by `TYPE name =`.
const NO_TYPE: &[&str] = &[
    "and", "as", "assert", "await", "case", "delete", "else", "export", "from", "if", "import",
    "in", "is", "new", "not", "of", "or", "return", "throw", "unless", "until", "when", "while",
    "yield",
];

/// What a declaration names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Declared {
    /// It may be used in all of the file.
    Type,
    /// It may be called in all of the file.
    Function,
    /// It is used below, in the same block.
    Variable,
    /// It is used in the block that its line leads to, and in that line.
    Inner,
    /// The first value of a variable that no word declares, or a later one.
    Assigned,
}

/// Returns what the line declares with this token, if it is a declaration.
pub fn declared(line: &Line, at: usize) -> Option<Declared> {
    if !line.tokens.get(at).is_some_and(is_word) {
        return None;
    }
    let word = |at: usize| (at < line.tokens.len()).then(|| line.word(at));
    let before = at.checked_sub(1).and_then(word);
    let next = word(at + 1);
    let is_given = matches!(next, Some("=" | ":="));
    let Some(before) = before else { return is_given.then_some(Declared::Assigned) };
    let first = line.word(0);
    if TYPE.contains(&before) {
        return Some(Declared::Type);
    }
    // A method of Go has its receiver between the two.
    let is_method = first == "func" && before == ")" && next == Some("(");
    if FUNCTION.contains(&before) || is_method {
        return Some(Declared::Function);
    }
    let is_type = match before {
        ">" | "]" | "*" | "&" => at >= 2,
        word => line.tokens.get(at - 1).is_some_and(is_word) && !NO_TYPE.contains(&word),
    };
    // In `const Name &other`, it is a type.
    let ends = matches!(next, None | Some("=" | ":=" | ":" | ";" | "," | ")"));
    if ends && VARIABLE.contains(&before) || is_given && is_type {
        let is_header = HEADER.contains(&first);
        return Some(if is_header { Declared::Inner } else { Declared::Variable });
    }
    let opens = line.words().last() == Some("{");
    (next == Some("(") && is_type && opens && !HEADER.contains(&first))
        .then_some(Declared::Function)
}
