//! The tables of ARCHITECTURE.md that say who may import whom. They stand between two
//! comments, so that the page and the check cannot part.

use anyhow::{Context, Result, bail, ensure};

pub const PAGE: &str = "ARCHITECTURE.md";
const BEGIN: &str = "<!-- layers -->";
const END: &str = "<!-- /layers -->";

/// All that the section says.
#[derive(Debug, Default)]
pub struct Rules {
    /// The package whose modules stand on floors.
    pub binary: String,
    /// From top to bottom.
    pub floors: Vec<Floor>,
    pub crates: Vec<CrateRule>,
    pub bans: Vec<Ban>,
    pub exceptions: Vec<Exception>,
}

/// A row of the first table. One that begins with `beside` is on the floor of the row above.
#[derive(Debug)]
pub struct Floor {
    /// Top-level modules that stand side by side.
    pub folders: Vec<String>,
    /// Crates of the workspace that they may import.
    pub crates: Vec<String>,
    /// External crates that only they may name.
    pub alone: Vec<String>,
    /// 0 is the top. Rows that stand beside each other have one.
    pub level: usize,
    pub line: usize,
}

/// A row of the second table.
#[derive(Debug)]
pub struct CrateRule {
    pub name: String,
    /// Crates of the workspace.
    pub may_depend_on: Vec<String>,
    /// External crates that must not be among its dependencies' dependencies either.
    pub never_links: Vec<String>,
    pub line: usize,
}

/// A row of the third table: within a floor too, the first never import the second.
#[derive(Debug)]
pub struct Ban {
    pub modules: Vec<String>,
    pub never: Vec<String>,
}

/// `` - `path/of/file.rs` -> `module`: reason ``, an import that is allowed for now.
#[derive(Debug)]
pub struct Exception {
    pub file: String,
    pub to: String,
    pub line: usize,
}

pub fn parse(page: &str) -> Result<Rules> {
    let mut rules = Rules::default();
    let mut kind = Kind::None;
    for (line, text) in section(page)? {
        let place = || format!("{PAGE}:{line}");
        if let Some(row) = text.strip_prefix('|') {
            let cells: Vec<&str> = row.trim_end_matches('|').split('|').map(str::trim).collect();
            if kind == Kind::None {
                kind = rules.header(cells[0]).with_context(place)?;
            } else if !cells[0].starts_with("--") {
                rules.row(kind, &cells, line).with_context(place)?;
            }
            continue;
        }
        kind = Kind::None;
        if let Some(item) = text.strip_prefix("- ") {
            let names = names(item);
            let [file, to] = &names[..] else {
                bail!("{}: an exception is written - `file.rs` -> `module`: reason", place());
            };
            rules.exceptions.push(Exception { file: file.clone(), to: to.clone(), line });
        }
    }
    ensure!(!rules.floors.is_empty(), "{PAGE}: the table of floors is missing or empty");
    ensure!(!rules.crates.is_empty(), "{PAGE}: the table of crates is missing or empty");
    Ok(rules)
}

/// The lines between the two comments, with their numbers from 1.
fn section(page: &str) -> Result<Vec<(usize, &str)>> {
    let lines: Vec<_> = page.lines().enumerate().map(|(at, line)| (at + 1, line.trim())).collect();
    let place = |comment: &str| {
        let at = lines.iter().position(|(_, line)| *line == comment);
        at.with_context(|| format!("{PAGE} has no line `{comment}`"))
    };
    let (begin, end) = (place(BEGIN)?, place(END)?);
    ensure!(begin < end, "{PAGE}: `{END}` stands before `{BEGIN}`");
    Ok(lines[begin + 1..end].to_vec())
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    None,
    Floors,
    Crates,
    Bans,
}

impl Rules {
    fn header(&mut self, cell: &str) -> Result<Kind> {
        match cell.split_whitespace().next() {
            Some("floor") => {
                let binary = names(cell).pop();
                self.binary = binary.context("the header names no package: floor of `name`")?;
                Ok(Kind::Floors)
            }
            Some("crate") => Ok(Kind::Crates),
            Some("module") => Ok(Kind::Bans),
            _ => bail!("a table here begins with `floor of …`, `crate` or `module`, not {cell:?}"),
        }
    }

    fn row(&mut self, kind: Kind, cells: &[&str], line: usize) -> Result<()> {
        let cell = |at: usize| {
            let cell = cells.get(at).with_context(|| format!("column {} is missing", at + 1))?;
            anyhow::Ok(names(cell))
        };
        match kind {
            Kind::Floors => {
                let above = self.floors.last().map(|floor| floor.level);
                let is_beside = cells[0].starts_with("beside");
                let level = above.map_or(0, |level| level + usize::from(!is_beside));
                let (folders, crates, alone) = (cell(0)?, cell(1)?, cell(2)?);
                self.floors.push(Floor { folders, crates, alone, level, line });
            }
            Kind::Crates => self.crates.push(CrateRule {
                name: cell(0)?.pop().context("the row names no crate")?,
                may_depend_on: cell(1)?,
                never_links: cell(2)?,
                line,
            }),
            Kind::Bans => self.bans.push(Ban { modules: cell(0)?, never: cell(1)? }),
            Kind::None => {}
        }
        Ok(())
    }
}

/// What stands between backticks.
fn names(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE_OF_TWO: &str = "\
# Architecture
| not | ours |
<!-- layers -->
Words, and `names` in them.

| floor of `app` | crates | alone |
|---|---|---|
| `cli` | `lib` | `web` |
| `left`, `right` | | |
| beside them: `middle` | `lib` | |

| crate | may depend on | never links |
|---|---|---|
| `lib` | nothing | `web`, `zip` |

| module | never imports |
|---|---|
| `left::client` | `left::server` |

- `app/src/cli.rs` -> `left::server`: until it is cut
<!-- /layers -->
";

    #[test]
    fn tables_and_exceptions_are_read_from_between_the_comments() {
        let rules = parse(PAGE_OF_TWO).unwrap();
        assert_eq!(rules.binary, "app");
        let floors: Vec<_> = rules.floors.iter().map(|floor| floor.folders.join(" ")).collect();
        assert_eq!(floors, ["cli", "left right", "middle"]);
        let levels: Vec<_> = rules.floors.iter().map(|floor| floor.level).collect();
        assert_eq!(levels, [0, 1, 1]);
        assert_eq!(
            (&rules.floors[0].crates[0], &rules.floors[0].alone[0]),
            (&"lib".into(), &"web".into())
        );
        assert_eq!(rules.crates[0].never_links, ["web", "zip"]);
        assert_eq!(rules.bans[0].never, ["left::server"]);
        assert_eq!(
            (rules.exceptions[0].to.as_str(), rules.exceptions[0].line),
            ("left::server", 20)
        );
    }

    #[test]
    fn a_section_that_cannot_be_read_is_named_by_its_line() {
        let error = |page: &str| format!("{:#}", parse(page).unwrap_err());
        assert!(error("# Architecture\n").contains("`<!-- layers -->`"));
        let short = PAGE_OF_TWO.replace("| `lib` | nothing | `web`, `zip` |", "| `lib` |");
        assert_eq!(error(&short), "ARCHITECTURE.md:14: column 2 is missing");
        let unknown = PAGE_OF_TWO.replace("| module |", "| thing |");
        assert!(error(&unknown).starts_with("ARCHITECTURE.md:16: a table here begins with"));
        let half = PAGE_OF_TWO.replace(" -> `left::server`: until", ": until");
        assert!(error(&half).starts_with("ARCHITECTURE.md:20: an exception is written"));
    }
}
