//! Where a renamed name is still used under its old name.

use super::Rename;
use super::declaration::{Declared, declared};
use crate::change::{Line, lines};
use crate::places::File;
use crate::tokens::{Class, Inside};
use std::ops::Range;

/// What begins a string in whose braces names stand, before its first quote.
const FORMATS: &[&str] = &["$", "F", "Fr", "Rf", "f", "fr", "rf"];

/// A text in lines, and the rename that is looked for.
pub struct Uses<'a> {
    rename: &'a Rename,
    is_rust: bool,
    lines: Vec<Line>,
    /// The byte at which each line begins.
    starts: Vec<usize>,
}

/// The lines in which a name means what was declared.
struct Scope {
    lines: Range<usize>,
    declared: Declared,
}

/// The brackets that are open at a token.
#[derive(Default)]
struct Brackets(Vec<char>);

impl Brackets {
    fn pass(&mut self, word: &str) {
        match word {
            "(" | "[" | "{" => self.0.extend(word.chars()),
            ")" | "]" | "}" => drop(self.0.pop()),
            _ => {}
        }
    }

    fn is_in(&self, open: char) -> bool {
        self.0.last() == Some(&open)
    }
}

impl<'a> Uses<'a> {
    pub fn of(rename: &'a Rename, file: &File) -> Uses<'a> {
        let lines = lines(file.text, file.language, Inside::Code);
        let breaks = file.text.match_indices('\n').map(|(at, _)| at + 1);
        let starts = [0].into_iter().chain(breaks).collect();
        Uses { rename, is_rust: file.language.is_rust, lines, starts }
    }

    /// The lines of the uses and their bytes, from the first one on. None, if the old name may mean
    /// something else too.
    pub fn find(&self) -> Vec<(usize, Range<usize>)> {
        self.scope().and_then(|scope| self.uses(&scope)).unwrap_or_default()
    }

    fn scope(&self) -> Option<Scope> {
        let at_line = *self.rename.lines.first()?;
        let line = self.lines.get(at_line)?;
        let here = |at: usize| line.word(at) == self.rename.new;
        let at = (0..line.tokens.len()).find(|at| here(*at) && declared(line, *at).is_some())?;
        let declared = declared(line, at)?;
        let lines = match declared {
            Declared::Type | Declared::Function => 0..self.lines.len(),
            Declared::Variable | Declared::Assigned => {
                at_line + 1..self.end(at_line, |indent, own| indent < own)
            }
            Declared::Inner => at_line..self.end(at_line, |indent, own| indent <= own),
        };
        let is_whole = lines.start == 0;
        (is_whole || !self.is_known_above(at_line, declared)).then_some(Scope { lines, declared })
    }

    /// The first line below this one whose indentation ends its block.
    fn end(&self, at: usize, ends: impl Fn(usize, usize) -> bool) -> usize {
        let own = self.lines[at].indent().len();
        let below = self.lines.iter().enumerate().skip(at + 1);
        let mut full = below.filter(|(_, line)| !line.tokens.is_empty());
        full.find(|(_, line)| ends(line.indent().len(), own)).map_or(self.lines.len(), |(at, _)| at)
    }

    /// Returns true if the old name stands for something in the blocks around this line already.
    fn is_known_above(&self, at: usize, kind: Declared) -> bool {
        let mut indent = self.lines[at].indent().len();
        self.lines[..at].iter().rev().filter(|line| !line.tokens.is_empty()).any(|line| {
            let own = line.indent().len();
            if own > indent {
                return false;
            }
            indent = own;
            self.old_in(line).any(|at| kind == Declared::Assigned || declared(line, at).is_some())
        })
    }

    /// The tokens of a line's code that are the old name.
    fn old_in<'l>(&'l self, line: &'l Line) -> impl Iterator<Item = usize> + 'l {
        let is_old =
            |at: &usize| line.tokens[*at].class == Class::Code && line.word(*at) == self.rename.old;
        (0..line.tokens.len()).filter(is_old)
    }

    fn uses(&self, scope: &Scope) -> Option<Vec<(usize, Range<usize>)>> {
        let is_whole = matches!(scope.declared, Declared::Type | Declared::Function);
        let mut brackets = Brackets::default();
        let mut uses = vec![];
        for (number, line) in self.lines.iter().enumerate().take(scope.lines.end) {
            if number < scope.lines.start {
                continue;
            }
            for at in 0..line.tokens.len() {
                let (word, token) = (line.word(at), line.tokens[at]);
                let is_code = token.class == Class::Code;
                if is_code && word == self.rename.new && !self.rename.lines.contains(&number) {
                    // The new name has a meaning of its own here.
                    return None;
                }
                if is_code && word == self.rename.old {
                    match declared(line, at) {
                        None | Some(Declared::Assigned) => {}
                        Some(_) if is_whole => return None,
                        Some(_) => return Some(uses),
                    }
                }
                if word == self.rename.old && self.is_use(scope.declared, line, at, &brackets) {
                    let start = self.starts.get(number)?;
                    uses.push((number, start + token.start as usize..start + token.end as usize));
                }
                if is_code {
                    brackets.pass(word);
                }
            }
        }
        Some(uses)
    }

    /// Returns true if the old name at this token means what was declared.
    fn is_use(&self, kind: Declared, line: &Line, at: usize, brackets: &Brackets) -> bool {
        let word = |at: usize| (at < line.tokens.len()).then(|| line.word(at));
        let before = at.checked_sub(1).and_then(word);
        let next = word(at + 1);
        match line.tokens[at].class {
            Class::Comment => return false,
            Class::String => return kind != Declared::Function && self.is_formatted(line, at),
            Class::Code => {}
        }
        let owner = at.checked_sub(2).and_then(word);
        let is_member = matches!(before, Some("." | "?." | "->"));
        let is_own = is_member && matches!(owner, Some("self" | "this" | "cls"));
        match kind {
            Declared::Function => next == Some("(") && (!is_member || is_own),
            Declared::Type => true,
            _ => {
                let is_path = before == Some("::") || next == Some("::");
                let begins = matches!(before, None | Some("," | "{" | "("));
                let is_key = begins && next == Some(":");
                let is_argument = begins && next == Some("=") && brackets.is_in('(');
                let is_field = matches!(before, None | Some("," | "{"))
                    && matches!(next, Some("," | "}"))
                    && brackets.is_in('{');
                !(is_member || is_path || is_key || is_argument || is_field)
            }
        }
    }

    /// Returns true if a string takes the value of the name at this token.
    fn is_formatted(&self, line: &Line, at: usize) -> bool {
        let word = |at: usize| (at < line.tokens.len()).then(|| line.word(at));
        let before = |back: usize| at.checked_sub(back).and_then(word);
        let ends = matches!(word(at + 1), Some("}" | ":" | "!" | "." | "[" | "("));
        if before(1) != Some("{") || !ends {
            return false;
        }
        if self.is_rust || matches!(before(2), Some("$" | "#")) {
            return true;
        }
        let in_string = |at: &usize| line.tokens[*at].class == Class::String;
        let first = (0..at).rev().take_while(in_string).last();
        first.and_then(|first| first.checked_sub(1)).is_some_and(|before| {
            let touches = line.tokens[before].end == line.tokens[before + 1].start;
            touches && FORMATS.contains(&line.word(before))
        })
    }
}
