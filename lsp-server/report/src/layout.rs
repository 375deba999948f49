//! Text in the width of a terminal: paragraphs, fields and tables. Words wrap and are never cut, no
//! line ends with blanks, and without a terminal nothing wraps.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use textwrap::core::display_width;
use textwrap::{Options, WordSplitter, wrap};

/// The columns between a field's name and its text, and between the columns of a table.
const GAP: u16 = 2;

/// A text next to names keeps this width, however narrow the terminal is.
const TEXT_MIN: usize = 20;

/// The columns of a table that always stay: what a row is about.
const COLUMNS_MIN: usize = 2;

/// How wide lines may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    width: Option<usize>,
}

/// A column of a table, with its heading.
#[derive(Debug, Clone, Copy)]
pub enum Column {
    Text(&'static str),
    Number(&'static str),
}

impl Column {
    fn heading(self) -> &'static str {
        match self {
            Column::Text(heading) | Column::Number(heading) => heading,
        }
    }
}

impl Layout {
    /// Lines as long as they are, for a file or a program.
    pub const UNLIMITED: Layout = Layout { width: None };

    pub fn of_width(width: usize) -> Layout {
        Layout { width: Some(width.max(TEXT_MIN)) }
    }

    pub fn at_most(self, width: usize) -> Layout {
        Layout::of_width(self.width.map_or(width, |own| own.min(width)))
    }

    /// Wraps lines that are too long. Where a line is indented, the lines made of it are too.
    pub fn wrapped(self, text: &str) -> String {
        let lines = text.lines().flat_map(|line| {
            let indent = &line[..line.len() - line.trim_start().len()];
            self.lines(line.trim_start(), indent, indent)
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Names, and a text next to each.
    pub fn fields<'a, T: AsRef<str>>(
        self,
        fields: impl IntoIterator<Item = (&'a str, T)>,
    ) -> String {
        let fields: Vec<_> = fields.into_iter().collect();
        let names = fields.iter().map(|(name, _)| display_width(name)).max().unwrap_or(0);
        let indent = " ".repeat(names + usize::from(GAP));
        let mut lines = vec![];
        for (name, text) in &fields {
            let padding = indent.len() - display_width(name);
            let mut first = format!("{name}{}", " ".repeat(padding));
            for line in text.as_ref().lines() {
                lines.extend(self.lines(line, &first, &indent));
                first.clone_from(&indent);
            }
        }
        lines.join("\n")
    }

    /// A table. Its last columns are left out where they do not fit, and a line below it says so.
    /// The first columns wrap if even they are too wide.
    pub fn table(self, columns: &[Column], rows: &[Vec<String>]) -> String {
        let fits = |text: &String| {
            self.width.is_none_or(|width| text.lines().all(|line| display_width(line) <= width))
        };
        let fewest = COLUMNS_MIN.min(columns.len());
        let shown = (fewest..=columns.len()).rev().find_map(|count| {
            let text = grid(&columns[..count], rows, None);
            fits(&text).then_some((count, text))
        });
        let (count, text) =
            shown.unwrap_or_else(|| (fewest, grid(&columns[..fewest], rows, self.width)));
        let left_out: Vec<_> = columns[count..].iter().map(|column| column.heading()).collect();
        match &*left_out {
            [] => text,
            names => {
                let note = format!("{}: in a wider window, and by --json", names.join(", "));
                format!("{text}\n{}", self.wrapped(&note))
            }
        }
    }

    fn lines(self, text: &str, first: &str, indent: &str) -> Vec<String> {
        let Some(width) = self.width else {
            return vec![format!("{first}{text}").trim_end().to_owned()];
        };
        // What is not words, such as a path, stays whole, so that it can be copied.
        let options = Options::new(width.max(display_width(indent) + TEXT_MIN))
            .initial_indent(first)
            .subsequent_indent(indent)
            .break_words(false)
            .word_splitter(WordSplitter::NoHyphenation);
        wrap(text, options).iter().map(|line| line.trim_end().to_owned()).collect()
    }
}

fn grid(columns: &[Column], rows: &[Vec<String>], width: Option<usize>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(columns.iter().map(|column| column.heading()));
    table.add_rows(rows.iter().map(|row| &row[..columns.len()]));
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(width.try_into().unwrap_or(u16::MAX));
    }
    for (column, known) in table.column_iter_mut().zip(columns) {
        column.set_padding((0, GAP));
        if let Column::Number(_) = known {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{WIDTHS, assert_fits};

    fn rows() -> Vec<Vec<String>> {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        vec![
            row(["→", "qwen2.5-coder-0.5b", "469 MiB", "Apache-2.0"]),
            row(["", "starcoder", "12 GiB", "a licence of many words that nobody reads"]),
        ]
    }

    const COLUMNS: [Column; 4] =
        [Column::Text(""), Column::Text("name"), Column::Number("size"), Column::Text("licence")];

    #[test]
    fn the_last_columns_of_a_table_go_first_and_are_named() {
        let endless = Layout::UNLIMITED.table(&COLUMNS, &rows());
        assert!(endless.contains("many words that nobody reads"), "{endless}");
        let narrow = Layout::of_width(40).table(&COLUMNS, &rows());
        assert_eq!(
            narrow,
            "   name                   size\n\
             →  qwen2.5-coder-0.5b  469 MiB\n\
             \x20  starcoder            12 GiB\n\
             licence: in a wider window, and by\n--json"
        );
        for width in WIDTHS {
            assert_fits(&Layout::of_width(width).table(&COLUMNS, &rows()), Some(width));
        }
        assert_fits(&endless, None);
    }

    #[test]
    fn a_table_whose_first_columns_are_too_wide_wraps() {
        let rows = vec![vec!["a feature that has a long name".to_owned(), "+0.25".to_owned()]];
        let columns = [Column::Text("feature"), Column::Number("weight")];
        let text = Layout::of_width(24).table(&columns, &rows);
        assert_fits(&text, Some(24));
        assert!(text.contains("+0.25") && text.lines().count() > 2, "{text}");
    }

    #[test]
    fn a_text_wraps_next_to_its_name_and_a_path_stays_whole() {
        let path = "/a/path/that/is/longer/than/the/line/may/be/here";
        let fields = [("offers", "seven of them were accepted today"), ("files", path)];
        assert_eq!(
            Layout::of_width(30).fields(fields),
            format!("offers  seven of them were\n        accepted today\nfiles   {path}")
        );
        let piped = Layout::UNLIMITED.fields(fields);
        assert_eq!(piped.lines().count(), 2, "{piped}");
    }

    #[test]
    fn an_indented_line_wraps_with_its_indent() {
        let text = "one two three four five\n  six seven eight nine ten";
        assert_eq!(
            Layout::of_width(22).wrapped(text),
            "one two three four\nfive\n  six seven eight nine\n  ten"
        );
        assert_eq!(Layout::UNLIMITED.wrapped("a  \n\nb"), "a\n\nb");
    }
}
