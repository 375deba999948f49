//! Brackets and quotes that an editor closes by itself. The rules are those of VS Code with its
//! default settings and the language extensions that come with it.

/// What the editor does when a character is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// It inserts the character.
    Plain,
    /// It inserts the closing mark as well, behind the cursor.
    Pair(char),
    /// The mark stands behind the cursor, where the editor had put it. The cursor moves over it.
    Over,
}

const BRACKETS: [(char, char); 3] = [('(', ')'), ('[', ']'), ('{', '}')];
const QUOTES: [char; 3] = ['"', '\'', '`'];

/// The editor closes a mark only before these, before a blank, and at the end of a line.
const CLOSES_BEFORE: &str = ";:.,=}])>`";

/// Languages in which `'` is no quote, or in which it is part of names.
const WITHOUT_SINGLE_QUOTES: &[&str] = &["haskell", "ocaml", "rust", "sql", "zig"];
/// Languages in which a backtick is closed.
const WITH_BACKTICKS: &[&str] = &[
    "go",
    "javascript",
    "javascriptreact",
    "perl",
    "python",
    "ruby",
    "shellscript",
    "svelte",
    "typescript",
    "typescriptreact",
    "vue",
];
/// Languages by what begins a comment in them. In the others it is `//`.
const COMMENTS: &[(&str, &[&str])] = &[
    ("#", &["elixir", "julia", "perl", "python", "r", "ruby", "shellscript"]),
    ("--", &["haskell", "lua", "sql"]),
];
/// Letters that may stand before the quote of a Python string.
const PYTHON_PREFIXES: &str = "bBfFrRuU";

/// Returns what the editor does when `typed` is typed between `before`, the line up to the cursor,
/// and `closers`, the marks behind the cursor that it closed itself. Nothing else is on the line.
pub fn key(typed: char, before: &str, closers: &str, language: &str) -> Key {
    let next = closers.chars().next();
    let is_quote = QUOTES.contains(&typed);
    let is_escaped = is_quote && before.ends_with('\\');
    if next == Some(typed) && !is_escaped {
        return Key::Over;
    }
    if next.is_some_and(|next| !CLOSES_BEFORE.contains(next)) {
        return Key::Plain;
    }
    match closing(typed) {
        Some(close) if !is_quote || closes_quote(typed, before, language) => Key::Pair(close),
        _ => Key::Plain,
    }
}

/// The mark that closes this one.
pub fn closing(open: char) -> Option<char> {
    let quote = QUOTES.contains(&open).then_some(open);
    quote.or_else(|| BRACKETS.iter().find(|pair| pair.0 == open).map(|pair| pair.1))
}

fn is_closing_bracket(mark: char) -> bool {
    BRACKETS.iter().any(|pair| pair.1 == mark)
}

fn closes_quote(quote: char, before: &str, language: &str) -> bool {
    let is_known = match quote {
        '\'' => !WITHOUT_SINGLE_QUOTES.contains(&language),
        '`' => WITH_BACKTICKS.contains(&language),
        _ => true,
    };
    is_known
        && !follows_word(before, language)
        && !before.ends_with(['\\', quote])
        && !is_in_comment(before, language)
}

/// Returns true if a quote here is an apostrophe, or the end of something.
fn follows_word(before: &str, language: &str) -> bool {
    let is_word = |c: &char| c.is_alphanumeric() || *c == '_';
    let word = before.chars().rev().take_while(is_word);
    if language == "python" {
        let letters: Vec<char> = word.collect();
        return letters.len() > 2 || letters.iter().any(|c| !PYTHON_PREFIXES.contains(*c));
    }
    word.count() > 0
}

fn is_in_comment(before: &str, language: &str) -> bool {
    let other = COMMENTS.iter().find(|(_, languages)| languages.contains(&language));
    let begin = other.map_or("//", |(begin, _)| begin);
    let typed = before.trim_start();
    let is_inner_line = begin == "//" && (typed.starts_with("/*") || typed.starts_with("* "));
    is_inner_line || typed.starts_with(begin) || typed.contains(&format!(" {begin}"))
}

/// Returns true if a line does nothing but close brackets.
pub fn only_closes(line: &str) -> bool {
    let line = line.trim();
    line.contains(is_closing_bracket)
        && line.chars().all(|c| is_closing_bracket(c) || matches!(c, ';' | ',' | ' '))
}

/// Returns how many marks a text closes that it has not opened. `quote` is the one of the string,
/// if any, in which it begins.
pub fn closes_of_others(text: &str, quote: Option<char>) -> usize {
    let mut open = Vec::new();
    let mut closed = 0;
    let mut string = quote;
    let mut is_escaped = false;
    for c in text.chars() {
        if is_escaped {
            is_escaped = false;
        } else if string.is_some() {
            is_escaped = c == '\\';
            if string == Some(c) {
                // The first one ends the string in which the text begins.
                closed += usize::from(quote.is_some() && closed == 0 && open.is_empty());
                string = None;
            }
        } else if c == '"' {
            string = Some(c);
        } else if let Some(close) = closing(c).filter(|close| *close != c) {
            open.push(close);
        } else if is_closing_bracket(c) && open.pop().is_none() {
            closed += 1;
        }
    }
    closed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_and_quotes_are_closed_and_typed_over() {
        let rust = |typed, before, closers| key(typed, before, closers, "rust");
        assert_eq!(rust('(', "foo", ""), Key::Pair(')'));
        assert_eq!(rust('{', "foo(", ")"), Key::Pair('}'), "before a closing bracket");
        assert_eq!(rust(')', "foo(x", ")"), Key::Over);
        assert_eq!(rust(')', "foo(x", ""), Key::Plain);
        assert_eq!(rust('x', "foo(", ")"), Key::Plain);
        assert_eq!(rust('"', "let x = ", ""), Key::Pair('"'));
        assert_eq!(rust('"', "let x = \"abc", "\""), Key::Over);
        assert_eq!(rust('"', "let x = \"abc\\", "\""), Key::Plain, "an escaped quote");
        assert_eq!(rust('(', "let x = \"abc", "\""), Key::Plain, "before a quote");
        assert_eq!(rust('{', "`${", "}`"), Key::Pair('}'));
    }

    #[test]
    fn what_is_no_quote_is_not_closed() {
        for (language, before, quote) in [
            ("rust", "fn a<", '\''),
            ("python", "x = it", '\''),
            ("python", "x = \"\"", '"'),
            ("python", "# say ", '"'),
            ("rust", "    // say ", '"'),
            ("javascript", " * it is ", '\''),
            ("lua", "x = 1 -- say ", '"'),
            ("java", "x = ", '`'),
        ] {
            assert_eq!(key(quote, before, "", language), Key::Plain, "{language}: {before}");
        }
        for (language, before, quote) in [
            ("python", "x = f", '"'),
            ("python", "x = ", '\''),
            ("go", "x := ", '`'),
            ("javascript", "require(", '\''),
        ] {
            assert_eq!(key(quote, before, "", language), Key::Pair(quote), "{language}: {before}");
        }
    }

    #[test]
    fn a_line_that_only_closes_has_brackets_and_separators_alone() {
        for line in ["}", "  });", ")),", "} ]"] {
            assert!(only_closes(line), "{line}");
        }
        for line in ["", ";", "} else {", "){", "end", ")?;"] {
            assert!(!only_closes(line), "{line}");
        }
    }

    #[test]
    fn marks_that_a_text_closes_for_others_are_counted() {
        assert_eq!(closes_of_others("x);", None), 1);
        assert_eq!(closes_of_others("f(x))]", None), 2);
        assert_eq!(closes_of_others("f(x)", None), 0);
        assert_eq!(closes_of_others("\")\")", None), 1, "a bracket in a string closes nothing");
        assert_eq!(closes_of_others("fs')", Some('\'')), 2);
        assert_eq!(closes_of_others("it\\'s", Some('\'')), 0);
    }
}
