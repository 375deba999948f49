//! How far a completion may reach: to the end of its line, or over several lines
//! to the end of the block that was begun.
//!
//! Indentation tells where a block ends, in every language. Where there is a
//! grammar ([`crate::syntax`]), its brackets tell besides: a bracket that closes
//! what was opened above the cursor ends the block wherever it stands, and a line
//! that begins in a string or between brackets has no indentation that counts.

use crate::prompt::LINE_CHARS;
use crate::syntax::{self, Reading};
use feedback::event::StopReason;
use ropey::Rope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tree_sitter::Language;

/// Characters above the cursor's line that are read to understand it: a parse of
/// as many takes one to two milliseconds.
const WINDOW_CHARS: usize = 4_000;

/// Characters behind the cursor that are read for the same.
const AFTER_CHARS: usize = 1_000;

/// Columns a tab stands for, where tabs and blanks are compared.
const TAB_COLUMNS: usize = 4;

/// First words of lines that go on with the statement above them, or end it.
const CONTINUING: &[&str] = &[
    "catch", "done", "elif", "else", "elsif", "end", "ensure", "except", "fi", "finally", "rescue",
    "where",
];

/// Beginnings of lines that stand before a statement and belong to it.
const LEADING: &[&str] = &["#", "@", "//", "/*", "*", "--"];

/// Ends of a line that opens a block, where no grammar tells.
const OPENING: &[&str] = &["{", "(", "[", ":", " do", " then"];

/// When completions of several lines are computed. On a CPU each further line costs time, so
/// by default only a user who invokes a completion waits for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Multiline {
    /// Nowhere.
    Never,
    /// Where you ask by hand and nothing stands behind the cursor on its line.
    #[default]
    ByHand,
    /// As you type too, where the body of an empty block is to be written.
    Always,
}

/// What the user has set.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub multiline: Multiline,
    pub max_lines: usize,
}

/// How far the answer to one request may reach.
#[derive(Debug, Clone)]
pub struct Extent {
    /// Most lines that are shown.
    lines: usize,
    /// Of more than one line: what was begun.
    begun: Option<Arc<Begun>>,
}

#[derive(Debug)]
struct Begun {
    grammar: Option<Language>,
    /// The lines above the cursor's, as many as are read.
    above: String,
    /// The cursor's line up to the cursor.
    line: String,
    what: What,
    /// The lines with text below the cursor's, as many as may be repeated.
    below: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// Lines of a block that was opened before: none of them is less deep than so
    /// many columns. `closed`: its closing bracket stands below already.
    Body { columns: usize, closed: bool },
    /// One statement, with the block it opens; `opens` if the line has opened it.
    Statement { opens: bool },
}

impl Extent {
    /// To the end of the line.
    pub const LINE: Extent = Extent { lines: 1, begun: None };

    /// What may be shown at a cursor, which is given in characters.
    pub fn at(
        text: &Rope,
        cursor: usize,
        language: &str,
        by_hand: bool,
        setting: Setting,
    ) -> Extent {
        let wanted = match setting.multiline {
            Multiline::Never => false,
            Multiline::ByHand => by_hand,
            Multiline::Always => true,
        };
        if !wanted || setting.max_lines < 2 {
            return Extent::LINE;
        }
        let place = Place::of(text, cursor, setting.max_lines);
        // The model breaks lines by `\n`; what it says is not rewritten, so that the
        // record stays what was served.
        let Some(place) = place.filter(|place| !place.has_other_breaks) else {
            return Extent::LINE;
        };
        let grammar = syntax::grammar(language);
        let opener = place.opener(grammar.as_ref());
        let is_to_be_filled = opener.is_some_and(|opener| opener.of_block) && place.is_empty();
        if !by_hand && !is_to_be_filled {
            return Extent::LINE;
        }
        let what = place.what(opener.is_some());
        let Place { above, line, below, .. } = place;
        let begun = Begun { grammar, above, line, what, below };
        Extent { lines: setting.max_lines, begun: Some(Arc::new(begun)) }
    }

    /// Most lines that are shown.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// Whether an answer ends here: `said` is all of it behind what healing had to
    /// reproduce, `new` the token's piece it ends with.
    pub fn stop(&self, said: &[u8], new: &[u8]) -> Option<StopReason> {
        if self.begun.is_none() {
            return new.contains(&b'\n').then_some(StopReason::Newline);
        }
        // Nothing else can tell: a line has ended, or the next has shown how deep it is.
        let old = &said[..said.len().saturating_sub(new.len())];
        let (was, is) = (last_line(old), last_line(said));
        let begins = is_blank(was) && !is_blank(is) && said.contains(&b'\n');
        if !new.contains(&b'\n') && !begins {
            return None;
        }
        self.end(valid(said), false).map(|(_, stop)| stop)
    }

    /// The part of an answer that lies within.
    pub fn within<'a>(&self, said: &'a [u8]) -> &'a [u8] {
        self.end(valid(said), true).map_or(said, |(at, _)| &said[..at])
    }

    /// The lines with text that follow the cursor's, and that line up to it: what
    /// is not to be said again. `None` for a single line.
    pub fn around(&self) -> Option<(&str, &[String])> {
        self.begun.as_ref().map(|begun| (begun.line.as_str(), begun.below.as_slice()))
    }

    /// Where in an answer what may be shown ends, in bytes, and why. `is_whole` if
    /// nothing will be added to it.
    fn end(&self, said: &str, is_whole: bool) -> Option<(usize, StopReason)> {
        let first_break = said.find(['\n', '\r']);
        let Some(begun) = &self.begun else {
            return first_break.map(|at| (at, StopReason::Newline));
        };
        // A break that leaves the cursor's line begins no line of its own.
        let leaves = first_break.is_some_and(|at| said[..at].trim().is_empty());
        let mut breaks = said.match_indices('\n').map(|(at, _)| at);
        let full = breaks.nth(self.lines + usize::from(leaves) - 1);
        let foreign = said.find('\r').map(|at| (at, StopReason::BlockEnd));
        let block = begun.end(said, is_whole).map(|at| (at, StopReason::BlockEnd));
        let full = full.map(|at| (at, StopReason::MaxLines));
        [foreign, block, full].into_iter().flatten().min_by_key(|(at, _)| *at)
    }
}

impl Begun {
    /// Where in the generated text the block that was begun ends, in bytes.
    fn end(&self, said: &str, is_whole: bool) -> Option<usize> {
        let own_line_is_blank = self.line.trim().is_empty();
        let first = said.split('\n').next().unwrap_or_default();
        let leaves = first.trim().is_empty() && said.len() > first.len();
        if own_line_is_blank && leaves {
            // Nothing is to be said on this line.
            return Some(0);
        }
        let from = self.above.len() + self.line.len();
        let text = format!("{}{}{said}", self.above, self.line);
        let read = |grammar| syntax::read(grammar, &text);
        let reading = self.grammar.as_ref().and_then(read).unwrap_or_default();

        let own = if own_line_is_blank {
            columns(&format!("{}{first}", self.line))
        } else {
            columns(&self.line)
        };
        let least = match self.what {
            What::Body { columns, .. } if own_line_is_blank => columns.min(own),
            What::Body { columns, .. } => columns,
            What::Statement { .. } => own,
        };
        let mut depth = self.depth(&reading);
        let mut has_begun = match self.what {
            What::Body { .. } => true,
            What::Statement { opens } => {
                opens || !leaves && !is_leading(&format!("{}{first}", self.line))
            }
        };
        let mut brackets = reading.brackets.iter().filter(|b| b.at >= from).peekable();
        let mut at = 0;
        for line in said.split_inclusive('\n') {
            let content = line.trim();
            let counts = at > 0 && !content.is_empty() && !reading.is_words(from + at);
            let may_grow = !is_whole && !line.ends_with('\n');
            let continues = !has_begun || continues(content, may_grow);
            if counts && self.ends_before(columns(line), least, depth, continues) {
                return Some(at + self.closing(line));
            }
            has_begun |= counts && !is_leading(line);
            let end = at + line.len();
            while let Some(bracket) = brackets.next_if(|bracket| bracket.at < from + end) {
                match (bracket.opens, depth) {
                    (true, _) => depth += 1,
                    (false, 0) => {
                        return Some(bracket.at - from + self.closing(&text[bracket.at..]));
                    }
                    (false, _) => depth -= 1,
                }
            }
            at = end;
        }
        None
    }

    /// Brackets open at the cursor that are the completion's to close.
    fn depth(&self, reading: &Reading) -> usize {
        let (start, end) = (self.above.len(), self.above.len() + self.line.len());
        match self.what {
            What::Body { .. } => 0,
            What::Statement { .. } => {
                let own = reading.brackets.iter().filter(|b| (start..end).contains(&b.at));
                own.fold(0, |depth: usize, bracket| match bracket.opens {
                    true => depth + 1,
                    false => depth.saturating_sub(1),
                })
            }
        }
    }

    /// Whether a line so many columns deep is none of the block's. `continues` if it
    /// can be of a statement that is no deeper.
    fn ends_before(&self, deep: usize, least: usize, depth: usize, continues: bool) -> bool {
        match self.what {
            What::Body { .. } => depth == 0 && deep < least,
            // Less deep than the statement it cannot be, whatever is open.
            What::Statement { .. } => deep < least || depth == 0 && deep == least && !continues,
        }
    }

    /// Bytes at the start of a line that are shown though the block ends there: the
    /// bracket that closes it, if nobody has written that yet.
    fn closing(&self, line: &str) -> usize {
        let blanks = line.len() - line.trim_start().len();
        let is_open = matches!(self.what, What::Body { closed: false, .. });
        if is_open && starts_closing(line) { blanks + 1 } else { 0 }
    }
}

/// A cursor and the text around it.
struct Place {
    above: String,
    line: String,
    /// All that follows, as far as it is read.
    after: String,
    /// The lines with text in it.
    below: Vec<String>,
    has_other_breaks: bool,
}

/// What opens the block the cursor stands in, right before it.
#[derive(Clone, Copy)]
struct Opener {
    of_block: bool,
}

impl Place {
    /// `None` where something stands behind the cursor, or too much before it.
    fn of(text: &Rope, cursor: usize, max_lines: usize) -> Option<Place> {
        let row = text.char_to_line(cursor);
        let start = text.line_to_char(row);
        let own = text.line(row);
        if own.len_chars() > LINE_CHARS
            || !text.slice(cursor..start + own.len_chars()).chars().all(char::is_whitespace)
        {
            return None;
        }
        let earliest = start.saturating_sub(WINDOW_CHARS);
        let cut = text.char_to_line(earliest);
        let whole = if text.line_to_char(cut) == earliest { cut } else { cut + 1 };
        let above = text.slice(text.line_to_char(whole).min(start)..start).to_string();
        let end = (cursor + AFTER_CHARS).min(text.len_chars());
        let after = text.slice(cursor..end).to_string();
        let below = after.lines().map(|line| line.trim_end().to_owned());
        let below: Vec<_> = below.filter(|line| !line.is_empty()).take(max_lines).collect();
        let has_other_breaks = above.contains('\r') || after.contains('\r');
        let line = text.slice(start..cursor).to_string();
        Some(Place { above, line, after, below, has_other_breaks })
    }

    fn is_blank(&self) -> bool {
        self.line.trim().is_empty()
    }

    /// The cursor's line, or the last one above that says something.
    fn head(&self) -> &str {
        if !self.is_blank() {
            return &self.line;
        }
        self.above.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default()
    }

    fn opener(&self, grammar: Option<&Language>) -> Option<Opener> {
        let text = format!("{}{}{}", self.above, self.line, self.after);
        let Some(reading) = grammar.and_then(|grammar| syntax::read(grammar, &text)) else {
            let head = self.head().trim_end();
            let opens = OPENING.iter().any(|end| head.ends_with(end));
            let of_block = !head.ends_with(['(', '[']);
            return opens.then_some(Opener { of_block });
        };
        // What a comment says behind it counts for nothing.
        let mut code = text[..self.above.len() + self.line.len()].trim_end();
        while let Some(comment) = reading.words.iter().find(|words| {
            (words.start + 1..=words.end).contains(&code.len())
                && ["//", "/*", "#"].iter().any(|start| text[words.start..].starts_with(start))
        }) {
            code = text[..comment.start].trim_end();
        }
        let at = code.len().checked_sub(1)?;
        let bracket = reading.brackets.iter().find(|bracket| bracket.at == at);
        match bracket {
            Some(bracket) => bracket.opens.then_some(Opener { of_block: !bracket.of_value }),
            None if code.ends_with(':') && !reading.is_words(at) => Some(Opener { of_block: true }),
            None => None,
        }
    }

    /// Whether no line of the block that was opened stands below.
    fn is_empty(&self) -> bool {
        self.below.first().is_none_or(|next| columns(next) <= columns(self.head()))
    }

    /// What is begun here, by the lines above and below.
    fn what(&self, opens: bool) -> What {
        let (head, here) = (columns(self.head()), columns(&self.line));
        let next = self.below.first();
        // Whether the block of lines deeper than `outer` is closed below, or goes on.
        let is_closed = |outer: usize| {
            next.is_some_and(|next| match columns(next) {
                deep if deep > outer => true,
                deep => starts_closing(next) && (!opens || deep == outer),
            })
        };
        match (self.is_blank(), opens) {
            (true, true) => What::Body { columns: head + 1, closed: is_closed(head) },
            (true, false) if here > 0 => What::Body { columns: here, closed: is_closed(here - 1) },
            (false, true) if is_closed(head) => What::Body { columns: head + 1, closed: true },
            (_, opens) => What::Statement { opens },
        }
    }
}

/// How deep a line is indented.
fn columns(line: &str) -> usize {
    let blanks = line.chars().take_while(|c| matches!(c, ' ' | '\t'));
    blanks.fold(0, |columns, blank| match blank {
        '\t' => (columns / TAB_COLUMNS + 1) * TAB_COLUMNS,
        _ => columns + 1,
    })
}

fn starts_closing(line: &str) -> bool {
    line.trim_start().starts_with([')', ']', '}'])
}

/// Whether a line goes on with a statement of its own depth, or does where it may
/// yet grow.
fn continues(content: &str, may_grow: bool) -> bool {
    let end = content.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(content.len());
    let word = &content[..end];
    let is_part = may_grow && end == content.len();
    content.starts_with('{')
        || starts_closing(content)
        || CONTINUING.iter().any(|known| *known == word || (is_part && known.starts_with(word)))
}

fn is_leading(line: &str) -> bool {
    LEADING.iter().any(|start| line.trim_start().starts_with(start))
}

fn last_line(text: &[u8]) -> &[u8] {
    text.rsplit(|byte| *byte == b'\n').next().unwrap_or_default()
}

fn is_blank(text: &[u8]) -> bool {
    text.trim_ascii().is_empty()
}

/// Without half a character at its end: a token may end inside one.
pub fn valid(text: &[u8]) -> &str {
    match std::str::from_utf8(text) {
        Ok(all) => all,
        Err(error) => std::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALWAYS: Setting = Setting { multiline: Multiline::Always, max_lines: 8 };

    /// `|` marks the cursor.
    fn extent(language: &str, marked: &str, by_hand: bool, setting: Setting) -> Extent {
        let cursor = marked.chars().position(|c| c == '|').unwrap();
        let text = Rope::from_str(&marked.replacen('|', "", 1));
        Extent::at(&text, cursor, language, by_hand, setting)
    }

    fn lines(language: &str, marked: &str, by_hand: bool, multiline: Multiline) -> usize {
        extent(language, marked, by_hand, Setting { multiline, max_lines: 8 }).lines()
    }

    fn typing(language: &str, marked: &str) -> usize {
        lines(language, marked, false, Multiline::Always)
    }

    /// What is left of `said` by hand.
    fn within<'a>(language: &str, marked: &str, said: &'a str) -> &'a str {
        let extent = extent(language, marked, true, ALWAYS);
        std::str::from_utf8(extent.within(said.as_bytes())).unwrap().trim_end()
    }

    #[test]
    fn by_default_several_lines_are_for_who_asks_by_hand() {
        let place = "fn a() {\n    |\n}\n";
        for (multiline, typing, by_hand) in
            [(Multiline::Never, 1, 1), (Multiline::ByHand, 1, 8), (Multiline::Always, 8, 8)]
        {
            assert_eq!(lines("rust", place, false, multiline), typing, "{multiline:?}");
            assert_eq!(lines("rust", place, true, multiline), by_hand, "{multiline:?}");
        }
    }

    #[test]
    fn while_typing_several_lines_are_for_the_body_of_an_empty_block() {
        for (language, place) in [
            ("rust", "fn a() {\n    |\n}\n"),
            ("rust", "fn a() {|\n}\n"),
            ("rust", "fn a() {|"),
            ("rust", "fn a() {\n|\n}\n\nfn b() {}\n"),
            ("rust", "fn a() { // why\n    |\n}\n"),
            ("python", "def a(b: int) -> int:\n    |\n"),
            ("python", "class A:\n    def a(self):|\n\nb = 1\n"),
            ("c", "void a(void)\n{\n\t|\n}\n"),
            ("cpp", "class A {\n public:\n  |\n};\n"),
            ("go", "func a() {\n\tfor {\n\t\t|\n\t}\n}\n"),
            ("javascript", "const a = () => {\n  |\n};\n"),
            ("typescriptreact", "function A() {\n  |\n}\n"),
            ("lua", "if a then\n  |\nend\n"),
            ("swift", "func a() {\n    |\n}\n"),
        ] {
            assert_eq!(typing(language, place), 8, "{language}: {place}");
        }
    }

    #[test]
    fn while_typing_one_line_is_for_everywhere_else() {
        for (language, place) in [
            ("rust", "fn a() {\n    |\n    b();\n}\n"),
            ("rust", "fn a() {\n    b();\n    |\n}\n"),
            ("rust", "fn a() {\n    let b = |\n}\n"),
            ("rust", "fn a() {\n    b(|)\n}\n"),
            ("rust", "fn a() {\n    let b = B {\n        |\n    };\n}\n"),
            ("rust", "fn a() {\n    b(\n        |\n    );\n}\n"),
            ("rust", "// The brace {\n|\n"),
            ("rust", "fn a() {\n    b(\"{\n    |\n\");\n}\n"),
            ("python", "def a():\n    b()\n    |\n"),
            ("python", "def a():\n    \"\"\"Note:\n    |\n    \"\"\"\n"),
            ("javascript", "const a = {\n  |\n};\n"),
            ("rust", "|"),
        ] {
            assert_eq!(typing(language, place), 1, "{language}: {place}");
        }
    }

    #[test]
    fn by_hand_one_line_is_for_where_something_stands_behind_the_cursor() {
        let by_hand = |place| lines("rust", place, true, Multiline::ByHand);
        assert_eq!(by_hand("fn a() {\n    b(|)\n}\n"), 1);
        assert_eq!(by_hand("fn a() {\n    b|();\n}\n"), 1);
        assert_eq!(by_hand("fn a() {\n    let b = |  \n}\n"), 8);
        let minified = format!("{}|\n", "x=1;".repeat(LINE_CHARS));
        assert_eq!(by_hand(&minified), 1);
    }

    /// What a completion inserts would break lines in another way than the text.
    #[test]
    fn other_line_breaks_than_the_models_keep_to_one_line() {
        assert_eq!(lines("rust", "fn a() {\r\n    |\r\n}\r\n", true, Multiline::ByHand), 1);
        assert_eq!(lines("rust", "fn a() {|\r\n}", true, Multiline::ByHand), 1);
    }

    #[test]
    fn a_body_ends_before_the_bracket_that_closes_it() {
        for (language, place, said, shown) in [
            ("rust", "fn a() {\n    |\n}\n", "b();\n    c();\n}\n\nfn d() {", "b();\n    c();"),
            ("rust", "fn a() {|\n}\n", "\n    b();\n}\n\nfn d() {", "\n    b();"),
            (
                "rust",
                "fn a() {\n    |\n}\n",
                "if b {\n        c();\n    }\n}\n",
                "if b {\n        c();\n    }",
            ),
            ("rust", "fn a() {\n    |\n}\n", "b(\"}\");\n    c(); }\n}", "b(\"}\");\n    c();"),
            ("rust", "fn a() {\n    |\n}\n", "b();\n    }\n", "b();"),
            ("rust", "fn a() {\n    |\n}\n", "b(r\"\n}\n\");\n}", "b(r\"\n}\n\");"),
            ("c", "void a(void)\n{\n\t|\n}\n", "b('}');\n\tc();\n}\n", "b('}');\n\tc();"),
            (
                "c",
                "void a(void)\n{\n\tswitch (b) {\n\t|\n\t}\n}\n",
                "case 1:\n\t\tc();\n\t}\n",
                "case 1:\n\t\tc();",
            ),
            ("go", "func a() {\n\t|\n}\n", "b := `\n}\n`\n}\n", "b := `\n}\n`"),
            ("javascript", "a(() => {\n  |\n});\n", "b();\n});\nc();", "b();"),
            ("swift", "func a() {\n    |\n}\n", "b()\n    c()\n}\n", "b()\n    c()"),
            ("lua", "if a then\n  |\nend\n", "b()\n  c()\nend\nd()", "b()\n  c()"),
        ] {
            assert_eq!(within(language, place, said), shown, "{language}: {place}");
        }
    }

    #[test]
    fn a_body_by_indentation_ends_where_a_line_is_less_deep() {
        for (place, said, shown) in [
            ("def a():\n    |\n", "b()\n\n    c()\n\nd = 1\n", "b()\n\n    c()"),
            (
                "def a():\n    |\n",
                "\"\"\"Says\n\nmore.\n\"\"\"\n    b()\nc",
                "\"\"\"Says\n\nmore.\n\"\"\"\n    b()",
            ),
            ("def a():|\n", "\n    b(\n  c,\n    )\nd", "\n    b(\n  c,\n    )"),
            (
                "def a():|\nb = 1\n",
                "\n    if c:\n        d()\n    else:\n        e()\nf",
                "\n    if c:\n        d()\n    else:\n        e()",
            ),
        ] {
            assert_eq!(within("python", place, said), shown, "{place}");
        }
    }

    #[test]
    fn the_bracket_that_nobody_has_written_yet_belongs_to_it() {
        for (place, said, shown) in [
            ("fn a() {|", "\n    b();\n}\n\nfn c", "\n    b();\n}"),
            ("fn a() {\n    |\n\nfn c() {}\n", "b();\n}\n\nfn d", "b();\n}"),
            ("impl A {\n    fn a() {|\n}\n", "\n        b();\n    }\n}\n", "\n        b();\n    }"),
        ] {
            assert_eq!(within("rust", place, said), shown, "{place}");
        }
    }

    #[test]
    fn a_statement_ends_with_the_block_it_opens() {
        for (language, place, said, shown) in [
            (
                "rust",
                "|\nfn b() {}\n",
                "fn a() {\n    c();\n}\n\nfn d() {",
                "fn a() {\n    c();\n}",
            ),
            (
                "rust",
                "|\n",
                "#[test]\n/// Does.\nfn a() {\n}\nfn d",
                "#[test]\n/// Does.\nfn a() {\n}",
            ),
            (
                "rust",
                "    if b |\n",
                "{\n        c();\n    } else {\n        d();\n    }\n    e",
                "{\n        c();\n    } else {\n        d();\n    }",
            ),
            (
                "rust",
                "    let b = |\n",
                "c\n        .d()\n        .e();\n    f",
                "c\n        .d()\n        .e();",
            ),
            ("rust", "    b(c,|\n", "\n        d,\n    );\n    e", "\n        d,\n    );"),
            (
                "rust",
                "    b();|\n",
                "\n    c(\n        d,\n    );\n    e",
                "\n    c(\n        d,\n    );",
            ),
            ("rust", "    b();|\n}\n", "\n}\n", ""),
            ("c", "void a(void)|\n", "\n{\n\tb();\n}\n\nvoid", "\n{\n\tb();\n}"),
            (
                "python",
                "if a|\n",
                ":\n    b()\nelif c:\n    d()\ne()",
                ":\n    b()\nelif c:\n    d()",
            ),
            ("lua", "if a |\n", "then\n  b()\nend\nc()", "then\n  b()\nend"),
            ("swift", "|\n", "func a() {\n    b()\n}\nc()", "func a() {\n    b()\n}"),
        ] {
            assert_eq!(within(language, place, said), shown, "{language}: {place}");
        }
    }

    #[test]
    fn no_more_lines_than_were_wanted() {
        let setting = Setting { max_lines: 2, ..ALWAYS };
        let of = |place, said: &'static str| {
            let extent = extent("rust", place, true, setting);
            std::str::from_utf8(extent.within(said.as_bytes())).unwrap()
        };
        assert_eq!(of("fn a() {\n    |\n}\n", "b();\n    c();\n    d();\n"), "b();\n    c();");
        assert_eq!(
            of("fn a() {|\n}\n", "\n    b();\n    c();\n    d();\n"),
            "\n    b();\n    c();"
        );
    }

    #[test]
    fn nothing_is_said_where_the_blank_line_is_left() {
        assert_eq!(within("rust", "fn a() {\n    |\n}\n", "\n    b();\n"), "");
    }

    /// Feeds an answer piece by piece, as tokens come.
    fn stopped(place: &str, pieces: &[&str]) -> (usize, Option<StopReason>) {
        stopped_in("rust", place, pieces)
    }

    fn stopped_in(language: &str, place: &str, pieces: &[&str]) -> (usize, Option<StopReason>) {
        let extent = extent(language, place, true, ALWAYS);
        let mut said = vec![];
        for (index, piece) in pieces.iter().enumerate() {
            said.extend_from_slice(piece.as_bytes());
            if let Some(stop) = extent.stop(&said, piece.as_bytes()) {
                return (index, Some(stop));
            }
        }
        (pieces.len(), None)
    }

    #[test]
    fn decoding_ends_with_the_token_that_shows_the_end() {
        let place = "fn a() {\n    |\n}\n";
        let end = Some(StopReason::BlockEnd);
        assert_eq!(stopped(place, &["b", "();\n", "   ", " c();", "\n", "}", "\n"]), (5, end));
        assert_eq!(stopped(place, &["b();\n    c();\n}\n"]), (0, end));
        assert_eq!(stopped(place, &["b", "();", "\n   ", " c("]), (4, None));
        let pieces =
            ["b", ":\n", "   ", " c()\n", "el", "se", ":\n", "    d()\n", "e", " = 1", "\n"];
        assert_eq!(stopped_in("python", "if a |\n", &pieces), (10, end), "`e` may be an `else`");
        let many: Vec<&str> = [" b();\n"].repeat(9);
        assert_eq!(stopped("fn a() {\n|\n}\n", &many), (7, Some(StopReason::MaxLines)));
        let one = Extent::LINE;
        assert_eq!(one.stop(b"b();\n", b"\n"), Some(StopReason::Newline));
        assert_eq!(one.stop(b"b();", b";"), None);
    }

    /// Texts of all kinds, cut anywhere: nothing may panic, nothing reach beyond.
    #[test]
    fn whatever_is_said_the_end_lies_in_it() {
        let said = "größe();\n\tif a {\n\u{a0} b(\"}\n\");\n\n}\r\n]) else {\n'''\n";
        let places = ["|", "fn ä() {\n\t|\n}\n", "\n\n  |", "if a:|\n\tb", "}}}\n  ) x |\n"];
        for language in ["rust", "python", "c", "go", "typescript", "markdown"] {
            for place in places {
                let extent = extent(language, place, true, ALWAYS);
                for end in 0..=said.len() {
                    let said = &said.as_bytes()[..end];
                    assert!(said.starts_with(extent.within(said)), "{language}: {place}");
                    extent.stop(said, &said[end.saturating_sub(3)..]);
                }
            }
        }
    }
}
