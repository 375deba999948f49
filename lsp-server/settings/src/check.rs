//! What is wrong with a settings file, line by line, in words for a person.
//!
//! serde decides whether a value has the right type, and the schema whether it is in its range.
//! This module asks them about one value at a time, so that each mistake has its own line and
//! the right values count all the same.

use super::patterns::NoPattern;
use super::{Config, expected, names, parse_file, schema};
use feedback::schema::{SchemaError, field};
use serde::Deserialize;
use serde_json::Value as Schema;
use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, Error};

/// The longest part of a wrong value that a message repeats, in characters.
const SHOWN_CHARS: usize = 40;

/// A mistake in a settings file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The setting, by its name of today; empty if the line cannot be read.
    pub key: String,
    /// `None` if the whole file cannot be read.
    pub line: Option<usize>,
    /// What is wrong and what would be right. It repeats nothing that the file holds but names.
    pub what: String,
    /// The value as it stands in the file, if that is what is wrong.
    pub value: Option<String>,
}

impl Problem {
    /// The problem of a whole file.
    pub fn of_file(what: String) -> Problem {
        Problem { key: String::new(), line: None, what, value: None }
    }

    /// The problem with the place where it is.
    pub fn at(&self, path: &Path) -> String {
        match self.line {
            Some(line) => format!("{}:{line}: {self}", path.display()),
            None => format!("{}: {self}", path.display()),
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}; it is {value}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// The settings that are right, and what is wrong with the others, which have their defaults.
pub fn check(text: &str) -> (Config, Vec<Problem>) {
    if let Ok(config) = parse_file(text) {
        return (config, vec![]);
    }
    let (mut file, errors) = DeTable::parse_recoverable(text);
    let mut found = Found { text, problems: vec![] };
    found.unreadable(&errors);
    drop_lines(file.get_mut(), text, &found.problems);
    found.below("", &schema(), file.get_mut());
    let mut problems = found.problems;
    let config = Config::deserialize(Deserializer::from(file)).unwrap_or_default();
    if problems.is_empty() {
        // Each value is right by itself, so the file as a whole should be.
        let what = "the file cannot be read; remove it, and Hone uses its defaults";
        problems.push(Problem::of_file(what.into()));
    }
    problems.sort_by_key(|problem| problem.line);
    (config, problems)
}

struct Found<'t> {
    text: &'t str,
    problems: Vec<Problem>,
}

impl Found<'_> {
    /// The lines that are no TOML; each is reported once.
    fn unreadable(&mut self, errors: &[Error]) {
        for error in errors {
            // What is never closed is noticed behind the last line.
            let at = error.span().map_or(0, |span| span.start).min(self.text.trim_end().len());
            let line = Some(line_of(self.text, at));
            if self.problems.iter().any(|problem| problem.line == line) {
                continue;
            }
            let what = if error.message().contains("duplicate key") {
                "this name is there twice; remove one of the two lines"
            } else {
                "this line cannot be read; a setting is written as `name = value`, a text stands \
                 in quotes, and the name of a table in brackets, such as `[completion]`"
            };
            let problem = Problem { key: String::new(), line, what: what.into(), value: None };
            self.problems.push(problem);
        }
    }

    /// Checks everything in a table, and takes out what is wrong.
    fn below(&mut self, key: &str, schema: &Schema, table: &mut DeTable) {
        let mut wrong = vec![];
        for (name, value) in table.iter_mut() {
            let below = if key.is_empty() { name.to_string() } else { format!("{key}.{name}") };
            if !self.is_right(&below, schema, name, value) {
                wrong.push(name.get_ref().clone().into_owned());
            }
        }
        for name in wrong {
            table.remove(name.as_str());
        }
    }

    fn is_right(
        &mut self,
        key: &str,
        table: &Schema,
        name: &Spanned<Cow<str>>,
        value: &mut Spanned<DeValue>,
    ) -> bool {
        let Some(known) = field(table, name.get_ref()) else {
            self.note(key, name.span(), expected::unknown(key), None);
            return false;
        };
        match value.get_mut() {
            DeValue::Table(below) if expected::is_table(known) => {
                self.below(key, known, below);
                true
            }
            one => match judge(key, one.clone()) {
                Ok(()) => true,
                Err(Wrong { what, part }) => {
                    let shown = (!one.is_table()).then(|| self.shown(value.span()));
                    self.note(key, value.span(), what, part.or(shown));
                    false
                }
            },
        }
    }

    fn note(&mut self, key: &str, span: Range<usize>, what: String, value: Option<String>) {
        let line = Some(line_of(self.text, span.start));
        self.problems.push(Problem { key: key.to_owned(), line, what, value });
    }

    /// The value as it stands in the file, on one line.
    fn shown(&self, span: Range<usize>) -> String {
        let value = self.text.get(span).unwrap_or_default();
        let line: String = value.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(SHOWN_CHARS) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        }
    }
}

/// Why a value is refused.
#[derive(Debug)]
pub struct Wrong {
    pub what: String,
    /// The part of the value that is wrong, if a part is.
    pub part: Option<String>,
}

impl From<String> for Wrong {
    fn from(what: String) -> Wrong {
        Wrong { what, part: None }
    }
}

/// Returns whether a setting may have a value, and if not, what it may have.
fn judge(key: &str, value: DeValue) -> Result<(), Wrong> {
    let wrong = || Wrong::from(expected::wrong(key));
    let mut nested = value;
    for name in names(key).into_iter().rev() {
        let mut table = DeTable::new();
        table.insert(Spanned::new(0..0, name.to_owned().into()), Spanned::new(0..0, nested));
        nested = DeValue::Table(table);
    }
    let DeValue::Table(file) = nested else { return Err(wrong()) };
    let config = Config::deserialize(Deserializer::from(Spanned::new(0..0, file)));
    let config = config.map_err(|_| wrong())?;
    match feedback::schema::check(&config) {
        Err(error @ SchemaError::OutOfRange { .. }) => return Err(error.to_string().into()),
        Err(SchemaError::Json(_)) => return Err(wrong()),
        Ok(()) => {}
    }
    config.check_patterns().map_err(|(key, NoPattern(line))| Wrong {
        what: format!(
            "{key} has a line that is no pattern of a .gitignore, such as \"*.sql\" or \"notes/\""
        ),
        part: Some(format!("{line:?}")),
    })
}

/// Takes out what stands on lines that cannot be read. A value may have been guessed there.
fn drop_lines(table: &mut DeTable, text: &str, unreadable: &[Problem]) {
    if unreadable.is_empty() {
        return;
    }
    let is_unreadable = |span: Range<usize>| {
        let (first, last) = (line_of(text, span.start), line_of(text, span.end));
        unreadable.iter().filter_map(|one| one.line).any(|line| (first..=last).contains(&line))
    };
    let mut guessed = vec![];
    for (name, value) in table.iter_mut() {
        let span = value.span();
        match value.get_mut() {
            DeValue::Table(below) => drop_lines(below, text, unreadable),
            _ if is_unreadable(name.span()) || is_unreadable(span) => {
                guessed.push(name.get_ref().clone().into_owned());
            }
            _ => {}
        }
    }
    for name in guessed {
        table.remove(name.as_str());
    }
}

/// The line on which a setting stands.
pub fn line_of_key(text: &str, key: &str) -> Option<usize> {
    let (file, _) = DeTable::parse_recoverable(text);
    let mut table = file.get_ref();
    let names = names(key);
    let (name, tables) = names.split_last()?;
    for part in tables {
        table = table.get(*part)?.get_ref().as_table()?;
    }
    Some(line_of(text, table.get(*name)?.span().start))
}

/// The number of the line, from 1 on.
fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<(usize, String)> {
        let (_, problems) = check(text);
        problems.iter().map(|problem| (problem.line.unwrap(), problem.to_string())).collect()
    }

    #[test]
    fn every_mistake_has_its_line_and_an_example_and_the_rest_counts() {
        let text = "\
[lab]
max_tokens = \"many\"
budget_ms = 500
[completion]
multiline = \"sometimes\"
enabled = 1
ignore = \"*.sql\"
[lab.ppo]
epochs = 0
idle = 3
";
        let (config, problems) = check(text);
        assert_eq!(config.lab.budget_ms, 500);
        assert_eq!((config.lab.max_tokens, config.lab.ppo.epochs), (32, 2));
        let lines: Vec<_> = problems.iter().filter_map(|problem| problem.line).collect();
        assert_eq!(lines, [2, 5, 6, 7, 9, 10]);
        let told: Vec<_> = problems.iter().map(Problem::to_string).collect();
        assert_eq!(
            told,
            [
                "lab.max_tokens must be a whole number from 1 to 128, such as 32; it is \
                 \"many\"",
                "completion.multiline must be one of \"never\" and \"invoked\", such as \
                 \"invoked\"; it is \"sometimes\"",
                "completion.enabled must be true or false; it is 1",
                "completion.ignore must be a list of texts, such as [\"*.min.js\", \"~/notes/\"]; \
                 it is \"*.sql\"",
                "lab.ppo.epochs must be at least 1, such as 2; it is 0",
                "lab.ppo.idle: no such setting; `hone config get` lists them",
            ]
        );
    }

    #[test]
    fn a_line_that_is_no_toml_is_named_and_the_others_count() {
        let lines =
            ["max_tokens = many", "max_tokens 7", "[completion", "= 7", "a = \"b", "a = \"\"\""];
        for line in lines {
            let text = format!("learning.enabled = false\n{line}\n");
            let (config, problems) = check(&text);
            assert!(!config.learning.enabled, "{line}");
            assert_eq!(problems[0].line, Some(2), "{line}: {problems:?}");
            assert!(problems[0].what.contains("`name = value`"), "{line}: {problems:?}");
        }
        let twice = told("lab.max_tokens = 8\nlab.max_tokens = 9\n");
        assert_eq!((twice[0].0, twice.len()), (2, 1), "{twice:?}");
        assert!(twice[0].1.contains("twice"), "{twice:?}");
    }

    #[test]
    fn a_table_is_no_value_and_a_value_is_no_table() {
        for (text, what) in [
            ("completion = 3\n", "completion must be a table of settings"),
            ("[[completion]]\nmax_tokens = 3\n", "completion must be a table of settings"),
            ("completion.languages = false\n", "completion.languages must be a table"),
            ("completion.languages.rust = 1\n", "completion.languages.rust must be true or false"),
            ("[lab.max_tokens]\na = 1\n", "lab.max_tokens must be a whole number"),
            ("model.threads = 1979-05-27\n", "model.threads must be a whole number"),
        ] {
            let told = told(text);
            assert_eq!(told.len(), 1, "{told:?}");
            assert_eq!(told[0].0, 1, "{told:?}");
            assert!(told[0].1.starts_with(what), "{told:?}");
        }
    }

    #[test]
    fn a_setting_is_found_in_the_file() {
        let text = "[model]\nthreads = 2\nname = \"x\"\n";
        assert_eq!(line_of_key(text, "model.name"), Some(3));
        assert_eq!(line_of_key("model.name = 7\n", "model.name"), Some(1));
        assert_eq!(line_of_key(text, "model.gpu_layers"), None);
    }

    #[test]
    fn a_long_value_is_cut_off() {
        let told = told(&format!("model.threads = \"{}\"\n", "ü".repeat(500)));
        assert!(told[0].1.ends_with('…') && told[0].1.len() < 200, "{told:?}");
    }
}
