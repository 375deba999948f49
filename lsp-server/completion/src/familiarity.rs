//! How familiar an offer is: whether the code around it knows its names, and whether the same line
//! stands elsewhere. A name that stands nowhere is often made up.

use ropey::Rope;

/// The text on each side of the cursor that is searched, in bytes.
pub const AROUND_BYTES_MAX: usize = 32 * 1024;

/// The names of an offer that are looked up.
pub const NAMES_MAX: usize = 16;

/// A shorter name is known everywhere.
const NAME_CHARS_MIN: usize = 3;

/// A shorter line stands everywhere.
const LINE_CHARS_MIN: usize = 8;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Familiarity {
    /// The different names of the offer, keywords among them.
    pub names: u32,
    /// Those that stand nowhere in the code around.
    pub unknown: u32,
    /// The line, as it would be with the offer, stands elsewhere too.
    pub line_stands_elsewhere: bool,
}

/// The code that an offer is compared with: what stands around the cursor, and what the prompt
/// quoted from elsewhere.
pub struct CodeAround {
    texts: Vec<String>,
}

impl CodeAround {
    /// `cursor` counts characters.
    pub fn of<'a>(text: &Rope, cursor: usize, quoted: impl Iterator<Item = &'a str>) -> CodeAround {
        let at = text.char_to_byte(cursor);
        let from = text.byte_to_char(at.saturating_sub(AROUND_BYTES_MAX));
        let to = text.byte_to_char((at + AROUND_BYTES_MAX).min(text.len_bytes()));
        let own = [text.slice(from..cursor).to_string(), text.slice(cursor..to).to_string()];
        CodeAround { texts: own.into_iter().chain(quoted.map(str::to_owned)).collect() }
    }

    /// How familiar the first line of an offer is between the parts of its line.
    pub fn familiarity(&self, before: &str, offered: &str, after: &str) -> Familiarity {
        let offered = offered.lines().next().unwrap_or_default();
        let names = names(before, offered);
        let unknown = names.iter().filter(|name| !self.knows(name)).count();
        Familiarity {
            names: names.len() as u32,
            unknown: unknown as u32,
            line_stands_elsewhere: self.has_line(&format!("{before}{offered}{after}")),
        }
    }

    fn knows(&self, name: &str) -> bool {
        self.texts.iter().any(|text| {
            memchr::memmem::find_iter(text.as_bytes(), name).any(|start| {
                let (before, behind) = (&text[..start], &text[start + name.len()..]);
                !before.ends_with(is_of_name) && !behind.starts_with(is_of_name)
            })
        })
    }

    fn has_line(&self, line: &str) -> bool {
        let line = line.trim();
        if line.chars().count() < LINE_CHARS_MIN {
            return false;
        }
        let is_blank = |c: char| c.is_whitespace() && c != '\n';
        self.texts.iter().any(|text| {
            memchr::memmem::find_iter(text.as_bytes(), line).any(|start| {
                let before = text[..start].trim_end_matches(is_blank);
                let behind = text[start + line.len()..].trim_start_matches(is_blank);
                let begins = before.is_empty() || before.ends_with('\n');
                begins && (behind.is_empty() || behind.starts_with('\n'))
            })
        })
    }
}

/// The names of a text, each once, the first one whole even if it begins before the text.
fn names(before: &str, text: &str) -> Vec<String> {
    let begun = before.rsplit(|c| !is_of_name(c)).next().unwrap_or_default();
    let begun = if text.starts_with(is_of_name) { begun } else { "" };
    let whole = format!("{begun}{text}");
    let mut names: Vec<String> = vec![];
    for name in whole.split(|c| !is_of_name(c)) {
        let is_name = !name.starts_with(|c: char| c.is_numeric());
        let is_new = !names.iter().any(|known| known == name);
        if is_name && is_new && name.chars().count() >= NAME_CHARS_MIN && names.len() < NAMES_MAX {
            names.push(name.to_owned());
        }
    }
    names
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn familiarity(before: &str, offered: &str, behind: &str, quoted: &[&str]) -> Familiarity {
        let text = Rope::from(format!("{before}{behind}"));
        let around = CodeAround::of(&text, before.chars().count(), quoted.iter().copied());
        let line_before = before.rsplit('\n').next().unwrap();
        let rest = behind.split('\n').next().unwrap();
        around.familiarity(line_before, offered, rest)
    }

    fn of(names: u32, unknown: u32, line_stands_elsewhere: bool) -> Familiarity {
        Familiarity { names, unknown, line_stands_elsewhere }
    }

    #[test]
    fn a_name_is_known_if_it_stands_whole_in_the_code_around() {
        let before = "let größe = load(path);\nlet other = ";
        assert_eq!(familiarity(before, "load(größe)", "\n", &[]), of(2, 0, false));
        assert_eq!(familiarity(before, "loader(path)", "\n", &[]), of(2, 1, false));
        assert_eq!(familiarity(before, "loader(path)", "\n// loader\n", &[]), of(2, 0, false));
        assert_eq!(familiarity(before, "loa(path)", "\n", &[]), of(2, 1, false));
        assert_eq!(familiarity(before, "loader(path)", "\n", &["fn loader()"]), of(2, 0, false));
    }

    #[test]
    fn a_name_that_is_begun_counts_as_a_whole() {
        assert_eq!(familiarity("fetch_all();\nfet", "ch_all()", "\n", &[]), of(1, 0, false));
        assert_eq!(familiarity("fetch_all();\nfet", "ch_one()", "\n", &[]), of(1, 1, false));
        assert_eq!(familiarity("let x = fetch", "(x, 12, 0x3f)", "\n", &[]), of(0, 0, false));
    }

    #[test]
    fn a_line_stands_elsewhere_if_all_of_it_does() {
        let before = "  close(file);\n\tclo";
        assert_eq!(familiarity(before, "se(file);", "\n", &[]), of(2, 0, true));
        assert_eq!(familiarity(before, "se(file)", "\n", &[]), of(2, 0, false));
        assert_eq!(familiarity(before, "se(file)", ";\n", &[]), of(2, 0, true));
        assert_eq!(familiarity("}\n", "}", "\n", &[]), of(0, 0, false));
        assert_eq!(familiarity("x", "y = compute()", "", &["xy = compute()\n"]), of(1, 0, true));
    }

    #[test]
    fn any_text_has_a_bounded_familiarity() {
        let long = "ä_b ".repeat(40_000);
        let seen = familiarity(&long, &long, &long, &[&long]);
        assert!(seen.names <= NAMES_MAX as u32 && seen.unknown == 0, "{seen:?}");
        let many: String = (0..100).map(|i| format!("name{i} ")).collect();
        assert_eq!(familiarity("", &many, "", &[]).names, NAMES_MAX as u32);
        assert_eq!(familiarity("", "", "", &[]), Familiarity::default());
    }
}
