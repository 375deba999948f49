//! The language of a text. Clients of HTTP do not state it, so it is read from the name of the file
//! where there is one, and else from the text.

use completion::languages;
use std::path::Path;

/// Beginnings of lines that are frequent in a language and rare in the others.
const BEGINNINGS: &[(&str, &[&str])] = &[
    ("rust", &["fn ", "pub fn ", "let mut ", "impl ", "use crate::", "use std::", "#[derive"]),
    ("python", &["def ", "elif ", "self.", "from ", "async def ", "@property", "except "]),
    ("go", &["func ", "package ", "if err != nil", "defer ", "type "]),
    ("typescript", &["interface ", "export type ", "readonly ", "export interface "]),
    ("javascript", &["const ", "function ", "module.exports", "export ", "var "]),
    ("cpp", &["#include <", "std::", "namespace ", "template <", "template<", "using namespace"]),
    ("c", &["#include <std", "#define ", "static int ", "typedef struct", "static void "]),
    ("java", &["public class ", "private ", "import java", "@Override", "public static void "]),
    ("lua", &["local ", "local function ", "end)", "elseif "]),
    ("ruby", &["require '", "module ", "attr_", "elsif ", "puts "]),
];

/// The lines of which a language is read.
const LINES: usize = 200;

/// Returns the editors' id of a language, or nothing if it is not known.
pub fn of(name: Option<&str>, text: &str) -> &'static str {
    name.and_then(of_name).or_else(|| of_first_line(text)).or_else(|| of_lines(text)).unwrap_or("")
}

fn of_name(name: &str) -> Option<&'static str> {
    let path = Path::new(name);
    let ending = path.extension().or_else(|| path.file_name())?.to_str()?;
    let ending = ending.trim_start_matches('.').to_ascii_lowercase();
    languages::of_ending(&ending)
}

/// Some clients write the language into a comment above the text, and scripts name their
/// interpreter.
fn of_first_line(text: &str) -> Option<&'static str> {
    let line = text.lines().next()?;
    if let Some((_, named)) = line.split_once("language: ") {
        return languages::known(named.split_whitespace().next()?);
    }
    let program = line.strip_prefix("#!")?.rsplit(['/', ' ']).next()?;
    match program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
        "sh" | "bash" | "zsh" => Some("shellscript"),
        "node" => Some("javascript"),
        program => languages::known(program),
    }
}

fn of_lines(text: &str) -> Option<&'static str> {
    let score = |beginnings: &[&str]| {
        let is_one = |line: &&str| beginnings.iter().any(|begin| line.starts_with(begin));
        text.lines().take(LINES).map(str::trim_start).filter(is_one).count()
    };
    let scored = BEGINNINGS.iter().map(|(language, all)| (score(all), *language));
    // Of equal ones the first counts.
    let best = scored.rev().max_by_key(|(score, _)| *score);
    best.filter(|(score, _)| *score > 0).map(|(_, language)| language)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_read_from_the_name_or_the_text() {
        assert_eq!(of(Some("src/a.PY"), "fn a() {}"), "python");
        assert_eq!(of(Some("/p/.env"), ""), "dotenv");
        assert_eq!(of(Some("Makefile"), "# language: lua\n"), "lua");
        assert_eq!(of(None, "#!/usr/bin/env python3\n"), "python");
        assert_eq!(of(None, "#!/bin/bash\n"), "shellscript");
        assert_eq!(of(None, "use std::io;\n\nfn main() {\n    let mut x = 1;\n"), "rust");
        assert_eq!(of(None, "import os\n\nclass A:\n    def f(self):\n"), "python");
        assert_eq!(of(None, "package main\n\nfunc main() {\n"), "go");
        assert_eq!(of(None, "const a = 1;\nfunction b() {}\n"), "javascript");
        assert_eq!(of(None, "once upon a time"), "");
    }

    #[test]
    fn every_language_that_is_read_from_a_text_has_an_ending() {
        for (language, _) in BEGINNINGS {
            let ending = languages::ending(language).unwrap();
            assert_eq!(of_name(&format!("a.{ending}")), Some(*language));
        }
    }
}
