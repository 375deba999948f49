//! The signs of a block in a single line: its indentation, and whether it continues a statement
//! or leads to one.

/// Columns that a tab counts for where tabs and blanks are compared.
const TAB_COLUMNS: usize = 4;

/// First words of lines that continue or end the statement above them.
const CONTINUING: &[&str] = &[
    "catch", "done", "elif", "else", "elsif", "end", "ensure", "except", "fi", "finally", "rescue",
    "where",
];

/// Beginnings of lines that stand before a statement and belong to it.
const LEADING: &[&str] = &["#", "@", "//", "/*", "*", "--"];

/// Ends of a line that opens a block. They decide where there is no grammar.
const OPENING: &[&str] = &["{", "(", "[", ":", " do", " then"];

/// The column at which the text of a line begins.
pub(super) fn columns(line: &str) -> usize {
    let blanks = line.chars().take_while(|c| matches!(c, ' ' | '\t'));
    blanks.fold(0, |columns, blank| match blank {
        '\t' => (columns / TAB_COLUMNS + 1) * TAB_COLUMNS,
        _ => columns + 1,
    })
}

/// Returns true if a line, without its trailing blanks, opens a block or a list by its end.
pub(super) fn opens(line: &str) -> bool {
    OPENING.iter().any(|end| line.ends_with(end))
}

pub(super) fn starts_closing(line: &str) -> bool {
    line.trim_start().starts_with([')', ']', '}'])
}

/// Returns whether a line continues a statement of its own indentation. With `may_grow`, the
/// beginning of a continuing word is enough.
pub(super) fn continues(content: &str, may_grow: bool) -> bool {
    let end = content.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(content.len());
    let word = &content[..end];
    let is_part = may_grow && end == content.len();
    content.starts_with('{')
        || starts_closing(content)
        || CONTINUING.iter().any(|known| *known == word || (is_part && known.starts_with(word)))
}

pub(super) fn is_leading(line: &str) -> bool {
    LEADING.iter().any(|start| line.trim_start().starts_with(start))
}
