//! Turns a document and a cursor into the texts of a FIM prompt.
//!
//! The layout is PSM with the text that is being typed behind the middle token:
//! `<prefix>{prefix}<suffix>{suffix}<middle>{typed}{line}`. While the user continues to type, over
//! many lines, everything up to the middle token stays byte for byte the same. So its KV is kept,
//! and a key costs only the tokens that it adds. The adapter acts from the current line on. If the
//! model's family reads several files, excerpts of other code stand before all of it.

mod healing;

use crate::document::Source;
use healing::healing_boundary;
use ropey::{Rope, RopeSlice};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// A window that has to move leaves out this share of the prefix at once, so that it need not move
/// again for the next lines.
const SLIDE_SHARE: usize = 3;

/// The most characters between the middle token and the current line. Beyond that the text is laid
/// out anew, so that the prefix follows the user.
pub const TYPED_CHARS: usize = 1000;

/// The most characters of the current line before the cursor, since a minified file is one line.
pub const LINE_CHARS: usize = 512;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FimPrompt {
    pub context: Option<Arc<PromptContext>>,
    /// Whole lines above those of `typed`.
    pub prefix: String,
    /// Whole lines above the cursor's line that stand behind the middle token.
    pub typed: String,
    /// The cursor's line up to a token-safe boundary.
    pub line: String,
    /// The text between that boundary and the cursor. The completion must start by reproducing it.
    pub healing: String,
    /// Everything after the cursor, up to the window's end.
    pub suffix: String,
}

/// Other code that the model reads first, with the names of the repository and the files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptContext {
    pub repository: String,
    pub excerpts: Vec<Excerpt>,
    /// The user's recent changes as diffs. They stand behind the excerpts, which change less often.
    pub changes: Vec<Excerpt>,
    /// The document's own path, below the folder that holds all of these files.
    pub path: String,
}

impl PromptContext {
    /// All excerpts in the order of the prompt.
    pub fn shown(&self) -> impl Iterator<Item = &Excerpt> {
        self.excerpts.iter().chain(&self.changes)
    }

    /// All texts that it quotes, each as it stands in its document: of a change, the lines before
    /// and the lines after it.
    pub fn texts(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let sides = self.changes.iter().flat_map(|change| {
            ['-', '+'].map(|sign| {
                let lines = change.text.lines().filter_map(move |line| line.strip_prefix(sign));
                Cow::Owned(lines.collect::<Vec<_>>().join("\n"))
            })
        });
        self.excerpts.iter().map(|excerpt| Cow::Borrowed(&*excerpt.text)).chain(sides)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The document that the excerpt is from.
    pub source: Source,
    /// The path that the model reads.
    pub path: String,
    /// Whole lines.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub prefix_chars: usize,
    pub suffix_chars: usize,
}

/// The last layout of a document. It is kept for as long as it fits.
#[derive(Debug)]
pub struct PromptLayout {
    window: Window,
    /// The start of the prefix, in characters of the document.
    start: usize,
    prefix: String,
    prefix_chars: usize,
    suffix: String,
    context: Option<Arc<PromptContext>>,
    /// The start of the prefix when the context was last chosen.
    context_for: Option<usize>,
}

impl PromptLayout {
    /// Lays out the text anew. `cursor` is in characters and must not lie past the end.
    pub fn new(text: &Rope, cursor: usize, window: Window) -> PromptLayout {
        let line_start = text.line_to_char(text.char_to_line(cursor));
        PromptLayout::from(
            text,
            cursor,
            window,
            prefix_start(text, line_start, window.prefix_chars),
        )
    }

    fn from(text: &Rope, cursor: usize, window: Window, start: usize) -> PromptLayout {
        let line_start = text.line_to_char(text.char_to_line(cursor));
        PromptLayout {
            window,
            start,
            prefix: text.slice(start..line_start).to_string(),
            prefix_chars: line_start - start,
            suffix: suffix(text, cursor, window).to_string(),
            context: None,
            context_for: None,
        }
    }

    /// The characters of the document that prompts at this cursor show.
    pub fn shows(&self, text: &Rope, cursor: usize) -> Range<usize> {
        self.start..suffix_end(text, cursor, self.window.suffix_chars)
    }

    pub fn context(&self) -> Option<&Arc<PromptContext>> {
        self.context.as_ref()
    }

    /// Returns whether another context costs nothing, because all text behind it was laid out anew
    /// since it was chosen.
    pub fn wants_context(&self) -> bool {
        self.context_for != Some(self.start)
    }

    /// Has the context chosen again for the next prompt, because there is more to choose from.
    pub fn reconsider_context(&mut self) {
        self.context_for = None;
    }

    pub fn set_context(&mut self, context: Option<Arc<PromptContext>>) {
        self.context = context;
        self.context_for = Some(self.start);
    }

    /// Returns whether the text around the cursor is still the one that was laid out, apart from
    /// lines that were typed since.
    fn fits(&self, text: &Rope, cursor: usize, window: Window) -> bool {
        let line_start = text.line_to_char(text.char_to_line(cursor));
        let split = self.start + self.prefix_chars;
        self.window == window
            && (split..=split + TYPED_CHARS).contains(&line_start)
            && suffix(text, cursor, window) == *self.suffix
            && text.slice(self.start..split) == *self.prefix
    }

    /// The prompt at a cursor: laid out as before where that fits, else anew.
    pub fn prompt(&mut self, text: &Rope, cursor: usize, window: Window) -> FimPrompt {
        let line_start = text.line_to_char(text.char_to_line(cursor));
        if !self.fits(text, cursor, window) {
            // The text behind the cursor is another one; the text before it may be the same.
            let keeps_start = self.window == window
                && self.start <= line_start
                && line_start - self.start <= window.prefix_chars
                && text.slice(self.start..).chars().zip(self.prefix.chars()).all(|(a, b)| a == b);
            let (context, context_for) = (self.context.take(), self.context_for);
            *self = if keeps_start {
                PromptLayout::from(text, cursor, window, self.start)
            } else {
                PromptLayout::new(text, cursor, window)
            };
            self.context = context;
            self.context_for = context_for.filter(|_| keeps_start);
        }
        self.laid_out(text, cursor)
    }

    /// The prompt at a cursor, if it is laid out as before. The layout stays as it is, so the text
    /// may be one that does not stand there yet.
    pub fn ahead(&self, text: &Rope, cursor: usize, window: Window) -> Option<FimPrompt> {
        self.fits(text, cursor, window).then(|| self.laid_out(text, cursor))
    }

    fn laid_out(&self, text: &Rope, cursor: usize) -> FimPrompt {
        let line_start = text.line_to_char(text.char_to_line(cursor));
        let line_from = line_start.max(cursor.saturating_sub(LINE_CHARS));
        let line = text.slice(line_from..cursor).to_string();
        let boundary = healing_boundary(&line);
        let typed = text.slice(self.start + self.prefix_chars..line_start).to_string();
        FimPrompt {
            context: self.context.clone(),
            prefix: with_lf(self.prefix.clone()),
            typed: with_lf(typed),
            healing: line[boundary..].to_owned(),
            line: line[..boundary].to_owned(),
            suffix: with_lf(self.suffix.clone()),
        }
    }
}

/// The text with `\n` for `\r\n`. Models are trained on such text, and end their lines with `\n`.
pub(crate) fn with_lf(text: String) -> String {
    if text.contains("\r\n") { text.replace("\r\n", "\n") } else { text }
}

/// The start of the prefix. It is a line's start, so that it stays in place while the user types.
fn prefix_start(text: &Rope, line_start: usize, budget: usize) -> usize {
    if line_start <= budget {
        return 0;
    }
    let earliest = line_start - (budget - budget / SLIDE_SHARE);
    let line = text.char_to_line(earliest);
    let next = text.line_to_char(line + 1);
    // A line that is longer than the window is cut.
    if next <= line_start { next } else { earliest }
}

fn suffix(text: &Rope, cursor: usize, window: Window) -> RopeSlice<'_> {
    text.slice(cursor..suffix_end(text, cursor, window.suffix_chars))
}

/// The end of the suffix. It is a line's end where the window holds one.
fn suffix_end(text: &Rope, cursor: usize, budget: usize) -> usize {
    let limit = cursor + budget;
    if limit >= text.len_chars() {
        return text.len_chars();
    }
    let whole_lines = text.line_to_char(text.char_to_line(limit));
    if whole_lines > cursor { whole_lines } else { limit }
}

#[cfg(test)]
mod tests {
    use super::healing::HEALING_BYTES;
    use super::*;

    const WINDOW: Window = Window { prefix_chars: 1500, suffix_chars: 40 };

    /// The prompt at the cursor, which `|` marks.
    fn at(marked: &str) -> FimPrompt {
        let cursor = marked.chars().position(|c| c == '|').unwrap();
        let text = Rope::from_str(&marked.replacen('|', "", 1));
        PromptLayout::new(&text, cursor, WINDOW).prompt(&text, cursor, WINDOW)
    }

    fn healed(line: &str) -> (String, String) {
        let prompt = at(line);
        (prompt.line, prompt.healing)
    }

    #[test]
    fn the_prompt_ends_before_text_that_one_token_may_span() {
        let case = |line: &str, kept: &str, healing: &str| {
            assert_eq!(healed(line), (kept.to_owned(), healing.to_owned()), "{line}");
        };
        case("let fo|", "let", " fo");
        case("    |", "", "    ");
        case("\t\tret|", "", "\t\tret");
        case("x = |", "x =", " ");
        case("self.na|", "self", ".na");
        case("foo(|", "foo", "(");
        case("use std::|", "use std", "::");
        case("use std::ti|", "use std::", "ti");
        case("let x = &|", "let x =", " &");
        case("let x = &se|", "let x = &", "se");
        case("fn f() -|", "fn f()", " -");
        case("foo_ba|", "foo", "_ba");
        case("__in|", "__", "in");
        case("|", "", "");
        case("größe|", "", "größe");
    }

    #[test]
    fn text_too_long_to_heal_stays_in_the_prompt() {
        let ruler = format!("//{}", "-".repeat(HEALING_BYTES));
        assert_eq!(healed(&format!("{ruler}|")), (ruler, String::new()));
    }

    #[test]
    fn the_parts_join_to_the_text_around_the_cursor() {
        let prompt = at("fn a() {}\nfn main() {\n    let x = fo|;\n}\n");
        assert_eq!(prompt.prefix, "fn a() {}\nfn main() {\n");
        assert_eq!(format!("{}{}", prompt.line, prompt.healing), "    let x = fo");
        assert_eq!(prompt.suffix, ";\n}\n");
    }

    #[test]
    fn typing_in_a_line_does_not_change_prefix_and_suffix() {
        let (before, after) = (at("a\nb\nlet x|\nc\n"), at("a\nb\nlet xyz = 1|\nc\n"));
        assert_eq!((before.prefix, before.suffix), (after.prefix, after.suffix));
    }

    fn numbered(lines: usize) -> String {
        (0..lines).map(|i| format!("line number {i:04} of it\n")).collect()
    }

    /// The prompt at the end of `above`, and the one that the same layout makes of `now`, where `|`
    /// marks the cursor.
    fn then(above: &str, below: &str, now: &str) -> (FimPrompt, FimPrompt) {
        let text = Rope::from_str(&format!("{above}{below}"));
        let mut layout = PromptLayout::new(&text, above.chars().count(), WINDOW);
        let first = layout.prompt(&text, above.chars().count(), WINDOW);
        let cursor = now.chars().position(|c| c == '|').unwrap();
        let text = Rope::from_str(&now.replacen('|', "", 1));
        (first, layout.prompt(&text, cursor, WINDOW))
    }

    #[test]
    fn typing_over_several_lines_does_not_change_prefix_and_suffix() {
        let (first, then) = then("a();\n", "}\n", "a();\nif b {\n    c();\n    |}\n");
        assert_eq!((&then.prefix, &then.suffix), (&first.prefix, &first.suffix));
        assert_eq!(then.typed, "if b {\n    c();\n");
        assert_eq!((then.line.as_str(), then.healing.as_str()), ("", "    "));
    }

    #[test]
    fn another_text_below_or_above_is_laid_out_anew() {
        let (_, below) = then("a\n", "z\n", "a\nf(|)z\n");
        assert_eq!((below.prefix.as_str(), below.typed.as_str()), ("a\n", ""));
        assert_eq!(below.suffix, ")z\n");
        let (_, above) = then("a\nb\n", "z\n", "a\nB\nc\n|z\n");
        assert_eq!((above.prefix.as_str(), above.typed.as_str()), ("a\nB\nc\n", ""));
        let (_, earlier) = then("a\nb\n", "z\n", "a|\nb\nz\n");
        assert_eq!((earlier.prefix.as_str(), earlier.suffix.as_str()), ("", "\nb\nz\n"));
    }

    #[test]
    fn the_window_follows_the_user_in_large_steps() {
        let text = |lines: usize| Rope::from_str(&numbered(lines));
        let mut layout = PromptLayout::new(&text(200), text(200).len_chars(), WINDOW);
        let mut starts = vec![];
        for lines in 200..300 {
            let text = text(lines);
            let prompt = layout.prompt(&text, text.len_chars(), WINDOW);
            assert!(prompt.prefix.chars().count() <= WINDOW.prefix_chars);
            assert!(prompt.typed.chars().count() <= TYPED_CHARS);
            let seen = format!("{}{}{}", prompt.prefix, prompt.typed, prompt.healing);
            assert!(text.to_string().ends_with(&seen));
            assert!(seen.len() > WINDOW.prefix_chars / 2, "{lines}: {}", seen.len());
            starts.push(layout.start);
        }
        starts.dedup();
        assert!(starts.len() <= 3, "{starts:?}");
    }

    #[test]
    fn the_context_stays_while_the_prefix_begins_where_it_did() {
        let text = |lines: usize| Rope::from_str(&numbered(lines));
        let end = |text: &Rope| text.len_chars();
        let mut layout = PromptLayout::new(&text(30), end(&text(30)), WINDOW);
        assert!(layout.wants_context());
        let context = Arc::new(PromptContext { path: "a.rs".into(), ..PromptContext::default() });
        layout.set_context(Some(context.clone()));
        let further = layout.prompt(&text(40), end(&text(40)), WINDOW);
        assert_eq!(further.context, Some(context.clone()));
        assert!(!layout.wants_context());
        let far = layout.prompt(&text(400), end(&text(400)), WINDOW);
        assert_eq!(far.context, Some(context), "until another is chosen");
        assert!(layout.wants_context());
    }

    #[test]
    fn the_model_reads_a_file_with_crlf_as_one_with_lf() {
        let crlf = at("a();\r\nb();\r\nlet c|\r\nd();\r\n");
        let lf = at("a();\nb();\nlet c|\nd();\n");
        assert_eq!(crlf, lf);
    }

    #[test]
    fn a_minified_file_is_cut_and_not_copied_whole() {
        let text = Rope::from_str(&"x=1;".repeat(500_000));
        let prompt = PromptLayout::new(&text, 1_000_000, WINDOW).prompt(&text, 1_000_000, WINDOW);
        assert!(prompt.line.chars().count() <= LINE_CHARS);
        assert_eq!(prompt.prefix, "");
        assert_eq!(prompt.suffix.chars().count(), WINDOW.suffix_chars);
    }
}
