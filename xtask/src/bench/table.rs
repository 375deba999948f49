//! A table of what was measured.

use serde_json::Value;
use std::fmt::{Display, Formatter, Result};

/// Rows of cells. The first column is aligned to the left and the others to the right.
pub struct Table(Vec<Vec<String>>);

impl Table {
    pub fn new<'a>(heads: impl IntoIterator<Item = &'a str>) -> Table {
        Table(vec![heads.into_iter().map(str::to_owned).collect()])
    }

    /// Adds a row with numbers of a JSON object, each by its key and with this many digits behind
    /// the point. The cell of a number that is missing is empty.
    pub fn numbers(&mut self, label: &str, of: &Value, keys: &[(&str, usize)]) {
        let number = |(key, digits): &(&str, usize)| {
            of[key].as_f64().map_or(String::new(), |number| format!("{number:.digits$}"))
        };
        self.row(label, keys.iter().map(number));
    }

    pub fn row(&mut self, label: &str, cells: impl IntoIterator<Item = String>) {
        self.0.push(std::iter::once(label.to_owned()).chain(cells).collect());
    }
}

impl Display for Table {
    fn fmt(&self, out: &mut Formatter) -> Result {
        let width = |column: usize| {
            let cells = self.0.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let line = |row: &Vec<String>| {
            let cells =
                row.iter().enumerate().map(|(column, cell)| match (column, width(column)) {
                    (0, width) => format!("{cell:<width$}"),
                    (_, width) => format!("{cell:>width$}"),
                });
            format!("  {}", cells.collect::<Vec<_>>().join("  ").trim_end())
        };
        out.write_str(&self.0.iter().map(line).collect::<Vec<_>>().join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["", "p50 ms", "n"]);
        table.numbers("alone", &json!({ "p50": 1.25, "n": 1000 }), &[("p50", 1), ("n", 0)]);
        table.numbers("→", &json!({ "p50": 20 }), &[("p50", 1), ("n", 0)]);
        let lines = "         p50 ms     n\n  alone     1.2  1000\n  →        20.0";
        assert_eq!(table.to_string(), lines);
    }
}
