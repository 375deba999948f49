//! The names in a text that is offered, and whether they are known: a small model invents names,
//! and an offer with an invented one is seldom right.

mod builtin;

pub use builtin::is_builtin;

/// Shorter names, as those of loops, say nothing.
const NAME_CHARS_MIN: usize = 3;

/// A name in the code of an offer. Those in strings and comments are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The whole name, with the part of it that stands before the cursor.
    pub text: String,
    /// It stands behind a dot, `::` or `->`.
    pub is_member: bool,
    /// The offer declares it, so it need not be known.
    pub is_declared: bool,
}

/// First words of lines that declare the names behind them, up to an `=`, `in`, `of` or a brace.
const DECLARING: &[&str] = &[
    "async",
    "class",
    "const",
    "def",
    "enum",
    "export",
    "fn",
    "for",
    "from",
    "func",
    "function",
    "impl",
    "import",
    "interface",
    "let",
    "local",
    "macro_rules",
    "mod",
    "package",
    "pub",
    "static",
    "struct",
    "trait",
    "type",
    "use",
    "var",
];

/// First words of lines all of whose names come from elsewhere.
const IMPORTING: &[&str] = &["export", "from", "import", "mod", "package", "use"];

/// Languages in which `#` begins a comment.
const HASH_COMMENTS: &[&str] =
    &["elixir", "julia", "perl", "python", "r", "ruby", "shellscript", "yaml"];

/// Languages in which `--` begins a comment.
const DASH_COMMENTS: &[&str] = &["haskell", "lua", "sql"];

pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The words of a text that may be names. Numbers are none.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_word(c)).filter(|word| word.starts_with(|c: char| !c.is_ascii_digit()))
}

/// The names in the code of the first line of `offer`, behind `line_before`.
pub fn names(line_before: &str, offer: &str, language: &str) -> Vec<Name> {
    let line = format!("{line_before}{}", offer.lines().next().unwrap_or_default());
    let code = code_of(&line, language);
    let declared_until = declared_until(&code);
    let is_import = IMPORTING.contains(&first_word(&code)) && !code.contains('=');
    let mut names: Vec<Name> = vec![];
    let mut start = None;
    let ends = code.char_indices().chain([(code.len(), ' ')]);
    for (at, c) in ends {
        match start {
            None if is_word(c) => start = Some(at),
            Some(begin) if !is_word(c) => {
                start = None;
                let text = &code[begin..at];
                if at > line_before.len() && may_be_invented(text) {
                    let is_member = ends_with_member_sign(&code[..begin]);
                    let is_declared = is_import
                        || (begin < declared_until && !is_member)
                        || is_assigned(&code[..begin], &code[at..])
                        || names.iter().any(|name| name.is_declared && name.text == text);
                    names.push(Name { text: text.to_owned(), is_member, is_declared });
                }
            }
            _ => {}
        }
    }
    names
}

/// Tells whether a word is a name that is worth looking for. Numbers are none.
fn may_be_invented(word: &str) -> bool {
    word.chars().count() >= NAME_CHARS_MIN && !word.starts_with(|c: char| c.is_ascii_digit())
}

/// The line with blanks for what stands in strings and comments. It is as long as before.
fn code_of(line: &str, language: &str) -> String {
    let trimmed = line.trim_start();
    if trimmed.starts_with("* ") || trimmed.starts_with("/*") || trimmed.starts_with("*/") {
        return " ".repeat(line.len());
    }
    let mut code = String::with_capacity(line.len());
    let (mut quote, mut is_escaped, mut before) = (None, false, ' ');
    for (at, c) in line.char_indices() {
        let rest = &line[at..];
        let is_comment = rest.starts_with("//")
            || (c == '#' && HASH_COMMENTS.contains(&language))
            || (rest.starts_with("--") && DASH_COMMENTS.contains(&language));
        match quote {
            None if is_comment => {
                code.push_str(&" ".repeat(rest.len()));
                break;
            }
            None => {
                let opens = matches!(c, '"' | '`') || (c == '\'' && opens_string(before, rest));
                quote = opens.then_some(c);
                code.push(c);
            }
            Some(mark) => {
                let ends = c == mark && !is_escaped;
                is_escaped = c == '\\' && !is_escaped;
                if ends {
                    quote = None;
                    code.push(c);
                } else {
                    code.push_str(&" ".repeat(c.len_utf8()));
                }
            }
        }
        before = c;
    }
    code
}

/// Tells whether an apostrophe opens a string, and is not one of prose or of a lifetime.
fn opens_string(before: char, rest: &str) -> bool {
    let is_prefix = matches!(before, 'b' | 'f' | 'r' | 'u');
    let is_lifetime = matches!(before, '&' | '<') && rest[1..].find('\'') != Some(1);
    (!is_word(before) || is_prefix) && !is_lifetime
}

fn ends_with_member_sign(before: &str) -> bool {
    let before = before.trim_end();
    (before.ends_with('.') && !before.ends_with(".."))
        || ["::", "->"].iter().any(|sign| before.ends_with(sign))
}

/// The byte up to which a line declares names by its beginning.
fn declared_until(code: &str) -> usize {
    let assignment = [" = ", " := "].iter().filter_map(|sign| code.find(sign)).min();
    let is_list = |head: &str| head.chars().all(|c| is_word(c) || matches!(c, ',' | ' ' | '\t'));
    if let Some(at) = assignment.filter(|at| is_list(&code[..*at])) {
        return at;
    }
    if !DECLARING.contains(&first_word(code)) {
        return 0;
    }
    let ends = [" = ", " := ", " in ", " of ", "{", " => "];
    ends.iter().filter_map(|end| code.find(end)).min().unwrap_or(code.len())
}

/// The word that a line begins with.
fn first_word(code: &str) -> &str {
    let head = code.trim_start();
    &head[..head.find(|c| !is_word(c)).unwrap_or(head.len())]
}

/// Tells whether a name between these is assigned to, is a parameter of a closure, or is a key.
fn is_assigned(before: &str, after: &str) -> bool {
    let next = after.trim_start();
    let assigns = next.starts_with(":=") || (next.starts_with('=') && !next.starts_with("=="));
    let is_key = next.starts_with(':') && !next.starts_with("::");
    let is_closure = before.trim_end().ends_with('|') && next.starts_with(['|', ',', ':']);
    let is_lambda = before.trim_end().ends_with("lambda") || next.starts_with("=>");
    let is_arrow = before.contains('(') && next.starts_with(") =>");
    assigns || is_key || is_closure || is_lambda || is_arrow
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names that must be known.
    fn needed(line_before: &str, offer: &str, language: &str) -> Vec<String> {
        let names = names(line_before, offer, language).into_iter();
        let is_needed = |name: &Name| !name.is_declared && !is_builtin(&name.text, language);
        names.filter(is_needed).map(|name| name.text).collect()
    }

    #[test]
    fn a_name_counts_with_the_part_before_the_cursor() {
        assert_eq!(needed("    self.fet", "ch_all(limit)", "rust"), ["fetch_all", "limit"]);
        assert_eq!(needed("self.", "name", "python"), ["name"]);
        assert!(names("self.", "name", "python")[0].is_member);
        assert!(names("Vec::", "new()", "rust")[0].is_member);
        assert!(!names("for i in 0..", "count {", "rust")[0].is_member);
    }

    #[test]
    fn strings_comments_and_numbers_have_no_names() {
        assert_eq!(needed("", "log('no name', \"nor here\") // or here", "go"), ["log"]);
        assert_eq!(needed("print(f\"", "{x} is\", rest)", "python"), ["rest"]);
        assert_eq!(needed("x = ", "12 # a number", "python"), [""; 0]);
        assert_eq!(needed(" ", "* Returns the name.", "typescript"), [""; 0]);
        assert_eq!(needed("", "text: &'a str, other: Type", "rust"), ["Type"]);
    }

    #[test]
    fn what_the_offer_declares_need_not_be_known() {
        assert_eq!(needed("", "let total = sum(items);", "rust"), ["items"]);
        assert_eq!(needed("", "total = sum(orders)", "python"), ["orders"]);
        assert_eq!(needed("", "def area(width, height):", "python"), [""; 0]);
        assert_eq!(needed("", "for (const item of items) {", "typescript"), ["items"]);
        assert_eq!(needed("", "total, err := Sum(items)", "go"), ["Sum", "items"]);
        assert_eq!(needed("    ", ".map(|item| item.name)", "rust"), ["name"]);
        assert_eq!(needed("", "import { hono } from 'hono'", "typescript"), [""; 0]);
    }
}
