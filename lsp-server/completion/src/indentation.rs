//! The indentation of an offer in a text that has none so far. Models then write what they saw
//! most, and the editor may be set to something else.

use ropey::Rope;

/// The most lines of a text that are searched for an indented one.
const LINES: usize = 2_000;

/// The widths of indentation that models write with blanks.
const WIDTHS: &[usize] = &[2, 4, 8];

/// The widest level that an editor may name, in blanks.
const WIDTH_MAX: usize = 16;

/// One level of indentation, as an editor is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indentation(String);

impl Indentation {
    /// Returns the level of an editor that inserts blanks or tabs; nothing if no editor has it.
    pub fn of(tab_size: usize, inserts_spaces: bool) -> Option<Indentation> {
        match inserts_spaces {
            false => Some(Indentation::tabs()),
            true => (1..=WIDTH_MAX).contains(&tab_size).then(|| Indentation(" ".repeat(tab_size))),
        }
    }

    pub fn tabs() -> Indentation {
        Indentation("\t".into())
    }

    /// Indents the lines of an offer by this, level by level. `line_before` is the line before it.
    pub fn indent(&self, offer: &str, line_before: &str) -> String {
        let base = if line_before.trim().is_empty() { line_before } else { "" };
        // The first line is indented by the offer only if nothing stands before it.
        let skipped = if line_before.is_empty() { 0 } else { 1 };
        let lines = || offer.split('\n').enumerate();
        let leads =
            lines().skip(skipped).map(|(_, line)| lead(line.strip_prefix(base).unwrap_or(line)));
        let width =
            leads.filter(|lead| !lead.is_empty() && !lead.contains('\t')).map(str::len).min();
        let width = width.filter(|width| WIDTHS.contains(width));
        let indent = |(number, line): (usize, &str)| {
            if number < skipped {
                return line.to_owned();
            }
            let (base, own) = line.strip_prefix(base).map_or(("", line), |own| (base, own));
            let lead = lead(own);
            let levels = match width {
                _ if lead.chars().all(|c| c == '\t') => lead.len(),
                Some(width) if lead.chars().all(|c| c == ' ') => lead.len() / width,
                _ => return line.to_owned(),
            };
            let rest =
                if lead.contains('\t') { 0 } else { width.map_or(0, |width| lead.len() % width) };
            let (level, blanks) = (self.0.repeat(levels), " ".repeat(rest));
            format!("{base}{level}{blanks}{}", &own[lead.len()..])
        };
        lines().map(indent).collect::<Vec<_>>().join("\n")
    }
}

fn lead(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Returns true if a line of this text says how lines are indented.
pub fn is_indented(text: &Rope) -> bool {
    indents(text).next().is_some()
}

/// Returns true if lines of this text say that lines are indented by tabs, and none says otherwise.
/// A model may indent by blanks there all the same, as other code in its prompt does.
pub fn is_tabbed(text: &Rope) -> bool {
    is_indented(text) && indents(text).all(|indent| indent == '\t')
}

/// Returns the first character of each line that says how lines are indented. Those of a comment
/// that begin with a star do not.
fn indents(text: &Rope) -> impl Iterator<Item = char> {
    text.lines().take(LINES).filter_map(|line| {
        let indent = line.chars().next().filter(|first| matches!(first, ' ' | '\t'))?;
        let first = line.chars().find(|c| !c.is_whitespace())?;
        (first != '*').then_some(indent)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(tab_size: usize, inserts_spaces: bool, offer: &str, line_before: &str) -> String {
        Indentation::of(tab_size, inserts_spaces).unwrap().indent(offer, line_before)
    }

    #[test]
    fn a_text_is_tabbed_if_no_line_is_indented_otherwise() {
        for (text, tabbed) in [
            ("if a {\n\tb();\n}\n", true),
            ("/**\n * A comment.\n */\nif a {\n\tb();\n}\n", true),
            ("if a {\n\tb();\n  c();\n}\n", false),
            ("if a {\n  b();\n}\n", false),
            ("a\n\n", false),
        ] {
            assert_eq!(is_tabbed(&Rope::from_str(text)), tabbed, "{text:?}");
        }
        assert_eq!(
            Indentation::tabs().indent("\tb();\n\t\tc();", ""),
            "\tb();\n\t\tc();",
            "what is right stays"
        );
    }

    #[test]
    fn each_level_is_indented_as_the_editor_is_set() {
        let offer = "    if a:\n        return b\n    return c";
        assert_eq!(with(4, false, offer, ""), "\tif a:\n\t\treturn b\n\treturn c");
        assert_eq!(with(2, true, offer, ""), "  if a:\n    return b\n  return c");
        assert_eq!(with(4, true, offer, ""), offer);
        assert_eq!(with(3, true, "\ta\n\t\tb", ""), "   a\n      b");
        assert_eq!(with(4, false, "{\n  a\n}", "f() "), "{\n\ta\n}");
        assert_eq!(
            with(4, false, "a:\n        b", "    "),
            "a:\n    \tb".replace("        b", "b")
        );
    }

    #[test]
    fn what_is_no_indentation_stays() {
        assert_eq!(with(2, true, " * It is.", ""), " * It is.");
        assert_eq!(with(2, true, "    tail", "x ="), "    tail", "it is within a line");
        assert_eq!(with(2, true, "a\nb", ""), "a\nb");
        assert_eq!(Indentation::of(0, true), None);
        assert_eq!(Indentation::of(99, true), None);
    }

    #[test]
    fn a_text_is_indented_if_a_line_with_text_is() {
        let indented = |text: &str| is_indented(&Rope::from_str(text));
        assert!(indented("a\n\tb\n") && indented("a:\n  b"));
        assert!(!indented("a\n\n    \nb\n") && !indented("/**\n * a\n */\n"));
    }
}
